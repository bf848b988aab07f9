//! The Quality page: what the document's mask loses on a capture, and masks that lose less.
//!
//! Invariant: nothing is computed here; a number is shown only with what it is of, and says when it is of an older mask. Must not
//! know how measures are made.

mod heads;
mod proposals;
#[cfg(test)]
mod tests;
mod work;

use super::map::{self, MapCache};
use crate::app::action::Actions;
use crate::app::background::{Latest, Wake};
use crate::app::canvas::heat::{HeatData, HeatMap};
use crate::app::state::State;
use crate::app::theme::palette;
use crate::app::widgets::{diagnostic_below, percent, section};
use egui::{Color32, ComboBox, Rect, RichText, ScrollArea, Sense, TextEdit, Ui, pos2, vec2};
use std::path::PathBuf;
use std::sync::Arc;
use work::{Answer, Keeper, Line, Question, Seen};

/// Height of the picture of what is lost, in points.
const PICTURE: f32 = 300.0;

/// What the page keeps between frames.
#[derive(Default)]
pub(crate) struct QualityPage {
    map: MapCache,
    /// Whether the attention map of the last run is shown instead; None: where there is a run and no capture.
    of_run: Option<bool>,
    typed: String,
    path: Option<PathBuf>,
    call: Option<String>,
    head: Option<usize>,
    target: f64,
    wish: u64,
    asked: Option<Question>,
    answer: Option<Answer>,
    thread: Option<Latest<Question, Answer>>,
    picture: HeatMap,
    /// Counts the pictures.
    revision: u64,
    data: Option<HeatData>,
}

/// Draws it.
pub(super) fn show(ui: &mut Ui, state: &State, page: &mut QualityPage, actions: &mut Actions) {
    let of_run = page.of_run.unwrap_or(page.path.is_none() && state.session.race.is_some());
    ui.horizontal(|ui| {
        let words = "What the mask loses on captured q, k and v.";
        if ui.selectable_label(!of_run, "Mask loss").on_hover_text(words).clicked() {
            page.of_run = Some(false);
        }
        let words = "Scores or probabilities of the last run's inputs.";
        if ui.selectable_label(of_run, "Attention map").on_hover_text(words).clicked() {
            page.of_run = Some(true);
        }
    });
    if of_run {
        return map::show(ui, state, &mut page.map, actions);
    }
    page.poll();
    ScrollArea::vertical().id_salt("quality").auto_shrink([false, false]).show(ui, |ui| page.lab(ui, state, actions));
}

impl QualityPage {
    fn lab(&mut self, ui: &mut Ui, state: &State, actions: &mut Actions) {
        self.file(ui);
        if self.path.is_none() {
            ui.add_space(8.0);
            ui.label("A capture holds q, k and v of a model that you run. Record one beside your own script:");
            ui.code("python maskloom_capture.py --out qkv.safetensors script.py");
            ui.weak("maskloom_capture.py is among the files of every export.");
            return;
        }
        self.ask(ui, state);
        let Some(answer) = &self.answer else {
            ui.horizontal(|ui| {
                ui.spinner();
                ui.label("reading the capture");
            });
            return;
        };
        let stale = self.asked.as_ref().is_some_and(|asked| !same_line(asked, &answer.question));
        match &answer.result {
            Err(why) => diagnostic_below(ui, why),
            Ok(seen) => {
                calls(ui, seen, &mut self.call);
                seen.file.warnings.iter().for_each(|why| diagnostic_below(ui, why));
                match &seen.line {
                    Err(why) => diagnostic_below(ui, why),
                    Ok(line) => {
                        measures(ui, line, stale);
                        picture(ui, line, &mut self.picture, self.data.as_ref());
                        heads::show(ui, line, &mut self.head);
                    }
                }
                proposals::show(ui, state, seen, &mut self.target, &mut self.wish, actions);
            }
        }
    }

    fn file(&mut self, ui: &mut Ui) {
        ui.horizontal(|ui| {
            let field = TextEdit::singleline(&mut self.typed)
                .hint_text("qkv.safetensors")
                .desired_width(ui.available_width() - 70.0);
            let field = ui.add(field).accessible_name("Capture file");
            let entered = field.lost_focus() && ui.input(|i| i.key_pressed(egui::Key::Enter));
            if (ui
                .button("Open")
                .on_hover_text("Reads what the file holds; heads are read when they are shown.")
                .clicked()
                || entered)
                && !self.typed.trim().is_empty()
            {
                self.path = Some(crate::app::dialogs::path::expand(self.typed.trim()));
                (self.call, self.head, self.answer, self.asked) = (None, None, None, None);
            }
        });
    }

    /// Takes the newest answer.
    fn poll(&mut self) {
        let Some(answer) = self.thread.as_ref().and_then(Latest::poll) else { return };
        if let Ok(Seen { line: Ok(line), .. }) = &answer.result {
            self.revision += 1;
            self.data = Some(HeatData {
                rows: line.lost.len() / line.columns.max(1),
                cols: line.columns,
                values: line.lost.clone(),
                q: [0, line.lengths[0]],
                kv: [0, line.lengths[1]],
                quantity: "lost mass of a block, mean over its rows".into(),
                zero_is_masked: false,
                revision: self.revision,
            });
        }
        self.answer = Some(answer);
    }

    /// Asks for what is to be shown, where that is not what was asked last.
    fn ask(&mut self, ui: &Ui, state: &State) {
        let Some(path) = self.path.clone() else { return };
        let built = state.session.built.as_ref();
        let problem = built.and_then(|b| b.problem.as_ref().ok().map(|p| (b.revision, p.clone())));
        let mass = (self.wish > 0).then_some((self.wish, self.target));
        let mut question = Question { path, call: self.call.clone(), problem, head: self.head, error: false, mass };
        // the output's error follows when the line stands and nothing changes
        question.error = self.answer.as_ref().is_some_and(|a| same_line(&a.question, &question));
        if self.asked.as_ref() == Some(&question) {
            return;
        }
        let context = ui.ctx().clone();
        let thread = self.thread.get_or_insert_with(|| {
            let wake: Wake = Arc::new(move || context.request_repaint());
            let mut keeper = Keeper::default();
            Latest::new("quality", false, wake, move |question, control| keeper.answer(question, control))
        });
        thread.ask(question.clone());
        self.asked = Some(question);
    }
}

/// Whether two questions lead to the same line.
fn same_line(a: &Question, b: &Question) -> bool {
    a.path == b.path && a.call == b.call && a.problem == b.problem && a.head == b.head
}

fn calls(ui: &mut Ui, seen: &Seen, chosen: &mut Option<String>) {
    let title = |key: &str| seen.file.calls.iter().find(|(k, _)| k == key).map_or(key, |(_, title)| title).to_string();
    ui.horizontal(|ui| {
        ui.weak(&seen.file.name);
        ComboBox::from_id_salt("call").selected_text(title(&seen.call)).width(260.0).show_ui(ui, |ui| {
            for (key, title) in &seen.file.calls {
                if ui.selectable_label(*key == seen.call, title).clicked() {
                    *chosen = Some(key.clone());
                }
            }
        });
    });
}

/// The measures in one line, each with its formula.
fn measures(ui: &mut Ui, line: &Line, stale: bool) {
    let Some((number, head)) = line.heads.get(line.shown) else { return };
    let colours = palette(ui.visuals());
    let mean = line.heads.iter().map(|(_, h)| h.mass.mean).sum::<f64>() / line.heads.len() as f64;
    let least = line.heads.iter().map(|(_, h)| h.mass.min).fold(f64::INFINITY, f64::min);
    ui.horizontal_wrapped(|ui| {
        let words = format!("all {} heads: mass {}, worst row {}", line.heads.len(), percent(mean), percent(least));
        ui.label(RichText::new(words).strong()).on_hover_text(
            "Mass kept of a row: exp(lse masked - lse full), the share of full attention's probability on the keys that the mask keeps. \
             People use 0.9 to 0.95 as a mean.",
        );
        if stale {
            ui.label(RichText::new("stale").strong().color(colours.warning)).on_hover_text("Of the mask before the last change; the new one is being judged.");
        }
    });
    ui.horizontal_wrapped(|ui| {
        let m = &head.mass;
        ui.label(format!("head {number}: mass {}", percent(m.mean))).on_hover_text("Mean over rows of exp(lse masked - lse full).");
        ui.label(format!("p5 {}", percent(m.p5))).on_hover_text("One row in twenty keeps less.");
        ui.label(format!("min {} in row {}", percent(m.min), m.worst_row)).on_hover_text("The row that keeps least.");
        ui.label(format!("ceiling {}", percent(head.ceiling)))
            .on_hover_text("The most that as many blocks in each row could keep: mean over rows of the sum of the k largest block masses.");
        ui.label(format!("regret {}", percent((head.ceiling - m.mean).max(0.0)))).on_hover_text("Ceiling less mass: what a better choice of blocks would win.");
        ui.label(format!("blocks {}", percent(head.cost.density()))).on_hover_text("Blocks that a kernel visits, over all.");
        if let Some(e) = &line.error {
            ui.label(format!("output off by {}", percent(e.relative_l1)))
                .on_hover_text("sum |o - o'| / sum |o| against full attention with the captured v; 6 to 8% pass in SpargeAttn.");
            ui.label(format!("cosine {:.4}", e.cosine)).on_hover_text("Of the whole head's output, dense and masked; above 0.98 passes in SpargeAttn.");
            ui.label(format!("rmse {:.4}", e.rmse)).on_hover_text("Root of the mean squared difference of the outputs; below 0.07 passes in SpargeAttn.");
            ui.label(format!("p99 row {}", percent(e.row_p99))).on_hover_text("One row in a hundred is further off: norm2(o - o') / norm2(o).");
        }
    });
    if head.mass.empty_rows > 0 {
        let first = head.mass.first_empty.unwrap_or(0);
        let words =
            format!("{} rows keep no key at all, the first is q_idx {first}: their output is 0.", head.mass.empty_rows);
        ui.label(RichText::new(words).color(colours.warning));
    }
    if let Some(words) = &line.troubles {
        ui.label(RichText::new(words).color(colours.warning));
    }
}

/// What is lost by block, with the strip of rows beside it.
fn picture(ui: &mut Ui, line: &Line, heat: &mut HeatMap, data: Option<&HeatData>) {
    section(ui, "What is lost");
    let Some(data) = data else { return };
    let wide = ui.available_width();
    ui.horizontal_top(|ui| {
        ui.allocate_ui(vec2(wide - 40.0, PICTURE), |ui| heat.show(ui, data));
        strip(ui, line);
    });
    if let Some((number, head)) = line.heads.get(line.shown) {
        let keys: Vec<String> =
            line.missed.iter().map(|(kv, p)| format!("{kv} ({})", percent(f64::from(*p)))).collect();
        if !keys.is_empty() {
            ui.weak(format!("Row {} of head {number} misses keys {}.", head.mass.worst_row, keys.join(", ")));
        }
    }
}

/// Mass kept from the first row to the last, the worst of each stretch.
fn strip(ui: &mut Ui, line: &Line) {
    let (rect, response) = ui.allocate_exact_size(vec2(24.0, PICTURE), Sense::hover());
    response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Canvas, true, "Mass kept by row"));
    let painter = ui.painter_at(rect);
    let tall = rect.height() / line.strip.len().max(1) as f32;
    for (n, mass) in line.strip.iter().enumerate() {
        let top = rect.top() + n as f32 * tall;
        let colour = if mass.is_nan() { Color32::GRAY } else { viridis(*mass) };
        painter.rect_filled(
            Rect::from_min_max(pos2(rect.left(), top), pos2(rect.right(), top + tall + 0.5)),
            0.0,
            colour,
        );
    }
    let at = response.hover_pos().map(|at| ((at.y - rect.top()) / tall) as usize);
    if let Some((n, mass)) = at.and_then(|n| line.strip.get(n).map(|m| (n, m))) {
        let row = n * line.lengths[0] / line.strip.len();
        response.on_hover_text(format!("rows from {row} on: at least {} kept", percent(f64::from(*mass))));
    }
}

/// A share as a colour.
fn viridis(share: f32) -> Color32 {
    let c = colorous::VIRIDIS.eval_continuous(f64::from(share.clamp(0.0, 1.0)));
    Color32::from_rgb(c.r, c.g, c.b)
}
