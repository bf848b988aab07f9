//! Pictures of the window, each workspace and some pages, compared with those in `tests/snapshots/window`.
//!
//! Invariant: drawn on the processor alone, so that they are the same on every machine. A pixel counts as different
//! beyond a weighted squared colour distance of 2, and 10 of the 640,000 pixels may be, fewer than the smallest icon has:
//! text is rasterised with the processor's own vector instructions. `UPDATE_SNAPSHOTS=1 cargo test -p maskloom-app
//! snapshot_tests` writes them again.

use super::drafts::Dialog;
use super::panels::thumbs;
use super::software::Software;
use super::tests::{Window, click, look_until, settle, state, step_until};
use super::theme::ThemeChoice;
use super::workspace::Workspace;
use super::{Options, Workbench};
use crate::worker::target::Target;
use egui::Vec2;
use egui_kittest::kittest::Queryable;
use egui_kittest::{Harness, SnapshotOptions};
use maskloom_testing::needs;
use std::collections::BTreeSet;

/// How much a pixel may differ, and how many may differ more.
const TOLERANCE: (f32, usize) = (2.0, 10);

/// A window that paints, with a preset in it and no worker.
fn painted(preset: Option<&str>, size: Vec2, scale: f32) -> Window {
    let target = Some(Target::new("no-such-program-of-ours"));
    let options = Options { target, preset: preset.map(String::from), ..Options::default() };
    let builder =
        Harness::builder().with_size(size).with_step_dt(0.05).with_pixels_per_point(scale).with_render_cursor(false);
    let mut window = builder.renderer(Software::default()).build_eframe(|cc| Workbench::new(&cc.egui_ctx, options));
    settle(&mut window);
    step_until(&mut window, "the worker cannot start", |state| state.session.worker_error.is_some());
    window
}

/// Frames until nothing changes any more.
fn rest(window: &mut Window) {
    // messages of the worker that is not there come and go by the clock
    let notices = &mut window.state_mut().state.notices;
    *notices = Default::default();
    // the settled state is that of the last frame: a theme or workspace set since then must be drawn once
    window.run_steps(2);
    step_until(window, "the picture is finished", |state| state.session.canvas.settled() && thumbs::settled());
    window.run_steps(4);
}

fn shoot(window: &mut Window, name: &str) {
    rest(window);
    let (threshold, pixels) = TOLERANCE;
    let options = SnapshotOptions::new().threshold(threshold).max_failed_pixels(pixels);
    window.snapshot_options(name, &options.output_path(maskloom_testing::repository().join("tests/snapshots/window")));
}

#[test]
fn the_workspaces_look_as_they_did() {
    let mut window = painted(None, Vec2::new(1000.0, 640.0), 1.0);
    shoot(&mut window, "first_screen");
    click(&mut window, "Hide the first steps");
    window.state_mut().state.view.theme = ThemeChoice::Light;
    for (workspace, name) in [
        (Workspace::Design, "design_light"),
        (Workspace::Race, "race_light"),
        (Workspace::Export, "export_light"),
        (Workspace::Learn, "learn_light"),
    ] {
        window.state_mut().state.view.show(workspace);
        shoot(&mut window, name);
    }
}

#[test]
fn dialogs_look_as_they_did() {
    let mut window = painted(None, Vec2::new(1000.0, 640.0), 1.0);
    window.state_mut().state.dialog = Some(Dialog::palette());
    shoot(&mut window, "palette");
    window.state_mut().state.dialog = Some(Dialog::Shortcuts);
    shoot(&mut window, "shortcuts");
    assert!(state(&window).dialog.is_some());
}

/// Flux with fewer text tokens, against what it was.
#[test]
fn a_difference_looks_as_it_did() {
    use crate::document::edit::Edit;
    use crate::document::model::{ArgValue, MaskContent};
    let mut window = painted(Some("flux_text_padding"), Vec2::new(1280.0, 800.0), 1.0);
    let of = state(&window).id;
    window.state_mut().state.session.compare_with_this(of).expect("a mask");
    let mut changed = state(&window).document.clone();
    let MaskContent::Pattern(code) = &mut changed.layers[0].content else { panic!("a pattern") };
    code.args.insert("lengths".into(), ArgValue::List(vec![ArgValue::Int(77)]));
    window.state_mut().state.edit(Edit::Replace(Box::new(changed)));
    settle(&mut window);
    window.state_mut().state.focus.picture = super::canvas::Picture::Difference;
    step_until(&mut window, "the cells are counted", |state| {
        state.session.differing_of().is_some_and(|of| state.session.differing.of(of).is_some())
    });
    shoot(&mut window, "difference");
}

#[test]
fn a_plan_of_several_gpus_looks_as_it_did() {
    let mut window = painted(Some("packed_documents"), Vec2::new(1280.0, 900.0), 1.0);
    window.state_mut().state.view.theme = ThemeChoice::Light;
    window.state_mut().state.view.show(Workspace::Parallel);
    look_until(&mut window, "a plan", |window| {
        window.query_by_label("planning").is_none() && window.query_by_label("GPU 3").is_some()
    });
    shoot(&mut window, "parallel");
}

/// The keys of a query on a frame of a video, and an area that was drawn around.
#[test]
fn patches_and_areas_look_as_they_did() {
    use super::action::Action;
    use super::canvas::CanvasEvent;
    use super::region::Region;
    use crate::base::BlockSize;
    let mut window = painted(Some("wan_natten_3d"), Vec2::new(1000.0, 640.0), 1.0);
    let lengths = state(&window).document.axes.lengths().expect("lengths");
    let outline = vec![[3000.0, 1000.0], [9000.0, 14_000.0], [20_000.0, 15_600.0], [16_000.0, 4000.0]];
    let area = Region::around(outline, BlockSize::square(128), &[vec![], vec![15_600]], lengths).expect("cells");
    super::act::act(&mut window.state_mut().state, Action::Canvas(CanvasEvent::AreaSelected(area)));
    step_until(&mut window, "counted", |s| s.focus.area.as_ref().is_some_and(|area| area.figures.is_some()));
    shoot(&mut window, "area");
    let focus = &mut window.state_mut().state.focus;
    (focus.patches, focus.pinned, focus.is_pinned) = (true, [13_650, 13_650], true);
    step_until(&mut window, "the row is there", |s| s.session.canvas.has_row());
    shoot(&mut window, "patches");
}

#[test]
fn a_capture_looks_as_it_did() {
    let mut window = painted(None, Vec2::new(1000.0, 640.0), 1.0);
    click(&mut window, "Hide the first steps");
    window.state_mut().state.view.show(Workspace::Quality);
    shoot(&mut window, "quality_start");
    open_capture(&mut window);
    shoot(&mut window, "quality");
}

/// A capture of a small language model, under a causal window.
fn open_capture(window: &mut Window) {
    use super::tabs::quality_tests::{capture, document};
    let state = &mut window.state_mut().state;
    state.edit(crate::document::edit::Edit::Replace(Box::new(document(40))));
    state.session.capture = Some(super::there::CapturePlace::here(&capture()));
    state.view.show(Workspace::Quality);
    settle(window);
    step_until(window, "judged", |state| state.session.loss.as_ref().is_some_and(|loss| !loss.weak));
    look_until(window, "all measures", |window| {
        window.query_by_label_contains("cosine").is_some() && window.query_by_label_contains("distance").is_some()
    });
}

/// Every workspace in three sizes of the window, on light and on dark ground. The pictures are kept in the folder that the variable
/// names, to be looked at.
#[test]
fn every_workspace_is_painted_in_every_size_and_theme() {
    let folder = std::env::var("MASKLOOM_WINDOW_PICTURES").ok().filter(|folder| !folder.is_empty());
    let preset = std::env::var("MASKLOOM_WINDOW_PRESET").ok();
    let sizes = [(1280.0, 720.0, 1.0), (1600.0, 1000.0, 1.0), (1920.0, 1080.0, 2.0)];
    let sizes = if folder.is_some() { sizes.to_vec() } else { needs::one_of(3, sizes) };
    for (width, height, scale) in sizes {
        let mut grounds = Vec::new();
        for theme in [ThemeChoice::Dark, ThemeChoice::Light] {
            let mut window = painted(preset.as_deref(), Vec2::new(width, height), scale);
            window.state_mut().state.view.theme = theme;
            let mut seen = BTreeSet::new();
            for workspace in Workspace::ALL {
                window.state_mut().state.view.show(workspace);
                rest(&mut window);
                let picture = window.render().expect("paints");
                let name = format!("{workspace:?}_{width}x{height}_{scale}_{theme:?}.png").to_lowercase();
                assert_eq!(picture.dimensions(), ((width * scale) as u32, (height * scale) as u32), "{name}");
                let colours: BTreeSet<[u8; 4]> = picture.pixels().map(|pixel| pixel.0).collect();
                assert!(colours.len() > 50, "{name} is blank: {} colours", colours.len());
                let ground = most_frequent(&picture);
                grounds.push(ground);
                if let Some(folder) = &folder {
                    picture.save(format!("{folder}/{name}")).expect("is written");
                }
                assert!(seen.insert(picture.into_raw()), "{name} is another workspace's picture");
            }
        }
        let (dark, light) = grounds.split_at(grounds.len() / 2);
        let brightness = |ground: &[u8; 4]| ground[..3].iter().map(|c| u32::from(*c)).sum::<u32>();
        let (brightest, darkest) = (dark.iter().map(brightness).max(), light.iter().map(brightness).min());
        assert!(brightest < darkest, "dark {dark:?}, light {light:?}");
    }
}

fn most_frequent(picture: &image::RgbaImage) -> [u8; 4] {
    let mut counts = std::collections::HashMap::new();
    picture.pixels().for_each(|pixel| *counts.entry(pixel.0).or_insert(0) += 1);
    counts.into_iter().max_by_key(|(_, count)| *count).expect("there are pixels").0
}
