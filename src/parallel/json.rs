//! Requests and plans as JSON: what a caller without Rust sends, and everything that it needs to carry a plan out.
//!
//! Invariant: a request read here is checked as any other; a plan's object holds no tokens, only blocks, from which the
//! tokens follow. Must not know files.

use crate::analysis::block_mask::{BlockKind, BlockRun};
use crate::base::{BlockSize, DType, Diagnostic, Lengths};
use crate::cost::{CARD, Cost};
use crate::links::{Links, NVLINK};
use crate::local::Stage;
use crate::plan::Plan;
use crate::request::{Kind, Request, Shape, check_ranks};
use crate::rows::{Group, MaskRows};
use serde::Deserialize;
use serde_json::{Value, json};

/// The version of both forms.
pub const VERSION: u32 = 1;

/// A request as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    version: u32,
    ranks: usize,
    q_len: usize,
    kv_len: usize,
    block_size: [usize; 2],
    shape: Shape,
    kinds: Vec<WrittenKind>,
    #[serde(default)]
    card: Option<String>,
    /// Gigabytes a second: one number, or a matrix.
    #[serde(default)]
    bandwidth: Option<Bandwidth>,
    #[serde(default = "yes")]
    backward: bool,
}

fn yes() -> bool {
    true
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Bandwidth {
    One(f64),
    Matrix(Vec<Vec<f64>>),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenKind {
    name: String,
    #[serde(default = "one")]
    layers: usize,
    #[serde(default = "one")]
    batch: usize,
    #[serde(default = "one")]
    heads: usize,
    /// For each batch entry and head, heads innermost, and each row of query blocks: `[start, end, full]`.
    rows: Vec<Vec<Vec<(usize, usize, bool)>>>,
}

fn one() -> usize {
    1
}

/// Reads a request. Errors: text that is not one, and those of [`Request::new`].
pub fn request(text: &str) -> Result<Request, Diagnostic> {
    let written: Written = serde_json::from_str(text).map_err(|why| {
        Diagnostic::error("parallel-request", format!("this is not a request for a plan: {why}"))
            .hint("the fields are version, ranks, q_len, kv_len, block_size, shape, kinds, card, bandwidth, backward")
    })?;
    if written.version != VERSION {
        let message = format!("a request of version {} cannot be read; this program reads {VERSION}", written.version);
        return Err(Diagnostic::error("parallel-version", message).hint("take a matching Maskloom"));
    }
    check_ranks(written.ranks)?;
    let lengths = Lengths::new(written.q_len, written.kv_len)?;
    let block_size = BlockSize { q: written.block_size[0], kv: written.block_size[1] };
    if block_size.q == 0 || block_size.kv == 0 {
        return Err(Diagnostic::error("block-size-zero", format!("BLOCK_SIZE {block_size} has no extent"))
            .hint("use a positive block size; PyTorch's default is 128x128"));
    }
    let links = match written.bandwidth {
        None => Links::uniform(written.ranks, NVLINK)?,
        Some(Bandwidth::One(rate)) => Links::uniform(written.ranks, rate)?,
        Some(Bandwidth::Matrix(matrix)) if matrix.len() != written.ranks => {
            let message = format!("a bandwidth matrix of {} rows is not of {} ranks", matrix.len(), written.ranks);
            return Err(Diagnostic::error("parallel-bandwidth", message).hint("give a row and a column for each rank"));
        }
        Some(Bandwidth::Matrix(matrix)) => Links::matrix(matrix)?,
    };
    let cost = Cost::of_card(written.card.as_deref().unwrap_or(CARD))?;
    let kinds = written.kinds.into_iter().map(|kind| read_kind(kind, lengths, block_size));
    Request::new(kinds.collect::<Result<_, _>>()?, links, written.shape, &cost, written.backward)
}

fn read_kind(kind: WrittenKind, lengths: Lengths, block_size: BlockSize) -> Result<Kind, Diagnostic> {
    let (rows, cols) = block_size.grid(lengths);
    if kind.batch * kind.heads != kind.rows.len() || kind.rows.is_empty() {
        let message = format!("`{}` lists {} masks for {} x {}", kind.name, kind.rows.len(), kind.batch, kind.heads);
        return Err(Diagnostic::error("block-list", message).hint("list one for each batch entry and head"));
    }
    let mut groups = Vec::new();
    for (n, listed) in kind.rows.iter().enumerate() {
        if listed.len() != rows {
            let message =
                format!("`{}` lists {} rows of blocks; {} tokens have {rows}", kind.name, listed.len(), lengths.q_len);
            return Err(Diagnostic::error("block-list", message).hint("list every row, empty ones too"));
        }
        let run = |(start, end, full): &(usize, usize, bool)| BlockRun {
            start: *start,
            end: *end,
            kind: if *full { BlockKind::Full } else { BlockKind::Partial },
        };
        let listed: Vec<Vec<BlockRun>> = listed.iter().map(|row| row.iter().map(run).collect()).collect();
        groups.push(Group::new((n / kind.heads, n % kind.heads), cols, &listed)?);
    }
    let rows = MaskRows { lengths, block_size, distinct: (kind.batch, kind.heads), groups, mask: None };
    Ok(Kind { name: kind.name, layers: kind.layers, rows })
}

/// Everything that the ranks need, and the figures.
pub fn plan(request: &Request, plan: &Plan) -> Value {
    let ranks = (0..request.ranks()).map(|rank| {
        json!({
            "q_blocks": plan.split.q_blocks(rank), "kv_blocks": plan.split.kv_blocks(rank),
            "q_len": plan.split.q_len(rank), "kv_len": plan.split.kv_len(rank),
        })
    });
    let kinds = request.kinds().iter().enumerate().map(|(n, kind)| {
        let stages = (0..request.ranks())
            .map(|rank| -> Vec<Value> { plan.stages(request, n, rank).iter().map(stage).collect() });
        json!({
            "name": kind.name, "layers": kind.layers, "batch": kind.rows.distinct.0, "heads": kind.rows.distinct.1,
            "transfers": plan.transfers[n], "stages": stages.collect::<Vec<_>>(),
        })
    });
    let lengths = request.lengths();
    json!({
        "version": VERSION, "world_size": request.ranks(), "q_len": lengths.q_len, "kv_len": lengths.kv_len,
        "block_size": [request.block_size().q, request.block_size().kv], "shape": request.shape(),
        "coupled": request.coupled(), "exchange": plan.exchange, "ranks": ranks.collect::<Vec<_>>(),
        "kinds": kinds.collect::<Vec<_>>(), "figures": plan.figures, "notes": plan.notes,
        "cost": request.cost(), "links": request.links(),
    })
}

fn stage(stage: &Stage) -> Value {
    let runs = |group: &Group, lines: usize| -> Vec<Vec<(usize, usize, bool)>> {
        let run = |run: &BlockRun| (run.start, run.end, run.kind == BlockKind::Full);
        (0..lines).map(|line| group.row(line).iter().map(run).collect()).collect()
    };
    let mask = &stage.mask;
    json!({
        "sources": stage.sources, "q_len": mask.q_len(), "kv_len": mask.kv_len(),
        "rows": mask.rows.iter().map(|group| runs(group, mask.q_blocks.len())).collect::<Vec<_>>(),
        "columns": mask.columns.iter().map(|group| runs(group, mask.kv_blocks.len())).collect::<Vec<_>>(),
    })
}

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Plain {
            batch: usize,
            heads: usize,
            kv_heads: usize,
            head_dim: usize,
            head_dim_v: Option<usize>,
            dtype: DType,
        }
        let of = Plain::deserialize(from)?;
        Ok(Shape {
            batch: of.batch,
            heads: of.heads,
            kv_heads: of.kv_heads,
            head_dim: of.head_dim,
            head_dim_v: of.head_dim_v.unwrap_or(of.head_dim),
            dtype: of.dtype,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(change: impl Fn(&mut Value)) -> String {
        let mut value = json!({
            "version": 1, "ranks": 2, "q_len": 5, "kv_len": 5, "block_size": [2, 2],
            "shape": { "batch": 1, "heads": 2, "kv_heads": 1, "head_dim": 16, "dtype": "bf16" },
            "kinds": [{ "name": "causal", "rows": [[[[0, 1, false]], [[0, 1, true], [1, 2, false]], [[0, 3, false]]]] }],
        });
        change(&mut value);
        value.to_string()
    }

    #[test]
    fn a_request_is_read_and_its_plan_holds_every_block() {
        let request = request(&text(|_| ())).unwrap();
        let made = Plan::new(&request);
        let value = plan(&request, &made);
        assert_eq!(value["world_size"], 2);
        let all = value["ranks"].as_array().unwrap().iter().flat_map(|r| r["q_blocks"].as_array().unwrap().clone());
        let mut blocks: Vec<u64> = all.map(|b| b.as_u64().unwrap()).collect();
        blocks.sort();
        assert_eq!(blocks, [0, 1, 2]);
        let listed = value["kinds"][0]["stages"].to_string().matches(",true]").count();
        assert_eq!(listed, 2, "the full block, by rows and by columns");
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let code = |change: fn(&mut Value)| request(&text(change)).unwrap_err().code.into_owned();
        assert_eq!(request("{").unwrap_err().code, "parallel-request");
        assert_eq!(code(|v| v["more"] = json!(1)), "parallel-request");
        assert_eq!(code(|v| v["version"] = json!(2)), "parallel-version");
        assert_eq!(code(|v| v["ranks"] = json!(0)), "parallel-ranks");
        assert_eq!(code(|v| v["q_len"] = json!(0)), "zero-length");
        assert_eq!(code(|v| v["block_size"] = json!([0, 2])), "block-size-zero");
        assert_eq!(code(|v| v["kinds"][0]["rows"][0][0] = json!([[2, 4, true]])), "block-list");
        assert_eq!(code(|v| v["kinds"][0]["rows"][0] = json!([])), "block-list");
        assert_eq!(code(|v| v["kinds"][0]["heads"] = json!(2)), "block-list");
        assert_eq!(code(|v| v["bandwidth"] = json!([[1.0]])), "parallel-bandwidth");
        assert_eq!(code(|v| v["bandwidth"] = json!(0.0)), "parallel-bandwidth");
        assert_eq!(code(|v| v["card"] = json!("Abacus")), "parallel-card");
    }
}
