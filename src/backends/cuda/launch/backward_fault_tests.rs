//! Removes every wait, barrier, fence, commit and buffer release of the backward kernels, one at a time: the emulated
//! machine must detect it by wrong gradients, a hang, or a stop.
//!
//! Invariant: the calls are found in the kernels' own texts, so that a new call is removed too; a removal that no run
//! detects is listed in `UNSEEN` with the reason. Must not know what the kernels compute.

use super::backward_tests::{Case, IN_ORDER, Programs, case, learned, program, scored, spec, with_holes};
use super::hopper_tests::{masked, quiet, scattered};
use crate::backends::cuda::emit::tests::soft_cap;
use crate::backends::cuda::variant::spec::MaskKind;
use std::collections::BTreeMap;

/// Calls that could have been forgotten.
const CALLS: &[&str] = &[
    "mbarrier_wait",
    "mbarrier_arrive",
    "mbarrier_expect",
    "bar_sync",
    "bar_arrive",
    "wgmma_wait",
    "wgmma_fence",
    "wgmma_commit",
    "fence_async_proxy",
    "fence_barrier_init",
    "tma_store_commit",
    "tma_store_wait_read",
    "tma_wait_all",
    "__syncwarp",
    "__syncthreads",
    "__threadfence",
    "give_back",
    "give_back_keys",
    "wait_for_word",
    "add_release",
    "await_turn",
    "ask_turn",
    "copy_wait_all",
    "copy_commit",
];
/// Their places.
const FILES: &[&str] = &[
    "backward_sm90.cu",
    "backward_wide_sm90.cu",
    "backward_sm80.cu",
    "backward_pipeline_sm90.cuh",
    "products_sm90.cuh",
    "parts_sm90.cuh",
    "cells.cuh",
    "delta.cu",
];
/// Orders of threads by which a fault may be seen.
const SEEDS: usize = 28;

/// The undetectable removals: the end of the call's line, its number among equal ones, and the reason.
const UNSEEN: &[(&str, usize, &str)] = &[
    (
        "backward_pipeline_sm90.cuh: __syncwarp();",
        0,
        "every give-back stands behind an instruction that a warp runs as one, which comes after its last read",
    ),
    (
        "backward_pipeline_sm90.cuh: mbarrier_wait(s.v_empty(0), d_o_ring.item_phase() ^ 1);",
        0,
        "values are given back before keys by the same thread, and keys have been waited for",
    ),
    ("backward_pipeline_sm90.cuh: mbarrier_wait(s.v_empty(0), d_o_ring.item_phase() ^ 1);", 1, "the same"),
    (
        "products_sm90.cuh: wgmma_fence();",
        2,
        "dK is asked for right behind dQ, whose fence has come after everything that was written to registers",
    ),
    (
        "products_sm90.cuh: __syncwarp();",
        0,
        "the warp's next barrier wants all of its lanes; the GPU wants them together there",
    ),
    ("products_sm90.cuh: __syncwarp();", 1, "the same"),
    (
        "products_sm90.cuh: tma_wait_all();",
        1,
        "each part has been waited for; what is on its way to memory is there when the launch ends",
    ),
    (
        "parts_sm90.cuh: if (last) __threadfence();",
        0,
        "the machine reads nothing before its turn; the GPU might read a sum before it has read the count",
    ),
    (
        "backward_sm90.cu: mbarrier_wait(s.v_full(v), d_o_ring.item_phase());",
        0,
        "nobody reads an empty item's values, and the next item's keys are there only after these values have been announced",
    ),
    (
        "backward_sm90.cu: if (thread == 0) tma_wait_all();",
        0,
        "what is on its way to memory is there when the launch ends",
    ),
    ("backward_wide_sm90.cu: if (thread == 0) tma_wait_all();", 0, "the same"),
    ("backward_wide_sm90.cu: if (thread == 0) tma_wait_all();", 1, "the same"),
    (
        "backward_wide_sm90.cu: mbarrier_wait(s.v_full(at<V_STAGES>(done)), phase<V_STAGES>(done));",
        0,
        "the other warpgroup waits for them too before it gives them back",
    ),
    (
        "backward_wide_sm90.cu: mbarrier_wait(s.q_full(q), phase<Q_STAGES>(tiles));",
        1,
        "d_o of the tile, which is asked for later, has been waited for, and so has q by the warpgroup that says that P is there",
    ),
];

/// The text with each of the calls behind a question; their places are added to `places`.
fn asked(text: &str, places: &mut Vec<String>) -> String {
    let mut file = "";
    let mut made = String::with_capacity(text.len() * 2);
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("#line 1 \"") {
            file = name.trim_end_matches('"');
        }
        match FILES.contains(&file) {
            true => ask_line(file, line, places, &mut made),
            false => made.push_str(line),
        }
        made.push('\n');
    }
    made
}

fn ask_line(file: &str, line: &str, places: &mut Vec<String>, made: &mut String) {
    let code = line.split("//").next().unwrap_or("");
    let mut at = 0;
    while let Some((start, end)) = next_call(code, at) {
        made.push_str(&code[at..start]);
        if code[..start].trim_end().ends_with("void") {
            made.push_str(&code[start..end]);
        } else {
            made.push_str(&format!("(is_out({}) ? void() : {})", places.len(), &code[start..end]));
            // equal calls are distinguished by their number
            let place = format!("{file}: {}", code.trim());
            let alike = places.iter().filter(|p| p.rsplit_once(' ').is_some_and(|(p, _)| p == place)).count();
            places.push(format!("{place} {alike}"));
        }
        at = end;
    }
    made.push_str(&line[at..]);
}

/// Where the next call of `CALLS` begins and ends.
fn next_call(code: &str, from: usize) -> Option<(usize, usize)> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut at = from;
    while let Some(found) = code[at..].find(is_word) {
        let start = at + found;
        let rest = &code[start..];
        let word = &rest[..rest.find(|c| !is_word(c)).unwrap_or(rest.len())];
        at = start + word.len();
        // a number of template parameters may be in between
        let open = match code[at..].strip_prefix('<').and_then(|t| t.find('>')) {
            Some(length) => at + length + 2,
            None => at,
        };
        if CALLS.contains(&word) && code[open..].starts_with('(') {
            let mut depth = 0;
            for (i, c) in code[open..].char_indices() {
                depth += i32::from(c == '(') - i32::from(c == ')');
                if depth == 0 {
                    return Some((start, open + i + 1));
                }
            }
        }
    }
    None
}

/// Calls, and whether any case detected their removal; `None` if no case reached them.
type Becomes = BTreeMap<String, Option<bool>>;

/// The result of each call's removal in one case, except for those detected before: `None` if no run reaches it,
/// otherwise whether it is detected.
fn left_out(case: Case, blocks: usize, before: &Becomes) -> Option<Vec<(String, Option<bool>)>> {
    let started = std::time::Instant::now();
    let mut ready = case.ready(5);
    // many parts of one item, which come to their ends one after the other
    ready.in_units = true;
    ready.blocks = blocks;
    let mut places = Vec::new();
    let text = program(&ready.draft, |text| asked(text, &mut places));
    let is_known = |place: &String| UNSEEN.iter().any(|(end, which, _)| *place == format!("{end} {which}"));
    let known: Vec<bool> =
        places.iter().map(|place| is_known(place) || before.get(place) == Some(&Some(true))).collect();
    let mut programs = Programs::default();
    let (folder, binary) = programs.of(&ready, text)?;
    let mut command = quiet(binary);
    command.arg(folder.path().join("in")).arg("-").arg(places.len().to_string()).arg(SEEDS.to_string());
    command.args(known.iter().enumerate().filter(|(_, known)| **known).map(|(at, _)| at.to_string()));
    let ran = command.output().expect("runs");
    assert!(ran.status.success(), "{}: {}", ready.what, String::from_utf8_lossy(&ran.stderr));
    let reported = String::from_utf8(ran.stdout).expect("numbers");
    let reported: Vec<i32> = reported.lines().map(|line| line.parse().expect("a number")).collect();
    assert_eq!(reported.len(), places.len());
    let seen = reported.iter().filter(|by| **by >= 0).count();
    let took = started.elapsed().as_secs_f64();
    println!(
        "{}: {seen} of {} calls seen, {} not come to ({took:.1} s)",
        ready.what,
        reported.len(),
        reported.iter().filter(|by| **by == -2).count()
    );
    let becomes = reported.iter().zip(&known).map(|(by, known)| (*by != -2).then_some(*by >= 0 || *known));
    Some(places.into_iter().zip(becomes).collect())
}

/// Each call is come to in one of the cases, and seen in one of those.
fn all_are_seen(cases: impl IntoIterator<Item = (Case, usize)>, never: &[&str]) {
    let mut all = Becomes::new();
    for (case, blocks) in cases {
        let Some(found) = left_out(case, blocks, &all) else { return };
        for (place, seen) in found {
            let before = all.entry(place).or_insert(None);
            *before = (*before).max(seen);
        }
    }
    let missing: Vec<_> = all.iter().filter(|(_, seen)| **seen == Some(false)).map(|(place, _)| place).collect();
    assert!(missing.is_empty(), "left out without being seen: {missing:#?}");
    let unused = all.iter().filter(|(place, seen)| seen.is_none() && !never.iter().any(|end| place.contains(end)));
    let unused: Vec<_> = unused.map(|(place, _)| place).collect();
    assert!(unused.is_empty(), "no case comes to: {unused:#?}");
}

/// Parts of products_sm90.cuh that only another kernel uses, or only another number of buffers.
const STRAIGHT: &[&str] = &[
    "if (thread == 0) wait_for_word",
    "bar_sync(OWN + group, 128);",
    "__threadfence();",
    "if (thread == 0) add_release",
];

#[test]
#[ignore = "minutes of one core; run by name"]
fn what_is_left_out_of_hoppers_kernel_is_seen() {
    let wide =
        Case { ways: IN_ORDER, ..case("d128 in order", masked(with_holes(), one(300, 400, 128)), MaskKind::Bitmap) };
    let narrow = case("d64", masked(with_holes(), one(500, 400, 64)), MaskKind::Bitmap);
    let never = [STRAIGHT, &["if (DS_STAGES == 1) bar_sync(FREE, 256);"][..]].concat();
    // a score mod whose derivative is held has dK read dS from shared memory
    let held = case("d128 held", scored(soft_cap(2.0), masked(with_holes(), one(150, 300, 128))), MaskKind::Bitmap);
    // parts of one size come to their ends at one time
    let shared = case("d128 shared", one(768, 128, 128), MaskKind::None);
    // in three parts: the sum of two is the same in any order
    let ordered = Case { ways: IN_ORDER, ..case("d128 shared in order", one(1900, 128, 128), MaskKind::None) };
    all_are_seen([(narrow, 1), (wide, 3), (held, 1), (shared, 3), (ordered, 3)], &never);
}

/// A barrier of one warpgroup is all that stands between dS and the products that read it.
#[test]
#[ignore = "a minute of one core; run by name"]
fn small_tiles_wait_for_their_own_warpgroup() {
    let learns = scored(learned(500, 300, false), masked(with_holes(), one(500, 300, 64)));
    let Some(found) = left_out(case("d64 adds", learns, MaskKind::Bitmap), 1, &Becomes::new()) else { return };
    let unseen: Vec<_> = found.iter().filter(|(_, seen)| *seen == Some(false)).map(|(place, _)| place).collect();
    assert!(found.iter().any(|(place, seen)| place.contains("OWN_KEYS ? OWN + GROUP : MEET") && *seen == Some(true)));
    // captured sums keep warps longer than copies take
    println!("not seen in this case alone: {unseen:#?}");
}

#[test]
#[ignore = "minutes of one core; run by name"]
fn what_is_left_out_of_the_wide_kernel_is_seen() {
    let ordered =
        || Case { ways: IN_ORDER, ..case("d256 in order", masked(with_holes(), one(300, 320, 256)), MaskKind::Bitmap) };
    let parts = ["Handoff::", "TAKEN + group", "LEFT + group", "products_sm90.cuh: "];
    // three blocks wait for each other's sums; one alone fills every buffer again behind another item's
    let shared = case("d256 shared", one(800, 64, 256), MaskKind::None);
    let both = Case { ways: IN_ORDER, ..case("d256 shared in order", one(1900, 64, 256), MaskKind::None) };
    all_are_seen([(ordered(), 3), (ordered(), 1), (shared, 3), (both, 3)], &parts);
}

#[test]
#[ignore = "minutes of one core; run by name"]
fn what_is_left_out_of_amperes_kernel_is_seen() {
    let on_ampere = |case: Case| Case { arch: "sm_80", ..case };
    let ordered =
        Case { ways: IN_ORDER, ..case("d64 in order", masked(scattered(), one(130, 200, 64)), MaskKind::Bitmap) };
    let plain = case("d64", masked(scattered(), one(130, 140, 64)), MaskKind::Bitmap);
    let split = case("d256", masked(scattered(), one(70, 100, 256)), MaskKind::Bitmap);
    all_are_seen([ordered, plain, split].map(|case| (on_ampere(case), 3)), &[]);
}

/// One head.
fn one(q_len: usize, kv_len: usize, head_dim: usize) -> crate::problem::ProblemSpec {
    crate::problem::ProblemSpec { heads: 1, ..spec(q_len, kv_len, head_dim) }
}
