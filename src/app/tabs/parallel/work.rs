//! The thread of the plans: it answers the newest question about the document's mask over several GPUs.
//!
//! Invariant: an answer names its question, so that a plan of another mask is never shown as the present one's. Must not
//! know widgets.

use crate::analysis::block_mask::BlockKind;
use crate::app::background::{Latest, Wake};
use crate::app::mishaps::guarded;
use crate::base::{Control, Diagnostic};
use crate::parallel::cost::{CARD, Cost};
use crate::parallel::links::Links;
use crate::parallel::plan::Plan;
use crate::parallel::request::{Kind, Request, Shape};
use crate::parallel::rivals::{Rival, rivals};
use crate::parallel::rows::MaskRows;
use crate::problem::Problem;

/// Largest side of a picture, in cells.
const SIDE: usize = 256;

/// All that a plan depends on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Question {
    pub problem: Problem,
    pub ranks: usize,
    /// GB/s that a rank receives.
    pub bandwidth: f64,
}

/// The result.
pub(super) struct Answer {
    pub question: Question,
    pub result: Result<Seen, Diagnostic>,
}

/// A plan, the divisions of others, and its pictures.
pub(super) struct Seen {
    pub plan: Plan,
    pub rivals: Vec<Rival>,
    pub source: String,
    /// The mask as it is, and with the tokens in the order of ranks.
    pub before: Cells,
    pub after: Cells,
}

/// Blocks coloured by the rank that computes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cells {
    pub height: usize,
    pub width: usize,
    /// Row by row: the rank, and whether the block is full. None keeps nothing.
    pub cells: Vec<Option<(u16, bool)>>,
}

/// The thread.
pub(super) fn thread(wake: Wake) -> Latest<Question, Answer> {
    Latest::new("parallel", true, wake, |question: Question, control: &Control| {
        let result = guarded("planning several GPUs", || answer(&question, control)).unwrap_or_else(Err);
        (!control.is_cancelled()).then_some(Answer { question, result })
    })
}

/// Plans the mask of a document: one kind of layer.
pub(super) fn answer(question: &Question, control: &Control) -> Result<Seen, Diagnostic> {
    let problem = &question.problem;
    let shape = Shape::from(problem.spec());
    let rows = MaskRows::from(&problem.block_mask(problem.block_size, control)?);
    let kind = Kind { name: "mask".into(), layers: 1, rows };
    let links = Links::uniform(question.ranks, question.bandwidth)?;
    let request = Request::new(vec![kind], links, shape, &Cost::of_card(CARD)?, true)?;
    let plan = Plan::new(&request);
    let rows = &request.kinds()[0].rows;
    let (height, width) = rows.grid();
    let by_rank = |ranks: &[u16]| {
        let mut order: Vec<usize> = (0..ranks.len()).collect();
        order.sort_by_key(|block| (ranks[*block], *block));
        order
    };
    let natural = cells(rows, &plan, &(0..height).collect::<Vec<_>>(), &(0..width).collect::<Vec<_>>());
    let sorted = cells(rows, &plan, &by_rank(&plan.split.q_rank), &by_rank(&plan.split.kv_rank));
    let source = request.cost().source.clone();
    Ok(Seen { before: natural, after: sorted, rivals: rivals(&request), source, plan })
}

/// The first group's blocks in these orders; a cell of a small picture has the kind of its most kept block.
fn cells(rows: &MaskRows, plan: &Plan, q_order: &[usize], kv_order: &[usize]) -> Cells {
    let (height, width) = (q_order.len().min(SIDE), kv_order.len().min(SIDE));
    let mut place = vec![0; kv_order.len()];
    kv_order.iter().enumerate().for_each(|(at, block)| place[*block] = at * width / kv_order.len());
    let mut out = vec![None; height * width];
    for (at, q) in q_order.iter().enumerate() {
        let line = at * height / q_order.len() * width;
        for run in rows.groups[0].row(*q) {
            for block in run.start..run.end {
                let cell: &mut Option<(u16, bool)> = &mut out[line + place[block]];
                let full = run.kind == BlockKind::Full || cell.is_some_and(|(_, full)| full);
                *cell = Some((plan.split.q_rank[*q], full));
            }
        }
    }
    Cells { height, width, cells: out }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::examples;
    use crate::problem::ProblemSpec;
    use std::sync::Arc;

    #[test]
    fn every_rank_is_in_both_pictures_and_the_second_is_in_their_order() {
        let spec =
            ProblemSpec { mask: Some(Arc::new(examples::causal())), ..ProblemSpec::plain(1, (4, 4), (2048, 2048), 64) };
        let problem = Problem::new(spec).expect("valid");
        let question = Question { problem, ranks: 4, bandwidth: 200.0 };
        let seen = answer(&question, &Control::new()).expect("a plan");
        assert_eq!((seen.before.height, seen.before.width), (16, 16));
        let kept = |cells: &Cells| cells.cells.iter().flatten().count();
        assert_eq!((kept(&seen.before), kept(&seen.after)), (136, 136));
        let ranks: Vec<u16> = (0..16)
            .filter_map(|row| (0..16).find_map(|col| seen.after.cells[row * 16 + col]))
            .map(|(rank, _)| rank)
            .collect();
        assert!(ranks.is_sorted() && ranks.len() == 16, "{ranks:?}");
        assert!((0..4).all(|rank| ranks.contains(&rank)));
    }
}
