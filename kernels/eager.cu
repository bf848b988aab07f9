// Attention as it is written down: scores to memory, softmax over rows, probabilities times values. Every cell is
// computed. Scores are f32, probabilities 16-bit behind them in p.scratch, for p.section (batch, head) pairs from p.first.

constexpr int SOFTMAX_THREADS = 256;

__device__ __forceinline__ i64 pitch(const Params &p) { return round_up(p.kv_len, TILE_KV); }
__device__ __forceinline__ float *score_rows(const Params &p) { return static_cast<float *>(p.scratch); }
__device__ __forceinline__ u16 *probability_rows(const Params &p) {
    return reinterpret_cast<u16 *>(score_rows(p) + i64(p.section) * p.q_len * pitch(p));
}

__device__ __forceinline__ Block block_of(const Params &p, const Mods &mods, u8 *smem, int tile, int pair) {
    Place place{(p.first + pair) / p.heads, (p.first + pair) % p.heads, tile, 0};
    u32 base = shared_address(smem);
    int kv_head = place.h / p.group, thread = threadIdx.x;
    return Block{p, mods, place, kv_head, base, base + Q_BYTES, base + Q_BYTES + STAGES * K_BYTES,
                 thread, thread % 32, thread / 32};
}

// grid: kv tiles, query tiles, pairs
extern "C" __global__ void __launch_bounds__(THREADS) eager_scores(const __grid_constant__ Params p, ML_MODS_PARAMETER) {
    extern __shared__ __align__(128) u8 smem[];
    int tile = blockIdx.x;
    Block block = block_of(p, ML_MODS, smem, blockIdx.y, blockIdx.z);
    int first = block.place.tile * TILE_Q;
    load_tile<TILE_Q, HEAD_DIM, THREADS>(block.q_smem,
                                         p.q + block.place.b * p.q_b + block.place.h * p.q_h + i64(first) * p.q_s, int(p.q_s),
                                         p.q_len - first, block.thread);
    block.load_k(tile, 0);
    copy_commit();
    copy_wait_all();
    __syncthreads();
    float s[M_TILES][2 * KV_PAIRS][4];
    scores(block, 0, s);
    u32 no_bitmaps = 0;
    apply_mods(block, Ahead(block), tile, false, no_bitmaps, s);
    float *rows = score_rows(p) + i64(blockIdx.z) * p.q_len * pitch(p);
#pragma unroll
    for (int m = 0; m < M_TILES; ++m)
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            int q_idx = block.row_of(m) + r * 8;
            if (q_idx >= p.q_len) continue;
            float *row = rows + q_idx * pitch(p) + tile * TILE_KV + block.lane % 4 * 2;
#pragma unroll
            for (int n = 0; n < 2 * KV_PAIRS; ++n) {
                row[n * 8] = s[m][n][2 * r];
                row[n * 8 + 1] = s[m][n][2 * r + 1];
            }
        }
}

template <bool MAXIMUM> __device__ __forceinline__ float reduce(float value, float *shared) {
    auto join = [](float a, float b) { return MAXIMUM ? larger(a, b) : a + b; };
    for (int step = 16; step > 0; step /= 2) value = join(value, __shfl_xor_sync(0xffffffff, value, step));
    __syncthreads();
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
    __syncthreads();
    value = shared[0];
    for (int warp = 1; warp < SOFTMAX_THREADS / 32; ++warp) value = join(value, shared[warp]);
    return value;
}

// grid: query rows, pairs
extern "C" __global__ void __launch_bounds__(SOFTMAX_THREADS) eager_softmax(const __grid_constant__ Params p) {
    __shared__ float shared[SOFTMAX_THREADS / 32];
    i64 row = i64(blockIdx.y) * p.q_len + blockIdx.x, width = pitch(p);
    const float *score = score_rows(p) + row * width;
    u16 *probability = probability_rows(p) + row * width;
    float maximum = negative_infinity(), sum = 0.0f;
    for (int at = threadIdx.x; at < width; at += SOFTMAX_THREADS) maximum = larger(maximum, score[at]);
    maximum = reduce<true>(maximum, shared);
    float base = maximum == negative_infinity() ? 0.0f : maximum;
    for (int at = threadIdx.x; at < width; at += SOFTMAX_THREADS) sum += fast_exp(score[at] - base);
    sum = reduce<false>(sum, shared);
    float inverse = sum == 0.0f ? 0.0f : 1.0f / sum;
    for (int at = threadIdx.x * 2; at < width; at += SOFTMAX_THREADS * 2) {
        u32 pair = pack16(fast_exp(score[at] - base) * inverse, fast_exp(score[at + 1] - base) * inverse);
        *reinterpret_cast<u32 *>(probability + at) = pair;
    }
    if (threadIdx.x == 0)
        p.lse[(i64(p.first) + blockIdx.y) * p.q_len + blockIdx.x] =
            sum == 0.0f ? negative_infinity() : maximum + logf(sum);
#if ML_MAX_SCORES
    if (threadIdx.x == 0) p.max_scores[(i64(p.first) + blockIdx.y) * p.q_len + blockIdx.x] = maximum;
#endif
}

// grid: query tiles, pairs
extern "C" __global__ void __launch_bounds__(THREADS) eager_values(const __grid_constant__ Params p, ML_MODS_PARAMETER) {
    extern __shared__ __align__(128) u8 smem[];
    Block block = block_of(p, ML_MODS, smem, blockIdx.x, blockIdx.y);
    const u16 *rows = probability_rows(p) + i64(blockIdx.y) * p.q_len * pitch(p);
    float out[M_TILES][2 * OUT_PAIRS][4] = {};
    u32 v_at = block.v_smem + b_transposed_lane<V_PITCH>(block.lane);
    for (int tile = 0; tile < pitch(p) / TILE_KV; ++tile) {
        __syncthreads();
        block.load_v(tile, 0);
        copy_commit();
        copy_wait_all();
        __syncthreads();
#pragma unroll
        for (int step = 0; step < KV_PAIRS; ++step) {
            u32 a[M_TILES][4];
#pragma unroll
            for (int m = 0; m < M_TILES; ++m)
#pragma unroll
                for (int c = 0; c < 4; ++c) {
                    int q_idx = min(block.row_of(m) + c % 2 * 8, p.q_len - 1);
                    int column = tile * TILE_KV + step * 16 + c / 2 * 8 + block.lane % 4 * 2;
                    a[m][c] = *reinterpret_cast<const u32 *>(rows + q_idx * pitch(p) + column);
                }
#pragma unroll
            for (int n = 0; n < OUT_PAIRS; ++n) {
                u32 b[4];
                ldmatrix_transposed(b, v_at + step * 16 * V_PITCH + n * 32);
#pragma unroll
                for (int m = 0; m < M_TILES; ++m) {
                    mma(out[m][2 * n], a[m], b[0], b[1]);
                    mma(out[m][2 * n + 1], a[m], b[2], b[3]);
                }
            }
        }
    }
    store(block, out);
}
