//! Parameters planted in synthetic q and k are found again, and lists of blocks reach the ceiling.
//!
//! Invariant: planted structure is uniform over its cells, so that one cell less would miss the target. Only compiled
//! for tests.

use super::*;
use crate::ir::cell::{Cell, eval};
use crate::quality::head::{Head, Own};
use crate::quality::masses::masses;
use crate::quality::profile::profile;
use crate::quality::scores::Scorer;
use crate::quality::testing::head;

/// A head of `n` tokens that looks at the planted cells, all alike: keys are unit vectors, and q adds up those of its cells.
pub(super) fn planted(n: usize, keeps: impl Fn(usize, usize) -> bool) -> Head {
    let k = (0..n * n).map(|at| f32::from(u8::from(at / n == at % n))).collect();
    let q = (0..n * n).map(|at| if keeps(at / n, at % n) { 20.0 } else { 0.0 }).collect();
    Head { scale: 1.0, ..Head::new((n, n), n, q, k, None).unwrap() }
}

pub(super) fn material(heads: Vec<Head>, block: usize, grid: Option<Grid>) -> Material {
    let control = Control::new();
    let mut made = Vec::new();
    let mut profiles = Vec::new();
    for (h, head) in heads.into_iter().enumerate() {
        let head = Head { place: (0, h), ..head };
        let found = masses(&head, BlockSize::square(block), true, &control).unwrap();
        let scorer = Scorer::new(&head);
        profiles.push(profile(&scorer, &found, grid, &control).unwrap());
        made.push(LiveHead::new(scorer, found));
    }
    Material::new(Arc::new(made), profiles).unwrap()
}

fn wanted(target: Target) -> Wanted {
    Wanted { target, protect: Protect::NONE, grid: None, most_masks: 2 }
}

fn named<'a>(all: &'a [Candidate], name: &str) -> &'a Candidate {
    all.iter().find(|c| c.kind.to_string() == name).unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn heads_of_which_no_row_can_be_judged_are_refused() {
    let broken = Head::new((16, 16), 4, vec![f32::NAN; 64], vec![1.0; 64], None).unwrap();
    let control = Control::new();
    let found = masses(&broken, BlockSize::square(8), true, &control).unwrap();
    let scorer = Scorer::new(&broken);
    let profiles = vec![profile(&scorer, &found, None, &control).unwrap()];
    let why = Material::new(Arc::new(vec![LiveHead::new(scorer, found)]), profiles).err().unwrap();
    assert!(why.code == "suggest-rows" && why.hint.is_some(), "{why:?}");
}

#[test]
fn a_planted_window_with_sinks_is_found_exactly() {
    let keeps = |q: usize, kv: usize| kv < 4 || (kv <= q && q - kv <= 37) || (kv > q && kv - q <= 6);
    let found = suggest(&material(vec![planted(192, keeps)], 16, None), &wanted(Target::Mass(0.9999)), &Control::new())
        .unwrap();
    let form = Form::Window { back: 37, ahead: 6, sinks: 4, causal: false };
    assert_eq!(named(&found, "window + sinks").form, form);
    // rows see their cells alike: of each, the share in the window and the share of the first four keys before it
    let share = |of: &dyn Fn(usize, usize) -> bool| -> f64 {
        let row = |q: usize| {
            let seen = (0..192).filter(|kv| keeps(q, *kv));
            seen.clone().filter(|kv| of(q, *kv)).count() as f64 / seen.count() as f64
        };
        100.0 * (0..192).map(row).sum::<f64>() / 192.0
    };
    let inside = |q: usize, kv: usize| (kv <= q && q - kv <= 37) || (kv > q && kv - q <= 6);
    let (near, first) = (share(&inside), share(&|q, kv| kv < 4 && !inside(q, kv)));
    let why = format!("37 keys before and 6 after keep {near:.1}% of the mass, the first 4 keys {first:.1}% more");
    assert_eq!(named(&found, "window + sinks").why.to_string(), why);
    let causal = planted(192, |q, kv| kv < 2 || q.abs_diff(kv) <= 20);
    let causal = Head { own: Own::Causal, ..causal };
    let found = suggest(&material(vec![causal], 16, None), &wanted(Target::Mass(0.9999)), &Control::new()).unwrap();
    assert_eq!(named(&found, "window + sinks").form, Form::Window { back: 20, ahead: 0, sinks: 2, causal: true });
    let why = named(&found, "window + sinks").why.to_string();
    assert!(why.starts_with("the last 21 keys keep ") && why.contains("of the mass, the first 2 keys "), "{why}");
}

#[test]
fn any_number_of_planted_sinks_is_found_exactly() {
    for (sinks, back, ahead) in [(6, 20, 9), (150, 11, 3), (0, 30, 30), (13, 0, 25)] {
        let keeps = move |q: usize, kv: usize| kv < sinks || (kv <= q && q - kv <= back) || (kv > q && kv - q <= ahead);
        let made = material(vec![planted(256, keeps)], 16, None);
        let found = suggest(&made, &wanted(Target::Mass(0.9999)), &Control::new()).unwrap();
        assert_eq!(named(&found, "window + sinks").form, Form::Window { back, ahead, sinks, causal: false });
    }
    // beyond those counted one by one, whole blocks of keys are tried
    let keeps = |q: usize, kv: usize| kv < 448 || (kv <= q && q - kv <= 20);
    let made = material(vec![planted(640, keeps)], 64, None);
    let found = suggest(&made, &wanted(Target::Mass(0.9999)), &Control::new()).unwrap();
    assert_eq!(named(&found, "window + sinks").form, Form::Window { back: 20, ahead: 0, sinks: 448, causal: false });
    let causal = Head { own: Own::Causal, ..planted(256, |q, kv| kv < 5 || q.abs_diff(kv) <= 40) };
    let found = suggest(&material(vec![causal], 32, None), &wanted(Target::Mass(0.9999)), &Control::new()).unwrap();
    assert_eq!(named(&found, "window + sinks").form, Form::Window { back: 40, ahead: 0, sinks: 5, causal: true });
}

#[test]
fn a_window_under_a_budget_is_the_best_of_all_windows_within_it() {
    let made = material(vec![head(1, 96, 96, 16, 3.0)], 16, None);
    let judged = |back, ahead, sinks| {
        let form = Form::Window { back, ahead, sinks, causal: false };
        made.judge(Kind::WindowSinks, Reason::Part, form, &Control::new()).unwrap()
    };
    let steps = |most: usize| (0..=most).step_by(5);
    let all: Vec<Candidate> = steps(95)
        .flat_map(|back| steps(95).map(move |ahead| (back, ahead)))
        .flat_map(|(back, ahead)| [0, 16].map(|sinks| judged(back, ahead, sinks)))
        .collect();
    for share in [0.3, 0.45, 0.6] {
        let wanted = wanted(Target::Blocks(share));
        let found = named(&suggest(&made, &wanted, &Control::new()).unwrap(), "window + sinks").clone();
        let within = all.iter().filter(|w| w.density <= share + 1e-9).map(|w| w.mass);
        let best = within.fold(0.0, f64::max);
        println!("{share}: {} of {best}", found.mass);
        assert!(found.density <= share + 1e-9 && found.mass >= best - 1e-6, "{share}: {best} {found:?}");
    }
}

#[test]
fn planted_keys_and_distances_are_found_exactly() {
    let keeps = |q: usize, kv: usize| kv == 70 || kv == 71 || kv == 150 || q == kv || q == kv + 100;
    let made = material(vec![planted(256, keeps)], 32, None);
    let found = suggest(&made, &wanted(Target::Mass(0.9999)), &Control::new()).unwrap();
    let (lines, blocks) = (named(&found, "keys + distances"), named(&found, "columns + diagonals"));
    let (columns, diagonals) = (vec![[70, 72], [150, 151]], vec![[0, 1], [100, 101]]);
    assert_eq!(lines.form, Form::Stripes { block: 1, columns, diagonals, causal: false });
    assert!(lines.mass >= 0.9999 - 1e-6 && lines.density <= blocks.density + 1e-9, "{lines:?}");
}

#[test]
fn planted_columns_and_diagonals_are_found_exactly() {
    let keeps = |q: usize, kv: usize| {
        let (i, j) = ((q / 16) as i64, (kv / 16) as i64);
        j == 3 || j == 4 || [0, 5, -2].contains(&(i - j))
    };
    let found = suggest(&material(vec![planted(192, keeps)], 16, None), &wanted(Target::Mass(0.9999)), &Control::new())
        .unwrap();
    let form =
        Form::Stripes { block: 16, columns: vec![[3, 5]], diagonals: vec![[-2, -1], [0, 1], [5, 6]], causal: false };
    assert_eq!(named(&found, "columns + diagonals").form, form);
}

#[test]
fn a_planted_box_is_found_exactly() {
    let grid = Grid { extents: [4, 6, 7], start: 8 };
    let keeps = move |q: usize, kv: usize| {
        let tokens = grid.tokens();
        if !tokens.contains(&q) || !tokens.contains(&kv) {
            return q == kv;
        }
        let (a, b) = (grid.place(q), grid.place(kv));
        (0..3).all(|n| a[n].abs_diff(b[n]) <= [1, 1, 2][n])
    };
    let wanted = Wanted { grid: Some(grid), ..wanted(Target::Mass(0.9999)) };
    let found = suggest(&material(vec![planted(176, keeps)], 16, Some(grid)), &wanted, &Control::new()).unwrap();
    let boxed = named(&found, "box on the grid");
    // at its edges the box is moved inwards, so that it holds the planted cells and some more
    assert_eq!(boxed.form, Form::Box { grid, kernel: [3, 3, 5], first_frame: false });
    assert!(boxed.mass > 0.9999, "{}", boxed.mass);
    assert!(
        boxed.why.to_string().starts_with("3 frames, 3 rows and 5 columns around each query keep 100.0%"),
        "{}",
        boxed.why
    );
}

#[test]
fn a_box_under_a_budget_has_the_most_mass_of_so_many_tokens() {
    let grid = Grid { extents: [4, 6, 7], start: 0 };
    let near = |q: usize, kv: usize| {
        let (a, b) = (grid.place(q), grid.place(kv));
        (0..3).all(|n| a[n].abs_diff(b[n]) <= [1, 1, 2][n])
    };
    let made = material(vec![planted(168, near)], 16, Some(grid));
    let of = |tokens: f64| {
        let wanted = Wanted { grid: Some(grid), ..wanted(Target::Blocks(tokens / 168.0)) };
        grid::propose(&made, &wanted, &Control::new()).unwrap().remove(0)
    };
    // 3 x 3 x 5 tokens hold all; with one fewer some side is shorter
    let whole = of(45.5);
    assert_eq!(whole.form, Form::Box { grid, kernel: [3, 3, 5], first_frame: false });
    let less = of(44.5);
    let Form::Box { kernel, .. } = less.form else { panic!("{less:?}") };
    assert!(kernel.iter().zip([4, 6, 7]).map(|(k, n)| (*k).min(n)).product::<usize>() <= 44, "{kernel:?}");
    // of all boxes of at most 44 tokens the one with the most mass by offset
    let sides = [1usize, 3, 5, 7, 9, 11, 13];
    // mass by frames, rows and columns apart, without a direction
    let mut apart = [[[0.0f64; 7]; 6]; 4];
    for q in 0..168 {
        let seen: Vec<usize> = (0..168).filter(|kv| near(q, *kv)).collect();
        for kv in &seen {
            let (a, b) = (grid.place(q), grid.place(*kv));
            apart[a[0].abs_diff(b[0])][a[1].abs_diff(b[1])][a[2].abs_diff(b[2])] += 1.0 / (168 * seen.len()) as f64;
        }
    }
    let mass = |kernel: [usize; 3]| -> f64 {
        let rows = apart.iter().take(kernel[0] / 2 + 1).flat_map(|frame| frame.iter().take(kernel[1] / 2 + 1));
        rows.flat_map(|row| row.iter().take(kernel[2] / 2 + 1)).sum()
    };
    let all = sides.iter().flat_map(|t| sides.iter().flat_map(|h| sides.iter().map(|w| [*t, *h, *w])));
    let tokens = |kernel: &[usize; 3]| kernel.iter().zip([4, 6, 7]).map(|(k, n)| (*k).min(n)).product::<usize>();
    let best = all.filter(|k| tokens(k) <= 44).map(mass).fold(0.0, f64::max);
    assert!((mass(kernel) - best).abs() < 1e-4, "{kernel:?} {best}");
    assert!(less.why.to_string().contains(&format!("keep {:.1}% of the mass", 100.0 * best)), "{}", less.why);
}

#[test]
fn forms_of_the_grid_need_a_grid_and_later_keys() {
    let grid = Grid { extents: [2, 4, 8], start: 0 };
    let plain = || planted(64, |q, kv| q.abs_diff(kv) <= 9);
    let wanted = Wanted { grid: Some(grid), ..wanted(Target::Mass(0.9)) };
    let some = |made: &Material, wanted: &Wanted| {
        let found =
            [grid::propose, radial::propose].map(|propose| propose(made, wanted, &Control::new()).unwrap().len());
        (found[0], found[1])
    };
    let made = material(vec![plain()], 16, Some(grid));
    assert_eq!(some(&made, &wanted), (1, 1));
    assert_eq!(some(&made, &Wanted { grid: None, ..wanted }), (0, 0));
    // masses by offset that were not counted, and a model that hides later keys
    assert_eq!(some(&material(vec![plain()], 16, None), &wanted), (0, 0));
    let causal = Head { own: Own::Causal, ..plain() };
    assert_eq!(some(&material(vec![causal], 16, Some(grid)), &wanted), (0, 0));
    // one frame has nothing to narrow
    let image = Grid { extents: [1, 8, 8], start: 0 };
    let made = material(vec![plain()], 16, Some(image));
    assert_eq!(some(&made, &Wanted { grid: Some(image), ..wanted }), (1, 0));
}

#[test]
fn a_planted_box_of_tiles_is_found_exactly() {
    let grid = Grid { extents: [4, 8, 8], start: 8 };
    let kernel = [1usize, 2, 3];
    let keeps = move |q: usize, kv: usize| {
        let tokens = grid.tokens();
        if !tokens.contains(&q) || !tokens.contains(&kv) {
            return q == kv;
        }
        let (a, b) = (grid.place(q), grid.place(kv));
        (0..3).all(|n| {
            let (tile, tiles) = ([2, 2, 2][n], [2, 4, 4][n]);
            let (left, right) = (kernel[n] / 2, (kernel[n] - 1) / 2);
            let centre = (a[n] / tile).clamp(left, tiles - 1 - right);
            (centre - left..=centre + right).contains(&(b[n] / tile))
        })
    };
    let wanted = Wanted { grid: Some(grid), ..wanted(Target::Mass(0.9999)) };
    let found = suggest(&material(vec![planted(272, keeps)], 16, Some(grid)), &wanted, &Control::new()).unwrap();
    let tiles = named(&found, "tiles on the grid");
    assert_eq!(tiles.form, Form::Tiles { grid, tile: [2, 2, 2], kernel, first_frame: false });
    assert!(tiles.mass > 0.9999, "{}", tiles.mass);
}

#[test]
fn planted_radial_stripes_are_found_exactly() {
    let grid = Grid { extents: [6, 4, 8], start: 8 };
    let keeps = move |q: usize, kv: usize| {
        let tokens = grid.tokens();
        if !tokens.contains(&q) || !tokens.contains(&kv) {
            return q == kv;
        }
        let (a, b) = (q - 8, kv - 8);
        let apart = (a / 32).abs_diff(b / 32);
        (a % 32).abs_diff(b % 32) <= 12 >> (apart / 2)
    };
    let wanted = Wanted { grid: Some(grid), ..wanted(Target::Mass(0.9999)) };
    let found = suggest(&material(vec![planted(200, keeps)], 16, Some(grid)), &wanted, &Control::new()).unwrap();
    let stripes = named(&found, "radial stripes");
    assert_eq!(stripes.form, Form::Radial { grid, width: 12, halving: 2, first_frame: false });
    assert!(stripes.mass > 0.9999, "{}", stripes.mass);
    let why = "12 tokens on either side in the same frame, halved every 2 frames, keep 100.0% of the mass";
    assert_eq!(stripes.why.to_string(), why);
    // a query sees 25 tokens of its own frame and of the next ones, 13 and then 7 of those farther away, on both sides as
    // far as there are frames: 25 + 25 x 10/6 + 13 x (8 + 6)/6 + 7 x (4 + 2)/6 = 104 of 192
    let budget = |tokens: f64| {
        let wanted = Wanted { target: Target::Blocks(tokens / 192.0), ..wanted };
        let made = material(vec![planted(200, keeps)], 16, Some(grid));
        radial::propose(&made, &wanted, &Control::new()).unwrap().remove(0).form
    };
    assert_eq!(budget(104.5), Form::Radial { grid, width: 12, halving: 2, first_frame: false });
    assert_ne!(budget(103.5), budget(104.5));
}

#[test]
fn heads_under_one_budget_have_each_their_planted_mask() {
    let near = |q: usize, kv: usize| q.abs_diff(kv) <= 9;
    let columns = |_: usize, kv: usize| kv / 16 == 3 || kv / 16 == 6;
    let heads = vec![planted(128, near), planted(128, columns)];
    let made = material(heads, 16, None);
    let found = suggest(&made, &wanted(Target::Mass(0.9999)), &Control::new()).unwrap();
    let own = named(&found, "heads under one budget");
    let Form::PerHead(groups) = &own.form else { panic!("{own:?}") };
    assert_eq!(groups.iter().map(|(heads, _)| heads.clone()).collect::<Vec<_>>(), [vec![0], vec![1]]);
    // no single mask does it in as few blocks, and none of blocks in fewer
    let least = least_density(&made, 0.9999);
    assert!(own.mass >= 0.9999 - 1e-6 && (own.density - least).abs() < 1e-9, "{own:?} {least}");
    assert_eq!(own.masks, 2);
    // a budget of blocks is kept by all heads together
    let found = suggest(&made, &wanted(Target::Blocks(0.2)), &Control::new()).unwrap();
    assert!(named(&found, "heads under one budget").density <= 0.2 + 1e-9);
}

#[test]
fn heads_that_were_not_captured_stay_causal() {
    let heads = vec![planted(64, |q, kv| q.abs_diff(kv) <= 9), planted(64, |_, kv| kv / 16 == 1)];
    let heads = heads.into_iter().map(|head| Head { own: Own::Causal, ..head }).collect();
    let made = Material { model_heads: 4, ..material(heads, 16, None) };
    let found = suggest(&made, &wanted(Target::Mass(0.9)), &Control::new()).unwrap();
    assert!(found.iter().filter(|candidate| candidate.form.per_head()).count() > 1, "{found:?}");
    for candidate in found {
        let mask = candidate.form.mask(made.lengths()).unwrap();
        for h in [2, 3].into_iter().filter(|_| candidate.form.per_head()) {
            let keeps = |q: i64, kv: i64| eval(&mask, &Cell { b: 0, h, q_idx: q, kv_idx: kv, score: 0.0 }).as_bool();
            assert!(keeps(40, 40) && keeps(40, 0) && !keeps(40, 41) && !keeps(3, 60), "{}", candidate.kind);
        }
    }
}

#[test]
fn top_k_is_the_smallest_that_reaches_the_mass_and_both_together_reach_it_too() {
    let made = material((0..2).map(|h| head(h, 160, 160, 16, 3.0)).collect(), 16, None);
    let found = suggest(&made, &wanted(Target::Mass(0.9)), &Control::new()).unwrap();
    let counts = |c: &Candidate| -> Vec<usize> {
        let Form::Blocks { heads, .. } = &c.form else { panic!("{c:?}") };
        heads.iter().flat_map(|set| set.chunks(10)).map(|row| row.iter().filter(|b| **b == 1).count()).collect()
    };
    let top = named(&found, "block top-k");
    let k = counts(top)[0];
    assert!(top.mass >= 0.9 - 1e-6 && counts(top).iter().all(|n| *n == k));
    let fewer = Wanted { target: Target::Blocks((k - 1) as f64 / 10.0), ..wanted(Target::Mass(0.9)) };
    assert!(named(&suggest(&made, &fewer, &Control::new()).unwrap(), "block top-k").mass < 0.9);
    let both = named(&found, "top-k or top-p");
    assert!(both.mass >= 0.9 - 1e-6 && both.density <= named(&found, "block top-p").density + 1e-9);
    // no row keeps fewer than a quarter of the rows need by top-p alone
    assert!(counts(both).iter().min() >= counts(named(&found, "block top-p")).iter().min());
}

#[test]
fn block_top_p_reaches_the_ceiling_of_its_number_of_blocks() {
    let heads: Vec<Head> = (0..3).map(|h| head(h, 160, 160, 16, 3.0)).collect();
    let material = material(heads, 16, None);
    for p in [0.5, 0.8, 0.95] {
        let found = suggest(&material, &wanted(Target::Mass(p)), &Control::new()).unwrap();
        let top = named(&found, "block top-p");
        let shape = MaskShape { batch: 1, heads: 3, lengths: material.lengths() };
        let mask = top.form.mask(material.lengths()).unwrap();
        let blocks = BlockMask::build(Some(&mask), shape, material.block(), &Control::new()).unwrap();
        for line in Live::new(material.heads.clone(), blocks, &Control::new()).expect("not stopped").line() {
            assert!((line.ceiling - line.mass.mean).abs() < 1e-5, "{} {}", line.ceiling, line.mass.mean);
        }
        assert!(top.mass >= p - 1e-5, "{} {p}", top.mass);
        let all = named(&found, "global top blocks");
        assert!(all.density <= top.density + 1e-9 && all.mass >= p - 1e-5, "{all:?}");
        // the first listed proposal reaches the target with the fewest blocks
        assert!(found[0].mass >= p - 1e-6 && found.iter().all(|c| c.mass < p - 1e-6 || c.density >= found[0].density));
    }
}

#[test]
fn a_budget_of_blocks_is_kept() {
    let material = material((0..2).map(|h| head(h, 160, 160, 16, 3.0)).collect(), 16, None);
    let found = suggest(&material, &wanted(Target::Blocks(0.3)), &Control::new()).unwrap();
    for name in ["global top blocks", "one block list", "columns + diagonals"] {
        assert!(named(&found, name).density <= 0.3 + 1e-9, "{name}");
    }
    // and used up: five of the ten blocks of each row are half
    let half = suggest(&material, &wanted(Target::Blocks(0.5)), &Control::new()).unwrap();
    assert!((named(&half, "block top-k").density - 0.5).abs() < 1e-9);
}

#[test]
fn heads_that_look_alike_share_a_list() {
    let local = |q: usize, kv: usize| q / 16 == kv / 16;
    let far = |q: usize, kv: usize| kv / 16 == (q / 16 + 4) % 8;
    let heads = vec![planted(128, local), planted(128, far), planted(128, local), planted(128, far)];
    let material = material(heads, 16, None);
    let found = suggest(&material, &wanted(Target::Mass(0.999)), &Control::new()).unwrap();
    let few = named(&found, "few head groups");
    let Form::Blocks { heads, .. } = &few.form else { panic!("{few:?}") };
    assert!(heads[0] == heads[2] && heads[1] == heads[3] && heads[0] != heads[1]);
    assert_eq!((distinct(&few.form), few.density), (2, 0.125));
    // each group has one mask under one budget, too
    let own = named(&found, "heads under one budget");
    let Form::PerHead(groups) = &own.form else { panic!("{own:?}") };
    assert_eq!(groups.iter().map(|(heads, _)| heads.clone()).collect::<Vec<_>>(), [vec![0, 2], vec![1, 3]]);
    assert_eq!((own.density, own.masks), (0.125, 2));
    assert!(own.why.to_string().starts_with("2 groups of similar heads"), "{}", own.why);
    // a list for each head, one for all, and two heads are no groups
    let groups = |made: &Material, most_masks| {
        let wanted = Wanted { most_masks, ..wanted(Target::Mass(0.999)) };
        heads::propose(made, &wanted, &Control::new()).unwrap().len()
    };
    assert_eq!([1, 2, 3, 4].map(|most| groups(&material, most)), [0, 1, 1, 0]);
    assert_eq!([1, 2].map(|most| groups(&material.only(&[0, 1]), most)), [0, 0]);
    // a budget of as many blocks as they need
    let few = heads::propose(&material, &wanted(Target::Blocks(0.125)), &Control::new()).unwrap().remove(0);
    assert!(few.density == 0.125 && (few.mass - 1.0).abs() < 1e-5, "{few:?}");
    assert!(few.why.to_string().starts_with("2 lists for 4 heads"), "{}", few.why);
    // one head, and one mask for all
    let alone = |made: &Material, most_masks| {
        let wanted = Wanted { most_masks, ..wanted(Target::Mass(0.999)) };
        assign::propose(made, &wanted, &Control::new()).unwrap().len()
    };
    assert_eq!((alone(&material.only(&[0]), 4), alone(&material, 1), alone(&material.only(&[0, 1]), 2)), (0, 0, 1));
}

#[test]
fn the_protected_diagonal_is_its_own_blocks_and_no_others() {
    let material = material(vec![head(1, 60, 60, 8, 1.0)], 16, None);
    let diagonal = Protect { diagonal: true, ..Protect::NONE };
    let forced = budget::forced(&material, &Wanted { protect: diagonal, ..wanted(Target::Mass(0.5)) });
    assert_eq!(forced, [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]);
}

#[test]
fn protected_places_are_kept() {
    let grid = Grid { extents: [2, 8, 8], start: 32 };
    let material = material(vec![planted(160, |q, kv| kv == (q + 80) % 160)], 16, Some(grid));
    let wanted = Wanted { protect: Protect::default(), grid: Some(grid), ..wanted(Target::Mass(0.5)) };
    for candidate in suggest(&material, &wanted, &Control::new()).unwrap() {
        let mask = candidate.form.mask(material.lengths()).unwrap();
        let keeps = |q: i64, kv: i64| eval(&mask, &Cell { b: 0, h: 0, q_idx: q, kv_idx: kv, score: 0.0 }).as_bool();
        // diagonal, sinks, text as query and key, first frame
        assert!(
            keeps(150, 150) && keeps(150, 3) && keeps(3, 150) && keeps(150, 20) && keeps(150, 90),
            "{}",
            candidate.kind
        );
    }
}

#[test]
fn the_front_has_no_beaten_candidate() {
    let material = material(vec![head(1, 160, 160, 16, 3.0)], 16, None);
    let found = suggest(&material, &wanted(Target::Mass(0.9)), &Control::new()).unwrap();
    let front = pareto(&found);
    assert!(front.iter().any(|x| *x));
    for (a, _) in found.iter().zip(&front).filter(|(_, on)| **on) {
        assert!(!found.iter().any(|b| b.mass > a.mass && b.density < a.density));
    }
}
