//! Mistakes and their messages.

use crate::base::tensor::Data;
use crate::python::trace::tests::*;

/// Traces a mask and gives, for each diagnostic, its line, column, code and hint.
fn reported(text: &str) -> Vec<String> {
    told_by(&request(text, ModKind::Mask))
}

fn told_by(request: &TraceRequest) -> Vec<String> {
    let line = |d: &Diagnostic| {
        let place = d.line_column().map_or("-".to_string(), |(l, c)| format!("{l}:{c}"));
        assert!(d.hint.is_some(), "{d}");
        format!("{place} {} | {}", d.code, d.hint.as_deref().unwrap_or(""))
    };
    trace(request).diagnostics.iter().map(line).collect()
}

#[track_caller]
fn check_told(body: &str, wanted: &str) {
    let text = format!("def mod(b, h, q, k):\n    {body}\n");
    let reported = reported(&text);
    assert_eq!(reported.first().map(String::as_str).unwrap_or("nothing"), wanted, "{text}\n{reported:#?}");
}

#[test]
fn one_message_in_full() {
    check(
        "def mod(b, h, q_idx, kv_idx):\n    if q_idx > 100:\n        return q_idx >= kv_idx\n    return kv_idx < 4\n",
        Expect::Said(
            "mod.py:2:8: error[branch-on-index]: `if q_idx > 100` branches on a value that differs from cell to cell; a mod is traced once for all cells
  2 |     if q_idx > 100:
    |        ^^^^^^^^^^^
  help: write `return torch.where(q_idx > 100, q_idx >= kv_idx, kv_idx < 4)`",
        ),
    );
}

#[test]
fn branches_and_truth_values() {
    check_told("return q if q > k else k", "2:17 branch-on-index | write `torch.where(q > k, q, k)`");
    check_told("return q >= k and q - k < 5", "2:12 bool-op-on-index | write `(q >= k) & (q - k < 5)`");
    check_told("return not q >= k", "2:12 bool-op-on-index | write `~(q >= k)`");
    check_told("return 0 <= q - k < 5", "2:12 chained-comparison | write `(0 <= q - k) & (q - k < 5)`");
    check_told("return q >= k & q - k < 5", "2:12 bit-precedence | write `(q >= k) & (q - k < 5)`");
    check_told("return q in (1, 2)", "2:12 branch-on-index | write `(q == 1) | (q == 2)`");
    check_told("return max(q, k) > 3", "2:12 branch-on-index | write `torch.maximum(q, k)`");
    check_told("return int(q / 2) == k", "2:12 value-of-index | write `(q // 2)`");
    check_told("return q.item() == k", "2:12 value-of-index | compute with the tensor itself");
    check_told("return [1, 2, 3][q] == k", "2:12 list-by-index | write `torch.tensor([1, 2, 3])`");
}

#[test]
fn names_and_functions() {
    check_told("return torch.abss(q - k) < 3", "2:12 unknown-function | did you mean `torch.abs`?");
    check_told("return (q - k).clmp(0) < 3", "2:20 unknown-function | did you mean `.clamp`?");
    check_told("widht = 3\n    return q - k < width", "3:20 unknown-name | did you mean `widht`?");
    check_told("return math.sqrt(q) < k", "2:12 value-of-index | write `torch.sqrt(q)`");
    let missing =
        reported("from attn_gym.masks import causal_mask\ndef mod(b, h, q, k):\n    return causal_mask(b, h, q, k)\n");
    assert_eq!(
        missing,
        [
            "3:12 unknown-module | install attn-gym in the first Python that is found, or name its folder: `--package DIR`"
        ]
    );
}

#[test]
fn signatures_and_results() {
    let got = reported("def mod(b, h, q):\n    return q > 0\nother = mod\n");
    assert_eq!(got.len(), 1, "{got:?}");
    let entry = |text: &str, kind| TraceRequest { entry: "mod".into(), call: Call::Mod, ..request(text, kind) };
    let three = "def mod(b, h, q):\n    return q > 0\n";
    let traced = trace(&entry(three, ModKind::Mask));
    assert_eq!(traced.diagnostics[0].message, "Expected 4 or 5 positional args, got 3");
    assert_eq!(traced.diagnostics[0].line_column(), Some((1, 5)));
    check_told("q >= k", "1:5 wrong-result | end it with `return` and the condition or score");
    check_told("return q, k", "1:5 wrong-result | return one value: combine conditions with `&`");
    check_told(
        "return q / 2",
        "2:12 float-mask | return a condition, such as `score > 0`; to change scores write a score_mod(score, b, h, q_idx, kv_idx)",
    );
    let bool_score = told_by(&request("def mod(s, b, h, q, k):\n    return q >= k\n", ModKind::Score));
    assert!(bool_score[0].starts_with("2:12 bool-score"), "{bool_score:?}");
    check_told(
        "return q > 5",
        "1:5 ignores-kv | it drops queries, and padded keys stay visible: read the table at kv_idx (`keep[b, kv_idx]`), or compare q_idx with kv_idx; queries without keys give zeros",
    );
    check_told(
        "return (q - k) & 1",
        "2:12 mask-not-bool | compare, as in `x != 0`: create_block_mask refuses other types",
    );
    check_told(
        "return (q >= k) & (q - k / 2)",
        "2:12 dtype | compare first, as in `(x > 0) & (y > 0)`; put comparisons in parentheses; for an int quotient use `//`",
    );
}

#[test]
fn factories_say_what_they_miss() {
    let text = "def make(width: int, offsets: 'torch.Tensor'):\n    def m(b, h, q, k):\n        return q - k < width\n    return m\n";
    assert_eq!(
        reported(text),
        ["1:5 missing-argument | pass a value, `--arg NAME=VALUE`, or write a default in the signature"]
    );
    let traced = trace(&request(text, ModKind::Mask));
    assert_eq!(traced.diagnostics[0].message, "make() misses 2 arguments: `width`, `offsets` (0 given by position)");
    let wrong = TraceRequest { args: vec![("widht".into(), Arg::Int(3))], ..request(text, ModKind::Mask) };
    let hint = trace(&wrong).diagnostics[0].clone();
    assert!(hint.code == "missing-argument" || hint.code == "unexpected-argument", "{hint}");
    let asserting = "def make(n: int = 0):\n    assert n > 0, f'n is {n}'\n    return lambda b, h, q, k: q >= k\n";
    assert_eq!(trace(&request(asserting, ModKind::Mask)).diagnostics[0].message, "n is 0");
    let raising = "def make(n: int = 0):\n    if n < 1:\n        raise ValueError(f'n must be positive, got {n}')\n    return lambda b, h, q, k: q >= k\n";
    assert_eq!(trace(&request(raising, ModKind::Mask)).diagnostics[0].message, "ValueError: n must be positive, got 0");
}

#[test]
fn captured_tensors_are_read_inside_their_bounds() {
    let table = |body: &str| {
        let text = format!("def mod(b, h, q, k):\n    return {body}\n");
        let tensor = HostTensor::vector(Data::I32((0..32).collect()));
        told_by(&TraceRequest { globals: vec![("t".into(), tensor)], ..request(&text, ModKind::Mask) })
    };
    assert!(table("t[q] < k").is_empty());
    assert!(table("t[q % 32] < k").is_empty() && table("t[(q - k).clamp(0, 31)] < k").is_empty());
    for body in ["t[q % 64] < k", "t[(q - k).clamp(0, 32)] < k", "t[h + 32] < k", "t[t[q] + 1] < k"] {
        assert!(table(body).iter().any(|t| t.contains("index-out-of-range")), "{body}: {:?}", table(body));
    }
    assert!(table("t[40] < k + q")[0].contains("index-out-of-range"), "{:?}", table("t[40] < k + q"));
    assert!(table("t[q / 2] < k")[0].starts_with("2:12 index-dtype | use `//`"), "{:?}", table("t[q / 2] < k"));
    for narrow in ["uint8", "int8", "int16"] {
        let told = table(&format!("t[q.to(torch.{narrow})] < k"));
        assert_eq!(told[0], "2:12 index-dtype | convert the index with .to(torch.int64)", "{narrow}");
    }
    assert!(!table("t[(q % 32).to(torch.int32)] < k").iter().any(|t| t.contains("index")));
    assert!(table("t[q, k] < 3")[0].contains("index-error"));
    assert!(table("t < q")[0].contains("wrong-result"));
}

#[test]
fn several_syntax_errors_at_once() {
    let reported = reported("def mod(b, h, q, k):\n    return (q >=\n\ndef other(b, h, q k):\n    return q\n");
    assert!(reported.len() >= 2 && reported.iter().all(|t| t.contains("syntax")), "{reported:#?}");
}

#[test]
fn a_helper_far_away_is_pointed_at_with_its_caller() {
    let text = "def far(x):\n    return x and 3\n\ndef mod(b, h, q, k):\n    return far(q) == k\n";
    let traced = trace(&request(text, ModKind::Mask));
    let lines: Vec<_> = traced.diagnostics[0].labels.iter().map(|l| (l.span.start, l.text.clone())).collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!((traced.diagnostics[0].line_column(), lines[1].1.as_str()), (Some((2, 12)), "called from here"));
}

#[test]
fn what_was_meant_is_what_is_told() {
    let told_of = |text: &str| reported(text).first().cloned().unwrap_or_default();
    let causal = "def causal(b, h, q, k):\n    return q >= k\n";
    assert!(told_of(&format!("{causal}m = and_masks([causal, causal])\n")).starts_with("3:5 not-a-mod"));
    let unreturned = "def make(w: int = 4):\n    def m(b, h, q, k):\n        return q - k < w\n";
    let forgot = TraceRequest { entry: "make".into(), ..request(unreturned, ModKind::Mask) };
    assert!(told_by(&forgot)[0].starts_with("1:5 not-a-mod"));
    let called = "def make(w: int = 4):\n    def m(b, h, q, k):\n        return q - k < w\n    return m(0, 0, 1, 2)\n";
    let called = TraceRequest { entry: "make".into(), ..request(called, ModKind::Mask) };
    assert!(told_by(&called)[0].starts_with("1:5 not-a-mod"));
    assert!(told_of("def m(b, h, q, k):\n    return q.shpe[0] >= k\n").starts_with("2:14 unknown-function"));
    assert_eq!(told_of("def m(b, h, q, k):\n    return q ≥ k\n"), "2:14 syntax | write `>=` for `≥`");
    let other = format!("{causal}def m(b, h, q, k):\n    return causal(b, h, q_idx=q, kv=k)\n");
    assert_eq!(told_of(&other), "4:12 missing-argument | it has no parameter `q_idx`, `kv`: pass `q`, `k` instead");
}

#[test]
fn windows_say_their_convention() {
    let note = |op: &str| reported(&format!("def mod(b, h, q, k):\n    return (q >= k) & (q - k {op} 128)\n"));
    assert!(note("<")[0].contains("window-convention") && note("<=")[0].contains("window-convention"));
}

#[test]
fn several_mistakes_of_a_mod_are_told_at_once() {
    let text = "def mod(b, h, q, k):\n    near = q - k < 8 and torch.abss(q) > 3\n    far = kv > 9\n    \
                if q > k:\n        far = near\n    both = near | far\n    return (not both) & torch.clmp(q, 0)\n";
    let places: Vec<String> = reported(text).iter().map(|t| t.split(" |").next().unwrap_or("").to_string()).collect();
    assert_eq!(
        places,
        [
            "2:12 bool-op-on-index",
            "2:26 unknown-function",
            "3:11 unknown-name",
            "4:8 branch-on-index",
            "7:25 unknown-function",
            "2:26 missing-import"
        ],
        "{text}"
    );
    // an exception that the text itself catches is no mistake
    let caught = "def mod(b, h, q, k):\n    try:\n        w = undefined\n    except NameError:\n        w = 5\n    return q - k < w\n";
    assert!(reported(caught).is_empty(), "{:?}", reported(caught));
    // and a factory's refusal ends it
    let refuses = "def mod(b, h, q, k):\n    raise ValueError('no')\n    return nothing\n";
    assert_eq!(reported(refuses).len(), 1);
}

#[test]
fn many_branches_are_told_without_writing_every_way_through_them() {
    // each `if` that goes on to the next doubled the suggestion: 100 of them took 5 GB
    for count in [10, 100, 3000] {
        let text = format!("def mod(b, h, q, k):\n{}    return q >= k\n", "    if q > k: pass\n".repeat(count));
        let reported = reported(&text);
        assert!(reported[0].starts_with("2:8 branch-on-index | "), "{reported:#?}");
        assert!(reported.iter().all(|line| line.len() < 700), "{reported:#?}");
    }
}
