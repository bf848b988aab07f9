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

// --- what a value is in a box of cells: from `lo` to `hi`, both included; a bool is 0 or 1 ---
struct Span {
    i64 lo, hi;
};
constexpr i64 LEAST = -0x7fffffffffffffffll - 1, GREATEST = 0x7fffffffffffffffll;

__device__ __forceinline__ Span span_of(i64 value) { return {value, value}; }
__device__ __forceinline__ Span maybe() { return {0, 1}; }
__device__ __forceinline__ Span anything() { return {LEAST, GREATEST}; }
__device__ __forceinline__ bool is_one(Span a) { return a.lo == a.hi; }
__device__ __forceinline__ Span span_truth(bool never, bool always) { return {always ? 1 : 0, never ? 0 : 1}; }
__device__ __forceinline__ Span span_inside(Span a, i64 lo, i64 hi) { return a.lo >= lo && a.hi <= hi ? a : anything(); }

__device__ __forceinline__ Span span_not(Span a) { return {1 - a.hi, 1 - a.lo}; }
__device__ __forceinline__ Span span_inverted(Span a) { return {~a.hi, ~a.lo}; }
__device__ __forceinline__ Span span_neg(Span a) { return a.lo == LEAST ? anything() : Span{-a.hi, -a.lo}; }
__device__ __forceinline__ Span span_abs(Span a) {
    if (a.lo == LEAST) return anything();
    const i64 lo = a.lo < 0 ? -a.lo : a.lo, hi = a.hi < 0 ? -a.hi : a.hi;
    return {a.lo <= 0 && a.hi >= 0 ? 0 : least(lo, hi), greatest(lo, hi)};
}
__device__ __forceinline__ Span span_bool(Span a) { return span_truth(a.lo == 0 && a.hi == 0, a.lo > 0 || a.hi < 0); }

__device__ __forceinline__ Span span_and(Span a, Span b) { return {a.lo & b.lo, a.hi & b.hi}; }
__device__ __forceinline__ Span span_or(Span a, Span b) { return {a.lo | b.lo, a.hi | b.hi}; }
__device__ __forceinline__ Span span_xor(Span a, Span b) { return is_one(a) && is_one(b) ? span_of(a.lo ^ b.lo) : maybe(); }
__device__ __forceinline__ Span span_lt(Span a, Span b) { return span_truth(a.lo >= b.hi, a.hi < b.lo); }
__device__ __forceinline__ Span span_le(Span a, Span b) { return span_truth(a.lo > b.hi, a.hi <= b.lo); }
__device__ __forceinline__ Span span_eq(Span a, Span b) {
    return span_truth(a.hi < b.lo || b.hi < a.lo, is_one(a) && is_one(b) && a.lo == b.lo);
}
__device__ __forceinline__ Span span_where(Span c, Span a, Span b) {
    return is_one(c) ? (c.lo ? a : b) : Span{least(a.lo, b.lo), greatest(a.hi, b.hi)};
}
__device__ __forceinline__ Span span_min(Span a, Span b) { return {least(a.lo, b.lo), least(a.hi, b.hi)}; }
__device__ __forceinline__ Span span_max(Span a, Span b) { return {greatest(a.lo, b.lo), greatest(a.hi, b.hi)}; }

// Where a sum or a product could leave int64 it may wrap to anything.
__device__ __forceinline__ bool is_small(Span a, i64 most) { return a.lo >= -most && a.hi <= most; }
__device__ __forceinline__ Span span_add(Span a, Span b) {
    const i64 half = GREATEST / 2;
    return is_small(a, half) && is_small(b, half) ? Span{a.lo + b.lo, a.hi + b.hi} : anything();
}
__device__ __forceinline__ Span span_sub(Span a, Span b) {
    const i64 half = GREATEST / 2;
    return is_small(a, half) && is_small(b, half) ? Span{a.lo - b.hi, a.hi - b.lo} : anything();
}
__device__ __forceinline__ Span span_mul(Span a, Span b) {
    const i64 root = 0x7fffffff;
    if (!is_small(a, root) || !is_small(b, root)) return anything();
    const i64 p = a.lo * b.lo, q = a.lo * b.hi, r = a.hi * b.lo, s = a.hi * b.hi;
    return {least(least(p, q), least(r, s)), greatest(greatest(p, q), greatest(r, s))};
}
__device__ __forceinline__ Span span_floor_div(Span a, Span b) {
    return is_one(b) && b.lo > 0 ? Span{floor_div(a.lo, b.lo), floor_div(a.hi, b.lo)} : anything();
}
__device__ __forceinline__ Span span_floor_mod(Span a, Span b) {
    if (!is_one(b) || b.lo <= 0) return anything();
    if (floor_div(a.lo, b.lo) != floor_div(a.hi, b.lo)) return {0, b.lo - 1};
    return {floor_mod(a.lo, b.lo), floor_mod(a.hi, b.lo)};
}
