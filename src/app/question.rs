//! A small window of its own for a question that a program asks: a password, whether a new host is trusted.
//!
//! Invariant: what is typed for a secret is never shown; closing the window is no answer. Must not know who asks.

use crate::app::language::readable;
use crate::words::{Language, Words};
use crate::worker::display::{self, Display};
use egui::{Key, TextEdit, Ui};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};

/// It starts from the terminal, and speaks its language where there are letters for it.
fn said() -> &'static Words {
    Words::of(readable(Language::chosen()).0)
}

/// Asks and gives the answer. None: it was closed, or there is no display.
pub fn ask(question: &str, secret: bool) -> Option<String> {
    if let Display::Missing(_) = display::probe() {
        return None;
    }
    let native = eframe::NativeOptions {
        viewport: egui::ViewportBuilder::default()
            .with_app_id("maskloom")
            .with_title(said().text("question-title"))
            .with_inner_size([520.0, 190.0])
            .with_always_on_top(),
        centered: true,
        persist_window: false,
        ..eframe::NativeOptions::default()
    };
    let asked = Question::new(question, secret);
    let answer = asked.answer.clone();
    // a missing library is no answer, as a closed window is
    let opened = std::panic::catch_unwind(AssertUnwindSafe(move || {
        eframe::run_native("Maskloom question", native, Box::new(move |_| Ok(Box::new(asked) as Box<dyn eframe::App>)))
    }));
    opened.ok()?.ok()?;
    answer.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// The window's content.
struct Question {
    words: String,
    secret: bool,
    typed: String,
    focused: bool,
    answer: Arc<Mutex<Option<String>>>,
}

impl Question {
    fn new(words: &str, secret: bool) -> Question {
        Question { words: words.trim().into(), secret, typed: String::new(), focused: false, answer: Arc::default() }
    }

    fn show(&mut self, ui: &mut Ui) {
        egui::ScrollArea::vertical().max_height(90.0).show(ui, |ui| ui.label(&self.words));
        ui.add_space(6.0);
        let label = ui.label(said().text("question-answer"));
        let field = TextEdit::singleline(&mut self.typed).password(self.secret).desired_width(f32::INFINITY);
        let response = ui.add(field).labelled_by(label.id);
        if !self.focused {
            response.request_focus();
            self.focused = true;
        }
        let entered = response.lost_focus() && ui.input(|input| input.key_pressed(Key::Enter));
        ui.add_space(6.0);
        ui.horizontal(|ui| {
            if ui.button(said().text("question-send")).clicked() || entered {
                *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.typed.clone());
                ui.ctx().send_viewport_cmd(egui::ViewportCommand::Close);
            }
            if ui.button(said().text("cancel")).clicked() || ui.input(|input| input.key_pressed(Key::Escape)) {
                ui.ctx().send_viewport_cmd(egui::ViewportCommand::Close);
            }
        });
    }
}

impl eframe::App for Question {
    fn ui(&mut self, ui: &mut Ui, _frame: &mut eframe::Frame) {
        egui::CentralPanel::default().show(ui, |ui| self.show(ui));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use egui_kittest::Harness;
    use egui_kittest::kittest::Queryable;

    #[test]
    fn an_answer_is_given_when_it_is_sent_and_not_when_the_window_is_closed() {
        for (button, given) in [("Answer ssh", Some("yes")), ("Cancel", None)] {
            let asked = Question::new("Are you sure (yes/no)? ", false);
            let answer = asked.answer.clone();
            let mut window = Harness::builder().build_eframe(|_| asked);
            window.step();
            assert!(window.query_by_label("Are you sure (yes/no)?").is_some());
            window.get_by_role_and_label(egui::accesskit::Role::TextInput, "Answer").type_text("yes");
            window.step();
            window.get_by_label(button).click();
            window.step();
            assert_eq!(answer.lock().unwrap().as_deref(), given, "{button}");
        }
    }
}
