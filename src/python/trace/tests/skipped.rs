//! Statements that fail before the mod: values that they could have changed are never read as unchanged.

use crate::python::trace::tests::*;

/// Cells that a mask keeps of the first 100 x 100, or the first error.
fn kept(text: &str) -> Result<usize, String> {
    let traced = trace(&request(text, ModKind::Mask));
    let Some(mask) = traced.result else {
        let first = traced.diagnostics.iter().find(|d| d.is_error()).expect("an error where there is no mask");
        return Err(format!("{}: {}", first.code, first.message));
    };
    let cells = (0..100).flat_map(|q_idx| (0..100).map(move |kv_idx| Cell { q_idx, kv_idx, ..Cell::default() }));
    Ok(cells.filter(|cell| cell::eval(&mask, cell).as_bool()).count())
}

/// Either PyTorch's number of cells, or a refusal that names the cause.
#[track_caller]
fn never_other(text: &str, pytorch: usize, causes: &[&str]) {
    match kept(text) {
        Ok(n) => assert_eq!(n, pytorch, "{text}"),
        Err(why) => assert!(causes.iter().any(|cause| why.contains(cause)), "{why}\n{text}"),
    }
}

const CAUSAL: &str = "def mod(b, h, q, k):\n    return (q >= k) & (q - k < ";

#[test]
fn what_a_failed_statement_changes_is_not_read() {
    let causal = |width: &str| format!("{CAUSAL}{width})\n");
    // effects of a called function
    never_other(
        &format!(
            "import nothing_there\nTABLE = {{}}\ndef init(ws):\n    TABLE.clear()\n    for w in ws:\n        TABLE[w] = nothing_there.one()\ninit([64, 128])\n{}",
            causal("len(TABLE) + 1")
        ),
        297,
        &["nothing_there", "clear"],
    );
    // out=, in-place functions, aliases, views
    let keep = |change: &str| {
        format!(
            "import torch\nimport other_lib as lib\nkeep = torch.zeros(100)\n{change}\ndef mod(b, h, q, k):\n    return keep[k] > 0\n"
        )
    };
    for change in [
        "torch.sub(torch.ones(100), lib.zero(), out=keep)",
        "torch.nn.init.constant_(keep, lib.one())",
        "lib.fill(keep)",
        "half = keep[:50]\nlib.fill(half)",
        "every = [keep]\nlib.fill(every)",
        "box = {'k': (keep,)}\nfor t in box.values():\n    lib.fill(t[0])",
        "class Box:\n    def __init__(self, t):\n        self.t = t\nbox = Box(keep)\nlib.fill(box)",
        "def change(t):\n    t.add_(lib.one())\nchange(keep)",
        "def change(t):\n    u = t\n    u += lib.one()\nchange(keep)",
        "make = lambda t: t.fill_(lib.one())\nmake(keep)",
        "class Filler:\n    def __init__(self, t):\n        self.t = t\n    def go(self):\n        self.t.fill_(lib.one())\nFiller(keep).go()",
        "filler = lib.Filler(keep)\nfiller.go()",
        "list(map(lambda t: t.fill_(lib.one()), [keep]))",
        "if lib.yes():\n    keep = torch.ones(100)",
        "if lib.yes():\n    keep.fill_(1)",
        "with lib.context():\n    keep.fill_(1)",
        "try:\n    lib.fill(keep)\nexcept Exception:\n    pass",
    ] {
        let text = keep(change);
        let why = kept(&text).expect_err(&text);
        assert!(why.contains("other_lib"), "{why}\n{text}");
    }
    // classes and objects
    let config = |change: &str| {
        format!("import other_lib as lib\nclass Cfg:\n    w = 5\ncfg = Cfg()\n{change}\n{}", causal("cfg.w"))
    };
    for change in [
        "Cfg.w = lib.width()",
        "vars(cfg)['w'] = lib.width()",
        "setattr(cfg, 'w', lib.width())",
        "cfg.__dict__.update(w=lib.width())",
        "lib.patch(cfg)",
        "def patch():\n    cfg.w = lib.width()\npatch()",
        "def patch():\n    global cfg\n    cfg = lib.cfg()\npatch()",
        "globals()['cfg'] = lib.cfg()",
        "exec(lib.text())",
    ] {
        let text = config(change);
        let why = kept(&text).expect_err(&text);
        assert!(!why.contains("keeps"), "{why}\n{text}");
    }
    // values computed from it are unknown, too
    let derived = "import other_lib as lib\nxs = [1, 2, 3]\nlib.change(xs)\nn = len(xs)\ndef mod(b, h, q, k):\n    return q - k < n\n";
    assert!(kept(derived).expect_err(derived).contains("other_lib"));
    // a function's attribute
    let attribute =
        "import other_lib as lib\ndef mod(b, h, q, k):\n    return q - k < mod.w\nmod.w = 5\nmod.w = lib.width()\n";
    assert!(kept(attribute).expect_err(attribute).contains("other_lib"));
}

#[test]
fn what_a_failed_statement_cannot_change_is_read() {
    for before in [
        "out = flex_attention(x, x, x, block_mask=create_block_mask(mod, 1, 1, 8, 8))\nprint(out.shape)\nout.sum().backward()",
        "import matplotlib.pyplot as plt\nplt.imshow(table)\nplt.savefig('x.png')",
        "import other_lib as lib\nlib.draw(mod)",
        "import other_lib as lib\nother = [1]\nlib.change(other)",
        "def count(xs):\n    n = 0\n    for x in xs:\n        n += lib.one()\n    return n\nprint(count([1]), cfg['w'])",
        "class Model:\n    def __init__(self, cfg):\n        self.cfg = cfg\n        self.net = lib.Net()\nmodel = Model(cfg)",
        "print(lib.name, cfg['w'])",
    ] {
        let text = format!(
            "import torch\ncfg = {{'w': 9}}\ntable = torch.ones(100)\nx = None\ndef mod(b, h, q, k):\n    return (q - k < cfg['w']) & (table[k] > 0)\n{before}\n"
        );
        // lib has no value if it is not imported
        assert_eq!(kept(&text), Ok((0..100).map(|q| 100.min(100 - (q - 8i64).max(0)) as usize).sum()), "{text}");
    }
}

#[test]
fn a_class_stays_as_it_is_where_its_object_is_not_known() {
    let text = |members: &str, then: &str| {
        format!(
            "import torch\nimport torch.nn as nn\nimport other_lib as lib\nclass Net(nn.Module):\n    w = 9\n{members}    def __init__(self):\n        \
             super().__init__()\n        self.head = lib.Head()\n    def mask(self, b, h, q, k):\n        return q - k < Net.w\n\
             net = Net()\n{then}\nmod = lambda b, h, q, k: Net.mask(None, b, h, q, k)\n"
        )
    };
    let nine = (0..100).map(|q| 100.min(100 - (q - 8i64).max(0)) as usize).sum();
    for then in [
        "net = net.cuda().bfloat16()",
        "net.train()",
        "net.to('cuda')",
        "optimizer = torch.optim.Adam(net.parameters())",
        "net = lib.DDP(net, device_ids=[0])",
        "for m in net.modules():\n    if isinstance(m, nn.Linear):\n        m.float()",
    ] {
        assert_eq!(kept(&text("", then)), Ok(nine), "{then}");
    }
    // ways from an object to its class
    for (members, then) in [
        ("", "Net.w = lib.width()"),
        ("", "type(net).w = lib.width()"),
        ("", "net.__class__.w = lib.width()"),
        ("    def wider(self):\n        type(self).w = lib.width()\n", "net.wider()"),
        ("    @classmethod\n    def wider(cls):\n        cls.w = lib.width()\n", "net.wider()"),
        ("    def wider(self):\n        Net.w = lib.width()\n", "net.wider()"),
    ] {
        assert!(kept(&text(members, then)).is_err(), "{members}{then}");
    }
    let shared = text("    ws = [9]\n", "net.ws[0] = lib.width()").replace("< Net.w\n", "< Net.ws[0]\n");
    assert!(kept(&shared).is_err());
}

#[test]
fn a_skipped_statement_is_told_once() {
    let text = "import torch\nq = [torch.randn(4) for _ in range(3)]\ndef mod(b, h, q, k):\n    return q >= k\nx = q[0]\nprint(q, x)\n\
                bm = create_block_mask(mod, 1, 1, 64, 64)\nprint(bm[0])\n";
    let traced = trace(&request(text, ModKind::Mask));
    let told: Vec<&str> = traced.diagnostics.iter().filter(|d| d.code == "skipped").map(|d| &*d.message).collect();
    assert!(told.len() == 2 && told[0].contains("unseeded") && told[1].contains("a part of a BlockMask"), "{told:?}");
}

#[test]
fn arguments_that_only_the_shipped_function_does_not_know_end_no_text() {
    for line in [
        "nt = torch.nested.nested_tensor([torch.zeros(1, 3, 8)], layout=torch.jagged)",
        "nt = torch.nested.as_nested_tensor([torch.zeros(1, 3, 8)], device='cpu')",
        "x = torch.logspace(0, 1, 5, no_such_layout=1)",
    ] {
        let text = format!("import torch\n{line}\ndef mod(b, h, q, k):\n    return q >= k\n");
        let traced = trace(&request(&text, ModKind::Mask));
        let told = &traced.diagnostics[0];
        assert!(traced.result.is_some() && told.message.starts_with("this line was skipped"), "{told}\n{line}");
    }
}

#[test]
fn draws_after_a_statement_that_may_have_drawn_are_not_known() {
    let text = "import torch\nimport other_lib as lib\ntorch.manual_seed(0)\nmodel = lib.Model()\n\
                t = torch.randint(0, 3, (100,))\ndef mod(b, h, q, k):\n    return t[k] == 0\n";
    assert!(kept(text).expect_err(text).contains("other_lib"));
    let seeded = text.replace("t = torch.rand", "torch.manual_seed(0)\nt = torch.rand");
    assert!(kept(&seeded).is_ok());
}

#[test]
fn except_does_not_catch_what_is_only_not_known_here() {
    let text = |body: &str| format!("import json, torch\ntry:\n    {body}\nexcept Exception:\n    W = 2\n{CAUSAL}W)\n");
    for unknown in ["W = json.load_it('40')", "W = torch.no_such_function_here(40)", "W = len(torch.ones(3).no_such())"]
    {
        assert!(kept(&text(unknown)).is_err(), "{unknown}");
    }
    // what Python raises is caught
    for raised in [
        "W = {'a': 1}['b']",
        "W = [1].no_such(3)",
        "W = [1][5]",
        "W = 1 // 0",
        "W = int('x')",
        "raise RuntimeError('no')",
        "assert False",
        "W = None + 1",
        "W = len(5)",
        "W = torch.ones(3) + torch.ones(4)",
        "W = None.width",
        "W = next(iter([]))",
    ] {
        assert_eq!(kept(&text(raised)), Ok(199), "{raised}");
    }
    // and so is an import of a missing module, with a message
    let import = format!("try:\n    import flash_attn_none\n    W = 50\nexcept ImportError:\n    W = 2\n{CAUSAL}W)\n");
    let traced = trace(&request(&import, ModKind::Mask));
    assert!(traced.result.is_some() && said(&traced).contains("absent-module"), "{}", said(&traced));
    // Python's own library is there
    let standard = format!("try:\n    import statistics\n    W = 50\nexcept ImportError:\n    W = 2\n{CAUSAL}W)\n");
    assert_eq!(kept(&standard), Ok((0..100).map(|q: usize| (q + 1).min(50)).sum()));
}

#[test]
fn exceptions_are_caught_by_their_bases() {
    let text = "class E(ValueError):\n    def __init__(self, n):\n        super().__init__(f'n is {n}')\n        self.n = n\n\
                class F(E):\n    pass\nlog = []\ntry:\n    raise F(7)\nexcept KeyError:\n    W = 1\nexcept ValueError as e:\n    \
                W = e.n\n    log.append(str(e))\n    log.append(e.args[0])\nassert log == ['n is 7', 'n is 7'], log\n\
                try:\n    try:\n        {}['x']\n    except LookupError:\n        raise\nexcept KeyError:\n    W += 3\n";
    assert_eq!(kept(&format!("{text}{CAUSAL}W)\n")), Ok((0..100).map(|q: usize| (q + 1).min(10)).sum()));
}

#[test]
fn own_contexts_are_entered_and_left() {
    let text = "import contextlib\nlog = []\nclass Ctx:\n    def __init__(self, n):\n        self.n = n\n    def __enter__(self):\n        \
                log.append(self.n)\n        return self\n    def __exit__(self, kind, value, trace):\n        log.append(-self.n)\n        \
                return kind is not None and issubclass(kind, KeyError)\nwith Ctx(1) as c, Ctx(2):\n    log.append(c.n + 10)\n    {}['x']\n\
                @contextlib.contextmanager\ndef span(n):\n    log.append(n)\n    try:\n        yield n + 1\n    finally:\n        log.append(-n)\n\
                with span(5) as six:\n    log.append(six)\nwith contextlib.suppress(ZeroDivisionError):\n    1 // 0\n    log.append(99)\n\
                with contextlib.nullcontext(3) as three:\n    log.append(three)\n\
                assert log == [1, 2, 11, -2, -1, 5, 6, -5, 3], log\n";
    assert_eq!(kept(&format!("{text}{CAUSAL}len(log))\n")), Ok((0..100).map(|q: usize| (q + 1).min(9)).sum()));
}

#[test]
fn a_result_is_written_where_out_says() {
    let keep = |change: &str| {
        format!("import torch\nkeep = torch.zeros(100)\n{change}\ndef mod(b, h, q, k):\n    return keep[k] > 0\n")
    };
    assert_eq!(kept(&keep("torch.sub(torch.ones(100), 0, out=keep)")), Ok(10_000));
    assert_eq!(kept(&keep("torch.add(torch.ones(50), 1, out=keep[:50])")), Ok(5_000));
    assert_eq!(kept(&keep("torch.cumsum(torch.ones(100), 0, out=keep)")), Ok(10_000));
    // PyTorch gives `out` another shape, and floats do not go into ints
    assert!(kept(&keep("torch.sub(torch.ones(7), 0, out=keep)")).is_err());
    assert!(
        kept(&keep("ints = torch.zeros(100, dtype=torch.int64)\ntorch.div(torch.ones(100), 2, out=ints)\nkeep = ints"))
            .is_err()
    );
}

#[test]
fn where_python_stops_is_told() {
    for line in ["assert 1 > 2, 'never'", "raise ValueError('never')"] {
        let text = format!("{line}\n{CAUSAL}9)\n");
        let reported = said(&trace(&request(&text, ModKind::Mask)));
        assert!(reported.contains("Python stops at this line") && reported.contains("never"), "{reported}");
    }
    let reported = said(&trace(&request(&format!("import other_lib\nother_lib.run()\n{CAUSAL}9)\n"), ModKind::Mask)));
    assert!(!reported.contains("Python stops"), "{reported}");
}
