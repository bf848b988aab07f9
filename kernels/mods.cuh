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

__device__ __forceinline__ float floor_div(float a, float b) {
    float rest = fmodf(a, b);
    float quotient = (a - rest) / b;
    if (rest != 0.0f && ((b < 0.0f) != (rest < 0.0f))) quotient -= 1.0f;
    float whole = floorf(quotient);
    return quotient - whole > 0.5f ? whole + 1.0f : whole;
}

__device__ __forceinline__ float floor_mod(float a, float b) {
    float rest = fmodf(a, b);
    return rest != 0.0f && ((b < 0.0f) != (rest < 0.0f)) ? rest + b : rest;
}

// minimum and maximum as torch has them: NaN wins.
__device__ __forceinline__ float nan_min(float a, float b) {
    return a != a ? a : (b != b ? b : fminf(a, b));
}
__device__ __forceinline__ float nan_max(float a, float b) {
    return a != a ? a : (b != b ? b : fmaxf(a, b));
}

__device__ __forceinline__ int shift_amount(int n) { return min(max(n, 0), 31); }
__device__ __forceinline__ int shift_left(int a, int n) { return int(u32(a) << shift_amount(n)); }
__device__ __forceinline__ int shift_right(int a, int n) { return a >> shift_amount(n); }

// Saturating, toward zero, 0 for NaN.
__device__ __forceinline__ int to_int(float x) { return int(x); }
__device__ __forceinline__ int to_int(bool x) { return x ? 1 : 0; }

// The index rule of all backends: a negative index wraps once, then everything clamps into 0..n.
__device__ __forceinline__ int wrap(int index, int n) { return max(min(index < 0 ? index + n : index, n - 1), 0); }

__device__ __forceinline__ int load(const int *at) { return __ldg(at); }
__device__ __forceinline__ float load(const float *at) { return __ldg(at); }
__device__ __forceinline__ bool load(const u8 *at) { return __ldg(at) != 0; }

// A value that the compiler takes for another at every use.
__device__ __forceinline__ float fresh(float value) {
    asm volatile("" : "+f"(value));
    return value;
}

// For scores: within a few units of the last place, one or two instructions of the special-function unit.
__device__ __forceinline__ float fast_exp(float x) { return exp2_fast(x * 1.4426950408889634f); }
__device__ __forceinline__ float fast_log(float x) { return log2_fast(x) * 0.6931471805599453f; }
__device__ __forceinline__ float fast_sigmoid(float x) { return reciprocal_fast(1.0f + fast_exp(-x)); }
// tanh(x * factor), with an absolute error below 2e-7 by a reciprocal (way 0) and below 1.3e-6 by a polynomial (way 1):
// unlike tanh.approx both survive a soft cap's factor. `factor` is the same for all cells. With t = exp(-2 |x|) it is
// (1 - t) / (1 + t); the polynomial is 1 / (1 + t) on [0, 1], fitted to the smallest largest error.
__device__ __forceinline__ float fast_tanh(int way, float x, float factor) {
    float doubled = x * (factor * 2.8853900817779268f);
    if (way == 0) return fmaf(-2.0f, reciprocal_fast(1.0f + exp2_fast(doubled)), 1.0f);
    float t = exp2_fast(-fabsf(doubled)), q = -5.223991069e-02f;
    q = fmaf(q, t, 2.567214580e-01f);
    q = fmaf(q, t, -5.807033702e-01f);
    q = fmaf(q, t, 8.467595308e-01f);
    q = fmaf(q, t, -9.670702293e-01f);
    q = fmaf(q, t, 9.963775670e-01f);
    q = fmaf(q, t, -9.998450450e-01f);
    q = fmaf(q, t, 9.999989056e-01f);
    return copysignf((1.0f - t) * q, doubled);
}
__device__ __forceinline__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
