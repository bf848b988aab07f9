//! Inputs of a run: seeded random q, k, v, or tensors from a safetensors file.
//!
//! Invariant: the same seed and shape give the same bits on every machine and at any thread count, because every
//! value is a pure function of (seed, tensor, position) that uses no libm. Must not know files; bytes come in.

use super::Inputs;
use crate::base::tensor::Data;
use crate::base::{DType, Diagnostic, HostTensor, Layout, file_dtype};
use crate::problem::Problem;
use half::{bf16, f16};
use rayon::prelude::*;
use safetensors::SafeTensors;
use safetensors::tensor::TensorView;

/// Standard normal q, k, v of the problem's dtype.
pub fn random(problem: &Problem, seed: u64) -> Inputs {
    let s = problem.spec();
    let make = |stream: u64, heads: usize, tokens: usize, dim: usize| {
        let shape = vec![s.batch, heads, tokens, dim];
        let data = normal_data(s.dtype, seed, stream, shape.iter().product());
        HostTensor::new(shape, data).expect("the count is the shape's product")
    };
    Inputs {
        q: make(0, s.heads, s.q_len, s.head_dim),
        k: make(1, s.kv_heads, s.kv_len, s.head_dim),
        v: make(2, s.kv_heads, s.kv_len, s.head_dim_v),
    }
}

/// A standard normal gradient of the output, of the problem's dtype.
pub fn random_seed(problem: &Problem, seed: u64) -> HostTensor {
    let s = problem.spec();
    let shape = vec![s.batch, s.heads, s.q_len, s.head_dim_v];
    let data = normal_data(s.dtype, seed, 3, shape.iter().product());
    HostTensor::new(shape, data).expect("the count is the shape's product")
}

fn normal_data(dtype: DType, seed: u64, stream: u64, count: usize) -> Data {
    let at = move |i: usize| normal(seed, stream, i as u64);
    let range = (0..count).into_par_iter().with_min_len(1 << 12);
    match dtype {
        DType::BF16 => Data::BF16(range.map(|i| bf16::from_f64(at(i))).collect()),
        DType::F16 => Data::F16(range.map(|i| f16::from_f64(at(i))).collect()),
        _ => Data::F32(range.map(|i| at(i) as f32).collect()),
    }
}

/// One standard normal value: position hashed to a uniform number, and that through the inverse of the normal
/// distribution.
fn normal(seed: u64, stream: u64, position: u64) -> f64 {
    let key = mix(seed ^ mix(stream.wrapping_add(0x9e37_79b9_7f4a_7c15)));
    let bits = mix(key.wrapping_add(position.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    // the middle of one of 2^53 intervals: never 0 or 1
    let uniform = ((bits >> 11) as f64 + 0.5) * (1.0 / (1u64 << 53) as f64);
    inverse_normal(uniform)
}

/// The finaliser of SplitMix64: a bijection of 64 bits that scatters neighbours.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Quantile of the standard normal distribution: Acklam's rational approximation (relative error 1.2e-9), far finer
/// than any dtype of ours rounds.
fn inverse_normal(p: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969683028665376e+01,
        2.209460984245205e+02,
        -2.759285104469687e+02,
        1.38357751867269e+02,
        -3.066479806614716e+01,
        2.506628277459239e+00,
    ];
    const B: [f64; 6] = [
        -5.447609879822406e+01,
        1.615858368580409e+02,
        -1.556989798598866e+02,
        6.680131188771972e+01,
        -1.328068155288572e+01,
        1.0,
    ];
    const C: [f64; 6] = [
        -7.784894002430293e-03,
        -3.223964580411365e-01,
        -2.400758277161838e+00,
        -2.549732539343734e+00,
        4.374664141464968e+00,
        2.938163982698783e+00,
    ];
    const D: [f64; 5] =
        [7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00, 3.754408661907416e+00, 1.0];
    const LOW: f64 = 0.02425;
    let horner = |c: &[f64], x: f64| c.iter().fold(0.0, |sum, c| sum * x + c);
    if p < LOW {
        let r = (-2.0 * natural_log(p)).sqrt();
        horner(&C, r) / horner(&D, r)
    } else if p > 1.0 - LOW {
        let r = (-2.0 * natural_log(1.0 - p)).sqrt();
        -horner(&C, r) / horner(&D, r)
    } else {
        let r = p - 0.5;
        r * horner(&A, r * r) / horner(&B, r * r)
    }
}

/// ln of a positive normal number in plain arithmetic: libm's differs in the last bit from system to system.
fn natural_log(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut exponent = ((bits >> 52) & 0x7ff) as i64 - 1023;
    let mut mantissa = f64::from_bits((bits & 0x000f_ffff_ffff_ffff) | 0x3ff0_0000_0000_0000);
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa *= 0.5;
        exponent += 1;
    }
    // ln m = 2 artanh((m-1)/(m+1)), |argument| < 0.172: twelve odd terms reach 1e-19
    let t = (mantissa - 1.0) / (mantissa + 1.0);
    let series = (0..12).rev().fold(0.0, |sum, i| sum * (t * t) + 1.0 / f64::from(2 * i + 1));
    2.0 * t * series + exponent as f64 * std::f64::consts::LN_2
}

/// q, k, v of a run from a safetensors file's bytes. `names` are the tensors for q, k and v, `layout` the order of
/// dimensions in the file. Errors: all mistakes at once, in FlexAttention's words if it has some.
pub fn from_safetensors(
    bytes: &[u8],
    names: &[String; 3],
    layout: Layout,
    problem: &Problem,
) -> Result<Inputs, Vec<Diagnostic>> {
    let file = SafeTensors::deserialize(bytes).map_err(|e| vec![broken_file(&e.to_string())])?;
    let mut errors = Vec::new();
    let views: Vec<TensorView> =
        names.iter().filter_map(|n| file.tensor(n).map_err(|_| errors.push(missing_tensor(n, &file))).ok()).collect();
    if views.len() < 3 {
        return Err(errors);
    }
    check_shapes(&views, layout, problem, &mut errors);
    if !errors.is_empty() {
        return Err(errors);
    }
    let mut read =
        |view: &TensorView, name: &str| read_tensor(view, name, layout, problem.dtype).map_err(|e| errors.push(e)).ok();
    let (q, k, v) = (read(&views[0], &names[0]), read(&views[1], &names[1]), read(&views[2], &names[2]));
    match (q, k, v) {
        (Some(q), Some(k), Some(v)) => Ok(Inputs { q, k, v }),
        _ => Err(errors),
    }
}

fn broken_file(why: &str) -> Diagnostic {
    Diagnostic::error("safetensors", format!("the input is not a safetensors file: {why}"))
        .hint("write it with safetensors.torch.save_file({\"q\": q, \"k\": k, \"v\": v}, path)")
}

fn missing_tensor(name: &str, file: &SafeTensors) -> Diagnostic {
    const SHOWN: usize = 12;
    let mut all = file.names();
    all.sort_unstable();
    let rest = if all.len() > SHOWN { format!(" and {} more", all.len() - SHOWN) } else { String::new() };
    let list = all.iter().take(SHOWN).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
    Diagnostic::error("input-name", format!("the input file contains no tensor named `{name}`"))
        .hint(format!("it contains: {list}{rest}"))
}

/// [B, H, S, D] of a tensor in any layout of the file.
fn dims(view: &TensorView, layout: Layout) -> Option<[usize; 4]> {
    let s: [usize; 4] = view.shape().try_into().ok()?;
    Some(match layout {
        Layout::Bhsd => s,
        Layout::Bshd => [s[0], s[2], s[1], s[3]],
    })
}

fn check_shapes(views: &[TensorView], layout: Layout, problem: &Problem, errors: &mut Vec<Diagnostic>) {
    let shapes: Vec<_> = views.iter().filter_map(|v| dims(v, layout)).collect();
    let [q, k, v] = shapes[..] else {
        let ranks = views.iter().map(|v| format!("{:?}", v.shape())).collect::<Vec<_>>().join(", ");
        let message = format!("NYI: query, key, and value must be 4D tensors (got {ranks})");
        errors.push(Diagnostic::error("input-rank", message).hint("save them as [batch, heads, tokens, head_dim]"));
        return;
    };
    if q[3] != k[3] {
        let message = format!(
            "Expect query and key/value to have the same embedding dimension but got E={} and E={}.",
            q[3], k[3]
        );
        errors.push(Diagnostic::error("input-head-dim", message).hint("save q and k with the same head_dim"));
    }
    if k[..3] != v[..3] {
        let message = format!("key has shape {k:?} and value {v:?}; they must agree in batch, heads and tokens");
        errors.push(Diagnostic::error("input-kv", message).hint("save k and v of the same pass"));
    }
    let s = problem.spec();
    let wanted = [
        ("query", q, [s.batch, s.heads, s.q_len, s.head_dim]),
        ("key", k, [s.batch, s.kv_heads, s.kv_len, s.head_dim]),
        ("value", v, [s.batch, s.kv_heads, s.kv_len, s.head_dim_v]),
    ];
    for (name, got, want) in wanted {
        if got != want {
            errors.push(
                Diagnostic::error(
                    "input-shape",
                    format!("{name} has shape {got:?} [B, H, S, D]; the problem has {want:?}"),
                )
                .hint(
                    "set batch, heads, lengths and head_dim to the file's, or the file's layout (bhsd or bshd) \
                         if heads and tokens are swapped",
                ),
            );
        }
    }
}

/// Any tensor of a safetensors file whose dtype we have, in its own shape.
pub fn host_tensor(view: &TensorView) -> Result<HostTensor, Diagnostic> {
    let dtype = file_dtype::from_file(view.dtype()).ok_or_else(|| {
        Diagnostic::error("tensor-dtype", format!("tensors of dtype {:?} are not supported", view.dtype()))
            .hint("save it as a bool, int8 to int64, float16, bfloat16, float32 or float64 tensor")
    })?;
    HostTensor::new(view.shape(), Data::from_le_bytes(dtype, view.data())?)
}

/// The code of a float32 tensor for a problem of another dtype: on a GPU it has another way out.
pub const FLOAT32: &str = "input-float32";

fn read_tensor(view: &TensorView, name: &str, layout: Layout, dtype: DType) -> Result<HostTensor, Diagnostic> {
    let tensor = host_tensor(view)?;
    if tensor.dtype() != dtype {
        let message = format!("`{name}` has dtype {}, the problem has {dtype}", tensor.dtype());
        let code = if tensor.dtype() == DType::F32 { FLOAT32 } else { "input-dtype" };
        // problems have the dtypes of attention alone
        let hint = match tensor.dtype() {
            found @ (DType::BF16 | DType::F16 | DType::F32) => {
                format!("set the problem's dtype to {found}, or save {name}.to(torch.{dtype})")
            }
            _ => format!("save {name}.to(torch.{dtype}), or name another tensor"),
        };
        return Err(Diagnostic::error(code, message).hint(hint));
    }
    heads_first(tensor, layout)
}

/// A tensor of four axes as [batch, heads, tokens, dim]. Errors: another number of axes.
pub fn heads_first(tensor: HostTensor, layout: Layout) -> Result<HostTensor, Diagnostic> {
    if layout == Layout::Bhsd {
        return Ok(tensor);
    }
    let [batch, tokens, heads, dim] = tensor.shape()[..] else {
        let message = format!("{:?} is not [batch, tokens, heads, dim]", tensor.shape());
        return Err(Diagnostic::error("input-shape", message).hint("save a tensor of four axes"));
    };
    let bytes = tensor.data().to_le_bytes();
    let row = dim * tensor.dtype().size();
    let mut swapped = Vec::with_capacity(bytes.len());
    for (b, h) in (0..batch).flat_map(|b| (0..heads).map(move |h| (b, h))) {
        for t in 0..tokens {
            let from = ((b * tokens + t) * heads + h) * row;
            swapped.extend_from_slice(&bytes[from..from + row]);
        }
    }
    HostTensor::new([batch, heads, tokens, dim], Data::from_le_bytes(tensor.dtype(), &swapped)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::testing::problem;

    #[test]
    fn values_are_standard_normal_and_fixed_for_all_time() {
        let spec = problem(1, 4, 2, 256, 128, 32);
        let a = random(&spec, 7);
        assert_eq!(a.q.data(), random(&spec, 7).q.data());
        assert_ne!(a.q.data(), random(&spec, 8).q.data());
        let values = a.q.to_f32_vec();
        let n = values.len() as f64;
        let mean = values.iter().map(|x| f64::from(*x)).sum::<f64>() / n;
        let var = values.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / n;
        let beyond_two = values.iter().filter(|x| x.abs() > 2.0).count() as f64 / n;
        assert!(mean.abs() < 0.02 && (var - 1.0).abs() < 0.03, "{mean} {var}");
        assert!((beyond_two - 0.0455).abs() < 0.005, "{beyond_two}");
        // bits, not tolerances: a change of the generator would break every recorded run
        let first: Vec<u64> = (0..3).map(|i| normal(7, 0, i).to_bits()).collect();
        assert_eq!(first, FIRST_OF_SEED_7);
    }

    const FIRST_OF_SEED_7: [u64; 3] = [4603776125467028592, 13810272936407374523, 4601342334062551177];

    #[test]
    fn the_logarithm_is_libms_to_a_few_ulp() {
        for x in [1e-300, 1e-17, 0.01, 0.024, 0.5, 0.999, 1.0, 1.5, 7e9] {
            assert!((natural_log(x) - x.ln()).abs() <= 4e-16 * x.ln().abs().max(1.0), "{x}");
        }
    }

    fn file(tensors: &[(&str, &[usize], safetensors::Dtype)]) -> Vec<u8> {
        let data: Vec<Vec<u8>> =
            tensors.iter().map(|(_, s, d)| vec![0u8; s.iter().product::<usize>() * d.bitsize() / 8]).collect();
        let views = tensors
            .iter()
            .zip(&data)
            .map(|((n, s, d), bytes)| (n.to_string(), TensorView::new(*d, s.to_vec(), bytes).expect("a tensor")));
        safetensors::serialize(views, None).expect("a file")
    }

    fn names() -> [String; 3] {
        ["q", "k", "v"].map(String::from)
    }

    fn codes(result: Result<Inputs, Vec<Diagnostic>>) -> Vec<String> {
        result.err().unwrap_or_default().iter().map(|d| d.code.to_string()).collect()
    }

    #[test]
    fn mistakes_in_a_file_are_named() {
        use safetensors::Dtype::{BF16, F32};
        let spec = problem(1, 2, 2, 8, 8, 16);
        let read = |bytes: &[u8]| codes(from_safetensors(bytes, &names(), Layout::Bhsd, &spec));
        let full = [1, 2, 8, 16];
        assert_eq!(read(b"nonsense"), ["safetensors"]);
        assert_eq!(read(&file(&[("q", &full, F32), ("key", &full, F32)])), ["input-name", "input-name"]);
        assert_eq!(read(&file(&[("q", &[2, 8, 16], F32), ("k", &full, F32), ("v", &full, F32)])), ["input-rank"]);
        assert_eq!(read(&file(&[("q", &full, BF16), ("k", &full, F32), ("v", &full, F32)])), ["input-dtype"]);
        let ints = file(&[("q", &full, safetensors::Dtype::I32), ("k", &full, F32), ("v", &full, F32)]);
        let Err(why) = from_safetensors(&ints, &names(), Layout::Bhsd, &spec) else { panic!("ints are refused") };
        let hint = why[0].render();
        assert!(hint.contains("save q.to(torch.float32)") && !hint.contains("set the problem's dtype"), "{hint}");
        let narrow = [1, 2, 8, 8];
        assert_eq!(
            read(&file(&[("q", &full, F32), ("k", &narrow, F32), ("v", &full, F32)])),
            ["input-head-dim", "input-shape"]
        );
        assert_eq!(read(&file(&[("q", &full, F32), ("k", &full, F32), ("v", &full, F32)])), [""; 0]);
    }

    #[test]
    fn a_bshd_file_is_read_as_bhsd() {
        let spec = problem(1, 2, 2, 3, 3, 4);
        let values: Vec<f32> = (0..24).map(|i| i as f32).collect();
        let bytes = Data::F32(values).to_le_bytes();
        let view = || TensorView::new(safetensors::Dtype::F32, vec![1, 3, 2, 4], &bytes).expect("a tensor");
        let file = safetensors::serialize([("q", view()), ("k", view()), ("v", view())], None).expect("a file");
        let inputs = from_safetensors(&file, &names(), Layout::Bshd, &spec).expect("valid");
        assert_eq!(inputs.q.shape(), [1, 2, 3, 4]);
        assert_eq!(inputs.q.to_f32_vec()[4..8], [8.0, 9.0, 10.0, 11.0]); // head 0, token 1
    }
}
