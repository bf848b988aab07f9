// Gradients of captured tensors that a cell reads more often than a thread has registers for the sums, as a dot product over captured
// vectors does. Reads that are alike are a family: a loop takes them one after the other, each for all cells of a tile at once, so
// that one read's sums live at a time. Stands before the mods, with ML_FAMILIES 1. Must not know them.
// `d_score`: as in captures.cuh, of the cells of a thread as cells.cuh numbers them. `first`, `key`: the thread's first query and key. The
// derivative of a read by query follows the key alone, that of a read by key the query alone.

// What a cell adds: where the mask drops it nothing, even if the derivative is infinite or NaN. Without CARE that is NaN.
template <bool CARE> __device__ __forceinline__ float family_part(float d_score, float by) {
    return CARE && d_score == 0.0f ? 0.0f : d_score * by;
}

// Half of the values go to the lane that differs by a bit, the other half comes from there.
template <int HALF> __device__ __forceinline__ void sum_halves(float (&value)[M / 4], int bit) {
    const bool upper = threadIdx.x & bit;
#pragma unroll
    for (int n = 0; n < HALF; ++n) {
        const float kept = upper ? value[n + HALF] : value[n], sent = upper ? value[n] : value[n + HALF];
        value[n] = kept + __shfl_xor_sync(0xffffffff, sent, bit);
    }
}

// Of a thread's queries, 2 j + e, the sums over the warp's keys: lane 4 i + t is left with M / 32 of them, from i M / 32 on.
template <bool CARE>
__device__ __forceinline__ void sum_family_queries(float (&sum)[M / 4], const float (&d_score)[M / 2], const float (&by)[2]) {
#pragma unroll
    for (int n = 0; n < M / 4; ++n) sum[n] = 0.0f;
#pragma unroll
    for (int n = 0; n < M / 2; ++n) sum[n / 4 * 2 + n % 2] += family_part<CARE>(d_score[n], by[n / 2 % 2]);
    sum_halves<M / 8>(sum, 16), sum_halves<M / 16>(sum, 8), sum_halves<M / 32>(sum, 4);
}

// The sum over the queries of key r, for the lanes whose lowest bit is r.
template <bool CARE> __device__ __forceinline__ float sum_family_keys(const float (&d_score)[M / 2], const float (&by)[M / 4]) {
    float sum[2] = {0.0f, 0.0f};
#pragma unroll
    for (int n = 0; n < M / 2; ++n) sum[n / 2 % 2] += family_part<CARE>(d_score[n], by[n / 4 * 2 + n % 2]);
    const bool odd = threadIdx.x & 1;
    const float own = (odd ? sum[1] : sum[0]) + __shfl_xor_sync(0xffffffff, odd ? sum[0] : sum[1], 1);
    return own + __shfl_xor_sync(0xffffffff, own, 2);
}

// `by(i, kv_idx)` is the derivative of read i, `add(i, q_idx, sum)` adds to its gradient.
template <class By, class Add>
__device__ __forceinline__ void add_by_query(int reads, const float (&d_score)[M / 2], int first, int key, int q_len, By by, Add add) {
    constexpr int OWN = M / 32;
#pragma unroll 1
    for (int i = 0; i < reads; ++i) {
        const float of_key[2] = {by(i, key), by(i, key + 8)};
        float sum[M / 4];
        sum_family_queries<false>(sum, d_score, of_key);
        bool broken = false;
#pragma unroll
        for (int n = 0; n < OWN; ++n) broken |= sum[n] != sum[n];
        if (__any_sync(0xffffffff, broken)) sum_family_queries<true>(sum, d_score, of_key);
#pragma unroll
        for (int n = 0; n < OWN; ++n) {
            const int at = threadIdx.x % 32 / 4 * OWN + n, q_idx = first + at / 2 * 8 + at % 2;
            if (sum[n] != 0.0f && q_idx < q_len) add(i, q_idx, sum[n]);
        }
    }
}

// `by(i, q_idx)` is the derivative of read i, `add(i, kv_idx, sum)` adds to its gradient.
template <class By, class Add>
__device__ __forceinline__ void add_by_key(int reads, const float (&d_score)[M / 2], int first, int key, int kv_len, By by, Add add) {
    const int kv_idx = key + 8 * (threadIdx.x & 1);
#pragma unroll 1
    for (int i = 0; i < reads; ++i) {
        float of_query[M / 4];
#pragma unroll
        for (int n = 0; n < M / 4; ++n) of_query[n] = by(i, first + n / 2 * 8 + n % 2);
        float sum = sum_family_keys<false>(d_score, of_query);
        if (__any_sync(0xffffffff, sum != sum)) sum = sum_family_keys<true>(d_score, of_query);
        if (!(threadIdx.x & 2) && sum != 0.0f && kv_idx < kv_len) add(i, kv_idx, sum);
    }
}
