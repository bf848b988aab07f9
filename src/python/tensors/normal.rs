//! Box and Muller's transform in single precision, rounded step by step like PyTorch's AVX2 kernel.
//!
//! Invariant: bit for bit PyTorch's result on x86-64 processors with AVX2 (all since 2015). The polynomials are those
//! of the Cephes library (S. Moshier); the same steps are fused. Must not know generators.

/// Sixteen uniforms become sixteen normals: eight radii, then eight angles.
pub(super) fn normals(u: &mut [f32; 16]) {
    for j in 0..8 {
        let radius = (-2.0f32 * ln(1.0 - u[j])).sqrt();
        let (sin, cos) = sin_cos(std::f32::consts::TAU * u[j + 8]);
        u[j] = radius * cos;
        u[j + 8] = radius * sin;
    }
}

/// Horner's rule, each step fused.
fn polynomial(x: f32, coefficients: &[f32]) -> f32 {
    coefficients[1..].iter().fold(coefficients[0], |sum, c| sum.mul_add(x, *c))
}

/// Natural logarithm of a number in (0, 1].
#[allow(clippy::excessive_precision)] // the digits as Cephes lists them
fn ln(x: f32) -> f32 {
    const LN2_HIGH: f32 = 0.693_359_375;
    const LN2_LOW: f32 = -2.121_944_40e-4;
    const SERIES: [f32; 9] = [
        7.037_683_629_2e-2,
        -1.151_461_031_0e-1,
        1.167_699_874_0e-1,
        -1.242_014_084_6e-1,
        1.424_932_278_7e-1,
        -1.666_805_766_5e-1,
        2.000_071_476_5e-1,
        -2.499_999_399_3e-1,
        3.333_333_117_4e-1,
    ];
    let bits = x.max(f32::MIN_POSITIVE).to_bits();
    let mut exponent = ((bits >> 23) as i32 - 127) as f32 + 1.0;
    let mut m = f32::from_bits((bits & 0x007f_ffff) | 0x3f00_0000);
    if m < std::f32::consts::FRAC_1_SQRT_2 {
        exponent -= 1.0;
        m = (m - 1.0) + m;
    } else {
        m -= 1.0;
    }
    let z = m * m;
    let y = polynomial(m, &SERIES) * m;
    let y = y.mul_add(z, exponent * LN2_LOW);
    let y = (-z).mul_add(0.5, y);
    exponent.mul_add(LN2_HIGH, m + y)
}

/// Sine and cosine of an angle in [0, 2 pi).
#[allow(clippy::excessive_precision)] // the digits as Cephes lists them
fn sin_cos(angle: f32) -> (f32, f32) {
    const QUARTER_PI: [f32; 3] = [-0.785_156_25, -2.418_756_484_985_351_562_5e-4, -3.774_894_977_445_941_08e-8];
    const COS: [f32; 3] = [2.443_315_711_809_948e-5, -1.388_731_625_493_765e-3, 4.166_664_568_298_827e-2];
    const SIN: [f32; 3] = [-1.951_529_589_1e-4, 8.332_160_873_6e-3, -1.666_665_461_1e-1];
    // The octant, rounded up to an even one; the rest is within pi/4 of it.
    let octant = ((angle * 1.273_239_544_735_16f32) as i32 + 1) & !1;
    let rest = QUARTER_PI.iter().fold(angle, |x, part| (octant as f32).mul_add(*part, x));
    let z = rest * rest;
    let cos = (polynomial(z, &COS) * z).mul_add(z, -(z * 0.5)) + 1.0;
    let sin = (polynomial(z, &SIN) * z).mul_add(rest, rest);
    let (sin, cos) = if octant & 2 == 0 { (sin, cos) } else { (cos, sin) };
    let sin = if octant & 4 != 0 { -sin } else { sin };
    let cos = if (octant - 2) & 4 == 0 { -cos } else { cos };
    (sin, cos)
}
