// Block-sparse attention forward for Hopper. Producer threads copy with TMA: one tiles of queries, one keys and values, one the bits
// of partial tiles; CONSUMERS warpgroups of 64 query rows multiply with wgmma and take turns, so that one's exponentials run under
// another's products. Blocks stay on their multiprocessor and take tiles, heaviest first, from a counter; the last tiles may be
// cut along the keys into pieces.
// docs/kernels/flex-sm90.md shows the pipeline.
// The host defines besides what pipeline_sm90.cuh wants: ML_MASK (0 none, 1 formula, 4 bitmap, 5 interval), ML_LAG (0: the running maximum
// is exact), ML_BOUNDED (1: a row's first one stays; never with ML_MAX_SCORES).

// --- the consumers: a warpgroup of 128 threads owns 64 rows; a thread holds rows lane/4 and lane/4 + 8 of its warp's 16 ---

__device__ __forceinline__ void issue_qk(float (&score)[N / 2], u32 q, u32 k) {
    // where heads are wide and a score mod wants registers, q's descriptors are made again for every tile
    constexpr bool AGAIN = VW > 128 && !LIGHT_SCORE;
    u64 a = descriptor(AGAIN ? u32(forget(int(q))) : q, 16, 1024), b = descriptor(k, 16, 1024);
    // addresses in descriptors count 16 bytes
#pragma unroll
    for (int d = 0; d < QK / 16; ++d)
        wgmma_ss<0>(score, a + ((d / 4) * M * 8 + (d % 4) * 2), b + ((d / 4) * N * 8 + (d % 4) * 2), d != 0);
}

__device__ __forceinline__ void issue_pv(float (&out)[VW / 2], const u32 *weight, u32 v) {
    u64 b = descriptor(v, N * 128, 1024);
#pragma unroll
    for (int step = 0; step < N / 16; ++step) wgmma_rs<1>(out, weight + 4 * step, b + step * 128, 1);
}

__device__ __forceinline__ void to_operand(u32 (&weight)[N / 4], const float (&score)[N / 2]) {
#pragma unroll
    for (int i = 0; i < N / 4; ++i) weight[i] = pack16(score[2 * i], score[2 * i + 1]);
}

// Floats that the threads of a consumer leave of a piece: their output, maxima and sums, each thread 4 at a time.
constexpr int PART = 128 * (VW / 2 + 4);

// Leaves a piece's sums to the last of its tile to get here, which takes those of all pieces, in their order, and goes on
// as if the tile were whole. False for the others.
__device__ __forceinline__ bool join(const Hopper &x, const Stage &s, u32 unit, RowState &rows, float (&out)[VW / 2],
                                     float to_log2, int group, int thread) {
    const Piece &piece = piece_of(x, unit);
    u32 first = __ldg(&piece.first), count = __ldg(&piece.count);
    if (count == 1) return true;
    float4 *left = reinterpret_cast<float4 *>(x.parts + i64(__ldg(&piece.part) * CONSUMERS + group) * PART) + thread;
#pragma unroll
    for (int i = 0; i < VW / 8; ++i)
        left[i * 128] = make_float4(out[4 * i], out[4 * i + 1], out[4 * i + 2], out[4 * i + 3]);
    left[VW / 8 * 128] = make_float4(rows.maximum[0], rows.maximum[1], rows.sum[0], rows.sum[1]);
    __threadfence();
    bar_sync(8 + group, 128);
    u32 *arrived = x.arrived + first * CONSUMERS + group;
    if (thread == 0) s.last[group] = atomicAdd(arrived, 1) == count - 1;
    bar_sync(8 + group, 128);
    if (!s.last[group]) return false;
    if (thread == 0) *arrived = 0;
    __threadfence();
    const float4 *from = reinterpret_cast<const float4 *>(x.parts + i64(first * CONSUMERS + group) * PART) + thread;
    constexpr int NEXT = CONSUMERS * PART / 4;
    // products as the pieces rounded them
    auto power = [&](float maximum) { return FIXED ? maximum : __fmul_rn(maximum, to_log2); };
    float top[2] = {RowState::unset(), RowState::unset()};
    for (u32 i = 0; i < count; ++i) {
        float4 state = from[i * NEXT + VW / 8 * 128];
        top[0] = larger(top[0], state.x), top[1] = larger(top[1], state.y);
    }
    rows.sum[0] = rows.sum[1] = 0.0f;
#pragma unroll
    for (int i = 0; i < VW / 2; ++i) out[i] = 0.0f;
    for (u32 i = 0; i < count; ++i) {
        const float4 *part = from + i * NEXT;
        float4 state = part[VW / 8 * 128];
        // a piece in which a row kept nothing left zeros
        float weight[2] = {top[0] == state.x ? 1.0f : exp2_fast(power(state.x) - power(top[0])),
                           top[1] == state.y ? 1.0f : exp2_fast(power(state.y) - power(top[1]))};
        rows.sum[0] = fmaf(weight[0], state.z, rows.sum[0]);
        rows.sum[1] = fmaf(weight[1], state.w, rows.sum[1]);
#pragma unroll
        for (int j = 0; j < VW / 8; ++j) {
            float4 value = part[j * 128];
            out[4 * j] = fmaf(weight[0], value.x, out[4 * j]);
            out[4 * j + 1] = fmaf(weight[0], value.y, out[4 * j + 1]);
            out[4 * j + 2] = fmaf(weight[1], value.z, out[4 * j + 2]);
            out[4 * j + 3] = fmaf(weight[1], value.w, out[4 * j + 3]);
        }
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) rows.maximum[r] = top[r];
    return true;
}

// Sums the rows over the threads that share them, and makes the output of it: in 16 bits, as the way out wants it.
__device__ __forceinline__ void normalise(RowState &rows, const float (&out)[VW / 2], u32 (&done)[VW / 4]) {
    float inverse[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        float sum = rows.sum[r];
        sum += __shfl_xor_sync(0xffffffff, sum, 1);
        sum += __shfl_xor_sync(0xffffffff, sum, 2);
        rows.sum[r] = sum;
        inverse[r] = sum == 0.0f ? 0.0f : reciprocal_fast(sum);
    }
#pragma unroll
    for (int i = 0; i < VW / 4; ++i) done[i] = pack16(out[2 * i] * inverse[i % 2], out[2 * i + 1] * inverse[i % 2]);
}

// Writes lse, and sends the output through the warpgroup's own rows of the Q buffer, which it has read for the last time.
__device__ __forceinline__ void store(const Params &p, const Stage &s, u32 tile, const TensorMap *o_map, const RowState &rows,
                                      const u32 (&done)[VW / 4], float to_log2, int group, int thread) {
    const Place place = s.place(tile);
    int warp = thread / 32, lane = thread % 32, row = 64 * group + 16 * warp + lane / 4;
    u32 base = s.q + tile % Q_STAGES * Q_BYTES;
    int line = 64 * group + 16 * warp + ((lane / 8) & 1) * 8 + lane % 8;
#pragma unroll
    for (int j = 0; j < VW / 8; j += 2) {
        int chunk = j + lane / 16;
        u32 to = base + (chunk / 8) * M * 128 + line * 128 + (((chunk % 8) ^ (line % 8)) * 16);
        stmatrix_x4(to, done[2 * j], done[2 * j + 1], done[2 * j + 2], done[2 * j + 3]);
    }
    fence_async_proxy();
    bar_sync(8 + group, 128);
    int first = place.tile * M + 64 * group;
    if (thread == 0 && first < p.q_len) {
#pragma unroll
        for (int d = 0; d < VW / 64; ++d)
            tma_store(o_map, base + d * M * 128 + 64 * group * 128, d * 64, first, place.h, place.b);
        tma_store_commit();
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        float sum = rows.sum[r];
        int q_idx = place.tile * M + row + 8 * r;
        float base = rows.maximum[r] * (FIXED ? 1.0f : to_log2) * 0.6931471805599453f;
        float lse = sum == 0.0f ? negative_infinity() : base + logf(sum);
        if (lane % 4 == 0 && q_idx < p.q_len) p.lse[(i64(place.b) * p.heads + place.h) * p.q_len + q_idx] = lse;
#if ML_MAX_SCORES
        // where the scale is folded into the exponent, `maximum` lacks it
        float largest = ML_SCORE == 0 ? rows.maximum[r] * p.scale : rows.maximum[r];
        if (lane % 4 == 0 && q_idx < p.q_len) p.max_scores[(i64(place.b) * p.heads + place.h) * p.q_len + q_idx] = largest;
#endif
    }
}

// The Q buffer from which a tile was stored may be filled again.
__device__ __forceinline__ void give_back_q(const Stage &s, u32 tile, int thread) {
    if (thread == 0) tma_store_wait_read();
    give_back(s.q_empty(int(tile % Q_STAGES)));
}

__device__ __forceinline__ void begin_tile(RowState &rows, float (&out)[VW / 2]) {
    rows = RowState();
#pragma unroll
    for (int i = 0; i < VW / 2; ++i) out[i] = 0.0f;
}

// With another Q buffer to go on with, one is given back beside the next tile's first product, when its output has long left.
constexpr bool LATE = Q_STAGES > 1;
// And without a score mod, which wants its registers, it leaves beside that product.
constexpr bool BESIDE = LATE && ML_SCORE != 2;

// Where nothing comes between a product and its exponentials but a mask in bits, partial tiles have a way of their own, on which bits
// are tested while exponentials are made; full tiles meet one branch.
constexpr bool BITS_ALONG = ML_MASK >= 4 && ANCHORED;

// Exponentials of a tile that is not a row's first; `word`: of a partial one.
__device__ __forceinline__ void weigh_kept(const Params &p, RowState &rows, float (&score)[N / 2], const Words &word,
                                           const Step &step, float to_log2) {
    if (__builtin_expect(step.full() && !rows.open, 1)) {
        rows.weigh_both<N / 8>(score, to_log2);
        return;
    }
    if (rows.open) {
        apply_bits(score, word);
        rows.begin(score, to_log2, p.lowest);
    }
    rows.weigh_bits(score, word, to_log2);
    stay_apart();
}

// The next kv tile, once its keys have come and the products are this warpgroup's.
__device__ __forceinline__ Step take_turn(const Stage &s, const Ring<K_STAGES> &k, int turn) {
    mbarrier_wait(s.k_full(k.at()), k.phase());
    Step step = s.step(k.at());
    if (CONSUMERS > 1) bar_sync(turn, 256);
    return step;
}

// score = q k^T, of this warpgroup's rows; not waited for.
__device__ __forceinline__ void begin_scores(const Stage &s, const Ring<K_STAGES> &k, u32 q_rows, float (&score)[N / 2]) {
    wgmma_fence();
    issue_qk(score, q_rows, s.k + k.at() * K_BYTES);
    wgmma_commit();
}

// Whether the tile is full, and its bits where it is not.
__device__ __forceinline__ void take_bits(const Stage &s, Step &step, int group) {
    step.word = spread(step.word);
    wait_for_bits(s, step, group);
}

// Weights of a tile of queries' first kv tile.
__device__ __forceinline__ void weigh_first(RowState &rows, float (&score)[N / 2], u32 (&weight)[N / 4], float to_log2,
                                            float lowest) {
    rows.step<N / 8, true>(score, to_log2, lowest);
    rows.close<N / 8>(score, to_log2);
    if (ANCHORED) rows.add();
    to_operand(weight, score);
}

// Exponentials of a tile that is not the first; the K buffer, whose product has been waited for, is given back.
__device__ __forceinline__ void weigh_next(const Params &p, const Mods &mods, const Stage &s, const Place &place, u32 tile,
                                           Ring<K_STAGES> &k, const Ahead &ahead, const Step &step, const Words &word,
                                           RowState &rows, float (&score)[N / 2], float to_log2, int row, int thread) {
    if (BITS_ALONG) {
        give_back(s.k_empty(k.at()));
        k.next();
        weigh_kept(p, rows, score, word, step, to_log2);
    } else {
        apply_mods(p, mods, place, s, tile, k.at(), ahead, score, step, row, thread);
        k.next();
        rows.step<EARLY>(score, to_log2, p.lowest);
    }
    if (ML_SCORE != 2) {
        pin(score);
        stay_before(p.q_len);
    }
}

// A row that rose too far above its base takes another, and with it everything summed; `again` makes the tile's scores.
template <class Again>
__device__ __forceinline__ void follow_rises(RowState &rows, float (&score)[N / 2], float (&out)[VW / 2], u32 (&weight)[N / 4],
                                             float to_log2, Again again) {
    if (rows.risen()) {
        rows.raise(score, out, to_log2, again);
        to_operand(weight, score);
    }
    rows.add();
}

// The product of a tile of queries' last weights with their values.
__device__ __forceinline__ void last_values(const Stage &s, Ring<V_STAGES> &v, const u32 (&weight)[N / 4],
                                            float (&out)[VW / 2]) {
    mbarrier_wait(s.v_full(v.at()), v.phase());
    pin(out);
    wgmma_fence();
    issue_pv(out, weight, s.v + v.at() * V_BYTES);
    wgmma_commit();
    wgmma_wait<0>();
    pin(out);
    give_back(s.v_empty(v.at()));
    v.next();
}

__device__ __forceinline__ void consume(const Params &p, const Hopper &x, const Mods &mods, const Stage &s,
                                        const TensorMap *o_map, int group, int thread) {
    const float to_log2 = ML_SCORE == 0 ? p.scale * 1.4426950408889634f : 1.4426950408889634f;
    Ring<Q_STAGES> q;
    Ring<K_STAGES> k;
    Ring<V_STAGES> v;
    int row = 64 * group + 16 * (thread / 32) + (thread % 32) / 4;
    int turn = 1 + group, next_turn = 1 + (group + 1) % CONSUMERS;
    if (CONSUMERS > 1 && group == CONSUMERS - 1) bar_arrive(1, 256);  // the first warpgroup begins
    u32 done[VW / 4];
    RowState rows;
    bool leaves = false;
    for (;; q.next()) {
        float score[N / 2], out[VW / 2];
        u32 weight[N / 4];
        mbarrier_wait(s.q_full(q.at()), q.phase());
        bool more = s.word(q.count, ticket::UNIT) < x.units;
        u32 left = more ? s.word(q.count, ticket::KV_NUM_TILES) : 0;
        if (left == 0) {
            if (leaves) store(p, s, q.count - 1, o_map, rows, done, to_log2, group, thread);
            if (LATE && q.count > 0) give_back_q(s, q.count - 1, thread);
            if (!more) break;
        }
        if (!BESIDE || left == 0) begin_tile(rows, out);
        if (left > 0) {
            u32 q_rows = s.q + q.at() * Q_BYTES + 64 * group * 128;
            Step step = take_turn(s, k, turn);
            pin(score);
            begin_scores(s, k, q_rows, score);
            if (CONSUMERS > 1) bar_arrive(next_turn, 256);
            if (BESIDE) {
                if (leaves) store(p, s, q.count - 1, o_map, rows, done, to_log2, group, thread);
                begin_tile(rows, out);
            }
            Place place = s.place(q.count);
            Ahead ahead(mods, place, place.tile * M + row);
            take_bits(s, step, group);
            wgmma_wait<0>();
            pin(score);
            if (LATE && q.count > 0) give_back_q(s, q.count - 1, thread);
            apply_mods(p, mods, place, s, q.count, k.at(), ahead, score, step, row, thread);
            k.next();
            weigh_first(rows, score, weight, to_log2, p.lowest);
            while (--left > 0) {
                step = take_turn(s, k, turn);
                pin(score);
                pin(out);
                begin_scores(s, k, q_rows, score);
                Words word = {~0u, ~0u};
                if (BITS_ALONG) {
                    take_bits(s, step, group);
                    if (!step.full()) bits_of_tile(p, s, q.count, step, word, row, thread);
                }
                mbarrier_wait(s.v_full(v.at()), v.phase());
                issue_pv(out, weight, s.v + v.at() * V_BYTES);
                wgmma_commit();
                if (CONSUMERS > 1) bar_arrive(next_turn, 256);
                if (!BITS_ALONG) take_bits(s, step, group);
                wgmma_wait<1>();
                pin(score);
                weigh_next(p, mods, s, place, q.count, k, ahead, step, word, rows, score, to_log2, row, thread);
                wgmma_wait<0>();
                pin(out);
                give_back(s.v_empty(v.at()));
                v.next();
                rows.rescale(out);
                rows.close<EARLY>(score, to_log2);
                to_operand(weight, score);
                if (ANCHORED) {
                    follow_rises(rows, score, out, weight, to_log2, [&](float (&again)[N / 2]) {
                        score_again(p, mods, s, q.count, left, again, row, thread);
                    });
                }
            }
            last_values(s, v, weight, out);
        }
        u32 unit = s.word(q.count, ticket::UNIT);
        bool whole = !is_piece(x, unit) || join(x, s, unit, rows, out, to_log2, group, thread);
        normalise(rows, out, done);
        if (BESIDE) {
            leaves = whole;
        } else {
            if (whole) store(p, s, q.count, o_map, rows, done, to_log2, group, thread);
            if (!LATE) give_back_q(s, q.count, thread);
        }
    }
    if (thread == 0) tma_store_wait_read();
}

extern "C" __global__ void __launch_bounds__(128 * (CONSUMERS + 1), ML_MIN_BLOCKS)
    flex_hopper(const __grid_constant__ TensorMap q_map, const __grid_constant__ TensorMap k_map,
                const __grid_constant__ TensorMap v_map, const __grid_constant__ TensorMap o_map,
                const __grid_constant__ TensorMap bits_map, const __grid_constant__ Params p, const __grid_constant__ Hopper x,
                ML_MODS_PARAMETER) {
    extern __shared__ __align__(1024) u8 raw[];
    Stage stage(raw);
    if (threadIdx.x == 0) stage.initialise();
    __syncthreads();
    // the compiler is to see that it is the same for a warp: what follows from it then needs no register of each thread
    int group = __shfl_sync(0xffffffff, int(threadIdx.x / 128), 0) - 1;
    if (group < 0) {
        registers_lower<CONSUMERS == 3 ? 32 : 24>();
        if (threadIdx.x == 0) produce_kv(p, x, stage, &k_map, &v_map);
        if (threadIdx.x == 32) produce_q(p, x, stage, &q_map);
        if (ML_MASK == 4 && threadIdx.x == 64) produce_bits(p, x, stage, &bits_map);
    } else {
        registers_raise<CONSUMERS == 3 ? 160 : ML_MIN_BLOCKS == 2 ? 232 : 240>();
        // 0.5 to 1.5% less time, but 5% more where there is neither a mask nor a score mod at head_dim 128
        if (ML_MASK != 0 || ML_SCORE != 0 || VW != 128) stage.keep();
        consume(p, x, ML_MODS, stage, &o_map, group, threadIdx.x % 128);
    }
}
