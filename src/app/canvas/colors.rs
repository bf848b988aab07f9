//! Colours of masks and biases, light and dark.
//!
//! Invariant: empty, partial and full differ in hue and in lightness, so that they are distinct for colour-blind
//! readers and in grey prints (blue and orange of Okabe and Ito's set). A share is lightness within a hue. Must not
//! know masks.

use egui::{Color32, Visuals};

/// Colours of one theme.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Palette {
    /// Whether it is for dark windows.
    pub dark: bool,
    /// Around the mask.
    pub outside: Color32,
    /// Nothing kept.
    pub empty: Color32,
    /// Everything kept.
    pub full: Color32,
    /// A partial block's fully dropped pixel, and its fully kept pixel.
    pub partial: [Color32; 2],
    /// The least and the largest kept share of a pixel of a mask.
    pub kept: [Color32; 2],
    /// Lines between blocks.
    pub grid: Color32,
    /// Lines between segments.
    pub boundary: Color32,
    /// Painted, not yet analysed.
    pub painted: Color32,
    /// Erased, not yet analysed.
    pub erased: Color32,
    /// Outlines of shapes in progress or under the pointer.
    pub accent: Color32,
    /// NaN and infinities.
    pub not_a_number: Color32,
    /// Stripes of a bias in masked cells.
    pub dropped: [Color32; 2],
    /// Over an outdated picture after an error.
    pub veil: Color32,
}

const fn rgb(hex: u32) -> Color32 {
    Color32::from_rgb((hex >> 16) as u8, (hex >> 8) as u8, hex as u8)
}

const DARK: Palette = Palette {
    dark: true,
    outside: rgb(0x24262b),
    empty: rgb(0x101216),
    full: rgb(0x4aa3df),
    partial: [rgb(0x3d2c0c), rgb(0xf2b134)],
    kept: [rgb(0x1c3a52), rgb(0x79c4f5)],
    grid: Color32::from_rgba_premultiplied(0x30, 0x30, 0x30, 0x30),
    boundary: rgb(0xd0d4dc),
    painted: Color32::from_rgba_premultiplied(0x3a, 0x80, 0xae, 0xd0),
    erased: Color32::from_rgba_premultiplied(0x10, 0x12, 0x16, 0xd8),
    accent: rgb(0xff8fd8),
    not_a_number: rgb(0x7a7f88),
    dropped: [rgb(0x2b2e34), rgb(0x383c44)],
    veil: Color32::from_rgba_premultiplied(0x1c, 0x1d, 0x20, 0xb0),
};

const LIGHT: Palette = Palette {
    dark: false,
    outside: rgb(0xdfe1e5),
    empty: rgb(0xfbfbf9),
    full: rgb(0x0b62a8),
    partial: [rgb(0xfbe6bd), rgb(0xcc6f00)],
    kept: [rgb(0xcfe3f2), rgb(0x0a4f8a)],
    grid: Color32::from_rgba_premultiplied(0, 0, 0, 0x30),
    boundary: rgb(0x30343c),
    painted: Color32::from_rgba_premultiplied(0x09, 0x50, 0x89, 0xd0),
    erased: Color32::from_rgba_premultiplied(0xd4, 0xd4, 0xd2, 0xd8),
    accent: rgb(0xb0107a),
    not_a_number: rgb(0x9a9ea6),
    dropped: [rgb(0xcfd2d8), rgb(0xbcc0c8)],
    veil: Color32::from_rgba_premultiplied(0x98, 0x99, 0x9c, 0xb0),
};

impl Palette {
    /// The palette of a theme.
    pub fn of(visuals: &Visuals) -> Palette {
        Palette::dark(visuals.dark_mode)
    }

    /// The dark or the light one.
    pub fn dark(dark: bool) -> Palette {
        if dark { DARK } else { LIGHT }
    }

    /// A pixel of a mask.
    pub fn share(&self, share: f32) -> Color32 {
        if share <= 0.0 { self.empty } else { mix(self.kept, share.sqrt()) }
    }

    /// A pixel of a difference: shares kept in both, now only, and there only. Any difference is visible.
    pub fn difference(&self, both: f32, now: f32, there: f32) -> Color32 {
        let below = mix([self.empty, self.both()], both.clamp(0.0, 1.0).sqrt());
        let all = now + there;
        if all <= 0.0 {
            return below;
        }
        let colour = mix([self.full, self.partial[1]], there / all);
        mix([below, colour], 0.4 + 0.6 * all)
    }

    /// Kept in both masks of a difference.
    pub fn both(&self) -> Color32 {
        mix([self.empty, self.not_a_number], 0.55)
    }

    /// A pixel of a partial block.
    pub fn partial(&self, share: f32) -> Color32 {
        mix(self.partial, share.max(0.0).sqrt())
    }

    /// A pixel that covers whole blocks: empty, full or between.
    pub fn blocks(&self, share: f32) -> Color32 {
        match share {
            s if s <= 0.0 => self.empty,
            s if s >= 1.0 => self.full,
            s => self.partial(0.1 + 0.9 * s),
        }
    }
}

/// Between two colours, 0..=1.
pub fn mix([from, to]: [Color32; 2], t: f32) -> Color32 {
    let t = t.clamp(0.0, 1.0);
    let mix = |a: u8, b: u8| (f32::from(a) + (f32::from(b) - f32::from(a)) * t + 0.5) as u8;
    Color32::from_rgb(mix(from.r(), to.r()), mix(from.g(), to.g()), mix(from.b(), to.b()))
}

/// How numbers become colours: diverging about zero where both signs occur, else one perceptual ramp.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ramp {
    /// Smallest value.
    pub lo: f32,
    /// Largest value.
    pub hi: f32,
}

impl Ramp {
    /// Spans these values; finite ones only.
    pub fn over(values: impl IntoIterator<Item = f32>) -> Option<Ramp> {
        values.into_iter().filter(|v| v.is_finite()).fold(None, |ramp, v| match ramp {
            None => Some(Ramp { lo: v, hi: v }),
            Some(Ramp { lo, hi }) => Some(Ramp { lo: lo.min(v), hi: hi.max(v) }),
        })
    }

    /// Whether zero is in the middle of the colours.
    pub fn diverging(&self) -> bool {
        self.lo < 0.0 && self.hi > 0.0
    }

    /// The position of a value on the colour scale, 0..=1. Equal values are in the middle, zeros at the lower end.
    pub fn position(&self, value: f32) -> f32 {
        if self.diverging() {
            let reach = self.hi.max(-self.lo);
            return (0.5 + 0.5 * value / reach).clamp(0.0, 1.0);
        }
        let span = self.hi - self.lo;
        match span > 0.0 {
            true => ((value - self.lo) / span).clamp(0.0, 1.0),
            false if self.lo == 0.0 => 0.0,
            false => 0.5,
        }
    }

    /// The value at a place of the ramp.
    pub fn value(&self, position: f32) -> f32 {
        if self.diverging() {
            return (2.0 * position - 1.0) * self.hi.max(-self.lo);
        }
        self.lo + position * (self.hi - self.lo)
    }

    /// The colour of a value; grey for NaN.
    pub fn color(&self, value: f32, palette: &Palette) -> Color32 {
        if value.is_finite() { self.at(self.position(value)) } else { palette.not_a_number }
    }

    /// The colour at a place of the ramp.
    pub fn at(&self, position: f32) -> Color32 {
        let gradient = if self.diverging() { colorous::PURPLE_ORANGE } else { colorous::VIRIDIS };
        let c = gradient.eval_continuous(f64::from(position));
        Color32::from_rgb(c.r, c.g, c.b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Perceived lightness, 0..=255.
    fn lightness(c: Color32) -> f32 {
        0.299 * f32::from(c.r()) + 0.587 * f32::from(c.g()) + 0.114 * f32::from(c.b())
    }

    #[test]
    fn kinds_differ_in_grey_too() {
        for palette in [DARK, LIGHT] {
            let grey = [palette.empty, palette.partial[0], palette.full].map(lightness);
            assert!((grey[0] - grey[1]).abs() > 14.0 && (grey[0] - grey[2]).abs() > 60.0, "{grey:?}");
            assert!((lightness(palette.partial[1]) - grey[2]).abs() > 14.0);
            for share in [0.001, 0.5, 0.999] {
                assert_ne!(palette.blocks(share), palette.empty);
                assert_ne!(palette.blocks(share), palette.full);
                assert_ne!(palette.share(share), palette.empty);
            }
        }
    }

    #[test]
    fn ramps_put_zero_in_the_middle_when_both_signs_occur() {
        let both = Ramp::over([-1.0, 4.0, f32::NAN, f32::INFINITY]).unwrap();
        assert_eq!((both.lo, both.hi, both.position(0.0)), (-1.0, 4.0, 0.5));
        let one = Ramp::over([-8.0, -2.0]).unwrap();
        assert_eq!((one.position(-8.0), one.position(-2.0), one.value(0.5)), (0.0, 1.0, -5.0));
        assert_eq!(Ramp::over([f32::NAN]), None);
        assert_eq!(both.color(f32::NAN, &DARK), DARK.not_a_number);
    }
}
