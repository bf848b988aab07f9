//! Masks as text: a small picture in block characters.
//!
//! Invariant: a character shows two pixels, one above the other; shares become five shades. Must not know masks.

/// Shades from nothing to everything.
const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];

/// Lines of a picture whose pixels are shares in 0..=1, `width` a row. The two pixels of a character are averaged if
/// they differ little; a half block shows one full and one empty pixel.
pub(super) fn lines(pixels: &[f32], width: usize) -> Vec<String> {
    let rows: Vec<&[f32]> = pixels.chunks(width.max(1)).collect();
    let line = |pair: &[&[f32]]| -> String {
        let lower = pair.get(1).unwrap_or(&pair[0]);
        pair[0].iter().zip(lower.iter()).map(|(upper, lower)| character(*upper, *lower)).collect()
    };
    rows.chunks(2).map(line).collect()
}

fn character(upper: f32, lower: f32) -> char {
    if upper > 0.75 && lower < 0.25 {
        return '▀';
    }
    if upper < 0.25 && lower > 0.75 {
        return '▄';
    }
    let share = 0.5 * (upper + lower);
    // any kept cell is visible, and only fully kept pixels are solid
    let shade = if share <= 0.0 { 0 } else { 1 + (share * 3.0) as usize };
    SHADES[if share >= 1.0 { 4 } else { shade.min(3) }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_become_shades() {
        let pixels = [1.0, 0.0, 1.0, 0.3, 1.0, 1.0, 0.0, 0.0];
        assert_eq!(lines(&pixels, 4), ["█▄▀░"]);
        assert_eq!(lines(&[1.0, 0.01], 2), ["█░"]);
    }
}
