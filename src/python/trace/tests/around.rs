//! What scripts have around a mask: parsers of arguments, plots of the mask, parameters that nobody gave.

use crate::python::trace::tests::*;

#[test]
fn a_joined_mask_given_away_stays_a_mask() {
    let text = "from torch.nn.attention.flex_attention import and_masks\nfrom helper import show\n\
        def causal(b, h, q, kv):\n    return q >= kv\ndef window(b, h, q, kv):\n    return q - kv < 9\n\
        both = and_masks(causal, window)\nshow(both)\n";
    let with = TraceRequest { entry: "both".into(), ..request(text, ModKind::Mask) };
    check_request(&with, Expect::Mask(&|_, _, q, k| q >= k && q - k < 9));
}

#[test]
fn a_sequence_is_repeated_by_a_whole_tensor() {
    let text = "import torch\nsizes = torch.tensor([10, 20, 34])\nids = []\nfor i in range(3):\n    ids.extend([i] * sizes[i])\n\
        assert sizes[0] * 'ab' == 'ab' * 10 and (1, 2) * torch.tensor(2) == (1, 2, 1, 2)\n\
        ids = torch.tensor(ids)\ndef m(b, h, q, kv):\n    return ids[q] == ids[kv]\n";
    let of = |i: i64| {
        if i < 10 {
            0
        } else if i < 30 {
            1
        } else {
            2
        }
    };
    check_request(&request(text, ModKind::Mask), Expect::Mask(&|_, _, q, k| of(q) == of(k)));
}

#[test]
fn staticmethod_is_a_function_too() {
    let text = "def rule(b, h, q, kv):\n    return q >= kv\nclass A:\n    width = 5\n    mod = staticmethod(rule)\n\
        \n    def _get(self):\n        return self.width\n    size = property(_get)\n    made = classmethod(lambda cls: cls())\n\
        \n    def build(self):\n        return lambda b, h, q, kv: self.mod(b, h, q, kv) & (q - kv < self.size)\n\
        def make():\n    return A.made().build()\n";
    let with = TraceRequest { entry: "make".into(), ..request(text, ModKind::Mask) };
    check_request(&with, Expect::Mask(&|_, _, q, k| q >= k && q - k < 5));
}

#[test]
fn a_parser_of_arguments_has_its_defaults() {
    let text = "import argparse\nparser = argparse.ArgumentParser(description='x')\ngroup = parser.add_argument_group('sizes')\n\
        group.add_argument('--seq-len', '-s', type=int, default=256)\nparser.add_argument('--window', type=int, default='7')\n\
        parser.add_argument('--causal', action='store_true')\nparser.add_argument('--kinds', nargs='*', default=[1, 2])\n\
        parser.add_argument('--must', type=int, required=True)\nargs = parser.parse_args()\n\
        assert (args.seq_len, args.window, args.causal, args.kinds) == (256, 7, False, [1, 2])\n\
        other = parser.parse_args(['--window', '9', '--causal', '-s', '3', '--kinds', '4', '5', '--must=6'])\n\
        assert (other.window, other.causal, other.seq_len, other.kinds, other.must) == (9, True, 3, ['4', '5'], 6)\n\
        def mask_mod(b, h, q_idx, kv_idx):\n    return (q_idx >= kv_idx) & (q_idx - kv_idx < args.window)\n";
    check_request(&request(text, ModKind::Mask), Expect::Mask(&|_, _, q, k| q >= k && q - k < 7));
    let given = [("args.window".to_string(), Arg::Int(3))].to_vec();
    let with = TraceRequest { args: given, ..request(text, ModKind::Mask) };
    check_request(&with, Expect::Mask(&|_, _, q, k| q >= k && q - k < 3));
    let asked = text.replace("< args.window", "< args.must");
    let reported = trace(&request(&asked, ModKind::Mask)).diagnostics;
    assert!(reported.iter().any(|d| d.is_error() && d.message.contains("must")), "{reported:?}");
}

#[test]
fn a_parameter_whose_default_is_none_is_asked_for() {
    let plain = "def plain(b, h, q, kv, size=None, n=None):\n    return (q % n) // size >= (kv % n) // size\n";
    let inner = "class Net:\n    def forward(self, x, keep=None, span=None):\n        def mask(b, h, q, kv):\n            \
        return keep[b, kv] & (q - kv < span)\n        return mask\n";
    for (text, entry, asked) in [(plain, "plain", "`n` is"), (inner, "Net.forward.mask", "`keep` is")] {
        let reported = trace(&TraceRequest { entry: entry.into(), ..request(text, ModKind::Mask) }).diagnostics;
        let why = reported.iter().find(|d| d.is_error()).expect("an error");
        assert!(why.message.contains(asked) && why.hint.as_deref().is_some_and(|h| h.contains("--arg")), "{why:?}");
        assert_eq!(why.code, "missing-argument");
    }
    // a None that no parameter brings keeps its own help
    let other = "x = None\ndef m(b, h, q, kv):\n    return q >= x\n";
    let reported = trace(&request(other, ModKind::Mask)).diagnostics;
    assert!(reported.iter().any(|d| d.is_error() && d.code != "missing-argument"), "{reported:?}");
}

#[test]
fn atens_index_is_a_read() {
    let text = "import torch\nindex = torch.ops.aten.index\nt = torch.arange(1000)\ntable = torch.arange(2000).reshape(1000, 2)\n\
        half = index(table, [None, torch.tensor([1])])\nassert half.shape == (1000, 1)\n\
        def m(b, h, q, kv):\n    return index(t, [q]) >= index(table, [kv, torch.tensor(0)]) // 2\n";
    check_request(&request(text, ModKind::Mask), Expect::Mask(&|_, _, q, k| q >= k));
}

/// Dicts and sets with many keys: each found once, whatever its kind, in time that grows with their number.
#[test]
fn many_keys_are_found_by_their_hashes() {
    let text = "import torch\n\
        d = {}\n\
        for i in range(40000):\n    d[i] = i // 100\n\
        assert len(d) == 40000 and d[39999] == 399 and d[5.0] == 0 and 40000 not in d and d[True] == 0\n\
        d[1.0] = 'one'\nassert len(d) == 40000 and d[1] == 'one'\n\
        for i in range(0, 40000, 1000):\n    assert d.pop(i) == i // 100\n\
        assert len(d) == 39960 and 1000 not in d and d[1001] == 10\n\
        d[-1] = 7\nassert d[-1] == 7 and d.get(39000, 'x') == 'x' and d[39001] == 390\n\
        s = set()\nfor i in range(20000):\n    s.add((i % 5000, 'a'))\n\
        assert len(s) == 5000 and (4999, 'a') in s and (5000, 'a') not in s\n\
        t = {(i, 'a') for i in range(4000, 9000)}\n\
        assert len(s | t) == 9000 and len(s & t) == 1000 and len(s - t) == 4000 and len(s ^ t) == 8000\n\
        s.discard((7, 'a'))\ns.add((9999, 'b'))\nassert (7, 'a') not in s and (9999, 'b') in s and len(s) == 5000\n\
        assert dict([(1, 'a'), (1, 'b'), (2, 'c')]) == {1: 'b', 2: 'c'}\n\
        u = {**{i: 1 for i in range(3000)}, **{i: 2 for i in range(2000, 5000)}}\n\
        assert len(u) == 5000 and u[2500] == 2 and u[1999] == 1\n\
        table = torch.tensor([i // 100 for i in range(1000)])\n\
        def m(b, h, q, kv):\n    return table[q] >= table[kv]\n";
    check_request(&request(text, ModKind::Mask), Expect::Mask(&|_, _, q, k| q / 100 >= k / 100));
}

/// A text that makes ever longer texts, arguments or tensors is refused before it has them.
#[test]
fn what_doubles_is_charged_before_it_is_made() {
    for doubling in [
        "X = 'ab' * 100\nfor i in range(60):\n    X = f'{X}{X}'\n",
        "X = 'ab' * 100\nfor i in range(60):\n    X = '{0}{0}'.format(X)\n",
        "X = 'ab' * 100\nfor i in range(60):\n    X = '%s%s' % (X, X)\n",
        "X = 'ab' * 100\nfor i in range(60):\n    X = str([X, X])\n",
        "X = 'ab' * 100\nfor i in range(60):\n    X = repr((X, X))\n",
        "def f(*a):\n    return f(*a, *a)\nX = f(1)\n",
        "def f(*a):\n    return a\nX = (1,)\nfor i in range(60):\n    X = f(*X, *X)\n",
        "import torch\nX = [torch.zeros(1) for i in range(10**7)]\n",
        "X = [1]\nfor i in range(7):\n    X = [X] * 200\nX = str(X)\n",
    ] {
        let text = format!("{doubling}def m(b, h, q, kv):\n    return q >= kv + len(X) * 0\n");
        let limits = Limits { container_bytes: 16 << 20, ..Limits::default() };
        let reported = trace(&TraceRequest { limits, ..request(&text, ModKind::Mask) }).diagnostics;
        let stopped = |d: &&Diagnostic| {
            d.is_error() && (d.code == "too-large" || d.code.contains("limit") || d.code.contains("deep"))
        };
        assert!(reported.iter().any(|d| stopped(&d)), "{doubling}: {reported:?}");
    }
}
