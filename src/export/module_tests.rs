//! The module's text.

use super::*;
use crate::base::tensor::Data;
use crate::base::{BlockSize, DType, Layout};
use crate::ir::graph::{BinaryOp, Graph, ModKind, NodeId, Op};
use crate::problem::ProblemSpec;
use smallvec::smallvec;
use std::sync::Arc;

fn made(kind: ModKind, build: impl FnOnce(&mut Graph) -> NodeId) -> Option<Arc<Mod>> {
    let mut graph = Graph::new();
    let root = build(&mut graph);
    Some(Arc::new(Mod { kind, graph, root, sources: Vec::new() }))
}

fn problem(mask: Option<Arc<Mod>>, score: Option<Arc<Mod>>) -> Problem {
    Problem::new(ProblemSpec {
        batch: 2,
        heads: 4,
        kv_heads: 2,
        q_len: 300,
        kv_len: 200,
        head_dim: 64,
        head_dim_v: 64,
        dtype: DType::BF16,
        layout: Layout::Bhsd,
        scale: None,
        block_size: BlockSize::square(64),
        mask,
        score,
        max_scores: false,
    })
    .expect("valid")
}

fn text(files: &[ExportFile]) -> &str {
    std::str::from_utf8(&files[0].bytes).expect("text")
}

fn document(g: &mut Graph, tensor: HostTensor) -> NodeId {
    let (q, k) = (g.input(Input::QIdx), g.input(Input::KvIdx));
    let doc = g.add_capture("doc", tensor);
    let (a, b) = (g.add(Op::Load(doc, smallvec![q]), None), g.add(Op::Load(doc, smallvec![k]), None));
    g.binary(BinaryOp::Eq, a, b)
}

#[test]
fn mods_without_tensors_stand_at_the_top() {
    let causal = made(ModKind::Mask, |g| {
        let (q, k) = (g.input(Input::QIdx), g.input(Input::KvIdx));
        g.binary(BinaryOp::Ge, q, k)
    });
    let files = torch_module(&problem(causal, None));
    assert_eq!((files.len(), files[0].name.as_str()), (1, "maskloom_attention.py"));
    let text = text(&files);
    for part in [
        "Q_LEN = 300\nKV_LEN = 200\n",
        "OTHER_LENGTHS: str = \"any\"\n",
        "BATCH: int | None = None\nHEADS: int | None = None\nHEAD_DIM = 64\nBLOCK_SIZE = (64, 64)\nSCALE = 0.125\n",
        "\ndef mask_mod(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:\n    return q_idx >= kv_idx\n",
        "\nscore_mod: ScoreMod | None = None\n",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn tensors_are_written_decoded_or_stored_by_size() {
    let of = |n: usize| made(ModKind::Mask, |g| document(g, HostTensor::vector(Data::I32((0..n as i32).collect()))));
    let files = torch_module(&problem(of(3), None));
    assert_eq!(files.len(), 1);
    assert!(text(&files).contains("    doc = torch.tensor([0, 1, 2], dtype=torch.int32, device=device)"));
    assert!(text(&files).contains("        return doc[q_idx.clamp(max=2)] == doc[kv_idx.clamp(max=2)]"));
    let files = torch_module(&problem(of(300), None));
    assert_eq!(files.len(), 1);
    assert!(text(&files).contains("    doc = _decoded(\n        \"AAAAAAEAAAACAAAA"));
    assert!(text(&files).contains("        return doc[q_idx] == doc[kv_idx]"), "{}", text(&files));
    let files = torch_module_with(
        &problem(of(3000), None),
        &ModuleOptions { name: "mine".into(), title: "T".into(), ..ModuleOptions::default() },
    );
    assert_eq!(files[1].name, "mine.safetensors");
    assert!(text(&files).contains("Path(__file__).with_name(\"mine.safetensors\")"));
    let read = safetensors::SafeTensors::deserialize(&files[1].bytes).expect("a safetensors file");
    assert_eq!(read.tensor("doc").expect("there").shape(), [3000]);
}

#[test]
fn promises_are_written_where_they_hold() {
    let causal = || {
        made(ModKind::Mask, |g| {
            let (q, k) = (g.input(Input::QIdx), g.input(Input::KvIdx));
            g.binary(BinaryOp::Ge, q, k)
        })
    };
    let options = ModuleOptions { promises: true, ..ModuleOptions::default() };
    let of = |q_len, kv_len, score| {
        let given = problem(causal(), score);
        let given = Problem::new(ProblemSpec { q_len, kv_len, ..given.spec().clone() }).expect("valid");
        text(&torch_module_with(&given, &options)).to_string()
    };
    let both = of(256, 256, None);
    let reported =
        "KERNEL_OPTIONS: dict[str, bool] = {\"ROWS_GUARANTEED_SAFE\": True, \"BLOCKS_ARE_CONTIGUOUS\": True}\n";
    assert!(both.contains(reported) && both.contains("# ROWS_GUARANTEED_SAFE: each query keeps"), "{both}");
    // a score_mod may hide what the mask keeps
    let scored = made(ModKind::Score, |g| g.input(Input::Score));
    assert!(of(256, 256, scored).contains("bool] = {\"BLOCKS_ARE_CONTIGUOUS\": True}\n"));
    // 300 queries end in a cut block; few queries go to another kernel
    assert!(of(300, 300, None).contains("bool] = {\"ROWS_GUARANTEED_SAFE\": True}\n"));
    assert!(of(64, 64, None).contains("KERNEL_OPTIONS: dict[str, bool] = {}\n"));
    // nobody looked
    assert!(text(&torch_module(&problem(causal(), None))).contains("KERNEL_OPTIONS: dict[str, bool] = {}\n"));
}

#[test]
fn a_computed_tensor_that_learns_names_its_parameter() {
    use crate::ir::made::{Made, Part, Way};
    let table = HostTensor::vector(Data::F32(vec![0.5, 1.5]));
    let score = made(ModKind::Score, |g| {
        let t = g.add_capture("t", HostTensor::vector(Data::F32(vec![1.0, 3.0])));
        let way = Way::Each(vec![(0, 0, 2.0), (1, 1, 2.0)]);
        g.set_made(t, Made::Of(vec![Part { name: "table".into(), tensor: table.clone(), way }]));
        let (h, score) = (g.input(Input::H), g.input(Input::Score));
        let read = g.add(Op::Load(t, smallvec![h]), None);
        g.binary(BinaryOp::Add, score, read)
    });
    let reported = "# t is computed from table by the design's code: `attend` takes it computed, and its gradient is of it\n\
                LEARNS: tuple[str, ...] = (\"t\",)\n";
    let files = torch_module(&problem(None, score));
    assert!(text(&files).contains(reported), "{}", text(&files));
}

#[test]
fn what_the_mask_reads_decides_the_broadcast() {
    let per_head = made(ModKind::Mask, |g| {
        let (h, k) = (g.input(Input::H), g.input(Input::KvIdx));
        g.binary(BinaryOp::Lt, h, k)
    });
    assert!(
        text(&torch_module(&problem(per_head, None))).contains("BATCH: int | None = None\nHEADS: int | None = 4\n")
    );
    let none = torch_module(&problem(None, None));
    assert!(text(&none).contains("None for flex_attention") && text(&none).contains("mask_mod: MaskMod | None = None"));
}

#[test]
fn a_title_cannot_break_out_of_the_docstring() {
    let options =
        ModuleOptions { name: "m".into(), title: "a \"\"\"\nimport os\n\\".into(), ..ModuleOptions::default() };
    let files = torch_module_with(&problem(None, None), &options);
    assert!(text(&files).starts_with("\"\"\"a ''' import os \\\\\n"), "{}", text(&files));
}
