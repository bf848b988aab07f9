// Which tile of queries a block takes, and which tiles of keys it walks.

struct Place {
    int b, h, tile, row;  // row: of the block lists
};

// Heads in sections whose keys and values share the L2 cache; in a section the heaviest query tiles first, over all heads.
__device__ __forceinline__ Place place_of(const Params &p, u32 index) {
    u32 all = p.batch * p.heads, whole = p.section * p.q_tiles;
    u32 section = index / whole, inside = index % whole;
    u32 heads = min(u32(p.section), all - section * p.section);
    u32 rank = inside / heads, head = section * p.section + inside % heads;
    Place place;
    place.b = head / p.heads;
    place.h = head % p.heads;
    int list = (p.mask_batch == 1 ? 0 : place.b) * p.mask_heads + (p.mask_heads == 1 ? 0 : place.h);
    place.tile = __ldg(p.tile_order + i64(list) * p.q_tiles + rank);
    place.row = list * p.q_tiles + place.tile;
    return place;
}

// Walks the runs of one row of tiles. The next run is only asked into the cache ahead of time: registers are scarce.
struct Cursor {
    u32 ahead, stop;  // indices into the runs
    u32 index, end;
    static constexpr u32 NONE = 0xffffffff, FULL = 0x80000000;

    __device__ __forceinline__ Cursor(const Params &p, int row) {
        ahead = __ldg(p.row_start + row);
        stop = __ldg(p.row_start + row + 1);
        index = end = 0;
    }
    // The next kv tile, with the top bit set where all its cells are kept; or NONE.
    __device__ __forceinline__ u32 next(const Params &p) {
        if (index == end) {
            if (ahead == stop) return NONE;
            u64 run = __ldg(reinterpret_cast<const u64 *>(p.runs + ahead));
            end = u32(run >> 32);
            index = u32(run) | (end & FULL);
            if (++ahead != stop) asm volatile("prefetch.global.L1 [%0];" ::"l"(p.runs + ahead));
        }
        return index++;
    }
};
