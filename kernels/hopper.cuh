// Hopper's own instructions: mbarriers, tensor copies, warpgroup matrix products, named barriers, register shares.
// Must not know attention.

#if ML_BF16
#define ELEM "bf16"
#else
#define ELEM "f16"
#endif

struct alignas(64) TensorMap {
  u8 bytes[128];
};

// --- mbarriers: 8 bytes of shared memory each ---
__device__ __forceinline__ void mbarrier_init(u32 bar, u32 count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}
__device__ __forceinline__ void mbarrier_expect(u32 bar, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}
__device__ __forceinline__ void mbarrier_arrive(u32 bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}
__device__ __forceinline__ void mbarrier_wait(u32 bar, u32 parity) {
  asm volatile(
      "{\n.reg .pred p;\nWAIT:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra DONE;\nbra WAIT;\nDONE:\n}\n" ::"r"(bar),
      "r"(parity)
      : "memory");
}
__device__ __forceinline__ void fence_barrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
// Ordinary stores to shared memory become visible to tensor copies and matrix products.
__device__ __forceinline__ void fence_async_proxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// One lane of the warp, always the same. Asked anew wherever it is wanted, it needs no register.
__device__ __forceinline__ bool warp_leader() {
  u32 chosen;
  asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.b32 %0, 1, 0, p;\n}\n" : "=r"(chosen));
  return chosen;
}
// What that lane holds, for all. The compiler sees besides that it is the same for the warp.
__device__ __forceinline__ u32 spread(u32 value) {
  u32 lane;
  asm volatile("{\n.reg .pred p;\nelect.sync %0|p, 0xffffffff;\n}\n" : "=r"(lane));
  return __shfl_sync(0xffffffff, value, lane);
}

__device__ __forceinline__ void load_pair(u32 &left, u32 &right, u32 from) {
    asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(left), "=r"(right) : "r"(from) : "memory");
}

// `value` where a bit, of which nothing else is left in `kept`, is set, else 0. As text, because the compiler has a form of its own for
// a word's lowest bit, of which ptxas then makes no predicate together with the others'.
__device__ __forceinline__ float value_where(u32 kept, float value) {
    float result;
    asm("{.reg .pred p; setp.ne.b32 p, %1, 0; selp.f32 %0, %2, 0f00000000, p;}" : "=f"(result) : "r"(kept), "f"(value));
    return result;
}

// --- named barriers (hardware ids 1..15; 0 is __syncthreads) ---
__device__ __forceinline__ void bar_sync(int id, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory"); }
__device__ __forceinline__ void bar_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// --- tensor copies; coordinates innermost first: element, token, head, batch ---
__device__ __forceinline__ void tma_load(u32 dst, const TensorMap *map, u32 bar, int c0, int c1, int c2, int c3) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(dst), "l"(map),
      "r"(bar), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
      : "memory");
}
__device__ __forceinline__ void tma_store(const TensorMap *map, u32 src, int c0, int c1, int c2, int c3) {
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(map), "r"(src), "r"(c0), "r"(c1),
               "r"(c2), "r"(c3)
               : "memory");
}
__device__ __forceinline__ void tma_store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
__device__ __forceinline__ void tma_store_wait_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }

// Four 8x8 matrices of 16-bit elements from registers to shared memory; each lane gives one row's address.
__device__ __forceinline__ void stmatrix_x4(u32 address, u32 a, u32 b, u32 c, u32 d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}

// --- warpgroup matrix products ---
__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int PENDING> __device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}
// Two ways that end alike stay two: otherwise the compiler lets them meet before.
__device__ __forceinline__ void stay_apart() { asm volatile("// apart"); }
// What is computed before stays before the next wait: the compiler moves waits up across arithmetic, but not across a branch.
// `length` is never negative.
__device__ __forceinline__ void stay_before(int length) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.lt.s32 p, %0, 0;\n@p bra PAUSE;\nbra ON;\nPAUSE:\nnanosleep.u32 1;\nON:\n}\n" ::"r"(length)
      : "memory");
}
// Asynchronous products write these registers: the compiler must neither move nor copy them across this point.
template <int N> __device__ __forceinline__ void pin(float (&d)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

// Matrix descriptor: address, leading and stride byte offsets in units of 16 bytes, 128-byte swizzle.
__device__ __forceinline__ u64 descriptor(u32 address, u32 lbo, u32 sbo) {
  return (u64)((address & 0x3FFFF) >> 4) | ((u64)(lbo >> 4) << 16) | ((u64)(sbo >> 4) << 32) |
         (1ull << 62);
}

// Registers of this warpgroup, raised or lowered.
template <int COUNT> __device__ __forceinline__ void registers_raise() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT)); }
template <int COUNT> __device__ __forceinline__ void registers_lower() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT)); }

// The first registers of a product: its accumulators, as text.
#define REGISTERS_32 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define REGISTERS_40 REGISTERS_32 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define REGISTERS_48 REGISTERS_40 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define REGISTERS_64 REGISTERS_48 ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define REGISTERS_96 REGISTERS_64 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define REGISTERS_128 REGISTERS_96 ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define F8(d, o) "+f"(d[o]), "+f"(d[o + 1]), "+f"(d[o + 2]), "+f"(d[o + 3]), "+f"(d[o + 4]), "+f"(d[o + 5]), "+f"(d[o + 6]), "+f"(d[o + 7])

// d[32] (+)= A[64 x 16] B[16 x 64], A from shared memory (K-major), B from shared memory (TB 1: N-major, as V stands).
template <int TB> __device__ __forceinline__ void wgmma_ss(float (&d)[32], u64 a, u64 b, int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." ELEM "." ELEM " {"
      REGISTERS_32
      "}, %32, %33, p, 1, 1, 0, %35;\n}\n"
      : F8(d, 0), F8(d, 8), F8(d, 16), F8(d, 24)
      : "l"(a), "l"(b), "r"(accumulate), "n"(TB));
}
// The same with A from registers (the four words of a thread's fragment).
template <int TB> __device__ __forceinline__ void wgmma_rs(float (&d)[32], const u32 * a, u64 b, int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." ELEM "." ELEM " {"
      REGISTERS_32
      "}, {%32, %33, %34, %35}, %36, p, 1, 1, %38;\n}\n"
      : F8(d, 0), F8(d, 8), F8(d, 16), F8(d, 24)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate), "n"(TB));
}

// d[64] (+)= A[64 x 16] B[16 x 128], A from shared memory (K-major), B from shared memory (TB 1: N-major, as V stands).
template <int TB> __device__ __forceinline__ void wgmma_ss(float (&d)[64], u64 a, u64 b, int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32." ELEM "." ELEM " {"
      REGISTERS_64
      "}, %64, %65, p, 1, 1, 0, %67;\n}\n"
      : F8(d, 0), F8(d, 8), F8(d, 16), F8(d, 24), F8(d, 32), F8(d, 40), F8(d, 48), F8(d, 56)
      : "l"(a), "l"(b), "r"(accumulate), "n"(TB));
}
// The same with A from registers (the four words of a thread's fragment).
template <int TB> __device__ __forceinline__ void wgmma_rs(float (&d)[64], const u32 * a, u64 b, int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32." ELEM "." ELEM " {"
      REGISTERS_64
      "}, {%64, %65, %66, %67}, %68, p, 1, 1, %70;\n}\n"
      : F8(d, 0), F8(d, 8), F8(d, 16), F8(d, 24), F8(d, 32), F8(d, 40), F8(d, 48), F8(d, 56)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate), "n"(TB));
}

// d[128] (+)= A[64 x 16] B[16 x 256], A from shared memory (K-major), B from shared memory (TB 1: N-major, as V stands).
template <int TB> __device__ __forceinline__ void wgmma_ss(float (&d)[128], u64 a, u64 b, int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32." ELEM "." ELEM " {"
      REGISTERS_128
      "}, %128, %129, p, 1, 1, 0, %131;\n}\n"
      : F8(d, 0), F8(d, 8), F8(d, 16), F8(d, 24), F8(d, 32), F8(d, 40), F8(d, 48), F8(d, 56), F8(d, 64), F8(d, 72), F8(d, 80), F8(d, 88), F8(d, 96), F8(d, 104), F8(d, 112), F8(d, 120)
      : "l"(a), "l"(b), "r"(accumulate), "n"(TB));
}
// The same with A from registers (the four words of a thread's fragment).
template <int TB> __device__ __forceinline__ void wgmma_rs(float (&d)[128], const u32 * a, u64 b, int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %133, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32." ELEM "." ELEM " {"
      REGISTERS_128
      "}, {%128, %129, %130, %131}, %132, p, 1, 1, %134;\n}\n"
      : F8(d, 0), F8(d, 8), F8(d, 16), F8(d, 24), F8(d, 32), F8(d, 40), F8(d, 48), F8(d, 56), F8(d, 64), F8(d, 72), F8(d, 80), F8(d, 88), F8(d, 96), F8(d, 104), F8(d, 112), F8(d, 120)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate), "n"(TB));
}

// d[40] (+)= A[64 x 16] B[16 x 80], A from shared memory (K-major), B from shared memory (TB 1: N-major, as V stands).
template <int TB> __device__ __forceinline__ void wgmma_ss(float (&d)[40], u64 a, u64 b, int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %42, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n80k16.f32." ELEM "." ELEM " {"
      REGISTERS_40
      "}, %40, %41, p, 1, 1, 0, %43;\n}\n"
      : F8(d, 0), F8(d, 8), F8(d, 16), F8(d, 24), F8(d, 32)
      : "l"(a), "l"(b), "r"(accumulate), "n"(TB));
}
// The same with A from registers (the four words of a thread's fragment).
template <int TB> __device__ __forceinline__ void wgmma_rs(float (&d)[40], const u32 * a, u64 b, int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %45, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n80k16.f32." ELEM "." ELEM " {"
      REGISTERS_40
      "}, {%40, %41, %42, %43}, %44, p, 1, 1, %46;\n}\n"
      : F8(d, 0), F8(d, 8), F8(d, 16), F8(d, 24), F8(d, 32)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate), "n"(TB));
}

// d[96] (+)= A[64 x 16] B[16 x 192], A from shared memory (K-major), B from shared memory (TB 1: N-major, as V stands).
template <int TB> __device__ __forceinline__ void wgmma_ss(float (&d)[96], u64 a, u64 b, int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %98, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n192k16.f32." ELEM "." ELEM " {"
      REGISTERS_96
      "}, %96, %97, p, 1, 1, 0, %99;\n}\n"
      : F8(d, 0), F8(d, 8), F8(d, 16), F8(d, 24), F8(d, 32), F8(d, 40), F8(d, 48), F8(d, 56), F8(d, 64), F8(d, 72), F8(d, 80), F8(d, 88)
      : "l"(a), "l"(b), "r"(accumulate), "n"(TB));
}
// The same with A from registers (the four words of a thread's fragment).
template <int TB> __device__ __forceinline__ void wgmma_rs(float (&d)[96], const u32 * a, u64 b, int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %101, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n192k16.f32." ELEM "." ELEM " {"
      REGISTERS_96
      "}, {%96, %97, %98, %99}, %100, p, 1, 1, %102;\n}\n"
      : F8(d, 0), F8(d, 8), F8(d, 16), F8(d, 24), F8(d, 32), F8(d, 40), F8(d, 48), F8(d, 56), F8(d, 64), F8(d, 72), F8(d, 80), F8(d, 88)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate), "n"(TB));
}

// d[48] (+)= A[64 x 16] B[16 x 96], both from shared memory.
template <int TB> __device__ __forceinline__ void wgmma_ss(float (&d)[48], u64 a, u64 b, int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %50, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n96k16.f32." ELEM "." ELEM " {"
      REGISTERS_48
      "}, %48, %49, p, 1, 1, 0, %51;\n}\n"
      : F8(d, 0), F8(d, 8), F8(d, 16), F8(d, 24), F8(d, 32), F8(d, 40)
      : "l"(a), "l"(b), "r"(accumulate), "n"(TB));
}

#undef F8
