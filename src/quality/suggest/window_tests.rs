//! Windows against plain attention in float64 and against every other window of small heads.
//!
//! Invariant: what is expected shares no code with the sums, the counts and the search that are tested. Only compiled for tests.

use super::*;
use crate::quality::head::{Head, Own};
use crate::quality::profile::Grid;
use crate::quality::suggest::Protect;
use crate::quality::suggest::tests::material;
use crate::quality::testing;

/// With protected cells, the first keys and the groups behind them hold each cell once: additional cells in `always`, all others by
/// their distance, as plain attention in float64 has them.
#[test]
fn sums_beside_protected_cells_hold_each_cell_once() {
    let n = 420;
    let grid = Grid { start: 20, extents: [4, 10, 10] };
    let head = testing::head(5, n, n, 16, 2.0);
    let dense = testing::dense(&head);
    let wanted = Wanted {
        target: Target::Mass(0.9),
        protect: Protect { text: true, first_frame: true, ..Protect::NONE },
        grid: Some(grid),
        most_masks: 2,
    };
    let made = material(vec![head], 64, Some(grid));
    let sums = Windows::new(&made, &wanted, true, &Control::new()).expect("summed");
    let beside = sums.beside.expect("protected cells");
    assert!(sums.groups.len() > 1, "keys beyond the first {MOST_SINKS}");
    let (mut always, mut distance) = (0.0, vec![0.0; 2 * n - 1]);
    for (at, p) in dense.p.iter().enumerate() {
        let (q, kv, p) = (at / n, at % n, p / n as f64);
        match beside.keeps(q, kv) {
            true => always += p,
            false => distance[q + n - 1 - kv] += p,
        }
    }
    assert!((sums.always - always).abs() < 1e-6, "{} {always}", sums.always);
    for (at, (found, want)) in sums.distance.iter().zip(&distance).enumerate() {
        assert!((found - want).abs() < 1e-7, "{at}: {found} {want}");
    }
}

/// Bands of 7 queries and 5 keys, with this mass at each distance of -4 to 6.
fn bands(mass: &[f64; 11], most: (usize, usize)) -> Bands {
    let cells = |d: i64| (0..7i64).filter(|q| (0..5).contains(&(q - d))).count() as f64;
    let running = |of: Vec<f64>| {
        let mut sums = vec![0.0];
        of.iter().for_each(|x| sums.push(sums[sums.len() - 1] + x));
        sums
    };
    let (mass, cells) = (running(mass.to_vec()), running((-4..7).map(cells).collect()));
    Bands { mass, cells, kept: 0.5, sinks: 3.0, zero: 4, most }
}

#[test]
fn the_narrowest_and_the_widest_band_are_those_of_all_bands() {
    let masses = [
        [0.0, 1.0, 0.0, 2.0, 8.0, 4.0, 2.0, 1.0, 0.0, 1.0, 0.5],
        [4.0, 1.0, 3.0, 0.25, 1.0, 0.25, 0.5, 4.0, 2.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.0, 1.0, 1.5, 1.25, 1.0, 0.75, 0.5, 0.25],
    ];
    for (mass, most) in masses.iter().flat_map(|mass| [(mass, (6, 4)), (mass, (6, 0))]) {
        let bands = bands(mass, most);
        let all: Vec<(usize, usize)> =
            (0..=most.0).flat_map(|back| (0..=most.1).map(move |ahead| (back, ahead))).collect();
        // 0.5 of the first keys, and the distances -ahead to back
        let of = |(back, ahead): (usize, usize)| {
            let at = 4 - ahead..=4 + back;
            let cells =
                at.clone().map(|d| (0..7).filter(|q| (0..5).contains(&(q + 4 - d as i64))).count()).sum::<usize>();
            (0.5 + mass[at].iter().sum::<f64>(), 3.0 + cells as f64)
        };
        for (back, ahead) in &all {
            assert_eq!((bands.mass(*back, *ahead), bands.cells(*back, *ahead)), of((*back, *ahead)));
        }
        for tenths in 5..220 {
            let wanted = f64::from(tenths) / 10.0;
            let found = bands.narrowest(wanted);
            let least = all.iter().filter(|b| of(**b).0 >= wanted).map(|b| of(*b).1).fold(f64::INFINITY, f64::min);
            if least.is_finite() {
                assert!(of(found).0 >= wanted && of(found).1 == least, "{wanted}: {found:?} {least}");
            } else {
                assert_eq!(found, most, "none keeps {wanted}");
            }
        }
        for budget in 0..45 {
            let budget = f64::from(budget);
            let found = bands.widest(budget);
            let fitting =
                all.iter().filter(|b| of(**b).1 <= budget).map(|b| of(*b).0).fold(f64::NEG_INFINITY, f64::max);
            if fitting.is_finite() {
                assert!(of(found).1 <= budget && of(found).0 == fitting, "{budget}: {found:?} {fitting}");
            } else {
                assert_eq!(found, (0, 0), "none has {budget} cells or fewer");
            }
        }
    }
}

/// Rows that keep no key, and a length that is no multiple of a tile.
fn with_empty_rows(seed: u64, q_len: usize, kv_len: usize) -> Head {
    let keep: Vec<u8> = (0..q_len * kv_len).map(|at| u8::from(!(at / kv_len).is_multiple_of(7))).collect();
    Head { own: Own::Keep(keep.into()), ..testing::head(seed, q_len, kv_len, 8, 2.0) }
}

/// Every sum holds the mean over heads of the mean over their judged rows, with and without additional cells.
#[test]
fn sums_of_several_heads_are_those_of_plain_attention() {
    let (q_len, kv_len) = (150, 420);
    let heads = || vec![testing::head(1, q_len, kv_len, 8, 2.0), with_empty_rows(2, q_len, kv_len)];
    let dense: Vec<testing::Dense> = heads().iter().map(testing::dense).collect();
    let grid = Grid { start: 20, extents: [2, 6, 10] };
    let made = material(heads(), 64, None);
    for protect in [Protect::NONE, Protect { text: true, first_frame: true, ..Protect::NONE }] {
        let wanted = Wanted { target: Target::Mass(0.9), protect, grid: Some(grid), most_masks: 2 };
        let sums = Windows::new(&made, &wanted, true, &Control::new()).expect("summed");
        assert_eq!(sums.beside.is_some(), protect != Protect::NONE);
        let keeps = |q: usize, kv: usize| sums.beside.is_some_and(|b| b.keeps(q, kv));
        let mean = |q: usize, kv: usize| -> f64 {
            let of = |d: &testing::Dense| d.p[q * kv_len + kv] / d.lse.iter().filter(|x| x.is_finite()).count() as f64;
            dense.iter().map(of).sum::<f64>() / 2.0
        };
        let (mut always, mut distance) = (0.0, vec![0.0; q_len + kv_len - 1]);
        let ends: Vec<usize> = sums.groups.iter().map(|(end, _)| *end).collect();
        assert_eq!(ends, [320, 384, 420]);
        let mut groups = vec![vec![0.0; q_len + kv_len - 1]; ends.len()];
        for (q, kv) in (0..q_len).flat_map(|q| (0..kv_len).map(move |kv| (q, kv))) {
            let (p, at) = (mean(q, kv), q + kv_len - 1 - kv);
            if kv < 256 {
                let wanted = if keeps(q, kv) { 0.0 } else { p };
                assert!((f64::from(sums.first[q * 256 + kv]) - wanted).abs() < 1e-8, "{q} {kv}");
            }
            if keeps(q, kv) {
                always += p;
                continue;
            }
            distance[at] += p;
            if let Some(group) = ends.iter().position(|end| kv < *end).filter(|_| kv >= 256) {
                groups[group][at] += p;
            }
        }
        assert!((sums.always - always).abs() < 1e-6, "{} {always}", sums.always);
        for at in 0..distance.len() {
            assert!((sums.distance[at] - distance[at]).abs() < 1e-7, "{at}: {} {}", sums.distance[at], distance[at]);
            for (found, wanted) in sums.groups.iter().zip(&groups) {
                assert!((f64::from(found.1[at]) - wanted[at]).abs() < 1e-7, "{at} before {}", found.0);
            }
        }
    }
}

/// 105 blocks of keys are more than are looked at one by one.
#[test]
fn keys_after_the_first_are_added_in_groups_of_whole_blocks() {
    let made = material(vec![testing::head(1, 8, 420, 4, 1.0)], 4, None);
    let wanted = Wanted { target: Target::Mass(0.9), protect: Protect::NONE, grid: None, most_masks: 2 };
    let ends = |made: &Material| -> Vec<usize> {
        let sums = Windows::new(made, &wanted, true, &Control::new()).expect("summed");
        sums.groups.iter().map(|(end, _)| *end).collect()
    };
    assert_eq!(ends(&made), (33..53).map(|n| 8 * n).chain([420]).collect::<Vec<_>>());
    // 96 blocks are not
    let made = material(vec![testing::head(1, 8, 384, 4, 1.0)], 4, None);
    assert_eq!(ends(&made), (65..=96).map(|n| 4 * n).collect::<Vec<_>>());
}

/// The number that shapes are compared by is that of the blocks which a kernel visits.
#[test]
fn the_blocks_of_a_shape_are_those_that_its_mask_visits() {
    let grid = Grid { start: 5, extents: [2, 3, 2] };
    let (text, frame) = (Protect { text: true, ..Protect::NONE }, Protect { first_frame: true, ..Protect::NONE });
    let both = Protect { text: true, ..frame };
    for (q_len, kv_len, causal) in [(23, 23, false), (23, 23, true), (19, 31, false), (31, 19, false)] {
        let own = if causal { Own::Causal } else { Own::None };
        let head = Head { own, ..testing::head(3, q_len, kv_len, 4, 1.0) };
        for (block, protect) in [1, 4, 5].into_iter().flat_map(|b| [Protect::NONE, text, frame, both].map(|p| (b, p))) {
            let made = material(vec![head.clone()], block, None);
            assert_eq!(made.causal, causal);
            let wanted = Wanted { target: Target::Mass(0.9), protect, grid: Some(grid), most_masks: 2 };
            let windows = Windows::new(&made, &wanted, true, &Control::new()).expect("summed");
            let last = if causal { 0 } else { kv_len - 1 };
            for back in [0, 1, 4, 9, q_len - 1] {
                for ahead in [0, 3, 8, last].into_iter().filter(|ahead| *ahead <= last) {
                    for sinks in [0, 1, 4, 5, 11, kv_len] {
                        let shape = Shape { back, ahead, sinks };
                        let mask = made.blocks(&windows.form(shape), &Control::new()).expect("a mask");
                        let rows = 0..mask.grid().0;
                        let visited: usize = rows.flat_map(|i| mask.runs(0, 0, i)).map(|r| r.end - r.start).sum();
                        let what = format!("{q_len} x {kv_len}, {block}, {protect:?}, {causal}: {shape:?}");
                        assert_eq!(windows.blocks(shape), visited, "{what}");
                    }
                }
            }
        }
    }
}

/// Mass and cells of every window of a head, from plain attention.
struct Every {
    all: Vec<(Shape, f64, usize)>,
}

impl Every {
    fn of(heads: &[Head], causal: bool, fewest: usize) -> Every {
        let (q_len, kv_len) = (heads[0].lengths().q_len, heads[0].lengths().kv_len);
        let dense: Vec<testing::Dense> = heads.iter().map(testing::dense).collect();
        let mut all = Vec::new();
        for back in 0..q_len {
            for ahead in 0..if causal { 1 } else { kv_len } {
                for sinks in fewest..=kv_len {
                    let (mut mass, mut cells) = (0.0, 0);
                    for (q, kv) in (0..q_len).flat_map(|q| (0..kv_len).map(move |kv| (q, kv))) {
                        let near = kv + back >= q && kv <= q + ahead;
                        if (near || kv < sinks) && !(causal && kv > q) {
                            cells += 1;
                            mass += dense.iter().map(|d| d.p[q * kv_len + kv]).sum::<f64>();
                        }
                    }
                    all.push((Shape { back, ahead, sinks }, mass / (q_len * heads.len()) as f64, cells));
                }
            }
        }
        Every { all }
    }

    /// Fewest cells with so much mass.
    fn fewest(&self, mass: f64) -> usize {
        self.all.iter().filter(|w| w.1 >= mass).map(|w| w.2).min().expect("all cells have all mass")
    }
}

/// Blocks of one cell: the window with the fewest blocks of all that reach a mass, and the one with the most mass of all within a
/// budget.
#[test]
fn no_other_window_is_better_where_blocks_are_cells() {
    for (q_len, kv_len, causal, sinks) in [(14, 14, false, false), (13, 17, false, true), (18, 18, true, true)] {
        let own = if causal { Own::Causal } else { Own::None };
        let heads: Vec<Head> =
            (0..2).map(|n| Head { own: own.clone(), ..testing::head(n + 5, q_len, kv_len, 6, 2.0) }).collect();
        let every = Every::of(&heads, causal, usize::from(sinks));
        let made = material(heads, 1, None);
        let best = |target: Target| {
            let wanted = Wanted { target, protect: Protect { sinks, ..Protect::NONE }, grid: None, most_masks: 2 };
            propose(&made, &wanted, &Control::new()).expect("proposed").remove(0)
        };
        let cells = (q_len * kv_len) as f64;
        for tenths in 1..20 {
            let mass = f64::from(tenths) / 20.0;
            let found = best(Target::Mass(mass));
            let count = (found.density * cells).round() as usize;
            // rounding decides only where a window's mass is the target's
            assert!(found.mass >= mass - 1e-6, "{mass}: {found:?}");
            let (least, most) = (every.fewest(mass - 2e-6), every.fewest(mass + 2e-6));
            assert!((least..=most).contains(&count), "{mass}: {count}, not {least}: {found:?}");
        }
        for twentieths in 2..20 {
            let share = f64::from(twentieths) / 20.0;
            let found = best(Target::Blocks(share));
            let most = share * cells + 1e-9;
            let within = every.all.iter().filter(|w| w.2 as f64 <= most);
            let Some(mass) = within.map(|w| w.1).max_by(f64::total_cmp) else {
                // the least that there is, beyond the budget
                let form = Form::Window { back: 0, ahead: 0, sinks: usize::from(sinks), causal };
                assert_eq!(found.form, form, "{share}");
                continue;
            };
            assert!(found.density * cells <= most && found.mass >= mass - 2e-6, "{share}: {mass} {found:?}");
        }
    }
}

/// Sums by distance beyond first keys, and the cells counted there, are those of every band.
#[test]
fn bands_beyond_first_keys_hold_their_mass_and_cells() {
    for (q_len, kv_len, causal) in [(9, 9, true), (7, 11, false), (11, 7, false)] {
        let own = if causal { Own::Causal } else { Own::None };
        let heads = [Head { own, ..testing::head(4, q_len, kv_len, 4, 1.0) }];
        let every = Every::of(&heads, causal, 0);
        let dense = testing::dense(&heads[0]);
        let made = material(heads.to_vec(), 4, None);
        for (shape, mass, cells) in &every.all {
            let (mut kept, mut beyond) = (0.0, vec![0.0; q_len + kv_len - 1]);
            for (at, p) in dense.p.iter().enumerate() {
                let (q, kv, p) = (at / kv_len, at % kv_len, p / q_len as f64);
                if kv < shape.sinks { kept += p } else { beyond[q + kv_len - 1 - kv] += p }
            }
            let bands = Bands::new(&made, &beyond, kept, shape.sinks);
            assert_eq!(bands.cells(shape.back, shape.ahead), *cells as f64, "{shape:?}");
            assert!((bands.mass(shape.back, shape.ahead) - mass).abs() < 1e-12, "{shape:?}");
        }
    }
}

/// What a window says of itself: the mass inside of it, and what its first keys add outside of it.
#[test]
fn the_reason_of_a_window_is_its_mass_inside_and_that_of_its_first_keys_outside() {
    let (q_len, kv_len) = (150, 420);
    let heads = || vec![testing::head(1, q_len, kv_len, 8, 2.0), testing::head(2, q_len, kv_len, 8, 1.0)];
    let dense: Vec<testing::Dense> = heads().iter().map(testing::dense).collect();
    let made = material(heads(), 64, None);
    let wanted = Wanted { target: Target::Mass(0.9), protect: Protect::NONE, grid: None, most_masks: 2 };
    let windows = Windows::new(&made, &wanted, true, &Control::new()).expect("summed");
    for (back, ahead, sinks) in [(3, 2, 0), (3, 2, 5), (0, 0, 256), (30, 250, 256), (4, 330, 384), (149, 7, 420)] {
        let (mut inside, mut more) = (0.0, 0.0);
        for (q, kv) in (0..q_len).flat_map(|q| (0..kv_len).map(move |kv| (q, kv))) {
            let p = dense.iter().map(|d| d.p[q * kv_len + kv]).sum::<f64>() / (2 * q_len) as f64;
            match kv + back >= q && kv <= q + ahead {
                true => inside += p,
                false if kv < sinks => more += p,
                false => {}
            }
        }
        let Reason::Window { reach, near, first } = windows.why(Shape { back, ahead, sinks }) else {
            panic!("a window")
        };
        assert_eq!(reach, Reach::Around(back, ahead));
        assert!((near - inside).abs() < 1e-6, "{near} {inside}");
        assert_eq!(first.is_some(), sinks > 0);
        let (keys, added) = first.map_or((0, 0.0), |first| (first.keys, first.more));
        assert!(keys == sinks && (added - more).abs() < 1e-6, "{sinks}: {added} {more}");
    }
}

/// What equally many blocks and cells keep is told with the fewest first keys.
#[test]
fn of_equal_windows_the_one_with_the_fewest_first_keys_is_proposed() {
    for (causal, sinks) in [(true, false), (false, false), (true, true)] {
        let own = if causal { Own::Causal } else { Own::None };
        let made = material(vec![Head { own, ..testing::head(6, 20, 20, 4, 0.5) }], 4, None);
        let protect = Protect { sinks, ..Protect::NONE };
        let wanted = Wanted { target: Target::Mass(1.0), protect, grid: None, most_masks: 2 };
        let found = propose(&made, &wanted, &Control::new()).expect("proposed").remove(0);
        let ahead = if causal { 0 } else { 19 };
        assert!((found.mass - 1.0).abs() < 1e-6, "{found:?}");
        let Form::Window { sinks: kept, ahead: after, .. } = found.form else { panic!("{found:?}") };
        assert_eq!((kept, after), (usize::from(sinks), ahead));
    }
}
