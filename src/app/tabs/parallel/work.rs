//! The thread of the plans: it answers the newest question about the document's mask over several GPUs.
//!
//! Invariant: an answer names its question, so that a plan of another mask is never shown as the present one's. Must not
//! know widgets.

use crate::analysis::block_mask::BlockKind;
use crate::app::background::{Latest, Wake};
use crate::app::mishaps::guarded;
use crate::base::{Control, Diagnostic, Provenance};
use crate::document::compile::{BuiltIn, compile};
use crate::document::from_document;
use crate::document::model::{Axes, Axis, Document};
use crate::parallel::cost::{CARD, Cost};
use crate::parallel::links::Links;
use crate::parallel::paths::{Path, paths};
use crate::parallel::plan::Plan;
use crate::parallel::request::{Kind, Request, Shape};
use crate::parallel::rivals::{Rival, rivals};
use crate::parallel::rows::MaskRows;
use crate::problem::Problem;
use std::sync::Arc;

/// Largest side of a picture, in cells.
const SIDE: usize = 256;

/// All that a plan depends on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Question {
    pub problem: Problem,
    /// Layers that have the open document's mask.
    pub layers: usize,
    /// Further kinds of layers of the same model.
    pub further: Vec<Further>,
    pub ranks: usize,
    /// GB/s that a rank receives.
    pub bandwidth: f64,
}

/// A kind of layer beside the open document's: another document's mask at the open one's lengths, heads and head dims.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Further {
    pub name: String,
    pub layers: usize,
    pub document: Arc<Document>,
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
    /// What the ways of other libraries do with these masks.
    pub paths: Vec<Path>,
    /// The names of the kinds.
    pub kinds: Vec<String>,
    /// Where the predicted times come from.
    pub source: Provenance,
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

/// Plans the open document's mask together with the further kinds.
pub(super) fn answer(question: &Question, control: &Control) -> Result<Seen, Diagnostic> {
    let own = &question.problem;
    let shape = Shape::from(own.spec());
    let (mut kinds, mut patterns) = (Vec::new(), Vec::new());
    let mut add = |name: &str, layers: usize, problem: &Problem| -> Result<(), Diagnostic> {
        let rows = MaskRows::from(&problem.block_mask(problem.block_size, control)?);
        kinds.push(Kind { name: name.into(), layers, rows });
        patterns.push(problem.pattern(control)?);
        Ok(())
    };
    add("this mask", question.layers, own)?;
    for further in &question.further {
        add(&further.name, further.layers, &like(further, own)?)?;
    }
    let links = Links::uniform(question.ranks, question.bandwidth)?;
    let request = Request::new(kinds, links, shape, &Cost::of_card(CARD)?, true)?;
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
    let kinds = request.kinds().iter().map(|kind| kind.name.clone()).collect();
    Ok(Seen { before: natural, after: sorted, rivals: rivals(&request), paths: paths(&patterns), kinds, source, plan })
}

/// The first of several errors.
fn first(reported: Vec<Diagnostic>) -> Diagnostic {
    reported.into_iter().next().unwrap_or_else(|| Diagnostic::error("parallel-mask", "the mask has errors"))
}

/// A further kind's problem in the open document's shape. Errors: its own, with its name; a mask for other lengths.
fn like(further: &Further, own: &Problem) -> Result<Problem, Diagnostic> {
    let mut document = (*further.document).clone();
    let spec = own.spec();
    let named = |why: Diagnostic| Diagnostic { message: format!("{}: {}", further.name, why.message), ..why };
    let lengths = document.axes.lengths().map_err(named)?;
    if (lengths.q_len, lengths.kv_len) != (spec.q_len, spec.kv_len) {
        let axis = Axis::tokens(spec.q_len);
        let kv = (spec.q_len != spec.kv_len).then(|| Axis::tokens(spec.kv_len));
        document.axes = Axes { kv, ..Axes::same(axis) };
    }
    let settings = &mut document.settings;
    (settings.batch, settings.heads, settings.kv_heads) = (spec.batch, spec.heads, spec.kv_heads);
    (settings.head_dim, settings.head_dim_v) = (spec.head_dim, Some(spec.head_dim_v));
    (settings.dtype, settings.block_size) = (spec.dtype, spec.block_size);
    from_document(&document, &compile(&document, &BuiltIn)).map_err(|why| named(first(why)))
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

    #[test]
    fn every_rank_is_in_both_pictures_and_the_second_is_in_their_order() {
        let spec =
            ProblemSpec { mask: Some(Arc::new(examples::causal())), ..ProblemSpec::plain(1, (4, 4), (2048, 2048), 64) };
        let problem = Problem::new(spec).expect("valid");
        let question = Question { problem, layers: 1, further: Vec::new(), ranks: 4, bandwidth: 200.0 };
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

    #[test]
    fn a_further_kind_is_planned_at_the_open_documents_lengths() {
        let causal = Arc::new(examples::causal());
        let spec = ProblemSpec { mask: Some(causal), ..ProblemSpec::plain(1, (4, 4), (2048, 2048), 64) };
        let problem = Problem::new(spec).expect("valid");
        let window = crate::document::library::preset("sliding_window").expect("a preset").document().expect("opens");
        let further = vec![Further { name: "local".into(), layers: 5, document: Arc::new(window) }];
        let both = Question { problem, layers: 1, further, ranks: 4, bandwidth: 200.0 };
        let alone = Question { further: Vec::new(), ..both.clone() };
        let [both, alone] = [both, alone].map(|question| answer(&question, &Control::new()).expect("a plan"));
        assert_eq!(both.kinds, ["this mask", "local"]);
        assert_eq!(both.plan.figures.kinds.len(), 2);
        // five cheap layers more, and no more tokens
        assert!(both.plan.figures.ms() > alone.plan.figures.ms());
        assert_eq!(both.plan.figures.tokens.iter().sum::<usize>(), 2048);
        // what a causal flag can say, a window cannot
        let lost =
            |seen: &Seen| seen.paths.iter().filter(|path| path.fate == crate::parallel::paths::Fate::Lost).count();
        assert_eq!((lost(&alone), lost(&both)), (0, 2));
    }
}
