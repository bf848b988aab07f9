//! Windows with sinks: the cheapest band and first keys that keep the mass.
//!
//! Invariant: the mean mass of every band with every looked-at number of first keys is exact, from sums by distance: each
//! number up to [`MOST_SINKS`], whole blocks of keys beyond. Of the bands that reach the target, the one with the fewest blocks is chosen, of equal ones that with the fewest cells: a planted
//! window is found. Must not know other forms.

use super::form::{Beside, Form};
use super::{Candidate, First, Kind, Material, Reach, Reason, Target, Wanted, cancelled};
use crate::base::{Control, Diagnostic};
use crate::quality::live::LiveHead;
use crate::quality::profile::Profile;
use crate::quality::scores::{ROWS, RowScratch, STEP, Scorer};
use rayon::prelude::*;

/// First keys up to which sinks are counted one by one.
const MOST_SINKS: usize = 256;
/// Larger numbers of sinks that are looked at: whole blocks of keys, as many as this.
const MOST_GROUPS: usize = 96;
/// The error of sums of float32 probabilities against a target.
const ROUNDING: f64 = 5e-7;

/// A window and its number of first keys.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Shape {
    back: usize,
    ahead: usize,
    sinks: usize,
}

/// A shape with its cost and mass.
#[derive(Clone, Copy, Debug)]
struct Priced {
    shape: Shape,
    blocks: usize,
    cells: f64,
    mass: f64,
}

/// One proposal: the best window, with the protected cells.
pub(super) fn propose(material: &Material, wanted: &Wanted, control: &Control) -> Result<Vec<Candidate>, Diagnostic> {
    Ok(vec![Windows::new(material, wanted, true, control)?.best(wanted.target, control)?])
}

/// Sums of some heads from which windows are fitted.
pub(super) struct Windows<'a> {
    material: &'a Material,
    /// Additional kept places.
    beside: Option<Beside>,
    /// Fewest and most first keys.
    sinks: [usize; 2],
    /// Mean mass by distance `q_idx - kv_idx` of the cells other than the additional ones; distance d has the index d +
    /// kv_len - 1.
    distance: Vec<f64>,
    /// The same cells of the first keys: [q_len][most sinks].
    first: Vec<f32>,
    /// Mean mass of the additional kept cells.
    always: f64,
    /// The keys after those counted one by one, in groups of whole blocks: where each ends, and its mean mass by
    /// distance.
    groups: Vec<(usize, Vec<f32>)>,
}

/// Sums and buffers of one thread.
struct Sums {
    distance: Vec<f64>,
    always: f64,
    query: Vec<f32>,
    tile: Vec<f32>,
    running: RowScratch,
}

impl<'a> Windows<'a> {
    /// Sums up the heads; `protected` keeps the tokens outside the grid and the first frame as in `wanted`. Errors:
    /// `cancelled`.
    pub(super) fn new(
        material: &'a Material,
        wanted: &Wanted,
        protected: bool,
        control: &Control,
    ) -> Result<Windows<'a>, Diagnostic> {
        let lengths = material.lengths();
        let most = MOST_SINKS.min(lengths.kv_len);
        let mut made = Windows {
            material,
            beside: protected.then(|| Beside::of(wanted, lengths)).flatten(),
            sinks: [usize::from(wanted.protect.sinks), most],
            distance: vec![0.0; lengths.q_len + lengths.kv_len - 1],
            first: vec![0.0; lengths.q_len * most],
            always: 0.0,
            groups: Vec::new(),
        };
        let size = material.block().kv;
        let step = (lengths.kv_len.div_ceil(size).div_ceil(MOST_GROUPS)).max(1) * size;
        let ends = (1..=lengths.kv_len.div_ceil(step)).map(|n| (n * step).min(lengths.kv_len));
        made.groups = ends.filter(|end| *end > most).map(|end| (end, vec![0.0; made.distance.len()])).collect();
        material.heads.iter().zip(&material.profiles).for_each(|(head, profile)| made.add(head, profile, control));
        if control.is_cancelled() { Err(cancelled()) } else { Ok(made) }
    }

    /// Adds a head: its first keys here, the others by groups. Without additional places, sums by distance are known.
    fn add(&mut self, head: &LiveHead, profile: &Profile, control: &Control) {
        let heads = self.material.heads.len() as f64;
        let (beside, most, kv_len) = (self.beside, self.sinks[1], head.masses.lengths.kv_len);
        let weight = 1.0 / (heads * head.masses.lse.iter().filter(|x| x.is_finite()).count().max(1) as f64);
        self.add_groups(head, weight, control);
        let bins = if beside.is_some() { self.distance.len() } else { 0 };
        let sums = || Sums {
            distance: vec![0.0; bins],
            always: 0.0,
            query: Vec::new(),
            tile: vec![0.0; ROWS * STEP],
            running: RowScratch::default(),
        };
        let rows = |mut sums: Sums, (at, first): (usize, &mut [f32])| {
            let rows = at * ROWS..at * ROWS + first.len() / most;
            for start in (0..if control.is_cancelled() { 0 } else { most }).step_by(STEP) {
                let (from, columns) = Scorer::columns(&(start..(start + STEP).min(most)));
                let cells = &mut sums.tile[..rows.len() * columns];
                head.scorer.tile(&rows, from, columns, &mut sums.query, cells);
                head.scorer.probabilities(&head.masses.lse[rows.clone()], columns, cells, &mut sums.running);
                let lines = cells.chunks_exact(columns).zip(first.chunks_exact_mut(most));
                for (q, (p, first)) in rows.clone().zip(lines) {
                    for (kv, p) in (from..most).zip(p).filter(|(kv, _)| *kv >= start) {
                        let p = weight * f64::from(*p);
                        if beside.is_some_and(|b| b.keeps(q, kv)) {
                            sums.always += p;
                            continue;
                        }
                        first[kv] += p as f32;
                        if bins > 0 {
                            sums.distance[q + kv_len - 1 - kv] += p;
                        }
                    }
                }
            }
            sums
        };
        let joined = |mut a: Sums, b: Sums| {
            a.distance.iter_mut().zip(&b.distance).for_each(|(to, x)| *to += x);
            Sums { always: a.always + b.always, ..a }
        };
        let found = self.first.par_chunks_mut(ROWS * most).enumerate().fold(sums, rows).reduce(sums, joined);
        self.always += found.always;
        match beside {
            Some(_) => self.distance.iter_mut().zip(&found.distance).for_each(|(to, x)| *to += x),
            None => self.distance.iter_mut().zip(&profile.distance).for_each(|(to, x)| *to += x / heads),
        }
    }

    /// Adds a head's mass in each group of keys, by distance; with additional places, also to all distances and to theirs.
    fn add_groups(&mut self, head: &LiveHead, weight: f64, control: &Control) {
        let (beside, most, lengths) = (self.beside, self.sinks[1], head.masses.lengths);
        let (q_len, kv_len) = (lengths.q_len, lengths.kv_len);
        let (mut always, mut distance) = (0.0, std::mem::take(&mut self.distance));
        let starts: Vec<usize> = std::iter::once(most).chain(self.groups.iter().map(|(end, _)| *end)).collect();
        let per_task = (q_len.div_ceil(ROWS)).div_ceil(rayon::current_num_threads()).max(1);
        for ((end, total), start) in self.groups.iter_mut().zip(starts) {
            if control.is_cancelled() {
                break;
            }
            let scratch = || Sums {
                distance: vec![0.0; total.len()],
                always: 0.0,
                query: Vec::new(),
                tile: vec![0.0; ROWS * STEP],
                running: RowScratch::default(),
            };
            let rows = |mut sums: Sums, at: usize| {
                let rows = at * ROWS..((at + 1) * ROWS).min(q_len);
                for from in (start..*end).step_by(STEP) {
                    let first = from;
                    let (from, columns) = Scorer::columns(&(from..(from + STEP).min(*end)));
                    let cells = &mut sums.tile[..rows.len() * columns];
                    head.scorer.tile(&rows, from, columns, &mut sums.query, cells);
                    head.scorer.probabilities(&head.masses.lse[rows.clone()], columns, cells, &mut sums.running);
                    for (q, line) in rows.clone().zip(cells.chunks_exact(columns)) {
                        let own = (from..kv_len).zip(line).filter(|(kv, _)| (first..*end).contains(kv));
                        for (kv, p) in own {
                            match beside.is_some_and(|b| b.keeps(q, kv)) {
                                true => sums.always += weight * f64::from(*p),
                                false => sums.distance[q + kv_len - 1 - kv] += weight * f64::from(*p),
                            }
                        }
                    }
                }
                sums
            };
            let tasks = (0..q_len.div_ceil(ROWS)).into_par_iter().with_min_len(per_task);
            for found in tasks.fold(scratch, rows).collect::<Vec<Sums>>() {
                total.iter_mut().zip(&found.distance).for_each(|(to, x)| *to += *x as f32);
                if beside.is_some() {
                    always += found.always;
                    distance.iter_mut().zip(&found.distance).for_each(|(to, x)| *to += x);
                }
            }
        }
        (self.distance, self.always) = (distance, self.always + always);
    }

    /// The cheapest window of those that reach the target, or the best within the budget. Errors: `cancelled`.
    pub(super) fn best(&self, target: Target, control: &Control) -> Result<Candidate, Diagnostic> {
        let (q_len, kv_len) = (self.material.lengths().q_len, self.material.lengths().kv_len);
        let (mut beyond, mut kept) = (self.distance.clone(), self.always);
        let mut best: Option<Priced> = None;
        let numbers = (0..=self.sinks[1]).map(|sinks| (sinks, None));
        let groups = self.groups.iter().map(|(end, distance)| (*end, Some(distance)));
        for (sinks, group) in numbers.chain(groups) {
            if control.is_cancelled() {
                return Err(cancelled());
            }
            if let Some(group) = group {
                kept += group.iter().map(|p| f64::from(*p)).sum::<f64>();
                beyond.iter_mut().zip(group).for_each(|(to, p)| *to -= f64::from(*p));
            } else if let Some(kv) = sinks.checked_sub(1) {
                for q in 0..q_len {
                    let p = f64::from(self.first[q * self.sinks[1] + kv]);
                    kept += p;
                    beyond[q + kv_len - 1 - kv] -= p;
                }
            }
            if sinks < self.sinks[0] {
                continue;
            }
            let found = self.fitted(&beyond, kept, sinks, target);
            let better = |a: &Priced, b: &Priced| match target {
                Target::Mass(mass) => {
                    let missed = |x: &Priced| x.mass < mass - ROUNDING;
                    missed(b).cmp(&missed(a)).then(b.blocks.cmp(&a.blocks)).then(b.cells.total_cmp(&a.cells)).is_gt()
                }
                Target::Blocks(_) => a.mass > b.mass + ROUNDING,
            };
            if best.as_ref().is_none_or(|best| better(&found, best)) {
                best = Some(found);
            }
        }
        let best = best.ok_or_else(|| Diagnostic::error("suggest-heads", "the window has no keys"))?.shape;
        self.material.judge(Kind::WindowSinks, self.why(best), self.form(best), control)
    }

    /// The window with fewest cells that reaches the target, or with most mass within the budget.
    fn fitted(&self, beyond: &[f64], kept: f64, sinks: usize, target: Target) -> Priced {
        let bands = Bands::new(self.material, beyond, kept, sinks);
        let priced = |(back, ahead): (usize, usize)| {
            let shape = Shape { back, ahead, sinks };
            Priced { shape, blocks: self.blocks(shape), cells: bands.cells(back, ahead), mass: bands.mass(back, ahead) }
        };
        match target {
            Target::Mass(mass) => priced(bands.narrowest(mass - ROUNDING)),
            Target::Blocks(share) => {
                let (lengths, size) = (self.material.lengths(), self.material.block());
                let (rows, columns) = size.grid(lengths);
                let most = share * (rows * columns) as f64 + 1e-9;
                let cells = |spill: f64| {
                    share * (lengths.q_len * lengths.kv_len) as f64 - spill * (size.kv * lengths.q_len) as f64
                };
                // blocks reach beyond the band on either side
                let tries = (0..=12).map(|n| priced(bands.widest(cells(0.25 * f64::from(n)))));
                let least = priced((0, 0));
                tries.into_iter().find(|found| found.blocks as f64 <= most).unwrap_or(Priced { mass: -1.0, ..least })
            }
        }
    }

    /// Blocks that a shape visits.
    fn blocks(&self, s: Shape) -> usize {
        let (lengths, size) = (self.material.lengths(), self.material.block());
        let (rows, columns) = size.grid(lengths);
        let whole = |rows: bool, at: usize| {
            let (size, len) = if rows { (size.q, lengths.q_len) } else { (size.kv, lengths.kv_len) };
            let range = at * size..((at + 1) * size).min(len);
            self.beside.is_some_and(|b| if rows { b.meets_rows(&range) } else { b.meets_keys(&range) })
        };
        let mut before = vec![0];
        (0..columns).for_each(|j| before.push(before[j] + usize::from(whole(false, j))));
        let first = s.sinks.div_ceil(size.kv);
        let row = |i: usize| {
            let (start, end) = (i * size.q, ((i + 1) * size.q).min(lengths.q_len));
            let seen = if self.material.causal { end.div_ceil(size.kv).min(columns) } else { columns };
            if whole(true, i) {
                return seen;
            }
            let first_key = start.saturating_sub(s.back);
            // queries behind the last key may see none of its block
            let low = if first_key < lengths.kv_len { (first_key / size.kv).min(seen) } else { seen };
            let high = ((end + s.ahead).div_ceil(size.kv)).min(seen).max(low);
            // sinks, the additional cells between them and the band, the band, the additional cells after it
            let sinks = first.min(seen);
            let low = low.max(sinks.min(high));
            let between = |from: usize, to: usize| if from < to { before[to] - before[from] } else { 0 };
            sinks + between(sinks, low) + (high - low) + between(high.max(sinks), seen)
        };
        (0..rows).map(row).sum()
    }

    fn form(&self, s: Shape) -> Form {
        let form = Form::Window { back: s.back, ahead: s.ahead, sinks: s.sinks, causal: self.material.causal };
        Form::beside(self.beside, form)
    }

    fn why(&self, s: Shape) -> Reason {
        let heads = self.material.profiles.len() as f64;
        let near = |p: &Profile| p.within(-(s.ahead as i64), s.back as i64);
        let near = self.material.profiles.iter().map(near).sum::<f64>() / heads;
        let reach = if self.material.causal { Reach::Last(s.back + 1) } else { Reach::Around(s.back, s.ahead) };
        let first = match s.sinks {
            0 => None,
            n => {
                let outside = |at: usize| {
                    let (q, kv) = ((at / self.sinks[1]) as i64, (at % self.sinks[1]) as i64);
                    (kv as usize) < n && !(-(s.ahead as i64)..=s.back as i64).contains(&(q - kv))
                };
                let more: f64 =
                    (0..self.first.len()).filter(|at| outside(*at)).map(|at| f64::from(self.first[at])).sum();
                let zero = self.material.lengths().kv_len as i64 - 1;
                let far = |(at, _): &(usize, &f32)| !(-(s.ahead as i64)..=s.back as i64).contains(&(*at as i64 - zero));
                let groups = self.groups.iter().filter(|(end, _)| *end <= n);
                let more = more
                    + groups
                        .flat_map(|(_, sums)| sums.iter().enumerate().filter(far))
                        .map(|(_, p)| f64::from(*p))
                        .sum::<f64>();
                Some(First { keys: n, more })
            }
        };
        Reason::Window { reach, near, first }
    }
}

/// Mass and cells of every band beyond some first keys, as running sums by distance.
struct Bands {
    mass: Vec<f64>,
    cells: Vec<f64>,
    /// For the first keys.
    kept: f64,
    sinks: f64,
    zero: usize,
    most: (usize, usize),
}

impl Bands {
    fn new(material: &Material, beyond: &[f64], kept: f64, sinks: usize) -> Bands {
        let (q_len, kv_len) = (material.lengths().q_len as i64, material.lengths().kv_len as i64);
        let first = sinks as i64;
        let running = |of: &mut dyn Iterator<Item = f64>| {
            let mut sum = 0.0;
            std::iter::once(0.0)
                .chain(of.map(|x| {
                    sum += x;
                    sum
                }))
                .collect()
        };
        let length = |d: i64| ((q_len.min(kv_len + d) - (d + first).max(0)).max(0)) as f64;
        let hidden = |d: &i64| material.causal && *d < 0;
        let of_sinks = |kv: i64| if material.causal { (q_len - kv).max(0) } else { q_len };
        Bands {
            mass: running(&mut beyond.iter().copied()),
            cells: running(&mut (1 - kv_len..q_len).map(|d| if hidden(&d) { 0.0 } else { length(d) })),
            kept,
            sinks: (0..first).map(of_sinks).sum::<i64>() as f64,
            zero: kv_len as usize - 1,
            most: (q_len as usize - 1, if material.causal { 0 } else { kv_len as usize - 1 }),
        }
    }

    fn sum(&self, of: &[f64], back: usize, ahead: usize) -> f64 {
        of[self.zero + back + 1] - of[self.zero - ahead]
    }

    fn mass(&self, back: usize, ahead: usize) -> f64 {
        self.kept + self.sum(&self.mass, back, ahead)
    }

    fn cells(&self, back: usize, ahead: usize) -> f64 {
        self.sinks + self.sum(&self.cells, back, ahead)
    }

    /// The window with the fewest cells that keeps `mass`; the widest if none does.
    fn narrowest(&self, mass: f64) -> (usize, usize) {
        let (most_back, mut ahead) = self.most;
        let mut best: Option<(f64, usize, usize)> = None;
        for back in 0..=most_back {
            if self.mass(back, ahead) < mass {
                continue;
            }
            while ahead > 0 && self.mass(back, ahead - 1) >= mass {
                ahead -= 1;
            }
            let cells = self.cells(back, ahead);
            if best.is_none_or(|(least, ..)| cells < least) {
                best = Some((cells, back, ahead));
            }
            if ahead == 0 {
                break;
            }
        }
        best.map_or(self.most, |(_, back, ahead)| (back, ahead))
    }

    /// The window with the most mass of at most this many cells; the narrowest if none fits.
    fn widest(&self, cells: f64) -> (usize, usize) {
        let (most_back, mut ahead) = self.most;
        let mut best = (f64::NEG_INFINITY, 0, 0);
        for back in 0..=most_back {
            while ahead > 0 && self.cells(back, ahead) > cells {
                ahead -= 1;
            }
            if self.cells(back, ahead) > cells {
                break;
            }
            let mass = self.mass(back, ahead);
            if mass > best.0 + 1e-12 {
                best = (mass, back, ahead);
            }
        }
        (best.1, best.2)
    }
}

#[cfg(test)]
#[path = "window_tests.rs"]
mod tests;
