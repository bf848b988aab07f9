// Sums of floats that have the same bits in any order of addition: gradients of captured tensors with ML_DETERMINISTIC. A float is m 2^(x - 149),
// m of 24 bits. It goes as a whole number into one of the 32 bins of its element: bin x / 8, m 2^(x % 8). A number stays below 2^31, so that a
// bin holds 2^32 of them; the host refuses more. Infinities and NaN come to the same in any order and are added as floats.
// What is added must itself be the same in every run: a thread's sums follow from its item, head and tile alone, which one block walks in one order.
// Must not know attention. The host zeroes both arrays before the launches, and `backward_captured` makes the gradient of them afterwards.

constexpr int BINS = 32;

struct BinSums {
    float *total;  // [count]: the gradient
    u64 *bins;     // [BINS][count], signed; not read where every element is written by one cell
    u64 count;     // elements, below 2^31
};

// Adds to an element.
__device__ __forceinline__ void add_to_element(const BinSums &sums, int element, float part) {
    const u32 bits = __float_as_uint(part), exponent = bits >> 23 & 0xff;
    if (exponent == 0xff) {
        atomicAdd(sums.total + element, part);
        return;
    }
    // the smallest normal numbers and all below them have steps of 2^-149
    const u32 x = exponent == 0 ? 0 : exponent - 1;
    const u32 m = (bits & 0x7fffff) | (exponent == 0 ? 0 : 0x800000);
    const int whole = int(m << (x % 8)), with_sign = int(bits) < 0 ? -whole : whole;
    atomicAdd(sums.bins + (u64(x / 8) * u32(sums.count) + u32(element)), u64(i64(with_sign)));
}

// The sum of an element's bins, rounded once.
__device__ __forceinline__ float sum_of_bins(const BinSums &sums, int element) {
    i64 bin[BINS];
#pragma unroll
    for (int i = 0; i < BINS; ++i) bin[i] = i64(sums.bins[u64(i) * u32(sums.count) + u32(element)]);
    // what a bin has above its eight bits belongs to the next one; the sign is that of what is left above the last
    auto carry = [](i64 own, i64 below, u32 &digit) {
        const i64 low = (own & 255) + below;
        digit = u32(low & 255);
        return (own >> 8) + (low >> 8);
    };
    i64 above = 0;
    u32 digit;
#pragma unroll
    for (int i = 0; i < BINS; ++i) above = carry(bin[i], above, digit);
    const bool negative = above < 0;
    // the seven bytes up to the highest that is not 0, and whether anything is below them
    u64 window = 0, found = 0;
    bool rest = false, found_rest = false;
    int at = 0, found_at = 0;
    auto take = [&](u32 byte) {
        rest = rest || (window & 255) != 0;
        window = window >> 8 | u64(byte) << 48;
        if (byte != 0) found = window, found_rest = rest, found_at = at;
        ++at;
    };
    above = 0;
#pragma unroll
    for (int i = 0; i < BINS; ++i) {
        above = carry(negative ? -bin[i] : bin[i], above, digit);
        take(digit);
    }
#pragma unroll
    for (int i = 0; i < 7; ++i) take(u32(above >> (8 * i) & 255));
    // of 49 bits or more, of which the last says that there are more: rounding them is rounding the sum
    const double size = ldexp(double(float(found | u64(found_rest))), 8 * (found_at - 6) - 149);
    return float(negative ? -size : size);
}
