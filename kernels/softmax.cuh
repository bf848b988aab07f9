// Online softmax over accumulator fragments: each thread holds rows lane/4 and lane/4 + 8 of every 16-row tile.
// The running maximum may lag by up to 2^LAG, so that most tiles rescale nothing; the result is the same, because sum
// and output carry the same factor. Rows that have kept nothing yet have maximum -inf and count as 0. With ML_MAX_SCORES,
// where it is an output, the maximum does not lag.

template <int TILES> struct Softmax {
    static constexpr float LAG = 8.0f;
    float maximum[TILES][2];  // in units of the scores
    float sum[TILES][2];      // this thread's columns only, until finish()

    __device__ __forceinline__ Softmax() {
#pragma unroll
        for (int m = 0; m < TILES; ++m)
#pragma unroll
            for (int r = 0; r < 2; ++r) maximum[m][r] = negative_infinity(), sum[m][r] = 0.0f;
    }

    // Scores become exp2((score - maximum) * to_log2); sums and `out` follow the maximum.
    template <int COLUMNS, int OUT>
    __device__ __forceinline__ void step(float (&score)[TILES][COLUMNS][4], float (&out)[TILES][OUT][4], float to_log2) {
        float wanted[TILES][2];
        bool lagging = false;
#pragma unroll
        for (int m = 0; m < TILES; ++m)
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                float top = larger(score[m][0][2 * r], score[m][0][2 * r + 1]);
#pragma unroll
                for (int n = 1; n < COLUMNS; ++n) top = larger(top, larger(score[m][n][2 * r], score[m][n][2 * r + 1]));
                top = larger(top, __shfl_xor_sync(0xffffffff, top, 1));
                top = larger(top, __shfl_xor_sync(0xffffffff, top, 2));
                wanted[m][r] = larger(top, maximum[m][r]);
#if ML_MAX_SCORES
                lagging |= wanted[m][r] != maximum[m][r];
#else
                lagging |= (wanted[m][r] - maximum[m][r]) * to_log2 > LAG;
#endif
            }
        if (__any_sync(0xffffffff, lagging)) raise(wanted, out, to_log2);
#pragma unroll
        for (int m = 0; m < TILES; ++m)
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                float base = maximum[m][r] == negative_infinity() ? 0.0f : maximum[m][r] * to_log2;
                float added = 0.0f;
#pragma unroll
                for (int n = 0; n < COLUMNS; ++n)
#pragma unroll
                    for (int c = 2 * r; c < 2 * r + 2; ++c) {
                        score[m][n][c] = exp2_fast(fmaf(score[m][n][c], to_log2, -base));
                        added += score[m][n][c];
                    }
                sum[m][r] += added;
            }
    }

    template <int OUT>
    __device__ __forceinline__ void raise(float (&wanted)[TILES][2], float (&out)[TILES][OUT][4], float to_log2) {
#pragma unroll
        for (int m = 0; m < TILES; ++m)
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                // both -inf: nothing kept yet, nothing to rescale
                float factor = wanted[m][r] == maximum[m][r] ? 1.0f
                                                             : exp2_fast((maximum[m][r] - wanted[m][r]) * to_log2);
                maximum[m][r] = wanted[m][r];
                sum[m][r] *= factor;
#pragma unroll
                for (int n = 0; n < OUT; ++n) out[m][n][2 * r] *= factor, out[m][n][2 * r + 1] *= factor;
            }
    }

    // Adds the sums of the four threads that share a row.
    __device__ __forceinline__ void finish() {
#pragma unroll
        for (int m = 0; m < TILES; ++m)
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                sum[m][r] += __shfl_xor_sync(0xffffffff, sum[m][r], 1);
                sum[m][r] += __shfl_xor_sync(0xffffffff, sum[m][r], 2);
            }
    }
    // 0 for a row that kept nothing; NaN stays NaN.
    __device__ __forceinline__ float inverse(int m, int r) const { return sum[m][r] == 0.0f ? 0.0f : 1.0f / sum[m][r]; }
    __device__ __forceinline__ float lse(int m, int r, float to_log2) const {
        if (sum[m][r] == 0.0f) return negative_infinity();
        return maximum[m][r] * to_log2 * 0.6931471805599453f + logf(sum[m][r]);
    }
#if ML_MAX_SCORES
    // The largest score; where the scale is folded into the exponent, `maximum` lacks it.
    __device__ __forceinline__ float largest(int m, int r, float scale) const {
        return ML_SCORE == 0 ? maximum[m][r] * scale : maximum[m][r];
    }
#endif
};
