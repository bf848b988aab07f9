//! The meaning of the picture's colours, in the line below it.
//!
//! Invariant: it shows the drawn colours, with their unit. Must not know where the line is.

use super::colors::Palette;
use super::render::Source;
use super::tiles::Tiles;
use super::view::ScreenFromWorld;
use super::{Canvas, Picture, Scene, hover};
use crate::app::origins;
use crate::base::Provenance;
use egui::text::{LayoutJob, TextWrapping};
use egui::{FontId, Rect, Ui, pos2, vec2};

/// Points that the colour of masked cells takes beside a scale, in words of any language.
const BESIDE: f32 = 90.0;

impl Canvas {
    /// Draws as much of the legend as there is room for, from the right: what a colour's number is before all else.
    pub(super) fn legend(&self, ui: &Ui, rect: Rect, map: &ScreenFromWorld, scene: &Scene<'_>, source: &Source) {
        let (palette, said) = (Palette::of(ui.visuals()), scene.said);
        let painter = ui.painter_at(rect);
        let mut right = rect.right() - 6.0;
        // what says where numbers come from is cut where there is no room for it; the rest is left out
        let mut put_or_cut = |text: &str, colors: &[egui::Color32], cut: bool| {
            let color = ui.visuals().text_color();
            let width = if colors.is_empty() { 0.0 } else { 14.0_f32.max(3.0 * colors.len() as f32) };
            let mut job = LayoutJob::simple_singleline(text.to_string(), FontId::proportional(11.0), color);
            if cut {
                job.wrap = TextWrapping::truncate_at_width((right - width - 4.0 - rect.left()).max(0.0));
            }
            let galley = painter.layout_job(job);
            let left = right - galley.size().x - width - 4.0;
            if left < rect.left() {
                return;
            }
            let bar = Rect::from_min_size(pos2(left, rect.center().y - 5.0), vec2(width, 10.0));
            for (n, color) in colors.iter().enumerate() {
                let part = |n: usize| bar.left() + width * n as f32 / colors.len() as f32;
                let slice = Rect::from_x_y_ranges(part(n)..=part(n + 1), bar.y_range());
                painter.rect_filled(slice, 0.0, *color);
            }
            if !colors.is_empty() {
                // an empty cell may have the colour of the line
                let edge = ui.visuals().widgets.noninteractive.bg_stroke;
                painter.rect_stroke(bar, 0.0, edge, egui::StrokeKind::Outside);
            }
            painter.galley(pos2(bar.right() + 4.0, rect.center().y - galley.size().y / 2.0), galley, color);
            right = left - 10.0;
        };
        if self.tiles.as_ref().is_some_and(Tiles::stood_in) && !scene.picture.is_numbers() {
            let before = origins::whole_in(said, &Provenance::Before);
            put_or_cut(&said.with("legend-of", &[("before", before.into())]), &[], true);
        }
        let numbers = scene.map.and_then(|numbers| numbers.data).filter(|_| scene.picture.is_numbers());
        if scene.picture == Picture::Map && numbers.is_some() && self.heat.scale(said).is_some() {
            put_or_cut(said.text("legend-masked"), &[palette.empty], false);
        }
        if let (Some(data), Some((ends, bar))) = (numbers, self.heat.scale(said)) {
            let title = data.title(said);
            let whole =
                said.with("legend-numbers", &[("title", title.as_str().into()), ("ends", ends.as_str().into())]);
            let room = rect.width() - 3.0 * bar.len() as f32 - BESIDE;
            let galley = painter.layout_no_wrap(whole.clone(), FontId::proportional(11.0), palette.empty);
            if galley.size().x <= room {
                put_or_cut(&whole, &bar, true);
            } else {
                // the ends are never cut; what they are of stands before them
                put_or_cut(&ends, &bar, false);
                put_or_cut(&title, &[], true);
            }
        }
        if let Some(span) = source.known_span().filter(|_| scene.picture == Picture::Bias) {
            let ramp = span.ramp;
            let (lo, hi) = (ramp.value(0.0), ramp.value(1.0));
            let bar: Vec<_> = (0..24).map(|n| ramp.at(n as f32 / 23.0)).collect();
            let sampled = self.tiles.as_ref().is_some_and(|t| !t.exact());
            let about = if span.exact { "" } else { "\u{2248} " };
            let lo = format!("{about}{}", hover::short(lo));
            let ends = [("lo", lo.into()), ("hi", hover::short(hi).into())];
            let mut ways = vec![said.with("legend-bias", &ends)];
            if scene.heads > 1 {
                ways.push(said.with("legend-bias-heads", &ends));
            }
            if sampled {
                let longest = ways.last().cloned().unwrap_or_default();
                ways.push(said.with("legend-means", &[("bias", longest.into())]));
            }
            // the scale is never left out: the most words for which there is room, or the fewest, cut
            let room = rect.width() - 3.0 * bar.len() as f32 - 10.0;
            let fits = |text: &&String| {
                let font = FontId::proportional(11.0);
                painter.layout_no_wrap(text.to_string(), font, palette.empty).size().x <= room
            };
            let scale = ways.iter().rev().find(fits).unwrap_or(&ways[0]).clone();
            put_or_cut(&scale, &bar, true);
            put_or_cut(
                said.text("legend-dropped"),
                &[palette.dropped[0], palette.dropped[1], palette.dropped[0]],
                false,
            );
        }
        let mut put = |text: &str, colors: &[egui::Color32]| put_or_cut(text, colors, false);
        let shades = |f: &dyn Fn(f32) -> egui::Color32| (0..8).map(|n| f(n as f32 / 7.0)).collect::<Vec<_>>();
        match scene.picture {
            Picture::Blocks => {
                put(said.text("legend-full"), &[palette.full]);
                put(said.text("legend-partial"), &shades(&|t| palette.partial(t)));
                put(said.text("legend-empty"), &[palette.empty]);
            }
            Picture::Difference => {
                if let Some(against) = scene.against {
                    put(said.text("legend-both"), &[palette.both()]);
                    put(&said.with("legend-only", &[("name", against.name.into())]), &[palette.partial[1]]);
                    put(said.text("legend-now"), &[palette.full]);
                }
            }
            Picture::Map | Picture::Loss => {
                if scene.picture == Picture::Loss && scene.loss.is_some() {
                    put(said.text("legend-rows"), &super::loss::bar(&palette));
                }
            }
            Picture::Mask => put(said.text("legend-share"), &shades(&|t| palette.share(t))),
            // before all else
            Picture::Bias => {}
        }
        if let Some((side, times)) = map.stretched() {
            let figures = [("side", side.into()), ("times", format!("{times:.0}").into())];
            put(&said.with("legend-stretched", &figures), &[]);
        }
        if self.tiles.as_ref().is_some_and(|t| !t.exact())
            && scene.picture != Picture::Bias
            && !scene.picture.is_numbers()
        {
            put(said.text("legend-sampled"), &[]);
        }
    }
}
