// One head's scores or probabilities, pooled to a picture: what attention_map.rs computes on the processor, in the same order.
// A block takes a line of pixels at a time: it computes ROWS query rows over all keys in float32, because softmax wants whole
// rows, keeps them in memory of its own, and adds up the keys of each pixel. Never fast enough to be timed, fast enough to drag.
// The host defines ML_BF16, ML_HEAD_DIM, ML_HAS_MASK and ML_HAS_SCORE.

constexpr int HEAD_DIM = ML_HEAD_DIM, CHUNKS = (HEAD_DIM + 7) / 8, THREADS = 256, WARPS = THREADS / 32, ROWS = 8;

// Mirrored byte for byte by `map.rs` on the host.
struct Picture {
    const u16 *q;    // [q_len][CHUNKS * 8], of this head; padded with zeros
    const u16 *k;    // [kv_len][CHUNKS * 8], likewise
    float *scores;   // [blocks][ROWS][kv_len]
    float *pixels;   // [height][width], zeros before the launch
    u32 *kept;       // the same: cells of a pixel that are not -inf
    int b, h, kv_len;
    int height, width;
    int q_start, q_end, kv_start, kv_end;  // what is shown, in tokens
    int most;                              // rows of a line that are looked at
    int probabilities;                     // 0: the mean of scores, 1: the sum of probabilities
    float scale;
};

// First token of pixel `at` of `parts` over a range.
__device__ __forceinline__ int edge(int start, int end, int at, int parts) {
    return start + int(i64(at) * (end - start) / parts);
}

template <class Join> __device__ __forceinline__ float reduce(float value, float *shared, Join join) {
    for (int step = 16; step > 0; step /= 2) value = join(value, __shfl_xor_sync(0xffffffff, value, step));
    __syncthreads();
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
    __syncthreads();
    value = shared[0];
    for (int warp = 1; warp < WARPS; ++warp) value = join(value, shared[warp]);
    return value;
}

// Products of a batch of rows with every key. Rows beyond the last are zeros, and nobody looks at them.
__device__ __forceinline__ void products(const Picture &x, const float (&q)[ROWS][CHUNKS * 8], float *scores) {
    for (int kv = threadIdx.x; kv < x.kv_len; kv += THREADS) {
        const Chunk *from = reinterpret_cast<const Chunk *>(x.k + i64(kv) * (CHUNKS * 8));
        float sum[ROWS] = {};
#pragma unroll 2
        for (int chunk = 0; chunk < CHUNKS; ++chunk) {
            Chunk packed = from[chunk];
            const u32 words[4] = {packed.x, packed.y, packed.z, packed.w};
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                float value = unpack16(u16(words[i / 2] >> (i % 2 * 16)));
#pragma unroll
                for (int r = 0; r < ROWS; ++r) sum[r] = fmaf(q[r][chunk * 8 + i], value, sum[r]);
            }
        }
#pragma unroll
        for (int r = 0; r < ROWS; ++r) scores[i64(r) * x.kv_len + kv] = sum[r];
    }
}

// Products of one row become scores; their largest, NaN passed by. A thread meets the keys that it has multiplied.
__device__ __forceinline__ float score(const Picture &x, const Mods &mods, const HeadValues &head, int q_idx, float *row) {
    const RowValues values = row_values(mods, head, x.b, x.h, q_idx);
    float top = negative_infinity();
#pragma unroll 1
    for (int kv = threadIdx.x; kv < x.kv_len; kv += THREADS) {
        float score = row[kv];
#if ML_HAS_SCORE || ML_HAS_MASK
        const ColumnValues column = column_values(mods, head, x.b, x.h, kv);
#endif
#if ML_HAS_SCORE
        score = score_mod(mods, 0, score, x.scale, head, values, column, x.b, x.h, q_idx, kv);
#else
        score *= x.scale;
#endif
#if ML_HAS_MASK
        if (!mask_mod(mods, head, values, column, x.b, x.h, q_idx, kv)) score = negative_infinity();
#endif
        row[kv] = score;
        top = fmaxf(top, score);
    }
    return top;
}

// Adds a row's keys to the line's pixels, a warp a pixel.
__device__ __forceinline__ void pool(const Picture &x, const float *row, int line) {
    for (int column = threadIdx.x / 32; column < x.width; column += WARPS) {
        int first = edge(x.kv_start, x.kv_end, column, x.width), past = edge(x.kv_start, x.kv_end, column + 1, x.width);
        float sum = 0.0f;
        int kept = 0;
        for (int kv = first + threadIdx.x % 32; kv < past; kv += 32)
            if (row[kv] != negative_infinity()) sum += row[kv], ++kept;
        for (int step = 16; step > 0; step /= 2) {
            sum += __shfl_xor_sync(0xffffffff, sum, step);
            kept += __shfl_xor_sync(0xffffffff, kept, step);
        }
        if (threadIdx.x % 32 == 0) {
            i64 at = i64(line) * x.width + column;
            x.pixels[at] += sum;
            x.kept[at] += kept;
        }
    }
}

// Sums become what is shown. Lines whose rows keep nothing at all are NaN.
__device__ __forceinline__ void finish(const Picture &x, int line, int rows, float weight) {
    __syncthreads();
    for (int column = threadIdx.x; column < x.width; column += THREADS) {
        i64 at = i64(line) * x.width + column;
        float sum = x.pixels[at], shown = x.probabilities ? sum * weight : sum / float(x.kept[at]);
        if (x.kept[at] == 0) shown = negative_infinity();
        x.pixels[at] = rows == 0 ? __int_as_float(0x7fffffff) : shown;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) map_pixels(const __grid_constant__ Picture x, ML_MODS_PARAMETER) {
    __shared__ float q[ROWS][CHUNKS * 8], shared[WARPS];
    const Mods &mods = ML_MODS;
    const HeadValues head = head_values(mods, x.b, x.h);
    float *scores = x.scores + i64(blockIdx.x) * ROWS * x.kv_len;
    for (int line = blockIdx.x; line < x.height; line += gridDim.x) {
        int first = edge(x.q_start, x.q_end, line, x.height), all = edge(x.q_start, x.q_end, line + 1, x.height) - first;
        int shown = min(all, x.most), rows = 0;
        // evenly spread rows stand for all
        auto row_of = [&](int i) { return first + int((2 * i64(i) + 1) * all / (2 * shown)); };
        for (int batch = 0; batch < shown; batch += ROWS) {
            __syncthreads();  // every warp has left the rows before
            for (int at = threadIdx.x; at < ROWS * CHUNKS * 8; at += THREADS) {
                int r = at / (CHUNKS * 8), d = at % (CHUNKS * 8);
                q[r][d] = batch + r < shown ? unpack16(x.q[i64(row_of(batch + r)) * (CHUNKS * 8) + d]) : 0.0f;
            }
            __syncthreads();
            products(x, q, scores);
#pragma unroll 1
            for (int r = 0; r < min(ROWS, shown - batch); ++r) {
                float *row = scores + i64(r) * x.kv_len;
                float top = score(x, mods, head, row_of(batch + r), row);
                top = reduce(top, shared, [](float a, float b) { return fmaxf(a, b); });
                if (top == negative_infinity()) continue;
                ++rows;
                if (x.probabilities) {
                    float total = 0.0f;
                    // what is masked stays minus infinity: a kept key may come to zero as well
                    for (int kv = threadIdx.x; kv < x.kv_len; kv += THREADS)
                        if (row[kv] != negative_infinity()) total += row[kv] = fast_exp(row[kv] - top);
                    total = reduce(total, shared, [](float a, float b) { return a + b; });
                    for (int kv = threadIdx.x; kv < x.kv_len; kv += THREADS) row[kv] /= total;
                }
                __syncthreads();
                pool(x, row, line);
            }
        }
        finish(x, line, rows, float(all) / float(max(shown, 1)));
    }
}
