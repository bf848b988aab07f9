// Attention over some keys merged into that over others: outputs weighted by the logsumexps, in place. Behind types.cuh.
// Launch: a warp for each row of the part; eight warps a block.

struct Merge {
    u16 *out;         // [pairs, q_len, row]: what is merged into
    float *lse;       // [pairs, q_len]
    const u16 *part;  // [pairs, rows, row]: what is merged
    const float *part_lse;
    const i64 *places;  // the row of `out` for each row of the part; none: they are the same
    i64 pairs, q_len, rows, row;
};

__device__ __forceinline__ u32 merged(u32 a, u32 b, float mine, float other) {
    const float low = mine * unpack16(u16(a)) + other * unpack16(u16(b));
    const float high = mine * unpack16(u16(a >> 16)) + other * unpack16(u16(b >> 16));
    return pack16(low, high);
}

extern "C" __global__ void __launch_bounds__(256) merge_rows(const __grid_constant__ Merge p) {
    const i64 from = i64(blockIdx.x) * 8 + threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    if (from >= p.pairs * p.rows) return;
    const i64 pair = from / p.rows, place = from % p.rows;
    const i64 to = pair * p.q_len + (p.places ? p.places[place] : place);
    const float before = p.lse[to], more = p.part_lse[from];
    // nothing was kept: nothing is added
    if (more == negative_infinity()) return;
    const float top = fmaxf(before, more);
    const float mine = __expf(before - top), other = __expf(more - top), sum = mine + other;
    Chunk *into = reinterpret_cast<Chunk *>(p.out + to * p.row);
    const Chunk *part = reinterpret_cast<const Chunk *>(p.part + from * p.row);
    for (int at = lane; at < p.row / 8; at += 32) {
        Chunk a = into[at];
        const Chunk b = part[at];
        a.x = merged(a.x, b.x, mine / sum, other / sum);
        a.y = merged(a.y, b.y, mine / sum, other / sum);
        a.z = merged(a.z, b.z, mine / sum, other / sum);
        a.w = merged(a.w, b.w, mine / sum, other / sum);
        into[at] = a;
    }
    __syncwarp();
    if (lane == 0) p.lse[to] = top + __logf(sum);
}
