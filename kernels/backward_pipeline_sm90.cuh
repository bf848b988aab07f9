// The pipeline of Hopper's backward kernels up to the products: shared memory, and the thread that fills it. Everything that is read
// there is given back over a barrier before it is written again. Must not know scores.
// The host defines besides what backward.cuh wants: ML_QK_WIDTH and ML_V_WIDTH (head dims padded to 64), ML_K_STAGES, ML_V_STAGES,
// ML_Q_STAGES, ML_DO_STAGES, ML_DS_STAGES (buffers), ML_DQ_BULK (1: dq leaves through shared memory by the copy engine, 0: straight from
// registers; its kernel says which). The text stands behind words.cuh. Tensor maps, all of four dimensions with the innermost first:
//   q, d_o: (element, token, head, batch), boxes 64 x M, 128-byte swizzle; k, v: boxes 64 x N
//   dk, dv: boxes 64 x 64, 128-byte swizzle
//   rows: f32 (2 M, query tile, head, batch), boxes 2 M x 1, no swizzle
//   bits: u32 (2 M, [bitmap][N / 64], 1, 1), boxes 2 M x N / 64, no swizzle
//   dq_sum: f32 (256, lines, 1, 1), boxes 256 x a part's lines, no swizzle; only with ML_DQ_BULK

constexpr int QK = ML_QK_WIDTH, VW = ML_V_WIDTH, GROUPS = 2;
constexpr int K_STAGES = ML_K_STAGES, V_STAGES = ML_V_STAGES, Q_STAGES = ML_Q_STAGES, DO_STAGES = ML_DO_STAGES, DS_STAGES = ML_DS_STAGES;
// A buffer holds columns of 64 elements (128 bytes a row, swizzled) one after the other.
constexpr int Q_BYTES = M * QK * 2, DO_BYTES = M * VW * 2, K_BYTES = N * QK * 2, V_BYTES = N * VW * 2;
// Whether a warpgroup multiplies a tile's dq of its own keys alone: narrow heads' tiles of 64 queries have no columns to share.
constexpr bool OWN_KEYS = ML_DQ_BULK && M == 64 && QK == 64;
static_assert(!OWN_KEYS || !ML_DETERMINISTIC, "both warpgroups add to the same sums, in no order");
// dS; and of each kernel's own what lies behind it: dq on its way out, or P on its way to the other warpgroup.
constexpr int DS_BYTES = N * M * 2, SUM_BYTES = ML_DQ_BULK ? (OWN_KEYS ? 2 : 1) * M * QK * 4 : N == 64 ? 2 * N * M * 2 : 0;
// Of a tile of queries: lse and delta of its rows, and a partial tile's bits.
constexpr int ROWS_BYTES = M * 8, BITS_BYTES = ML_MASK == 4 ? N * M / 8 : 0;
static_assert(M == 64 || M == 128, "queries are a warpgroup's or two");
// Whether a step's words say where its dq is added: with tiles of 128 queries and a derivative a thread has no register for it from the
// tile's start to its end, nor for what it is computed of.
constexpr bool LINE_TOLD = M == 128 && ML_GRAD;
static_assert(K_STAGES == 1 && V_STAGES == 1, "an item has one phase (Ring)");

// Position in a ring of buffers, and the parity that its barriers wait for, after so many were used.
template <int COUNT> __device__ __forceinline__ int at(u32 used) { return int(used % COUNT); }
template <int COUNT> __device__ __forceinline__ u32 phase(u32 used) { return used / COUNT % 2; }

// What is known of an item: words that lie beside its K buffer.
namespace ticket {
constexpr int B = 0, KV_HEAD = 1, TILE = 2, COUNT = 3, SLOT = 4, PARTS = 5;
constexpr int LAST = 6;           // and 7: of each warpgroup, whether the other parts' sums are there; before it is known, INDEX
constexpr int INDEX = 6;          // and 7: with ML_DETERMINISTIC how many of the parts come before this one
constexpr u32 STOP = 0xffffffff;  // as COUNT: there are no more
constexpr int WORDS = 8;
}  // namespace ticket
// What is known of a tile of queries: words that lie beside its Q buffer. TILE: as in the runs, with Cursor::FULL. LINE: `query_tile` of it,
// with LINE_TOLD.
namespace step {
constexpr int TILE = 0, HEAD = 1, TURN = 2, LINE = 3;
constexpr int WORDS = 4;
}  // namespace step

// Where shared memory begins: behind what the hardware keeps for itself. With constant places nothing is left to compute of the products'
// descriptors. A kernel that finds itself elsewhere stops.
constexpr u32 SHARED_START = 1024;

struct Stage {
    static constexpr u32 k = SHARED_START, v = k + K_STAGES * K_BYTES, q = v + V_STAGES * V_BYTES, d_o = q + Q_STAGES * Q_BYTES;
    static constexpr u32 ds = d_o + DO_STAGES * DO_BYTES, sums = ds + DS_STAGES * DS_BYTES, rows = sums + SUM_BYTES;
    static constexpr u32 bits = rows + Q_STAGES * ROWS_BYTES, bars = bits + Q_STAGES * BITS_BYTES;
    static constexpr int BARRIERS = 2 * (K_STAGES + V_STAGES + Q_STAGES + DO_STAGES);
    // words of tickets and steps; and what goes with a part of dq on its way out, 8 bytes a warpgroup
    static constexpr u32 words = bars + 8 * BARRIERS, handoff = words + 4 * (K_STAGES * ticket::WORDS + Q_STAGES * step::WORDS);
    volatile u32 *tickets;  // [K_STAGES][ticket::WORDS]
    volatile u32 *steps;    // [Q_STAGES][step::WORDS]
    __device__ __forceinline__ static constexpr u32 k_full(int i) { return bars + 8 * i; }
    __device__ __forceinline__ static constexpr u32 k_empty(int i) { return k_full(K_STAGES + i); }
    __device__ __forceinline__ static constexpr u32 v_full(int i) { return k_full(2 * K_STAGES + i); }
    __device__ __forceinline__ static constexpr u32 v_empty(int i) { return v_full(V_STAGES + i); }
    __device__ __forceinline__ static constexpr u32 q_full(int i) { return v_full(2 * V_STAGES + i); }
    __device__ __forceinline__ static constexpr u32 q_empty(int i) { return q_full(Q_STAGES + i); }
    __device__ __forceinline__ static constexpr u32 d_o_full(int i) { return q_full(2 * Q_STAGES + i); }
    __device__ __forceinline__ static constexpr u32 d_o_empty(int i) { return d_o_full(DO_STAGES + i); }

    __device__ __forceinline__ explicit Stage(u8 *raw) {
        if (shared_address(raw) != SHARED_START) __trap();
        tickets = reinterpret_cast<volatile u32 *>(raw + (words - SHARED_START));
        steps = tickets + K_STAGES * ticket::WORDS;
    }
    // A word of a ticket or a step, for a consumer's warp: the lane that gives it back reads it.
    __device__ __forceinline__ static u32 word(u32 from) {
        u32 value = 0;
        if (warp_leader()) value = load_word(from);
        return spread(value);
    }
    __device__ __forceinline__ static u32 ticket(int i, int index) { return word(words + 4 * (i * ticket::WORDS + index)); }
    __device__ __forceinline__ static constexpr u32 step_place(int i, int index) {
        return words + 4 * (K_STAGES * ticket::WORDS + i * step::WORDS + index);
    }
    __device__ __forceinline__ static u32 step(int i, int index) { return word(step_place(i, index)); }
    __device__ __forceinline__ void initialise() const {
        constexpr int WARPS = 4 * GROUPS;
        for (int i = 0; i < K_STAGES; ++i) mbarrier_init(k_full(i), 1), mbarrier_init(k_empty(i), GROUPS);
        for (int i = 0; i < V_STAGES; ++i) mbarrier_init(v_full(i), 1), mbarrier_init(v_empty(i), GROUPS);
        for (int i = 0; i < Q_STAGES; ++i) mbarrier_init(q_full(i), 1), mbarrier_init(q_empty(i), WARPS);
        for (int i = 0; i < DO_STAGES; ++i) mbarrier_init(d_o_full(i), 1), mbarrier_init(d_o_empty(i), WARPS);
        fence_barrier_init();
    }
};

// This warp has read a buffer, or a word, for the last time.
__device__ __forceinline__ void give_back(u32 bar) {
    __syncwarp();
    if (warp_leader()) mbarrier_arrive(bar);
}

template <int ROWS, int WIDTH>
__device__ __forceinline__ void copy_tile(u32 to, const TensorMap *map, u32 bar, int row, int head, int batch) {
#pragma unroll
    for (int d = 0; d < WIDTH / 64; ++d) tma_load(to + d * ROWS * 128, map, bar, d * 64, row, head, batch);
}

// Which buffer of a ring is next, and a bit for each that says how often it was used. The top bit counts its holder's items,
// whose keys and values have one buffer each: a word of their own was spilled.
template <int COUNT> struct Ring {
    static constexpr u32 ODD = 1u << 31;
    u32 next = 0, phases = 0;
    __device__ __forceinline__ u32 item_phase() const { return phases / ODD; }
    __device__ __forceinline__ void end_item() { phases ^= ODD; }
    __device__ __forceinline__ u32 phase() const { return phases >> next & 1; }
    __device__ __forceinline__ int advance() {
        const int now = int(next);
        phases ^= 1u << next;
        next = next + 1 == COUNT ? 0 : next + 1;
        return now;
    }
};

struct Maps {
    const TensorMap *q, *k, *v, *d_o, *rows, *bits;
};

// Keys or values of an item, whose ticket says which.
template <int WIDTH>
__device__ __forceinline__ void copy_keys(u32 to, const TensorMap *map, u32 bar, const volatile u32 *words) {
    mbarrier_expect(bar, N * WIDTH * 2);
    copy_tile<N, WIDTH>(to, map, bar, int(words[ticket::TILE]) * N, int(words[ticket::KV_HEAD]), int(words[ticket::B]));
}

// The unit after this one. Where additions have one order, a block's units may be its own from the start: without a counter.
__device__ __forceinline__ u32 next_unit(const Params &p, u32 unit) {
    if (ML_DETERMINISTIC && !p.counter) return unit + count_blocks();
    return count_blocks() + atomicAdd(p.counter, 1u);
}

// Takes items and copies all that they want, in the order in which it is wanted. A producer has few registers: what it wants to know of an
// item it reads from the ticket.
__device__ __forceinline__ void produce(const Params &p, const Stage &s, const Maps &maps) {
    Ring<Q_STAGES> q_ring;
    Ring<DO_STAGES> d_o_ring;
#pragma unroll 1
    for (u32 unit = blockIdx.x;; unit = next_unit(p, unit), d_o_ring.end_item()) {
        Item item = {0, 0, 0, ticket::STOP};
        if (unit < p.units) item = p.items[unit];
        mbarrier_wait(s.k_empty(0), d_o_ring.item_phase() ^ 1);
        volatile u32 *words = s.tickets;
        words[ticket::B] = item.b, words[ticket::KV_HEAD] = item.kv_head, words[ticket::TILE] = item.tile;
        words[ticket::COUNT] = item.count;
        if (item.count == ticket::STOP || item.count == 0) {
            mbarrier_arrive(s.k_full(0));
            if (item.count == ticket::STOP) break;
            mbarrier_wait(s.v_empty(0), d_o_ring.item_phase() ^ 1);
            mbarrier_arrive(s.v_full(0));
            continue;
        }
        copy_keys<QK>(s.k, maps.k, s.k_full(0), words);
        bool first = true;
        u32 skip = 0, left = item.count;
        words[ticket::PARTS] = 1;
        if (p.parts) {
            const Part part = p.parts[unit];
            words[ticket::SLOT] = part.slot, words[ticket::PARTS] = part.count;
            if (ML_DETERMINISTIC) words[ticket::INDEX] = part.index, words[ticket::INDEX + 1] = part.index;
            skip = part.first;
        }
#pragma unroll 1
        for (int head = item.kv_head * p.group; left; head += heads_together(p)) {
            int row = list_row(p, int(words[ticket::B]), head, int(words[ticket::TILE]));
            Cursor cursor(p, row);
            u32 bitmap = ML_MASK == 4 ? __ldg(p.bitmap_start + row) : 0, turn = ML_DETERMINISTIC ? __ldg(p.order_start + row) : 0;
#pragma unroll 1
            for (u32 now; left && (now = cursor.next(p)) != Cursor::NONE; bitmap += !(now & Cursor::FULL)) {
                // a part begins and ends at any of the heads that walk a tile together
                const int together = heads_together(p);
                if (skip >= u32(together)) {
                    skip -= together, turn += ML_DETERMINISTIC;
                    continue;
                }
                // in any order one head walks: without the constants the wide kernel spills 104 bytes
                const int from = ML_DETERMINISTIC ? head + int(skip) : head;
                const int past = ML_DETERMINISTIC ? min(head + together, from + int(left)) : head + 1;
                skip = 0;
#pragma unroll 1
                for (int h = from; h < past; ++h, --left, q_ring.advance(), d_o_ring.advance()) {
                    const int tile = int(now & ~Cursor::FULL), b = int(words[ticket::B]), q = int(q_ring.next);
                    const bool bits = ML_MASK == 4 && !(now & Cursor::FULL);
                    u32 bar = s.q_full(q);
                    // before the wait, which this load would prolong
                    const u32 order = ML_DETERMINISTIC ? __ldg(p.order + turn) : 0;
                    mbarrier_wait(s.q_empty(q), q_ring.phase() ^ 1);
                    volatile u32 *told = s.steps + q * step::WORDS;
                    told[step::TILE] = now, told[step::HEAD] = h;
                    if (LINE_TOLD) told[step::LINE] = query_tile(p, b, h, tile);
                    if (ML_DETERMINISTIC) told[step::TURN] = order;
                    mbarrier_expect(bar, Q_BYTES + ROWS_BYTES + (bits ? BITS_BYTES : 0));
                    copy_tile<M, QK>(s.q + q * Q_BYTES, maps.q, bar, tile * M, h, b);
                    tma_load(s.rows + q * ROWS_BYTES, maps.rows, bar, 0, tile, h, b);
                    if (bits) tma_load(s.bits + q * BITS_BYTES, maps.bits, bar, 0, int(__ldg(p.bitmap_ids + bitmap)) * (N / 64), 0, 0);
                    if (first) {
                        mbarrier_wait(s.v_empty(0), d_o_ring.item_phase() ^ 1);
                        copy_keys<VW>(s.v, maps.v, s.v_full(0), words);
                        first = false;
                    }
                    const int d = int(d_o_ring.next);
                    mbarrier_wait(s.d_o_empty(d), d_o_ring.phase() ^ 1);
                    mbarrier_expect(s.d_o_full(d), DO_BYTES);
                    copy_tile<M, VW>(s.d_o + d * DO_BYTES, maps.d_o, s.d_o_full(d), tile * M, h, b);
                }
                ++turn;
            }
        }
    }
}
