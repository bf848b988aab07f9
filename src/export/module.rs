//! A problem as a PyTorch module: its mods, captured tensors, `make_block_mask(device)`, `make_mask(device)` and
//! `attend(query, key, value)`.
//!
//! Invariant: run by PyTorch it gives the mask and scores of the graph; it needs only torch, and
//! safetensors where it reads a file of tensors. Must not know trainers.

use super::ExportFile;
use super::ranges::index_ranges;
use super::tensors::{self, Literal};
use crate::base::HostTensor;
use crate::language::graph::{Input, Mod};
use crate::language::print::{Names, function};
use crate::language::simplify::simplify;
use crate::problem::Problem;
use std::fmt::Write;

/// Names in the module that captured tensors and locals must not take.
const OWN: &[&str] = &[
    "device",
    "shape",
    "dtype",
    "base64",
    "functools",
    "Path",
    "load_file",
    "lists",
    "load_block_mask",
    "BlockMask",
    "create_mask",
    "create_block_mask",
    "flex_attention",
    "attend",
    "make_mods",
    "make_mask",
    "make_block_mask",
    "key",
    "query",
    "value",
    "Q_LEN",
    "KV_LEN",
    "BATCH",
    "HEADS",
    "SCALE",
    "BLOCK_SIZE",
    "ENABLE_GQA",
];

/// What a module is called.
#[derive(Clone, Debug, PartialEq)]
pub struct ModuleOptions {
    /// File stem: `NAME.py`, `NAME.safetensors`. An identifier, so that it can be imported.
    pub name: String,
    /// First line of its docstring.
    pub title: String,
}

impl Default for ModuleOptions {
    fn default() -> Self {
        Self { name: "maskloom_attention".into(), title: "An attention mask made with Maskloom.".into() }
    }
}

/// The module of a problem under its default name: the `.py` first, then the captured tensors' file if it needs one.
///
/// It defines `Q_LEN`, `KV_LEN`, `BATCH` and `HEADS` (None: broadcast), `SCALE`, `BLOCK_SIZE`, `ENABLE_GQA`, `mask_mod` and
/// `score_mod` (on the cpu, None where there is none), `make_mods(device)`, `make_mask(device)` (dense bool
/// [B or 1, H or 1, Q, KV]), `make_block_mask(device)` and `attend(query, key, value)` on [B, H, S, D].
pub fn torch_module(problem: &Problem) -> Vec<ExportFile> {
    torch_module_with(problem, &ModuleOptions::default())
}

/// The same under a chosen name.
pub fn torch_module_with(problem: &Problem, options: &ModuleOptions) -> Vec<ExportFile> {
    let mut names = Names::reserving(OWN);
    let mask = problem.mask.as_deref().map(simplify);
    let score = problem.score.as_deref().map(simplify);
    let printed = |name: &str, of: &Option<Mod>, names: &mut Names| {
        let of = of.as_ref()?;
        let ranges = index_ranges(of, problem);
        let range = |id| ranges.get(&id).copied().unwrap_or((i64::MIN, i64::MAX));
        Some(function(name, of, names, &range))
    };
    let mask_text = printed("mask_mod", &mask, &mut names);
    let score_text = printed("score_mod", &score, &mut names);
    let with_file = tensors::need_file(&names.tensors);
    let text = Text { problem, options, mask: mask.as_ref(), tensors: &names.tensors, with_file };
    let module = text.module([mask_text, score_text]);
    let mut files = vec![ExportFile::new(
        format!("{}.py", options.name),
        module,
        "PyTorch module: mask_mod, score_mod, make_block_mask(device), attend(q, k, v)",
    )];
    if with_file {
        let in_file = |t: &HostTensor| matches!(tensors::literal(t, true), Literal::Stored);
        let stored: Vec<_> = names.tensors.iter().filter(|(_, t)| in_file(t)).cloned().collect();
        let name = format!("{}.safetensors", options.name);
        let made =
            tensors::tensor_file(name, &stored, "captured tensors of the PyTorch module; keep it beside the .py");
        files.push(made.expect("names are unique and shapes fit their data"));
    }
    files
}

struct Text<'a> {
    problem: &'a Problem,
    options: &'a ModuleOptions,
    mask: Option<&'a Mod>,
    tensors: &'a [(String, HostTensor)],
    /// Whether a file of tensors stands beside the module.
    with_file: bool,
}

impl Text<'_> {
    fn module(&self, mods: [Option<String>; 2]) -> String {
        let mut out = self.docstring();
        out.push_str(&self.imports(mods[0].is_some()));
        out.push_str(&self.constants());
        out.push_str(&self.decoders());
        out.push_str(&self.mods(mods));
        out.push_str(if self.mask.is_some() { MASK } else { NO_MASK });
        out.push_str(ATTEND);
        out
    }

    fn docstring(&self) -> String {
        let p = self.problem;
        let title = self.options.title.replace('\\', "\\\\").replace("\"\"\"", "'''");
        let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
        let heads = if p.kv_heads == p.heads {
            format!("{} heads", p.heads)
        } else {
            format!("{} query heads over {} kv heads", p.heads, p.kv_heads)
        };
        format!(
            "\"\"\"{title}\n\nDesigned for {heads} of {} over {} x {} tokens. `attend(query, key, value)` takes [B, H, S, D].\n\"\"\"\n\n",
            p.head_dim, p.q_len, p.kv_len
        )
    }

    fn imports(&self, mask: bool) -> String {
        let mut out = String::new();
        if self.decodes() {
            out.push_str("import base64\n");
        }
        out.push_str("import functools\n");
        let stored = self.with_file;
        if stored {
            out.push_str("from pathlib import Path\n");
        }
        out.push('\n');
        out.push_str("import torch\n");
        let names = if mask { "BlockMask, create_block_mask, create_mask, flex_attention" } else { "flex_attention" };
        let _ = write!(out, "from torch.nn.attention.flex_attention import {names}\n\n");
        out
    }

    fn constants(&self) -> String {
        let p = self.problem;
        let on = |input| self.mask.is_some_and(|m| m.depends().on(input));
        let extent = |differs: bool, n: usize| if differs { n.to_string() } else { "None".to_string() };
        let mut out = String::new();
        let _ = writeln!(out, "Q_LEN = {}\nKV_LEN = {}", p.q_len, p.kv_len);
        let _ = writeln!(out, "# None: the mask is the same in every batch entry, or for every head");
        let _ = writeln!(out, "BATCH = {}\nHEADS = {}", extent(on(Input::B), p.batch), extent(on(Input::H), p.heads));
        let _ = writeln!(out, "BLOCK_SIZE = ({}, {})", p.block_size.q, p.block_size.kv);
        let _ = writeln!(out, "SCALE = {:?}", p.scale());
        let _ = writeln!(out, "ENABLE_GQA = {}", if p.heads == p.kv_heads { "False" } else { "True" });
        out
    }

    fn decodes(&self) -> bool {
        self.tensors.iter().any(
            |(_, t)| matches!(tensors::literal(t, self.with_file), Literal::Text(text) if text.starts_with("_decoded")),
        )
    }

    fn decoders(&self) -> String {
        if self.decodes() { DECODED.to_string() } else { String::new() }
    }

    /// `make_mods`, and the mods themselves: at the top level where they capture nothing, in the function otherwise.
    fn mods(&self, mods: [Option<String>; 2]) -> String {
        let [mask, score] = &mods;
        let alone = |name: &str, text: &Option<String>| match text {
            Some(text) => format!("\n\n{text}"),
            None => format!("\n{name} = None\n"),
        };
        let mut out = String::new();
        if self.tensors.is_empty() {
            out.push_str(&alone("mask_mod", mask));
            out.push_str(&alone("score_mod", score));
            out.push_str(
                "\n\ndef make_mods(device):\n    \"\"\"mask_mod and score_mod; they capture no tensors.\"\"\"\n    return mask_mod, score_mod\n",
            );
            return out;
        }
        out.push_str("\n\n@functools.cache\ndef _mods(device):\n");
        if self.with_file {
            let file = format!("Path(__file__).with_name(\"{}.safetensors\")", self.options.name);
            out.push_str("    from safetensors.torch import load_file\n\n");
            let _ = writeln!(out, "    stored = load_file({file}, device=str(device))");
        }
        for (name, tensor) in self.tensors {
            let value = match tensors::literal(tensor, self.with_file) {
                Literal::Text(text) => text,
                Literal::Stored => format!("stored[\"{name}\"]"),
            };
            let _ = writeln!(out, "    {name} = {value}");
        }
        for (name, text) in [("mask_mod", mask), ("score_mod", score)] {
            match text {
                Some(text) => {
                    let indented: String = text.lines().map(|l| format!("    {l}\n")).collect();
                    let _ = write!(out, "\n{indented}");
                }
                None => {
                    let _ = writeln!(out, "\n    {name} = None");
                }
            }
        }
        out.push_str("\n    return mask_mod, score_mod\n");
        out.push_str(MAKE_MODS);
        out
    }
}

const DECODED: &str = r#"

def _decoded(text, dtype, shape):
    return torch.frombuffer(bytearray(base64.b64decode(text)), dtype=dtype).reshape(shape)
"#;

const MAKE_MODS: &str = r#"

def make_mods(device):
    """mask_mod and score_mod with their captured tensors on `device`; None where there is none."""
    return _mods(torch.device(device))


mask_mod, score_mod = make_mods("cpu")
"#;

const MASK: &str = r#"

def make_mask(device="cuda", q_len=Q_LEN, kv_len=KV_LEN):
    """The dense mask, [B or 1, H or 1, q_len, kv_len] bool: for scaled_dot_product_attention, or to look at."""
    return create_mask(make_mods(device)[0], BATCH, HEADS, q_len, kv_len, device=device)


def make_block_mask(device="cuda", q_len=Q_LEN, kv_len=KV_LEN):
    """The BlockMask for flex_attention. Make it once for each shape and pass it to every layer."""
    # uncompiled, create_block_mask holds every cell: too much for long sequences
    large = torch.device(device).type == "cuda" and q_len * kv_len > 2**30
    mask = make_mods(device)[0]
    return create_block_mask(
        mask, BATCH, HEADS, q_len, kv_len, device=device, BLOCK_SIZE=BLOCK_SIZE, _compile=large
    )


def load_block_mask(path, device="cuda"):
    """The BlockMask from exported block lists: nothing of the size of the mask is ever held. For Q_LEN and KV_LEN only."""
    from safetensors.torch import load_file

    lists = load_file(path, device=str(device))
    names = ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices")
    return BlockMask.from_kv_blocks(
        *(lists[name] for name in names),
        BLOCK_SIZE=BLOCK_SIZE,
        mask_mod=make_mods(device)[0],
        seq_lengths=(Q_LEN, KV_LEN),
    )
"#;

const NO_MASK: &str = r#"

def make_mask(device="cuda", q_len=Q_LEN, kv_len=KV_LEN):
    """The dense mask, [1, 1, q_len, kv_len] bool: everything is kept."""
    return torch.ones(1, 1, q_len, kv_len, dtype=torch.bool, device=device)


def make_block_mask(device="cuda", q_len=Q_LEN, kv_len=KV_LEN):
    """Everything is kept: flex_attention takes None."""
    return None
"#;

const ATTEND: &str = r#"

@functools.cache
def _block_mask(device, q_len, kv_len):
    return make_block_mask(device, q_len, kv_len)


@functools.cache
def _compiled():
    # uncompiled, flex_attention materialises all scores
    return torch.compile(flex_attention, dynamic=False)


def attend(query, key, value, block_mask=None, scale=SCALE, compiled=True):
    """FlexAttention of query [B, Hq, Q, E], key [B, Hkv, KV, E] and value [B, Hkv, KV, Ev] with this mask and score mod."""
    if block_mask is None:
        block_mask = _block_mask(query.device, query.shape[2], key.shape[2])
    attention = _compiled() if compiled else flex_attention
    return attention(
        query,
        key,
        value,
        score_mod=make_mods(query.device)[1],
        block_mask=block_mask,
        scale=scale,
        enable_gqa=query.shape[1] != key.shape[1],
    )
"#;

#[cfg(test)]
#[path = "module_tests.rs"]
mod tests;
