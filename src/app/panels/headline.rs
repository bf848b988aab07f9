//! The headline: kept cells, cost, loss and errors of the mask; each card opens its workspace.
//!
//! Invariant: every figure belongs to the shown document, or its card names what it belongs to. Must not know how
//! figures are computed.

use crate::app::action::Actions;
use crate::app::canvas::colors;
use crate::app::cards::{Card, Tone};
use crate::app::command::Command;
use crate::app::counting::CountProgress;
use crate::app::language::{say, say_with, words};
use crate::app::left;
use crate::app::state::State;
use crate::app::tabs::{best_time, recorded_runs};
use crate::app::theme;
use crate::app::widgets::{english_way_out, grouped, painted, percent, severity_word, way_out};
use crate::base::{BlockSize, Diagnostic};
use egui::{Color32, Rect, RichText, Sense, Ui, Vec2, pos2};
use std::time::Duration;

/// Height of a card, in points.
pub(in crate::app) const HEIGHT: f32 = 58.0;
/// A count that is done by then is not worth a word about its progress.
const PATIENCE: Duration = Duration::from_millis(300);

fn cards(ui: &Ui, state: &State) -> [Card; 4] {
    let recorded = recorded_runs(ui, state);
    [kept(ui, state), best_time(ui, state, &recorded), loss(ui, state), problems(ui, state)]
}

/// The same as entries of a menu, where the window has no room for it.
pub(super) fn in_a_menu(ui: &mut Ui, state: &State, actions: &mut Actions) {
    for card in cards(ui, state) {
        let words = format!("{}: {}", card.title, card.value);
        let button = ui.add(egui::Button::new(words).truncate()).on_hover_text(&card.detail);
        if button.clicked() {
            actions.command(card.opens);
            ui.close();
        }
    }
}

/// Draws it.
pub(in crate::app) fn show(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let cards = cards(ui, state);
    let gap = 6.0;
    let (left, top) = (ui.max_rect().left(), ui.max_rect().top());
    let all = ui.max_rect().width() - gap * (cards.len() - 1) as f32;
    let shares = [0.29, 0.30, 0.16, 0.25];
    let mut x = left;
    for (card, share) in cards.iter().zip(shares) {
        let rect = Rect::from_min_size(pos2(x, top), Vec2::new((all * share).floor(), HEIGHT));
        if card_ui(ui, rect, card).clicked() {
            actions.command(card.opens);
        }
        x = rect.right() + gap;
    }
    ui.allocate_rect(Rect::from_min_size(pos2(left, top), Vec2::new(x - gap - left, HEIGHT)), Sense::hover());
}

fn card_ui(ui: &mut Ui, rect: Rect, card: &Card) -> egui::Response {
    let response = ui.interact(rect, ui.scope_id().with(card.title), Sense::click());
    let label = match card.detail.as_str() {
        "" => format!("{}: {}", card.title, card.value),
        detail => format!("{}: {}, {detail}", card.title, card.value),
    };
    response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Button, true, &label));
    let visuals = ui.style().interact(&response);
    let fill = if response.hovered() { visuals.weak_bg_fill } else { ui.visuals().faint_bg_color };
    ui.painter().rect(rect, 6.0, fill, ui.visuals().widgets.noninteractive.bg_stroke, egui::StrokeKind::Inside);
    let inner = rect.shrink2(Vec2::new(10.0, 5.0));
    let colours = theme::palette(ui.visuals());
    let colour = match card.tone {
        Tone::Plain => ui.visuals().strong_text_color(),
        Tone::Good => colours.good,
        Tone::Weak => colours.weak,
        Tone::Warning => colours.warning,
        Tone::Error => colours.error,
    };
    painted(ui, inner.left_top(), inner.width(), RichText::new(card.title).small().weak());
    let at = inner.left_top() + Vec2::new(0.0, 12.0);
    painted(ui, at, inner.width(), RichText::new(&card.value).strong().size(17.0).color(colour));
    let at = inner.left_top() + Vec2::new(0.0, 33.0);
    painted(ui, at, inner.width(), RichText::new(&card.detail).small().weak());
    let bar = Rect::from_min_max(pos2(inner.left(), rect.bottom() - 5.0), pos2(inner.right(), rect.bottom() - 2.0));
    if let Some(shares) = card.blocks {
        stacked(ui, bar, shares);
    }
    if let Some(share) = card.winner {
        let short = Rect::from_min_size(bar.min, Vec2::new((bar.width() * share).max(2.0), bar.height()));
        ui.painter().rect_filled(bar, 1.5, colours.bar.gamma_multiply(0.55));
        ui.painter().rect_filled(short, 1.5, colours.accent);
    }
    if let Some(fraction) = card.progress {
        let filled = Rect::from_min_size(bar.min, Vec2::new(bar.width() * fraction.clamp(0.0, 1.0), bar.height()));
        ui.painter().rect_filled(filled, 1.5, colours.accent);
    }
    response.on_hover_ui(|ui| {
        // a narrow window would break words
        ui.set_min_width(260.0);
        ui.strong(&card.value);
        for line in [&card.detail].into_iter().chain(&card.more).filter(|l| !l.is_empty()) {
            ui.label(line);
        }
    })
}

/// Full, partial and empty blocks in their colours.
fn stacked(ui: &Ui, bar: Rect, shares: [f32; 3]) {
    let palette = colors::Palette::of(ui.visuals());
    let edge = if palette.dark { Color32::from_gray(70) } else { Color32::from_gray(190) };
    let mut x = bar.left();
    for (share, colour) in shares.into_iter().zip([palette.full, palette.partial[1], palette.empty]) {
        let part = Rect::from_min_size(pos2(x, bar.top()), Vec2::new(bar.width() * share, bar.height()));
        ui.painter().rect_filled(part, 0.0, colour);
        x = part.right();
    }
    ui.painter().rect_stroke(bar, 1.0, (0.5, edge), egui::StrokeKind::Outside);
}

/// The kept cells of the shown picture.
fn kept(ui: &Ui, state: &State) -> Card {
    let card = |value: &str| Card::new(say(ui, "card-kept"), value, Command::ShowDesign);
    let broken = state.session.built.as_ref().map(|b| b.broken().0).unwrap_or_default();
    if !broken.is_empty() {
        let id = if state.session.shown.is_some() { "card-kept-before" } else { "card-kept-broken" };
        let words = say_with(ui, id, &[("layers", broken.join(", ").into())]);
        let card = card(say(ui, "card-kept-none")).detail(words);
        return card.tone(Tone::Weak).more(say(ui, "card-kept-errors"));
    }
    let Some(counted) = state.session.current_stats() else { return counting(ui, state) };
    let stats = match &counted.result {
        Ok(stats) => stats,
        Err(why) => return reported(ui, why, card(say(ui, "card-kept-uncounted"))).tone(Tone::Warning),
    };
    let blocks = (stats.full + stats.partial + stats.empty).max(1) as f64;
    let share = |n: u64| n as f64 / blocks;
    let (full, partial, empty) = (share(stats.full), share(stats.partial), share(stats.empty));
    let detail = match (stats.full, stats.partial, stats.empty) {
        (_, 0, 0) => say_with(ui, "card-kept-full", &[("size", counted.block_size.to_string().into())]),
        (0, 0, _) => say(ui, "card-kept-nothing").to_string(),
        _ => {
            let shares = [("full", full), ("partial", partial), ("empty", empty)];
            say_with(ui, "card-kept-blocks", &shares.map(|(name, share)| (name, percent(share).into())))
        }
    };
    let detail = match stats.empty_rows {
        0 => detail,
        // a row without a key gives zeros: it is told where there is room for nothing else
        rows if stats.density > 0.0 => {
            format!("{}  \u{b7}  {detail}", say_with(ui, "tools-empty-rows", &[("n", grouped(rows.into()).into())]))
        }
        _ => detail,
    };
    let share = say_with(ui, "card-kept-of", &[("share", percent(stats.density).into())]);
    let mut card = card(&share).detail(detail);
    card.blocks = Some([full, partial, empty].map(|s| s as f32));
    if state.session.is_behind(state.revision) {
        card.tone = Tone::Weak;
    }
    card.more = more(ui, stats, counted.block_size);
    if let Some(words) = compared(ui, state, stats) {
        card.detail = words.clone();
        card.more.insert(0, words);
    }
    card
}

/// The figures compared with those of the other mask.
fn compared(ui: &Ui, state: &State, stats: &crate::analysis::block_mask::Stats) -> Option<String> {
    let other = state.session.compared.as_ref()?;
    let [kept, computed] = other.counted?;
    let words = |now: f64, then: f64| {
        say_with(ui, "kept-then-now", &[("then", percent(then).into()), ("now", percent(now).into())])
    };
    let name: String = state.name_of(other).chars().take(40).collect();
    let (kept, computed) = (words(stats.density, kept), words(stats.computed, computed));
    let figures = [("name", name.into()), ("kept", kept.into()), ("computed", computed.into())];
    Some(say_with(ui, "kept-against", &figures))
}

fn more(ui: &Ui, stats: &crate::analysis::block_mask::Stats, size: BlockSize) -> Vec<String> {
    let blocks = [
        ("full", grouped(stats.full.into()).into()),
        ("size", size.to_string().into()),
        ("partial", grouped(stats.partial.into()).into()),
        ("empty", grouped(stats.empty.into()).into()),
    ];
    let mut lines = vec![
        say_with(ui, "kept-cells", &[("n", grouped(stats.kept_cells).into())]),
        say_with(ui, "kept-blocks", &blocks),
        say_with(
            ui,
            "kept-computed",
            &[("computed", percent(stats.computed).into()), ("vain", percent(stats.wasted).into())],
        ),
        say_with(ui, "kept-sparsity", &[("words", words(ui.ctx()).phrase(&stats.sparsity_words()).into())]),
        say_with(
            ui,
            "kept-row",
            &[
                ("min", stats.load.min.into()),
                ("max", stats.load.max.into()),
                ("mean", format!("{:.1}", stats.load.mean).into()),
            ],
        ),
    ];
    if stats.empty_rows > 0 {
        let rows = grouped(stats.empty_rows.into());
        lines.push(say_with(ui, "kept-empty", &[("rows", rows.into())]));
    }
    lines
}

/// How far the count is; the last figure stays a moment, dimmed: it would flicker while one paints.
fn counting(ui: &Ui, state: &State) -> Card {
    let card = |value: String| Card::new(say(ui, "card-kept"), value, Command::ShowDesign).tone(Tone::Weak);
    let (at_cells, waited, fraction, whole) = match state.session.count_progress() {
        CountProgress::Working { at_cells, waited, fraction, whole } => (at_cells, waited, fraction, whole),
        CountProgress::Stopped => {
            return card(say(ui, "card-kept-uncounted").into()).detail(say(ui, "card-kept-stopped"));
        }
    };
    if waited < PATIENCE {
        ui.ctx().request_repaint_after(PATIENCE - waited);
        let last = state.session.counted.as_ref().and_then(|counted| counted.result.as_ref().ok());
        let value = last.map_or(say(ui, "card-kept-counting").into(), |stats| {
            say_with(ui, "quality-lost-before", &[("share", percent(stats.density).into())])
        });
        return card(value).detail(say(ui, "card-kept-counting"));
    }
    ui.ctx().request_repaint_after(Duration::from_millis(250));
    let what = say(ui, if at_cells { "kept-partial" } else { "kept-finding" });
    let detail = left::step(ui, what, waited, fraction);
    let mut card = card(say_with(ui, "kept-counted", &[("n", format!("{:.0}", 100.0 * whole).into())])).detail(detail);
    card.more = vec![say(ui, "kept-one-by-one").into()];
    card.progress = Some(whole as f32);
    card
}

/// The loss of attention under the mask: known only with a model's own q and k.
fn loss(ui: &Ui, state: &State) -> Card {
    if let Some(known) = &state.session.loss {
        let card = Card::new(say(ui, "card-loses"), &known.value, Command::ShowQuality).detail(&known.detail);
        let card = if known.weak { card.tone(Tone::Weak) } else { card };
        return Card { more: known.more.clone(), ..card };
    }
    Card::new(say(ui, "card-loses"), say(ui, "card-loses-unknown"), Command::ShowQuality)
        .tone(Tone::Weak)
        .detail(say(ui, "card-loses-needs"))
        .more(say(ui, "card-loses-why"))
}

/// A diagnostic on a card: in the spoken language, with its English message in the tooltip.
fn reported(ui: &Ui, why: &Diagnostic, card: Card) -> Card {
    let said = words(ui.ctx());
    let way_out = way_out(said, why);
    match said.refusal(&why.code) {
        Some(sentence) => card
            .detail(sentence)
            .more([way_out.as_deref().unwrap_or_default(), &why.message].join("\n").trim_start().to_string()),
        None => card.detail(&*why.message),
    }
}

fn problems(ui: &Ui, state: &State) -> Card {
    let card = |value: &str| Card::new(say(ui, "card-problems"), value, Command::ShowProblems);
    let Some(built) = &state.session.built else { return card(say(ui, "card-problems-compiling")).tone(Tone::Weak) };
    let all: Vec<&Diagnostic> = built.diagnostics().into_iter().map(|(_, d)| d).collect();
    let (value, tone) = match built.problems() {
        (0, 0) => (say(ui, "card-problems-none").to_string(), Tone::Good),
        (0, n) => (say_with(ui, "card-problems-warnings", &[("n", n.into())]), Tone::Warning),
        (e, n) if e == n => (say_with(ui, "card-problems-errors", &[("n", n.into())]), Tone::Error),
        (e, n) => {
            let counts = [("errors", e.into()), ("warnings", (n - e).into())];
            (say_with(ui, "card-problems-both", &counts), Tone::Error)
        }
    };
    let first = all.iter().find(|d| d.is_error()).or(all.iter().max_by_key(|d| d.severity));
    let card = card(&value).tone(tone);
    match first {
        Some(d) if tone != Tone::Good => reported(ui, d, card).more_lines(english_way_out(ui, d)),
        Some(d) => {
            let card = reported(ui, d, card);
            Card { detail: format!("{}: {}", severity_word(ui, d.severity), card.detail), ..card }
        }
        None => card.detail(say(ui, "card-problems-fine")),
    }
}
