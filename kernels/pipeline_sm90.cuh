// flex_sm90's pipeline up to the products: what a launch passes, what lies in shared memory, and the threads that fill it.
// Everything that is read there is given back over a barrier before it is written again. Must not know scores.
// The host defines ML_QK_WIDTH and ML_V_WIDTH (head dims padded to 64), ML_CONSUMERS, ML_STAGES (buffers of keys), ML_V_STAGES,
// ML_Q_STAGES.

constexpr int QK = ML_QK_WIDTH, VW = ML_V_WIDTH, N = ML_TILE_KV, CONSUMERS = ML_CONSUMERS, M = 64 * CONSUMERS;
constexpr int K_STAGES = ML_STAGES, V_STAGES = ML_V_STAGES, Q_STAGES = ML_Q_STAGES;
// A buffer holds columns of 64 elements (128 bytes a row, swizzled) one after the other.
constexpr int Q_BYTES = M * QK * 2, K_BYTES = N * QK * 2, V_BYTES = N * VW * 2;

// A consumer's bits of a partial tile: of each of its rows four words, for the threads that hold the row's scores. They are copied as
// a tensor of lines of 128 bytes, swizzled: racecheck takes a plain bulk copy for the issuing thread's own stores.
constexpr int BITS_BYTES = 64 * 16, BITS_LINES = BITS_BYTES / 128, ALL_BITS_BYTES = ML_MASK == 4 ? CONSUMERS * BITS_BYTES : 0;

// A share of the keys of a tile.
struct Piece {
    u32 tile;   // as taken where it is whole
    u32 row;    // of the block lists: this piece's own
    u32 part;   // where it leaves its sums
    u32 first;  // where the tile's first piece does; the others follow
    u32 count;  // pieces of the tile
};

// What a launch passes besides Params. Mirrored byte for byte by the host.
struct Hopper {
    const u32 *kv_num_tiles;  // [rows]: kv tiles of a row
    u32 *counter;             // [2]: units beyond the first of each block, blocks that have finished
    const Piece *pieces;      // [units - whole]
    float *parts;             // [units - whole][CONSUMERS][PART floats]: what pieces leave to the last of their tile
    u32 *arrived;             // [units - whole][CONSUMERS]: pieces that have left theirs, counted at a tile's first; 0 between launches
    u32 units;                // whole tiles, then pieces
    u32 whole;                // how many of the units are whole tiles
};

__device__ __forceinline__ bool is_piece(const Hopper &x, u32 unit) { return unit >= x.whole; }
__device__ __forceinline__ const Piece &piece_of(const Hopper &x, u32 unit) { return x.pieces[unit - x.whole]; }

__device__ __forceinline__ Place place_of_unit(const Params &p, const Hopper &x, u32 unit) {
    if (!is_piece(x, unit)) return place_of(p, unit);
    const Piece &piece = piece_of(x, unit);
    Place place = place_of(p, __ldg(&piece.tile));
    place.row = int(__ldg(&piece.row));
    return place;
}

// Position in a ring of buffers, and the parity that its barriers wait for.
template <int COUNT, bool POWER_OF_TWO = (COUNT & (COUNT - 1)) == 0> struct Ring {
    int index = 0;
    u32 parity = 0;
    __device__ __forceinline__ int at() const { return index; }
    __device__ __forceinline__ u32 phase() const { return parity; }
    __device__ __forceinline__ void next() {
        if (++index == COUNT) index = 0, parity ^= 1;
    }
};
// in one register
template <int COUNT> struct Ring<COUNT, true> {
    u32 count = 0;
    __device__ __forceinline__ int at() const { return int(count % COUNT); }
    __device__ __forceinline__ u32 phase() const { return count / COUNT % 2; }
    __device__ __forceinline__ void next() { ++count; }
};

// What is known of a tile of queries once it is taken: words of shared memory.
namespace ticket {
constexpr int UNIT = 0;              // x.units and above: there are no more
constexpr int B = 1, H = 2, TILE = 3;
constexpr int KV_HEAD = 4;
constexpr int KV_NUM_TILES = 5;
constexpr int FIRST = 6, PAST = 7;   // its runs
constexpr int RUN = 8;               // the first of them, two words
constexpr int PARTIAL = 10;          // where the bitmaps of its partial tiles begin, or its tile of ranges
constexpr int WORDS = 11;
}  // namespace ticket

// A tile of keys as the producer tells consumers of it, in a word: Cursor::FULL, of a partial one the parity that its bits' barrier
// is waited for with, and the kv tile.
struct Step {
    u32 word;
    static constexpr int PARITY = 30;
    __device__ __forceinline__ bool full() const { return word & Cursor::FULL; }
    __device__ __forceinline__ int tile() const { return int(word & ((1u << PARITY) - 1)); }
    __device__ __forceinline__ u32 parity() const { return word >> PARITY & 1; }
};

// Shared memory: Q, K and V buffers, for each consumer one of a partial tile's bits, a full and an empty barrier for each of these,
// two barriers between the producers, what each K buffer holds, the tickets of this tile and the next, and for each consumer whether
// its piece was the tile's last.
// Whoever has read a word or a buffer gives it back warp by warp, so that no lane of it can be late. Words are read by the lane
// that gives them back, which spreads them: then the order of its reads before the producer's next write needs no other lane.
struct Stage {
    u32 q, k, v, bars;
    volatile u32 *steps;    // [K_STAGES]: Step of the kv tile that a K buffer holds
    volatile u32 *tickets;  // [2][ticket::WORDS], of even and odd tiles
    volatile int *last;     // [CONSUMERS]
    static constexpr int BARRIERS = 2 * (Q_STAGES + K_STAGES + V_STAGES + CONSUMERS + 1);
    __device__ __forceinline__ u32 bits(int group) const { return bars - ALL_BITS_BYTES + group * BITS_BYTES; }
    __device__ __forceinline__ u32 q_full(int i) const { return bars + 8 * i; }
    __device__ __forceinline__ u32 q_empty(int i) const { return q_full(Q_STAGES + i); }
    __device__ __forceinline__ u32 k_full(int i) const { return q_full(2 * Q_STAGES + i); }
    __device__ __forceinline__ u32 k_empty(int i) const { return k_full(K_STAGES + i); }
    __device__ __forceinline__ u32 v_full(int i) const { return k_full(2 * K_STAGES + i); }
    __device__ __forceinline__ u32 v_empty(int i) const { return v_full(V_STAGES + i); }
    __device__ __forceinline__ u32 bits_full(int group) const { return v_full(2 * V_STAGES + group); }
    __device__ __forceinline__ u32 bits_empty(int group) const { return bits_full(CONSUMERS + group); }
    // the next tile may be taken; its ticket is written
    __device__ __forceinline__ u32 asked() const { return bits_full(2 * CONSUMERS); }
    __device__ __forceinline__ u32 told() const { return asked() + 8; }

    __device__ __forceinline__ explicit Stage(u8 *raw) {
        q = shared_address(raw);
        k = q + Q_STAGES * Q_BYTES;
        v = k + K_STAGES * K_BYTES;
        bars = v + V_STAGES * V_BYTES + ALL_BITS_BYTES;
        steps = reinterpret_cast<volatile u32 *>(raw + (bars - q) + 8 * BARRIERS);
        tickets = steps + K_STAGES;
        last = reinterpret_cast<volatile int *>(tickets + 2 * ticket::WORDS);
    }
    // The compiler is to see that these addresses are the same for a warp: then it keeps them, instead of asking for the start of
    // shared memory at every tile.
    __device__ __forceinline__ void keep() {
        k = __shfl_sync(0xffffffff, k, 0);
        v = k + K_STAGES * K_BYTES;
        bars = v + V_STAGES * V_BYTES + ALL_BITS_BYTES;
    }
    __device__ __forceinline__ volatile u32 *ticket(u32 tile) const { return tickets + tile % 2 * ticket::WORDS; }
    // Words of a ticket, for a consumer's warp. Read whenever they are wanted: the loop over keys has no registers to keep them in.
    __device__ __forceinline__ u32 word(u32 tile, int index) const {
        u32 value = 0;
        if (warp_leader()) value = ticket(tile)[index];
        return spread(value);
    }
    __device__ __forceinline__ Place place(u32 tile) const {
        u32 b = 0, h = 0, at = 0;
        if (warp_leader()) {
            volatile u32 *from = ticket(tile);
            b = from[ticket::B], h = from[ticket::H], at = from[ticket::TILE];
        }
        return {int(spread(b)), int(spread(h)), int(spread(at)), 0};
    }
    // Known to the warp's leader; `spread` tells the others.
    __device__ __forceinline__ Step step(int i) const {
        Step step = {0};
        if (warp_leader()) step.word = steps[i];
        return step;
    }
    __device__ __forceinline__ void initialise() const {
        constexpr int WARPS = 4 * CONSUMERS;
        for (int i = 0; i < Q_STAGES; ++i) mbarrier_init(q_full(i), 1), mbarrier_init(q_empty(i), WARPS);
        for (int i = 0; i < K_STAGES; ++i) mbarrier_init(k_full(i), 1), mbarrier_init(k_empty(i), WARPS);
        for (int i = 0; i < V_STAGES; ++i) mbarrier_init(v_full(i), 1), mbarrier_init(v_empty(i), WARPS);
        for (int i = 0; i < CONSUMERS; ++i) mbarrier_init(bits_full(i), 1), mbarrier_init(bits_empty(i), 4);
        mbarrier_init(asked(), ML_MASK == 4 ? 2 : 1), mbarrier_init(told(), 1);
        fence_barrier_init();
    }
};

// This warp has read a buffer, or a word, for the last time.
__device__ __forceinline__ void give_back(u32 bar) {
    __syncwarp();
    if (warp_leader()) mbarrier_arrive(bar);
}

// --- the producers: a thread that takes tiles and copies their queries, one that copies keys and values, one that copies bits ---

template <int ROWS, int WIDTH>
__device__ __forceinline__ void copy_tile(u32 to, const TensorMap *map, u32 bar, int row, int head, int batch) {
    mbarrier_expect(bar, ROWS * WIDTH * 2);
#pragma unroll
    for (int d = 0; d < WIDTH / 64; ++d) tma_load(to + d * ROWS * 128, map, bar, d * 64, row, head, batch);
}

// Steps before the end of a tile at which the next is taken: what it takes to fetch the next one's lists and queries. Earlier
// than that would leave less for others to even out.
constexpr u32 AHEAD = 2;

__device__ __forceinline__ void write_ticket(const Params &p, const Hopper &x, volatile u32 *to, u32 unit) {
    to[ticket::UNIT] = unit;
    if (unit >= x.units) return;
    // two trips to memory, not three: first what the row says, then what that leads to
    Place place = place_of_unit(p, x, unit);
    u32 first = __ldg(p.row_start + place.row), past = __ldg(p.row_start + place.row + 1);
    u32 tiles = __ldg(x.kv_num_tiles + place.row), partial = ML_MASK >= 4 ? __ldg(p.bitmap_start + place.row) : 0;
    u64 run = first == past ? 0 : __ldg(reinterpret_cast<const u64 *>(p.runs + first));
    to[ticket::B] = place.b, to[ticket::H] = place.h, to[ticket::TILE] = place.tile;
    to[ticket::KV_HEAD] = place.h / p.group;
    to[ticket::KV_NUM_TILES] = tiles;
    to[ticket::FIRST] = first, to[ticket::PAST] = past;
    to[ticket::RUN] = u32(run), to[ticket::RUN + 1] = u32(run >> 32);
    if (ML_MASK >= 4) to[ticket::PARTIAL] = partial;
}

__device__ __forceinline__ void produce_q(const Params &p, const Hopper &x, const Stage &s, const TensorMap *q_map) {
    Ring<Q_STAGES> q;
    for (u32 unit = blockIdx.x;; q.next()) {
        // with one buffer, the copy before has waited for the tile whose ticket lay here
        if (Q_STAGES > 1) mbarrier_wait(s.q_empty(q.at()), q.phase() ^ 1);
        if (q.count > 0) {
            mbarrier_wait(s.asked(), q.count % 2 ^ 1);
            unit = gridDim.x + atomicAdd(x.counter, 1);
        }
        volatile u32 *ticket = s.ticket(q.count);
        write_ticket(p, x, ticket, unit);
        mbarrier_arrive(s.told());
        if (Q_STAGES == 1) mbarrier_wait(s.q_empty(q.at()), q.phase() ^ 1);
        if (unit >= x.units) break;
        copy_tile<M, QK>(s.q + q.at() * Q_BYTES, q_map, s.q_full(q.at()), int(ticket[ticket::TILE]) * M, int(ticket[ticket::H]),
                         int(ticket[ticket::B]));
    }
    mbarrier_arrive(s.q_full(q.at()));
    // the last block to get here leaves the counters ready for the next launch
    if (atomicAdd(x.counter + 1, 1) == gridDim.x - 1) x.counter[0] = 0, x.counter[1] = 0;
}

// The kv tiles of a ticket, whose first run lies in it.
__device__ __forceinline__ Cursor cursor_of(const volatile u32 *ticket) {
    return Cursor(ticket[ticket::FIRST], ticket[ticket::PAST], ticket[ticket::RUN] | u64(ticket[ticket::RUN + 1]) << 32);
}

__device__ __forceinline__ void produce_kv(const Params &p, const Hopper &x, const Stage &s, const TensorMap *k_map,
                                           const TensorMap *v_map) {
    Ring<K_STAGES> k;
    Ring<V_STAGES> v;
    for (u32 tile = 0, partial_tiles = 0;; ++tile) {
        mbarrier_wait(s.told(), tile % 2);
        volatile u32 *ticket = s.ticket(tile);
        if (ticket[ticket::UNIT] >= x.units) break;
        int b = ticket[ticket::B], head = ticket[ticket::KV_HEAD];
        Cursor cursor = cursor_of(ticket);
        u32 left = ticket[ticket::KV_NUM_TILES];
        if (left <= AHEAD) mbarrier_arrive(s.asked());
        // unrolled, it would want more registers than a producer has
#pragma unroll 1
        for (; left > 0; --left) {
            Step step = {cursor.next(p)};
            if (!step.full()) step.word |= partial_tiles++ % 2 << Step::PARITY;
            int first = step.tile() * N;
            mbarrier_wait(s.k_empty(k.at()), k.phase() ^ 1);
            s.steps[k.at()] = step.word;
            copy_tile<N, QK>(s.k + k.at() * K_BYTES, k_map, s.k_full(k.at()), first, head, b);
            k.next();
            if (left == AHEAD + 1) mbarrier_arrive(s.asked());
            mbarrier_wait(s.v_empty(v.at()), v.phase() ^ 1);
            copy_tile<N, VW>(s.v + v.at() * V_BYTES, v_map, s.v_full(v.at()), first, head, b);
            v.next();
        }
    }
}

// Each consumer's bits of each partial tile, as soon as that consumer has taken those of the one before.
__device__ __forceinline__ void produce_bits(const Params &p, const Hopper &x, const Stage &s, const TensorMap *bits_map) {
    for (u32 tile = 0, partial_tiles = 0;; ++tile) {
        mbarrier_wait(s.told(), tile % 2);
        volatile u32 *ticket = s.ticket(tile);
        if (ticket[ticket::UNIT] >= x.units) break;
        Cursor cursor = cursor_of(ticket);
        const u32 *bitmap = p.bitmap_ids + ticket[ticket::PARTIAL];
        u32 left = ticket[ticket::KV_NUM_TILES];
        mbarrier_arrive(s.asked());
#pragma unroll 1
        for (; left > 0; --left) {
            if (cursor.next(p) & Cursor::FULL) continue;
            int line = int(__ldg(bitmap++)) * (CONSUMERS * BITS_LINES);
            for (int group = 0; group < CONSUMERS; ++group) {
                mbarrier_wait(s.bits_empty(group), partial_tiles % 2 ^ 1);
                mbarrier_expect(s.bits_full(group), BITS_BYTES);
                tma_load(s.bits(group), bits_map, s.bits_full(group), 0, line + group * BITS_LINES, 0, 0);
            }
            ++partial_tiles;
        }
    }
}
