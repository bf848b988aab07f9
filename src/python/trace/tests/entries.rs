//! The choice of a text's function, the names of nested functions, and the destination of passed values.

use crate::base::tensor::Data;
use crate::python::trace::tests::*;

fn kept(traced: &Traced) -> usize {
    let mask = traced.result.as_ref().unwrap_or_else(|| panic!("{}", said(traced)));
    let cells = (0..100).flat_map(|q_idx| (0..100).map(move |kv_idx| Cell { q_idx, kv_idx, ..Cell::default() }));
    cells.filter(|cell| cell::eval(mask, cell).as_bool()).count()
}

/// Cells of a causal window of the first 100 x 100.
fn window(width: usize) -> usize {
    (1..=100).map(|n| width.min(n)).sum()
}

fn chosen(traced: &Traced) -> (&str, Vec<&str>) {
    let chosen = traced.chosen.as_ref().unwrap_or_else(|| panic!("{}", said(traced)));
    (&chosen.entry, chosen.others.iter().map(String::as_str).collect())
}

fn asked(text: &str, entry: &str, args: &[(&str, Arg)]) -> Traced {
    let args = args.iter().map(|(n, a)| (n.to_string(), a.clone())).collect();
    trace(&TraceRequest { entry: entry.into(), args, ..request(text, ModKind::Mask) })
}

const MASK: &str = "def mask_mod(b, h, q_idx, kv_idx):\n    return (q_idx >= kv_idx) & (q_idx - kv_idx < 9)\n";

#[test]
fn helpers_are_never_taken_for_mods() {
    for helper in [
        "def train(model, opt, data, steps):\n    return model\n",
        "def sparsity_to_width(sparsity, context_length, num_frame, frame_size):\n    return 1\n",
        "def random_qkv(b, h, s, d):\n    return torch.randn(b, h, s, d)\n",
        "def _check_grad(fn, q, k, v, out):\n    return fn\n",
    ] {
        let traced = asked(&format!("import torch\n{MASK}{helper}"), "", &[]);
        assert_eq!((chosen(&traced), kept(&traced)), (("mask_mod", vec![]), window(9)), "{helper}");
        let alone = asked(&format!("import torch\n{helper}def other():\n    pass\n"), "", &[]);
        let first = &alone.diagnostics[0];
        assert_eq!(first.code, "entry-not-found", "{first}");
        assert!(first.message.contains("their names are"), "{first}");
    }
    // other numbers of parameters: only a function that may be meant as a mod is counted
    let unlike = "def cdiv(x, multiple):\n    return x\nclass Paged:\n    def get(self):\n        def new_mask(b, h, page):\n            return page\n        return 1\n";
    let found = &asked(unlike, "", &[]).diagnostics[0];
    assert_eq!((&*found.code, &*found.message), ("entry-not-found", "this code has no mod"));
    let short = format!("{unlike}def local(b, q_idx, kv_idx):\n    return q_idx >= kv_idx\n");
    assert_eq!(asked(&short, "", &[]).diagnostics[0].message, "Expected 4 or 5 positional args, got 3");
    // what is not there: the text's own functions are named, not what it imports
    let imports = "import torch\nfrom torch.nn.attention.flex_attention import create_block_mask\n";
    let missing = asked(&format!("{imports}{MASK}"), "absent", &[]);
    assert_eq!(missing.diagnostics[0].hint.as_deref(), Some("it has: mask_mod"));
    // several: the last, and the others are reported
    let two = format!("{MASK}def causal(b, h, q, k):\n    return q >= k\n");
    assert_eq!(chosen(&asked(&two, "", &[])), ("causal", vec!["mask_mod"]));
    // by its use, with any names of its parameters
    let used = "def f(a1, a2, a3, a4):\n    return a3 >= a4\ndef g(x1, x2, x3, x4):\n    return x1\nbm = create_block_mask(f, 1, 1, 100, 100)\n";
    assert_eq!(chosen(&asked(used, "", &[])).0, "f");
}

#[test]
fn functions_inside_a_cached_factory_have_names() {
    let text = "import functools\n@functools.lru_cache(maxsize=None)\ndef make(n=4):\n    def local(b, h, q, k):\n        return (q >= k) & (q - k < n)\n    \
                return local\n";
    assert_eq!(kept(&asked(text, "make.local", &[("n", Arg::Int(6))])), window(6));
    assert_eq!(kept(&asked(text, "make", &[("n", Arg::Int(6))])), window(6));
}

#[test]
fn a_mod_in_a_class_needs_no_base_that_is_not_here() {
    let text = "import torch, some_trainer as st\nclass Net(st.LightningModule):\n    def __init__(self):\n        super().__init__()\n    \
                def mask(self, b, h, q, k):\n        return (q >= k) & (q - k < self.window)\n    \
                def forward(self, x):\n        def local(b, h, q, k):\n            return (q >= k) & (q - k < 7)\n        return x\n";
    assert_eq!(kept(&asked(text, "Net.mask", &[("self.window", Arg::Int(5))])), window(5));
    assert_eq!(kept(&asked(text, "Net.forward.local", &[])), window(7));
    // what fails in the class's own body is missing in it
    let body = text.replace(
        "st.LightningModule):\n",
        "torch.nn.Module):\n    kind = st.Config().kind\n    @st.hook\n    def setup(self):\n        pass\n",
    );
    assert_eq!(kept(&asked(&body, "Net.forward.local", &[])), window(7));
    for reads in ["Net.kind", "Net.setup", "Net().kind"] {
        let used = format!("{body}width = {reads}\ndef mod(b, h, q, k):\n    return q - k < width\n");
        assert_eq!(asked(&used, "mod", &[]).diagnostics[0].code, "unknown-module", "{reads}");
    }
    // an operator acts by being there
    let compared = "import st\nclass Kind:\n    @st.hook\n    def __eq__(self, other):\n        return True\nw = 3 if Kind() == 4 else 5\n\
                    def mod(b, h, q, k):\n        return q - k < w\n";
    assert_eq!(asked(compared, "mod", &[]).diagnostics[0].code, "unknown-module");
    let used = format!("{text}width = Net.width\ndef mod(b, h, q, k):\n    return q - k < width\n");
    let told = &asked(&used, "mod", &[]).diagnostics[0];
    assert_eq!((&*told.code, &*told.message), ("unknown-module", "the module `some_trainer` is not found"));
}

const MODULE: &str = "import torch\nimport torch.nn as nn\nclass Attn(nn.Module):\n    def __init__(self, cfg):\n        super().__init__()\n        \
                      self.proj = nn.Linear(8, 8)\n        self.window = cfg.window\n    def forward(self, x, doc_ids=None):\n        B, S = x.shape[:2]\n        \
                      window = self.window\n        if doc_ids is None:\n            def mask_mod(b, h, q, k):\n                \
                      return (q >= k) & (q - k < window)\n        else:\n            def doc_mod(b, h, q, k):\n                return doc_ids[q] == doc_ids[k]\n        \
                      bm = create_block_mask(mask_mod, B, None, S, S)\n        return flex_attention(x, x, x, block_mask=bm)\n    \
                      def plain(self, b, h, q, k):\n        return (q >= k) & (q - k < self.width)\n";

#[test]
fn mods_inside_functions_and_methods_are_named_by_their_path() {
    let int = |n| Arg::Int(n);
    for (entry, args) in [
        ("Attn.forward.mask_mod", ("self.window", int(7))),
        ("Attn.forward.mask_mod", ("window", int(7))),
        ("Attn.forward.mask_mod", ("cfg.window", int(7))),
        ("forward.mask_mod", ("self.window", int(7))),
        ("mask_mod", ("self.window", int(7))),
        ("Attn.plain", ("self.width", int(7))),
    ] {
        let traced = asked(MODULE, entry, &[args]);
        assert_eq!(kept(&traced), window(7), "{entry}");
    }
    let docs = Arg::Tensor(HostTensor::vector(Data::I64((0..100).map(|i| i / 10).collect())));
    assert_eq!(kept(&asked(MODULE, "Attn.forward.doc_mod", &[("doc_ids", docs)])), 1000);
    // missing values are requested
    let missing = asked(MODULE, "mask_mod", &[]);
    assert!(missing.result.is_none());
    assert_eq!(missing.diagnostics[0].code, "not-given", "{}", said(&missing));
    // functions in functions, and what comes after the definition
    let outer = "def attention(q, k, v, w=3):\n    w = w + 1\n    def inner(b, h, qi, ki):\n        return (qi >= ki) & (qi - ki < w)\n    \
                 w = w * 2\n    bm = create_block_mask(inner, 1, 1, 100, 100)\n    w = 99\n    return q\n";
    assert_eq!(kept(&asked(outer, "attention.inner", &[])), window(8));
    let alone = asked(outer, "", &[]);
    assert_eq!((chosen(&alone).0, kept(&alone)), ("attention.inner", window(8)));
    assert_eq!(alone.sizes.expect("met").q_len, Some(100));
    // two of one name
    let two = "def a():\n    def m(b, h, q, k):\n        return q >= k\n    use(m)\ndef b():\n    def m(b, h, q, k):\n        return q > k\n    use(m)\n";
    let reported = asked(two, "m", &[]);
    assert!(said(&reported).contains("`a.m`, `b.m`"), "{}", said(&reported));
    assert_eq!(kept(&asked(two, "b.m", &[])), 4950);
}

#[test]
fn what_is_given_finds_its_parameter_or_global() {
    let int = |n| Arg::Int(n);
    let missing = "def mod(b, h, q, k):\n    return (q >= k) & (q - k < width)\n";
    assert_eq!(kept(&asked(missing, "", &[("width", int(7))])), window(7));
    assert!(said(&asked(missing, "", &[])).contains("--arg width=VALUE"));
    let config = "def mod(b, h, q, k):\n    return (q >= k) & (q - k < config.attn.width)\n";
    assert_eq!(kept(&asked(config, "", &[("config.attn.width", int(7))])), window(7));
    let object = "class Config:\n    width = 5\ncfg = Config()\nhalf = cfg.width // 2\ndef mod(b, h, q, k):\n    return (q >= k) & (q - k < cfg.width + half)\n";
    assert_eq!(kept(&asked(object, "", &[("cfg.width", int(8))])), window(12));
    let constant = "WIDTH = 5\nhalf = WIDTH // 2\ndef mod(b, h, q, k):\n    return (q >= k) & (q - k < WIDTH + half)\n";
    assert_eq!(kept(&asked(constant, "", &[("WIDTH", int(8))])), window(12));
    let extra = "def mod(b, h, q, k, width):\n    return (q >= k) & (q - k < width)\n";
    assert_eq!(kept(&asked(extra, "mod", &[("width", int(7))])), window(7));
    assert_eq!(kept(&asked(extra, "", &[("width", int(7))])), window(7));
    let first = "def mod(width, b, h, q, k):\n    return (q >= k) & (q - k < width)\n";
    assert_eq!(kept(&asked(first, "", &[("width", int(7))])), window(7));
    let none = "def make(width=None):\n    w = 5 if width is None else width\n    def mod(b, h, q, k):\n        return (q >= k) & (q - k < w)\n    return mod\n";
    assert_eq!(kept(&asked(none, "", &[("width", Arg::None)])), window(5));
    let unknown = asked(MASK, "", &[("widht", int(7))]);
    assert!(unknown.diagnostics[0].code == "unexpected-argument", "{}", said(&unknown));
    // a pasted method
    let method = "    def mask_mod(self, b, h, q_idx, kv_idx):\n        return (q_idx >= kv_idx) & (q_idx - kv_idx < self.window)\n";
    assert_eq!(kept(&asked(method, "", &[("self.window", int(7))])), window(7));
    assert!(said(&asked(method, "", &[])).contains("--arg self.window=VALUE"));
    // indented code keeps its places
    let indented = asked("    def mask_mod(b, h, q_idx, kv_idx):\n        return q_idx >= nothing\n", "", &[]);
    assert_eq!(indented.diagnostics[0].line_column(), Some((2, 25)));
}

#[test]
fn tensors_are_bound_whatever_a_factory_returns() {
    let ids = HostTensor::vector(Data::I64((0..100).map(|i| i / 10).collect()));
    let with = |text: &str, entry: &str| {
        let globals = vec![("ids".to_string(), ids.clone())];
        trace(&TraceRequest { entry: entry.into(), globals, ..request(text, ModKind::Mask) })
    };
    let inner = "    def mod(b, h, q, k):\n        return ids[q] == ids[k]\n";
    for (end, entry) in [
        ("    masks = {'full': create_block_mask(mod, 1, 1, 100, 100)}\n    return masks['full']\n", "make"),
        ("    return create_block_mask(mod, 1, 1, 100, 100), mod\n", "make"),
        ("    made = torch.compile(create_block_mask)(mod, 1, 1, 100, 100)\n    return made\n", "make"),
        ("    return {'docs': mod, 'n': 5}\n", "make"),
        ("    return {'docs': mod, 'all': lambda b, h, q, k: q >= 0}\n", "make.docs"),
        ("    return mod, lambda b, h, q, k: q >= 0\n", "make.0"),
    ] {
        assert_eq!(kept(&with(&format!("def make(ids, device='cpu'):\n{inner}{end}"), entry)), 1000, "{end}");
    }
    let several = with(&format!("def make(ids):\n{inner}    return mod, lambda b, h, q, k: q >= 0\n"), "make");
    assert!(said(&several).contains("`make.0`, `make.1`"), "{}", said(&several));
    assert_eq!(kept(&with("def mod(b, h, q, k, ids):\n    return ids[q] == ids[k]\n", "mod")), 1000);
    // passed values replace those of the text
    assert_eq!(kept(&with("ids = torch.zeros(5)\ndef mod(b, h, q, k):\n    return ids[q] == ids[k]\n", "")), 1000);
}

#[test]
fn partials_are_masks() {
    let text = "from functools import partial\ndef window(b, h, q_idx, kv_idx, w):\n    return (q_idx >= kv_idx) & (q_idx - kv_idx < w)\n";
    for end in [
        "mod = partial(window, w=5)\n",
        "bm = create_block_mask(partial(window, w=5), 2, 3, 64, 96, BLOCK_SIZE=(32, 64))\n",
    ] {
        let traced = asked(&format!("{text}{end}"), "", &[]);
        assert_eq!(kept(&traced), window(5), "{end}");
        if end.starts_with("bm") {
            let sizes = traced.sizes.expect("the call's");
            assert_eq!((sizes.batch, sizes.heads, sizes.q_len, sizes.kv_len), (Some(2), Some(3), Some(64), Some(96)));
            assert_eq!(sizes.block_size, Some(crate::base::BlockSize { q: 32, kv: 64 }));
        }
    }
}

#[test]
fn the_mod_that_the_text_makes_a_block_mask_of_is_meant() {
    let flex = "from torch.nn.attention.flex_attention import create_block_mask, and_masks\n";
    let mods = "def causal(b, h, q, k):\n    return q >= k\ndef local(b, h, q, k):\n    return (q >= k) & (q - k < 9)\ndef last(b, h, q, k):\n    return q == k\n";
    for call in [
        "create_block_mask(local, 1, 1, 64, 64)",
        "create_block_mask(mask_mod=local, B=None, H=None, Q_LEN=64, KV_LEN=64)",
    ] {
        let traced = asked(&format!("{flex}{mods}bm = {call}\n"), "", &[]);
        assert_eq!((chosen(&traced).0, kept(&traced)), ("local", window(9)), "{call}");
    }
    // the last of several; a factory with its arguments is asked for
    let two = format!(
        "{flex}{mods}a = create_block_mask(local, 1, 1, 64, 64)\nz = create_block_mask(causal, 1, 1, 64, 64)\n"
    );
    assert_eq!(chosen(&asked(&two, "", &[])).0, "causal");
    let made = format!("{two}def make(n):\n    return lambda b, h, q, k: (q >= k) & (q - k < n)\n");
    assert_eq!(kept(&asked(&made, "", &[("n", Arg::Int(4))])), window(4));
    // without such a call: the name that is bound last
    let again = "def mod(b, h, q, k):\n    return q >= k\nold = mod\ndef mod(b, h, q, k):\n    return old(b, h, q, k) & (q - k < 9)\n";
    assert_eq!((chosen(&asked(again, "", &[])).0, kept(&asked(again, "", &[]))), ("mod", window(9)));
}

#[test]
fn indices_are_known_by_a_part_of_their_names() {
    let text = "class Pages:\n    size = 4\n    def convert(self, inner):\n        def new(b, h, q_idx, physical_kv_idx):\n            \
                return inner(b, h, q_idx, physical_kv_idx) & (q_idx - physical_kv_idx < 9)\n        return new\n\
                def causal(b, h, q, k):\n    return q >= k\nmod = Pages().convert(causal)\n";
    let traced = asked(text, "", &[]);
    assert_eq!((chosen(&traced).0, kept(&traced)), ("mod", window(9)));
}

#[test]
fn parameters_that_pytorch_cannot_count_are_told() {
    let join =
        "def join(*mods):\n    def inner(*args):\n        return mods[0](*args) & mods[1](*args)\n    return inner\n";
    for text in [
        format!("{join}mod = join(lambda b, h, q, k: q >= k, lambda b, h, q, k: q - k < 9)\n"),
        "mods = {'a': lambda b, h, q, k: q >= k}\nmod = lambda *a: mods['a'](*a)\n".to_string(),
    ] {
        let told = &asked(&text, "", &[]).diagnostics[0];
        assert!(told.code == "wrong-arity" && told.message.contains("args, got 0: `mod` takes `*args`"), "{told}");
    }
    // helpers do not count
    let helper = format!("{MASK}def log(*args):\n    pass\n");
    assert_eq!(chosen(&asked(&helper, "", &[])).0, "mask_mod");
    // a wrapper is read as the function that it wraps, and create_block_mask's refusal is told
    let wrapped = format!(
        "import functools\ndef plain(f):\n    @functools.wraps(f)\n    def call(*args):\n        return f(*args)\n    return call\n@plain\n{MASK}"
    );
    let traced = asked(&wrapped, "", &[]);
    assert_eq!(kept(&traced), window(9));
    assert!(traced.diagnostics.iter().any(|d| d.code == "wrong-arity"), "{}", said(&traced));
}

#[test]
fn partial_methods_are_entries() {
    let text = "import functools\nclass M:\n    def band(self, b, h, q, k, w):\n        return (q >= k) & (q - k < w) & (q - k < self.most)\n    \
                near = functools.partialmethod(band, w=6)\n";
    assert_eq!(kept(&asked(text, "M.near", &[("self.most", Arg::Int(9))])), window(6));
}
