//! Every change that a user can make to a document, as a value that applies and returns its inverse.
//!
//! Invariant: [`apply`] either changes the document and returns the edit that restores it exactly, or changes nothing
//! and returns the reason. Must not know the window or derived data.

use super::heads::Heads;
use super::model::*;
use super::title::Title;
use crate::base::Diagnostic;
use serde::{Deserialize, Serialize};

/// One change. Layer ids name mask layers and score layers alike, because they share one numbering.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Edit {
    /// Another document altogether: a preset, a paste, a file dropped on the window.
    Replace(Box<Document>),
    /// Title.
    Rename(String),
    /// Its description.
    SetAbout(String),
    /// Query and key axes. Painted layers stay as they are; [`super::resize`] makes the edits that move them along.
    SetAxes(Axes),
    /// Shapes, formats, what to race.
    SetSettings(Box<Settings>),
    /// Inserts a mask layer at a place from the bottom.
    AddLayer(usize, Box<Layer>),
    /// Inserts a score mod at a place in the order of application.
    AddScore(usize, Box<ScoreLayer>),
    /// Removes a layer or score mod.
    Remove(u64),
    /// Moves a layer or score mod to a place in its own list.
    Move(u64, usize),
    /// Name of a layer or score mod.
    SetName(u64, String),
    /// Whether it takes part.
    SetEnabled(u64, bool),
    /// How a mask layer joins.
    SetCombine(u64, Combine),
    /// For which heads a mask layer is; None: all.
    SetHeads(u64, Option<Heads>),
    /// The content of a mask layer.
    SetContent(u64, Box<MaskContent>),
    /// The content of a score mod.
    SetScoreContent(u64, Box<ScoreContent>),
    /// An argument of a pattern, text or linked layer; None goes back to the default or the axis binding.
    SetArg(u64, String, Option<ArgValue>),
    /// The text of a text layer.
    SetSource(u64, String),
    /// Begins a stroke on a painted layer.
    AddStroke(u64, Stroke),
    /// Adds rectangles to the newest stroke of a painted layer.
    ExtendStroke(u64, Vec<[u32; 4]>),
    /// Takes the newest stroke away.
    DropStroke(u64),
    /// Cuts the newest stroke to its first rectangles.
    CutStroke(u64, usize),
    /// Several, in order; all or none.
    Group(Vec<Edit>),
}

/// Carries an edit out. Returns its inverse.
pub fn apply(document: &mut Document, edit: Edit) -> Result<Edit, Diagnostic> {
    use std::mem::replace;
    Ok(match edit {
        Edit::Replace(new) => Edit::Replace(Box::new(replace(document, *new))),
        Edit::Rename(name) => Edit::Rename(replace(&mut document.name, name)),
        Edit::SetAbout(about) => Edit::SetAbout(replace(&mut document.about, about)),
        Edit::SetAxes(axes) => {
            axes.lengths()?;
            Edit::SetAxes(replace(&mut document.axes, axes))
        }
        Edit::SetSettings(new) => Edit::SetSettings(Box::new(replace(&mut document.settings, *new))),
        Edit::AddLayer(at, layer) => {
            let id = fresh(document, layer.id)?;
            document.layers.insert(at.min(document.layers.len()), *layer);
            Edit::Remove(id)
        }
        Edit::AddScore(at, layer) => {
            let id = fresh(document, layer.id)?;
            document.scores.insert(at.min(document.scores.len()), *layer);
            Edit::Remove(id)
        }
        Edit::Remove(id) => remove(document, id)?,
        Edit::Move(id, to) => move_layer(document, id, to)?,
        Edit::SetName(id, name) => Edit::SetName(id, replace(head(document, id)?.0, name)),
        Edit::SetEnabled(id, on) => Edit::SetEnabled(id, replace(head(document, id)?.1, on)),
        Edit::SetCombine(id, new) => Edit::SetCombine(id, replace(&mut mask_layer(document, id)?.combine, new)),
        Edit::SetHeads(id, new) => Edit::SetHeads(id, replace(&mut mask_layer(document, id)?.heads, new)),
        Edit::SetContent(id, new) => {
            Edit::SetContent(id, Box::new(replace(&mut mask_layer(document, id)?.content, *new)))
        }
        Edit::SetScoreContent(id, new) => {
            Edit::SetScoreContent(id, Box::new(replace(&mut score_layer(document, id)?.content, *new)))
        }
        Edit::SetArg(id, name, value) => {
            let args = document.args_mut(id).ok_or_else(|| no_such(id, "with arguments"))?;
            let old = match value {
                Some(value) => args.insert(name.clone(), value),
                None => args.remove(&name),
            };
            Edit::SetArg(id, name, old)
        }
        Edit::SetSource(id, text) => Edit::SetSource(id, replace(source_mut(document, id)?, text)),
        Edit::AddStroke(id, stroke) => {
            painted(document, id)?.strokes.push(stroke);
            Edit::DropStroke(id)
        }
        Edit::ExtendStroke(id, rects) => {
            let stroke = last_stroke(document, id)?;
            let before = stroke.rects.len();
            stroke.rects.extend(rects);
            Edit::CutStroke(id, before)
        }
        Edit::DropStroke(id) => {
            let stroke = painted(document, id)?.strokes.pop().ok_or_else(|| no_such(id, "with a stroke"))?;
            Edit::AddStroke(id, stroke)
        }
        Edit::CutStroke(id, keep) => {
            let stroke = last_stroke(document, id)?;
            Edit::ExtendStroke(id, stroke.rects.split_off(keep.min(stroke.rects.len())))
        }
        Edit::Group(edits) => group(document, edits)?,
    })
}

impl Edit {
    /// Its name in the undo list.
    pub fn title(&self) -> Title {
        match self {
            Edit::Replace(new) => Title::Open(new.name.clone()),
            Edit::Rename(_) => Title::Rename,
            Edit::SetAbout(_) => Title::About,
            Edit::SetAxes(_) => Title::Axes,
            Edit::SetSettings(_) => Title::Settings,
            Edit::AddLayer(_, layer) => Title::Add(layer.name.clone()),
            Edit::AddScore(_, layer) => Title::Add(layer.name.clone()),
            Edit::Remove(_) => Title::Remove,
            Edit::Move(..) => Title::Move,
            Edit::SetName(..) => Title::RenameLayer,
            Edit::SetEnabled(_, on) => {
                if *on {
                    Title::Enable
                } else {
                    Title::Disable
                }
            }
            Edit::SetCombine(..) => Title::Combine,
            Edit::SetHeads(..) => Title::Heads,
            Edit::SetContent(..) | Edit::SetScoreContent(..) => Title::Layer,
            Edit::SetArg(_, name, _) => Title::Change(name.clone()),
            Edit::SetSource(..) => Title::Code,
            Edit::AddStroke(_, stroke) => {
                if stroke.paint {
                    Title::Paint
                } else {
                    Title::Erase
                }
            }
            Edit::ExtendStroke(..) | Edit::CutStroke(..) | Edit::DropStroke(_) => Title::Paint,
            Edit::Group(edits) => edits.first().map_or(Title::Nothing, Edit::title),
        }
    }

    /// Whether another document takes the place of the one there is.
    pub fn replaces_document(&self) -> bool {
        match self {
            Edit::Replace(_) => true,
            Edit::Group(edits) => edits.iter().any(Edit::replaces_document),
            _ => false,
        }
    }

    /// Whether it adds or removes a layer or score mod.
    pub fn changes_layers(&self) -> bool {
        match self {
            Edit::Replace(_) | Edit::AddLayer(..) | Edit::AddScore(..) | Edit::Remove(_) => true,
            Edit::Group(edits) => edits.iter().any(Edit::changes_layers),
            _ => false,
        }
    }
}

impl Document {
    /// An id that no layer or score mod has.
    pub fn free_id(&self) -> u64 {
        let ids = self.layers.iter().map(|l| l.id).chain(self.scores.iter().map(|s| s.id));
        ids.max().map_or(1, |id| id.saturating_add(1))
    }

    /// The mask layer with this id.
    pub fn layer(&self, id: u64) -> Option<&Layer> {
        self.layers.iter().find(|l| l.id == id)
    }

    /// The score mod with this id.
    pub fn score(&self, id: u64) -> Option<&ScoreLayer> {
        self.scores.iter().find(|s| s.id == id)
    }

    fn args_mut(&mut self, id: u64) -> Option<&mut std::collections::BTreeMap<String, ArgValue>> {
        let masks = self.layers.iter_mut().filter_map(|l| match &mut l.content {
            MaskContent::Pattern(code) => Some((l.id, &mut code.args)),
            MaskContent::Text(code) => Some((l.id, &mut code.args)),
            MaskContent::Linked(code) => Some((l.id, &mut code.args)),
            _ => None,
        });
        let scores = self.scores.iter_mut().filter_map(|s| match &mut s.content {
            ScoreContent::Pattern(code) => Some((s.id, &mut code.args)),
            ScoreContent::Text(code) => Some((s.id, &mut code.args)),
            ScoreContent::Linked(code) => Some((s.id, &mut code.args)),
            ScoreContent::Curve { .. } => None,
        });
        masks.chain(scores).find(|a| a.0 == id).map(|a| a.1)
    }
}

fn no_such(id: u64, what: &str) -> Diagnostic {
    Diagnostic::error("no-such-layer", format!("the document has no layer {id} {what}"))
        .hint("the document has changed: select the layer again")
}

fn fresh(document: &Document, id: u64) -> Result<u64, Diagnostic> {
    if document.layer(id).is_some() || document.score(id).is_some() {
        let message = format!("the document already has a layer with id {id}");
        return Err(Diagnostic::error("layer-id-taken", message).hint("take an id from Document::free_id"));
    }
    Ok(id)
}

fn mask_layer(document: &mut Document, id: u64) -> Result<&mut Layer, Diagnostic> {
    document.layers.iter_mut().find(|l| l.id == id).ok_or_else(|| no_such(id, "among its mask layers"))
}

fn score_layer(document: &mut Document, id: u64) -> Result<&mut ScoreLayer, Diagnostic> {
    document.scores.iter_mut().find(|l| l.id == id).ok_or_else(|| no_such(id, "among its score mods"))
}

/// Name and enabled flag of either kind of layer.
fn head(document: &mut Document, id: u64) -> Result<(&mut String, &mut bool), Diagnostic> {
    let layers = document.layers.iter_mut().map(|l| (l.id, &mut l.name, &mut l.enabled));
    let scores = document.scores.iter_mut().map(|s| (s.id, &mut s.name, &mut s.enabled));
    layers.chain(scores).find(|l| l.0 == id).map(|l| (l.1, l.2)).ok_or_else(|| no_such(id, "at all"))
}

fn source_mut(document: &mut Document, id: u64) -> Result<&mut String, Diagnostic> {
    let masks = document.layers.iter_mut().filter_map(|l| match &mut l.content {
        MaskContent::Text(code) => Some((l.id, &mut code.source)),
        _ => None,
    });
    let scores = document.scores.iter_mut().filter_map(|s| match &mut s.content {
        ScoreContent::Text(code) => Some((s.id, &mut code.source)),
        _ => None,
    });
    masks.chain(scores).find(|t| t.0 == id).map(|t| t.1).ok_or_else(|| no_such(id, "with text in the document"))
}

fn painted(document: &mut Document, id: u64) -> Result<&mut Painted, Diagnostic> {
    match &mut mask_layer(document, id)?.content {
        MaskContent::Painted(painted) => Ok(painted),
        _ => Err(no_such(id, "that is painted")),
    }
}

fn last_stroke(document: &mut Document, id: u64) -> Result<&mut Stroke, Diagnostic> {
    painted(document, id)?.strokes.last_mut().ok_or_else(|| no_such(id, "with a stroke"))
}

fn remove(document: &mut Document, id: u64) -> Result<Edit, Diagnostic> {
    if let Some(at) = document.layers.iter().position(|l| l.id == id) {
        return Ok(Edit::AddLayer(at, Box::new(document.layers.remove(at))));
    }
    let at = document.scores.iter().position(|s| s.id == id).ok_or_else(|| no_such(id, "at all"))?;
    Ok(Edit::AddScore(at, Box::new(document.scores.remove(at))))
}

fn move_layer(document: &mut Document, id: u64, to: usize) -> Result<Edit, Diagnostic> {
    if let Some(at) = document.layers.iter().position(|l| l.id == id) {
        let layer = document.layers.remove(at);
        document.layers.insert(to.min(document.layers.len()), layer);
        return Ok(Edit::Move(id, at));
    }
    let at = document.scores.iter().position(|s| s.id == id).ok_or_else(|| no_such(id, "at all"))?;
    let score = document.scores.remove(at);
    document.scores.insert(to.min(document.scores.len()), score);
    Ok(Edit::Move(id, at))
}

/// All or none: earlier edits are undone if a later edit fails.
fn group(document: &mut Document, edits: Vec<Edit>) -> Result<Edit, Diagnostic> {
    let mut inverses = Vec::with_capacity(edits.len());
    for edit in edits {
        match apply(document, edit) {
            Ok(inverse) => inverses.push(inverse),
            Err(why) => {
                for inverse in inverses.into_iter().rev() {
                    apply(document, inverse).expect("the inverse of an edit just made applies");
                }
                return Err(why);
            }
        }
    }
    inverses.reverse();
    Ok(Edit::Group(inverses))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::testing::{document, layer};

    fn edits() -> Vec<Edit> {
        let stroke = Stroke { paint: true, rects: vec![[0, 1, 0, 1]] };
        vec![
            Edit::Rename("new".into()),
            Edit::SetAbout("about".into()),
            Edit::SetAxes(Axes::same(Axis::tokens(7))),
            Edit::AddLayer(0, Box::new(layer(9, MaskContent::Band { lo: None, hi: Some(3) }))),
            Edit::Remove(1),
            Edit::Remove(3),
            Edit::Move(1, 1),
            Edit::SetName(3, "score".into()),
            Edit::SetEnabled(1, false),
            Edit::SetCombine(2, Combine::AndNot),
            Edit::SetContent(1, Box::new(MaskContent::Rectangle { q: [0, 1], kv: [0, 2] })),
            Edit::SetScoreContent(3, Box::new(ScoreContent::Curve { points: vec![(0.0, 1.0)] })),
            Edit::SetArg(1, "window".into(), Some(ArgValue::Int(5))),
            Edit::SetArg(3, "cap".into(), None),
            Edit::AddStroke(2, stroke),
            Edit::ExtendStroke(2, vec![[1, 2, 3, 4], [2, 3, 4, 5]]),
            Edit::DropStroke(2),
            Edit::CutStroke(2, 0),
            Edit::Replace(Box::new(document())),
            Edit::Group(vec![Edit::Rename("g".into()), Edit::Remove(1), Edit::Remove(2)]),
        ]
    }

    #[test]
    fn every_edit_gives_back_its_inverse() {
        for edit in edits() {
            let mut changed = document();
            let name = format!("{edit:?}");
            let inverse = apply(&mut changed, edit.clone()).expect(&name);
            let redone = apply(&mut changed, inverse).expect(&name);
            assert_eq!(changed, document(), "{name}");
            apply(&mut changed, redone).expect(&name);
            let mut once = document();
            apply(&mut once, edit).unwrap();
            assert_eq!(changed, once, "{name}");
        }
    }

    #[test]
    fn what_cannot_be_done_changes_nothing() {
        for edit in [
            Edit::Remove(77),
            Edit::SetAxes(Axes::same(Axis { segments: vec![] })),
            Edit::AddLayer(0, Box::new(layer(3, MaskContent::Band { lo: None, hi: None }))),
            Edit::SetArg(2, "x".into(), None),
            Edit::AddStroke(1, Stroke { paint: true, rects: vec![] }),
            Edit::SetSource(1, "x".into()),
            Edit::Group(vec![Edit::Rename("other".into()), Edit::Remove(1), Edit::Remove(1)]),
        ] {
            let mut same = document();
            assert!(apply(&mut same, edit.clone()).is_err(), "{edit:?}");
            assert_eq!(same, document(), "{edit:?}");
        }
    }
}
