//! Generated values of captured tensors: document ids by their lengths, and a plain count.
//!
//! Invariant: the same numbers give the same values. Must not know patterns.

use crate::app::fields::drag_of;
use crate::app::language::{say, say_with};
use crate::app::widgets::typed_id;
use crate::base::HostTensor;
use crate::base::rng::Rng;
use crate::base::tensor::Data;
use crate::document::model::ArgValue;
use egui::Ui;

/// The values of the menu's fields.
#[derive(Clone, Copy, Debug)]
struct Draft {
    mean: usize,
    seed: u64,
}

/// A menu that makes a value of `tokens` numbers.
pub(super) fn menu(ui: &mut Ui, name: &str, tokens: usize) -> Option<ArgValue> {
    let memory = typed_id(ui, ("generator", name));
    let mut draft = ui.data(|d| d.get_temp::<Draft>(memory)).unwrap_or(Draft { mean: 900, seed: 0 });
    let mut made = None;
    let button = ui.menu_button(say(ui, "make-menu"), |ui| {
        ui.label(say_with(ui, "make-words", &[("n", tokens.into())]));
        ui.horizontal(|ui| {
            ui.label(say(ui, "make-mean"));
            let drag = drag_of(&mut draft.mean).range(1..=tokens.max(1));
            ui.add(drag).accessible_name(say(ui, "make-mean-name"));
            ui.label(say(ui, "make-seed"));
            ui.add(drag_of(&mut draft.seed)).accessible_name(say(ui, "make-seed-name"));
        });
        for (text, words, values) in [
            (say(ui, "make-packed"), say(ui, "make-packed.tip"), packed as fn(usize, usize, u64) -> Vec<i32>),
            (say(ui, "make-equal"), say(ui, "make-equal.tip"), equal),
            (say(ui, "make-count"), say(ui, "make-count.tip"), count),
        ] {
            if ui.button(text).on_hover_text(words).clicked() {
                made = Some(values(tokens, draft.mean, draft.seed));
                ui.close();
            }
        }
    });
    button.response.on_hover_text(say(ui, "make-fills")).accessible_name(say_with(
        ui,
        "make-name",
        &[("name", name.into())],
    ));
    ui.data_mut(|d| d.insert_temp(memory, draft));
    let tensor = HostTensor::new(vec![tokens], Data::I32(made?)).ok()?;
    Some(ArgValue::Tensor { tensor })
}

/// Lengths are exponential, rounded up: short documents are many, long ones few.
fn packed(tokens: usize, mean: usize, seed: u64) -> Vec<i32> {
    let mut rng = Rng::new(seed);
    let mut out = Vec::with_capacity(tokens);
    let mut document = 0;
    while out.len() < tokens {
        let length = (-(1.0 - rng.unit()).ln() * mean as f64).ceil().max(1.0) as usize;
        out.extend(std::iter::repeat_n(document, length.min(tokens - out.len())));
        document += 1;
    }
    out
}

fn equal(tokens: usize, length: usize, _: u64) -> Vec<i32> {
    (0..tokens).map(|token| (token / length.max(1)) as i32).collect()
}

fn count(tokens: usize, _: usize, _: u64) -> Vec<i32> {
    (0..tokens as i32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_documents_follow_each_other_and_have_about_their_mean() {
        for (tokens, mean, seed) in [(100_000, 900, 0), (100_000, 50, 7), (300, 900, 1), (5, 1, 3)] {
            let ids = packed(tokens, mean, seed);
            assert_eq!((ids.len(), ids[0]), (tokens, 0));
            assert!(ids.windows(2).all(|w| w[1] == w[0] || w[1] == w[0] + 1), "{tokens} {mean}");
            let documents = *ids.last().unwrap() as usize + 1;
            if tokens >= 100 * mean {
                let found = tokens as f64 / documents as f64;
                assert!((0.7..1.4).contains(&(found / mean as f64)), "{found} for {mean}");
            }
            assert_eq!(packed(tokens, mean, seed), ids, "the same numbers give the same lengths");
        }
        assert_ne!(packed(10_000, 100, 1), packed(10_000, 100, 2));
        assert_eq!((equal(5, 2, 0), count(3, 9, 9)), (vec![0, 0, 1, 1, 2], vec![0, 1, 2]));
    }
}
