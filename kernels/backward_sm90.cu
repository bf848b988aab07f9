// Block-sparse attention backward for Hopper, head dims up to 128. A producer thread copies; two consumer warpgroups own 64 keys each
// of a tile of 128, whose dk and dv stay in their registers while they walk the query tiles of the transposed lists. Scores and dP are
// computed transposed, so that P is an operand of dv as it stands; dS goes to shared memory, where dk takes it transposed and dq, which
// wants both warpgroups', as it is. dq is added to f32 sums in global memory, in the order of fragments (delta.cu makes 16 bits of them).
// Products are asked for so that the tensor cores always have one in line:
//   wait S ─ P ─ ask dV += P dO, next S ─ wait dP ─ dS ─► shared ─ meet ─ ask dQ = dS K, dK += dSᵀ Q ─ wait dQ ─ add it ─ ask next dP
// Contract: backward.cuh, backward_pipeline_sm90.cuh, words.cuh (ML_DQ_ORDER 0), cells.cuh. Widths of 64 take tiles of 128 queries, of 128 those
// of 64; with ML_CAPTURES narrow heads take widths of 128, because P in f32 wants the registers. Launch: min(multiprocessors, draws)
// blocks of 384 threads.

static_assert(N == 128, "two warpgroups of 64 keys");
// With tiles of 128 queries scores and dP are not both in registers: dP is asked for after P.
constexpr bool LATE = M == 128;
// They take the scores' registers then, if these hold nothing.
constexpr bool SHARED = LATE && HOLD == Hold::NOTHING;
// Whether the next scores are asked for before this tile's dS.
constexpr bool EARLY = HOLD == Hold::NOTHING && !LATE;
constexpr int MEET = 1, FREE = 2;  // named barriers
// Registers of a producer's and a consumer's thread: all 384 have 64,512 between them.
constexpr int PRODUCERS = SHARED ? 40 : 24, CONSUMERS = SHARED ? 232 : 240;

__device__ __forceinline__ void consume(const Params &p, const Mods &mods, const Stage &s, const Out &out, int group, int thread) {
    const float to_log2 = ML_SCORE == 0 ? p.scale * 1.4426950408889634f : 1.4426950408889634f;
    const int warp = thread / 32, lane = thread % 32;
    u32 tiles = 0;
#pragma unroll 1
    for (u32 done = 0;; ++done) {
        const int k = at<K_STAGES>(done), v = at<V_STAGES>(done);
        mbarrier_wait(s.k_full(k), phase<K_STAGES>(done));
        u32 left = s.ticket(k, ticket::COUNT);
        if (left == ticket::STOP) break;
        const int b = s.ticket(k, ticket::B), tile = s.ticket(k, ticket::TILE);
        const u32 keys = s.k + k * K_BYTES, values = s.v + v * V_BYTES;
        if (left == 0) {
            store_zeros(p, b, s.ticket(k, ticket::KV_HEAD), tile, group * 128 + thread, 256);
            mbarrier_wait(s.v_full(v), phase<V_STAGES>(done));
            bar_sync(OWN + group, 128);
            if (thread == 0) mbarrier_arrive(s.v_empty(v)), mbarrier_arrive(s.k_empty(k));
            continue;
        }
        Cells cells;
        cells.b = b;
        cells.kv_idx = tile * N + 64 * group + 16 * warp + lane / 4;
        CaptureSums sums;
        float dk[QK / 2], dv[VW / 2], score[M / 2], own[M / 2];
        float (&d_weight)[M / 2] = SHARED ? score : own;
#pragma unroll
        for (int i = 0; i < QK / 2; ++i) dk[i] = 0.0f;
#pragma unroll
        for (int i = 0; i < VW / 2; ++i) dv[i] = 0.0f;
        auto ask_scores = [&](u32 next) {
            mbarrier_wait(s.q_full(at<Q_STAGES>(next)), phase<Q_STAGES>(next));
            issue_across<QK>(score, keys + 64 * group * 128, s.q + at<Q_STAGES>(next) * Q_BYTES);
        };
        auto ask_d_weights = [&](u32 next) {
            mbarrier_wait(s.d_o_full(at<DO_STAGES>(next)), phase<DO_STAGES>(next));
            issue_across<VW>(d_weight, values + 64 * group * 128, s.d_o + at<DO_STAGES>(next) * DO_BYTES);
        };
        pin(dk);  // the zeros stand here, before any product is on its way
        pin(dv);
        ask_scores(tiles);
        mbarrier_wait(s.v_full(v), phase<V_STAGES>(done));
        if (LATE) wgmma_commit();
        else ask_d_weights(tiles);
        int before = -1;  // the head of the tile before, where captured tensors want to know
        bool begun = false;
#pragma unroll 1
        for (;; ++tiles, --left) {
            const int q = at<Q_STAGES>(tiles), d = at<DO_STAGES>(tiles);
            const u32 now = s.step(q, step::TILE), scores = s.ds + at<DS_STAGES>(tiles) * DS_BYTES;
            const int head = s.step(q, step::HEAD), q_tile = int(now & ~Cursor::FULL);
            const int line = query_tile(p, b, head, q_tile);
            if (ML_CAPTURES && before >= 0 && head != before) sums.end_head(mods, b, before, cells.kv_idx, p.kv_len), sums = CaptureSums();
            if (ML_CAPTURES) before = head;
            cells.head = head;
            cells.q_idx = q_tile * M + 2 * (lane % 4);
            cells.rows = s.rows + q * ROWS_BYTES + lane % 4 * 16;
            u32 weight[M / 4];
            wgmma_wait<1>();  // S; in line are the dK of the tile before, and dP
            pin(score);
            weigh_tile<HOLD>(p, mods, cells, now & Cursor::FULL, BitsPlace{s.bits + q * BITS_BYTES + (group * 128 + thread) * (4 * BIT_WORDS)}, score, weight,
                             to_log2);
            if (LATE) ask_d_weights(tiles);
            issue_along<VW>(dv, weight, s.d_o + d * DO_BYTES);
            if (EARLY) {
                if (left > 1) ask_scores(tiles + 1);
                else wgmma_commit();
            }
            wgmma_wait<EARLY ? 2 : 1>();  // dP
            pin(d_weight);
            if (begun) give_back(s.q_empty(at<Q_STAGES>(tiles - 1)));
            begun = true;
            if (DS_STAGES == 1) bar_sync(FREE, 256);
            derive<HOLD>(p, mods, cells, d_weight, score, weight, sums,
                         QueryRows(scores + group * M * 128, warp, lane));
            fence_async_proxy();
            if (!EARLY) {
                if (left > 1) ask_scores(tiles + 1);
                else wgmma_commit();
            }
            bar_sync(MEET, 256);
            wgmma_wait<1>();  // dV
            give_back(s.d_o_empty(d));
            float dq[PART_WIDTH / 2];
            issue_queries(dq, scores, keys, group);
            issue_keys<QK>(dk, scores + group * M * 128, s.q + q * Q_BYTES);
            const u32 turn_before = ML_DETERMINISTIC ? s.step(q, step::TURN) : 0;
            wgmma_wait<1>();  // dQ
            pin(dq);
            u32 *turn = p.turns + 2 * i64(line) + group;
            if (ML_DETERMINISTIC) await_turn(turn, turn_before, group, thread);
            add_queries(s, out.sums, dq, p.dq_sum, i64(line) * (2 * PART) + group * PART, group, thread);
            if (ML_DETERMINISTIC) pass_turn(turn, group, thread);
            if (left == 1) break;
            if (!LATE) ask_d_weights(tiles + 1);
        }
        wgmma_wait<0>();
        pin(dk);
        pin(dv);
        give_back(s.q_empty(at<Q_STAGES>(tiles++)));
        if (ML_CAPTURES) sums.end_head(mods, b, before, cells.kv_idx, p.kv_len);
        leave_keys<VW>(dv, 1.0f, values, 64 * group, thread);
        bar_sync(FREE, 256);  // the other warpgroup has read these keys for the last time
        leave_keys<QK>(dk, p.scale, keys, 64 * group, thread);
        fence_async_proxy();
        bar_sync(OWN + group, 128);
        if (thread == 0) {
            int token = tile * N + 64 * group, head = int((s.tickets + k * ticket::WORDS)[ticket::KV_HEAD]);
            if (token < p.kv_len) {
                store_keys<VW>(out.dv, values, 64 * group, token, head, b);
                store_keys<QK>(out.dk, keys, 64 * group, token, head, b);
            }
            tma_store_commit();
            tma_store_wait_read();
            mbarrier_arrive(s.v_empty(v));
            mbarrier_arrive(s.k_empty(k));
        }
    }
    if (thread == 0) tma_wait_all();
}

extern "C" __global__ void __launch_bounds__(128 * (GROUPS + 1), 1)
    backward_hopper(const __grid_constant__ TensorMap q_map, const __grid_constant__ TensorMap k_map,
                    const __grid_constant__ TensorMap v_map, const __grid_constant__ TensorMap d_o_map,
                    const __grid_constant__ TensorMap dk_map, const __grid_constant__ TensorMap dv_map,
                    const __grid_constant__ TensorMap rows_map, const __grid_constant__ TensorMap bits_map,
                    const __grid_constant__ TensorMap sum_map, const __grid_constant__ Params p, ML_MODS_PARAMETER) {
    extern __shared__ __align__(1024) u8 raw[];
    Stage stage(raw);
    if (threadIdx.x == 0) stage.initialise();
    __syncthreads();
    // the compiler is to see that it is the same for a warp
    int group = __shfl_sync(0xffffffff, int(threadIdx.x / 128), 0) - 1;
    if (group < 0) {
        registers_lower<PRODUCERS>();
        if (threadIdx.x == 0) produce(p, stage, {&q_map, &k_map, &v_map, &d_o_map, &rows_map, &bits_map});
    } else {
        registers_raise<CONSUMERS>();
        stage.keep();
        consume(p, ML_MODS, stage, {&dk_map, &dv_map, &sum_map}, group, threadIdx.x % 128);
    }
}
