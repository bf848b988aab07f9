//! Aliases and dependencies: values written in place, names of PyTorch that are assigned, last bits.

use super::*;

#[track_caller]
fn check_mask(body: &str, holds: impl Fn(i64, i64) -> bool) {
    check(&format!("import torch\ndef mod(b, h, q, k):\n    {body}\n"), Expect::Mask(&|_, _, q, k| holds(q, k)));
}

#[track_caller]
fn refused(text: &str, why: &str) {
    let traced = trace(&request(text, ModKind::Mask));
    let reported = said(&traced);
    assert!(traced.result.is_none() && reported.contains(why), "{text}\n{reported}");
}

/// As PyTorch 2.15 keeps them.
#[test]
fn a_value_written_in_place_is_seen_by_all_that_hold_it() {
    check_mask("a = c = q - k; a += 1; return c > 0", |q, k| q - k + 1 > 0);
    check_mask("a = q - k; c = a; c //= 2; return a > 3", |q, k| (q - k).div_euclid(2) > 3);
    check_mask("a = q - k; c = a.detach(); c += 1; return a > 0", |q, k| q - k + 1 > 0);
    check_mask("a = q - k; c = a; c.abs_(); return a > 4", |q, k| (q - k).abs() > 4);
    check_mask("a = q - k; c = a.clone(); c += 100; return a > 0", |q, k| q > k);
    check_mask("a = q - k; c = q - k; a += 1; return c > 0", |q, k| q > k);
    check_mask("d = q > k; d |= k == 0; return d", |q, k| q > k || k == 0);
    check_mask("d = torch.zeros_like(q - k, dtype=torch.bool); d |= q >= k; return d", |q, k| q >= k);
    check_mask("n = 0; n += q - k; m = n; n = n + 1; return m > 0", |q, k| q > k);
    let helper =
        "def far(x):\n    x -= 7\n    return x\ndef mod(b, h, q, k):\n    d = q - k\n    far(d)\n    return d > 0";
    check(helper, Expect::Mask(&|_, _, q, k| q - k > 7));
}

#[test]
fn what_pytorch_does_not_write_in_place_is_refused() {
    let mask = |body: &str| format!("import torch\ndef mod(b, h, q, k):\n    {body}\n");
    refused(&mask("d = q * 2; d += k; return d > 3"), "differs from cell to cell into a value that differs in fewer");
    refused(&mask("d = q > 3; d &= k < 2; return d"), "differs from cell to cell into a value that differs in fewer");
    refused(
        &mask("d = torch.zeros(()); d += q; return d > 0"),
        "differs from cell to cell into a value that differs in fewer",
    );
    refused(&mask("d = q - k; d += 0.5; return d > 0"), "can't be cast to the desired output type");
    refused(&mask("a = q - k; l = [a]; a += 1; return l[0] > 0"), "inside a container");
}

#[test]
fn names_of_pytorch_that_are_set_mean_what_they_were_set_to() {
    let double = "import torch\nreal = torch.arange\ntorch.arange = lambda n: real(n) * 2\nt = torch.arange(400)\ndef mod(b, h, q, k):\n    return t[q] > k";
    check(double, Expect::Mask(&|_, _, q, k| 2 * q > k));
    let imported = "import torch\nimport torch.nn.functional as F\nF.relu = lambda x: x + 5\nfrom torch.nn.functional import relu\ndef mod(b, h, q, k):\n    return relu(q - k) > 0";
    check(imported, Expect::Mask(&|_, _, q, k| q - k + 5 > 0));
    let setting = "import torch\ntorch.backends.cuda.matmul.allow_tf32 = True\ntorch._dynamo.config.cache_size_limit = 64\ndef mod(b, h, q, k):\n    return q >= k";
    check(setting, Expect::Mask(&|_, _, q, k| q >= k));
    refused(
        "import torch\ntorch.arange = nowhere\nt = torch.arange(400)\ndef mod(b, h, q, k):\n    return t[q] > k",
        "`nowhere` is not defined",
    );
    refused(
        "import torch\ntorch.Tensor.clamp = lambda x, low: x\ndef mod(b, h, q, k):\n    return q.clamp(3) > k",
        "methods of tensors cannot be replaced",
    );
}

#[test]
fn the_version_is_told_where_it_is_read() {
    let text = "import torch\nif torch.__version__ >= '2.12':\n    n = 3\nelse:\n    n = 5\ndef mod(b, h, q, k):\n    return q - k < n";
    check(text, Expect::Mask(&|_, _, q, k| q - k < 3));
    assert!(said(&trace(&request(text, ModKind::Mask))).contains("`torch.__version__` is 2.15.0 here"));
}

/// The number of notes about last bits, and their function.
fn last_bits(text: &str) -> Vec<String> {
    let traced = trace(&request(text, ModKind::Mask));
    assert!(traced.result.is_some(), "{text}\n{}", said(&traced));
    let notes = traced.diagnostics.iter().filter(|d| d.code == "last-bit");
    notes.map(|d| d.message.split('`').nth(1).unwrap_or_default().to_string()).collect()
}

#[test]
fn masks_that_follow_a_last_bit_are_told_once() {
    let mask = |setup: &str, test: &str| format!("import torch\n{setup}\ndef mod(b, h, q, k):\n    return {test}\n");
    for (setup, test, function) in [
        ("", "torch.sin(q * 0.1) + torch.exp(k * 0.1) > 0.5", "sin"),
        ("", "(q - k).float() ** 1.5 > 3", "pow"),
        ("", "torch.sigmoid(q - k) > 0.5", "sigmoid"),
        ("t = torch.linspace(0, 1, 400).exp()", "t[q] > t[k] * 1.1", "exp"),
        ("t = (torch.arange(400) / 7).sqrt() > 3", "t[q] & (k < q)", "sqrt"),
        ("t = torch.softmax(torch.arange(400.0), 0)\ni = (t * 1000).long()", "i[q] == i[k]", "softmax"),
        ("t = torch.linspace(0, 1, 400)\ns = t.sum()", "t[q] * 400 > s", "sum"),
        ("t = torch.zeros(400)\nt[:5] = torch.arange(5.0).exp()", "t[q] > t[k]", "exp"),
        ("t = torch.zeros(400)\nt += torch.arange(400.0).cos()", "t[q] > t[k]", "cos"),
        ("w = torch.arange(9.0).exp().mean().item()", "q - k < w", "exp"),
        ("w = torch.arange(9.0).cos().tolist()\nv = w[2] * 40 + 1", "q - k < v", "cos"),
        ("t = torch.arange(0, 40, 0.1)", "t[q] - t[k] >= 0.3", "arange"),
        ("w = float(torch.tensor(0.3).tanh())", "q * w < k", "tanh"),
        ("t = torch.rand(5, 400, generator=torch.Generator().manual_seed(1))", "t[:, q].sum() > 2", "sum"),
    ] {
        assert_eq!(last_bits(&mask(setup, test)), [function], "{setup} {test}");
    }
    for (setup, test) in [
        ("", "(q - k).float() / 3 > 0.7"),
        ("", "(q - k) ** 2 < 90"),
        ("t = torch.arange(400) // 7", "t[q] == t[k]"),
        ("t = torch.ones(400).sum() / 8", "q - k < t"),
        ("t = (torch.arange(400) / 7).pow(2)", "t[q] > t[k]"),
        ("w = torch.arange(9.0).exp().mean().item()\nu = 3.25", "q - k < u"),
        ("t = torch.arange(0, 100, 0.25)", "t[q] - t[k] >= 0.3"),
        ("import math\nw = math.exp(1.3)", "q - k < w"),
        ("import math\nw = [math.log(9.0 + i) for i in range(3)]", "q - k < w[1]"),
        ("w = pow(7.5, 0.3)", "q - k < w"),
        ("w = (torch.arange(9) * 0.25).max().item()", "q - k < w"),
        ("t = torch.arange(400.0).exp()\nu = torch.arange(400)", "u[q] > k"),
        ("t = torch.rand(4, 400, generator=torch.Generator().manual_seed(1))", "t[:, q].sum() > 2"),
    ] {
        assert_eq!(last_bits(&mask(setup, test)), [""; 0], "{setup} {test}");
    }
    let score = "import torch\ndef mod(score, b, h, q, k):\n    return score * torch.exp(-(q - k).abs() * 0.1)\n";
    assert!(!said(&trace(&request(score, ModKind::Score))).contains("last bit"));
}
