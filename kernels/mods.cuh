// What emitted mods are written with: Python's floor division and modulo, bounded reads, functions with stated accuracy.

__device__ __forceinline__ int floor_div(int a, int b) {
    if (b == 0) return 0;
    int quotient = a / b;
    return quotient - int(a % b != 0 && ((a ^ b) < 0));
}

__device__ __forceinline__ int floor_mod(int a, int b) {
    if (b == 0) return 0;
    int rest = a % b;
    return rest + ((rest != 0 && ((rest ^ b) < 0)) ? b : 0);
}

__device__ __forceinline__ int trunc_div(int a, int b) { return b == 0 ? 0 : a / b; }

// Rounded step by step, as the host's: the compiler would fuse a product and a sum.
__device__ __forceinline__ float floor_div(float a, float b) {
    if (b == 0.0f) return __fdiv_rn(a, b);
    float rest = fmodf(a, b);
    float quotient = __fdiv_rn(__fsub_rn(a, rest), b);
    if (rest != 0.0f && ((b < 0.0f) != (rest < 0.0f))) quotient = __fsub_rn(quotient, 1.0f);
    if (quotient == 0.0f) return copysignf(0.0f, __fdiv_rn(a, b));
    float whole = floorf(quotient);
    return __fsub_rn(quotient, whole) > 0.5f ? __fadd_rn(whole, 1.0f) : whole;
}

__device__ __forceinline__ float floor_mod(float a, float b) {
    float rest = fmodf(a, b);
    return rest != 0.0f && ((b < 0.0f) != (rest < 0.0f)) ? __fadd_rn(rest, b) : rest;
}

__device__ __forceinline__ double floor_div(double a, double b) {
    if (b == 0.0) return a / b;
    double rest = fmod(a, b);
    double quotient = (a - rest) / b;
    if (rest != 0.0 && ((b < 0.0) != (rest < 0.0))) quotient -= 1.0;
    if (quotient == 0.0) return copysign(0.0, a / b);
    double whole = floor(quotient);
    return quotient - whole > 0.5 ? whole + 1.0 : whole;
}

__device__ __forceinline__ double floor_mod(double a, double b) {
    double rest = fmod(a, b);
    return rest != 0.0 && ((b < 0.0) != (rest < 0.0)) ? rest + b : rest;
}

__device__ __forceinline__ int trunc_mod(int a, int b) { return b == 0 ? 0 : a % b; }

// By squaring; a negative exponent leaves what truncation does.
__device__ __forceinline__ int int_pow(int base, int exponent) {
    if (exponent < 0) return base == 1 ? 1 : base == -1 ? 1 - 2 * (exponent & 1) : 0;
    u32 square = u32(base), power = 1;
    for (; exponent > 0; exponent >>= 1, square *= square)
        if (exponent & 1) power *= square;
    return int(power);
}

// minimum and maximum as torch has them: NaN wins.
__device__ __forceinline__ float nan_min(float a, float b) {
    return a != a ? a : (b != b ? b : fminf(a, b));
}
__device__ __forceinline__ float nan_max(float a, float b) {
    return a != a ? a : (b != b ? b : fmaxf(a, b));
}
__device__ __forceinline__ double nan_min(double a, double b) {
    return a != a ? a : (b != b ? b : fmin(a, b));
}
__device__ __forceinline__ double nan_max(double a, double b) {
    return a != a ? a : (b != b ? b : fmax(a, b));
}

// What a float16 and a bfloat16 keep of a float.
__device__ __forceinline__ float as_float16(float x) {
    u32 bits = __float_as_uint(x), sign = bits & 0x80000000u;
    float size = fabsf(x);
    if (!(size < 65520.0f)) return x != x ? x : __uint_as_float(sign | 0x7f800000u);
    if (size < 6.103515625e-05f) {
        // below the normal ones the step is 2^-24, as next to 0.5 in float32
        size = __fsub_rn(__fadd_rn(size, 0.5f), 0.5f);
        return __uint_as_float(sign | __float_as_uint(size));
    }
    bits += 0xfffu + (bits >> 13 & 1u);
    return __uint_as_float(bits & 0xffffe000u);
}
__device__ __forceinline__ float as_bfloat16(float x) {
    u32 bits = __float_as_uint(x);
    if (x != x) return x;
    return __uint_as_float((bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u);
}

// An amount outside the bits of an int64 shifts everything out; the host saw to it that what is left fits here.
__device__ __forceinline__ int shift_left(int a, int n) { return u32(n) < 32u ? int(u32(a) << n) : 0; }
__device__ __forceinline__ int shift_right(int a, int n) { return a >> (u32(n) < 32u ? n : 31); }

// Saturating, toward zero, 0 for NaN.
__device__ __forceinline__ int to_int(float x) { return int(x); }
__device__ __forceinline__ int to_int(double x) { return int(x); }
__device__ __forceinline__ int to_int(bool x) { return x ? 1 : 0; }

// The index rule of all backends: a negative index wraps once, then everything clamps into 0..n.
__device__ __forceinline__ int wrap(int index, int n) { return max(min(index < 0 ? index + n : index, n - 1), 0); }
// The same for an index that is never negative. An empty axis counts as one of an element: `ModsLayout::fill`.
__device__ __forceinline__ int inside(int index, int n) { return min(index, n - 1); }

__device__ __forceinline__ int load(const int *at) { return __ldg(at); }
__device__ __forceinline__ float load(const float *at) { return __ldg(at); }
__device__ __forceinline__ double load(const double *at) { return __ldg(at); }
__device__ __forceinline__ bool load(const u8 *at) { return __ldg(at) != 0; }

// A value that the compiler takes for another at every use.
__device__ __forceinline__ float fresh(float value) {
    asm volatile("" : "+f"(value));
    return value;
}

// A value that the compiler must not keep: what follows from it is computed again instead of held in a register.
__device__ __forceinline__ int forget(int value) {
    asm volatile("" : "+r"(value));
    return value;
}

// Groups of eight columns that a pass takes: `wanted` or the next smaller divisor of all there are.
constexpr int pass_of(int all, int wanted) {
    return wanted >= all ? all : all % wanted == 0 ? wanted : pass_of(all, wanted - 1);
}

// Calls `column(q_idx, kv_idx, n)` for the columns of a thread's scores, where score [m][n / 2][2 * r + n % 2] stands in
// column kv_idx and 8 * r below row q_idx. Where a heavy mod's text is to stand there for WANTED groups of columns only, a
// pass takes the foremost scores and these move on to the end, so that all are back in their places after the last:
// registers cannot be indexed.
template <int WANTED, int TILES, int GROUPS, class Column>
__device__ __forceinline__ void by_columns(float (&score)[TILES][GROUPS][4], int q_idx, int kv_idx, Column column) {
    constexpr int PASS = pass_of(GROUPS, WANTED);
#pragma unroll 1
    for (int first = 0; first < GROUPS; first += PASS, kv_idx += 8 * PASS) {
        // what rows need is made again in each pass
        int row = PASS == GROUPS ? q_idx : forget(q_idx);
#pragma unroll
        for (int n = 0; n < 2 * PASS; ++n) column(row, kv_idx + n / 2 * 8 + n % 2, n);
        if constexpr (PASS < GROUPS) {
#pragma unroll
            for (int m = 0; m < TILES; ++m)
#pragma unroll
                for (int c = 0; c < 4; ++c) {
                    float done[PASS];
#pragma unroll
                    for (int n = 0; n < PASS; ++n) done[n] = score[m][n][c];
#pragma unroll
                    for (int n = 0; n < GROUPS - PASS; ++n) score[m][n][c] = score[m][n + PASS][c];
#pragma unroll
                    for (int n = 0; n < PASS; ++n) score[m][GROUPS - PASS + n][c] = done[n];
                }
        }
    }
}

// The same for a score mod that is called: `cell(score, row, kv_idx, values)` stands there once, so that hardly a register has to
// outlive a call but scores and output; `row` counts a thread's rows, `values` are `column(kv_idx)`. Scores move on cell by cell.
template <int TILES, int GROUPS, class Column, class Cell>
__device__ __forceinline__ void by_cells(float (&score)[TILES][GROUPS][4], int kv_idx, Column column, Cell cell) {
#pragma unroll 1
    for (int i = 0; i < 2 * GROUPS; ++i) {
        int at = kv_idx + i / 2 * 8 + i % 2;
        auto values = column(at);
#pragma unroll 1
        for (int row = 0; row < 2 * TILES; ++row) {
            float done = cell(score[0][0][0], row, at, values);
#pragma unroll
            for (int m = 0; m < TILES; ++m) {
                score[m][0][0] = score[m][0][2];
                score[m][0][2] = m + 1 < TILES ? score[m + 1][0][0] : done;
            }
        }
#pragma unroll
        for (int m = 0; m < TILES; ++m)
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                float done = score[m][0][2 * r];
#pragma unroll
                for (int n = 0; n < GROUPS; ++n) {
                    score[m][n][2 * r] = score[m][n][2 * r + 1];
                    score[m][n][2 * r + 1] = n + 1 < GROUPS ? score[m][n + 1][2 * r] : done;
                }
            }
    }
}
// One of a thread's rows.
template <class Values, int TILES>
__device__ __forceinline__ Values of_row(const Values (&all)[TILES][2], int row) {
    Values own = all[0][0];
#pragma unroll
    for (int i = 1; i < 2 * TILES; ++i)
        if (row == i) own = all[i / 2][i % 2];
    return own;
}

// For scores: within a few units of the last place, one or two instructions of the special-function unit.
__device__ __forceinline__ float fast_exp(float x) { return exp2_fast(x * 1.4426950408889634f); }
__device__ __forceinline__ float fast_log(float x) { return log2_fast(x) * 0.6931471805599453f; }
__device__ __forceinline__ float fast_sigmoid(float x) { return reciprocal_fast(1.0f + fast_exp(-x)); }
// tanh(x * factor) * times; the tanh has an absolute error below 2e-7 by a reciprocal (way 0) and below 1.3e-6 by a polynomial
// (way 1): unlike tanh.approx both survive a soft cap's factor. `factor` and `times` are the same for all cells. With
// t = exp(-2 |x|) it is (1 - t) / (1 + t); the polynomial is 1 / (1 + t) on [0, 1], fitted to the smallest largest error.
__device__ __forceinline__ float fast_tanh(int way, float x, float factor, float times) {
    float doubled = x * (factor * 2.8853900817779268f);
#if ML_BOUNDED
    const float inside = times, outside = 1.0f;
#else
    const float inside = 1.0f, outside = times;  // `2 * times` would want a register that other kernels lack
#endif
    if (way == 0) return fmaf(-2.0f * inside, reciprocal_fast(1.0f + exp2_fast(doubled)), inside) * outside;
    float t = exp2_fast(-fabsf(doubled)), q = -5.223991069e-02f;
    q = fmaf(q, t, 2.567214580e-01f);
    q = fmaf(q, t, -5.807033702e-01f);
    q = fmaf(q, t, 8.467595308e-01f);
    q = fmaf(q, t, -9.670702293e-01f);
    q = fmaf(q, t, 9.963775670e-01f);
    q = fmaf(q, t, -9.998450450e-01f);
    q = fmaf(q, t, 9.999989056e-01f);
    q *= fmaf(-inside, t, inside);
    // the sign of x * factor
    return __uint_as_float(__float_as_uint(q) ^ (__float_as_uint(doubled) & 0x80000000u)) * outside;
}
__device__ __forceinline__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
__device__ __forceinline__ double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }
