//! Undo and redo: a bounded list of inverse edits.
//!
//! Invariant: undoing all stored points restores the document at the oldest point; edits between pointer down and
//! pointer up are one point, and cancelling a gesture removes that point and nothing else. Memory holds the changes
//! (for a stroke its rectangles), never whole documents unless one was replaced. Must not know the window.

use super::edit::{Edit, apply};
use super::model::*;
use super::title::Title;
use crate::base::Diagnostic;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Edits of one kind that follow each other within this many seconds are one undo point: typing, arrow keys.
const COALESCE_SECONDS: f64 = 1.0;
const MAX_POINTS: usize = 1000;
const MAX_BYTES: usize = 64 << 20;

/// Undo and redo of one document.
#[derive(Debug, Default)]
pub struct History {
    undo: VecDeque<Point>,
    redo: Vec<Point>,
    pointer: Pointer,
    bytes: usize,
    /// The redo list at the start of the present gesture.
    redo_before: Vec<Point>,
    /// The name of the gesture's point; None: that of its first edit.
    gesture_title: Option<Title>,
    /// The layer that is worked on; points remember it.
    layer: Option<u64>,
}

/// A step that was taken back or done again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// As undo lists call it.
    pub title: Title,
    /// Whether another document took the place of the one there was.
    pub replaced: bool,
    /// Whether layers came or went.
    pub layers_changed: bool,
    /// The layer edited before the step, if known.
    pub layer: Option<u64>,
}

/// A way through the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Undo.
    Back,
    /// Redo.
    Again,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Pointer {
    #[default]
    Up,
    /// Down, and nothing was changed yet.
    Down,
    /// Down, and the newest point is this gesture's.
    Dragging,
}

/// A history's newest points, to be stored beside their document.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct KeptHistory {
    /// Oldest first.
    undo: Vec<Point>,
    redo: Vec<Point>,
}

/// One step: edits that restore the state before it, newest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Point {
    title: Title,
    inverses: Vec<Edit>,
    at: f64,
    bytes: usize,
    /// Whether a later edit may still join it.
    open: bool,
    /// The layer that was worked on when it began.
    layer: Option<u64>,
}

impl Point {
    /// The name of the step for undo.
    fn step(&self) -> Step {
        Step {
            title: self.title.clone(),
            replaced: self.inverses.iter().any(Edit::replaces_document),
            layers_changed: self.inverses.iter().any(Edit::changes_layers),
            layer: self.layer,
        }
    }
}

impl History {
    /// Nothing to undo.
    pub fn new() -> Self {
        Self::default()
    }

    /// Copies of the newest points, as many as have `bytes` together: points to undo first, then those to redo.
    pub fn kept(&self, bytes: usize) -> KeptHistory {
        let mut left = bytes;
        let mut fits = |point: &&Point| {
            let fits = point.bytes <= left;
            left = left.saturating_sub(point.bytes);
            fits
        };
        let mut undo: Vec<Point> = self.undo.iter().rev().take_while(&mut fits).cloned().collect();
        let mut redo: Vec<Point> = self.redo.iter().rev().take_while(&mut fits).cloned().collect();
        undo.reverse();
        redo.reverse();
        KeptHistory { undo, redo }
    }

    /// The history that was kept with a document. No later edit joins its newest point.
    pub fn restored(kept: KeptHistory) -> Self {
        let closed = |point: Point| {
            // what a file says of sizes is not believed
            let bytes = point.inverses.iter().map(weight).sum();
            Point { open: false, bytes, ..point }
        };
        let undo: VecDeque<Point> = kept.undo.into_iter().map(closed).collect();
        let bytes = undo.iter().map(|point| point.bytes).sum();
        let mut history = Self { undo, redo: kept.redo.into_iter().map(closed).collect(), bytes, ..Self::default() };
        history.trim();
        history
    }

    /// Makes an edit undoable. `now` is any clock in seconds.
    pub fn apply(&mut self, document: &mut Document, edit: Edit, now: f64) -> Result<(), Diagnostic> {
        let title = edit.title();
        let inverse = apply(document, edit)?;
        if self.pointer == Pointer::Down {
            self.redo_before = std::mem::take(&mut self.redo);
        }
        self.redo.clear();
        let joins = match self.pointer {
            Pointer::Dragging => true,
            Pointer::Down => false,
            Pointer::Up => self.undo.back().is_some_and(|p| {
                p.open && now - p.at <= COALESCE_SECONDS && p.inverses.last().is_some_and(|i| covers(i, &inverse))
            }),
        };
        match self.undo.back_mut().filter(|_| joins) {
            Some(point) => {
                point.at = now;
                // a newer inverse that the older one covers would be undone by it anyway
                if !point.inverses.last().is_some_and(|older| covers(older, &inverse)) {
                    let bytes = weight(&inverse);
                    point.bytes += bytes;
                    self.bytes += bytes;
                    point.inverses.push(inverse);
                }
            }
            None => {
                let bytes = weight(&inverse);
                self.bytes += bytes;
                let title = self.gesture_title.take().filter(|_| self.pointer == Pointer::Down).unwrap_or(title);
                let layer = self.layer;
                self.undo.push_back(Point { title, inverses: vec![inverse], at: now, bytes, open: true, layer });
            }
        }
        if self.pointer == Pointer::Down {
            self.pointer = Pointer::Dragging;
        }
        self.trim();
        Ok(())
    }

    /// Until [`History::pointer_up`], all edits are one point.
    pub fn pointer_down(&mut self) {
        self.seal();
        self.end_gesture(Pointer::Down);
    }

    /// Ends the gesture.
    pub fn pointer_up(&mut self) {
        self.seal();
        self.end_gesture(Pointer::Up);
    }

    fn end_gesture(&mut self, pointer: Pointer) {
        self.pointer = pointer;
        (self.redo_before, self.gesture_title) = (Vec::new(), None);
    }

    /// The name of the gesture that has just begun, instead of that of its first edit.
    pub fn name_gesture(&mut self, title: Title) {
        self.gesture_title = Some(title);
    }

    /// Reverts the changes of the present gesture, and only those; returns its name. The pointer may still be down:
    /// later changes are a new point. The former redo list returns.
    pub fn cancel_gesture(&mut self, document: &mut Document) -> Option<Step> {
        if self.pointer != Pointer::Dragging {
            return None;
        }
        let point = self.undo.pop_back()?;
        self.bytes -= point.bytes;
        let step = point.step();
        turn(document, point, None);
        self.redo = std::mem::take(&mut self.redo_before);
        self.end_gesture(Pointer::Down);
        Some(step)
    }

    /// The layer that is worked on now; points that begin from here on remember it.
    pub fn work_on(&mut self, layer: Option<u64>) {
        self.layer = layer;
    }

    /// The next edit starts a new point (a field lost the focus, a menu was used).
    pub fn seal(&mut self) {
        if let Some(point) = self.undo.back_mut() {
            point.open = false;
        }
    }

    /// The name of the next undo.
    pub fn undo_title(&self) -> Option<&Title> {
        self.undo.back().map(|p| &p.title)
    }

    /// The name of the next redo.
    pub fn redo_title(&self) -> Option<&Title> {
        self.redo.last().map(|p| &p.title)
    }

    /// Whether the next step that way brings another document back.
    pub fn replaces(&self, way: Way) -> bool {
        let next = if way == Way::Back { self.undo.back() } else { self.redo.last() };
        next.is_some_and(|point| point.inverses.iter().any(Edit::replaces_document))
    }

    /// Reverts the newest point; returns its name.
    pub fn undo(&mut self, document: &mut Document) -> Option<Step> {
        self.pointer_up();
        let point = self.undo.pop_back()?;
        self.bytes -= point.bytes;
        let step = point.step();
        self.redo.push(turn(document, point, self.layer));
        Some(step)
    }

    /// Restores the last undone point; returns its name.
    pub fn redo(&mut self, document: &mut Document) -> Option<Step> {
        self.pointer_up();
        let point = self.redo.pop()?;
        let step = point.step();
        let point = turn(document, point, self.layer);
        self.bytes += point.bytes;
        self.undo.push_back(point);
        self.trim();
        Some(step)
    }

    /// Drops the oldest points beyond the limits; the newest stays at any size.
    fn trim(&mut self) {
        while self.undo.len() > MAX_POINTS || (self.bytes > MAX_BYTES && self.undo.len() > 1) {
            self.bytes -= self.undo.pop_front().map_or(0, |p| p.bytes);
        }
    }
}

/// Applies a point's edits, newest first, and returns the point that takes it back, where `layer` is worked on.
fn turn(document: &mut Document, point: Point, layer: Option<u64>) -> Point {
    let mut inverses = Vec::with_capacity(point.inverses.len());
    for edit in point.inverses.into_iter().rev() {
        // the document only changes through this history, so an inverse applies; if it were changed behind our back,
        // the part that still applies is done and nothing panics
        if let Ok(inverse) = apply(document, edit) {
            inverses.push(inverse);
        }
    }
    let bytes = inverses.iter().map(weight).sum();
    Point { title: point.title, inverses, at: point.at, bytes, open: false, layer }
}

/// Whether applying `older` makes applying `newer` before it pointless: both set the same thing.
fn covers(older: &Edit, newer: &Edit) -> bool {
    use Edit::*;
    match (older, newer) {
        (Rename(_), Rename(_)) | (SetAbout(_), SetAbout(_)) | (SetAxes(_), SetAxes(_)) => true,
        (SetSettings(_), SetSettings(_)) => true,
        (SetName(a, _), SetName(b, _)) | (SetSource(a, _), SetSource(b, _)) => a == b,
        (SetContent(a, _), SetContent(b, _)) | (SetScoreContent(a, _), SetScoreContent(b, _)) => a == b,
        (SetArg(a, name, _), SetArg(b, other, _)) => a == b && name == other,
        // a stroke that grew: taking it away, or cutting it shorter, undoes the growth too
        (DropStroke(a), CutStroke(b, _)) => a == b,
        (CutStroke(a, keep), CutStroke(b, more)) => a == b && keep <= more,
        _ => false,
    }
}

/// Rough bytes that an edit holds.
fn weight(edit: &Edit) -> usize {
    64 + match edit {
        Edit::Replace(document) => document_weight(document),
        Edit::Rename(text) | Edit::SetAbout(text) | Edit::SetName(_, text) | Edit::SetSource(_, text) => text.len(),
        Edit::AddLayer(_, layer) => content_weight(&layer.content),
        Edit::SetContent(_, content) => content_weight(content),
        Edit::AddScore(_, score) => score_weight(&score.content),
        Edit::SetScoreContent(_, content) => score_weight(content),
        Edit::SetArg(_, name, value) => name.len() + value.as_ref().map_or(0, arg_weight),
        Edit::AddStroke(_, stroke) => stroke.rects.len() * 16,
        Edit::ExtendStroke(_, rects) => rects.len() * 16,
        Edit::Group(edits) => edits.iter().map(weight).sum(),
        _ => 256,
    }
}

fn document_weight(document: &Document) -> usize {
    let layers: usize = document.layers.iter().map(|l| 128 + content_weight(&l.content)).sum();
    let scores: usize = document.scores.iter().map(|s| 128 + score_weight(&s.content)).sum();
    512 + document.about.len() + layers + scores
}

fn content_weight(content: &MaskContent) -> usize {
    match content {
        MaskContent::Painted(painted) => painted.strokes.iter().map(|s| 32 + s.rects.len() * 16).sum(),
        MaskContent::Pattern(code) => args_weight(&code.args),
        MaskContent::Text(code) => code.source.len() + args_weight(&code.args) + tensors_weight(&code.tensors),
        MaskContent::Linked(code) => code.path.len() + args_weight(&code.args) + tensors_weight(&code.tensors),
        MaskContent::Rectangle { .. } | MaskContent::Band { .. } => 32,
    }
}

fn score_weight(content: &ScoreContent) -> usize {
    match content {
        ScoreContent::Pattern(code) => args_weight(&code.args),
        ScoreContent::Text(code) => code.source.len() + args_weight(&code.args) + tensors_weight(&code.tensors),
        ScoreContent::Linked(code) => code.path.len() + args_weight(&code.args) + tensors_weight(&code.tensors),
        ScoreContent::Curve { points } => points.len() * 16,
    }
}

type Args = std::collections::BTreeMap<String, ArgValue>;
type Tensors = std::collections::BTreeMap<String, crate::base::HostTensor>;

fn tensors_weight(tensors: &Tensors) -> usize {
    tensors.values().map(|t| t.numel() * t.dtype().size()).sum()
}

fn args_weight(args: &Args) -> usize {
    args.values().map(arg_weight).sum()
}

fn arg_weight(value: &ArgValue) -> usize {
    32 + match value {
        ArgValue::Text(text) | ArgValue::Python { python: text } => text.len(),
        ArgValue::List(items) => items.iter().map(arg_weight).sum(),
        ArgValue::Tensor { tensor } => tensor.numel() * tensor.dtype().size(),
        ArgValue::Mask { mask } => args_weight(&mask.args),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::testing::document;
    use proptest::prelude::*;

    #[test]
    fn the_newest_points_are_kept_and_undo_as_before() {
        let (mut doc, mut history) = (document(), History::new());
        let mut states = vec![doc.clone()];
        for n in 0..6 {
            history.apply(&mut doc, Edit::Rename(format!("{n}{}", "x".repeat(100))), n as f64 * 9.0).unwrap();
            states.push(doc.clone());
        }
        history.undo(&mut doc).unwrap();
        let text = serde_json::to_string(&history.kept(1 << 20)).unwrap();
        let mut again = History::restored(serde_json::from_str(&text).unwrap());
        assert_eq!(again.redo(&mut doc).map(|step| step.title), Some(Title::Rename));
        assert_eq!(doc, states[6]);
        for state in states[..6].iter().rev() {
            again.undo(&mut doc).unwrap();
            assert_eq!(doc, *state);
        }
        assert!(again.undo(&mut doc).is_none());
        // what has no room is the oldest
        let few = History::restored(history.kept(2 * history.undo[1].bytes));
        assert_eq!((few.undo.len(), few.redo.len()), (2, 0));
        assert_eq!(few.undo[1].inverses, history.undo[4].inverses);
    }

    fn stroke(n: u32) -> Stroke {
        Stroke { paint: !n.is_multiple_of(3), rects: vec![[n, n + 1, 0, 2]] }
    }

    #[test]
    fn a_drag_is_one_point() {
        let (mut doc, mut history) = (document(), History::new());
        history.apply(&mut doc, Edit::SetArg(1, "window".into(), Some(ArgValue::Int(1))), 0.0).unwrap();
        history.pointer_down();
        for n in 0..100 {
            history.apply(&mut doc, Edit::SetArg(1, "window".into(), Some(ArgValue::Int(n))), 0.1).unwrap();
        }
        history.pointer_up();
        assert_eq!(history.undo.len(), 2, "the drag does not join the edit before it");
        assert_eq!(history.undo[1].inverses.len(), 1, "and keeps one inverse");
        history.undo(&mut doc).unwrap();
        history.undo(&mut doc).unwrap();
        assert_eq!(doc, document());
        assert!(history.undo(&mut doc).is_none());
    }

    #[test]
    fn a_painted_stroke_is_one_point_and_cheap() {
        let (mut doc, mut history) = (document(), History::new());
        history.pointer_down();
        history.apply(&mut doc, Edit::AddStroke(2, stroke(1)), 0.0).unwrap();
        for n in 0..1000 {
            history.apply(&mut doc, Edit::ExtendStroke(2, vec![[n, n + 1, 0, 1]]), 0.0).unwrap();
        }
        history.pointer_up();
        assert_eq!((history.undo.len(), history.undo[0].inverses.len()), (1, 1));
        assert!(history.bytes < 1000);
        let painted = doc.clone();
        assert_eq!(history.undo(&mut doc).map(|step| step.title), Some(Title::Paint));
        assert_eq!(doc, document());
        history.redo(&mut doc).unwrap();
        assert_eq!(doc, painted);
    }

    #[test]
    fn a_cancelled_gesture_takes_back_its_own_edits_only() {
        let (mut doc, mut history) = (document(), History::new());
        history.apply(&mut doc, Edit::AddStroke(2, stroke(1)), 0.0).unwrap();
        history.apply(&mut doc, Edit::Rename("later".into()), 5.0).unwrap();
        history.undo(&mut doc).unwrap();
        let before = doc.clone();
        // pressed where nothing is: no edit came of it
        history.pointer_down();
        assert_eq!(history.cancel_gesture(&mut doc), None);
        assert_eq!(
            (&doc, history.undo_title(), history.redo_title()),
            (&before, Some(&Title::Paint), Some(&Title::Rename))
        );
        history.pointer_up();
        // a stroke of two edits, taken back whole; the older stroke and what can be redone stay
        history.pointer_down();
        history.name_gesture(Title::Erase);
        history.apply(&mut doc, Edit::AddStroke(2, stroke(4)), 6.0).unwrap();
        history.apply(&mut doc, Edit::ExtendStroke(2, vec![[5, 6, 0, 1]]), 6.0).unwrap();
        assert_eq!(history.undo_title(), Some(&Title::Erase));
        assert_eq!(history.cancel_gesture(&mut doc).map(|s| s.title), Some(Title::Erase));
        assert_eq!(
            (&doc, history.undo_title(), history.redo_title()),
            (&before, Some(&Title::Paint), Some(&Title::Rename))
        );
        // the pointer is still down: later changes are a new point
        history.apply(&mut doc, Edit::AddStroke(2, stroke(7)), 6.1).unwrap();
        history.pointer_up();
        history.undo(&mut doc).unwrap();
        assert_eq!(doc, before);
    }

    #[test]
    fn a_step_says_what_it_turned() {
        let (mut doc, mut history) = (document(), History::new());
        history.work_on(Some(1));
        history.apply(&mut doc, Edit::Remove(2), 0.0).unwrap();
        history.seal();
        history.work_on(Some(3));
        let mut other = document();
        // a document may be called anything
        other.name = "Add a layer".into();
        history.apply(&mut doc, Edit::Group(vec![Edit::Replace(Box::new(other))]), 5.0).unwrap();
        let step = history.undo(&mut doc).unwrap();
        assert!(step.replaced && step.layer == Some(3), "{step:?}");
        assert!(history.redo(&mut doc).unwrap().replaced && history.undo(&mut doc).unwrap().replaced);
        let step = history.undo(&mut doc).unwrap();
        assert!(!step.replaced && step.layers_changed && step.layer == Some(1), "{step:?}");
        history.apply(&mut doc, Edit::Rename("Open sesame".into()), 9.0).unwrap();
        let step = history.undo(&mut doc).unwrap();
        assert!(!step.replaced && !step.layers_changed, "{step:?}");
    }

    #[test]
    fn typing_joins_until_a_pause() {
        let (mut doc, mut history) = (document(), History::new());
        for (text, now) in [("a", 0.0), ("ab", 0.4), ("abc", 0.9), ("abcd", 3.0)] {
            history.apply(&mut doc, Edit::Rename(text.into()), now).unwrap();
        }
        history.undo(&mut doc);
        assert_eq!(doc.name, "abc");
        history.undo(&mut doc);
        assert_eq!(doc, document());
    }

    #[test]
    fn memory_is_bounded() {
        let (mut doc, mut history) = (document(), History::new());
        for n in 0..200 {
            history.apply(&mut doc, Edit::SetAbout("x".repeat(1 << 20)), f64::from(n) * 10.0).unwrap();
        }
        assert!(history.bytes <= MAX_BYTES && history.undo.len() > 10);
        for n in 0..3000 {
            history.apply(&mut doc, Edit::SetEnabled(1, n % 2 == 0), 0.0).unwrap();
        }
        assert_eq!(history.undo.len(), MAX_POINTS);
    }

    proptest! {
        #![proptest_config(maskloom_testing::cases::kept_beside())]

        #[test]
        fn undo_then_redo_walks_the_same_states(steps in prop::collection::vec((0u32..8, 0u32..40), 1..60)) {
            let (mut doc, mut history) = (document(), History::new());
            for (kind, n) in &steps {
                let edit = match kind {
                    0 => Edit::Rename(n.to_string()),
                    1 => Edit::SetArg(1, "window".into(), Some(ArgValue::Int(i64::from(*n)))),
                    2 => Edit::AddStroke(2, stroke(*n)),
                    3 => Edit::ExtendStroke(2, stroke(*n).rects),
                    4 => Edit::Move(1, *n as usize % 3),
                    5 => Edit::SetEnabled(3, n % 2 == 0),
                    6 => { history.pointer_down(); continue }
                    _ => { history.pointer_up(); continue }
                };
                // extending without a stroke is refused, which is fine
                let _ = history.apply(&mut doc, edit, f64::from(*n) / 10.0);
            }
            let end = doc.clone();
            while history.undo(&mut doc).is_some() {}
            prop_assert_eq!(&doc, &document());
            while history.redo(&mut doc).is_some() {}
            prop_assert_eq!(&doc, &end);
        }
    }
}
