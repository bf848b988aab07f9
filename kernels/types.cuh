// Own integer names, so that NVRTC needs no headers, and the two 16-bit formats. One concept: what a value is.
// ML_BF16 (1 bfloat16, 0 float16) is defined by the host before this text.
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

struct alignas(8) Run {
    u32 start;  // first kv tile
    u32 end;    // one past the last; top bit: every cell of these tiles is kept
};

struct alignas(16) Chunk {
    u32 x, y, z, w;
};

__device__ __forceinline__ float negative_infinity() { return __int_as_float(0xff800000); }

// The larger of two scores. Where the rows' largest are given out, NaN wins, as in torch.max.
__device__ __forceinline__ float larger(float a, float b) {
#if ML_MAX_SCORES
    float found;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(found) : "f"(a), "f"(b));
    return found;
#else
    return fmaxf(a, b);
#endif
}

// Two floats to two 16-bit values, `low` in the low half, rounded to nearest even.
__device__ __forceinline__ u32 pack16(float low, float high) {
    u32 packed;
#if ML_BF16
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
#else
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
#endif
    return packed;
}

__device__ __forceinline__ float unpack16(u16 bits) {
#if ML_BF16
    return __uint_as_float(u32(bits) << 16);
#else
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
#endif
}
