//! What the window hands on: pictures of its parts, code, a page.
//!
//! Invariant: a copied picture is what stands on the screen, without menus and messages; a page is of the design as it is now, with a race
//! only if that is of this very design. Must not know the page's content.

use super::clipboard::Part;
use super::compile::Built;
use super::state::State;
use super::widgets::id;
use crate::base::{Control, Diagnostic};
use crate::document::page::printed;
use crate::export::ExportFile;
use crate::problem::result::RunReport;
use crate::tasks::environment::Files;
use crate::tasks::sharing;
use crate::words::Language;
use egui::{Context, Rect, Ui};
use std::path::PathBuf;
use std::sync::Arc;

/// Where the parts were drawn in this frame.
type Places = [Option<Rect>; 2];

/// Remembers where the parts are.
pub(super) fn drawn(ui: &Ui, canvas: Rect, page: Option<Rect>) {
    ui.data_mut(|d| d.insert_temp::<Places>(id("places of parts"), [Some(canvas), page]));
}

/// Does what waited, at the end of a frame.
pub(super) fn follow(ctx: &Context, state: &mut State) {
    if let Some(text) = state.sharing.text.take() {
        ctx.copy_text(text);
        state.done(state.words().text("done-code"));
    }
    // the picture is taken of the next frame at the latest
    state.session.canvas.set_alone(state.sharing.shot.is_some());
    let Some((part, wait)) = state.sharing.shot.take() else { return };
    if wait > 0 {
        state.sharing.shot = Some((part, wait - 1));
        return ctx.request_repaint();
    }
    let places = ctx.data(|d| d.get_temp::<Places>(id("places of parts"))).unwrap_or_default();
    let place = match part {
        Part::Canvas => places[0],
        Part::Page => places[1],
    };
    let Some(place) = place else {
        let why = Diagnostic::warning("no-page", "the page at the side is hidden: there is nothing to copy");
        return state.tell(why.hint("show it first: Alt+2"));
    };
    let (scale, own) = (ctx.pixels_per_point(), ctx.clone());
    ctx.request_screenshot(move |image| {
        let place = place.intersect(Rect::from_min_size(egui::Pos2::ZERO, image.source_size_in(scale)));
        own.copy_image(image.region(&place, Some(scale)));
        own.request_repaint();
    });
    state.done(match part {
        Part::Canvas => state.words().text("done-picture"),
        Part::Page => state.words().text("done-page"),
    });
}

/// The size of an image in points.
trait InPoints {
    fn source_size_in(&self, scale: f32) -> egui::Vec2;
}

impl InPoints for egui::ColorImage {
    fn source_size_in(&self, scale: f32) -> egui::Vec2 {
        egui::vec2(self.width() as f32, self.height() as f32) / scale
    }
}

/// The document's mods as PyTorch code. None: it has errors.
pub(super) fn code(state: &State) -> Option<String> {
    let built = state.session.built.as_ref()?;
    let problem = built.problem.as_ref().ok()?;
    Some(printed(problem.mask.as_deref(), problem.score.as_deref()).code)
}

/// The page of a document, to be made off the window's thread.
#[derive(Clone, Debug)]
pub(crate) struct PageWish {
    pub built: Arc<Built>,
    pub run: Option<Box<RunReport>>,
    pub shown: (usize, usize),
    pub base: Option<PathBuf>,
    pub language: Language,
}

impl PageWish {
    /// Of the design as it was compiled last. None: nothing was.
    pub(crate) fn of(state: &State) -> Option<PageWish> {
        let built = state.session.built.clone()?;
        let race = state.session.race.as_ref().filter(|race| !race.stale && race.is_whole());
        let same = race.filter(|race| race.of.as_ref().zip(built.problem.as_ref().ok()).is_some_and(|(a, b)| a == b));
        let run = same.and_then(|race| race.report.clone());
        let base = state.path.as_ref().and_then(|p| p.parent()).map(Into::into);
        Some(PageWish { built, run, shown: (state.focus.b, state.focus.h), base, language: state.words().language() })
    }

    /// Makes it. Errors: the document's own.
    pub(crate) fn make(&self) -> Result<ExportFile, Diagnostic> {
        let problem = self.built.problem.as_ref().map_err(|why| why[0].clone())?;
        let files = Files::new(self.base.clone(), Vec::new());
        let (run, control) = (self.run.as_deref(), Control::new());
        sharing::html(&self.built.document, problem, &files, run, self.shown, self.language, &control)
    }
}
