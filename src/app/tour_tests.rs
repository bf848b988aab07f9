//! The tour, played: what it shows, and that nothing of it stays.
//!
//! Invariant: as in `tests`: every action is a user's action; only the tour's clock is set forward.

use super::state::State;
use super::tests::{Window, click, state, window};
use super::tour::{LENGTH, STEPS, Show};
use super::workspace::Workspace;
use crate::words::{Language, Words};
use egui::Key;
use egui_kittest::kittest::Queryable;

/// Lets the tour be at the end of a step.
fn play_to(window: &mut Window, show: Show) {
    let at = STEPS.iter().position(|step| step.show == show).expect("a step");
    let end = STEPS.get(at + 1).map_or(LENGTH, |next| next.at);
    for share in [0.05, 0.5, 0.98] {
        let tour = window.state_mut().state.tour.as_mut().expect("plays");
        tour.played = STEPS[at].at + (end - STEPS[at].at) * share;
        window.run_steps(2);
    }
}

fn words(window: &Window, show: Show) -> bool {
    let step = STEPS.iter().find(|step| step.show == show).expect("a step");
    window.query_by_label(Words::of(Language::English).text(step.id)).is_some()
}

#[test]
fn the_tour_plays_by_itself_in_its_own_tab_and_leaves_everything_as_it_was() {
    let mut window = window(None);
    let of = |s: &State| (s.document.clone(), s.view.clone(), s.parked.len(), s.tab, s.id, s.is_dirty(), s.first_steps);
    let before = of(state(&window));
    window.run_steps(5);
    assert!(state(&window).tour.is_none(), "never unasked");
    click(&mut window, "Watch a tour");
    assert_eq!((state(&window).document.name.as_str(), state(&window).parked.len()), ("Tour", 1));
    assert!(words(&window, Show::Preset));
    let layers = state(&window).document.layers.len();
    play_to(&mut window, Show::Stroke);
    assert!(words(&window, Show::Stroke) && state(&window).document.layers.len() == layers + 1);
    assert!(!state(&window).focus.drawing, "the stroke is done");
    play_to(&mut window, Show::Blocks);
    assert!(state(&window).focus.area.is_some());
    play_to(&mut window, Show::Slider);
    assert!(state(&window).focus.area.is_none());
    play_to(&mut window, Show::Race);
    assert_eq!(state(&window).view.workspace, Workspace::Race);
    play_to(&mut window, Show::Export);
    assert_eq!(state(&window).view.workspace, Workspace::Export);
    play_to(&mut window, Show::End);
    window.state_mut().state.tour.as_mut().expect("plays").played = LENGTH;
    window.run_steps(2);
    assert!(state(&window).tour.is_none());
    assert_eq!(of(state(&window)), before);
    let reported = |(_, note): (usize, &super::notices::Notice)| note.what.message.contains("not saved");
    assert!(!state(&window).notices.all().any(reported), "it is nobody's work");
}

#[test]
fn the_tour_stands_when_paused_and_ends_by_escape_or_a_click_that_does_nothing_else() {
    let mut window = window(None);
    let before = state(&window).document.clone();
    for end in [Some(Key::Escape), None] {
        super::tests::by_palette(&mut window, &["Tour of 90"]);
        assert!(state(&window).tour.is_some());
        click(&mut window, "Pause");
        let played = |window: &Window| state(window).tour.as_ref().expect("plays").played;
        let at = played(&window);
        window.run_steps(4);
        assert_eq!(played(&window), at);
        click(&mut window, "Go on");
        window.run_steps(2);
        assert!(played(&window) > at);
        match end {
            Some(key) => window.key_press(key),
            // a button of the window below it
            None => window.get_by_label("Race").click(),
        }
        window.run_steps(4);
        assert!(state(&window).tour.is_none() && state(&window).parked.is_empty());
        assert_eq!(state(&window).document, before);
        assert_eq!(state(&window).view.workspace, Workspace::Design, "the click went no further");
    }
}

#[test]
fn a_document_that_is_opened_meanwhile_stays_and_the_tour_goes() {
    use super::act::act;
    use super::action::Action;
    let mut window = window(None);
    super::tests::by_palette(&mut window, &["Tour of 90"]);
    play_to(&mut window, Show::Stroke);
    act(&mut window.state_mut().state, Action::OpenPreset("causal".into()));
    window.run_steps(4);
    assert!(state(&window).tour.is_none());
    let names: Vec<String> = state(&window).tabs().iter().map(|tab| tab.document.name.clone()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(!names.contains(&"Tour".to_string()) && state(&window).document.name.contains("Causal"), "{names:?}");
    assert_eq!(state(&window).tab, 1);
}

#[test]
fn a_click_on_a_row_of_the_race_says_what_limits_it_and_what_other_cards_would_take() {
    let mut window = window(None);
    click(&mut window, "Race");
    let row = || "What limits flex";
    let first = window.query_all_by_label(row()).next().expect("a recorded run");
    first.click();
    window.run_steps(3);
    assert!(window.query_by_label("Roofline of flex").is_some());
    assert!(
        window.query_by_label_contains("limits it:").is_some()
            || window.query_by_label_contains("Neither limit").is_some()
    );
    assert!(window.query_by_label("On another card").is_some());
    assert!(window.query_by_label_contains("not measured.").is_some());
    window.query_all_by_label(row()).next().expect("still there").click();
    window.run_steps(3);
    assert!(window.query_by_label("Roofline of flex").is_none(), "a second click closes it");
}
