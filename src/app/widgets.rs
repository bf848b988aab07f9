//! Small widgets that several views share.
//!
//! Invariant: every input has an accessible name; an invalid text stays in its field with its error below, and the
//! document keeps its last valid value; what is typed for one document reaches no other. Must not know the state.

use super::action::Actions;
use super::command::Command;
use super::fields::{self, drag_of};
use super::hints::words;
use super::language::{say, words as spoken};
use super::theme;
pub(super) use crate::base::words::{grouped, percent, time as milliseconds};
use crate::base::{Diagnostic, diagnostic::Severity};
use crate::words::Words;
use egui::{Id, Response, RichText, TextEdit, Ui};

fn typing() -> Id {
    id("document that is typed for")
}

/// To be called before a frame is drawn: from now on what is typed is for this document.
pub(super) fn type_for(ctx: &egui::Context, document: [u64; 2]) {
    ctx.data_mut(|d| {
        d.insert_temp(typing(), document);
        d.remove::<NotTaken>(wrong());
    });
    fields::begin(ctx);
}

/// An id of what is typed, for the document in work and no other.
pub(super) fn typed_id(ui: &Ui, what: (&str, &str)) -> Id {
    ui.make_persistent_id((what, document(ui.ctx())))
}

/// The document that is typed for.
pub(super) fn document(ctx: &egui::Context) -> [u64; 2] {
    ctx.data(|d| d.get_temp(typing())).unwrap_or_default()
}

/// A text being typed.
#[derive(Clone, Debug, Default)]
struct Draft {
    /// The value that it started from.
    from: String,
    text: String,
}

/// A field over a value that has a text form. Gives the text whenever it was changed; while it does not parse, the field
/// keeps it. The value shown follows the document as soon as the document changes otherwise.
pub(super) fn text_field(ui: &mut Ui, name: &str, value: &str, width: f32) -> (Response, Option<String>) {
    let id = typed_id(ui, ("draft", name));
    let mut draft = ui
        .data(|d| d.get_temp::<Draft>(id))
        .filter(|d| d.from == value)
        .unwrap_or_else(|| Draft { from: value.to_string(), text: value.to_string() });
    let field = TextEdit::singleline(&mut draft.text).id(id.with("field")).desired_width(width);
    let response = ui.add(field).accessible_name(name);
    let changed = response.changed().then(|| draft.text.clone());
    // Escape gives the document's value back
    if response.lost_focus() && ui.input(|i| i.key_pressed(egui::Key::Escape)) {
        draft.text = value.to_string();
    }
    ui.data_mut(|d| d.insert_temp(id, draft));
    (response, changed)
}

/// Marks this text as the field's text for the document's value, so that typing continues undisturbed.
pub(super) fn text_field_took(ui: &Ui, name: &str, value: &str) {
    let id = typed_id(ui, ("draft", name));
    ui.data_mut(|d| {
        if let Some(mut draft) = d.get_temp::<Draft>(id) {
            draft.from = value.to_string();
            d.insert_temp(id, draft);
        }
    });
}

/// When a field's text becomes the document's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Commit {
    /// At every key.
    Live,
    /// At Enter, or when the field is left: half a number is a number too.
    AtEnd,
}

/// A text that was typed, left, and not taken.
#[derive(Clone, Debug)]
pub(super) struct NotTaken {
    /// The field's name.
    pub name: String,
    pub text: String,
    pub why: Diagnostic,
}

fn wrong() -> Id {
    id("typed and not taken")
}

/// What was left in the last frame and was not taken.
pub(super) fn not_taken(ctx: &egui::Context) -> Option<NotTaken> {
    ctx.data(|d| d.get_temp(wrong()))
}

/// A field over a parsed value with the error below it. `parse` gives the value and its own text.
pub(super) fn parsed_field<T>(
    ui: &mut Ui,
    name: &str,
    value: &str,
    width: f32,
    commit: Commit,
    parse: impl Fn(&str) -> Result<(T, String), Diagnostic>,
) -> Option<T> {
    let (response, changed) = text_field(ui, name, value, width);
    let id = typed_id(ui, ("draft", name));
    let shown = ui.data(|d| d.get_temp::<Draft>(id)).map(|d| d.text).unwrap_or_default();
    let parsed = parse(&shown);
    if let Err(why) = &parsed {
        diagnostic_below(ui, why);
        if response.lost_focus() && shown != value {
            let left = NotTaken { name: name.into(), text: shown.clone(), why: why.clone() };
            ui.data_mut(|d| d.insert_temp(wrong(), left));
        }
    }
    let wanted = match commit {
        Commit::Live => changed.is_some(),
        Commit::AtEnd => response.lost_focus() && shown != value,
    };
    let (parsed, text) = parsed.ok().filter(|_| wanted)?;
    text_field_took(ui, name, &text);
    Some(parsed)
}

/// The way out of a diagnostic in a language, as a window has it. None in English.
pub(super) fn way_out(said: &Words, why: &Diagnostic) -> Option<String> {
    let hint = why.hint.as_deref().map(words);
    said.way_out(&why.code, hint.as_deref())
}

/// All of a diagnostic, line by line: what it is about and the way out in a language, then the English message and way out.
pub(super) fn lines(said: &Words, why: &Diagnostic) -> Vec<String> {
    let hint = why.hint.as_deref().map(words);
    let (way_out, english) = said.ways_out(&why.code, hint.as_deref());
    let sentence = said.refusal(&why.code).map(String::from);
    [sentence, way_out, Some(why.message.to_string()), english.map(String::from)].into_iter().flatten().collect()
}

/// The English way out of a diagnostic where [`refusal`] has not said all of it: in English, or where its names and figures would be lost.
pub(super) fn english_way_out(ui: &Ui, why: &Diagnostic) -> Option<String> {
    let hint = why.hint.as_deref().map(words);
    spoken(ui.ctx()).ways_out(&why.code, hint.as_deref()).1.map(String::from)
}

/// What a diagnostic is about, in the language that is spoken, above its English message. Nothing in English.
pub(super) fn refusal(ui: &mut Ui, why: &Diagnostic) {
    let said = spoken(ui.ctx());
    if let Some(sentence) = said.refusal(&why.code) {
        ui.add(egui::Label::new(sentence).wrap());
    }
    if let Some(way_out) = way_out(said, why) {
        ui.add(egui::Label::new(RichText::new(way_out).weak()).wrap());
    }
}

/// A diagnostic in a few lines, below its subject.
pub(super) fn diagnostic_below(ui: &mut Ui, why: &Diagnostic) {
    let colour = severity_colour(ui, why.severity);
    let said = spoken(ui.ctx());
    if let Some(sentence) = said.refusal(&why.code) {
        ui.add(egui::Label::new(RichText::new(sentence).small().color(colour)).wrap());
    }
    let hint = why.hint.as_deref().map(words);
    let (way_out, english) = said.ways_out(&why.code, hint.as_deref());
    if let Some(way_out) = way_out {
        ui.add(egui::Label::new(RichText::new(way_out).small().weak()).wrap());
    }
    ui.add(egui::Label::new(RichText::new(&why.message).small().color(colour)).wrap());
    if let Some(english) = english {
        ui.add(egui::Label::new(RichText::new(english).small().weak()).wrap());
    }
}

/// Colour of a severity's words.
pub(super) fn severity_colour(ui: &Ui, severity: Severity) -> egui::Color32 {
    let colours = theme::palette(ui.visuals());
    match severity {
        Severity::Error => colours.error,
        Severity::Warning => colours.warning,
        Severity::Note => colours.weak,
    }
}

/// The severity as a word, so that colour is not needed.
pub(super) fn severity_word(ui: &Ui, severity: Severity) -> &'static str {
    let id = match severity {
        Severity::Error => "severity-error",
        Severity::Warning => "severity-warning",
        Severity::Note => "severity-note",
    };
    say(ui, id)
}

/// A button for a command, with its tooltip, disabled when it cannot be carried out.
pub(super) fn command_button(ui: &mut Ui, command: Command, enabled: bool, actions: &mut Actions) -> Response {
    let response = ui.add_enabled(enabled, egui::Button::new(command.text(ui.ctx())));
    let response = response.on_hover_text(command.tooltip(ui.ctx()));
    if response.clicked() {
        actions.command(command);
    }
    response
}

/// A menu entry for a command, with its keys.
pub(super) fn command_entry(ui: &mut Ui, command: Command, enabled: bool, actions: &mut Actions) {
    let keys = command.keys(ui.ctx());
    let button = egui::Button::new(command.text(ui.ctx()));
    // an empty one would end the name in a space
    let button = if keys.is_empty() { button } else { button.shortcut_text(keys) };
    if ui.add_enabled(enabled, button).on_hover_text(command.tip(ui.ctx())).clicked() {
        actions.command(command);
        ui.close();
    }
}

/// The one button that calls. One that is not enabled looks like any other.
pub(super) fn primary_button(ui: &Ui, text: &str, enabled: bool) -> egui::Button<'static> {
    let colours = theme::palette(ui.visuals());
    if !enabled {
        return egui::Button::new(text.to_string());
    }
    egui::Button::new(RichText::new(text).strong().color(colours.on_accent)).fill(colours.accent)
}

/// Text on one line, cut at the end of the space, for a widget with another name.
pub(super) fn painted(ui: &Ui, at: egui::Pos2, width: f32, text: RichText) {
    let text = egui::WidgetText::from(text);
    let galley = text.into_galley(ui, Some(egui::TextWrapMode::Truncate), width, egui::TextStyle::Body);
    ui.painter().galley(at, galley, ui.visuals().text_color());
}

/// The width of a text on one line.
pub(super) fn text_width(ui: &Ui, text: RichText) -> f32 {
    let galley = egui::WidgetText::from(text).into_galley(
        ui,
        Some(egui::TextWrapMode::Extend),
        f32::INFINITY,
        egui::TextStyle::Body,
    );
    galley.size().x
}

/// A path behind some words, on one line; if it is too long, its middle is omitted, and the tooltip and the name show all of it.
pub(super) fn path_label(ui: &mut Ui, before: &str, path: &std::path::Path) -> Response {
    let before = format!("{before} ");
    let whole = format!("{before}{}", path.display());
    let room = ui.available_width();
    let fits = |text: &str| text_width(ui, RichText::new(text)) <= room;
    let shown = shortened(&whole, before.chars().count(), fits);
    let cut = shown != whole;
    let response = ui.add(egui::Label::new(shown).truncate());
    // a reader hears all of it
    response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Label, true, &whole));
    if cut { response.on_hover_text(whole) } else { response }
}

/// A text with the smallest omission after its first `kept` characters that lets it fit; the end, which distinguishes
/// paths, is kept longest.
fn shortened(text: &str, kept: usize, fits: impl Fn(&str) -> bool) -> String {
    let all: Vec<char> = text.chars().collect();
    let kept = kept.min(all.len());
    let with = |shown: usize| {
        let head = kept + shown / 3;
        let tail = shown - shown / 3;
        let parts = [&all[..head], &['\u{2026}'], &all[all.len() - tail..]];
        parts.concat().into_iter().collect::<String>()
    };
    if fits(text) {
        return text.to_string();
    }
    // the most characters that fit
    let (mut low, mut high) = (0, all.len() - kept);
    while low + 1 < high {
        let middle = (low + high) / 2;
        if fits(&with(middle)) { low = middle } else { high = middle }
    }
    with(low)
}

/// Room that a row of names in buttons takes, in points.
pub(super) fn row_width<'a>(ui: &Ui, names: impl IntoIterator<Item = &'a str>) -> f32 {
    let spacing = ui.spacing();
    let around = 2.0 * spacing.button_padding.x + spacing.item_spacing.x;
    let one = |name: &str| {
        let wrap = Some(egui::TextWrapMode::Extend);
        let galley = egui::WidgetText::from(name).into_galley(ui, wrap, f32::INFINITY, egui::TextStyle::Button);
        galley.size().x + around
    };
    names.into_iter().map(one).sum()
}

/// The entries of a menu, which can be scrolled where the window is lower than they are.
pub(super) fn tall<R>(ui: &mut Ui, contents: impl FnOnce(&mut Ui) -> R) -> R {
    let room = (ui.ctx().content_rect().height() - 24.0).max(60.0);
    // as wide as the longest, as a menu that does not scroll
    ui.style_mut().wrap_mode = Some(egui::TextWrapMode::Extend);
    egui::ScrollArea::vertical().max_height(room).min_scrolled_height(room).show(ui, contents).inner
}

/// A section's title.
pub(super) fn section(ui: &mut Ui, title: &str) {
    ui.add_space(6.0);
    ui.label(RichText::new(title).strong());
}

/// A drag field for a whole number, named.
pub(super) fn whole(ui: &mut Ui, name: &str, value: usize, range: std::ops::RangeInclusive<usize>) -> Option<usize> {
    let mut new = value;
    // a value outside the range (from a file) is shown unchanged and reported among the problems
    let drag = drag_of(&mut new).range(range).clamp_existing_to_range(false).speed(0.2);
    let changed = ui.add(drag).accessible_name(name).changed();
    (changed && new != value).then_some(new)
}

/// An id for something that a test or a reader finds by name only.
pub(super) fn id(name: &str) -> Id {
    Id::unique(("maskloom", name))
}

#[cfg(test)]
mod tests {
    use super::shortened;

    #[test]
    fn a_long_path_loses_its_middle_and_never_its_ends() {
        let path = "4 files in /home/me/a_rather_long_folder/experiments_of_november/export_for_the_trainer";
        let fits = |most: usize| move |text: &str| text.chars().count() <= most;
        assert_eq!(shortened(path, 11, fits(200)), path);
        for most in [20, 40, 60] {
            let short = shortened(path, 11, fits(most));
            assert_eq!(short.chars().count(), most, "{short}");
            assert!(
                short.starts_with("4 files in ")
                    && short.contains('\u{2026}')
                    && short.ends_with("trainer") == (most > 21)
            );
        }
        // where nothing fits something is shown all the same
        assert_eq!(shortened(path, 11, |_| false), "4 files in \u{2026}");
    }
}
