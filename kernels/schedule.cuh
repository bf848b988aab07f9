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

// Walks the runs of one row of tiles, reading one run ahead.
struct Cursor {
    const Run *ahead_at, *stop;
    Run ahead;
    u32 index, end;
    bool run_full;

    __device__ __forceinline__ static Run read(const Run *at) {
        u64 both = __ldg(reinterpret_cast<const u64 *>(at));
        return Run{u32(both), u32(both >> 32)};
    }
    __device__ __forceinline__ Cursor(const Params &p, int row) {
        ahead_at = p.runs + __ldg(p.row_start + row);
        stop = p.runs + __ldg(p.row_start + row + 1);
        index = end = 0;
        run_full = false;
        ahead = Run{0, 0};
        if (ahead_at != stop) ahead = read(ahead_at);
    }
    // The next kv tile, or -1; `full` says whether its cells are all kept.
    __device__ __forceinline__ int next(bool &full) {
        if (index == end) {
            if (ahead_at == stop) return -1;
            index = ahead.start;
            end = ahead.end & 0x7fffffff;
            run_full = ahead.end >> 31;
            if (++ahead_at != stop) ahead = read(ahead_at);
        }
        full = run_full;
        return int(index++);
    }
};
