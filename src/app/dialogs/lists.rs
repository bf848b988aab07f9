//! Read-only dialogs: a failure, the messages since the start, the shortcuts.
//!
//! Invariant: closing them changes nothing. Must not know their subject.

use super::{Next, State, title};
use crate::app::command::Command;
use crate::app::language::{say, say_with};
use crate::app::widgets::{english_way_out, refusal, severity_colour, severity_word};
use crate::base::Diagnostic;
use egui::{Grid, Label, RichText, ScrollArea, Ui};

pub(super) fn failure(ui: &mut Ui, heading: &str, why: &[Diagnostic]) -> Next {
    title(ui, heading);
    ScrollArea::vertical().max_height(360.0).show(ui, |ui| {
        for diagnostic in why {
            told(ui, diagnostic);
            ui.add_space(6.0);
        }
    });
    ui.weak(say(ui, "lists-unchanged"));
    close(ui)
}

/// What happened, where, and the way out.
pub(super) fn told(ui: &mut Ui, diagnostic: &Diagnostic) {
    refusal(ui, diagnostic);
    // the code is for searching; what happened comes first
    let coded = format!("[{}]: {}", diagnostic.code, diagnostic.message);
    let summary = diagnostic.summary();
    let place = summary.strip_suffix(&coded).and_then(|front| front.rsplit_once(' ')).map(|(place, _)| place);
    let words = [place.unwrap_or_default(), &diagnostic.message].join(" ");
    ui.add(Label::new(RichText::new(words.trim_start()).color(severity_colour(ui, diagnostic.severity))).wrap())
        .on_hover_text(&*diagnostic.code);
    if let Some(hint) = english_way_out(ui, diagnostic) {
        ui.label(hint);
    }
}

pub(super) fn messages(ui: &mut Ui, state: &State) -> Next {
    title(ui, Command::Messages.text(ui.ctx()));
    ScrollArea::vertical().max_height(420.0).auto_shrink([false, true]).show(ui, |ui| {
        if state.notices.all().next().is_none() {
            ui.weak(say(ui, "lists-no-messages"));
        }
        for (_, notice) in state.notices.all().rev() {
            let ago = (state.now - notice.at).max(0.0);
            let (id, ago) = if ago < 60.0 { ("lists-seconds", ago) } else { ("lists-minutes", ago / 60.0) };
            let ago = say_with(ui, id, &[("n", format!("{ago:.0}").into())]);
            let word = severity_word(ui, notice.what.severity);
            let colour = severity_colour(ui, notice.what.severity);
            refusal(ui, &notice.what);
            ui.label(
                RichText::new(say_with(
                    ui,
                    "lists-message",
                    &[("word", word.into()), ("ago", ago.into()), ("message", (&*notice.what.message).into())],
                ))
                .color(colour),
            );
            if let Some(hint) = english_way_out(ui, &notice.what) {
                ui.label(hint);
            }
        }
    });
    close(ui)
}

/// The mouse and the keys on the canvas, in addition to the commands: ids of what is pressed, whose part `does` is its effect.
const CANVAS: [&str; 11] = [
    "keys-zoom",
    "keys-move",
    "keys-click",
    "keys-menu",
    "keys-home",
    "keys-arrow",
    "keys-enter",
    "keys-width",
    "keys-brackets",
    "keys-escape",
    "keys-small",
];

pub(super) fn shortcuts(ui: &mut Ui) -> Next {
    title(ui, say(ui, "keys-title"));
    let height = super::room(ui, 130.0).min(620.0);
    let window = ui.ctx().content_rect().width();
    let narrow = window < NARROW;
    let scroll = ScrollArea::vertical().max_height(height).max_width(window - 60.0);
    scroll.auto_shrink([false, true]).show(ui, |ui| {
        ui.label(RichText::new(say(ui, "keys-canvas")).strong().size(15.0));
        let canvas = CANVAS.map(|keys| {
            let does = say(ui, &format!("{keys}.does"));
            vec![RichText::new(say(ui, keys)).monospace(), RichText::new(does)]
        });
        rows(ui, ("canvas", "keys"), narrow, Vec::from(canvas));
        for (group, commands) in Command::groups() {
            ui.add_space(6.0);
            ui.label(RichText::new(say(ui, group)).strong().size(15.0));
            let row = |command: Command| {
                let keys = RichText::new(command.keys(ui.ctx())).monospace();
                vec![RichText::new(command.text(ui.ctx())), keys, RichText::new(command.tip(ui.ctx())).weak()]
            };
            let commands = commands.into_iter().map(row).collect();
            rows(ui, ("shortcuts", group), narrow, commands);
        }
    });
    close(ui)
}

/// Below this width of the window a table has not enough room.
const NARROW: f32 = 960.0;

/// A table; where it is narrow, the last cell of each row is below the others and wrapped.
fn rows(ui: &mut Ui, name: (&str, &str), narrow: bool, rows: Vec<Vec<RichText>>) {
    if !narrow {
        let columns = rows.first().map_or(0, Vec::len);
        Grid::new(name).num_columns(columns).striped(true).show(ui, |ui| {
            for row in rows {
                row.into_iter().for_each(|cell| drop(ui.label(cell)));
                ui.end_row();
            }
        });
        return;
    }
    for mut row in rows {
        let last = row.pop();
        ui.horizontal_wrapped(|ui| row.into_iter().for_each(|cell| drop(ui.label(cell))));
        last.into_iter().for_each(|words| drop(ui.add(Label::new(words).wrap())));
        ui.add_space(4.0);
    }
}

fn close(ui: &mut Ui) -> Next {
    ui.add_space(8.0);
    if ui.button(say(ui, "close")).clicked() { Next::Close } else { Next::Stay }
}
