// What a backward launch passes, and what all its kernels agree on. Stands where params.cuh does for the forward; the mods come
// after it as they do there. Must not know how a kernel multiplies.
//
// Three launches: `backward_rows` (delta.cu), the kernel of the architecture, `backward_queries` (delta.cu). Text: macros, types.cuh, ptx.cuh,
// this, bins.cuh where captured tensors get gradients with ML_DETERMINISTIC, mods.cuh, families.cuh where they are read often, the emitted
// mods, cursor.cuh, hopper.cuh and reduce_sm90.cuh or tile.cuh, captures.cuh or what is emitted in its place, words.cuh, the pipeline, cells.cuh,
// products_sm90.cuh and parts_sm90.cuh, the kernel. Emitted besides the forward's: `score_grad`, with `score_mod`'s parameters,
// d score_mod / d (score * scale).
// With P = exp(score - lse), dS = P * (dO Vᵀ - delta) * d score_mod: dV = Pᵀ dO, dK = scale dSᵀ Q, dQ = scale dS K.
//
// Work is taken by items, in the order in which they stand: one tile of keys of one kv head, which walks the query tiles of all heads of its
// group, so that dk and dv are summed where they are made. The host puts heads in sections whose q, d_o and dq_sum share the L2
// cache, and in a section the heaviest tiles first, with ML_DETERMINISTIC by ascending tile, or in an order in which the last units of a
// block may be none (count 0xffffffff). Lists are the forward's, transposed: a row (mask batch, mask head, key tile) has ascending runs
// `[start, end)` of query tiles; the top bit of the end says that every cell is kept. A key tile that hangs over kv_len is never full; query
// rows beyond q_len need no mask (their P is 0). A key tile without runs gets zeros. Runs are walked as they stand: with ML_DETERMINISTIC
// they are single tiles from the last to the first or in an order of each head, and `bitmap_ids` and `order` follow them. With
// ML_TOGETHER and one list for all heads each tile is walked for all heads of the group before the next.
// Bits of a partial tile (ML_MASK 4), in the order of Sᵀ's fragments: [n][2 N threads] words, two a thread with M = 128, where thread
// 32 w + 4 i + t holds keys 16 w + i (r = 0) and + 8 (r = 1) and queries 8 j + 2 t + e: with M = 128 bit 2 j + e of word r, else bit
// r M / 4 + 2 j + e of its word.
// The host defines ML_BF16, ML_TILE_Q (M), ML_TILE_KV (N), ML_HEAD_DIM, ML_HEAD_DIM_V, ML_MASK (0 none, 1 formula, 4 bitmap, 5 each
// query row keeps one range of keys), ML_SCORE (0 none, 2 score_mod), ML_GRAD (0 its derivative is 1, 1 `score_grad` makes it),
// ML_CAPTURES (1: captured tensors get gradients, by `CaptureSums`), ML_FAMILIES (1: of many reads, families.cuh), ML_DETERMINISTIC, ML_TOGETHER,
// ML_DLSE.

constexpr int M = ML_TILE_Q, N = ML_TILE_KV;

struct alignas(16) Item {
    int b, kv_head, tile;
    u32 count;  // query tiles that it walks, over the heads of its group
};
// What an item is of its tile of keys, where several share one: each walks a range of the query tiles, and the last one to come to its
// end leaves dk and dv of them all. With ML_DETERMINISTIC they add their sums one after the other.
struct alignas(16) Part {
    u32 first, slot, count, index;  // query tiles before its own; whose sums; how many share them, or 1; how many of these come before it
};

struct Params {
    const u16 *q;             // [batch, heads, q_len, head_dim], and its gradient dq
    const u16 *k;             // [batch, heads / group, kv_len, head_dim], and dk
    const u16 *v;             // [batch, heads / group, kv_len, head_dim_v], and dv
    const u16 *o;             // [batch, heads, q_len, head_dim_v], and its gradient d_o
    const u16 *d_o;
    u16 *dq, *dk, *dv;
    const float *lse;         // [batch, heads, q_len], natural log, contiguous; -inf where a row keeps nothing
    const float *d_lse;       // the same shape, its gradient; only with ML_DLSE
    float *rows;              // [batch, heads, q_tiles, M / 2][4]: of two query rows lse * log2e (inf: keeps nothing), then delta
    float *dq_sum;            // [batch, heads, q_tiles][M * width of q]: f32, in the order of the kernel's fragments
    u32 *turns;               // [batch, heads, q_tiles][2]: with ML_DETERMINISTIC, key tiles that have added to dq_sum
    u32 *counter;             // units beyond the first of each block; 0 with ML_DETERMINISTIC: block b has units b, b + blocks, ... (Hopper)
    const Item *items;        // [units]
    const u32 *row_start;     // [rows of the lists + 1] into runs
    const Run *runs;          // ascending runs of query tiles
    const u32 *bitmap_start;  // [rows]: where a row's partial tiles begin in bitmap_ids
    const u32 *bitmap_ids;
    const u32 *bitmaps;
    const u32 *ranges;        // ML_MASK 5: [mask_batch, mask_heads, q_len][2]: a row's first key, and the one past the last
    const u32 *order_start;   // ML_DETERMINISTIC: [rows]: where a row begins in order
    const u32 *order;         // of every tile of the lists: how many key tiles add to its query tile before
    const Part *parts;        // [units], or 0 where every item is whole: only Hopper's kernels have others
    float *part_sums;         // [slots, warpgroups][N / 2 * (width of k + width of v)]: dk and dv of parts, 0 before the launch
    u32 *part_counts;         // [slots, warpgroups]: parts that have been added, 0 before the launch
    i64 q_b, q_h, q_s;
    i64 k_b, k_h, k_s;
    i64 v_b, v_h, v_s;
    i64 o_b, o_h, o_s;
    i64 d_o_b, d_o_h, d_o_s;
    i64 dq_b, dq_h, dq_s;
    i64 dk_b, dk_h, dk_s;
    i64 dv_b, dv_h, dv_s;
    int batch, heads, group;
    int q_len, kv_len, q_tiles, kv_tiles;
    int mask_batch, mask_heads;  // 1 where the mask is the same for all
    u32 units;
    float scale;
};

// The list of a key tile for one query head.
__device__ __forceinline__ int list_row(const Params &p, int b, int head, int tile) {
    int list = (p.mask_batch == 1 ? 0 : b) * p.mask_heads + (p.mask_heads == 1 ? 0 : head);
    return list * p.kv_tiles + tile;
}

// Heads of a group that walk a tile before the next tile.
__device__ __forceinline__ int heads_together(const Params &p) { return ML_TOGETHER && p.mask_heads == 1 ? p.group : 1; }

// Of all query tiles of all heads, which one this is.
__device__ __forceinline__ int query_tile(const Params &p, int b, int head, int tile) {
    return (b * p.heads + head) * p.q_tiles + tile;
}

// What a query row keeps with ML_MASK 5.
__device__ __forceinline__ bool in_range(const Params &p, int b, int head, int q_idx, int kv_idx) {
    int list = (p.mask_batch == 1 ? 0 : b) * p.mask_heads + (p.mask_heads == 1 ? 0 : head);
    const u32 *range = p.ranges + (i64(list) * p.q_len + min(q_idx, p.q_len - 1)) * 2;
    return u32(kv_idx) >= __ldg(range) && u32(kv_idx) < __ldg(range + 1);
}

// Two 16-bit values as floats.
__device__ __forceinline__ void unpack_pair(u32 packed, float &low, float &high) {
#if ML_BF16
    low = __uint_as_float(packed << 16);
    high = __uint_as_float(packed & 0xffff0000u);
#else
    low = unpack16(u16(packed));
    high = unpack16(u16(packed >> 16));
#endif
}

__device__ __forceinline__ float sum_of_quad(float value) {
    value += __shfl_xor_sync(0xffffffff, value, 1);
    return value + __shfl_xor_sync(0xffffffff, value, 2);
}
__device__ __forceinline__ float sum_of_warp(float value) {
#pragma unroll
    for (int by = 1; by < 32; by *= 2) value += __shfl_xor_sync(0xffffffff, value, by);
    return value;
}

// Of two values a thread, the sums over the eight lanes that differ in lane / 4: lane 4 i + t gets that of value i % 2.
__device__ __forceinline__ float sum_of_keys(const float (&value)[2]) {
    const bool odd = threadIdx.x & 4;
    float sum = (odd ? value[1] : value[0]) + __shfl_xor_sync(0xffffffff, odd ? value[0] : value[1], 4);
    sum += __shfl_xor_sync(0xffffffff, sum, 8);
    return sum + __shfl_xor_sync(0xffffffff, sum, 16);
}

// Adds to an element of a captured tensor's gradient, in no fixed order. Sums that no order changes are in bins.cuh.
__device__ __forceinline__ void add_to_element(float *gradient, int element, float part) { atomicAdd(gradient + element, part); }

// Sums of a warp's cells along the diagonals q_idx - kv_idx, tile by tile. A thread holds keys i (r = 0) and i + 8 (r = 1), i = lane / 4,
// and queries 2 t + e, t = lane % 4, of every eight.
struct DiagonalSums {
    static constexpr int STEPS = M / 8 + 2, FOURS = (STEPS + 3) / 4;
    float cell[2][2] = {{0.0f, 0.0f}, {0.0f, 0.0f}};  // [r][e]: of eight queries
    float before[2] = {0.0f, 0.0f};                   // of the eight before with r = 0: on the diagonals of these with r = 1
    float begun = 0.0f;                               // of diagonals that the next eight queries end
    float sums[4 * FOURS];                            // of this tile, of one t: a step's is on the diagonal 8 (step - 2) + i
    float kept = 0.0f;                                // has not been added to its element yet,
    int place = -1;                                   // which is this

    // When `cell` has seen the eight queries of a step; two more steps end a tile.
    __device__ __forceinline__ void next(int step) {
        const int lane = threadIdx.x % 32, i = lane / 4, t = lane % 4;
        float sum = begun;
        begun = 0.0f;
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            // the eight keys' cells of one query lie on eight diagonals: each goes to the lanes of its own
            const float own = before[e] + cell[1][e];
            const float moved = __shfl_sync(0xffffffff, own, ((2 * t + e - i) & 7) * 4 + t);
            before[e] = cell[0][e];
            cell[0][e] = cell[1][e] = 0.0f;
            if (2 * t + e < i) sum += moved;
            else begun += moved;
        }
        sums[step] = sum;
    }
    // Of the steps 4 n to 4 n + 3 the sum over all t of step 4 n + t.
    __device__ __forceinline__ float of_four(int n) const {
        const bool odd = threadIdx.x & 1, high = threadIdx.x & 2;
        const float *four = sums + 4 * n;
        const bool whole = 4 * n + 2 < STEPS;
        const float low = (odd ? four[1] : four[0]) + __shfl_xor_sync(0xffffffff, odd ? four[0] : four[1], 1);
        const float rest = whole ? (odd ? four[3] : four[2]) + __shfl_xor_sync(0xffffffff, odd ? four[2] : four[3], 1) : 0.0f;
        return (high ? rest : low) + __shfl_xor_sync(0xffffffff, high ? low : rest, 2);
    }
    // The diagonal of that sum, of a tile's first query and a warp's first key.
    __device__ __forceinline__ static int difference(int q_idx, int kv_idx, int n) {
        const int lane = threadIdx.x % 32;
        return q_idx - kv_idx + 8 * (4 * n + lane % 4 - 2) + lane / 4;
    }
    template <class Gradient> __device__ __forceinline__ void add(const Gradient &gradient, int element, float sum) {
        if (element != place) leave(gradient), place = element;
        kept += sum;
    }
    template <class Gradient> __device__ __forceinline__ void leave(const Gradient &gradient) {
        if (kept != 0.0f) add_to_element(gradient, place, kept);
        kept = 0.0f;
    }
};
