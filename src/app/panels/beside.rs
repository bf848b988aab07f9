//! Where something that floats over the canvas stands so that it covers nothing that is looked at.
//!
//! Invariant: where one of the places is free, it stands there; else where it covers least. Must not know what floats.

use egui::{Pos2, Rect, Vec2, pos2};

/// The four corners of a canvas, in the order in which they are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum First {
    LowerLeft,
    UpperRight,
    LowerRight,
}

/// The upper left corner of something of this size, inside `room`. It prefers one corner, then the others, then the sides of
/// what is `taken`.
pub(super) fn place(room: Rect, size: Vec2, first: First, taken: &[Rect]) -> Pos2 {
    let end = (room.max - size).max(room.min);
    let [low_left, low_right] = [pos2(room.left(), end.y), end];
    let [up_left, up_right] = [room.min, pos2(end.x, room.top())];
    let mut places = match first {
        First::LowerLeft => vec![low_left, low_right, up_right, up_left],
        First::UpperRight => vec![up_right, low_right, low_left, up_left],
        First::LowerRight => vec![low_right, low_left, up_right, up_left],
    };
    if let Some(of) = around(taken) {
        let inside = |at: Pos2| at.clamp(room.min, end);
        let (left, above) = (of.left() - size.x - GAP, of.top() - size.y - GAP);
        let beside = [pos2(left, of.top()), pos2(of.right() + GAP, of.top())];
        let over = [pos2(of.left(), above), pos2(of.left(), of.bottom() + GAP)];
        places.extend(beside.into_iter().chain(over).map(inside));
    }
    let covered = |at: &Pos2| {
        let own = Rect::from_min_size(*at, size);
        taken
            .iter()
            .map(|rect| rect.intersect(own))
            .filter(|rect| rect.is_positive())
            .map(|rect| rect.area())
            .sum::<f32>()
    };
    // the first of equal ones
    let mut best = (places[0], f32::INFINITY);
    for at in places {
        let covers = covered(&at);
        if covers < best.1 {
            best = (at, covers);
        }
    }
    best.0
}

/// Points between it and what it stands beside.
const GAP: f32 = 8.0;

/// The rectangle around all of them.
fn around(taken: &[Rect]) -> Option<Rect> {
    taken.iter().copied().reduce(|a, b| a.union(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use egui::vec2;

    #[test]
    fn nothing_is_covered_where_something_is_free() {
        let room = Rect::from_min_size(pos2(70.0, 40.0), vec2(600.0, 400.0));
        let size = vec2(200.0, 120.0);
        let at = |taken: &[Rect]| place(room, size, First::LowerLeft, taken);
        let rect = |x: f32, y: f32, w: f32, h: f32| Rect::from_min_size(pos2(x, y), vec2(w, h));
        assert_eq!(at(&[]), pos2(70.0, 320.0), "its own corner");
        assert_eq!(at(&[rect(80.0, 300.0, 100.0, 100.0)]), pos2(470.0, 320.0));
        // all corners are taken: it stands beside what is in one of them, or between
        let corners = [rect(70.0, 40.0, 40.0, 40.0), rect(630.0, 40.0, 40.0, 40.0), rect(70.0, 400.0, 600.0, 40.0)];
        let found = at(&corners);
        let own = Rect::from_min_size(found, size);
        assert!(room.contains_rect(own));
        // a wide one leaves the strip above it
        let wide = [rect(70.0, 180.0, 600.0, 260.0)];
        let own = Rect::from_min_size(at(&wide), size);
        assert!(!wide[0].intersects(own) && room.contains_rect(own), "{own:?}");
        // without room it covers as little as it can, and stays inside
        let own = Rect::from_min_size(at(&[rect(70.0, 40.0, 600.0, 400.0)]), size);
        assert!(room.contains_rect(own), "{own:?}");
        let narrow = Rect::from_min_size(pos2(0.0, 0.0), vec2(100.0, 100.0));
        assert_eq!(place(narrow, size, First::LowerLeft, &[]), pos2(0.0, 0.0));
    }
}
