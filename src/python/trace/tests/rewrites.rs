//! A diagnostic's suggested code is pasted, and then the text traces.

use crate::python::trace::tests::*;

/// Pastes rewrites until no message has one; returns the text.
#[track_caller]
fn pasted(text: &str, kind: ModKind) -> String {
    let mut text = text.to_string();
    for _ in 0..6 {
        let traced = trace(&request(&text, kind));
        let carrying = traced.diagnostics.iter().find(|d| d.rewrite.is_some());
        let Some(found) = carrying else {
            assert!(traced.result.is_some(), "{text}\n{}", said(&traced));
            return text;
        };
        // the place of the rewrite and the marked place overlap
        let (label, rewrite) = (&found.labels[0], found.rewrite.as_ref().unwrap());
        assert!(label.span.start < rewrite.span.end && rewrite.span.start < label.span.end, "{found}");
        text = found.rewritten().expect("a place in the text");
    }
    panic!("no end of rewrites: {text}");
}

#[track_caller]
fn check_mask(body: &str, wanted: &str, holds: impl Fn(i64, i64, i64, i64) -> bool) {
    let text = pasted(&format!("def mod(b, h, q, k):\n    {body}\n"), ModKind::Mask);
    let lines: Vec<&str> = text.lines().skip(1).map(str::trim).collect();
    assert_eq!(lines.join("; "), wanted, "{body}");
    check(&text, Expect::Mask(&holds));
}

#[test]
fn logic_is_rewritten_as_a_whole() {
    check_mask("return q >= k and q - k < 5", "return (q >= k) & (q - k < 5)", |_, _, q, k| q >= k && q - k < 5);
    check_mask("return not q < k or k < 4", "return ~(q < k) | (k < 4)", |_, _, q, k| q >= k || k < 4);
    check_mask(
        "return not (q < k or k > 90) and 0 <= q - k < 9",
        "return ~((q < k) | (k > 90)) & ((0 <= q - k) & (q - k < 9))",
        |_, _, q, k| q >= k && k <= 90 && q - k < 9,
    );
    check_mask("return k < 3 or q > 7 and k == q", "return (k < 3) | ((q > 7) & (k == q))", |_, _, q, k| {
        k < 3 || q > 7 && k == q
    });
    check_mask("return 0 <= q - k < 5", "return (0 <= q - k) & (q - k < 5)", |_, _, q, k| (0..5).contains(&(q - k)));
    check_mask("return 0 <= k <= q < 50", "return (0 <= k) & (k <= q) & (q < 50)", |_, _, q, k| k <= q && q < 50);
}

#[test]
fn tests_of_numbers_are_compared_with_nothing() {
    let both = |_: i64, _: i64, q: i64, k: i64| q % 7 != 0 && k != 0;
    let text =
        pasted("def mod(b, h, q, k):\n    if q % 7 and k:\n        return True\n    return False\n", ModKind::Mask);
    check(&text, Expect::Mask(&both));
    let text = pasted(
        "def mod(b, h, q, k):\n    if not (q % 7 and k):\n        return False\n    return True\n",
        ModKind::Mask,
    );
    check(&text, Expect::Mask(&both));
    let text = pasted(
        "def mod(b, h, q, k):\n    x = 1\n    if q - k or h:\n        x = 2\n    return x == 2\n",
        ModKind::Mask,
    );
    check(&text, Expect::Mask(&|_, h, q, k| q != k || h != 0));
}

#[test]
fn precedence_is_rewritten() {
    let both = |_: i64, _: i64, q: i64, k: i64| q >= k && q - k < 8;
    check_mask("return q >= k & q - k < 8", "return (q >= k) & (q - k < 8)", both);
    check_mask("return q >= k & q - k < 8 & k > 2", "return (q >= k) & (q - k < 8) & (k > 2)", |_, _, q, k| {
        q >= k && q - k < 8 && k > 2
    });
    check_mask("return (q >= k) & q // 8 == k // 8", "return (q >= k) & (q // 8 == k // 8)", |_, _, q, k| {
        q >= k && q / 8 == k / 8
    });
    check_mask("return (q >= k) == (k > 3) & k < 9", "return ((q >= k) == (k > 3)) & (k < 9)", |_, _, q, k| {
        (q >= k) == (k > 3) && k < 9
    });
    check_mask("return q == k | k == 3", "return (q == k) | (k == 3)", |_, _, q, k| q == k || k == 3);
}

#[test]
fn branches_become_choices() {
    check_mask(
        "if q >= 20:\n        return q - k < 8\n    return k < 4",
        "return torch.where(q >= 20, q - k < 8, k < 4)",
        |_, _, q, k| if q >= 20 { q - k < 8 } else { k < 4 },
    );
    check_mask(
        "if q > 40 and k > 3:\n        w = 3\n    elif q > 20:\n        w = 5\n    else:\n        w = 9\n    return q - k < w",
        "w = torch.where((q > 40) & (k > 3), 3, torch.where(q > 20, 5, 9)); return q - k < w",
        |_, _, q, k| {
            q - k
                < if q > 40 && k > 3 {
                    3
                } else if q > 20 {
                    5
                } else {
                    9
                }
        },
    );
    check_mask(
        "w = 4\n    if h > 0:\n        w = 8\n    return q - k < w",
        "w = 4; w = torch.where(h > 0, 8, w); return q - k < w",
        |_, h, q, k| q - k < if h > 0 { 8 } else { 4 },
    );
    check_mask("return k < 4 if q < 8 else q >= k", "return torch.where(q < 8, k < 4, q >= k)", |_, _, q, k| {
        if q < 8 { k < 4 } else { q >= k }
    });
    check_mask("assert q >= 0\n    return q >= k", "pass; return q >= k", |_, _, q, k| q >= k);
}

#[test]
fn functions_of_python_become_those_of_torch() {
    check_mask(
        "return max(q, k) - min(q, k) < 4",
        "return torch.maximum(q, k) - torch.minimum(q, k) < 4",
        |_, _, q, k| (q - k).abs() < 4,
    );
    check_mask("return max(q - 9, 0) <= k", "return torch.clamp(q - 9, min=0) <= k", |_, _, q, k| (q - 9).max(0) <= k);
    check_mask("return int(q / 8) == int(k / 8)", "return (q // 8) == (k // 8)", |_, _, q, k| q / 8 == k / 8);
    check_mask("return int((q + 1) / 8) == k", "return ((q + 1) // 8) == k", |_, _, q, k| (q + 1) / 8 == k);
    check_mask(
        "return int((q - k) / 8) == 0",
        "return torch.div(q - k, 8, rounding_mode=\"trunc\") == 0",
        |_, _, q, k| (q - k) / 8 == 0,
    );
    check_mask("return float(q) * 0.5 > k", "return (q).to(torch.float32) * 0.5 > k", |_, _, q, k| q > 2 * k);
    check_mask("return bool(q >= k)", "return (q >= k)", |_, _, q, k| q >= k);
    check_mask("return any([q == k, k < 4])", "return ((q == k) | (k < 4))", |_, _, q, k| q == k || k < 4);
    check_mask("return k in (0, 1, 5)", "return (k == 0) | (k == 1) | (k == 5)", |_, _, _, k| matches!(k, 0 | 1 | 5));
    check_mask("return k not in (0, 1) and q >= k", "return ~((k == 0) | (k == 1)) & (q >= k)", |_, _, q, k| {
        k > 1 && q >= k
    });
    check_mask("return math.sqrt(q) > k", "return torch.sqrt(q) > k", |_, _, q, k| q > k * k);
}

#[test]
fn names_are_rewritten_to_the_nearest() {
    check_mask("return torch.absolut(q - k) < 3", "return torch.absolute(q - k) < 3", |_, _, q, k| (q - k).abs() < 3);
    check_mask("return (q - k).ab() < 3", "return (q - k).abs() < 3", |_, _, q, k| (q - k).abs() < 3);
    check_mask("width = 5\n    return q - k < widht", "width = 5; return q - k < width", |_, _, q, k| q - k < 5);
    let offset = "table = torch.arange(512)\ndef m(b, h, q, k):\n    return table[(q + 1) / 2] >= k\n";
    assert!(pasted(offset, ModKind::Mask).contains("table[(q + 1) // 2]"));
    let text = "class C:\n    window = 3\nc = C()\ntable = torch.arange(512)\ndef m(b, h, q, k):\n    \
                return (q - table[k / 1] < c.windw) & (q >= k)\n";
    let text = pasted(text, ModKind::Mask);
    assert!(text.contains("table[k // 1] < c.window)"), "{text}");
    let score = "def m(score, b, h, q, k):\n    return score if q >= k else -1e4\n";
    assert!(pasted(score, ModKind::Score).contains("return torch.where(q >= k, score, -1e4)"));
}

#[test]
fn causes_are_told() {
    let first = |text: &str| {
        let reported = trace(&request(text, ModKind::Mask)).diagnostics;
        let hint = reported[0].hint.clone().unwrap_or_default();
        format!(
            "{:?} {} | {} | {hint}",
            reported[0].line_column().unwrap_or_default(),
            reported[0].code,
            reported[0].message
        )
    };
    for (text, wanted) in [
        ("def mask_mod(b, q, k):\n    return q >= k\n", "(1, 5) wrong-arity | Expected 4 or 5 positional args, got 3"),
        ("def mod(b, h, q, k):\n    return np.abs(q) < k\n", "begin the text with `import numpy as np`"),
        ("t = torch.zeros(4, dtyp=torch.bool)\ndef m(b, h, q, k):\n    return t[q % 4]\n", "did you mean `dtype`?"),
        ("def m(b, h, q, k):\n    return torch.clamp(q - k, minn=0) < 3\n", "did you mean `min`?"),
        ("w = None\ndef m(b, h, q, k):\n    return q - k < w\n", "(3, 12) type-error | `<` compares with None"),
        ("cfg = {'window': 3}\ndef m(b, h, q, k):\n    return q - k < cfg['windw']\n", "did you mean 'window'?"),
        ("def m(b, h, q, k):\n    return q = k\n", "write `==` to compare"),
        ("def m(b, h, q, k):\n    return !(q >= k)\n", "write `~(...)` for not"),
        ("def m(b, h, q, k):\n    return q > k ? q : k\n", "torch.where(condition, a, b)"),
        ("def m(n=3):\n    if n:\n        w = 3\n    else if n > 1:\n        w = 2\n", "write `elif`"),
        (
            "def make(w=3):\n    def m(b, h, q, k):\n        return q - k < w\n    return m\nmod = and_masks(make, make(4))\n",
            "(5, 7) not-a-mod | `make` takes 0 arguments, but a mask_mod takes 4 | it returns a mask: call it, `make(...)`",
        ),
    ] {
        let reported = first(text);
        assert!(reported.contains(wanted), "{reported}\ninstead of {wanted}\n{text}");
    }
}

#[test]
fn writing_into_an_index_is_told_and_done() {
    let text =
        "def low(n):\n    n &= 7\n    return n\ndef mod(b, h, q, k):\n    a = low(q)\n    return (a >= k) | (q < 2)\n";
    let traced = trace(&request(text, ModKind::Mask));
    assert_eq!(traced.diagnostics[0].code, "writes-index", "{}", said(&traced));
    // q_idx itself has its changed value, as in PyTorch
    check(text, Expect::Mask(&|_, _, q, k| (q & 7) >= k || (q & 7) < 2));
}

/// The message about a mod's body instead of a rewrite.
#[track_caller]
fn check_no_rewrite(text: &str) {
    let traced = trace(&request(text, ModKind::Mask));
    assert!(traced.result.is_none(), "{text}");
    let offered = traced.diagnostics.iter().find_map(|d| d.rewrite.as_ref());
    assert!(offered.is_none(), "{text}\n{}", said(&traced));
}

#[test]
fn names_bound_inside_keep_their_parentheses() {
    check_mask("return (d := q - k) >= 0 and d < 9", "return ((d := q - k) >= 0) & (d < 9)", |_, _, q, k| {
        (0..9).contains(&(q - k))
    });
    check_mask(
        "return 0 <= (d := q - k) < 9 or d > 50",
        "return ((0 <= (d := q - k)) & (d < 9)) | (d > 50)",
        |_, _, q, k| (0..9).contains(&(q - k)) || q - k > 50,
    );
    check_mask("return (q & 3) == 1 and k < 9", "return ((q & 3) == 1) & (k < 9)", |_, _, q, k| q & 3 == 1 && k < 9);
}

#[test]
fn logic_inside_calls_and_choices_is_rewritten_too() {
    check_mask(
        "spans = [(2, 9), (20, 40)]\n    return any(s <= k and k < e for s, e in spans) or q == k",
        "spans = [(2, 9), (20, 40)]; return (torch.stack([(s <= k) & (k < e) for s, e in spans]).any(0)) | (q == k)",
        |_, _, q, k| [(2, 9), (20, 40)].iter().any(|(s, e)| *s <= k && k < *e) || q == k,
    );
    check_mask(
        "return torch.where(q > 9 and k > 3, q, 4) > k",
        "return torch.where((q > 9) & (k > 3), q, 4) > k",
        |_, _, q, k| if q > 9 && k > 3 { q > k } else { 4 > k },
    );
    check_mask("return not q % 7", "return q % 7 == 0", |_, _, q, _| q % 7 == 0);
}

#[test]
fn what_is_not_certain_gets_no_rewrite() {
    for body in [
        // numbers: `and` gives one of them
        "return q - k and q % 7",
        "w = (q > 5) and 3\n    return q - k < w",
        // PyTorch divides in every cell, by 0 too
        "return k > 0 and q % k == 0",
        "return q % k == 0 if k > 0 else False",
        // strings
        "kind = \"near\" if q - k < 5 else \"far\"\n    return kind == \"near\"",
        // a name that has no value before
        "if q > 3:\n        w = 4\n    return q - k < w",
        // one set name is read by the next
        "a = 1\n    c = 2\n    if q > 3:\n        a = k\n        c = a + 1\n    return q - k < c",
        "seen = []\n    if q > 3:\n        seen.append(q)\n    return q > k",
    ] {
        check_no_rewrite(&format!("def mod(b, h, q, k):\n    {body}\n"));
    }
    check_no_rewrite(
        "def fact(n):\n    return 1 if n <= 1 else n * fact(n - 1)\ndef mod(b, h, q, k):\n    return fact(q % 3) > k\n",
    );
    check_no_rewrite(
        "def f(n):\n    if n <= 1:\n        return 1\n    return g(n - 1)\ndef g(n):\n    return f(n)\ndef mod(b, h, q, k):\n    return f(q % 3) > k\n",
    );
}

#[test]
fn branches_that_set_several_names_become_choices() {
    check_mask(
        "lo = 0\n    if q > 30:\n        lo = 5\n        hi = 20\n    elif q > 10:\n        hi = 9\n    else:\n        lo, hi_ = 1, 2\n        hi = 3\n    return (k >= lo) & (k < hi)"
            .replace("        lo, hi_ = 1, 2\n", "        lo = 1\n")
            .as_str(),
        "lo = 0; lo, hi = torch.where(q > 30, 5, torch.where(q > 10, lo, 1)), torch.where(q > 30, 20, torch.where(q > 10, 9, 3)); return (k >= lo) & (k < hi)",
        |_, _, q, k| {
            let (lo, hi) = if q > 30 { (5, 20) } else if q > 10 { (0, 9) } else { (1, 3) };
            k >= lo && k < hi
        },
    );
    check_mask(
        "n = q - k\n    if q > 9:\n        n += 4\n    return n < 9",
        "n = q - k; n = torch.where(q > 9, n + 4, n); return n < 9",
        |_, _, q, k| {
            if q > 9 { q - k + 4 < 9 } else { q - k < 9 }
        },
    );
    check_mask(
        "if h == 0:\n        if q > 9:\n            return q >= k\n        return k < 4\n    return q == k",
        "return torch.where(h == 0, torch.where(q > 9, q >= k, k < 4), q == k)",
        |_, h, q, k| if h == 0 { if q > 9 { q >= k } else { k < 4 } } else { q == k },
    );
}

#[test]
fn tables_of_python_become_tensors() {
    check_mask(
        "windows = [3, 9, 27, 81]\n    return q - k < windows[h]",
        "windows = [3, 9, 27, 81]; return q - k < torch.tensor(windows)[h]",
        |_, h, q, k| q - k < [3, 9, 27, 81][h as usize],
    );
    check_mask(
        "w = {0: 3, 1: 9, 2: 5, 3: 4}\n    return q - k < w[h]",
        "w = {0: 3, 1: 9, 2: 5, 3: 4}; return q - k < torch.tensor([w[i] for i in range(4)])[h]",
        |_, h, q, k| q - k < [3, 9, 5, 4][h as usize],
    );
    check_mask(
        "sinks = [0, 3, 40]\n    return k in sinks",
        "sinks = [0, 3, 40]; return (k == torch.tensor(sinks)).any()",
        |_, _, _, k| [0, 3, 40].contains(&k),
    );
    check_mask(
        "return max(q - k, k - q, 2) < 9",
        "return torch.maximum(torch.clamp(q - k, min=2), k - q) < 9",
        |_, _, q, k| (q - k).abs().max(2) < 9,
    );
    check_mask(
        "w = 5\n    return min(q, w, 3) > k",
        "w = 5; return torch.clamp(q, max=min(w, 3)) > k",
        |_, _, q, k| q.min(3) > k,
    );
    let numpy = "import numpy as np\ndef m(b, h, q, k):\n    return np.abs(q - k) < 4\n";
    assert!(pasted(numpy, ModKind::Mask).contains("return torch.abs(q - k) < 4"));
}
