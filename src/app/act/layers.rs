//! Adding, copying, moving and removing layers and score mods.
//!
//! Invariant: what was added is selected; a new mask layer joins so that it shows: it adds to what is kept where it draws
//! something, it restricts where it is a pattern. Must not know panels.

use crate::app::canvas::Tool;
use crate::app::command::Command;
use crate::app::dialogs::Dialog;
use crate::app::opening;
use crate::app::state::State;
use crate::base::Diagnostic;
use crate::document::edit::Edit;
use crate::document::library;
use crate::document::model::*;
use crate::language::graph::ModKind;

const NEW_MASK: &str = "def mask_mod(b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx\n";
const NEW_SCORE: &str = "def score_mod(score, b, h, q_idx, kv_idx):\n    return score - 0.01 * (q_idx - kv_idx)\n";

/// Commands that concern layers and tools.
pub(super) fn command(state: &mut State, command: Command) {
    use Command::*;
    match command {
        ToolPan => state.focus.tool = Tool::Pan,
        ToolBrush => state.focus.tool = Tool::Brush,
        ToolEraser => state.focus.tool = Tool::Eraser,
        ToolRectangle => state.focus.tool = Tool::Rectangle,
        ToolBand => state.focus.tool = Tool::Band,
        AddRectangle => {
            let half = |n: usize| [n / 4, (n / 2).max(n / 4 + 1)];
            let (q, kv) = (state.document.axes.q.len(), state.document.axes.kv().len());
            add_mask(state, "Rectangle", MaskContent::Rectangle { q: half(q), kv: half(kv) });
        }
        AddBand => {
            let reach = (state.document.axes.kv().len() / 16).max(1) as i64;
            add_mask(state, "Band", MaskContent::Band { lo: Some(-reach), hi: Some(reach) });
        }
        AddPainted => {
            add_painted(state);
            state.focus.tool = Tool::Brush;
        }
        AddText => {
            let code = TextCode { source: NEW_MASK.into(), ..TextCode::default() };
            add_mask(state, "Code", MaskContent::Text(code));
        }
        AddScoreText => {
            let code = TextCode { source: NEW_SCORE.into(), ..TextCode::default() };
            add_score(state, "Code", ScoreContent::Text(code));
        }
        AddCurve => {
            let reach = (state.document.axes.kv().len() as f64 / 4.0).max(1.0);
            add_score(state, "Distance curve", ScoreContent::Curve { points: vec![(0.0, 0.0), (reach, -2.0)] });
        }
        AddLinked => state.dialog = Some(Dialog::link(false)),
        AddScoreLinked => state.dialog = Some(Dialog::link(true)),
        _ => selected(state, command),
    }
}

/// Commands on the selected layer.
fn selected(state: &mut State, command: Command) {
    let Some(id) = state.focus.layer else { return };
    let places = |list: Vec<u64>| list.iter().position(|l| *l == id).map(|at| (at, list.len()));
    let mask = places(state.document.layers.iter().map(|l| l.id).collect());
    let score = places(state.document.scores.iter().map(|s| s.id).collect());
    // mask layers are listed top first, score mods in the order of application
    let Some((at, len)) = mask.or(score) else { return };
    let (up, down) = if mask.is_some() { (at + 1, at.checked_sub(1)) } else { (at.wrapping_sub(1), Some(at + 1)) };
    match command {
        Command::DeleteLayer => {
            let removed = state.edit(Edit::Remove(id));
            state.focus.layer =
                if removed { neighbour(&state.document, mask.is_some(), at) } else { state.focus.layer };
        }
        Command::DuplicateLayer => duplicate(state, id, at),
        Command::ToggleLayer => {
            let on = state.document.layer(id).map(|l| l.enabled);
            let on = on.or(state.document.score(id).map(|s| s.enabled)).unwrap_or(true);
            state.edit(Edit::SetEnabled(id, !on));
        }
        Command::LayerUp if up < len => {
            state.edit(Edit::Move(id, up));
        }
        Command::LayerDown => {
            if let Some(to) = down.filter(|to| *to < len) {
                state.edit(Edit::Move(id, to));
            }
        }
        _ => {}
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

/// Adds a mask layer on top and selects it.
pub(super) fn add_mask(state: &mut State, name: &str, content: MaskContent) -> Option<u64> {
    let id = state.document.free_id();
    let bottom = state.document.layers.is_empty();
    let restricts = matches!(content, MaskContent::Pattern(_) | MaskContent::Text(_) | MaskContent::Linked(_));
    let combine = if bottom || restricts { Combine::And } else { Combine::Or };
    let name = unused_name(&state.document, name);
    let layer = Layer { id, name, enabled: true, combine, content };
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

/// An empty painted layer with cells of BLOCK_SIZE.
pub(super) fn add_painted(state: &mut State) -> Option<u64> {
    let lengths = match state.document.axes.lengths() {
        Ok(lengths) => [lengths.q_len, lengths.kv_len],
        Err(why) => {
            state.tell(why);
            return None;
        }
    };
    let cell = state.document.settings.block_size;
    add_mask(state, "Painted", MaskContent::Painted(Painted { cell, lengths, strokes: Vec::new() }))
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
    match opening::recognise(text) {
        Ok(opening::Opened::Document(document)) => {
            super::replace_document(state, *document);
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
    let mods = opening::mods_of(text);
    // a text without any entry becomes a layer too: its errors are shown beside it
    let mods = if mods.is_empty() { vec![(String::new(), text.contains("score"))] } else { mods };
    state.history.seal();
    state.history.pointer_down(); // one undo point
    let old = ids(&state.document);
    for (entry, score) in mods {
        let name = if entry.is_empty() { "Code".to_string() } else { entry.clone() };
        let code = TextCode { source: text.to_string(), entry, ..TextCode::default() };
        match score {
            false => add_mask(state, &name, MaskContent::Text(code)),
            true => add_score(state, &name, ScoreContent::Text(code)),
        };
    }
    if replace {
        remove(state, old);
    }
    state.history.pointer_up();
    state.dialog = None;
}

/// A layer that follows a file.
pub(super) fn link_code(state: &mut State, path: String, score: bool) {
    state.history.seal();
    let name = std::path::Path::new(&path).file_stem().map_or("Linked".into(), |s| s.to_string_lossy().into_owned());
    let code = LinkedCode { path, ..LinkedCode::default() };
    match score {
        false => add_mask(state, &name, MaskContent::Linked(code)),
        true => add_score(state, &name, ScoreContent::Linked(code)),
    };
    state.history.seal();
    state.dialog = None;
}

/// All layers and score mods.
pub(super) fn ids(document: &Document) -> Vec<u64> {
    let masks = document.layers.iter().map(|l| l.id);
    masks.chain(document.scores.iter().map(|s| s.id)).collect()
}

/// Removes layers and score mods.
pub(super) fn remove(state: &mut State, ids: Vec<u64>) {
    if !ids.is_empty() {
        state.edit(Edit::Group(ids.into_iter().map(Edit::Remove).collect()));
    }
}
