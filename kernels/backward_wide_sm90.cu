// Block-sparse attention backward for Hopper, head dims up to 256: tiles of 64 keys by 64 queries, whose dk and dv take 128 registers of a
// thread each. So each consumer warpgroup keeps one of them, and both work on the same keys:
//   weights:    S, P ─► shared ─► dV += P dO, and the left half of dQ of the tile before (of 192 columns 128)
//   gradients:  dP, P ◄─ shared, dS ─► shared ─► dK += dSᵀ Q, and the other columns of dQ
// P goes over in two buffers, dS in two. The weights' warpgroup is at most one tile ahead: what it waits for, dS of the tile before, says that P
// of that tile has been read, and P of this tile says that dS of the one before the last has been. Contract: backward.cuh,
// backward_pipeline_sm90.cuh, words.cuh (ML_DQ_ORDER 0), cells.cuh; captured tensors get gradients only with mods whose derivative is 1.
// Launch: min(multiprocessors, units) blocks of 384 threads.

static_assert(M == 64 && N == 64 && DS_STAGES == 2 && ML_DQ_BULK == 0, "tiles of 64 by 64");
static_assert(ML_GRAD < 2 && !(ML_GRAD && ML_CAPTURES), "the scores are not where dS is made");
constexpr int P_BYTES = N * M * 2;
// named barriers, by turns: P is there, dS is there; and keys have been read for the last time
constexpr int WEIGHTS = 1, GRADIENTS = 3, END = 5, ASKED = 6;

// An item's ticket, and where its keys and values lie.
struct Keys {
    u32 left;
    int b, tile, kv_head;
    u32 keys, values;
    __device__ __forceinline__ Keys(const Stage &s, u32 done) {
        const int k = at<K_STAGES>(done);
        mbarrier_wait(s.k_full(k), phase<K_STAGES>(done));
        left = s.ticket(k, ticket::COUNT);
        b = s.ticket(k, ticket::B), tile = s.ticket(k, ticket::TILE), kv_head = s.ticket(k, ticket::KV_HEAD);
        keys = s.k + k * K_BYTES, values = s.v + at<V_STAGES>(done) * V_BYTES;
    }
};

// This warpgroup has read an item's keys and values for the last time.
__device__ __forceinline__ void give_back_keys(const Stage &s, u32 done, int group, int thread) {
    bar_sync(OWN + group, 128);
    if (thread == 0) mbarrier_arrive(s.v_empty(at<V_STAGES>(done))), mbarrier_arrive(s.k_empty(at<K_STAGES>(done)));
}

// A warp beside the consumers keeps the turns of a warpgroup's parts of dq: the warpgroup asks for a tile's well before its part is there, and
// does not wait until its additions have reached memory.
__device__ __forceinline__ void ask_turn(u32 line, u32 before, int group, int thread) {
    if (!ML_DETERMINISTIC) return;
    if (thread == 0) {
        store_word(Stage::handoff + group * Handoff::BYTES + Handoff::LINE, line);
        store_word(Stage::handoff + group * Handoff::BYTES + Handoff::TURN, before);
    }
    bar_arrive(ASKED + group, 160);
}
__device__ __forceinline__ void keep_turns(const Params &p, int group) {
#pragma unroll 1
    for (;;) {
        bar_sync(ASKED + group, 160);
        const u32 line = load_word(Stage::handoff + group * Handoff::BYTES + Handoff::LINE);
        if (line == Handoff::STOP) break;
        u32 *turn = p.turns + 2 * i64(line) + group;
        if (warp_leader()) wait_for_word(turn, load_word(Stage::handoff + group * Handoff::BYTES + Handoff::TURN));
        __syncwarp();
        bar_arrive(TAKEN + group, 160);
        bar_sync(LEFT + group, 160);
        if (warp_leader()) add_release(turn, 1);
        __syncwarp();
    }
}

// Adds a part of dq, when it is its turn.
template <int COUNT>
__device__ __forceinline__ void finish_queries(const Params &p, const float (&dq)[COUNT], int line, int group, int thread) {
    if (ML_DETERMINISTIC) bar_sync(TAKEN + group, 160);
    add_queries(dq, p.dq_sum, i64(line) * (M * QK) + group * PART, thread);
    if (ML_DETERMINISTIC) bar_arrive(LEFT + group, 160);
}

__device__ __forceinline__ void make_weights(const Params &p, const Mods &mods, const Stage &s, const Out &out, u32 exchange, int thread) {
    const float to_log2 = ML_SCORE == 0 ? p.scale * 1.4426950408889634f : 1.4426950408889634f;
    const int warp = thread / 32, lane = thread % 32;
    u32 tiles = 0;
#pragma unroll 1
    for (u32 done = 0;; ++done) {
        const Keys item(s, done);
        u32 left = item.left;
        if (left == ticket::STOP) break;
        if (left == 0) {
            store_zeros(p, item.b, item.kv_head, item.tile, thread, 128);
            mbarrier_wait(s.v_full(at<V_STAGES>(done)), phase<V_STAGES>(done));
            give_back_keys(s, done, 0, thread);
            continue;
        }
        Cells cells;
        cells.b = item.b;
        cells.kv_idx = item.tile * N + 16 * warp + lane / 4;
        float dv[VW / 2], score[M / 2];
#pragma unroll
        for (int i = 0; i < VW / 2; ++i) dv[i] = 0.0f;
        pin(dv);  // the zeros stand here, before any product is on its way
        int line = 0;
        bool begun = false;
#pragma unroll 1
        for (;; ++tiles, --left) {
            const int q = at<Q_STAGES>(tiles), d = at<DO_STAGES>(tiles);
            mbarrier_wait(s.q_full(q), phase<Q_STAGES>(tiles));
            issue_across<QK>(score, item.keys, s.q + q * Q_BYTES);
            const u32 now = s.step(q, step::TILE);
            const int head = s.step(q, step::HEAD), q_tile = int(now & ~Cursor::FULL);
            cells.head = head;
            cells.q_idx = q_tile * M + 2 * (lane % 4);
            cells.rows = s.rows + q * ROWS_BYTES + lane % 4 * 16;
            const LseAhead lse(cells.rows);
            wgmma_wait<0>();
            pin(score);
            u32 weight[M / 4];
            weigh_tile<HOLD>(p, mods, cells, now & Cursor::FULL, BitsPlace{s.bits + q * BITS_BYTES + thread * (4 * BIT_WORDS)}, lse, score, weight,
                             to_log2);
            leave_weights<128>(weight, score, exchange + tiles % 2 * P_BYTES + thread * 16);
            bar_arrive(WEIGHTS + int(tiles % 2), 256);
            mbarrier_wait(s.d_o_full(d), phase<DO_STAGES>(tiles));
            issue_along<VW>(dv, weight, s.d_o + d * DO_BYTES);
            const int line_now = query_tile(p, item.b, head, q_tile);
            const u32 turn_now = ML_DETERMINISTIC ? s.step(q, step::TURN) : 0;
            give_back(s.q_empty(q));
            if (begun) {
                float dq[PART_WIDTH / 2];
                bar_sync(GRADIENTS + int((tiles - 1) % 2), 256);
                issue_queries(dq, s.ds + (tiles - 1) % 2 * DS_BYTES, item.keys, 0);
                wgmma_wait<0>();
                pin(dq);
                finish_queries(p, dq, line, 0, thread);
            } else {
                wgmma_wait<0>();
            }
            give_back(s.d_o_empty(d));
            ask_turn(line_now, turn_now, 0, thread);
            line = line_now, begun = true;
            if (left == 1) break;
        }
        pin(dv);
        const bool leaves = join_parts(p, s, at<K_STAGES>(done), 0, thread, dv);
        float dq[PART_WIDTH / 2];
        bar_sync(GRADIENTS + int(tiles % 2), 256);
        issue_queries(dq, s.ds + tiles % 2 * DS_BYTES, item.keys, 0);
        // the other warpgroup has read these values for the last time
        if (leaves) leave_keys<VW>(dv, 1.0f, item.values, 0, thread);
        wgmma_wait<0>();
        pin(dq);
        bar_arrive(END, 256);
        finish_queries(p, dq, line, 0, thread);
        ++tiles;
        fence_async_proxy();
        bar_sync(OWN, 128);
        if (thread == 0 && leaves) {
            store_keys<VW>(out.dv, item.values, 0, item.tile * N, item.kv_head, item.b);
            tma_store_commit();
            tma_store_wait_read();
        }
        give_back_keys(s, done, 0, thread);
    }
    ask_turn(Handoff::STOP, 0, 0, thread);
    if (thread == 0) tma_wait_all();
}

__device__ __forceinline__ void make_gradients(const Params &p, const Mods &mods, const Stage &s, const Out &out, u32 exchange, int thread) {
    const int warp = thread / 32, lane = thread % 32;
    u32 tiles = 0;
#pragma unroll 1
    for (u32 done = 0;; ++done) {
        const Keys item(s, done);
        u32 left = item.left;
        if (left == ticket::STOP) break;
        mbarrier_wait(s.v_full(at<V_STAGES>(done)), phase<V_STAGES>(done));
        if (left == 0) {
            give_back_keys(s, done, 1, thread);
            continue;
        }
        Cells cells;
        cells.b = item.b;
        cells.kv_idx = item.tile * N + 16 * warp + lane / 4;
        CaptureSums sums;
        float dk[QK / 2], d_weight[M / 2], none[M / 2];
#pragma unroll
        for (int i = 0; i < QK / 2; ++i) dk[i] = 0.0f;
        pin(dk);
        int before = -1;  // the head of the tile before, where captured tensors want to know
        auto ask_d_weights = [&](u32 next) {
            mbarrier_wait(s.d_o_full(at<DO_STAGES>(next)), phase<DO_STAGES>(next));
            issue_across<VW>(d_weight, item.values, s.d_o + at<DO_STAGES>(next) * DO_BYTES);
        };
        ask_d_weights(tiles);
#pragma unroll 1
        for (;; ++tiles, --left) {
            const int q = at<Q_STAGES>(tiles), d = at<DO_STAGES>(tiles);
            mbarrier_wait(s.q_full(q), phase<Q_STAGES>(tiles));
            const u32 now = s.step(q, step::TILE), scores = s.ds + tiles % 2 * DS_BYTES;
            const int head = s.step(q, step::HEAD), q_tile = int(now & ~Cursor::FULL), line = query_tile(p, item.b, head, q_tile);
            if (ML_DETERMINISTIC) ask_turn(line, s.step(q, step::TURN), 1, thread);
            if (ML_CAPTURES && before >= 0 && head != before) sums.end_head(mods, item.b, before, cells.kv_idx, p.kv_len), sums = CaptureSums();
            if (ML_CAPTURES) before = head;
            cells.head = head;
            cells.q_idx = q_tile * M + 2 * (lane % 4);
            cells.rows = s.rows + q * ROWS_BYTES + lane % 4 * 16;
            wgmma_wait<0>();  // dP, and the dK of the tile before
            pin(d_weight);
            give_back(s.d_o_empty(d));
            if (left != item.left) give_back(s.q_empty(at<Q_STAGES>(tiles - 1)));
            u32 weight[M / 4];
            bar_sync(WEIGHTS + int(tiles % 2), 256);
            take_weights<128>(weight, exchange + tiles % 2 * P_BYTES + thread * 16);
            derive<Hold::NOTHING>(p, mods, cells, Deltas<1>(cells.rows), d_weight, none, weight, sums,
                         QueryRows(scores, warp, lane));
            fence_async_proxy();
            bar_arrive(GRADIENTS + int(tiles % 2), 256);
            bar_sync(OWN + 1, 128);
            float dq[(QK - PART_WIDTH) / 2];
            issue_queries(dq, scores, item.keys, 1);
            issue_keys<QK>(dk, scores, s.q + q * Q_BYTES);
            wgmma_wait<1>();  // dQ
            pin(dq);
            finish_queries(p, dq, line, 1, thread);
            if (left == 1) break;
            ask_d_weights(tiles + 1);
        }
        wgmma_wait<0>();
        pin(dk);
        give_back(s.q_empty(at<Q_STAGES>(tiles++)));
        if (ML_CAPTURES) sums.end_head(mods, item.b, before, cells.kv_idx, p.kv_len);
        const bool leaves = join_parts(p, s, at<K_STAGES>(done), 1, thread, dk);
        bar_sync(END, 256);  // the other warpgroup has read these keys for the last time
        if (leaves) leave_keys<QK>(dk, p.scale, item.keys, 0, thread);
        fence_async_proxy();
        bar_sync(OWN + 1, 128);
        if (thread == 0 && leaves) {
            store_keys<QK>(out.dk, item.keys, 0, item.tile * N, item.kv_head, item.b);
            tma_store_commit();
            tma_store_wait_read();
        }
        give_back_keys(s, done, 1, thread);
    }
    ask_turn(Handoff::STOP, 0, 1, thread);
    if (thread == 0) tma_wait_all();
}

extern "C" __global__ void __launch_bounds__(128 * (GROUPS + 1), 1)
    backward_hopper_wide(const __grid_constant__ TensorMap q_map, const __grid_constant__ TensorMap k_map,
                         const __grid_constant__ TensorMap v_map, const __grid_constant__ TensorMap d_o_map,
                         const __grid_constant__ TensorMap dk_map, const __grid_constant__ TensorMap dv_map,
                         const __grid_constant__ TensorMap rows_map, const __grid_constant__ TensorMap bits_map,
                         const __grid_constant__ TensorMap sum_map, const __grid_constant__ Params p, ML_MODS_PARAMETER) {
    extern __shared__ __align__(1024) u8 raw[];
    Stage stage(raw);
    if (threadIdx.x == 0) stage.initialise();
    __syncthreads();
    // the compiler is to see that it is the same for a warp
    const int warp = __shfl_sync(0xffffffff, int(threadIdx.x / 32), 0), group = warp / 4 - 1;
    if (group < 0) {
        registers_lower<24>();
        if (threadIdx.x == 0) produce(p, stage, {&q_map, &k_map, &v_map, &d_o_map, &rows_map, &bits_map});
        else if (ML_DETERMINISTIC && (warp == 1 || warp == 2)) keep_turns(p, warp - 1);
    } else {
        registers_raise<240>();
        const Out out = {&dk_map, &dv_map, &sum_map};
        if (group == 0) make_weights(p, ML_MODS, stage, out, stage.sums, threadIdx.x % 128);
        else make_gradients(p, ML_MODS, stage, out, stage.sums, threadIdx.x % 128);
    }
}
