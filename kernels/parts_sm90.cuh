// Sums of dk or dv that the parts of an item add up in global memory (Part of backward.cuh), in the order of fragments, and which part is the last
// to do so. A part that waits for those before it waits for earlier units. Each warpgroup has sums and a count of its own. Must not know
// what is summed.

// Sums of a warpgroup: of its keys' dk and dv, in the wide kernel of one of them.
constexpr int PART_SUMS = N == 64 ? N * (QK > VW ? QK : VW) : N * (QK + VW) / GROUPS;

// Which of all warpgroups' sums and counts the parts of this ticket's item share.
__device__ __forceinline__ u32 part_slot(const Stage &s, int k, int group) { return GROUPS * s.ticket(k, ticket::SLOT) + group; }

template <int COUNT> __device__ __forceinline__ void add_sums(float *to, const float (&sum)[COUNT], int thread) {
#pragma unroll
    for (int i = 0; i < COUNT / 4; ++i) add_to_global<128>(to + i * 512, thread, sum[4 * i], sum[4 * i + 1], sum[4 * i + 2], sum[4 * i + 3]);
}

template <int COUNT> __device__ __forceinline__ void take_sums(float (&sum)[COUNT], const float *from, int thread) {
#pragma unroll
    for (int i = 0; i < COUNT / 4; ++i) {
        float four[4];
        load_left(four, from + i * 512 + 4 * thread);
#pragma unroll
        for (int e = 0; e < 4; ++e) sum[4 * i + e] = four[e];
    }
}

// When this warpgroup has added its sums: whether all parts of the item have. Then they can be taken.
__device__ __forceinline__ bool is_last_part(const Params &p, const Stage &s, int k, int group, int thread) {
    const u32 slot = part_slot(s, k, group), parts = s.ticket(k, ticket::PARTS);
    __threadfence();
    bar_sync(OWN + group, 128);
    if (thread == 0) s.tickets[k * ticket::WORDS + ticket::LAST + group] = atomicAdd(p.part_counts + slot, 1u) + 1 == parts;
    bar_sync(OWN + group, 128);
    const bool last = s.ticket(k, ticket::LAST + group);
    if (last) __threadfence();
    return last;
}

// A part's sums join those of its item's other parts. Whether they are all there now: then the sums are the whole item's.
template <int... COUNTS>
__device__ __forceinline__ bool join_parts(const Params &p, const Stage &s, int k, int group, int thread, float (&...sums)[COUNTS]) {
    if (s.ticket(k, ticket::PARTS) == 1) return true;
    if (ML_DETERMINISTIC) await_turn(p.part_counts + part_slot(s, k, group), s.ticket(k, ticket::INDEX + group), group, thread);
    float *const first = p.part_sums + i64(part_slot(s, k, group)) * PART_SUMS, *at = first;
    ((add_sums(at, sums, thread), at += 128 * COUNTS), ...);
    if (!is_last_part(p, s, k, group, thread)) return false;
    at = first;
    ((take_sums(sums, at, thread), at += 128 * COUNTS), ...);
    return true;
}
