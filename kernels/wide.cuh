// Masks whose ints have 64 bits: what emitted mods are written with besides mods.cuh. The host knows no value of a tensor there, so that no
// range says what fits into 32 bits; int64 wraps as PyTorch's does. Behind mods.cuh.

__device__ __forceinline__ i64 floor_div(i64 a, i64 b) {
    if (b == 0) return 0;
    if (b == -1) return i64(0 - u64(a));
    i64 quotient = a / b;
    return quotient - i64(a % b != 0 && ((a ^ b) < 0));
}
__device__ __forceinline__ i64 floor_mod(i64 a, i64 b) {
    if (b == 0 || b == -1) return 0;
    i64 rest = a % b;
    return rest + ((rest != 0 && ((rest ^ b) < 0)) ? b : 0);
}
__device__ __forceinline__ i64 trunc_div(i64 a, i64 b) {
    return b == 0 ? 0 : b == -1 ? i64(0 - u64(a)) : a / b;
}
__device__ __forceinline__ i64 trunc_mod(i64 a, i64 b) { return b == 0 || b == -1 ? 0 : a % b; }
__device__ __forceinline__ i64 least(i64 a, i64 b) { return a < b ? a : b; }
__device__ __forceinline__ i64 greatest(i64 a, i64 b) { return a < b ? b : a; }

// The index rule of mods.cuh.
__device__ __forceinline__ i64 wrap(i64 index, int n) {
    return greatest(least(index < 0 ? index + n : index, i64(n) - 1), 0);
}
__device__ __forceinline__ i64 inside(i64 index, int n) { return least(index, i64(n) - 1); }
__device__ __forceinline__ i64 load(const i64 *at) { return __ldg(at); }
