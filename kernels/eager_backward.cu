// The backward pass of attention as it is written down: scores and dP to memory, dS from them row by row, then products of whole
// matrices. Every cell is computed, and no sum depends on the order in which blocks run: a gradient has the same bits in every run.
// Of p.section (batch, kv head) units from unit p.first; a pair is a unit's query head. The launches, in this order:
//   eager_products    grid (kv tiles, query tiles, pairs)      scores = q kᵀ, d_weights = d_o vᵀ
//   eager_rows        grid (query rows, pairs)                 P and dS in 16 bits, delta; how large what captured tensors get is
//   eager_captures    grid (query rows, pairs)                 only with ML_CAPTURES: adds what they get
//   eager_captured    grid (any)                               only with ML_CAPTURES: turns these sums into floats
//   eager_queries     grid (tiles of head_dim, query tiles, pairs)        dq = scale dS k
//   eager_keys        grid (tiles of the wider head_dim, kv tiles, units) dk = scale dSᵀ q, dv = Pᵀ d_o, both over the unit's heads
// Products and rows of tiles take 128 threads and 18,432 bytes, the others 256 threads. The host defines ML_EAGER, ML_BF16, ML_HEAD_DIM, ML_HEAD_DIM_V,
// ML_MASK (0 none, 1 formula, 2 bytes), ML_SCORE (0 none, 2 score_mod), ML_GRAD (1: `score_grad` makes the derivative; else it is 1),
// ML_CAPTURES (captured tensors that get gradients), ML_CAPTURE_READS (reads of them), ML_DLSE. Of params.cuh's struct outputs are
// unused but lse, which is read.

constexpr int TILE = 64, THREADS = 128, ROW_THREADS = 256, PITCH = TILE * 2 + 16;
constexpr int BLOCK_BYTES = TILE * PITCH;

struct Eager {
    const u16 *d_o;        // as o lies
    const float *d_lse;    // [batch, heads, q_len]; only with ML_DLSE
    u16 *dq, *dk, *dv;     // as q, k and v lie
    float *scores;         // [pairs, q_len, pitch]: q kᵀ; pitch: kv_len in whole tiles
    float *d_weights;      // the same: d_o vᵀ
    u16 *weights;          // the same: P, 0 beyond the keys
    u16 *d_scores;         // the same: dS
    float *deltas;         // [pairs, q_len]
    u32 *largest;          // [captured tensors]: bits of the largest part that one gets in this chunk; 0 before
    u64 *sums;             // two of every element that gets a gradient, of all captured tensors in turn; 0 before and after
    const u32 *places;     // [captured tensors + 1]: where each one's elements begin
    float *captured;       // of every such element the gradient
};

__device__ __forceinline__ i64 pitch(const Params &p) { return round_up(p.kv_len, TILE); }

struct Pair {
    int index, b, head, kv_head;
    __device__ __forceinline__ Pair(const Params &p, int index) : index(index) {
        const int kv_heads = p.heads / p.group, unit = p.first + index / p.group;
        b = unit / kv_heads, kv_head = unit % kv_heads, head = kv_head * p.group + index % p.group;
    }
};

// --- products ---
// Rows of 16-bit values, `columns` of each in whole chunks of 8. What lies beyond counts as 0.
struct Matrix {
    const u16 *at;
    i64 stride;
    int rows, columns;
};

__device__ __forceinline__ void load_block(u32 to, const Matrix &from, int row, int column) {
#pragma unroll
    for (int first = 0; first < TILE * 8; first += THREADS) {
        const int r = (first + int(threadIdx.x)) / 8, chunk = threadIdx.x % 8;
        const bool valid = row + r < from.rows && column + chunk * 8 < from.columns;
        copy_async(to + r * PITCH + chunk * 16, from.at + (i64(row + r) * from.stride + column + chunk * 8), valid);
    }
}

// acc[64 x 64] += a b over `depth`, from this row and column on. A_TURNED: a's rows run along the depth, else they are those of the result.
// B_TURNED: b's rows run along the depth, else they are the result's columns. A warp has 16 rows.
template <bool A_TURNED, bool B_TURNED>
__device__ __forceinline__ void multiply(float (&acc)[8][4], const Matrix &a, const Matrix &b, int row, int column, int depth, u32 smem) {
    const u32 a_block = smem, b_block = smem + BLOCK_BYTES;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int k = 0; k < depth; k += TILE) {
        if (A_TURNED) load_block(a_block, a, k, row);
        else load_block(a_block, a, row, k);
        if (B_TURNED) load_block(b_block, b, k, column);
        else load_block(b_block, b, column, k);
        copy_commit();
        copy_wait_all();
        __syncthreads();
#pragma unroll
        for (int step = 0; step < TILE / 16; ++step) {
            u32 left[4];
            if (A_TURNED)
                ldmatrix_transposed(left, a_block + (step * 16 + lane / 16 * 8 + lane % 8) * PITCH + (lane / 8 % 2) * 16 + warp * 32);
            else ldmatrix(left, a_block + warp * 16 * PITCH + a_lane<PITCH>(lane) + step * 32);
#pragma unroll
            for (int n = 0; n < TILE / 16; ++n) {
                u32 right[4];
                if (B_TURNED) ldmatrix_transposed(right, b_block + step * 16 * PITCH + b_transposed_lane<PITCH>(lane) + n * 32);
                else ldmatrix(right, b_block + n * 16 * PITCH + b_lane<PITCH>(lane) + step * 32);
                mma(acc[2 * n], left, right[0], right[1]);
                mma(acc[2 * n + 1], left, right[2], right[3]);
            }
        }
        __syncthreads();
    }
}

// Calls `store(row, column, two neighbours)` for all that a thread has of a tile.
template <class Store> __device__ __forceinline__ void each_pair(const float (&acc)[8][4], int row, int column, Store store) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
        for (int r = 0; r < 2; ++r)
            store(row + warp * 16 + lane / 4 + 8 * r, column + n * 8 + lane % 4 * 2, acc[n][2 * r], acc[n][2 * r + 1]);
}

__device__ __forceinline__ void store_floats(const float (&acc)[8][4], float *to, i64 stride, int row, int column, int rows) {
    each_pair(acc, row, column, [&](int r, int c, float left, float right) {
        if (r < rows) to[r * stride + c] = left, to[r * stride + c + 1] = right;
    });
}
__device__ __forceinline__ void store_halves(const float (&acc)[8][4], float factor, u16 *to, i64 stride, int row, int column, int rows,
                                             int columns) {
    each_pair(acc, row, column, [&](int r, int c, float left, float right) {
        if (r < rows && c < columns) *reinterpret_cast<u32 *>(to + (r * stride + c)) = pack16(left * factor, right * factor);
    });
}

constexpr int QK_COLUMNS = (ML_HEAD_DIM + 7) / 8 * 8, V_COLUMNS = (ML_HEAD_DIM_V + 7) / 8 * 8;
__device__ __forceinline__ Matrix q_of(const Params &p, const Pair &at) {
    return {p.q + at.b * p.q_b + at.head * p.q_h, p.q_s, p.q_len, QK_COLUMNS};
}
__device__ __forceinline__ Matrix k_of(const Params &p, const Pair &at) {
    return {p.k + at.b * p.k_b + at.kv_head * p.k_h, p.k_s, p.kv_len, QK_COLUMNS};
}
__device__ __forceinline__ Matrix v_of(const Params &p, const Pair &at) {
    return {p.v + at.b * p.v_b + at.kv_head * p.v_h, p.v_s, p.kv_len, V_COLUMNS};
}
__device__ __forceinline__ Matrix d_o_of(const Params &p, const Eager &e, const Pair &at) {
    return {e.d_o + at.b * p.o_b + at.head * p.o_h, p.o_s, p.q_len, V_COLUMNS};
}
__device__ __forceinline__ Matrix cells_of(const Params &p, const u16 *all, int pair) {
    return {all + i64(pair) * p.q_len * pitch(p), pitch(p), p.q_len, int(pitch(p))};
}

extern "C" __global__ void __launch_bounds__(THREADS)
    eager_products(const __grid_constant__ Params p, const __grid_constant__ Eager e) {
    extern __shared__ __align__(128) u8 raw[];
    const Pair at(p, blockIdx.z);
    const int row = blockIdx.y * TILE, column = blockIdx.x * TILE;
    const i64 first = i64(at.index) * p.q_len * pitch(p);
    float scores[8][4] = {}, d_weights[8][4] = {};
    multiply<false, false>(scores, q_of(p, at), k_of(p, at), row, column, QK_COLUMNS, shared_address(raw));
    store_floats(scores, e.scores + first, pitch(p), row, column, p.q_len);
    multiply<false, false>(d_weights, d_o_of(p, e, at), v_of(p, at), row, column, V_COLUMNS, shared_address(raw));
    store_floats(d_weights, e.d_weights + first, pitch(p), row, column, p.q_len);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    eager_queries(const __grid_constant__ Params p, const __grid_constant__ Eager e) {
    extern __shared__ __align__(128) u8 raw[];
    const Pair at(p, blockIdx.z);
    const int row = blockIdx.y * TILE, column = blockIdx.x * TILE;
    float sums[8][4] = {};
    multiply<false, true>(sums, cells_of(p, e.d_scores, at.index), k_of(p, at), row, column, p.kv_len, shared_address(raw));
    store_halves(sums, p.scale, e.dq + at.b * p.q_b + at.head * p.q_h, p.q_s, row, column, p.q_len, QK_COLUMNS);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    eager_keys(const __grid_constant__ Params p, const __grid_constant__ Eager e) {
    extern __shared__ __align__(128) u8 raw[];
    const int row = blockIdx.y * TILE, column = blockIdx.x * TILE;
    const Pair first(p, int(blockIdx.z) * p.group);
    if (column < QK_COLUMNS) {
        float sums[8][4] = {};
        for (int i = 0; i < p.group; ++i) {
            const Pair at(p, first.index + i);
            multiply<true, true>(sums, cells_of(p, e.d_scores, at.index), q_of(p, at), row, column, p.q_len, shared_address(raw));
        }
        store_halves(sums, p.scale, e.dk + first.b * p.k_b + first.kv_head * p.k_h, p.k_s, row, column, p.kv_len, QK_COLUMNS);
    }
    if (column < V_COLUMNS) {
        float sums[8][4] = {};
        for (int i = 0; i < p.group; ++i) {
            const Pair at(p, first.index + i);
            multiply<true, true>(sums, cells_of(p, e.weights, at.index), d_o_of(p, e, at), row, column, p.q_len, shared_address(raw));
        }
        store_halves(sums, 1.0f, e.dv + first.b * p.v_b + first.kv_head * p.v_h, p.v_s, row, column, p.kv_len, V_COLUMNS);
    }
}

// --- cells ---
template <class T, class Join> __device__ __forceinline__ T over_block(T value, T *shared, Join join) {
    for (int step = 16; step > 0; step /= 2) value = join(value, __shfl_xor_sync(0xffffffff, value, step));
    __syncthreads();
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
    __syncthreads();
    value = shared[0];
    for (int warp = 1; warp < ROW_THREADS / 32; ++warp) value = join(value, shared[warp]);
    return value;
}

// One query row of a pair.
struct Row {
    const Params &p;
    const Mods &mods;
    Pair at;
    int q_idx;
    i64 first;   // its first cell
    float lse;
    HeadValues head;
    RowValues values;
    __device__ __forceinline__ Row(const Params &p, const Mods &mods)
        : p(p), mods(mods), at(p, blockIdx.y), q_idx(blockIdx.x), first((i64(at.index) * p.q_len + q_idx) * pitch(p)),
          lse(p.lse[i64(at.b * p.heads + at.head) * p.q_len + q_idx]), head(head_values(mods, at.b, at.head)),
          values(row_values(mods, head, at.b, at.head, q_idx)) {}
    __device__ __forceinline__ ColumnValues column(int kv_idx) const { return column_values(mods, head, at.b, at.head, kv_idx); }
    __device__ __forceinline__ bool keeps(const ColumnValues &column, int kv_idx) const {
        if (kv_idx >= p.kv_len || lse == negative_infinity()) return false;
#if ML_MASK == 1
        return mask_mod(mods, head, values, column, at.b, at.head, q_idx, kv_idx);
#elif ML_MASK == 2
        return p.dense[at.b * p.dense_b + at.head * p.dense_h + q_idx * p.dense_q + kv_idx] != 0;
#else
        return true;
#endif
    }
    // P of a cell whose score is q k.
    __device__ __forceinline__ float weight(const ColumnValues &column, int kv_idx, float score) const {
        if (!keeps(column, kv_idx)) return 0.0f;
#if ML_SCORE == 2
        score = score_mod(mods, 0, score, p.scale, head, values, column, at.b, at.head, q_idx, kv_idx);
#else
        score *= p.scale;
#endif
        return fast_exp(score - lse);
    }
};

// The gradient of a cell's modified score.
__device__ __forceinline__ float passed_on(float weight, float d_weight, float delta) {
    return weight == 0.0f ? 0.0f : weight * (d_weight - delta);
}

#if ML_CAPTURES
// What captured tensors get is added as whole numbers, so that no order matters: of the largest part of a tensor 44 bits. Behind the
// lowest 24 of them the rest is counted by itself: neither sum overflows before 2^33 rows of keys.
constexpr int BITS = 44, LOW = 24;
__device__ __forceinline__ int shift_of(u32 largest) { return largest == 0 ? 0 : BITS - ilogbf(__uint_as_float(largest)); }
__device__ __forceinline__ bool is_finite(float x) { return fabsf(x) <= 3.402823466e+38f; }
__device__ __forceinline__ void add_whole(u64 *to, i64 value) {
    atomicAdd(to, u64(value >> LOW));
    atomicAdd(to + 1, u64(value & ((i64(1) << LOW) - 1)));
}
#endif

extern "C" __global__ void __launch_bounds__(ROW_THREADS)
    eager_rows(const __grid_constant__ Params p, const __grid_constant__ Eager e, ML_MODS_PARAMETER) {
    __shared__ float shared[ROW_THREADS / 32];
    const Row row(p, ML_MODS);
    const float *scores = e.scores + row.first, *d_weights = e.d_weights + row.first;
    float sum = 0.0f;
    for (int at = threadIdx.x * 2; at < pitch(p); at += ROW_THREADS * 2) {
        float weight[2];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            weight[i] = row.weight(row.column(at + i), at + i, scores[at + i]);
            if (weight[i] != 0.0f) sum += weight[i] * d_weights[at + i];
        }
        *reinterpret_cast<u32 *>(e.weights + row.first + at) = pack16(weight[0], weight[1]);
    }
    float delta = over_block(sum, shared, [](float a, float b) { return a + b; });
#if ML_DLSE
    delta -= e.d_lse[i64(row.at.b * p.heads + row.at.head) * p.q_len + row.q_idx];
#endif
    if (threadIdx.x == 0) e.deltas[i64(row.at.index) * p.q_len + row.q_idx] = delta;
#if ML_CAPTURES
    float most[ML_CAPTURES] = {};
#endif
    for (int at = threadIdx.x * 2; at < pitch(p); at += ROW_THREADS * 2) {
        float d_score[2];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int kv_idx = at + i;
            const ColumnValues column = row.column(kv_idx);
            d_score[i] = passed_on(row.weight(column, kv_idx, scores[kv_idx]), d_weights[kv_idx], delta);
            if (d_score[i] == 0.0f) continue;
#if ML_CAPTURES
            each_read(row.mods, d_score[i], scores[kv_idx], p.scale, row.head, row.values, column, row.at.b, row.at.head, row.q_idx, kv_idx,
                      [&](int tensor, int, bool, int, float part) {
                          if (is_finite(part)) most[tensor] = fmaxf(most[tensor], fabsf(part));
                      });
#endif
#if ML_GRAD
            d_score[i] *= score_grad(row.mods, 0, scores[kv_idx], p.scale, row.head, row.values, column, row.at.b, row.at.head, row.q_idx,
                                     kv_idx);
#endif
        }
        *reinterpret_cast<u32 *>(e.d_scores + row.first + at) = pack16(d_score[0], d_score[1]);
    }
#if ML_CAPTURES
#pragma unroll
    for (int i = 0; i < ML_CAPTURES; ++i) {
        const float all = over_block(most[i], shared, [](float a, float b) { return fmaxf(a, b); });
        if (threadIdx.x == 0 && all > 0.0f) atomicMax(e.largest + i, __float_as_uint(all));
    }
#endif
}

#if ML_CAPTURES
extern "C" __global__ void __launch_bounds__(ROW_THREADS)
    eager_captures(const __grid_constant__ Params p, const __grid_constant__ Eager e, ML_MODS_PARAMETER) {
    __shared__ i64 shared[ROW_THREADS / 32];
    const Row row(p, ML_MODS);
    const float *scores = e.scores + row.first, *d_weights = e.d_weights + row.first;
    const float delta = e.deltas[i64(row.at.index) * p.q_len + row.q_idx];
    double factor[ML_CAPTURES];
#pragma unroll
    for (int i = 0; i < ML_CAPTURES; ++i) factor[i] = ldexp(1.0, shift_of(e.largest[i]));
    // of a read that is the same for the whole row, and where that is
    i64 own[ML_CAPTURE_READS] = {};
    int element[ML_CAPTURE_READS] = {};
    bool any = false;
    for (int kv_idx = threadIdx.x; kv_idx < p.kv_len; kv_idx += ROW_THREADS) {
        const ColumnValues column = row.column(kv_idx);
        const float d_score = passed_on(row.weight(column, kv_idx, scores[kv_idx]), d_weights[kv_idx], delta);
        if (d_score == 0.0f) continue;
        any = true;
        each_read(row.mods, d_score, scores[kv_idx], p.scale, row.head, row.values, column, row.at.b, row.at.head, row.q_idx, kv_idx,
                  [&](int tensor, int read, bool by_key, int place, float part) {
                      const i64 to = i64(e.places[tensor]) + place;
                      if (!is_finite(part)) {
                          // infinities and NaN come to the same in any order
                          atomicAdd(e.captured + to, part);
                          return;
                      }
                      const i64 whole = i64(rint(double(part) * factor[tensor]));
                      if (by_key) add_whole(e.sums + 2 * to, whole);
                      else own[read] += whole, element[read] = int(to);
                  });
    }
#pragma unroll
    for (int i = 0; i < ML_CAPTURE_READS; ++i) {
        const i64 all = over_block(own[i], shared, [](i64 a, i64 b) { return a + b; });
        const i64 to = over_block(i64(any ? element[i] : 0), shared, [](i64 a, i64 b) { return a > b ? a : b; });
        if (threadIdx.x == 0 && all != 0) add_whole(e.sums + 2 * to, all);
    }
}

extern "C" __global__ void __launch_bounds__(ROW_THREADS)
    eager_captured(const __grid_constant__ Params p, const __grid_constant__ Eager e) {
    for (int tensor = 0; tensor < ML_CAPTURES; ++tensor) {
        const int shift = shift_of(e.largest[tensor]);
        for (i64 at = i64(e.places[tensor]) + blockIdx.x * ROW_THREADS + threadIdx.x; at < e.places[tensor + 1];
             at += i64(gridDim.x) * ROW_THREADS) {
            const double high = ldexp(double(i64(e.sums[2 * at])), LOW - shift), low = ldexp(double(i64(e.sums[2 * at + 1])), -shift);
            e.captured[at] += float(high + low);
            e.sums[2 * at] = e.sums[2 * at + 1] = 0;
        }
    }
}
#endif
