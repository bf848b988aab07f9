//! Heads of a capture measured by a device: the mass that a mask keeps by two launches of flex, the block masses by one
//! picture of the probabilities.
//!
//! Invariant: the measures are formed as those of `quality/measure.rs`, from the launches' lse and outputs; flex is compared
//! with the float64 reference in each launch, and a wrong result is an error. Must not know who carries requests to a
//! worker.

use super::JudgedHead;
use crate::analysis::block_mask::BlockKind;
use crate::backends::race::RaceOptions;
use crate::base::tensor::Data;
use crate::base::{BackendName, DType, Device, Diagnostic, HostTensor, Layout};
use crate::ir::graph::{Input, Mod};
use crate::ir::passes::compose::and_masks;
use crate::problem::result::{Outcome, RunReport};
use crate::problem::{Problem, ProblemSpec};
use crate::quality::attend::{Attended, Kept};
use crate::quality::capture::{Call, Capture};
use crate::quality::head::{Head, Own};
use crate::quality::masses::Masses;
use crate::quality::measure::Judge;
use crate::quality::own;
use crate::quality::scores::Scorer;
use crate::worker::protocol::{InputSource, MapKind, MapRequest, RunRequest};
use crate::worker::transport::Payload;
use crate::worker::{files, tensors};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Multiply-adds of one picture at most, so that no device leaves rows out.
const PICTURE: u128 = 1 << 34;
/// Rows that each launch compares with the float64 reference.
const CHECKED: u32 = 64;
/// Rounds of timing.
const ROUNDS: u32 = 3;

/// Carries requests to a worker on this machine, which reads files of ours.
pub trait Carrier {
    /// Why a request failed.
    type Error: From<Diagnostic>;

    /// A run with its payloads.
    fn run(&mut self, request: RunRequest) -> Result<(RunReport, Vec<Payload>), Self::Error>;

    /// A picture of one head of the last run.
    fn map(&mut self, request: MapRequest) -> Result<Vec<f32>, Self::Error>;
}

/// What is measured, and where.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// The file.
    pub capture: &'a Capture,
    /// The call in it.
    pub call: &'a Call,
    /// Batch entry.
    pub batch: usize,
    /// Query heads.
    pub heads: &'a [usize],
    /// The document's problem, whose mask is judged.
    pub problem: &'a Problem,
    /// The blocks of its mask.
    pub kept: &'a Kept,
    /// Where flex runs.
    pub device: Device,
}

/// The heads with the milliseconds of flex under the mask and without it, summed over launches.
pub struct Launched {
    /// In the requested order.
    pub heads: Vec<JudgedHead>,
    /// Under the mask.
    pub masked_ms: f64,
    /// Without it.
    pub full_ms: f64,
}

/// Measures heads. Errors: those of the carrier, flex refuses or is wrong, a head that is not in the capture.
pub fn judge<C: Carrier>(carrier: &mut C, asked: &Asked) -> Result<Launched, C::Error> {
    let read = |head: &usize| {
        let mut found = asked.capture.head(asked.call, asked.batch, *head)?;
        found.score = asked.problem.score.clone();
        Ok((*head, found))
    };
    let heads: Vec<(usize, Head)> = asked.heads.iter().map(read).collect::<Result<_, Diagnostic>>()?;
    let folder = tempfile::tempdir().map_err(|why| {
        Diagnostic::error("no-temporary-folder", format!("q, k and v cannot be handed to the worker: {why}"))
            .hint("set TMPDIR to a writable folder")
    })?;
    let mut made = Launched { heads: Vec::new(), masked_ms: 0.0, full_ms: 0.0 };
    for group in groups(&heads, asked) {
        launch(carrier, asked, &heads[group], folder.path(), &mut made)?;
    }
    Ok(made)
}

/// Ranges of heads that go together: all, or each alone where they differ in more than their tensors.
fn groups(heads: &[(usize, Head)], asked: &Asked) -> Vec<Range<usize>> {
    let mods = [&asked.problem.mask, &asked.problem.score];
    let places = mods.into_iter().flatten().any(|of| of.depends().on(Input::B) || of.depends().on(Input::H));
    let plain = |head: &Head| matches!(head.own, Own::None | Own::Causal);
    let alike = heads.windows(2).all(|pair| {
        let (a, b) = (&pair[0].1, &pair[1].1);
        a.scale == b.scale && a.softcap == b.softcap && std::mem::discriminant(&a.own) == std::mem::discriminant(&b.own)
    });
    match !places && alike && heads.iter().all(|(_, head)| plain(head)) {
        true => std::iter::once(0..heads.len()).collect(),
        false => (0..heads.len()).map(|n| n..n + 1).collect(),
    }
}

/// Two launches of some heads, and a picture of each.
fn launch<C: Carrier>(
    carrier: &mut C,
    asked: &Asked,
    heads: &[(usize, Head)],
    folder: &Path,
    made: &mut Launched,
) -> Result<(), C::Error> {
    let Some((_, first)) = heads.first() else { return Ok(()) };
    let path = folder.join("heads.safetensors");
    let dtype = dtype(asked, first);
    files::save(&path, &written(heads, dtype)?)?;
    let own = own::mask(first)?.map(Arc::new);
    let placed = |of: &Mod| Arc::new(own::at_place(of, first.place));
    let document = asked.problem.mask.as_deref().map(placed);
    let masked = match (&document, &own) {
        (Some(a), Some(b)) => Some(Arc::new(and_masks(&[a, b]))),
        (a, b) => a.clone().or_else(|| b.clone()),
    };
    let request = |mask| request(asked, heads, dtype, mask, &path);
    let under = one(carrier.run(request(masked)?)?)?;
    let full = one(carrier.run(request(own)?)?)?;
    made.masked_ms += under.ms;
    made.full_ms += full.ms;
    for (at, (number, head)) in heads.iter().enumerate() {
        let blocks = pictures(carrier, asked, head, at)?;
        made.heads.push(judged(asked, (*number, head), at, blocks, &under, &full)?);
    }
    Ok(())
}

/// The format in which a device takes the tensors: the capture's, or float16 for a GPU that takes no float32.
fn dtype(asked: &Asked, head: &Head) -> DType {
    let held = |most: f32| head.q().iter().chain(head.k()).all(|x| x.abs() < most);
    match asked.call.info.dtype.as_str() {
        "bfloat16" => DType::BF16,
        "float16" => DType::F16,
        _ if asked.device == Device::Cpu => DType::F32,
        _ if held(6e4) => DType::F16,
        _ => DType::BF16,
    }
}

/// A safetensors file with q, k and v as [1, heads, tokens, dim]. Without v the keys replace it.
fn written(heads: &[(usize, Head)], dtype: DType) -> Result<Vec<u8>, Diagnostic> {
    let tensor = |of: &dyn Fn(&Head) -> Vec<f32>, tokens: usize| {
        let values: Vec<f32> = heads.iter().flat_map(|(_, head)| of(head)).collect();
        let dim = values.len() / (tokens * heads.len());
        let data = match dtype {
            DType::BF16 => Data::BF16(values.into_iter().map(half::bf16::from_f32).collect()),
            DType::F16 => Data::F16(values.into_iter().map(half::f16::from_f32).collect()),
            _ => Data::F32(values),
        };
        HostTensor::new([1, heads.len(), tokens, dim], data)
    };
    let lengths = heads[0].1.lengths();
    let q = tensor(&|head| head.q().to_vec(), lengths.q_len)?;
    let k = tensor(&|head| head.k().to_vec(), lengths.kv_len)?;
    let v = tensor(&|head| head.v().unwrap_or(head.k()).to_vec(), lengths.kv_len)?;
    tensors::write([("q".to_string(), &q), ("k".to_string(), &k), ("v".to_string(), &v)])
}

fn request(
    asked: &Asked,
    heads: &[(usize, Head)],
    dtype: DType,
    mask: Option<Arc<Mod>>,
    path: &Path,
) -> Result<RunRequest, Diagnostic> {
    let (of, count) = (&heads[0].1, heads.len());
    let lengths = of.lengths();
    let score = own::score(of)?.map(|score| Arc::new(own::at_place(&score, of.place)));
    let spec = ProblemSpec {
        dtype,
        head_dim_v: if of.dim_v() == 0 { of.dim() } else { of.dim_v() },
        scale: Some(of.scale),
        block_size: asked.problem.block_size,
        mask,
        score,
        max_scores: true,
        ..ProblemSpec::plain(1, (count, count), (lengths.q_len, lengths.kv_len), of.dim())
    };
    let problem = Problem::new(spec).map_err(|mut why| why.remove(0))?;
    let inputs = InputSource::File {
        path: path.display().to_string(),
        names: ["q", "k", "v"].map(String::from),
        layout: Layout::Bhsd,
    };
    let mut request = RunRequest::new(&problem, inputs, vec![BackendName::Flex], asked.device);
    request.options = RaceOptions { rounds: ROUNDS, reference_rows: CHECKED, ..RaceOptions::USUAL };
    request.keep_outputs = true;
    Ok(request)
}

/// Results of one launch, head after head.
struct Pass {
    ms: f64,
    lse: Vec<f32>,
    max: Vec<f32>,
    out: Vec<f32>,
}

fn one((report, payloads): (RunReport, Vec<Payload>)) -> Result<Pass, Diagnostic> {
    let outcome = report.backends.into_iter().next().map(|b| b.outcome);
    let ms = match outcome {
        Some(Outcome::Done { error, timings, .. }) if error.passed() => {
            timings.forward().map_or(0.0, |timing| timing.median_ms)
        }
        Some(Outcome::Done { error, .. }) => {
            let fault = error.fault().unwrap_or_default();
            return Err(Diagnostic::error("lab-wrong", format!("flex is wrong on this head: {fault}"))
                .hint("measure without --device, and report the capture"));
        }
        Some(Outcome::Refused { why } | Outcome::Failed { why }) => return Err(why),
        None => return Err(Diagnostic::error("protocol-answer", "the worker returned no result of flex")),
    };
    let values = |name: &str| {
        let found = payloads.iter().find(|(info, _)| info.name == name);
        let tensor = found.map(|(info, bytes)| tensors::tensor(info.dtype, &info.shape, bytes)).transpose()?;
        tensor
            .map(|t| t.to_f32_vec())
            .ok_or_else(|| Diagnostic::error("protocol-answer", format!("the worker returned no {name}")))
    };
    Ok(Pass { ms, lse: values("flex.lse")?, max: values("flex.max_scores")?, out: values("flex.out")? })
}

/// Sums of the full attention's probabilities by block, row by row of blocks.
fn pictures<C: Carrier>(carrier: &mut C, asked: &Asked, head: &Head, at: usize) -> Result<Vec<f32>, C::Error> {
    let (lengths, size) = (head.lengths(), asked.problem.block_size);
    let (rows, columns) = size.grid(lengths);
    let affordable = PICTURE / (lengths.kv_len * head.dim()).max(1) as u128 / size.q as u128;
    let mut sums = vec![0.0; rows * columns];
    for some in parts(rows, lengths.q_len / size.q, (affordable as usize).max(1)) {
        // blocks that the lengths cut have pixels of another size
        for beside in parts(columns, lengths.kv_len / size.kv, columns) {
            let edge = |blocks: &Range<usize>, size: usize, tokens: usize| {
                [blocks.start * size, (blocks.end * size).min(tokens)]
            };
            let pixels = carrier.map(MapRequest {
                b: 0,
                h: at,
                q: edge(&some, size.q, lengths.q_len),
                kv: edge(&beside, size.kv, lengths.kv_len),
                height: some.len(),
                width: beside.len(),
                kind: MapKind::Probabilities,
            })?;
            for (line, row) in pixels.chunks_exact(beside.len()).zip(some.clone()) {
                sums[row * columns..][beside.clone()].copy_from_slice(line);
            }
        }
    }
    Ok(sums)
}

/// Blocks `0..all` in parts of at most `most`, the cut ones from `whole` on apart.
fn parts(all: usize, whole: usize, most: usize) -> Vec<Range<usize>> {
    let mut made: Vec<Range<usize>> = (0..whole).step_by(most).map(|from| from..(from + most).min(whole)).collect();
    made.extend((whole < all).then_some(whole..all));
    made
}

fn judged(
    asked: &Asked,
    (number, head): (usize, &Head),
    at: usize,
    sums: Vec<f32>,
    under: &Pass,
    full: &Pass,
) -> Result<JudgedHead, Diagnostic> {
    let rows = head.lengths().q_len;
    let of = |pass: &Pass| -> Vec<f64> { pass.lse[at * rows..(at + 1) * rows].iter().map(|x| f64::from(*x)).collect() };
    let mut masses = Masses {
        lengths: head.lengths(),
        block: asked.problem.block_size,
        blocks: sums,
        lse: of(full),
        max: full.max[at * rows..(at + 1) * rows].to_vec(),
        rows: None,
        rounding: 1.0,
    };
    let (q_blocks, columns) = masses.grid();
    for q_block in 0..q_blocks {
        let judged = masses.judged(q_block).max(1) as f32;
        let row = &mut masses.blocks[q_block * columns..(q_block + 1) * columns];
        // masked pixels are -inf, those of rows that keep nothing NaN
        row.iter_mut().for_each(|x| *x = if x.is_finite() { *x / judged } else { 0.0 });
    }
    let outputs = |pass: &Pass| outputs(head, at, pass);
    let judge = Judge { scorer: Arc::new(Scorer::new(head)), full: outputs(full), masses: Arc::new(masses) };
    let [kept_cells, executed_cells] = cells(asked.kept, head);
    let found = Attended { lse: of(under), out: outputs(under), kept_cells, executed_cells };
    let judged = judge.of(asked.kept, &found);
    Ok(JudgedHead { head: number, judge, judged })
}

/// A head's output, with the sink's share of the weights; empty without v.
fn outputs(head: &Head, at: usize, pass: &Pass) -> Vec<f32> {
    let (rows, dim) = (head.lengths().q_len, head.dim_v());
    if dim == 0 {
        return Vec::new();
    }
    let mut out = pass.out[at * rows * dim..(at + 1) * rows * dim].to_vec();
    if let Some(sink) = head.sink {
        for (row, lse) in out.chunks_exact_mut(dim).zip(&pass.lse[at * rows..]) {
            let share = 1.0 / (1.0 + (f64::from(sink) - f64::from(*lse)).exp());
            row.iter_mut().for_each(|x| *x *= share as f32);
        }
    }
    out
}

/// Kept cells, and cells of the visited blocks.
fn cells(kept: &Kept, head: &Head) -> [u64; 2] {
    let (lengths, (b, h)) = (head.lengths(), head.place);
    let size = kept.blocks.block_size();
    let (mut found, mut bytes) = ([0u64; 2], Vec::new());
    for row in 0..kept.blocks.grid().0 {
        let q = row * size.q..((row + 1) * size.q).min(lengths.q_len);
        for run in kept.blocks.runs(b, h, row) {
            let kv = run.start * size.kv..(run.end * size.kv).min(lengths.kv_len);
            let inside = (q.len() * kv.len()) as u64;
            found[1] += inside;
            found[0] += match run.kind {
                BlockKind::Full => inside,
                _ => {
                    bytes.resize(q.len() * kv.len(), 0);
                    kept.cells(b, h, q.clone(), kv, &mut bytes);
                    bytes.iter().map(|keep| u64::from(*keep)).sum()
                }
            };
        }
    }
    found
}
