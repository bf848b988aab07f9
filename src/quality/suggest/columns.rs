//! Columns and diagonals of blocks ("vertical-slash", MInference arXiv:2407.02490), grown by mass gained per block executed.
//!
//! Invariant: overlaps count once: a block of a chosen column adds nothing to a diagonal. Must not know other forms.

use super::budget::forced;
use super::form::{Beside, Form};
use super::{Candidate, Kind, Material, Reason, Target, Wanted};
use crate::base::{Control, Diagnostic};

/// A column or a diagonal that may be taken.
#[derive(Clone, Copy)]
struct Line {
    diagonal: bool,
    at: i64,
}

/// One proposal; none where query and key blocks differ in size, because diagonals have no meaning there.
pub(super) fn propose(material: &Material, wanted: &Wanted, control: &Control) -> Result<Vec<Candidate>, Diagnostic> {
    let size = material.block();
    if size.q != size.kv {
        return Ok(Vec::new());
    }
    let (rows, columns) = size.grid(material.lengths());
    let mass = mean_blocks(material);
    let reach = |i: usize| if material.causal { (i + 1).min(columns) } else { columns };
    let all: usize = rows * columns;
    let must = forced(material, wanted);
    // rows of blocks of which every query sees all
    let beside = Beside::of(wanted, material.lengths());
    let lengths = material.lengths();
    let seen = |at: &usize| {
        let (q, j) = (at / columns * size.q..((at / columns + 1) * size.q).min(lengths.q_len), at % columns);
        let whole = beside.is_some_and(|b| b.rows(lengths.q_len).iter().any(|r| r.start <= q.start && q.end <= r.end));
        whole && j < reach(at / columns)
    };
    let mut taken: Vec<bool> = (0..rows * columns).map(|at| seen(&at)).collect();
    let mut chosen: Vec<Line> = Vec::new();
    let mut kept: f64 = (0..taken.len()).filter(|at| taken[*at]).map(|at| mass[at]).sum();
    let mut executed = taken.iter().filter(|t| **t).count();
    let cells = |line: Line| -> Vec<usize> {
        (0..rows)
            .filter_map(|i| {
                let j = if line.diagonal { i as i64 - line.at } else { line.at };
                (0..reach(i) as i64).contains(&j).then(|| i * columns + j as usize)
            })
            .collect()
    };
    let first = if material.causal { 0 } else { -(columns as i64 - 1) };
    let mut open: Vec<Line> = (0..columns as i64).map(|at| Line { diagonal: false, at }).collect();
    open.extend((first..rows as i64).map(|at| Line { diagonal: true, at }));
    let forced_first = |line: &Line| {
        let of = cells(*line);
        !of.is_empty() && of.iter().all(|c| must[*c] == 1) && (line.diagonal == (line.at == 0) || !line.diagonal)
    };
    let mut queue: Vec<Line> = open.iter().copied().filter(forced_first).collect();
    loop {
        let done = match wanted.target {
            Target::Mass(target) => kept >= target - 1e-9,
            Target::Blocks(share) => executed as f64 >= share * all as f64,
        };
        if (done && queue.is_empty()) || control.is_cancelled() {
            break;
        }
        let next = match queue.pop() {
            Some(line) => Some(line),
            None => best(&open, &cells, &taken, &mass),
        };
        let Some(line) = next else { break };
        let fresh: Vec<usize> = cells(line).into_iter().filter(|c| !taken[*c]).collect();
        if let Target::Blocks(share) = wanted.target
            && (executed + fresh.len()) as f64 > share * all as f64 + 1e-9
            && !chosen.is_empty()
        {
            break;
        }
        kept += fresh.iter().map(|c| mass[*c]).sum::<f64>();
        executed += fresh.len();
        fresh.iter().for_each(|c| taken[*c] = true);
        open.retain(|l| (l.diagonal, l.at) != (line.diagonal, line.at));
        chosen.push(line);
    }
    let of = |diagonal: bool| ranges(chosen.iter().filter(|l| l.diagonal == diagonal).map(|l| l.at).collect());
    let (columns, diagonals) = (of(false), of(true));
    let diagonal = chosen.iter().filter(|l| l.diagonal).count();
    let why = Reason::Columns { columns: chosen.len() - diagonal, diagonals: diagonal };
    let form = Form::Stripes { block: size.q, columns, diagonals, causal: material.causal };
    let form = Form::beside(beside, form);
    Ok(vec![material.judge(Kind::ColumnsDiagonals, why, form, control)?])
}

/// The line that gains most mass for each block that it adds.
fn best(open: &[Line], cells: &impl Fn(Line) -> Vec<usize>, taken: &[bool], mass: &[f64]) -> Option<Line> {
    let gain = |line: &Line| {
        let fresh: Vec<usize> = cells(*line).into_iter().filter(|c| !taken[*c]).collect();
        let sum: f64 = fresh.iter().map(|c| mass[*c]).sum();
        if fresh.is_empty() { f64::NEG_INFINITY } else { sum / fresh.len() as f64 }
    };
    let scored = open.iter().map(|line| (gain(line), *line)).filter(|(gain, _)| *gain > 0.0);
    scored.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, line)| line)
}

/// Share of all rows' mass in each block, mean over heads.
pub(super) fn mean_blocks(material: &Material) -> Vec<f64> {
    let (rows, columns) = material.block().grid(material.lengths());
    let mut sum = vec![0.0; rows * columns];
    for head in material.heads.iter() {
        let judged: Vec<f64> = (0..rows).map(|i| head.masses.judged(i) as f64).collect();
        let total: f64 = judged.iter().sum::<f64>().max(1.0) * material.heads.len() as f64;
        for (at, m) in head.masses.blocks.iter().enumerate() {
            sum[at] += f64::from(*m) * judged[at / columns] / total;
        }
    }
    sum
}

/// Sorted numbers as half-open ranges.
pub(super) fn ranges(mut of: Vec<i64>) -> Vec<[i64; 2]> {
    of.sort_unstable();
    let mut found: Vec<[i64; 2]> = Vec::new();
    for at in of {
        match found.last_mut().filter(|last| last[1] == at) {
            Some(last) => last[1] = at + 1,
            None => found.push([at, at + 1]),
        }
    }
    found
}
