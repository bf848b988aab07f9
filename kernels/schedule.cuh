// Which tile of queries a block takes.

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
