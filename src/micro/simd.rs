//! Vectors of f32 in the widest form of this machine: AVX-512, AVX2 with FMA, or plain arrays.
//!
//! Invariant: the three give the same results up to the rounding of fused multiply-adds. Must not know attention.
//! `unsafe` because the instructions exist only on machines where [`Level::detect`] found them, and because loads and
//! stores use pointers whose extents the kernels check once, outside their loops.
#![allow(unsafe_code)]

/// The vector instructions of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// 16 lanes, 32 registers.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// 8 lanes, 16 registers.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// Arrays that the compiler turns into the instructions of the target's baseline.
    Portable,
}

impl Level {
    /// The widest that the processor and the system support.
    pub fn detect() -> Level {
        #[cfg(target_arch = "x86_64")]
        {
            let wide = std::is_x86_feature_detected!("avx512f") && std::is_x86_feature_detected!("avx512bw");
            if wide && std::is_x86_feature_detected!("avx512dq") {
                return Level::Avx512;
            }
            if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
                return Level::Avx2;
            }
        }
        Level::Portable
    }

    /// The widest and every narrower one.
    #[cfg(test)]
    pub fn all() -> Vec<Level> {
        let mut all = vec![Level::Portable];
        #[cfg(target_arch = "x86_64")]
        match Level::detect() {
            Level::Avx512 => all.extend([Level::Avx2, Level::Avx512]),
            Level::Avx2 => all.push(Level::Avx2),
            Level::Portable => {}
        }
        all
    }

    /// For messages: `avx512`, `avx2`, `portable`.
    pub fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => "avx512",
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => "avx2",
            Level::Portable => "portable",
        }
    }
}

/// One vector type. Every method is `unsafe` for one reason: it may be called only if the type's instructions exist,
/// and pointers must be valid for `LANES` elements (of f32, or of u8 for masks).
pub(crate) trait Simd: Copy {
    type V: Copy;
    const LANES: usize;

    unsafe fn splat(x: f32) -> Self::V;
    unsafe fn load(at: *const f32) -> Self::V;
    unsafe fn store(at: *mut f32, v: Self::V);
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn sub(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn mul(a: Self::V, b: Self::V) -> Self::V;
    /// `a * b + c`
    unsafe fn fma(a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// The larger; `b` when either is NaN.
    unsafe fn max(a: Self::V, b: Self::V) -> Self::V;
    /// The nearest whole number, for magnitudes below 2^22.
    unsafe fn round(a: Self::V) -> Self::V;
    /// 2^n for whole n in -127..=127; 0 at -127.
    unsafe fn pow2(n: Self::V) -> Self::V;
    unsafe fn sum(a: Self::V) -> f32;
    unsafe fn largest(a: Self::V) -> f32;
    /// `a` where the byte is not 0, otherwise `b`.
    unsafe fn select(bytes: *const u8, a: Self::V, b: Self::V) -> Self::V;

    /// exp of numbers up to 0 within 2e-7 of the largest result; exactly 0 below -88; NaN stays NaN.
    #[inline(always)]
    unsafe fn exp(x: Self::V) -> Self::V {
        /// 2^f for |f| <= 0.5, highest power first; a minimax fit of the relative error, 8e-8 in f32.
        const POWERS: [f32; 7] =
            [1.535_336_2e-4, 1.339_887_4e-3, 9.618_437e-3, 5.550_332_5e-2, 2.402_264_8e-1, 6.931_472e-1, 1.0];
        // SAFETY: the caller vouches for the instructions; no pointers are used.
        unsafe {
            // the second operand of max is what survives a NaN
            let t = Self::max(Self::splat(-127.0), Self::mul(x, Self::splat(std::f32::consts::LOG2_E)));
            let n = Self::round(t);
            Self::mul(Self::polynomial(&POWERS, Self::sub(t, n)), Self::pow2(n))
        }
    }

    /// The sum of `powers[i] * f^(6 - i)`.
    #[inline(always)]
    unsafe fn polynomial(powers: &[f32; 7], f: Self::V) -> Self::V {
        // SAFETY: as in exp.
        unsafe { powers[1..].iter().fold(Self::splat(powers[0]), |p, c| Self::fma(p, f, Self::splat(*c))) }
    }
}

/// Plain arrays: every target has them.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

macro_rules! lanes {
    ($f:expr) => {
        std::array::from_fn($f)
    };
}

impl Simd for Portable {
    type V = [f32; 8];
    const LANES: usize = 8;

    #[inline(always)]
    unsafe fn splat(x: f32) -> [f32; 8] {
        [x; 8]
    }
    #[inline(always)]
    unsafe fn load(at: *const f32) -> [f32; 8] {
        // SAFETY: the caller vouches for 8 readable elements.
        unsafe { at.cast::<[f32; 8]>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(at: *mut f32, v: [f32; 8]) {
        // SAFETY: the caller vouches for 8 writable elements.
        unsafe { at.cast::<[f32; 8]>().write_unaligned(v) }
    }
    #[inline(always)]
    unsafe fn add(a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        lanes!(|i| a[i] + b[i])
    }
    #[inline(always)]
    unsafe fn sub(a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        lanes!(|i| a[i] - b[i])
    }
    #[inline(always)]
    unsafe fn mul(a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        lanes!(|i| a[i] * b[i])
    }
    #[inline(always)]
    unsafe fn fma(a: [f32; 8], b: [f32; 8], c: [f32; 8]) -> [f32; 8] {
        // not mul_add: without the instruction that is a library call
        lanes!(|i| a[i] * b[i] + c[i])
    }
    #[inline(always)]
    unsafe fn max(a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        lanes!(|i| if a[i] > b[i] { a[i] } else { b[i] })
    }
    #[inline(always)]
    unsafe fn round(a: [f32; 8]) -> [f32; 8] {
        const MAGIC: f32 = 12_582_912.0; // 1.5 * 2^23: the sum has no room for a fraction
        lanes!(|i| (a[i] + MAGIC) - MAGIC)
    }
    #[inline(always)]
    unsafe fn pow2(n: [f32; 8]) -> [f32; 8] {
        lanes!(|i| f32::from_bits(((n[i] as i32 + 127) as u32) << 23))
    }
    #[inline(always)]
    unsafe fn sum(a: [f32; 8]) -> f32 {
        ((a[0] + a[4]) + (a[1] + a[5])) + ((a[2] + a[6]) + (a[3] + a[7]))
    }
    #[inline(always)]
    unsafe fn largest(a: [f32; 8]) -> f32 {
        a.into_iter().fold(f32::NEG_INFINITY, f32::max)
    }
    #[inline(always)]
    unsafe fn select(bytes: *const u8, a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        // SAFETY: the caller vouches for 8 readable bytes.
        let m = unsafe { bytes.cast::<[u8; 8]>().read_unaligned() };
        lanes!(|i| if m[i] != 0 { a[i] } else { b[i] })
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Simd;
    use std::arch::x86_64::*;

    /// 8 lanes with fused multiply-add.
    #[derive(Clone, Copy)]
    pub(crate) struct Avx2;

    impl Simd for Avx2 {
        type V = __m256;
        const LANES: usize = 8;

        #[inline(always)]
        unsafe fn splat(x: f32) -> __m256 {
            // SAFETY: the caller vouches for AVX2 and FMA; so below.
            unsafe { _mm256_set1_ps(x) }
        }
        #[inline(always)]
        unsafe fn load(at: *const f32) -> __m256 {
            // SAFETY: and for 8 readable elements.
            unsafe { _mm256_loadu_ps(at) }
        }
        #[inline(always)]
        unsafe fn store(at: *mut f32, v: __m256) {
            // SAFETY: and for 8 writable elements.
            unsafe { _mm256_storeu_ps(at, v) }
        }
        #[inline(always)]
        unsafe fn add(a: __m256, b: __m256) -> __m256 {
            // SAFETY: see splat.
            unsafe { _mm256_add_ps(a, b) }
        }
        #[inline(always)]
        unsafe fn sub(a: __m256, b: __m256) -> __m256 {
            // SAFETY: see splat.
            unsafe { _mm256_sub_ps(a, b) }
        }
        #[inline(always)]
        unsafe fn mul(a: __m256, b: __m256) -> __m256 {
            // SAFETY: see splat.
            unsafe { _mm256_mul_ps(a, b) }
        }
        #[inline(always)]
        unsafe fn fma(a: __m256, b: __m256, c: __m256) -> __m256 {
            // SAFETY: see splat.
            unsafe { _mm256_fmadd_ps(a, b, c) }
        }
        #[inline(always)]
        unsafe fn max(a: __m256, b: __m256) -> __m256 {
            // SAFETY: see splat.
            unsafe { _mm256_max_ps(a, b) }
        }
        #[inline(always)]
        unsafe fn round(a: __m256) -> __m256 {
            // SAFETY: see splat.
            unsafe { _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a) }
        }
        #[inline(always)]
        unsafe fn pow2(n: __m256) -> __m256 {
            // SAFETY: see splat.
            unsafe {
                let biased = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
                _mm256_castsi256_ps(_mm256_slli_epi32::<23>(biased))
            }
        }
        #[inline(always)]
        unsafe fn sum(a: __m256) -> f32 {
            // SAFETY: see splat.
            unsafe {
                let four = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
                let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
                _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
            }
        }
        #[inline(always)]
        unsafe fn largest(a: __m256) -> f32 {
            // SAFETY: see splat.
            unsafe {
                let four = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
                let two = _mm_max_ps(four, _mm_movehl_ps(four, four));
                _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)))
            }
        }
        #[inline(always)]
        unsafe fn select(bytes: *const u8, a: __m256, b: __m256) -> __m256 {
            // SAFETY: see splat, and for 8 readable bytes.
            unsafe {
                let wide = _mm256_cvtepu8_epi32(_mm_loadl_epi64(bytes.cast()));
                let zero = _mm256_cmpeq_epi32(wide, _mm256_setzero_si256());
                _mm256_blendv_ps(a, b, _mm256_castsi256_ps(zero))
            }
        }
    }

    /// 16 lanes and twice the registers.
    #[derive(Clone, Copy)]
    pub(crate) struct Avx512;

    impl Simd for Avx512 {
        type V = __m512;
        const LANES: usize = 16;

        #[inline(always)]
        unsafe fn splat(x: f32) -> __m512 {
            // SAFETY: the caller vouches for AVX-512F, BW and DQ; so below.
            unsafe { _mm512_set1_ps(x) }
        }
        #[inline(always)]
        unsafe fn load(at: *const f32) -> __m512 {
            // SAFETY: and for 16 readable elements.
            unsafe { _mm512_loadu_ps(at) }
        }
        #[inline(always)]
        unsafe fn store(at: *mut f32, v: __m512) {
            // SAFETY: and for 16 writable elements.
            unsafe { _mm512_storeu_ps(at, v) }
        }
        #[inline(always)]
        unsafe fn add(a: __m512, b: __m512) -> __m512 {
            // SAFETY: see splat.
            unsafe { _mm512_add_ps(a, b) }
        }
        #[inline(always)]
        unsafe fn sub(a: __m512, b: __m512) -> __m512 {
            // SAFETY: see splat.
            unsafe { _mm512_sub_ps(a, b) }
        }
        #[inline(always)]
        unsafe fn mul(a: __m512, b: __m512) -> __m512 {
            // SAFETY: see splat.
            unsafe { _mm512_mul_ps(a, b) }
        }
        #[inline(always)]
        unsafe fn fma(a: __m512, b: __m512, c: __m512) -> __m512 {
            // SAFETY: see splat.
            unsafe { _mm512_fmadd_ps(a, b, c) }
        }
        #[inline(always)]
        unsafe fn max(a: __m512, b: __m512) -> __m512 {
            // SAFETY: see splat.
            unsafe { _mm512_max_ps(a, b) }
        }
        #[inline(always)]
        unsafe fn round(a: __m512) -> __m512 {
            // SAFETY: see splat.
            unsafe { _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a) }
        }
        #[inline(always)]
        unsafe fn exp(x: __m512) -> __m512 {
            /// 2^f for 0 <= f < 1, highest power first; a minimax fit of the relative error, 6e-8 in f32.
            #[expect(clippy::approx_constant, reason = "a coefficient of the fit, near ln 2 but not it")]
            const POWERS: [f32; 7] =
                [2.170_225_5e-4, 1.243_968_8e-3, 9.678_841e-3, 5.548_334e-2, 2.402_298_3e-1, 6.931_47e-1, 1.0];
            const DOWN: i32 = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
            // SAFETY: see splat.
            unsafe {
                let t = Self::mul(x, Self::splat(std::f32::consts::LOG2_E));
                // t less the whole number below it, 0 for -inf; the scale takes that whole number from t itself
                let f = _mm512_reduce_ps::<DOWN>(t);
                // numbers too small for a normal result slow every product that they meet; NaN is not less
                let normal = _mm512_cmp_ps_mask::<_CMP_NLT_UQ>(t, Self::splat(-126.0));
                _mm512_maskz_scalef_ps(normal, Self::polynomial(&POWERS, f), t)
            }
        }
        #[inline(always)]
        unsafe fn pow2(n: __m512) -> __m512 {
            // SAFETY: see splat.
            unsafe {
                let biased = _mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127));
                _mm512_castsi512_ps(_mm512_slli_epi32::<23>(biased))
            }
        }
        #[inline(always)]
        unsafe fn sum(a: __m512) -> f32 {
            // SAFETY: see splat.
            unsafe { _mm512_reduce_add_ps(a) }
        }
        #[inline(always)]
        unsafe fn largest(a: __m512) -> f32 {
            // SAFETY: see splat.
            unsafe { _mm512_reduce_max_ps(a) }
        }
        #[inline(always)]
        unsafe fn select(bytes: *const u8, a: __m512, b: __m512) -> __m512 {
            // SAFETY: see splat, and for 16 readable bytes.
            unsafe {
                let wide = _mm512_cvtepu8_epi32(_mm_loadu_si128(bytes.cast()));
                _mm512_mask_blend_ps(_mm512_test_epi32_mask(wide, wide), b, a)
            }
        }
    }
}
