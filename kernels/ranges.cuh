// Bits of a partial tile, made of the range of keys that a row keeps (ML_MASK 5). Must not know kernels.

// How many of a thread's columns `8j + e` (e is 0 or 1) lie below `end`, as that many lowest bits of a word.
__device__ __forceinline__ u32 bits_below(int end) {
    int whole = max(end, 0) / 8, rest = min(max(end, 0) % 8, 2);
    return u32((u64(1) << min(2 * whole + rest, 32)) - 1);
}

// What a row keeps: bit 2j + e of the columns 8j + e right of the thread's first key.
__device__ __forceinline__ u32 bits_of_range(const u32 *range, int first_key) {
    u64 ends = __ldg(reinterpret_cast<const u64 *>(range));
    return bits_below(int(ends >> 32) - first_key) & ~bits_below(int(u32(ends)) - first_key);
}
