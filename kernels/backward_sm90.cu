// Block-sparse attention backward for Hopper, head dims up to 128. One thread copies, two warps send dq away, and two consumer warpgroups own 64
// keys each of a tile of 128, whose dk and dv stay in their registers while they walk the query tiles of the transposed lists. Scores and
// dP are computed transposed, so that P is an operand of dv, and dS one of dk, as they stand; dS goes to shared memory besides, for
// dq, which wants both warpgroups'. dq is added to f32 sums in global memory, in the order of fragments (delta.cu makes 16
// bits of them). Products are asked for so that the tensor cores have one in line while a warpgroup computes:
//   ask S, dP ─ wait S ─ P ─ ask dV += P dO ─ wait dP ─ dS ─► shared ─ meet ─ ask dQ = dS K, dK += dSᵀ Q ─ wait dQ ─ leave it ─ wait dK
// dP runs under P, dV under dS, dK under dQ's way out.
// Contract: backward.cuh, backward_pipeline_sm90.cuh, words.cuh (ML_DQ_ORDER 0), cells.cuh; docs/kernels/backward.md. Widths of 64 take tiles of 128
// queries, of 128 those of 64. With ML_CAPTURES widths of 64 take tiles of 64 too, because P in f32 wants the registers, and a
// warpgroup multiplies dq of its own keys (OWN_KEYS): it meets nobody.
// Buffers: K 1, V 1, Q 2 or, with tiles of 128 queries, 3, dO 2, dS 2. Launch: min(multiprocessors, units) blocks of 384 threads.

static_assert(N == 128 && ML_DQ_BULK, "two warpgroups of 64 keys, whose dq leaves through shared memory");
static_assert(Q_STAGES >= 2 && DO_STAGES >= 2, "the next tile is asked for while this one is read");
// Where the scores' registers are not held until dS, those of dS are left until dk has read them.
constexpr bool KEYS_FROM_REGISTERS = HOLD == Hold::NOTHING;
// Where scores as they came are held, or there are twice as many registers of them, dP is asked for when P is made.
constexpr bool LATE = HOLD == Hold::SCORES || (HOLD != Hold::NOTHING && M == 128);
// Where nothing is held, the scores' registers take delta of all queries of a small tile.
constexpr int DELTA_SLOTS = HOLD != Hold::NOTHING ? 1 : M == 64 ? M / 16 : ML_SCORE == 0 ? 2 : 1;
// Where tiles of 128 queries leave registers for it, which score mods want (`sandwich` spilled 124 bytes), dK is asked for before the
// meeting and the next tile's S before dQ leaves:
//   dS ─► shared, ask dK ─ meet ─ ask dQ ─ wait dV, dK ─ wait dQ ─ ask the next S ─ leave dQ
constexpr bool AHEAD = KEYS_FROM_REGISTERS && M == 128 && ML_SCORE == 0;
static_assert(!AHEAD || DS_STAGES == 2, "dS of the next tile has a buffer of its own");
constexpr int MEET = 1, FREE = 2;  // named barriers
// Registers of a producer's and a consumer's thread: all 384 have 64,512 between them. With 24 and 240 the producers spill.
constexpr int PRODUCERS = 40, CONSUMERS = 232;

// A query tile on its way through a consumer: its buffers, and what its step's words say.
struct Walk {
    int q, d_o, head;
    u32 tile;
    __device__ __forceinline__ void read(const Stage &s) { tile = s.step(q, step::TILE), head = int(s.step(q, step::HEAD)); }
};

// dk and dv leave by the item's K and V buffers, which are then given back.
template <int GROUP>
__device__ __forceinline__ void finish_item(const Params &p, const Stage &s, const Out &out, float (&dk)[QK / 2], float (&dv)[VW / 2], int b,
                                            int tile, int k, int v, int thread) {
    const bool leaves = join_parts(p, s, k, GROUP, thread, dk, dv);
    const u32 keys = s.k + k * K_BYTES, values = s.v + v * V_BYTES;
    if (leaves) leave_keys<VW>(dv, 1.0f, values, 64 * GROUP, thread);
    bar_sync(FREE, 256);  // the other warpgroup has read these keys for the last time
    if (leaves) leave_keys<QK>(dk, p.scale, keys, 64 * GROUP, thread);
    fence_async_proxy();
    bar_sync(OWN + GROUP, 128);
    if (thread == 0) {
        const int token = tile * N + 64 * GROUP, head = int((s.tickets + k * ticket::WORDS)[ticket::KV_HEAD]);
        if (leaves && token < p.kv_len) {
            store_keys<VW>(out.dv, values, 64 * GROUP, token, head, b);
            store_keys<QK>(out.dk, keys, 64 * GROUP, token, head, b);
        }
        tma_store_commit();
        tma_store_wait_read();
        mbarrier_arrive(s.v_empty(v));
        mbarrier_arrive(s.k_empty(k));
    }
}

// The warpgroup's number stands in the text, so that its barriers and addresses are constants.
template <int GROUP> __device__ __forceinline__ void consume(const Params &p, const Mods &mods, const Stage &s, const Out &out, int thread) {
    const float to_log2 = ML_SCORE == 0 ? p.scale * 1.4426950408889634f : 1.4426950408889634f;
    const int warp = thread / 32, lane = thread % 32;
    Ring<Q_STAGES> q_ring;
    Ring<DO_STAGES> d_o_ring;
    u32 ds_buffer = 0;
#pragma unroll 1
    for (;; d_o_ring.end_item()) {
        constexpr int k = 0, v = 0;
        mbarrier_wait(s.k_full(k), d_o_ring.item_phase());
        u32 left = s.ticket(k, ticket::COUNT);
        if (left == ticket::STOP) break;
        const int b = s.ticket(k, ticket::B), tile = s.ticket(k, ticket::TILE);
        const u32 keys = s.k + k * K_BYTES, values = s.v + v * V_BYTES;
        if (left == 0) {
            store_zeros(p, b, s.ticket(k, ticket::KV_HEAD), tile, GROUP * 128 + thread, 256);
            mbarrier_wait(s.v_full(v), d_o_ring.item_phase());
            bar_sync(OWN + GROUP, 128);
            if (thread == 0) mbarrier_arrive(s.v_empty(v)), mbarrier_arrive(s.k_empty(k));
            continue;
        }
        Cells cells;
        cells.b = b;
        cells.kv_idx = tile * N + 64 * GROUP + 16 * warp + lane / 4;
        CaptureSums sums;
        float dk[QK / 2], dv[VW / 2], score[M / 2], d_weight[M / 2];
#pragma unroll
        for (int i = 0; i < QK / 2; ++i) dk[i] = 0.0f;
#pragma unroll
        for (int i = 0; i < VW / 2; ++i) dv[i] = 0.0f;
        auto ask_scores = [&]() {
            mbarrier_wait(s.q_full(q_ring.next), q_ring.phase());
            issue_across<QK>(score, keys + 64 * GROUP * 128, s.q + q_ring.next * Q_BYTES);
            return q_ring.advance();
        };
        auto ask_d_weights = [&]() {
            mbarrier_wait(s.d_o_full(d_o_ring.next), d_o_ring.phase());
            issue_across<VW>(d_weight, values + 64 * GROUP * 128, s.d_o + d_o_ring.next * DO_BYTES);
            return d_o_ring.advance();
        };
        pin(dk);  // the zeros stand here, before any product is on its way
        pin(dv);
        Walk now;
        int before = -1;  // the head of the tile before, where captured tensors want to know
        mbarrier_wait(s.v_full(v), d_o_ring.item_phase());
        if (AHEAD) now.q = ask_scores();
#pragma unroll 1
        for (;; --left) {
            const u32 scores = s.ds + ds_buffer * DS_BYTES, own = scores + GROUP * M * 128;
            if (!AHEAD) now.q = ask_scores();
            if (!LATE) now.d_o = ask_d_weights();
            now.read(s);
            const int q_tile = int(now.tile & ~Cursor::FULL);
            const u32 line = LINE_TOLD ? 0 : query_tile(p, b, now.head, q_tile);
            if (ML_CAPTURES && before >= 0 && now.head != before) sums.end_head(mods, b, before, cells.kv_idx, p.kv_len), sums = CaptureSums();
            if (ML_CAPTURES) before = now.head;
            cells.head = now.head;
            cells.q_idx = q_tile * M + 2 * (lane % 4);
            cells.rows = s.rows + now.q * ROWS_BYTES + lane % 4 * 16;
            const LseAhead lse(cells.rows);
            u32 weight[M / 4], d_score[M / 4];
            wgmma_wait<LATE ? 0 : 1>();  // S; in line is dP
            pin(score);
            weigh_tile<HOLD>(p, mods, cells, now.tile & Cursor::FULL,
                             BitsPlace{s.bits + now.q * BITS_BYTES + (GROUP * 128 + thread) * (4 * BIT_WORDS)}, lse, score, weight, to_log2);
            if (LATE) now.d_o = ask_d_weights();
            issue_along<VW>(dv, weight, s.d_o + now.d_o * DO_BYTES);
            const Deltas<DELTA_SLOTS> deltas(cells.rows);
            wgmma_wait<1>();  // dP
            pin(d_weight);
            if (DS_STAGES == 1) bar_sync(FREE, 256);
            derive<HOLD>(p, mods, cells, deltas, d_weight, score, weight, sums,
                         QueryRows(own, warp, lane, KEYS_FROM_REGISTERS ? d_score : nullptr));
            if (AHEAD) issue_along<QK>(dk, d_score, s.q + now.q * Q_BYTES);
            fence_async_proxy();
            bar_sync(OWN_KEYS ? OWN + GROUP : MEET, OWN_KEYS ? 128 : 256);
            float dq[PART_WIDTH / 2];
            issue_queries(dq, scores, keys, GROUP);
            if (!AHEAD) {
                if (KEYS_FROM_REGISTERS) issue_along<QK>(dk, d_score, s.q + now.q * Q_BYTES);
                else issue_keys<QK>(dk, own, s.q + now.q * Q_BYTES);
            }
            const u32 turn = ML_DETERMINISTIC ? s.step(now.q, step::TURN) : 0;
            if (AHEAD) {
                ds_buffer ^= 1;
                wgmma_wait<1>();  // dV and dK
                pin(dk);
                pin(dv);
                give_back(s.d_o_empty(now.d_o));
                give_back(s.q_empty(now.q));
                wgmma_wait<0>();  // dQ
                pin(dq);
                if (left == 1) {  // twice, because a product that only some tiles ask for serialises all (C7518)
                    leave_part(dq, line, turn, now.q, GROUP, thread);
                    break;
                }
                now.q = ask_scores();
                leave_part(dq, line, turn, now.q, GROUP, thread);
                continue;
            }
            wgmma_wait<1>();  // dV and dQ
            pin(dq);
            give_back(s.d_o_empty(now.d_o));
            leave_part(dq, line, turn, now.q, GROUP, thread);
            if (DS_STAGES == 2) ds_buffer ^= 1;
            wgmma_wait<0>();  // dK
            pin(dk);
            pin(dv);
            give_back(s.q_empty(now.q));
            if (left == 1) break;
        }
        if (ML_CAPTURES) sums.end_head(mods, b, before, cells.kv_idx, p.kv_len);
        finish_item<GROUP>(p, s, out, dk, dv, b, tile, k, v, thread);
    }
    bar_sync(TAKEN + GROUP, 160);
    post_part(Handoff::STOP, 0, GROUP, thread);
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
    // the compiler is to see that they are the same for a warp
    const int warp = __shfl_sync(0xffffffff, int(threadIdx.x / 32), 0), group = warp / 4 - 1;
    if (group < 0) {
        registers_lower<PRODUCERS>();
        if (threadIdx.x == 0) produce(p, stage, {&q_map, &k_map, &v_map, &d_o_map, &rows_map, &bits_map});
        else if (warp == 1 || warp == 2) add_parts(p, &sum_map, warp - 1);
    } else {
        registers_raise<CONSUMERS>();
        const Out out = {&dk_map, &dv_map, &sum_map};
        if (group == 0) consume<0>(p, ML_MODS, stage, out, threadIdx.x % 128);
        else consume<1>(p, ML_MODS, stage, out, threadIdx.x % 128);
    }
}
