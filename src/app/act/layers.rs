//! Adding, copying, moving and removing layers and score mods.
//!
//! Invariant: an added layer is selected; a new mask layer combines so that it is visible: drawn layers add cells,
//! patterns restrict cells. Must not know panels.

use super::documents;
use crate::app::canvas::Tool;
use crate::app::opening;
use crate::app::state::{NEVER, State, empty_document};
use crate::base::{BlockSize, Diagnostic};
use crate::document::edit::Edit;
use crate::document::library;
use crate::document::model::*;
use crate::document::pasted::{self, Pasted, PastedMod, Sizes};
use crate::document::reorder;
use crate::ir::graph::ModKind;
use crate::python::surroundings;
use std::collections::BTreeMap;

const NEW_MASK: &str = "def mask_mod(b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx\n";
const NEW_SCORE: &str = "def score_mod(score, b, h, q_idx, kv_idx):\n    return score - 0.01 * (q_idx - kv_idx)\n";

/// Layers that can be added without further questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum New {
    Rectangle,
    Band,
    Painted,
    Text,
    Curve,
    ScoreText,
}

/// Actions on the selected layer or score mod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Delete,
    Duplicate,
    Mirror,
    Toggle,
    Up,
    Down,
}

/// Adds a layer or score mod with its default content.
pub(super) fn add(state: &mut State, new: New) {
    let (q, kv) = (state.document.axes.q.len(), state.document.axes.kv().len());
    match new {
        New::Rectangle => {
            let half = |n: usize| [n / 4, (n / 2).max(n / 4 + 1)];
            add_mask(state, "Rectangle", MaskContent::Rectangle { q: half(q), kv: half(kv) });
        }
        New::Band => {
            let reach = (kv / 16).max(1) as i64;
            add_mask(state, "Band", MaskContent::Band { lo: Some(-reach), hi: Some(reach) });
        }
        New::Painted => {
            let combine = if is_lowest(state) { Combine::And } else { Combine::Or };
            add_painted(state, "Painted", combine, state.document.settings.block_size);
            take_tool(state, Tool::Brush);
        }
        New::Text => {
            let code = TextCode { source: NEW_MASK.into(), ..TextCode::default() };
            add_mask(state, "Code", MaskContent::Text(code));
        }
        New::ScoreText => {
            let code = TextCode { source: NEW_SCORE.into(), ..TextCode::default() };
            add_score(state, "Code", ScoreContent::Text(code));
        }
        New::Curve => {
            let reach = (kv as f64 / 4.0).max(1.0);
            add_score(state, "Distance curve", ScoreContent::Curve { points: vec![(0.0, 0.0), (reach, -2.0)] });
        }
    }
}

/// After a tool is chosen, the user goes on at the canvas.
pub(super) fn take_tool(state: &mut State, tool: Tool) {
    state.focus.tool = tool;
    state.session.canvas.take_focus();
}

/// Changes the selected layer.
pub(super) fn selected(state: &mut State, change: Change) {
    let Some(id) = state.focus.layer else { return };
    state.session.canvas.take_focus();
    let places = |list: Vec<u64>| list.iter().position(|l| *l == id).map(|at| (at, list.len()));
    let mask = places(state.document.layers.iter().map(|l| l.id).collect());
    let score = places(state.document.scores.iter().map(|s| s.id).collect());
    // mask layers are listed top first, score mods in the order of application
    let Some((at, len)) = mask.or(score) else { return };
    let (up, down) = if mask.is_some() { (at + 1, at.checked_sub(1)) } else { (at.wrapping_sub(1), Some(at + 1)) };
    match change {
        Change::Delete => {
            let removed = state.edit(Edit::Remove(id));
            state.focus.layer =
                if removed { neighbour(&state.document, mask.is_some(), at) } else { state.focus.layer };
        }
        Change::Mirror => mirror(state, id),
        Change::Duplicate => duplicate(state, id, at),
        Change::Toggle => {
            let on = state.document.layer(id).map(|l| l.enabled);
            let on = on.or(state.document.score(id).map(|s| s.enabled)).unwrap_or(true);
            state.edit(Edit::SetEnabled(id, !on));
        }
        Change::Up => move_to(state, id, Some(up).filter(|to| *to < len)),
        Change::Down => move_to(state, id, down.filter(|to| *to < len)),
    }
}

/// Moves a layer to a place in its list, if there is one.
pub(super) fn move_to(state: &mut State, id: u64, place: Option<usize>) {
    let Some(to) = place else { return };
    let moved = reorder::moved(&state.document, id, to);
    if state.edit(moved.edit) && moved.changes {
        state.done(state.words().text("done-order"));
    }
}

/// Rows become columns and columns rows, as far as the axes reach.
fn mirror(state: &mut State, id: u64) {
    let lengths = [state.document.axes.q.len(), state.document.axes.kv().len()];
    let mirrored = state.document.layer(id).and_then(|layer| layer.content.mirrored(lengths));
    match mirrored {
        Some(content) => {
            state.edit(Edit::SetContent(id, Box::new(content)));
        }
        None => {
            let why = Diagnostic::note(
                "mirror",
                "only rectangles, bands and painted layers can be mirrored, and only if they then fit",
            );
            state.tell(why.hint("patterns and code have their own parameters"));
        }
    }
}

fn neighbour(document: &Document, mask: bool, at: usize) -> Option<u64> {
    let ids: Vec<u64> = match mask {
        true => document.layers.iter().map(|l| l.id).collect(),
        false => document.scores.iter().map(|s| s.id).collect(),
    };
    ids.get(at).or(ids.last()).copied()
}

fn duplicate(state: &mut State, id: u64, at: usize) {
    let new = state.document.free_id();
    let name = |name: &str| format!("{name} copy");
    let edit = if let Some(layer) = state.document.layer(id) {
        Edit::AddLayer(at + 1, Box::new(Layer { id: new, name: name(&layer.name), ..layer.clone() }))
    } else if let Some(score) = state.document.score(id) {
        Edit::AddScore(at + 1, Box::new(ScoreLayer { id: new, name: name(&score.name), ..score.clone() }))
    } else {
        return;
    };
    if state.edit(edit) {
        state.focus.layer = Some(new);
    }
}

/// Whether no layer is there yet for the heads that new ones are for.
fn is_lowest(state: &State) -> bool {
    !state.document.layers.iter().any(|layer| layer.meets(state.focus.picked.as_ref()))
}

/// Adds a mask layer on top and selects it.
pub(super) fn add_mask(state: &mut State, name: &str, content: MaskContent) -> Option<u64> {
    let bottom = is_lowest(state);
    let restricts = matches!(content, MaskContent::Pattern(_) | MaskContent::Text(_) | MaskContent::Linked(_));
    add_mask_as(state, name, if bottom || restricts { Combine::And } else { Combine::Or }, content)
}

/// The same, with how it joins.
fn add_mask_as(state: &mut State, name: &str, combine: Combine, content: MaskContent) -> Option<u64> {
    let id = state.document.free_id();
    let name = unused_name(&state.document, name);
    let layer = Layer { id, name, enabled: true, combine, heads: state.focus.picked.clone(), content };
    let at = state.document.layers.len();
    state.edit(Edit::AddLayer(at, Box::new(layer))).then(|| {
        state.focus.layer = Some(id);
        id
    })
}

/// Adds a score mod at the end and selects it.
pub(super) fn add_score(state: &mut State, name: &str, content: ScoreContent) -> Option<u64> {
    let id = state.document.free_id();
    let name = unused_name(&state.document, name);
    let at = state.document.scores.len();
    let score = ScoreLayer { id, name, enabled: true, content };
    state.edit(Edit::AddScore(at, Box::new(score))).then(|| {
        state.focus.layer = Some(id);
        id
    })
}

/// An empty painted layer on top.
pub(super) fn add_painted(state: &mut State, name: &str, combine: Combine, cell: BlockSize) -> Option<u64> {
    let lengths = match state.document.axes.lengths() {
        Ok(lengths) => [lengths.q_len, lengths.kv_len],
        Err(why) => {
            state.tell(why);
            return None;
        }
    };
    let content = MaskContent::Painted(Painted { cell, lengths, strokes: Vec::new() });
    add_mask_as(state, name, combine, content)
}

fn unused_name(document: &Document, name: &str) -> String {
    let taken =
        |name: &str| document.layers.iter().any(|l| l.name == name) || document.scores.iter().any(|s| s.name == name);
    if !taken(name) {
        return name.to_string();
    }
    (2..).map(|n| format!("{name} {n}")).find(|name| !taken(name)).unwrap_or_default()
}

/// A pattern of the library.
pub(super) fn add_pattern(state: &mut State, name: &str) {
    let Some(pattern) = library::pattern(name) else { return };
    let code = CodeRef { name: name.to_string(), ..CodeRef::default() };
    state.history.seal();
    match pattern.kind {
        ModKind::Mask => add_mask(state, &pattern.title(), MaskContent::Pattern(code)),
        ModKind::Score => add_score(state, &pattern.title(), ScoreContent::Pattern(code)),
    };
    state.history.seal();
}

/// Pasted code: a layer for its mask mod, a score mod for its score mod.
pub(super) fn add_code(state: &mut State, text: &str, replace: bool) {
    let text = &*surroundings::bare(text);
    match opening::recognise(text) {
        Ok(opening::Opened::Document(document, _)) => {
            super::open_document(state, *document);
            state.dialog = None;
            return;
        }
        Ok(opening::Opened::Code(_)) => {}
        Ok(_) => {
            let why = Diagnostic::error("paste", "this is a file to open, not code to paste");
            return state.tell(why.hint("save it and use Open"));
        }
        Err(why) => return why.into_iter().for_each(|d| state.tell(d)),
    }
    let found = pasted::read(text);
    let mods = match &found.mods[..] {
        // a text without any entry also becomes a layer: its errors are shown with it
        [] => vec![PastedMod { entry: String::new(), score: text.contains("score"), args: BTreeMap::new() }],
        mods => mods.to_vec(),
    };
    let broken = pasted::is_broken(text);
    if replace && !super::is_untouched(state) {
        documents::new(state);
    }
    state.history.seal();
    state.history.pointer_down(); // one undo point
    if replace {
        begin_with_code(state, &mods[0].entry, &found);
    }
    for PastedMod { entry, score, args } in mods {
        let name = if entry.is_empty() { "Code".to_string() } else { entry.clone() };
        // a text that cannot be read yet is looked at again once it can
        let entry = if broken { String::new() } else { entry };
        let code = TextCode { source: text.to_string(), entry, args, ..TextCode::default() };
        match score {
            false => add_mask(state, &name, MaskContent::Text(code)),
            true => add_score(state, &name, ScoreContent::Text(code)),
        };
    }
    state.history.pointer_up();
    state.dialog = None;
    if replace {
        state.saved = NEVER;
        tell_sizes(state, &found);
    } else if let Some(Sizes { line, q_len: Some(q), kv_len: Some(kv), .. }) = found.sizes
        && [q, kv] != [state.document.axes.q.len(), state.document.axes.kv().len()]
    {
        let message =
            format!("line {line} of the code creates its mask for {q} x {kv} tokens; the document keeps its axes");
        state
            .tell(Diagnostic::note("pasted-sizes", message).hint("to use these lengths, change the axes on the right"));
    }
}

/// An edit of a text; where it makes a pasted text readable, the text's mod and its arguments are found now.
pub(super) fn mended(document: &Document, edit: Edit) -> Edit {
    let Edit::SetSource(id, text) = &edit else { return edit };
    let mask = document.layer(*id).map(|layer| &layer.content);
    let score = document.score(*id).map(|score| &score.content);
    let (code, is_score) = match (mask, score) {
        (Some(MaskContent::Text(code)), _) => (code, false),
        (_, Some(ScoreContent::Text(code))) => (code, true),
        _ => return edit,
    };
    let unread = code.entry.is_empty() && code.args.is_empty();
    if !unread || !pasted::is_broken(&code.source) || pasted::is_broken(text) {
        return edit;
    }
    let found = pasted::read(text).mods.into_iter().find(|found| found.score == is_score);
    let Some(PastedMod { entry, args, .. }) = found else { return edit };
    let code = TextCode { source: text.clone(), entry, args, ..code.clone() };
    match is_score {
        false => Edit::SetContent(*id, Box::new(MaskContent::Text(code))),
        true => Edit::SetScoreContent(*id, Box::new(ScoreContent::Text(code))),
    }
}

/// A document for code: its name, plain tokens, the sizes that the code states, else those of the tensors that it reads,
/// else a new document's. Nothing is taken from the document before.
fn begin_with_code(state: &mut State, name: &str, found: &Pasted) {
    let sizes = found.sizes.unwrap_or_default();
    let own = found.tables.made_for(&sizes);
    let new = empty_document("tokens 4096");
    let (q, kv) = own.lengths().unwrap_or((new.axes.q.len(), new.axes.q.len()));
    let axes = Axes { q: Axis::tokens(q), kv: (kv != q).then(|| Axis::tokens(kv)) };
    let mut settings = new.settings;
    settings.batch = own.batch.unwrap_or(settings.batch);
    if let Some(heads) = own.heads {
        (settings.heads, settings.kv_heads) = (heads, heads);
    }
    settings.block_size = sizes.block_size.unwrap_or(settings.block_size);
    let words: Vec<&str> = name.split('_').filter(|w| !w.is_empty()).collect();
    let mut title = words.join(" ");
    if let Some(first) = title.get(..1) {
        title = format!("{}{}", first.to_uppercase(), &title[1..]);
    }
    let title = if title.is_empty() { "Pasted code".to_string() } else { title };
    super::replace_document(state, Document::new(title, axes, settings));
}

/// The source of a new document's sizes; sizes that the text does not state are requested.
fn tell_sizes(state: &mut State, found: &Pasted) {
    let table = found.tables.q_len.as_ref().or(found.tables.kv_len.as_ref());
    let Some(sizes) = found.sizes else {
        if let Some((len, name)) = table {
            state.done(state.words().with("done-length", &[("n", len.into()), ("name", name.into())]));
        }
        return;
    };
    let [q, kv] = [state.document.axes.q.len(), state.document.axes.kv().len()];
    match (sizes.q_len, sizes.kv_len) {
        (Some(_), Some(_)) => state.done(
            state.words().with("done-lengths", &[("q", q.into()), ("kv", kv.into()), ("line", sizes.line.into())]),
        ),
        _ => {
            let message = format!(
                "the sizes in line {} of the code are not plain numbers: the document has {q} x {kv} tokens",
                sizes.line
            );
            state.tell(Diagnostic::warning("pasted-sizes", message).hint("set the axes on the right to yours"));
        }
    }
}

/// A file with code was opened: its mods become layers that follow it, in a document of their own.
pub(super) fn open_code(state: &mut State, path: &str, text: &str) {
    let found = pasted::read(text);
    let scores = found.mods.iter().any(|m| m.score);
    let masks = found.mods.iter().any(|m| !m.score) || found.mods.is_empty();
    let here = super::is_untouched(state);
    if !here {
        documents::new(state);
    }
    state.history.seal();
    state.history.pointer_down(); // one undo point
    let stem = std::path::Path::new(path).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    begin_with_code(state, &stem, &found);
    for (_, score) in [(masks, false), (scores, true)].into_iter().filter(|(wanted, _)| *wanted) {
        let of = found.mods.iter().find(|m| m.score == score);
        let code = LinkedCode {
            path: path.to_string(),
            entry: of.map_or(String::new(), |m| m.entry.clone()),
            args: of.map_or(BTreeMap::new(), |m| m.args.clone()),
            ..LinkedCode::default()
        };
        link(state, code, score);
    }
    state.history.pointer_up();
    let before = state.words().text(if here { "done-undo-restores" } else { "done-keeps-tab" });
    state.done(state.words().with("done-opened", &[("path", path.into()), ("before", before.into())]));
    tell_sizes(state, &found);
}

/// A layer that follows a file.
pub(super) fn link_code(state: &mut State, path: String, score: bool) {
    state.history.seal();
    link(state, LinkedCode { path, ..LinkedCode::default() }, score);
    state.history.seal();
    state.dialog = None;
}

fn link(state: &mut State, code: LinkedCode, score: bool) {
    let stem = std::path::Path::new(&code.path).file_stem();
    let name = stem.map_or("Linked".into(), |s| s.to_string_lossy().into_owned());
    match score {
        false => add_mask(state, &name, MaskContent::Linked(code)),
        true => add_score(state, &name, ScoreContent::Linked(code)),
    };
}
