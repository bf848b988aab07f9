//! The page driven by accessible names.
//!
//! Invariant: every click and key here is a user's. Must not know how plans are found.

use crate::app::tests::{Window, look_until, settle, window};
use crate::app::workspace::Workspace;
use crate::document::edit::Edit;
use crate::document::library;
use egui_kittest::kittest::{NodeT, Queryable};

fn wait(window: &mut Window, what: &str) {
    look_until(window, what, |window| {
        window.query_by_label("planning").is_none() && window.query_all_by_label_contains(what).next().is_some()
    });
}

fn opened(preset: &str) -> Window {
    let mut window = window(None);
    let document = library::preset(preset).expect("a preset").document().expect("it opens");
    window.state_mut().state.edit(Edit::Replace(Box::new(document)));
    settle(&mut window);
    window.state_mut().state.view.show(Workspace::Parallel);
    wait(&mut window, "GPU 3");
    window
}

#[test]
fn a_plan_is_shown_beside_the_divisions_of_others_and_follows_the_slider() {
    let mut window = opened("packed_documents");
    for name in ["This plan", "contiguous", "head-tail", "PTRR", "heap", "Ulysses"] {
        assert!(window.query_by_label(name).is_some(), "{name}");
    }
    for name in ["The mask by rank", "In the order of ranks", "Bytes between GPUs"] {
        assert!(window.query_all_by_label(name).next().is_some(), "{name}");
    }
    assert!(window.query_by_label_contains("from block times of").is_some());
    assert!(window.query_all_by_label_contains("GPU 4").next().is_none());
    let slider = window.get_by_role_and_label(egui::accesskit::Role::Slider, "GPUs");
    slider.focus();
    window.run_steps(2);
    for _ in 0..3 {
        window.key_press(egui::Key::ArrowRight);
        window.run_steps(2);
    }
    wait(&mut window, "GPU 4");
}

/// Beside the bar that scrolls, and under titles of any length.
#[test]
fn both_pictures_are_whole_in_a_small_window() {
    use egui::accesskit::Role;
    for size in [[700.0, 500.0], [800.0, 600.0], [1280.0, 720.0]] {
        let mut window = opened("packed_documents");
        window.set_size(size.into());
        window.run_steps(4);
        let titles = ["The mask by rank", "In the order of ranks"];
        let [first, second] = titles.map(|title| window.get_by_role_and_label(Role::Image, title).rect());
        assert_eq!(first.size(), second.size(), "{size:?}");
        assert!(first.width() >= 80.0 && first.right() < second.left(), "{size:?}: {first:?} {second:?}");
        assert!(second.right() <= size[0] - 9.0, "{size:?}: {second:?}");
    }
}

#[test]
fn a_changed_mask_is_planned_again() {
    let mut window = opened("packed_documents");
    let received = |window: &Window| -> Vec<String> {
        window
            .query_all_by_label_contains("receives ")
            .map(|node| format!("{:?} {:?}", node.accesskit_node().label(), node.accesskit_node().value()))
            .collect()
    };
    let before = received(&window);
    let document = library::preset("causal").expect("a preset").document().expect("it opens");
    window.state_mut().state.edit(Edit::Replace(Box::new(document)));
    settle(&mut window);
    window.run_steps(2);
    wait(&mut window, "GPU 3");
    assert_ne!(before, received(&window));
}
