//! Texts that try to hang, crash or fill the memory: each gives a diagnostic.

use crate::ir::random;
use crate::python::trace::tests::*;

/// Traces and gives the code of the first error.
fn code(text: &str) -> String {
    // the usual number of steps takes unoptimised builds long
    let limits = Limits { steps: 2_000_000, ..Limits::default() };
    let traced = trace(&TraceRequest { limits, ..request(text, ModKind::Mask) });
    let first = traced.diagnostics.iter().find(|d| d.is_error());
    first.map_or_else(|| "none".to_string(), |d| d.code.to_string())
}

#[test]
fn limits_are_diagnostics() {
    let mod_with = |line: &str| format!("def m(b, h, q, k):\n    {line}\n    return q >= k\n");
    let cases = [
        (mod_with("while True:\n        pass"), "too-many-steps|too-slow"),
        (mod_with("for i in range(10 ** 15):\n        pass"), "too-many-steps|too-slow"),
        (mod_with("x = [0] * 10 ** 12"), "too-large"),
        (mod_with("x = 'a' * 10 ** 12"), "too-large"),
        (mod_with("x = list(range(10 ** 12))"), "too-large"),
        (mod_with("x = torch.zeros(10 ** 6, 10 ** 6)"), "tensor-too-large"),
        (mod_with("x = torch.arange(10 ** 13)"), "tensor-too-large"),
        (mod_with("x = 10 ** 10 ** 10"), "int-overflow"),
        (mod_with("x = 1 << 100000"), "int-overflow"),
        (mod_with("x = sum(i for i in range(10 ** 9))"), "endless|too-large|too-many-steps|too-slow"),
        (mod_with("x = [q]\n    for i in range(30):\n        x = x + x"), "too-large"),
        (
            mod_with("x = q\n    for i in range(10 ** 6):\n        x = x * 3 + i"),
            "graph-too-large|too-many-steps|too-slow",
        ),
        ("def f(x):\n    return f(x)\ndef m(b, h, q, k):\n    return f(q)\n".into(), "recursion"),
        ("f = lambda x: f(x)\nm = lambda b, h, q, k: f(q)\n".into(), "recursion"),
        (format!("m = lambda b, h, q, k: {}q{} > 0\n", "(".repeat(5000), ")".repeat(5000)), "nesting-too-deep"),
        (format!("m = lambda b, h, q, k: {}q > 0\n", "-".repeat(400_000)), "nesting-too-deep"),
        (format!("m = lambda b, h, q, k: {} > 0\n", vec!["q"; 100_000].join(" + ")), "nesting-too-deep"),
        (format!("x = {}1{}\n", "[".repeat(900), "]".repeat(900)), "entry-not-found"),
        ("x = 1\n".repeat(200_000), "source-too-long"),
        (mod_with("import itertools\n    x = list(itertools.islice(itertools.count(), 10 ** 12))"), "endless"),
        ("\0\u{1}\u{fffd}def".into(), "syntax"),
        ("".into(), "entry-not-found"),
        (
            mod_with("x, y = [0], [0]\n    for i in range(40):\n        x, y = [x, x], [y, y]\n    z = x == y"),
            "too-slow",
        ),
        (mod_with("x = q\n    for i in range(5000):\n        x = x * k % 1000\n    return x > 3"), "chain-too-long"),
    ];
    for (text, wanted) in cases {
        let got = code(&text);
        assert!(wanted.split('|').any(|w| w == got), "{got} instead of {wanted}: {:.80}", text);
    }
}

#[test]
fn functions_as_keys_are_dropped() {
    // a key with a value of its own is dropped while the values of its dict are
    for text in [
        "table = {lambda x: x: [[1]]}\ntable = None\n",
        "def f():\n    d = {}\n    for n in range(3):\n        d[lambda x, y=[n]: x] = {(lambda z: z): [d]}\n    return 1\nn = f()\n",
    ] {
        assert_eq!(code(&format!("{text}def m(b, h, q, k):\n    return q >= k\n")), "none", "{text}");
    }
}

#[test]
fn ten_megabytes_are_refused_unread() {
    let source = Source::new("big.py", "x = 1\n".repeat(1_700_000));
    let outlined = crate::python::outline::outline(&source);
    assert_eq!(outlined.diagnostics[0].code, "source-too-long");
    assert_eq!(trace(&TraceRequest::new(source, "", ModKind::Mask)).diagnostics[0].code, "source-too-long");
}

#[test]
fn deep_values_are_dropped_without_recursion() {
    for text in [
        "x = []\nfor i in range(300000):\n    x = [x]\n",
        "x = {}\nfor i in range(200000):\n    x = {'a': x}\n",
        "def f():\n    pass\nfor i in range(100000):\n    def f(g=f):\n        pass\n",
        "from functools import partial\nx = print\nfor i in range(100000):\n    x = partial(x, 1)\n",
        "class A:\n    pass\nx = None\nfor i in range(50000):\n    a = A()\n    a.next = x\n    x = a\n",
    ] {
        let text = format!("{text}m = lambda b, h, q, k: q >= k\n");
        let traced = trace(&request(&text, ModKind::Mask));
        assert!(traced.result.is_some(), "{text}\n{}", said(&traced));
    }
}

#[test]
fn mutated_texts_never_panic() {
    let seeds = [
        "import torch\ndef make(window: int = 4, *, off=None):\n    t = torch.arange(64) % 5\n    def m(b, h, q_idx, kv_idx):\n        \
         keep = (q_idx >= kv_idx) & (t[q_idx % 64] == t[kv_idx % 64])\n        for i in range(3):\n            keep |= q_idx - kv_idx == window * i\n        \
         return torch.where(keep, q_idx < 100, ~keep)\n    return m\n",
        "from torch.nn.attention.flex_attention import and_masks\nclass W:\n    def __init__(self, n):\n        self.n = n\n    \
         def mask(self, b, h, q, k):\n        return (q - k).abs().clamp(min=1, max=9) < self.n\nw = W(3)\n\
         x = [f'{i:>4}' for i in range(5) if i % 2]\nmod = and_masks(w.mask, lambda b, h, q, k: k < len(x) + 5)\n",
        "def f(score, b, h, q, k):\n    bias = torch.tensor([[1.0, 2.0], [3.0, 4.0]])[h % 2, 0:2].sum()\n    \
         try:\n        assert bias is not None\n    except Exception as e:\n        raise\n    return score * 2 ** -h + bias / (q - k).float()\n",
    ];
    let pieces = [
        "(",
        ")",
        "[",
        "]",
        ":",
        ",",
        "\n",
        "    ",
        "q",
        "k",
        "0",
        "-1",
        "None",
        "lambda b, h, q, k: ",
        " & ",
        " and ",
        "not ",
        "if ",
        "else ",
        " == ",
        " // ",
        " % ",
        "**",
        ".sum()",
        ".view(-1)",
        "[0]",
        "[None]",
        "...",
        "torch.zeros(2, 3)",
        "*",
        "f'{q}'",
        "=",
        "return ",
        "1e300",
        "9223372036854775807",
        ".item()",
        "del ",
        "global x\n",
        "[q]",
        "[::2]",
        "{}",
        "\u{e9}",
        "'",
        "\"\"\"",
    ];
    let mut rng = random::Rng::new(20_260_401);
    let limits =
        Limits { steps: 20_000, tensor_bytes: 4 << 20, container_bytes: 4 << 20, nodes: 2000, ..Limits::default() };
    let mut traced = 0;
    for round in 0..600 {
        let mut text = seeds[round % seeds.len()].to_string();
        for _ in 0..1 + rng.below(4) {
            let boundaries: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
            let at = boundaries[rng.below(boundaries.len())];
            let end = boundaries[rng.below(boundaries.len())].clamp(at, (at + 12).min(text.len()));
            let end = (at..=end).rev().find(|e| text.is_char_boundary(*e)).unwrap_or(at);
            let piece = pieces[rng.below(pieces.len())];
            match rng.below(3) {
                0 => text.insert_str(at, piece),
                1 => text.replace_range(at..end, ""),
                _ => text.replace_range(at..end, piece),
            }
        }
        let kind = if round % 3 == 2 { ModKind::Score } else { ModKind::Mask };
        let result = trace(&TraceRequest { limits, ..request(&text, kind) });
        let _ = crate::python::outline::outline(&Source::new("mod.py", text.as_str()));
        match &result.result {
            Some(made) => {
                assert_eq!(made.graph.verify(), Ok(()), "{text}");
                let _ = cell::eval(made, &Cell { q_idx: 3, kv_idx: 70, ..Cell::default() });
                traced += 1;
            }
            None => assert!(result.diagnostics.iter().any(Diagnostic::is_error), "{text}"),
        }
        for diagnostic in &result.diagnostics {
            assert!(!diagnostic.render().is_empty());
        }
    }
    assert!(traced > 20, "{traced} of the mutants still trace");
}

/// Each statement moves, compares or copies much: it costs more than a step, so that a long text of them comes to its limit.
#[test]
fn what_moves_or_compares_many_elements_costs_many_steps() {
    let long = "import collections\nx = list(range(20000))\nd = {i: i for i in range(20000)}\n\
                n = ' '.join(['k' + str(i) for i in range(20000)])\n";
    let crowd = "s = {float('nan') for i in range(1000)}\n";
    let cases = [
        ("del x[0]", "too-many-steps"),
        ("x.pop(0)", "too-many-steps"),
        ("x.reverse()", "too-many-steps"),
        ("x.index(19999)", "too-many-steps"),
        ("x[:]", "too-many-steps|too-large"),
        ("d.keys()", "too-many-steps|too-large"),
        ("list(d)", "too-many-steps|too-large"),
        ("collections.namedtuple('P', n)", "too-many-steps|too-large"),
        ("s & s", "too-many-steps"),
        ("float('nan') in s", "too-many-steps"),
    ];
    for (statement, wanted) in cases {
        let setup =
            if statement.contains('s') && !statement.contains('x') && !statement.contains('d') { crowd } else { long };
        let text = format!("{setup}{}m = lambda b, h, q, k: q >= k\n", format!("{statement}\n").repeat(3000));
        let limits = Limits { steps: 800_000, container_bytes: 64 << 20, ..Limits::default() };
        let traced = trace(&TraceRequest { limits, ..request(&text, ModKind::Mask) });
        let got = traced.diagnostics.iter().find(|d| d.is_error()).map_or("none".into(), |d| d.code.to_string());
        assert!(wanted.split('|').any(|w| w == got), "{got} instead of {wanted}: {statement}");
    }
}

/// The first unknown names are compared with the known ones; a text of thousands of both is not held up by suggestions.
#[test]
fn suggestions_of_names_have_an_end() {
    let names: String = (0..1000).map(|i| format!("name_{i} = {i}\n")).collect();
    let unknown = |n: usize| format!("try:\n    named_{n}\nexcept NameError as e:\n    said = str(e)\n");
    let tried: String = (0..110).map(unknown).collect();
    let last = "def m(b, h, q, k):\n    return q >= naem_7\n";
    let hint = |text: &str| said(&trace(&request(text, ModKind::Mask)));
    assert!(hint(&format!("{names}{last}")).contains("did you mean `name_7`?"));
    let held = hint(&format!("{names}{tried}{last}"));
    assert!(held.contains("`naem_7` is not defined") && !held.contains("did you mean"), "{held}");
    // of functions and methods too
    let calls = |n: usize| format!("import torch\n{}{last}", "torch.nothing()\n[].nothing()\n".repeat(n));
    assert!(hint(&calls(1).replace("naem_7", "torch.maximun(q, k)")).contains("did you mean"));
    let held = hint(&calls(500).replace("naem_7", "torch.maximun(q, k)"));
    assert!(held.contains("`torch.maximun` is not supported") && !held.contains("did you mean"), "{held}");
}

/// What a failed statement used is remembered once, also where it used what two others had left: else it doubles each time.
#[test]
fn failed_statements_do_not_multiply_what_they_used() {
    let last = "def m(b, h, q, k):\n    return q >= k\n";
    let opened = "with nothing(f, a) as f:\n    a = f\n".repeat(100);
    let read =
        "import torch\nx = torch.zeros(4)\ny = z = 0\n".to_string() + &"y = z = x.nothing(x, y, z)\n".repeat(100);
    for text in [opened, read] {
        let traced = trace(&request(&format!("{text}{last}"), ModKind::Mask));
        assert!(traced.result.is_some(), "{}", said(&traced));
    }
}

#[test]
fn characters_of_a_long_text_are_those_of_python() {
    let text = "x = 'aé😀z' * 3\nassert x[1] == 'é' and x[-1] == 'z' and x[2:6] == '😀zaé' and x[::-5] == 'z😀é'\n\
                assert x[5:] + x[:0] == 'é😀zaé😀z' and ''[0:3] == ''\nm = lambda b, h, q, k: q >= k\n";
    let traced = trace(&request(text, ModKind::Mask));
    assert!(traced.result.is_some() && traced.diagnostics.iter().all(|d| d.code != "skipped"), "{}", said(&traced));
}

/// What reads or hashes every element is priced by that, not by its result alone.
#[test]
fn hashing_and_reading_cost_what_they_take() {
    let sets = "s = set(range(5000))\nr = set(range(5000))\n";
    let dicts = "s = {i: i for i in range(5000)}\n";
    let tensors = "import torch\ns = torch.zeros(10**5)\n";
    for (setup, line, steps) in [
        (sets, "s <= r", 600_000),
        (sets, "s & r", 600_000),
        (dicts, "s | s", 800_000),
        (tensors, "s.argmax()", 100_000),
        (tensors, "s.nonzero()", 100_000),
        (tensors, "s.erfinv()", 1_000_000),
        (tensors, "torch.bucketize(s, s)", 1_500_000),
    ] {
        let text = format!("{setup}for i in range(20):\n    {line}\nm = lambda b, h, q, k: q >= k\n");
        let limits = Limits { steps, ..Limits::default() };
        let traced = trace(&TraceRequest { limits, ..request(&text, ModKind::Mask) });
        let reported = said(&traced);
        assert!(reported.contains("too-many-steps") || reported.contains("too-slow"), "{line}: {reported}");
    }
}

#[test]
fn the_text_of_a_long_or_deep_value_is_pythons() {
    let text = "x = list(range(300))\nassert str(x) == '[' + ', '.join([str(i) for i in x]) + ']' and str(x)[-6:] == ', 299]'\n\
                d = {i: 'a' for i in range(300)}\nassert repr(d)[-10:] == ', 299: \\'a\\'}'[-10:] and len(f'{d}') == 2890\n\
                t = ()\nfor i in range(20):\n    t = (t,)\nassert str(t) == '(' * 21 + ')' + ',)' * 20\n\
                m = lambda b, h, q, k: q >= k\n";
    let traced = trace(&request(text, ModKind::Mask));
    assert!(traced.result.is_some() && traced.diagnostics.iter().all(|d| d.code != "skipped"), "{}", said(&traced));
    let deep = "t = ()\nfor i in range(99):\n    t = (t,)\nx = str(t)\nm = lambda b, h, q, k: q >= k + len(x)\n";
    assert!(said(&trace(&request(deep, ModKind::Mask))).contains("more than 64 levels"));
}

/// The masks with other last bits are traced within the steps of one text, or none of them: nothing is known then.
#[test]
fn other_last_bits_take_no_more_than_one_text() {
    let text = |loops: usize| {
        format!(
            "import torch\nt = torch.linspace(0, 1, 400).exp()\nfor i in range({loops}):\n    pass\n\
             def m(b, h, q, k):\n    return t[q] > t[k] * 1.1\n"
        )
    };
    let limits = Limits { steps: 100_000, ..Limits::default() };
    let tried = |loops| {
        let text = text(loops);
        let traced = trace(&TraceRequest { limits, ..request(&text, ModKind::Mask) });
        assert!(traced.diagnostics.iter().any(|d| d.code == "last-bit"), "{}", said(&traced));
        traced.doubts.len()
    };
    assert_eq!(tried(100), 10);
    assert!((3..10).contains(&tried(6_000)));
    assert_eq!(tried(20_000), 0);
}

/// Arguments that are absent, given twice, or come by name where a position is usual, are faults.
#[test]
fn absent_and_named_arguments_never_panic() {
    let setup = "import torch, numpy, functools, itertools, math\nq = torch.zeros(2)\n";
    for call in [
        "numpy.concatenate()",
        "numpy.stack(axis=0)",
        "numpy.concatenate(arrays=[q])",
        "functools.partial(func=len)",
        "torch.einsum(equation='i->i')",
        "map(function=len)",
        "getattr(object=1, name='a')",
        "[].insert(object=1)",
        "[1].insert(index=0, object=1)",
        "itertools.islice(iterable=[1], stop=1)",
        "torch.zeros(2, 3).flip([0, 0])",
        "torch.zeros(2, 3).rot90(1, (0, 0))",
        "torch.permute(input=q, dims=(0,))",
        "torch.Tensor.to(self=q, dtype=torch.int)",
        "torch.broadcast_to(input=q, size=(2, 2))",
    ] {
        for text in [
            format!("{setup}try:\n    x = {call}\nexcept TypeError:\n    pass\nm = lambda b, h, q, k: q >= k\n"),
            format!("{setup}def m(b, h, q, k):\n    x = {call}\n    return q >= k\n"),
        ] {
            let traced = trace(&request(&text, ModKind::Mask));
            assert!(traced.result.is_some() || traced.diagnostics.iter().any(Diagnostic::is_error), "{text}");
        }
    }
}

/// What ends a text that computes too long.
const LONG: &str = "too-many-steps|too-slow";

/// A builtin's work and its result are charged before they are done: a line of these had no end, or took all memory.
#[test]
fn one_builtin_neither_hangs_nor_fills_the_memory() {
    let nested = "a = (1,) * 300\nb = (a,) * 300\nc = (b,) * 300\nd = (c,) * 300\ne = (d,) * 300\n";
    let twice = "x = [0]\nfor i in range(40):\n    x = [x, x]\n";
    let cases = [
        ("", "x = [] * 10**15\nx = () * 10**15", "none"),
        ("import itertools\n", "x = itertools.combinations([], 10**12)", "none|too-large"),
        ("import itertools\n", "x = itertools.product(repeat=10**12)", "none"),
        ("import itertools\n", "x = itertools.product([1], repeat=10**9)", "too-many-steps|too-large"),
        ("import itertools\n", "x = itertools.tee([1], 10**12)", "too-large"),
        ("import json\n", twice, "none"),
        ("import json\n", &format!("{twice}y = json.dumps(x)"), "too-many-steps|too-large"),
        (nested, "z = {e}", "too-slow"),
        (nested, "z = id(e)", "too-slow|too-many-steps"),
        (nested, "z = {}[e]", "none|too-slow|too-many-steps"),
        ("s = 'a' * 10**6\n", "x = ','.join([s] * 1000)", "too-large"),
        ("x = []\n", "for i in range(10**5):\n    x.append('a'.zfill(60000))", "too-large"),
        ("x = ' ' * 10**6\n", "y = x.replace(' ', '\\t').expandtabs(1000)", "too-large"),
        ("", "x = ('%999d' * 10**5) % ((1,) * 10**5)", "too-large"),
        ("", "x = ('{0:>999}' * 10**5).format(1)", "too-large"),
        (
            "from collections import Counter\nc = Counter({i: 10**9 for i in range(99)})\n",
            "x = c.elements()",
            "too-large",
        ),
        ("d = {i: i for i in range(9999)}\nx = []\n", "for i in range(10**5):\n    x.append(d.copy())", "too-large"),
        ("y = [0] * 9999\nx = []\n", "for i in range(10**5):\n    x.append(reversed(y))", "too-large|too-many-steps"),
        ("y = [0] * 9999\nx = []\n", "for i in range(10**5):\n    x.append(iter(y))", "too-large|too-many-steps"),
        ("s = 'ab' * 10**6\n", "for i in range(10**5):\n    'c' in s", "too-many-steps"),
        ("s = 'ab' * 10**6\nd = {s: 1}\n", "for i in range(10**5):\n    s in d", "too-many-steps"),
        ("s = 'ab' * 10**6\nt = 'ab' * 10**6\n", "for i in range(10**5):\n    s == t", "too-many-steps"),
        (
            "from collections import Counter\nc = Counter(range(9999))\n",
            "for i in range(10**5):\n    c.most_common(1)",
            "too-many-steps",
        ),
        ("import functools\n@functools.cache\ndef f(i):\n    return i\n", "for i in range(20000):\n    f(i)", "none"),
        (
            "from collections import defaultdict\nk = []\n",
            "for i in range(20000):\n    d = defaultdict(list)\n    d[0]\n    k.append(d)",
            "none",
        ),
        ("x = list(range(9999))\ny = list(range(9999))\n", "for i in range(10**5):\n    x < y", "too-many-steps"),
        ("x = [[0] * 999] * 9999\n", "for i in range(10**5):\n    x.sort()", "too-slow|too-many-steps"),
        ("x = [0] * 9999\n", "for i in range(10**5):\n    any(x)", "too-many-steps"),
        ("x = list(range(9999))\n", "for i in range(10**5):\n    str(x)", "too-many-steps|too-large"),
        (
            "x = 'a' * 10**6\n",
            "for i in range(10**5):\n    try:\n        raise ValueError(x)\n    except ValueError as e:\n        y = str(e)",
            "too-large",
        ),
        ("x = [0] * 10**5\n", "for i in range(10**6):\n    isinstance(x, list)", LONG),
        ("s = 'ab' * 10**6\nt = 'ab' * 10**6\n", "for i in range(10**6):\n    s is t", LONG),
        ("def f():\n    for i in range(10**6):\n        global x\n", "f()", "none|too-many-steps"),
        ("import torch\nt = torch.zeros(10**5)\n", "for i in range(10**6):\n    x = t.clone()\n    x[0] = 1", LONG),
        ("import torch\nt = torch.zeros(10**5)\n", "for i in range(10**5):\n    t.histc()", LONG),
        ("import torch\nt = torch.ones(10**5).long()\n", "for i in range(10**5):\n    t.bincount()", LONG),
        ("import torch\nt = torch.zeros(10**5)\n", "for i in range(10**5):\n    t.amax()", LONG),
        ("import torch\nt = torch.zeros(10**5)\n", "for i in range(10**5):\n    t.sum()", LONG),
        ("import torch\nt = torch.zeros(10**5)\n", "for i in range(10**5):\n    t.equal(t)", LONG),
        (
            "import torch\nt = torch.ones(10**5).long()\n",
            "for i in range(10**5):\n    torch.broadcast_shapes(t, t)",
            LONG,
        ),
        ("import numpy\nt = numpy.arange(10**5)\n", "for i in range(10**5):\n    t.argsort()", LONG),
        ("t = ()\nfor i in range(9999):\n    t = (t,)\nimport copy\n", "x = copy.deepcopy(t)", "none|unsupported"),
    ];
    for (setup, text, wanted) in cases {
        let text = format!("{setup}{text}\nm = lambda b, h, q, k: q >= k\n");
        let limits = Limits { steps: 1_000_000, container_bytes: 16 << 20, ..Limits::default() };
        let traced = trace(&TraceRequest { limits, ..request(&text, ModKind::Mask) });
        let got = traced.diagnostics.iter().find(|d| d.is_error()).map_or("none".into(), |d| d.code.to_string());
        assert!(wanted.split('|').any(|w| w == got), "{got} instead of {wanted}:\n{text}");
    }
}
