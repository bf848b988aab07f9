//! Small pictures of tools, drawn with lines so that they are sharp at any size and need no font.
//!
//! Invariant: one colour, inside the given rectangle. Must not know their meaning.

use egui::{Color32, Painter, Pos2, Rect, Stroke, StrokeKind, pos2, vec2};

/// Which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Icon {
    Move,
    Brush,
    Eraser,
    Rectangle,
    Band,
    Line,
    Area,
    Polygon,
    Lasso,
}

/// Draws one in the middle of a rectangle.
pub(super) fn paint(painter: &Painter, rect: Rect, icon: Icon, color: Color32) {
    let side = rect.width().min(rect.height());
    let square = Rect::from_center_size(rect.center(), vec2(side, side));
    let at = |x: f32, y: f32| pos2(square.left() + x * side, square.top() + y * side);
    let line = Stroke::new((side / 11.0).max(1.2), color);
    let path = |points: &[(f32, f32)]| {
        let points: Vec<Pos2> = points.iter().map(|(x, y)| at(*x, *y)).collect();
        painter.add(egui::Shape::line(points, line));
    };
    match icon {
        Icon::Move => {
            path(&[(0.5, 0.02), (0.5, 0.98)]);
            path(&[(0.02, 0.5), (0.98, 0.5)]);
            path(&[(0.36, 0.16), (0.5, 0.02), (0.64, 0.16)]);
            path(&[(0.36, 0.84), (0.5, 0.98), (0.64, 0.84)]);
            path(&[(0.16, 0.36), (0.02, 0.5), (0.16, 0.64)]);
            path(&[(0.84, 0.36), (0.98, 0.5), (0.84, 0.64)]);
        }
        Icon::Brush => {
            path(&[(0.95, 0.05), (0.45, 0.55)]);
            painter.circle_filled(at(0.28, 0.72), side * 0.2, color);
            path(&[(0.24, 0.78), (0.04, 0.96), (0.34, 0.9)]);
        }
        Icon::Eraser => {
            path(&[(0.4, 0.9), (0.06, 0.56), (0.56, 0.06), (0.94, 0.44), (0.48, 0.9), (0.4, 0.9)]);
            path(&[(0.3, 0.32), (0.7, 0.7)]);
            path(&[(0.4, 0.95), (0.98, 0.95)]);
        }
        Icon::Rectangle => {
            let inner = Rect::from_min_max(at(0.06, 0.2), at(0.94, 0.82));
            painter.rect_stroke(inner, 0.0, line, StrokeKind::Middle);
        }
        Icon::Area => {
            let corners = [(0.06, 0.2), (0.94, 0.2), (0.94, 0.82), (0.06, 0.82)];
            for (n, (x, y)) in corners.into_iter().enumerate() {
                let ((ax, ay), (bx, by)) = (corners[(n + 3) % 4], corners[(n + 1) % 4]);
                let toward = |to: f32, from: f32| from + (to - from).clamp(-0.26, 0.26);
                path(&[(toward(ax, x), toward(ay, y)), (x, y), (toward(bx, x), toward(by, y))]);
            }
        }
        Icon::Polygon => {
            let corners = [(0.2, 0.1), (0.94, 0.3), (0.72, 0.92), (0.1, 0.72), (0.2, 0.1)];
            path(&corners);
            for (x, y) in &corners[..4] {
                painter.circle_filled(at(*x, *y), side * 0.1, color);
            }
        }
        Icon::Lasso => {
            let turn = |n: usize| {
                let angle = n as f32 / 20.0 * std::f32::consts::TAU;
                (0.5 + 0.44 * angle.cos(), 0.4 + 0.3 * angle.sin())
            };
            path(&(0..=20).map(turn).collect::<Vec<_>>());
            path(&[(0.3, 0.66), (0.22, 0.8), (0.34, 0.86), (0.26, 0.98)]);
        }
        Icon::Line => {
            path(&[(0.1, 0.9), (0.9, 0.1)]);
            painter.circle_filled(at(0.1, 0.9), side * 0.12, color);
            painter.circle_filled(at(0.9, 0.1), side * 0.12, color);
        }
        Icon::Band => {
            path(&[(0.06, 0.38), (0.62, 0.94)]);
            path(&[(0.38, 0.06), (0.94, 0.62)]);
            path(&[(0.06, 0.38), (0.06, 0.06), (0.38, 0.06)]);
            path(&[(0.62, 0.94), (0.94, 0.94), (0.94, 0.62)]);
        }
    }
}
