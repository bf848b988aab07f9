//! What stands around a mask in whole files: unknown bases, arguments written as expressions, masks given by lists.

use crate::python::trace::tests::*;

/// A class whose bases are not here, as video models have it.
const MODEL: &str = "import torch\nfrom mylib.core import Base, Mixin\n\
    from torch.nn.attention.flex_attention import create_block_mask\n\
    class Net(Base, Mixin, flag=True):\n    def __init__(self):\n        super().__init__()\n        self.width = 3\n\
    \n    def mod(self, b, h, q_idx, kv_idx):\n        return q_idx - kv_idx < self.width\n\
    \n    @staticmethod\n    def build(frames: int = 4):\n        n = frames * 16\n        ends = torch.zeros(n, dtype=torch.long)\n\
    \n        for s in range(0, n, 16):\n            ends[s:s + 16] = s + 16\n\
    \n        def mask(b, h, q_idx, kv_idx):\n            return kv_idx < ends[q_idx]\n\
    \n        return create_block_mask(mask, None, None, n, n, device='cpu')\n";

#[test]
fn an_unknown_base_is_a_fault_only_where_it_is_used() {
    let of = |entry: &str, more: &str| {
        let text = format!("{MODEL}{more}");
        trace(&TraceRequest { entry: entry.into(), ..request(&text, ModKind::Mask) })
    };
    for entry in ["", "Net.build", "Net.build.mask"] {
        let traced = of(entry, "");
        assert!(
            traced.result.is_some(),
            "{entry}: {:?}",
            traced.diagnostics.iter().map(|d| &d.message).collect::<Vec<_>>()
        );
    }
    let object = of("m", "\nnet = Net()\ndef m(b, h, q_idx, kv_idx):\n    return net.mod(b, h, q_idx, kv_idx)\n");
    assert!(object.result.is_some(), "{:?}", object.diagnostics);
    let used = of("m", "\nwidth = Net().made_by_the_base\ndef m(b, h, q_idx, kv_idx):\n    return q_idx < width\n");
    assert!(used.diagnostics.iter().any(|d| d.code == "unknown-module"), "{:?}", used.diagnostics);
}

#[test]
fn arguments_are_what_python_makes_of_them() {
    let text = "import torch\ndef make(drop, width=9, table=None, config={}):\n    \
                assert isinstance(drop, list), type(drop)\n    \
                flags = torch.zeros(64, dtype=torch.bool)\n    flags[drop] = True\n    \
                def m(b, h, q, k):\n        return flags[k] & (q - k < width) & (k < config['end'])\n    return m\n";
    let args = [("drop", "[1, 2, 3]"), ("width", "2 * 2"), ("config", "{'end': 3}")];
    let python = |(name, text): (&str, &str)| (name.to_string(), Arg::Python(text.to_string()));
    let with = TraceRequest { args: args.map(python).to_vec(), ..request(text, ModKind::Mask) };
    check_request(&with, Expect::Mask(&|_, _, q, k| (1..3).contains(&k) && q - k < 4));
    let wrong = TraceRequest { args: vec![python(("drop", "nothing_here(3)"))], ..request(text, ModKind::Mask) };
    let reported = trace(&wrong).diagnostics;
    assert!(reported[0].message.contains("nothing_here"), "{reported:?}");
}

/// What a factory asks of its own block mask.
#[test]
fn a_block_mask_is_an_object() {
    let text = |line: &str| {
        format!(
            "from torch.nn.attention.flex_attention import create_block_mask\n\
             def causal(b, h, q, k):\n    return q >= k\n\
             def build(n: int = 64):\n    bm = create_block_mask(causal, None, 2, n, n, BLOCK_SIZE=16)\n    {line}\n    return bm\n"
        )
    };
    for line in [
        "bm = bm.to('cpu')",
        "assert bm.shape == (1, 2, n, n), bm.shape",
        "assert bm.BLOCK_SIZE[0] == 16",
        "assert bm.seq_lengths == (n, n)",
    ] {
        check_request(&request(&text(line), ModKind::Mask), Expect::Mask(&|_, _, q, k| q >= k));
    }
    // a use that the mask does not need is no fault
    check_request(
        &request(&text("rows = bm.kv_num_blocks[:, :, 3]"), ModKind::Mask),
        Expect::Mask(&|_, _, q, k| q >= k),
    );
    let needed =
        "rows = bm.kv_num_blocks\n    bm = create_block_mask(lambda b, h, q, k: q >= rows[0, 0, 0], None, None, n, n)";
    let reported = trace(&request(&text(needed), ModKind::Mask)).diagnostics;
    assert!(reported.iter().any(|d| d.message.contains("`BlockMask.kv_num_blocks` is not computed")), "{reported:?}");
    // its numbers look like a wrong mask
    let needed = needed.replace("kv_num_blocks", "to_dense()").replace("rows[0, 0, 0]", "rows[0, 0, 0, 0]");
    let reported = trace(&request(&text(&needed), ModKind::Mask)).diagnostics;
    assert!(
        reported.iter().any(|d| d.message.contains("one number for each block and not the mask's cells")),
        "{reported:?}"
    );
}

/// A slice for decoding loses the mask in PyTorch.
#[test]
fn a_sliced_block_mask_is_refused_with_the_mod_to_write() {
    let text = "from torch.nn.attention.flex_attention import create_block_mask\n\
                def whole(b, h, q, k):\n    return q >= k\nbm = create_block_mask(whole, 1, 1, 1024, 1024)\n\
                row = bm[:, :, 3]\ndef m(b, h, q, k):\n    return row.mask_mod(b, h, q, k)\n";
    let traced = trace(&TraceRequest { entry: "m".into(), ..request(text, ModKind::Mask) });
    let hints: Vec<_> = traced.diagnostics.iter().filter_map(|d| d.hint.as_deref()).collect();
    assert!(hints.iter().any(|hint| hint.contains("`whole(b, h, q_idx + first, kv_idx)`")), "{:?}", traced.diagnostics);
}

#[test]
fn a_mask_of_lists_has_the_lengths_of_its_lists() {
    let text = "import torch\nfrom torch.nn.attention.flex_attention import BlockMask\n\
                c = torch.tensor([[[1, 2]]], dtype=torch.int32)\ni = torch.tensor([[[[0, 0], [0, 1]]]], dtype=torch.int32)\n\
                bm = BlockMask.from_kv_blocks(torch.zeros_like(c), torch.zeros_like(i), c, i, SIZES)\n";
    for (sizes, q, block) in [("seq_lengths=(256, 200)", 256, 128), ("BLOCK_SIZE=32", 64, 32)] {
        let found = trace(&request(&text.replace("SIZES", sizes), ModKind::Mask)).sizes.expect("sizes");
        assert_eq!((found.q_len, found.block_size.map(|b| b.q)), (Some(q), Some(block)), "{sizes}");
    }
}

/// Older releases of PyTorch take lists without a mask_mod for no mask. Where nothing is left out, that is what they are.
#[test]
fn lists_that_leave_out_blocks_without_a_mod_are_told_at_their_call() {
    let told = |counts: &str, more: &str| {
        let text = format!(
            "import torch\nfrom torch.nn.attention.flex_attention import BlockMask, noop_mask\n\
             counts = torch.tensor([[{counts}]], dtype=torch.int32)\n\
             order = torch.tensor([[[[0, 1], [1, 0]]]], dtype=torch.int32)\n\
             none, any = torch.zeros_like(counts), torch.zeros_like(order)\n\
             bm = BlockMask.from_kv_blocks(none, any, counts, order{more})\nn = 256\n"
        );
        let traced = trace(&TraceRequest { entry: "bm".into(), ..request(&text, ModKind::Mask) });
        assert!(traced.result.is_some(), "{:?}", traced.diagnostics);
        assert_eq!(
            traced.sizes.map(|sizes| text[sizes.span.start as usize..].starts_with("BlockMask.from")),
            Some(true)
        );
        let reported = traced.diagnostics.iter().filter(|d| d.code == "lists-without-mod");
        let place = |d: &Diagnostic| text[..d.labels[0].span.start as usize].lines().count();
        reported.map(|d| format!("{}: {}", place(d), d.message)).collect::<Vec<_>>().join("; ")
    };
    for more in ["", ", mask_mod=None", ", BLOCK_SIZE=(64, 32), mask_mod=noop_mask"] {
        let reported = told("[1, 1]", more);
        assert!(reported.starts_with("6: ") && reported.contains("leave out 2 of 4 blocks"), "{more}: {reported}");
    }
    // blocks behind the last token are none
    assert!(told("[1, 2]", ", seq_lengths=(256, 200)").contains("leave out 1 of 4 blocks"));
    assert_eq!(told("[1, 1]", ", seq_lengths=(128, 128)"), "");
    assert_eq!(told("[2, 2]", ""), "");
    assert_eq!(told("[1, 1]", ", mask_mod=lambda b, h, q_idx, kv_idx: kv_idx >= 0"), "");
}

/// A compiled kernel would read it at the wrong places, which is worth more than the limit of a trace.
#[test]
fn a_table_beyond_32_bits_is_refused_for_kernels_too() {
    let refused = |n: usize| {
        let table = format!("import torch\nmember = torch.zeros(1, {n}, {n}, dtype=torch.bool)\n");
        let text = table + "def m(b, h, q, k):\n    return member[b, q, k]\n";
        let reported = trace(&request(&text, ModKind::Mask)).diagnostics.remove(0);
        assert_eq!(reported.code, "tensor-too-large");
        (reported.message, reported.hint.unwrap_or_default())
    };
    let (message, hint) = refused(46_341);
    assert!(message.contains("wrap from 2^31 elements on") && hint.contains("block lists"), "{message} {hint}");
    let (message, hint) = refused(46_340);
    assert!(!message.contains("2^31") && hint.contains("captured tensor"), "{message} {hint}");
}

/// Positions that begin again, beside a mask that does not look: the cells between samples are counted.
#[test]
fn packed_samples_under_a_causal_mask_are_told() {
    let causal = "def m(b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx\n";
    let mixed = |table: &str, mask: &str| {
        let traced = trace(&request(&format!("import torch\n{table}\n{mask}"), ModKind::Mask));
        let reported: Vec<String> =
            traced.diagnostics.iter().filter(|d| d.code == "packed-samples-mixed").map(|d| d.message.clone()).collect();
        reported.join("; ")
    };
    // rows of the second sample see six keys of the first: 24 of 55 cells
    let positions = "position_ids = torch.tensor([0, 1, 2, 3, 4, 5, 0, 1, 2, 3])";
    let reported = mixed(positions, causal);
    assert!(
        reported.contains("packs 2 samples into 10 tokens") && reported.contains(": 24 of 55 kept cells"),
        "{reported}"
    );
    for table in [
        "position_ids = torch.tensor([[0, 1, 2, 3, 4, 5, 0, 1, 2, 3]])",
        "cu_seqlens = torch.tensor([0, 6, 10], dtype=torch.int32)",
        "doc_ids = torch.tensor([0] * 6 + [7] * 4)",
    ] {
        assert!(mixed(table, causal).contains(": 24 of 55 kept cells"), "{table}");
    }
    let apart = "doc = (position_ids == 0).cumsum(-1)\ndef m(b, h, q, k):\n    return (q >= k) & (doc[q] == doc[k])\n";
    assert_eq!(mixed(positions, apart), "");
    for alone in [
        "position_ids = torch.arange(10)",
        "table = torch.tensor([3, 1, 4, 1, 5])",
        "sizes = torch.tensor([0, 0, 0, 0])",
    ] {
        assert_eq!(mixed(alone, causal), "", "{alone}");
    }
}

/// A helper is taken where the factory's arguments are not known, and the factory is named.
#[test]
fn the_factory_that_create_block_mask_gets_is_named() {
    let text = "def causal_mask(b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx\ndef docs(mask_mod, offsets):\n    \
                def doc_mask(b, h, q_idx, kv_idx):\n        return mask_mod(b, h, q_idx - offsets[0], kv_idx)\n    return doc_mask\n\
                def build(offsets, n):\n    m = docs(causal_mask, offsets)\n    return create_block_mask(m, None, None, n, n)\n";
    let meant = |text: &str| trace(&request(text, ModKind::Mask)).chosen.and_then(|c| c.meant);
    assert_eq!(meant(text), Some("docs".into()));
    assert_eq!(
        meant(&text.replace("create_block_mask(m,", "create_block_mask(docs(causal_mask, offsets),")),
        Some("docs".into())
    );
    assert_eq!(meant(&text.replace("create_block_mask(m,", "create_block_mask(causal_mask,")), None);
}
