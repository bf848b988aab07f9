//! What rounding may cost a row of dq or dk: bounds for rows in which few roundings decide, of which emulated attention is only
//! one draw.
//!
//! Invariant: the terms' errors are independent, so that a sum errs by the root of their squares. Must not know how gradients are
//! judged.

use super::{Keys, Work};
use crate::backends::mods::Place;
use crate::backends::reference::rms;
use crate::base::DType;

/// What rounding may cost a row, by bounds instead of one draw.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Noise {
    /// The root mean square over its elements of what comes through delta.
    pub rms: f64,
    /// The largest of its elements; the rounding of dS counts too.
    pub largest: f64,
}

impl Noise {
    /// Of a row's elements as they move with delta. What overflows is no measure.
    fn of(moved: &[f64], by: f64) -> Noise {
        let found = Noise { rms: by * rms(moved), largest: by * moved.iter().fold(0.0, |a: f64, x| a.max(x.abs())) };
        if found.rms.is_finite() && found.largest.is_finite() { found } else { Noise::default() }
    }

    pub(super) fn each(self, f: impl Fn(f64) -> f64) -> Noise {
        Noise { rms: f(self.rms), largest: f(self.largest) }
    }

    pub(super) fn add(&mut self, other: Noise) {
        self.rms += other.rms;
        self.largest += other.largest;
    }
    /// Adds squares to a square: those of a row's elements, of which the largest counts.
    pub(super) fn add_largest(&mut self, squares: &[f64]) {
        let largest = squares.iter().copied().fold(0.0, f64::max);
        self.largest += if largest.is_finite() { largest } else { 0.0 };
    }
}

impl Work<'_> {
    /// A unit of the last place of the problem's dtype, relative to the number; None unless the arithmetic is exact.
    pub(super) fn unit(&self) -> Option<f64> {
        match (self.dtype, self.beside, self.problem.dtype) {
            (Some(_), _, _) | (_, Some(_), _) => None,
            (_, _, DType::BF16) => Some(1.0 / 256.0),
            (_, _, DType::F16) => Some(1.0 / 2048.0),
            // of the products summed in dP and delta, whose difference is zero if one key has all the mass
            _ => Some(4.0 * f64::from(f32::EPSILON)),
        }
    }

    /// The error of a row's delta by a rounded output: rounding errs by at most one unit per element, the sum with d_out by
    /// the root of their squares. Rounding each probability on its way into the output adds as much of its own part of
    /// delta, P times dP. None: as [`Work::unit`].
    pub(super) fn off_of_delta(&self, (p, dp): (&[f64], &[f64]), keys: &Keys, d_out: &[f64]) -> Option<f64> {
        let unit = self.unit()?;
        let mut out = vec![0.0; d_out.len()];
        let kept = || p.iter().enumerate().filter(|(_, p)| **p != 0.0);
        for (at, p) in kept() {
            out.iter_mut().zip(&keys.v[at * d_out.len()..]).for_each(|(to, x)| *to += p * x);
        }
        let of_out: f64 = out.iter().zip(d_out).map(|(o, d)| (o * d).powi(2)).sum();
        let part = |(at, p): (usize, &f64)| (p * dp[at]).powi(2);
        Some(unit * (of_out + kept().map(part).sum::<f64>()).sqrt())
    }

    /// The effect of delta's error on captured elements, as squares: it moves the gradients of a row's cells all together.
    pub(super) fn on_captures(&self, place: &Place, plain: &[f64], p: &[f64], off: f64, squares: &mut [f64]) {
        if !squares.is_empty() {
            let moved: Vec<f64> = p.iter().map(|p| p * off).collect();
            self.derivative.apply_squares(place, plain, &moved, squares);
        }
    }

    /// The effect of delta's error on a row of dq. The effect on dk is added to `of_keys`, as squares.
    pub(super) fn through_delta(
        &self,
        place: &Place,
        plain: &[f64],
        p: &[f64],
        (off, keys, q): (f64, &Keys, &[f64]),
        of_keys: &mut [Noise],
    ) -> Noise {
        let mut through = p.to_vec();
        self.derivative.through_f64(place, plain, &mut through);
        let dim = self.problem.head_dim;
        let off = off * self.problem.scale().abs();
        let by_key = Noise::of(q, off);
        for (of_key, p) in of_keys.iter_mut().zip(&through) {
            let square = by_key.each(|x| (x * p).powi(2));
            if square.rms.is_finite() && square.largest.is_finite() {
                of_key.add(square);
            }
        }
        let mut moved = vec![0.0; dim];
        for (at, p) in through.iter().enumerate().filter(|(_, p)| **p != 0.0) {
            moved.iter_mut().zip(&keys.k[at * dim..]).for_each(|(to, x)| *to += p * x);
        }
        Noise::of(&moved, off)
    }

    /// The noise of a row with what rounding P and dS adds: each errs by at most one unit, the sum over keys by the root of
    /// the squares. Where few keys have most of a row, emulation may find it mild. The squares of the effect on dk are
    /// added to `dk_noise`.
    pub(super) fn of_terms(&self, noise: Noise, ds: &[f64], keys: &Keys, q: &[f64], dk_noise: &mut [f64]) -> Noise {
        let Some(unit) = self.unit() else { return noise };
        let (dim, off) = (q.len(), std::f64::consts::SQRT_2 * unit * self.problem.scale().abs());
        let mut squares = vec![0.0; dim];
        for (at, ds) in ds.iter().enumerate().filter(|(_, ds)| **ds != 0.0) {
            let square = (off * ds).powi(2);
            if !square.is_finite() {
                continue;
            }
            let (k, of_key) = (&keys.k[at * dim..][..dim], &mut dk_noise[at * dim..][..dim]);
            for e in 0..dim {
                squares[e] += square * k[e] * k[e];
                of_key[e] += square * q[e] * q[e];
            }
        }
        let mut all = noise.each(|x| x * x);
        all.add_largest(&squares);
        all.each(f64::sqrt)
    }
}
