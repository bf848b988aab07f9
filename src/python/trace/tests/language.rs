//! The Python around mods: factories, closures, classes, loops, imports.

use crate::base::tensor::Data;
use crate::python::trace::tests::*;

#[test]
fn factories_take_arguments() {
    let text = "def make(width: int, *, scale: int = 2, causal: bool = True):\n    \
                def inner(b, h, q, k):\n        near = abs(q - k) <= width * scale\n        \
                return near & (q >= k) if causal else near\n    return inner\n";
    let with = |args: Vec<(&str, Arg)>| TraceRequest {
        args: args.into_iter().map(|(n, a)| (n.to_string(), a)).collect(),
        ..request(text, ModKind::Mask)
    };
    check_request(&with(vec![("width", Arg::Int(4))]), Expect::Mask(&|_, _, q, k| (q - k).abs() <= 8 && q >= k));
    let open = vec![("width", Arg::Int(4)), ("scale", Arg::Int(1)), ("causal", Arg::Bool(false))];
    check_request(&with(open), Expect::Mask(&|_, _, q, k| (q - k).abs() <= 4));
}

#[test]
fn mods_are_arguments() {
    let causal = Source::new("causal.py", "def causal(b, h, q, k):\n    return q >= k\n");
    let doc = "def docs(mask, lengths: tuple = (30, 50, 400)):\n    ids = torch.repeat_interleave(torch.arange(len(lengths)), \
               torch.tensor(lengths))\n    def m(b, h, q, k):\n        return (ids[q] == ids[k]) & mask(b, h, q, k)\n    return m\n";
    let arg = Arg::Mod { source: causal, entry: String::new(), call: false, args: Vec::new() };
    let request = TraceRequest { args: vec![("mask".into(), arg)], ..request(doc, ModKind::Mask) };
    let id = |i: i64| [30, 80, 480].iter().position(|end| i < *end).unwrap_or(3);
    check_request(&request, Expect::Mask(&|_, _, q, k| id(q) == id(k) && q >= k));
}

#[test]
fn closures_lambdas_partials_and_keyword_parameters() {
    check(
        "from functools import partial\n\
         def base(b, h, q, k, width=3, *, shift=0):\n    return (q - k + shift) % width == 0\n\
         mod = partial(base, width=5, shift=2)",
        Expect::Mask(&|_, _, q, k| (q - k + 2).rem_euclid(5) == 0),
    );
    check(
        "masks = [lambda b, h, q, k, n=n: (q // 2 ** n) % 2 == (k // 2 ** n) % 2 for n in range(3)]\n\
         def mod(b, h, q, k):\n    keep = masks[0](b, h, q, k)\n    for other in masks[1:]:\n        keep &= other(b, h, q, k)\n    return keep",
        Expect::Mask(&|_, _, q, k| q % 8 == k % 8),
    );
    check(
        "def outer():\n    count = 0\n    def add(n):\n        nonlocal count\n        count += n\n        return count\n    \
         add(3)\n    add(4)\n    def m(b, h, q, k):\n        return q - k < count\n    return m\n",
        Expect::Mask(&|_, _, q, k| q - k < 7),
    );
    check(
        "def many(*sizes, **named):\n    total = sum(sizes) + named.get('extra', 0)\n    return lambda b, h, q, k: q + k > total\n\
         mod = many(*[1, 2], 3, **{'extra': 4})",
        Expect::Mask(&|_, _, q, k| q + k > 10),
    );
}

#[test]
fn classes_hold_what_mods_read() {
    check(
        "class Window:\n    step = 2\n    def __init__(self, width):\n        self.width = width\n    @property\n    def reach(self):\n        \
         return self.width * self.step\n    @staticmethod\n    def near(a, b, n):\n        return (a - b).abs() < n\n    \
         def __call__(self, b, h, q, k):\n        return self.near(q, k, self.reach)\nmod = Window(6)",
        Expect::Mask(&|_, _, q, k| (q - k).abs() < 12),
    );
    check(
        "from dataclasses import dataclass\n@dataclass\nclass Config:\n    window: int\n    sink: int = 4\n\
         class Base:\n    def mask(self, b, h, q, k):\n        return (q - k < self.config.window) | (k < self.config.sink)\n\
         class Model(Base):\n    def __init__(self, config):\n        super().__init__()\n        self.config = config\n\
         mod = Model(Config(9)).mask",
        Expect::Mask(&|_, _, q, k| q - k < 9 || k < 4),
    );
    check(
        "class Approx(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        return torch.ops.approx.tanh(x)\n\
         tanh = Approx.apply\ndef mod(score, b, h, q, k):\n    return 20 * tanh(score / 20)",
        Expect::Score(&|s, _, _, _, _| 20.0 * (s / 20.0).tanh()),
    );
}

#[test]
fn statements_of_factories() {
    check(
        "def make(n: int = 3):\n    assert n > 0, f'n is {n:>3}'\n    sizes, total = [], 0\n    while True:\n        n -= 1\n        if n < 0:\n            \
         break\n        elif n == 1:\n            continue\n        sizes.append(n)\n        total += n\n    else:\n        total = 100\n    \
         try:\n        raise ValueError(f'{total}')\n    except (KeyError, ValueError) as e:\n        text = str(e)\n    finally:\n        total += 1\n    \
         first, *rest = sizes\n    table = {'a': first, **{'b': len(rest)}}\n    del sizes\n    \
         with torch.no_grad():\n        limit = int(text) + table['a'] + table['b'] + total\n    \
         def m(b, h, q, k):\n        del b\n        return q - k < limit\n    m.__name__ = f'window_{limit}'\n    return m",
        Expect::Mask(&|_, _, q, k| q - k < 2 + 2 + 1 + 3),
    );
    check(
        "grid = {(y, x): y * 3 + x for y in range(3) for x in range(3) if (y + x) % 2 == 0}\n\
         order = sorted(grid.values(), key=lambda v: -v)\n\
         best = max(range(5), key=lambda i: (i * 7) % 5)\n\
         text = ', '.join(f'{v:02d}' for v in order)\n\
         size = len(text.split(', ')) + best + round(2.5) + divmod(17, 5)[1]\n\
         mod = lambda b, h, q, k: q * 0 + k < size + sum(order) // 10",
        Expect::Mask(&|_, _, _, k| k < 5 + 2 + 2 + 2 + 20 / 10),
    );
}

#[test]
fn indices_are_computed_with_as_in_torch() {
    check(
        "def mod(b, h, q, k):\n    d = q - k\n    a = (-d) // 3 == -(d // 3) - 1\n    c = d % 7 > 3\n    e = torch.div(d, 4, rounding_mode='trunc') == -2\n    \
         f = (d ^ 5) & 3 == 1\n    return a | c | e | f | (d >> 1 == 4) | (d << 2 == 12)",
        Expect::Mask(&|_, _, q, k| {
            let d = q - k;
            (-d).div_euclid(3) == -d.div_euclid(3) - 1
                || d.rem_euclid(7) > 3
                || d / 4 == -2
                || (d ^ 5) & 3 == 1
                || d >> 1 == 4
                || d << 2 == 12
        }),
    );
    check(
        "def mod(score, b, h, q, k):\n    d = (q - k).float()\n    x = torch.exp(-d.abs() / 10) + (d ** 2).clamp(max=9).sqrt() + 2 ** (-h)\n    \
         y = torch.where(q > k, torch.sigmoid(score), score.tanh()).masked_fill(k == 3, 5)\n    \
         return x * y + torch.minimum(q, k) / 7 + torch.log1p(k.float()) - (q > k).to(score.dtype)",
        Expect::Score(&|s, _, h, q, k| {
            let d = (q - k) as f64;
            // an int to a negative power: truncation leaves nothing
            let power = if h == 0 { 1.0 } else { 0.0 };
            let x = (-d.abs() / 10.0).exp() + (d * d).min(9.0).sqrt() + power;
            let y = if k == 3 {
                5.0
            } else if q > k {
                1.0 / (1.0 + (-s).exp())
            } else {
                s.tanh()
            };
            x * y + q.min(k) as f64 / 7.0 + (k as f64).ln_1p() - f64::from(u8::from(q > k))
        }),
    );
}

#[test]
fn t5_buckets_on_indices() {
    let text = "import math\ndef bucket(p):\n    n = -p\n    ret = (n < 0).to(torch.int32) * 16\n    n = torch.abs(n)\n    exact = 8\n    \
                is_small = n < exact\n    large = exact + (torch.log(n.float() / exact) / math.log(128 / exact) * (16 - exact)).to(torch.int32)\n    \
                large = torch.min(large, torch.full_like(large, 15))\n    return ret + torch.where(is_small, n, large)\n\
                def mod(score, b, h, q, k):\n    return score + bucket(k - q)\n";
    check(
        text,
        Expect::Score(&|s, _, _, q, k| {
            let n = q - k;
            let base = if n < 0 { 16 } else { 0 };
            let n = n.abs();
            let grown = 8 + ((n as f64 / 8.0).ln() / (128f64 / 8.0).ln() * 8.0) as i64;
            s + (base + if n < 8 { n } else { grown.min(15) }) as f64
        }),
    );
}

#[test]
fn rows_of_captured_tensors() {
    let rows: Vec<f32> = (0..40).map(|i| ((i * 7) % 11) as f32).collect();
    let values = rows.clone();
    let top: Vec<i64> = (0..3 * 4).map(|i| (i * 5) % 7).collect();
    let picks = top.clone();
    let globals = vec![
        ("rope".to_string(), HostTensor::new([10, 4], Data::F32(rows)).expect("fits")),
        ("topk".to_string(), HostTensor::new([1, 3, 4], Data::I64(top)).expect("fits")),
    ];
    let with = |text: &str, kind| TraceRequest { globals: globals.clone(), ..request(text, kind) };
    check_request(
        &with("def mod(s, b, h, q, k):\n    return s + torch.dot(rope[q % 10], rope[k % 10])", ModKind::Score),
        Expect::Score(&|s, _, _, q, k| {
            let row = |i: i64| &values[(i % 10 * 4) as usize..][..4];
            s + row(q).iter().zip(row(k)).map(|(a, b)| f64::from(a * b)).sum::<f64>()
        }),
    );
    check_request(
        &with(
            "def mod(b, h, q, k):\n    chosen = topk[0][q % 3]\n    return (chosen == (k // 8 % 7).unsqueeze(-1)).any(dim=-1)",
            ModKind::Mask,
        ),
        Expect::Mask(&|_, _, q, k| picks[(q % 3 * 4) as usize..][..4].contains(&(k / 8 % 7))),
    );
    check_request(
        &with(
            "def mod(s, b, h, q, k):\n    return s + rope[q % 10, 1:3].sum() + rope[2][k % 4] + rope[..., 0][q % 10] + rope[q % 10].max()",
            ModKind::Score,
        ),
        Expect::Score(&|s, _, _, q, k| {
            let at = |i: i64, j: usize| f64::from(values[(i * 4) as usize + j]);
            let q = q % 10;
            let most = (0..4).map(|j| at(q, j)).fold(f64::MIN, f64::max);
            s + at(q, 1) + at(q, 2) + at(2, (k % 4) as usize) + at(q, 0) + most
        }),
    );
}

#[test]
fn sorted_tables_are_searched() {
    for n in [5usize, 40] {
        let edges: Vec<i64> = (0..n as i64).map(|i| i * i / 2).collect();
        let table = edges.clone();
        let request = TraceRequest {
            globals: vec![("edges".into(), HostTensor::vector(Data::I64(edges)))],
            ..request(
                "def mod(b, h, q, k):\n    return torch.bucketize(q, edges, right=True) == torch.searchsorted(edges, k)",
                ModKind::Mask,
            )
        };
        let right = |x: i64| table.iter().filter(|e| **e <= x).count();
        let left = |x: i64| table.iter().filter(|e| **e < x).count();
        check_request(&request, Expect::Mask(&|_, _, q, k| right(q) == left(k)));
    }
}

struct Two;

impl ModuleLoader for Two {
    fn load(&self, dotted: &str) -> Option<Source> {
        let text = match dotted {
            "pack.masks" => "from .base import causal as base_mask\nfrom missing import nothing\nWIDTH = 6\n",
            "pack.base" => {
                "from torch.nn.attention.flex_attention import _mask_mod_signature\n\
                            def causal(b, h, q, k):\n    return q >= k\n"
            }
            _ => return None,
        };
        Some(Source::new(dotted.replace('.', "/"), text))
    }
}

#[test]
fn imports_come_from_the_loader() {
    let text = "import pack.masks as masks\nfrom pack.masks import base_mask, WIDTH\n\
                def mod(b, h, q, k):\n    return base_mask(b, h, q, k) & (q - k < WIDTH) & masks.base_mask(b, h, q, k)\n";
    let two = TraceRequest { source: Source::new("mod.py", text), loader: &Two, ..request("", ModKind::Mask) };
    check_request(&two, Expect::Mask(&|_, _, q, k| q >= k && q - k < 6));
}

#[test]
fn scripts_around_a_mod_are_passed_over() {
    let text = "import torch\nfrom torch.nn.attention.flex_attention import flex_attention, create_block_mask\n\
                flex_attention = torch.compile(flex_attention)\nB, H, S, D = 2, 4, 256, 64\n\
                q = torch.randn(B, H, S, D, device='cuda' if torch.cuda.is_available() else 'cpu')\n\
                def causal(b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx\n\
                block_mask = create_block_mask(causal, B, H, S, S, device='cuda')\n\
                out = flex_attention(q, q, q, block_mask=block_mask)\nprint(out.shape)\n\
                if __name__ == '__main__':\n    main()\n";
    let traced = trace(&request(text, ModKind::Mask));
    assert!(traced.result.is_some(), "{}", said(&traced));
    assert!(traced.diagnostics.iter().all(|d| d.severity == crate::base::Severity::Note), "{}", said(&traced));
    check(text, Expect::Mask(&|_, _, q, k| q >= k));
}

#[test]
fn auto_tells_mods_from_factories() {
    let four = "def natten(w: int, h: int, kw: int, kh: int):\n    def m(b, hh, q, k):\n        return (q % w - k % w).abs() <= kw + kh + h\n    return m\n";
    let args = [("w", 8), ("h", 0), ("kw", 1), ("kh", 0)].map(|(n, v)| (n.to_string(), Arg::Int(v)));
    let with = TraceRequest { args: args.to_vec(), ..request(four, ModKind::Mask) };
    check_request(&with, Expect::Mask(&|_, _, q, k| (q % 8 - k % 8).abs() <= 1));
    let mod_with = "def m(b, h, q, k, width=3):\n    return q - k < width\n";
    let wide = TraceRequest { args: vec![("width".into(), Arg::Int(9))], ..request(mod_with, ModKind::Mask) };
    check_request(&wide, Expect::Mask(&|_, _, q, k| q - k < 9));
    check(mod_with, Expect::Mask(&|_, _, q, k| q - k < 3));
}

#[test]
fn match_chooses_on_known_values() {
    let text = |shown: &str| {
        format!(
            "from dataclasses import dataclass\n@dataclass\nclass Window:\n    size: int\n    causal: bool = True\n\
             def make(spec={shown}):\n    match spec:\n        case 'causal':\n            return lambda b, h, q, k: q >= k\n        \
             case 'local' | 'window':\n            return lambda b, h, q, k: (q - k).abs() <= 3\n        \
             case int(n) if n > 9:\n            return lambda b, h, q, k: q - k < n\n        \
             case (first, *_, last):\n            return lambda b, h, q, k: q * first + last > k\n        \
             case {{'prefix': p, **rest}}:\n            return lambda b, h, q, k: k < p + len(rest)\n        \
             case Window(size, causal=True) as w:\n            return lambda b, h, q, k: (q >= k) & (q - k < size + w.size)\n        \
             case None:\n            return noop_mask\n        case _:\n            raise ValueError('no such mask')\n"
        )
    };
    check(&text("'causal'"), Expect::Mask(&|_, _, q, k| q >= k));
    check(&text("'window'"), Expect::Mask(&|_, _, q, k| (q - k).abs() <= 3));
    check(&text("20"), Expect::Mask(&|_, _, q, k| q - k < 20));
    check(&text("[2, 7, 9, 30]"), Expect::Mask(&|_, _, q, k| q * 2 + 30 > k));
    check(&text("{'prefix': 5, 'a': 1, 'b': 2}"), Expect::Mask(&|_, _, _, k| k < 7));
    check(&text("Window(4)"), Expect::Mask(&|_, _, q, k| q >= k && q - k < 8));
    check(&text("None"), Expect::Mask(&|_, _, _, _| true));
    assert!(trace(&request(&text("3"), ModKind::Mask)).diagnostics[0].message.contains("no such mask"));
    let on_index = "def mod(b, h, q, k):\n    match q:\n        case 0:\n            return k < 4\n    return q >= k\n";
    let reported = trace(&request(on_index, ModKind::Mask)).diagnostics;
    assert_eq!((&*reported[0].code, reported[0].line_column()), ("branch-on-index", Some((2, 11))));
}

#[test]
fn generators_and_iterators_give_each_element_once() {
    check(
        "def spans(n, step):\n    start = 0\n    while start < n:\n        yield start, start + step\n        start += step\n\
         def both():\n    yield from spans(200, 50)\n    yield 200, 600\n\
         def make():\n    ids = torch.zeros(600, dtype=torch.long)\n    for i, (a, b) in enumerate(both()):\n        ids[a:b] = i\n    \
         return lambda b, h, q, k: ids[q] == ids[k]\n",
        Expect::Mask(&|_, _, q, k| (q / 50).min(4) == (k / 50).min(4)),
    );
    check(
        "it = iter([3, 5, 7, 9, 11, 13])\nfirst = next(it)\nsecond = next(it)\npairs = list(zip(it, it))\n\
         empty = next(it, 100)\ntotal = sum(x for x in range(4)) + len(pairs) + pairs[1][0]\n\
         mod = lambda b, h, q, k: (q - k < first * second) | (k > empty + total)",
        Expect::Mask(&|_, _, q, k| q - k < 15 || k > 100 + 6 + 2 + 11),
    );
    let endless = "def all_of():\n    n = 0\n    while True:\n        yield n\n        n += 1\n\
                   def make():\n    w = next(all_of())\n    return lambda b, h, q, k: q - k < w\n";
    check(
        &endless
            .replace("next(all_of())", "sum(itertools.islice(all_of(), 2, 5))")
            .replace("def all_of", "import itertools\ndef all_of"),
        Expect::Mask(&|_, _, q, k| q - k < 9),
    );
    let reported = trace(&request(&endless.replace("next(", "list("), ModKind::Mask)).diagnostics;
    assert!(matches!(&*reported[0].code, "endless" | "too-many-steps" | "too-slow"), "{reported:?}");
    let coroutine = "async def mod(b, h, q, k):\n    return q >= k\n";
    assert!(trace(&request(coroutine, ModKind::Mask)).diagnostics[0].message.contains("async"));
}

#[test]
fn enums_and_fields_of_dataclasses() {
    check(
        "from enum import Enum, auto\nfrom dataclasses import dataclass, field\n\
         class Kind(str, Enum):\n    CAUSAL = 'causal'\n    FULL = 'full'\n    def is_causal(self):\n        return self is Kind.CAUSAL\n\
         class Mode(Enum):\n    A = auto()\n    B = auto()\n\
         @dataclass\nclass Config:\n    kind: Kind = Kind.CAUSAL\n    widths: list = field(default_factory=lambda: [4, 9])\n    extra: int = field(default=2)\n\
         def make(config=Config()):\n    assert Kind('full') == 'full' and Kind('causal') is config.kind and config.kind.is_causal()\n    \
         assert [m.name for m in Mode] == ['A', 'B'] and Mode.B.value == 2 and Mode.A != Mode.B\n    \
         w = config.widths[1] + config.extra\n    return lambda b, h, q, k: (q >= k) & (q - k < w)\n",
        Expect::Mask(&|_, _, q, k| q >= k && q - k < 11),
    );
}

#[test]
fn the_last_mod_or_ready_factory_is_meant() {
    let text = "def causal(b, h, q, k):\n    return q >= k\n\
                def make(mask_mod=causal, offset: int = 3):\n    def moved(b, h, q, k):\n        return mask_mod(b, h, q + offset, k)\n    return moved\n";
    check(text, Expect::Mask(&|_, _, q, k| q + 3 >= k));
    check(&format!("{text}def last(b, h, q, k):\n    return k < 5\n"), Expect::Mask(&|_, _, _, k| k < 5));
    let needy = format!("{text}def needs(width):\n    return lambda b, h, q, k: q - k < width\n");
    check(&needy, Expect::Mask(&|_, _, q, k| q + 3 >= k));
}

#[test]
fn a_statement_that_fails_leaves_nothing_half_changed() {
    let text = "ids = torch.full((300,), -1)\nfor i, s in enumerate([(0, 20), (40, 60)]):\n    ids[s[0]:s[1]] = i\n    unknown(i)\n\
                def mod(b, h, q, k):\n    return ids[q] == ids[k]\n";
    let traced = trace(&request(text, ModKind::Mask));
    assert!(traced.result.is_none() && said(&traced).contains("mod.py:4:5: error[unknown-name]"), "{}", said(&traced));
    // what the mod does not read may fail
    check(
        "losses = []\nlosses.append(unknown(3))\nw = torch.ones(2)\nw[0] = undefined\ndef mod(b, h, q, k):\n    return q >= k\n",
        Expect::Mask(&|_, _, q, k| q >= k),
    );
}

#[test]
fn tables_are_built_as_trainers_build_them() {
    // shifted windows: a copy in another order, seen flat
    check(
        "img = torch.arange(96).view(1, 8, 12, 1)\n\
         win = img.view(1, 2, 4, 3, 4, 1).permute(0, 1, 3, 2, 4, 5).contiguous().view(-1)\n\
         def mod(b, h, q, k):\n    return win[q % 96] == k\n",
        Expect::Mask(&|_, _, q, k| {
            let (window, inside) = (q % 96 / 16, q % 16);
            (window / 3 * 4 + inside / 4) * 12 + window % 3 * 4 + inside % 4 == k
        }),
    );
    check(
        "from collections import namedtuple\nSpan = namedtuple('Span', 'start end kind', defaults=['text'])\n\
         ids = torch.full((400,), -1)\n\
         for i, s in enumerate([Span(0, 30), Span(30, 70, kind='image')]):\n    first, last, kind = s\n    \
         if kind == 'image':\n        ids[s.start:last] = i\n\
         def mod(b, h, q, k):\n    return ids[q] == 1\n",
        Expect::Mask(&|_, _, q, _| (30..70).contains(&q)),
    );
    check(
        "order = sorted([[2, 0], [1], [0, 0, 1], [0], [0, 0]], key=lambda x: (len(x), x))\n\
         assert order == [[0], [1], [0, 0], [2, 0], [0, 0, 1]], f'{order}'\n\
         y, x = torch.unravel_index(torch.arange(400), (20, 20))\n\
         def mod(b, h, q, k):\n    return (y[q] - y[k]).abs() + (x[q] - x[k]).abs() <= 3\n",
        Expect::Mask(&|_, _, q, k| {
            let place = |i: i64| (i.min(399) / 20, i.min(399) % 20);
            let ((a, b), (c, d)) = (place(q), place(k));
            (a - c).abs() + (b - d).abs() <= 3
        }),
    );
    check(
        "import numpy as np\nids = torch.from_numpy(np.repeat(np.arange(3), np.array([20, 30, 400])))\n\
         def mod(b, h, q, k):\n    return ids[q] == ids[k]\n",
        Expect::Mask(&|_, _, q, k| {
            [20, 50].partition_point(|end| *end <= q) == [20, 50].partition_point(|end| *end <= k)
        }),
    );
}

/// Every line is true in Python, NumPy and PyTorch.
#[test]
fn methods_of_texts_sets_and_arrays_are_pythons() {
    let facts = [
        r#""a/b/c".rsplit("/", maxsplit=1) == ["a/b", "c"]"#,
        r#""a/b/c".rsplit("/", 1) == ["a/b", "c"] and "a/b/c".split("/", 1) == ["a", "b/c"]"#,
        r#"" a  b ".split() == ["a", "b"] and "a,,b".split(",") == ["a", "", "b"]"#,
        r#""-5".zfill(4) == "-005" and "7".zfill(3) == "007" and "123".zfill(2) == "123""#,
        r#""ab".center(5, ".") == "..ab." and "abc".center(6) == " abc  ""#,
        r#""ab".ljust(4, "-") + "cd".rjust(4) == "ab--  cd""#,
        "{1}.union([2], {3}) == {1, 2, 3} and {1, 2, 3}.difference([1], [3]) == {2}",
        "{1, 2, 3}.intersection({2, 3}, {3}) == {3} and {1, 2}.symmetric_difference([2, 5]) == {1, 5}",
        "list(itertools.chain([1], range(2))) == [1, 0, 1]",
        "np.zeros(3, dtype=np.float32).mean().dtype == np.float32",
        "np.arange(4).mean().dtype == np.float64 and np.arange(4).mean() == 1.5",
        "str(Named()) == \"by repr\" and repr(Named()) == \"by repr\" and str(Told()) == \"by str\"",
    ];
    let asserted: String = facts.iter().map(|fact| format!("assert {fact}\n")).collect();
    check(
        &format!(
            "import itertools\nimport numpy as np\nclass Named:\n    def __repr__(self):\n        return \"by repr\"\n\
             class Told(Named):\n    def __str__(self):\n        return \"by str\"\n{asserted}\
             grown = {{1}}\ngrown.update([2], (3, 4))\ndef mod(b, h, q, k):\n    return q - k < len(grown)\n"
        ),
        Expect::Mask(&|_, _, q, k| q - k < 4),
    );
}

#[test]
fn places_of_equal_elements_are_not_guessed() {
    let with = |line: &str| {
        let text = format!(
            "import torch\nx = torch.arange(40) // 3\n{line}\ndef mod(b, h, q, k):\n    return p[q % 40] >= p[k % 40]"
        );
        let traced = trace(&request(&text, ModKind::Mask));
        (traced.result.is_some(), said(&traced))
    };
    for line in ["p = x.argsort()", "p = x.sort()[1]", "p = x.repeat(2).topk(40).indices"] {
        let (answered, said) = with(line);
        assert!(!answered && said.contains("does not define"), "{line}: {said}");
    }
    for line in ["p = x.argsort(stable=True)", "p = x.sort()[0]", "p = (x * 40 + torch.arange(40)).topk(40).indices"] {
        let (answered, said) = with(line);
        assert!(answered && said.is_empty(), "{line}: {said}");
    }
    let (answered, said) = with("p = x.float().masked_fill(x > 5, float('-inf')).repeat(1).sort(descending=True)[1]");
    assert!(!answered && said.contains("does not define"), "{said}");
    let ruled_out = "p = (x * 40 + torch.arange(40)).float().masked_fill(x > 5, float('-inf')).topk(40).indices";
    let (answered, said) = with(ruled_out);
    assert!(answered && said.contains("equal-infinities"), "{said}");
}

#[test]
fn another_default_dtype_is_that_of_the_floats_after_it() {
    let text = |end: &str| {
        format!(
            "import torch\ntorch.set_default_dtype(torch.float64)\nz = torch.arange(400) * .1\n{end}\ndef mod(b, h, q, k):\n    return (z[q] - z[k]).abs() <= .3"
        )
    };
    let near = |_: i64, _: i64, q: i64, k: i64| (q as f64 * 0.1 - k as f64 * 0.1).abs() <= 0.3;
    check(&text("torch.set_default_dtype(torch.float32)"), Expect::Mask(&near));
    let traced = trace(&request(&text(""), ModKind::Mask));
    let reported = said(&traced);
    assert!(traced.result.is_none() && reported.contains("the default dtype is still float64"), "{reported}");
    let traced = trace(&request(&text("torch.set_default_dtype(torch.float16)"), ModKind::Mask));
    let reported = said(&traced);
    assert!(traced.result.is_none() && reported.contains("float32 or float64 here"), "{reported}");
}

#[test]
fn all_names_of_typing_are_imported() {
    let text = "from typing import *\nW = 3 if TYPE_CHECKING else 5\nT = TypeVar('T')\ndef mod(b, h, q: Optional[T], k) -> Any:\n    return q - k < W";
    check(text, Expect::Mask(&|_, _, q, k| q - k < 5));
}
