//! Typical mods, and their values.

use crate::base::tensor::Data;
use crate::python::trace::tests::*;

#[test]
fn the_usual_masks() {
    check("def causal(b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx\n", Expect::Mask(&|_, _, q, k| q >= k));
    check(
        "window = 25\nmod = lambda b, h, q, kv: (q - kv).abs() <= window",
        Expect::Mask(&|_, _, q, k| (q - k).abs() <= 25),
    );
    check(
        "def mod(b, h, q_idx, kv_idx):\n    span = 16 * (h + 1)\n    return (q_idx >= kv_idx) & (q_idx - kv_idx < span)",
        Expect::Mask(&|_, h, q, k| q >= k && q - k < 16 * (h + 1)),
    );
    check(
        "def window(b, h, q_idx, kv_idx):\n    return q_idx - kv_idx <= 50\n\ndef sink(b, h, q_idx, kv_idx):\n    return kv_idx < 4\n\n\
         def causal(b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx\n\nmod = and_masks(causal, or_masks(window, sink))",
        Expect::Mask(&|_, _, q, k| q >= k && (q - k <= 50 || k < 4)),
    );
}

#[test]
fn the_usual_scores() {
    check(
        "import torch\ndef mod(score, b, h, q_idx, kv_idx):\n    dist = torch.abs(q_idx - kv_idx)\n    near = dist < 32\n    \
         return torch.where(near, score * 1.5, score - 0.01 * dist)",
        Expect::Score(&|s, _, _, q, k| {
            let d = (q - k).abs();
            if d < 32 { s * 1.5 } else { s - 0.01 * d as f64 }
        }),
    );
    check(
        "def alibi(H: int = 4):\n    def f(score, b, h, q_idx, kv_idx):\n        scale = torch.exp2(-((h + 1) * 8.0 / H))\n        \
         return score + (kv_idx - q_idx) * scale\n    return f",
        Expect::Score(&|s, _, h, q, k| s + (k - q) as f64 * (-((h + 1) as f64 * 2.0)).exp2()),
    );
}

#[test]
fn functions_of_the_graph_have_all_their_names() {
    for name in ["torch.asinh(x)", "torch.arcsinh(input=x)", "x.asinh()", "x.arcsinh()"] {
        let text = format!("def mod(score, b, h, q_idx, kv_idx):\n    x = score - 0.25 * kv_idx\n    return {name}");
        check(&text, Expect::Score(&|s, _, _, _, k| (s - 0.25 * k as f64).asinh()));
    }
    check(
        "def mod(b, h, q_idx, kv_idx):\n    return torch.logical_and(torch.ge(q_idx, kv_idx), torch.less(q_idx, torch.maximum(kv_idx, h)) ^ True)",
        Expect::Mask(&|_, h, q, k| q >= k && q >= k.max(h)),
    );
}

#[test]
fn captured_tensors_are_read() {
    let table: Vec<f32> = (0..128).map(|i| (i * i % 31) as f32 / 4.0).collect();
    let values = table.clone();
    let request = TraceRequest {
        globals: vec![("table".into(), HostTensor::new([2, 64], Data::F32(table)).expect("fits"))],
        ..request(
            "def mod(score, b, h, q_idx, kv_idx):\n    return score + table[h % 2, (q_idx - kv_idx).clamp(0, 63)]",
            ModKind::Score,
        )
    };
    let at = |h: i64, q: i64, k: i64| f64::from(values[(h % 2 * 64 + (q - k).clamp(0, 63)) as usize]);
    check_request(&request, Expect::Score(&|s, _, h, q, k| s + at(h, q, k)));
    assert_eq!(trace(&request).result.expect("traced").graph.captures()[0].name, "table");
}
