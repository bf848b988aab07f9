// Hopper's instructions that only the backward pass wants: boxes added to global memory, transposed stores of fragments, products of a
// transposed left side. Must not know attention.

// gridDim.x, asked for anew wherever it is wanted: the compiler would keep it in a register.
__device__ __forceinline__ u32 count_blocks() {
    u32 count;
    asm volatile("mov.u32 %0, %%nctaid.x;" : "=r"(count));
    return count;
}

// A box of floats from shared memory added to global memory by the copy engine.
__device__ __forceinline__ void tma_add(const TensorMap *map, u32 src, int c0, int c1, int c2, int c3) {
    asm volatile("cp.reduce.async.bulk.tensor.4d.global.shared::cta.add.tile.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(map),
                 "r"(src), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
                 : "memory");
}
// Until the copies that this thread has committed are in global memory.
__device__ __forceinline__ void tma_wait_all() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

// Four 8x8 matrices of 16-bit elements, each transposed on its way from registers to shared memory.
__device__ __forceinline__ void stmatrix_x4_transposed(u32 address, u32 a, u32 b, u32 c, u32 d) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(a), "r"(b), "r"(c), "r"(d)
                 : "memory");
}

#define F8(d, o) "+f"(d[o]), "+f"(d[o + 1]), "+f"(d[o + 2]), "+f"(d[o + 3]), "+f"(d[o + 4]), "+f"(d[o + 5]), "+f"(d[o + 6]), "+f"(d[o + 7])
// d[32] += Aᵀ[64 x 16] B[16 x 64], both from shared memory, A M-major and B N-major.
__device__ __forceinline__ void wgmma_transposed(float (&d)[32], u64 a, u64 b) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n64k16.f32." ELEM "." ELEM " {"
        REGISTERS_32
        "}, %32, %33, 1, 1, 1, 1, 1;\n"
        : F8(d, 0), F8(d, 8), F8(d, 16), F8(d, 24)
        : "l"(a), "l"(b));
}
// d[64] += Aᵀ[64 x 16] B[16 x 128], both from shared memory, A M-major and B N-major.
__device__ __forceinline__ void wgmma_transposed(float (&d)[64], u64 a, u64 b) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n128k16.f32." ELEM "." ELEM " {"
        REGISTERS_64
        "}, %64, %65, 1, 1, 1, 1, 1;\n"
        : F8(d, 0), F8(d, 8), F8(d, 16), F8(d, 24), F8(d, 32), F8(d, 40), F8(d, 48), F8(d, 56)
        : "l"(a), "l"(b));
}
// d[96] += Aᵀ[64 x 16] B[16 x 192], both from shared memory, A M-major and B N-major.
__device__ __forceinline__ void wgmma_transposed(float (&d)[96], u64 a, u64 b) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n192k16.f32." ELEM "." ELEM " {"
        REGISTERS_96
        "}, %96, %97, 1, 1, 1, 1, 1;\n"
        : F8(d, 0), F8(d, 8), F8(d, 16), F8(d, 24), F8(d, 32), F8(d, 40), F8(d, 48), F8(d, 56), F8(d, 64), F8(d, 72), F8(d, 80), F8(d, 88)
        : "l"(a), "l"(b));
}
// d[128] += Aᵀ[64 x 16] B[16 x 256], both from shared memory, A M-major and B N-major.
__device__ __forceinline__ void wgmma_transposed(float (&d)[128], u64 a, u64 b) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n256k16.f32." ELEM "." ELEM " {"
        REGISTERS_128
        "}, %128, %129, 1, 1, 1, 1, 1;\n"
        : F8(d, 0), F8(d, 8), F8(d, 16), F8(d, 24), F8(d, 32), F8(d, 40), F8(d, 48), F8(d, 56), F8(d, 64), F8(d, 72), F8(d, 80), F8(d, 88), F8(d, 96), F8(d, 104), F8(d, 112), F8(d, 120)
        : "l"(a), "l"(b));
}
#undef F8

// d = A B as wgmma_ss has it, whatever d was: the compiler is to see that its registers hold nothing before.
#define N8(d, o) "=f"(d[o]), "=f"(d[o + 1]), "=f"(d[o + 2]), "=f"(d[o + 3]), "=f"(d[o + 4]), "=f"(d[o + 5]), "=f"(d[o + 6]), "=f"(d[o + 7])
template <int TB> __device__ __forceinline__ void wgmma_anew(float (&d)[32], u64 a, u64 b) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, 0, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32." ELEM "." ELEM " {"
        REGISTERS_32
        "}, %32, %33, p, 1, 1, 0, %34;\n}\n"
        : N8(d, 0), N8(d, 8), N8(d, 16), N8(d, 24)
        : "l"(a), "l"(b), "n"(TB));
}
template <int TB> __device__ __forceinline__ void wgmma_anew(float (&d)[64], u64 a, u64 b) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, 0, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32." ELEM "." ELEM " {"
        REGISTERS_64
        "}, %64, %65, p, 1, 1, 0, %66;\n}\n"
        : N8(d, 0), N8(d, 8), N8(d, 16), N8(d, 24), N8(d, 32), N8(d, 40), N8(d, 48), N8(d, 56)
        : "l"(a), "l"(b), "n"(TB));
}
#undef N8
