// Block-sparse attention forward for Hopper. One producer thread copies tiles with TMA; CONSUMERS warpgroups of 64 query
// rows multiply with wgmma and take turns, so that one's exponentials run under another's products. Blocks stay on
// their multiprocessor and draw tiles, heaviest first, from a counter; the last tiles may be cut along the keys into pieces.
// kernels/README.md draws the pipeline.
// The host defines besides the usual: ML_QK_WIDTH and ML_V_WIDTH (head dims padded to 64), ML_CONSUMERS, ML_STAGES,
// ML_Q_STAGES, ML_MASK (0 none, 1 formula, 4 bitmap), ML_LAG (0: the running maximum is exact), ML_BOUNDED (1: a row's first one
// stays; never with ML_MAX_SCORES).

constexpr int QK = ML_QK_WIDTH, VW = ML_V_WIDTH, N = ML_TILE_KV, CONSUMERS = ML_CONSUMERS, M = 64 * CONSUMERS;
constexpr int STAGES = ML_STAGES, Q_STAGES = ML_Q_STAGES;
// A buffer holds columns of 64 elements (128 bytes a row, swizzled) one after the other.
constexpr int Q_BYTES = M * QK * 2, K_BYTES = N * QK * 2, V_BYTES = N * VW * 2;

// A share of the keys of a tile.
struct Piece {
    u32 tile;   // as drawn where it is whole
    u32 row;    // of the block lists: this piece's own
    u32 part;   // where it leaves its sums
    u32 first;  // where the tile's first piece does; the others follow
    u32 count;  // pieces of the tile
};

// What a launch passes besides Params. Mirrored byte for byte by the host.
struct Hopper {
    const u32 *bitmap_start;  // [rows]: where a row's partial tiles begin in bitmap_ids
    const u32 *bitmap_ids;    // one for every partial tile, in the order of the lists
    const u32 *bitmaps;       // [n][M][4] words; bit 2j+e of word t is column 8j + 2t + e
    u32 *counter;             // [2]: draws beyond the first of each block, blocks that have finished
    const Piece *pieces;      // [cut]
    float *parts;             // [cut][CONSUMERS][PART floats]: what pieces leave to the last of their tile
    u32 *arrived;             // [cut][CONSUMERS]: pieces that have left theirs, counted at the first of a tile; 0 between launches
    u32 draws;                // whole tiles, then pieces
    u32 cut;                  // how many of the draws are pieces
};

__device__ __forceinline__ bool is_piece(const Hopper &x, u32 draw) { return draw >= x.draws - x.cut; }
__device__ __forceinline__ const Piece &piece_of(const Hopper &x, u32 draw) { return x.pieces[draw - (x.draws - x.cut)]; }

__device__ __forceinline__ Place place_of_draw(const Params &p, const Hopper &x, u32 draw) {
    if (!is_piece(x, draw)) return place_of(p, draw);
    const Piece &piece = piece_of(x, draw);
    Place place = place_of(p, __ldg(&piece.tile));
    place.row = int(__ldg(&piece.row));
    return place;
}

// Position in a ring of buffers, and the parity that its barriers wait for.
template <int COUNT> struct Ring {
    int at = 0;
    u32 phase = 0;
    __device__ __forceinline__ void next() {
        if (++at == COUNT) at = 0, phase ^= 1;
    }
};

// The same for a power of two, in one register.
template <int COUNT> struct Turn {
    static_assert((COUNT & (COUNT - 1)) == 0, "counts wrap");
    u32 count = 0;
    __device__ __forceinline__ int at() const { return int(count % COUNT); }
    __device__ __forceinline__ u32 phase() const { return count / COUNT % 2; }
    __device__ __forceinline__ void next() { ++count; }
};

// Exponentials (by 8-column groups) that are computed while the last tile's products with v still run; those after them share
// their issue slots with the output's rescaling. A score mod is long enough by itself, and three warpgroups overlap anyway.
constexpr int EARLY = ML_SCORE == 2 || CONSUMERS == 3 ? N / 8 : N / 16;

// Shared memory: Q, K and V buffers, a full and an empty barrier for each, what was drawn for each Q buffer and where that
// is, and for each consumer whether its piece was the tile's last.
struct Stage {
    u32 q, k, v, bars;
    volatile int *drawn;  // [Q_STAGES][WORDS]: the draw, -1 where there are no more; b, h, tile, row
    volatile int *last;   // [CONSUMERS]
    static constexpr int WORDS = 5;
    __device__ __forceinline__ u32 q_full(int i) const { return bars + 8 * i; }
    __device__ __forceinline__ u32 q_empty(int i) const { return bars + 8 * (Q_STAGES + i); }
    __device__ __forceinline__ u32 k_full(int i) const { return bars + 8 * (2 * Q_STAGES + i); }
    __device__ __forceinline__ u32 k_empty(int i) const { return bars + 8 * (2 * Q_STAGES + STAGES + i); }
    __device__ __forceinline__ u32 v_full(int i) const { return bars + 8 * (2 * Q_STAGES + 2 * STAGES + i); }
    __device__ __forceinline__ u32 v_empty(int i) const { return bars + 8 * (2 * Q_STAGES + 3 * STAGES + i); }

    __device__ __forceinline__ explicit Stage(u8 *raw) {
        u32 start = shared_address(raw), base = (start + 1023) & ~1023u;
        q = base;
        k = q + Q_STAGES * Q_BYTES;
        v = k + STAGES * K_BYTES;
        bars = v + STAGES * V_BYTES;
        drawn = reinterpret_cast<volatile int *>(raw + (bars - start) + 8 * (2 * Q_STAGES + 4 * STAGES));
        last = drawn + Q_STAGES * WORDS;
    }
    __device__ __forceinline__ void keep(int i, u32 draw, const Place &place) const {
        volatile int *to = drawn + i * WORDS;
        to[0] = int(draw), to[1] = place.b, to[2] = place.h, to[3] = place.tile, to[4] = place.row;
    }
    // Read whenever it is wanted: the loop over keys has no registers to keep it in.
    __device__ __forceinline__ int draw(int i) const { return drawn[i * WORDS]; }
    __device__ __forceinline__ Place place(int i) const {
        volatile int *from = drawn + i * WORDS;
        return {from[1], from[2], from[3], from[4]};
    }
    __device__ __forceinline__ void initialise() const {
        for (int i = 0; i < Q_STAGES; ++i) mbarrier_init(q_full(i), 1), mbarrier_init(q_empty(i), CONSUMERS);
        for (int i = 0; i < STAGES; ++i) {
            mbarrier_init(k_full(i), 1), mbarrier_init(k_empty(i), CONSUMERS);
            mbarrier_init(v_full(i), 1), mbarrier_init(v_empty(i), CONSUMERS);
        }
        fence_barrier_init();
    }
};

// --- the producer: one thread ---

template <int ROWS, int WIDTH>
__device__ __forceinline__ void copy_tile(u32 to, const TensorMap *map, u32 bar, int row, int head, int batch) {
    mbarrier_expect(bar, ROWS * WIDTH * 2);
#pragma unroll
    for (int d = 0; d < WIDTH / 64; ++d) tma_load(to + d * ROWS * 128, map, bar, d * 64, row, head, batch);
}

__device__ __forceinline__ void produce(const Params &p, const Hopper &x, const Stage &s, const TensorMap *q_map,
                                        const TensorMap *k_map, const TensorMap *v_map) {
    Turn<Q_STAGES> q;
    Ring<STAGES> kv;
    for (u32 draw = blockIdx.x;; draw = gridDim.x + atomicAdd(x.counter, 1)) {
        mbarrier_wait(s.q_empty(q.at()), q.phase() ^ 1);
        if (draw >= x.draws) {
            s.drawn[q.at() * Stage::WORDS] = -1;
            mbarrier_arrive(s.q_full(q.at()));
            break;
        }
        Place place = place_of_draw(p, x, draw);
        s.keep(q.at(), draw, place);
        copy_tile<M, QK>(s.q + q.at() * Q_BYTES, q_map, s.q_full(q.at()), place.tile * M, place.h, place.b);
        q.next();
        Cursor cursor(p, place.row);
        for (u32 at = cursor.next(p); at != Cursor::NONE; at = cursor.next(p)) {
            int head = place.h / p.group, first = int(at & ~Cursor::FULL) * N;
            mbarrier_wait(s.k_empty(kv.at), kv.phase ^ 1);
            copy_tile<N, QK>(s.k + kv.at * K_BYTES, k_map, s.k_full(kv.at), first, head, place.b);
            mbarrier_wait(s.v_empty(kv.at), kv.phase ^ 1);
            copy_tile<N, VW>(s.v + kv.at * V_BYTES, v_map, s.v_full(kv.at), first, head, place.b);
            kv.next();
        }
    }
    // the last block to get here leaves the counters ready for the next launch
    if (atomicAdd(x.counter + 1, 1) == gridDim.x - 1) x.counter[0] = 0, x.counter[1] = 0;
}

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

// What the mods need of a thread's head and of its two rows.
struct Ahead {
    HeadValues head;
    RowValues row[2];

    __device__ __forceinline__ Ahead(const Mods &mods, const Place &place, int q_idx) {
        head = head_values(mods, place.b, place.h);
#pragma unroll
        for (int r = 0; r < 2; ++r) row[r] = row_values(mods, head, place.b, place.h, q_idx + 8 * r);
    }
};

// Scores of one tile: the score mod everywhere, then -inf where the mask is false in a partial tile. Value
// 4j + 2r + e of a thread lies 8r below its first row and 8j + e right of its first column; columns come outside rows,
// so that what a column needs is computed once for both.
__device__ __forceinline__ void apply_mods(const Params &p, const Hopper &x, const Mods &mods, const Place &kept,
                                           const Stage &s, int q_at, const Ahead &ahead, float (&score)[N / 2], u32 at,
                                           u32 &partial, int row, int lane4) {
    // a called score mod leaves no registers to keep it in
    const Place place = ML_SCORE == 2 && SCORE_PASS == 1 ? s.place(q_at) : kept;
    int q_idx = place.tile * M + row, kv_idx = int(at & ~Cursor::FULL) * N + 2 * lane4;
    auto &cells = reinterpret_cast<float (&)[1][N / 8][4]>(score);
#if ML_SCORE == 1
#pragma unroll
    for (int i = 0; i < N / 2; ++i) score[i] *= p.scale;
#elif ML_SCORE == 2
    by_columns<SCORE_PASS>(cells, q_idx, kv_idx, [&](int first, int column, int n) {
        ColumnValues values = column_values(mods, ahead.head, place.b, place.h, column);
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            float &cell = cells[0][n / 2][2 * r + n % 2];
            // cells take different ways, so that the special-function unit does one's share and the multipliers the
            // other's; one call for both rows keeps what cells of a diagonal have in common
            int way = ML_BOUNDED ? r | (n & 1) : r;
            cell = score_mod(mods, way, cell, p.scale, ahead.head, ahead.row[r], values, place.b, place.h, first + 8 * r, column);
        }
    });
#endif
    if (at & Cursor::FULL) return;
#if ML_MASK == 4
    const u32 *words = x.bitmaps + (u64(__ldg(x.bitmap_ids + partial++)) * M + row) * 4 + lane4;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        u32 word = __ldg(words + r * 32);
#pragma unroll
        for (int j = 0; j < N / 8; ++j) {
            if (!(word & (1u << (2 * j)))) score[4 * j + 2 * r] = negative_infinity();
            if (!(word & (2u << (2 * j)))) score[4 * j + 2 * r + 1] = negative_infinity();
        }
    }
#else
    by_columns<MASK_PASS>(cells, q_idx, kv_idx, [&](int first, int column, int n) {
#if ML_MASK == 1
        ColumnValues values = column_values(mods, ahead.head, place.b, place.h, column);
#endif
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            bool keep = column < p.kv_len;
#if ML_MASK == 1
            keep = keep && mask_mod(mods, ahead.head, ahead.row[r], values, place.b, place.h, first + 8 * r, column);
#endif
            if (!keep) cells[0][n / 2][2 * r + n % 2] = negative_infinity();
        }
    });
#endif
}

// Running maximum and sum of a thread's two rows. With ML_LAG the maximum may lag by a factor 2^8 of the exponentials,
// so that most tiles rescale nothing; sum and output carry the same factor, hence the result is the same. With ML_BOUNDED
// scores lie so near to each other that the first tile in which a row keeps something decides its base: that tile's maximum,
// raised by whole powers of two where it is below p.lowest, so that the weight of the largest stays exact in 16 bits. `maximum`
// is then in powers of two, and later tiles neither look for it nor rescale. With ML_MAX_SCORES, where the maximum is an
// output, it follows every tile; ML_LAG then only skips the rescaling of tiles that raise no row of a warp.
struct RowState {
    float maximum[2], sum[2], factor[2];
    float base[2], added[2];  // of this tile
    // of a row that has kept nothing yet; with ML_BOUNDED a number, so that -inf minus it is -inf
    __device__ __forceinline__ static float unset() { return ML_BOUNDED ? -1e30f : negative_infinity(); }

    __device__ __forceinline__ RowState() {
        maximum[0] = maximum[1] = unset();
        sum[0] = sum[1] = 0.0f;
    }
    // The row's largest score in this tile, in all four threads that share the row.
    __device__ __forceinline__ static float largest(const float (&score)[N / 2], int r) {
        // four chains: one would wait for itself at every step
        float tops[4] = {score[2 * r], score[2 * r + 1], score[4 + 2 * r], score[4 + 2 * r + 1]};
#pragma unroll
        for (int j = 2; j < N / 8; ++j)
#pragma unroll
            for (int e = 0; e < 2; ++e) tops[j % 2 * 2 + e] = larger(tops[j % 2 * 2 + e], score[4 * j + 2 * r + e]);
        float top = larger(larger(tops[0], tops[1]), larger(tops[2], tops[3]));
        top = larger(top, __shfl_xor_sync(0xffffffff, top, 1));
        return larger(top, __shfl_xor_sync(0xffffffff, top, 2));
    }
    // With ML_BOUNDED: the base of rows that have none yet and keep something here.
    __device__ __forceinline__ void begin(const float (&score)[N / 2], float to_log2, float lowest) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            float top = largest(score, r) * to_log2;
            if (maximum[r] == unset() && top != negative_infinity()) maximum[r] = top + fmaxf(ceilf(lowest - top), 0.0f);
        }
    }
    // What a row's exponentials start from in this tile; `factor` is what the output so far must be multiplied with.
    __device__ __forceinline__ void follow(const float (&score)[N / 2], int r, float to_log2) {
        added[r] = 0.0f;
#if ML_BOUNDED
        base[r] = maximum[r];
        factor[r] = 1.0f;
#else
        float top = largest(score, r);
#if ML_LAG && !ML_MAX_SCORES
        float raised = (top - maximum[r]) * to_log2 > 8.0f ? top : maximum[r];
#else
        float raised = larger(maximum[r], top);
#endif
        // a row that has kept nothing yet has maximum -inf and counts from 0
        bool nothing = (ML_MASK != 0 || ML_SCORE == 2) && raised == negative_infinity();
        base[r] = nothing ? 0.0f : raised * to_log2;
        factor[r] = nothing ? 1.0f : exp2_fast(fmaf(maximum[r], to_log2, -base[r]));
        if (ML_LAG && raised == maximum[r]) factor[r] = 1.0f;
        maximum[r] = raised;
#endif
    }
    // A row's scores of the 8-column groups FROM..TO become exponentials.
    template <int FROM, int TO> __device__ __forceinline__ void weigh(float (&score)[N / 2], int r, float to_log2) {
#pragma unroll
        for (int j = FROM; j < TO; ++j) {
            float &left = score[4 * j + 2 * r], &right = score[4 * j + 2 * r + 1];
            left = exp2_fast(fmaf(left, to_log2, -base[r]));
            right = exp2_fast(fmaf(right, to_log2, -base[r]));
            added[r] += left + right;
        }
    }
    // The first groups of both rows, up to TO.
    template <int TO> __device__ __forceinline__ void step(float (&score)[N / 2], float to_log2, float lowest) {
#if ML_BOUNDED
        if (__any_sync(0xffffffff, maximum[0] == unset() || maximum[1] == unset())) begin(score, to_log2, lowest);
#endif
#pragma unroll
        for (int r = 0; r < 2; ++r) follow(score, r, to_log2);
#pragma unroll
        for (int r = 0; r < 2; ++r) weigh<0, TO>(score, r, to_log2);
    }
    // The groups after those, and the sums.
    template <int FROM> __device__ __forceinline__ void close(float (&score)[N / 2], float to_log2) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            weigh<FROM, N / 8>(score, r, to_log2);
            sum[r] = fmaf(sum[r], factor[r], added[r]);
        }
    }
    __device__ __forceinline__ void rescale(float (&out)[VW / 2]) const {
#if ML_LAG
        if (!__any_sync(0xffffffff, factor[0] != 1.0f || factor[1] != 1.0f)) return;
#endif
#if !ML_BOUNDED
#pragma unroll
        for (int i = 0; i < VW / 2; ++i) out[i] *= factor[(i >> 1) & 1];
#endif
    }
};

__device__ __forceinline__ void to_operand(u32 (&weight)[N / 4], const float (&score)[N / 2]) {
#pragma unroll
    for (int i = 0; i < N / 4; ++i) weight[i] = pack16(score[2 * i], score[2 * i + 1]);
}

// Floats that the threads of a consumer leave of a piece: their output, maxima and sums, each thread 4 at a time.
constexpr int PART = 128 * (VW / 2 + 4);

// Leaves a piece's sums to the last of its tile to get here, which takes those of all pieces, in their order, and goes on
// as if the tile were whole. False for the others.
__device__ __forceinline__ bool join(const Hopper &x, const Stage &s, u32 draw, RowState &rows, float (&out)[VW / 2],
                                     float to_log2, int group, int thread) {
    const Piece &piece = piece_of(x, draw);
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
    float scale = ML_BOUNDED ? 1.0f : to_log2, top[2] = {RowState::unset(), RowState::unset()};
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
        float weight[2] = {top[0] == state.x ? 1.0f : exp2_fast((state.x - top[0]) * scale),
                           top[1] == state.y ? 1.0f : exp2_fast((state.y - top[1]) * scale)};
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

// Normalises the rows, writes lse, and sends the output through the warpgroup's own rows of the Q buffer, which it has
// read for the last time.
__device__ __forceinline__ void store(const Params &p, const Place &place, const Stage &s, int q_stage, const TensorMap *o_map,
                                      RowState &rows, float (&out)[VW / 2], float to_log2, int group, int thread) {
    int warp = thread / 32, lane = thread % 32, row = 64 * group + 16 * warp + lane / 4;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        float sum = rows.sum[r];
        sum += __shfl_xor_sync(0xffffffff, sum, 1);
        sum += __shfl_xor_sync(0xffffffff, sum, 2);
        int q_idx = place.tile * M + row + 8 * r;
        float lse = sum == 0.0f ? negative_infinity() : rows.maximum[r] * (ML_BOUNDED ? 1.0f : to_log2) * 0.6931471805599453f + logf(sum);
        if (lane % 4 == 0 && q_idx < p.q_len) p.lse[(i64(place.b) * p.heads + place.h) * p.q_len + q_idx] = lse;
#if ML_MAX_SCORES
        // where the scale is folded into the exponent, `maximum` lacks it
        float largest = ML_SCORE == 0 ? rows.maximum[r] * p.scale : rows.maximum[r];
        if (lane % 4 == 0 && q_idx < p.q_len) p.max_scores[(i64(place.b) * p.heads + place.h) * p.q_len + q_idx] = largest;
#endif
        float inverse = sum == 0.0f ? 0.0f : 1.0f / sum;
#pragma unroll
        for (int j = 0; j < VW / 8; ++j) out[4 * j + 2 * r] *= inverse, out[4 * j + 2 * r + 1] *= inverse;
    }
    u32 base = s.q + q_stage * Q_BYTES;
    int line = 64 * group + 16 * warp + ((lane / 8) & 1) * 8 + lane % 8;
#pragma unroll
    for (int j = 0; j < VW / 8; j += 2) {
        int chunk = j + lane / 16;
        u32 to = base + (chunk / 8) * M * 128 + line * 128 + (((chunk % 8) ^ (line % 8)) * 16);
        stmatrix_x4(to, pack16(out[4 * j], out[4 * j + 1]), pack16(out[4 * j + 2], out[4 * j + 3]),
                    pack16(out[4 * j + 4], out[4 * j + 5]), pack16(out[4 * j + 6], out[4 * j + 7]));
    }
    fence_async_proxy();
    bar_sync(8 + group, 128);
    if (thread != 0) return;
    int first = place.tile * M + 64 * group;
    if (first < p.q_len) {
#pragma unroll
        for (int d = 0; d < VW / 64; ++d)
            tma_store(o_map, base + d * M * 128 + 64 * group * 128, d * 64, first, place.h, place.b);
        tma_store_commit();
        tma_store_wait_read();
    }
    mbarrier_arrive(s.q_empty(q_stage));
}

__device__ __forceinline__ void consume(const Params &p, const Hopper &x, const Mods &mods, const Stage &s,
                                        const TensorMap *o_map, int group, int thread) {
    const float to_log2 = ML_SCORE == 0 ? p.scale * 1.4426950408889634f : 1.4426950408889634f;
    Turn<Q_STAGES> q;
    Ring<STAGES> k, v;
    int lane4 = thread % 4, row = 64 * group + 16 * (thread / 32) + (thread % 32) / 4;
    int turn = 1 + group, next_turn = 1 + (group + 1) % CONSUMERS;
    if (CONSUMERS > 1 && group == CONSUMERS - 1) bar_arrive(1, 256);  // the first warpgroup begins
    for (;;) {
        mbarrier_wait(s.q_full(q.at()), q.phase());
        if (s.draw(q.at()) < 0) break;
        Place place = s.place(q.at());
        Cursor cursor(p, place.row);
        u32 partial = ML_MASK == 4 ? __ldg(x.bitmap_start + place.row) : 0;
        u32 q_rows = s.q + q.at() * Q_BYTES + 64 * group * 128;
        Ahead ahead(mods, place, place.tile * M + row);
        float score[N / 2], out[VW / 2];
        u32 weight[N / 4];
        RowState rows;
#pragma unroll
        for (int i = 0; i < VW / 2; ++i) out[i] = 0.0f;
        u32 at = cursor.next(p);
        if (at != Cursor::NONE) {
            mbarrier_wait(s.k_full(k.at), k.phase);
            if (CONSUMERS > 1) bar_sync(turn, 256);
            pin(score);
            wgmma_fence();
            issue_qk(score, q_rows, s.k + k.at * K_BYTES);
            wgmma_commit();
            if (CONSUMERS > 1) bar_arrive(next_turn, 256);
            wgmma_wait<0>();
            pin(score);
            if (thread == 0) mbarrier_arrive(s.k_empty(k.at));
            k.next();
            apply_mods(p, x, mods, place, s, q.at(), ahead, score, at, partial, row, lane4);
            rows.step<N / 8>(score, to_log2, p.lowest);
            rows.close<N / 8>(score, to_log2);
            to_operand(weight, score);
            while ((at = cursor.next(p)) != Cursor::NONE) {
                mbarrier_wait(s.k_full(k.at), k.phase);
                if (CONSUMERS > 1) bar_sync(turn, 256);
                pin(score);
                pin(out);
                wgmma_fence();
                issue_qk(score, q_rows, s.k + k.at * K_BYTES);
                wgmma_commit();
                mbarrier_wait(s.v_full(v.at), v.phase);
                issue_pv(out, weight, s.v + v.at * V_BYTES);
                wgmma_commit();
                if (CONSUMERS > 1) bar_arrive(next_turn, 256);
                wgmma_wait<1>();
                pin(score);
                if (thread == 0) mbarrier_arrive(s.k_empty(k.at));
                k.next();
                apply_mods(p, x, mods, place, s, q.at(), ahead, score, at, partial, row, lane4);
                rows.step<EARLY>(score, to_log2, p.lowest);
                if (EARLY < N / 8) {
                    pin(score);
                    stay_before(p.q_len);
                }
                wgmma_wait<0>();
                pin(out);
                if (thread == 0) mbarrier_arrive(s.v_empty(v.at));
                v.next();
                rows.rescale(out);
                rows.close<EARLY>(score, to_log2);
                to_operand(weight, score);
            }
            mbarrier_wait(s.v_full(v.at), v.phase);
            pin(out);
            wgmma_fence();
            issue_pv(out, weight, s.v + v.at * V_BYTES);
            wgmma_commit();
            wgmma_wait<0>();
            pin(out);
            if (thread == 0) mbarrier_arrive(s.v_empty(v.at));
            v.next();
        }
        u32 draw = u32(s.draw(q.at()));
        if (!is_piece(x, draw) || join(x, s, draw, rows, out, to_log2, group, thread))
            store(p, s.place(q.at()), s, q.at(), o_map, rows, out, to_log2, group, thread);
        else if (thread == 0)
            mbarrier_arrive(s.q_empty(q.at()));
        q.next();
    }
}

extern "C" __global__ void __launch_bounds__(128 * (CONSUMERS + 1), 1)
    flex_hopper(const __grid_constant__ TensorMap q_map, const __grid_constant__ TensorMap k_map,
                const __grid_constant__ TensorMap v_map, const __grid_constant__ TensorMap o_map,
                const __grid_constant__ Params p, const __grid_constant__ Hopper x, ML_MODS_PARAMETER) {
    extern __shared__ u8 raw[];
    Stage stage(raw);
    if (threadIdx.x == 0) stage.initialise();
    __syncthreads();
    // the compiler is to see that it is the same for a warp: what follows from it then needs no register of each thread
    int group = __shfl_sync(0xffffffff, int(threadIdx.x / 128), 0) - 1;
    if (group < 0) {
        registers_lower<CONSUMERS == 3 ? 32 : 24>();
        if (threadIdx.x == 0) produce(p, x, stage, &q_map, &k_map, &v_map);
    } else {
        registers_raise<CONSUMERS == 3 ? 160 : 240>();
        consume(p, x, ML_MODS, stage, &o_map, group, threadIdx.x % 128);
    }
}
