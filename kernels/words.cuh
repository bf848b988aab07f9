// Words of shared memory, and sums in global memory that many blocks add to, in turn or not. Must not know attention.
// The host defines ML_DQ_ORDER: 0 a thread's four floats lie together (they are added by one instruction from sm_90 on), 1 each of the
// four by itself for all threads.

__device__ __forceinline__ void load_floats(float &left, float &right, u32 from) {
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(left), "=f"(right) : "r"(from) : "memory");
}
__device__ __forceinline__ u32 load_word(u32 from) {
    u32 value;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(from) : "memory");
    return value;
}
__device__ __forceinline__ void store_words(u32 to, u32 a, u32 b, u32 c, u32 d) {
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}
__device__ __forceinline__ void load_words(u32 (&value)[4], u32 from) {
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value[0]), "=r"(value[1]), "=r"(value[2]), "=r"(value[3])
                 : "r"(from)
                 : "memory");
}


__device__ __forceinline__ void store_word(u32 to, u32 value) { asm volatile("st.shared.u32 [%0], %1;" ::"r"(to), "r"(value) : "memory"); }

// Four floats of this thread of THREADS added to global memory, each by itself; nobody waits for it. `to` is where all threads' four lie.
template <int THREADS> __device__ __forceinline__ void add_to_global(float *to, int thread, float a, float b, float c, float d) {
#if ML_DQ_ORDER == 0
    asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to + 4 * thread), "f"(a), "f"(b), "f"(c), "f"(d)
                 : "memory");
#else
    const float all[4] = {a, b, c, d};
#pragma unroll
    for (int i = 0; i < 4; ++i)
        asm volatile("red.relaxed.gpu.global.add.f32 [%0], %1;" ::"l"(to + i * THREADS + thread), "f"(all[i]) : "memory");
#endif
}

// Four floats as other blocks have left them, past this multiprocessor's cache.
__device__ __forceinline__ void load_left(float (&value)[4], const float *from) {
    asm volatile("ld.relaxed.gpu.global.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(value[0]), "=f"(value[1]), "=f"(value[2]), "=f"(value[3])
                 : "l"(from)
                 : "memory");
}

// A word that other blocks count up, and counting it up after everything this thread has seen.
__device__ __forceinline__ u32 load_acquire(const u32 *from) {
    u32 value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
    return value;
}
__device__ __forceinline__ void add_release(u32 *to, u32 by) {
    asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(to), "r"(by) : "memory");
}
// Until `from` holds `value`. Only the last load acquires: each that does empties this multiprocessor's L1 cache, in which the copying thread has
// lists and spilled words.
__device__ __forceinline__ void wait_for_word(const u32 *from, u32 value) {
    u32 now;
    do asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(from) : "memory");
    while (now != value);
    load_acquire(from);
}
