//! The kernels of the presets with score mods, and those that all others share, keep their values in registers, with
//! the exceptions named here.

use crate::backends::cuda::choose;
use crate::backends::cuda::emit::mods::LiftedMods;
use crate::backends::cuda::emit::tests::{kernel_of, nvrtc};
use crate::backends::cuda::toolchain::backward::BackwardDraft;
use crate::backends::cuda::toolchain::nvrtc::Nvrtc;
use crate::backends::cuda::toolchain::ptxas;
use crate::backends::cuda::variant::backward::BackwardWays;
use crate::backends::cuda::variant::bound;
use crate::backends::cuda::variant::limits::Limits;
use crate::backends::cuda::variant::spec::{KernelSpec, MaskKind, ScoreKind};
use crate::backends::testing::{self, distance_score, with_mods};
use crate::base::DType;
use crate::document::compile::{BuiltIn, compile};
use crate::document::from_document;
use crate::document::library;
use crate::problem::{Problem, ProblemSpec};
use maskloom_testing::needs;
use std::collections::BTreeSet;
use std::sync::Mutex;

/// Preset, architecture, largest bytes of stores and loads, and the reason.
const SPILLS: &[(&str, &str, u32, &str)] = &[
    ("flux_prompt_weight", "sm_80", 24, "two numbers of the block wait for the way out; a tile reads one of them"),
    (
        "forgetting_transformer",
        "sm_90a",
        16,
        "the running sums of queries and of keys are held beside the scores of 192 rows",
    ),
    (
        "deepseek_mla_rope",
        "sm_90a",
        44,
        "rows and keys of 128 reads; indices bounded by five instructions took 1% more time",
    ),
];
/// Architecture, head_dim, largest bytes for kernels without a score mod, and the reason.
const SHARED_SPILLS: &[(&str, usize, u32, &str)] =
    &[("sm_100", 128, 40, "this compiler keeps more addresses there than for sm_90; smaller tiles were not measured")];
/// The same for backward kernels: preset, or the head_dim of those without a score mod; architecture, largest bytes,
/// and the reason.
const BACKWARD_SPILLS: &[(&str, &str, u32, &str)] = &[
    (
        "sandwich",
        "sm_90a",
        32,
        "the place of dq beside the scores of 128 queries; read from shared memory it costs 20% more time",
    ),
    ("deepseek_mla_rope", "sm_90a", 188, "what is made of cells waits while the score mod is called for others"),
    ("d64", "sm_80", 8, "an address of the way out"),
    ("d192", "sm_80", 32, "sums of dk and dv of wide heads"),
    ("d256", "sm_80", 160, "the same"),
];
/// The compiler that these figures are of, and what another may spill more.
const COMPILER: (u32, u32) = (13, 0);
const ANOTHER: u32 = 64;

/// The flex kernel of a problem, whose mask goes in as bitmaps.
fn spec(problem: &Problem, limits: &Limits) -> KernelSpec {
    let shape = choose::shape(problem);
    let mask = if problem.mask.is_some() { MaskKind::Bitmap } else { MaskKind::None };
    KernelSpec::decode(&shape, limits, mask, ScoreKind::Mod)
        .or_else(|| KernelSpec::hopper(&shape, limits, mask, ScoreKind::Mod))
        .unwrap_or_else(|| KernelSpec::flash(&shape, limits, mask, ScoreKind::Mod))
}

/// Without a score mod; every preset without one runs one of these, because its mask goes in as bitmaps.
fn shared(head_dim: usize, dtype: DType, mask: MaskKind, limits: &Limits) -> KernelSpec {
    let problem = Problem::new(ProblemSpec { dtype, ..ProblemSpec::plain(4, (16, 16), (4096, 4096), head_dim) });
    let shape = choose::shape(&problem.expect("a valid problem"));
    KernelSpec::hopper(&shape, limits, mask, ScoreKind::Folded)
        .unwrap_or_else(|| KernelSpec::flash(&shape, limits, mask, ScoreKind::Folded))
}

/// Presets with score mods, compiled as documents.
fn scored() -> Vec<(&'static str, Problem)> {
    let of = |preset: &library::Preset| {
        let document = preset.document().expect("a preset loads");
        let scored = document.scores.iter().any(|score| score.enabled);
        scored.then(|| (preset.name, from_document(&document, &compile(&document, &BuiltIn)).expect("it is valid")))
    };
    library::presets().iter().filter_map(of).collect()
}

/// Does `one` with each of `work`, two at a time.
fn two_at_a_time<T: Send>(work: Vec<T>, one: impl Fn(T) + Sync) {
    let work = Mutex::new(work.into_iter());
    let next = || work.lock().unwrap().next();
    let some = || {
        while let Some(next) = next() {
            one(next);
        }
    };
    std::thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(some))));
}

/// Whether case `at` is compiled: all of Hopper's, and the taken ones of the others.
fn is_taken(arch: &str, at: usize) -> bool {
    arch == "sm_90a" || needs::is_taken(at)
}

/// Bytes that a kernel may spill beyond the listed ones.
fn slack(nvrtc: &Nvrtc) -> u32 {
    if nvrtc.version() == COMPILER { 0 } else { ANOTHER }
}

#[test]
fn kernels_of_the_presets_do_not_spill() {
    let Some(nvrtc) = nvrtc() else { return };
    let presets = scored();
    assert!(presets.len() > 8, "{}", presets.len());
    let archs = ["sm_90a", "sm_80", "sm_89"];
    let all = archs.iter().flat_map(|arch| presets.iter().map(move |(name, p)| (*name, p, *arch)));
    let work: Vec<_> = all.enumerate().filter(|(at, (.., arch))| is_taken(arch, *at)).map(|(_, one)| one).collect();
    let (found, wanted) = (Mutex::new(Vec::new()), work.len());
    two_at_a_time(work, |(name, problem, arch)| {
        let spec = spec(problem, &Limits::of_arch(arch).unwrap());
        let artefact = kernel_of(spec, LiftedMods::new(None, problem.score.as_deref()), arch, nvrtc).artefact;
        found.lock().unwrap().push((name, arch, artefact.name, artefact.spill_bytes));
    });
    let most = |name, arch| SPILLS.iter().find(|(n, a, ..)| (*n, *a) == (name, arch)).map_or(0, |row| row.2);
    let (found, slack) = (found.into_inner().unwrap(), slack(nvrtc));
    assert_eq!(found.len(), wanted, "kernels that were looked at");
    let looked = |arch| found.iter().any(|(_, own, ..)| *own == arch);
    assert!(archs.into_iter().all(looked), "an architecture was left out: {found:?}");
    let bad: Vec<_> = found.iter().filter(|(name, arch, _, bytes)| *bytes > most(*name, *arch) + slack).collect();
    assert!(bad.is_empty(), "{bad:?}");
    let names: BTreeSet<&str> = presets.iter().map(|(name, _)| *name).collect();
    assert!(SPILLS.iter().all(|(name, arch, ..)| names.contains(name) && archs.contains(arch)));
}

/// The backward kernel that runs of a problem: its name and the bytes that it spills.
fn backward(problem: &Problem, arch: &str, nvrtc: &Nvrtc) -> Option<(String, u32)> {
    let limits = Limits::of_arch(arch).expect("an architecture");
    // presets that the backward pass refuses in words have no kernel
    let (draft, code) = BackwardDraft::made(problem, &limits, BackwardWays::default(), arch, nvrtc, None).ok()?;
    let found = ptxas::resources(&code.main.log, draft.spec.entry());
    Some((draft.spec.name(), found.spill_bytes))
}

#[test]
fn backward_kernels_do_not_spill() {
    let Some(nvrtc) = nvrtc() else { return };
    let plain = [64, 128, 192, 256].map(|head_dim| {
        let shape = ProblemSpec { dtype: DType::BF16, ..ProblemSpec::plain(1, (4, 4), (1024, 1024), head_dim) };
        let mask = Some(std::sync::Arc::new(testing::causal(0)));
        let problem = Problem::new(ProblemSpec { mask, ..shape }).expect("a valid problem");
        (format!("d{head_dim}"), problem)
    });
    let presets = scored().into_iter().map(|(name, problem)| (name.to_string(), problem));
    let all: Vec<(String, Problem)> = plain.into_iter().chain(presets).collect();
    // one design of each shape of text on Ampere's kernel, which differs by architecture in the compiler alone
    let work: Vec<_> = all.iter().map(|of| ("sm_90a", of)).chain(all[..4].iter().map(|of| ("sm_80", of))).collect();
    let found = Mutex::new(Vec::new());
    two_at_a_time(work, |(arch, (name, problem))| {
        if let Some((kernel, bytes)) = backward(problem, arch, nvrtc) {
            println!("{name} on {arch}, {kernel}: {bytes} bytes");
            found.lock().unwrap().push((name, arch, kernel, bytes));
        }
    });
    let most =
        |name: &str, arch| BACKWARD_SPILLS.iter().find(|(n, a, ..)| (*n, *a) == (name, arch)).map_or(0, |row| row.2);
    let found = found.into_inner().unwrap();
    assert!(found.len() > 20, "{found:?}");
    let bad: Vec<_> = found.iter().filter(|(name, arch, _, bytes)| *bytes > most(name, arch) + slack(nvrtc)).collect();
    assert!(bad.is_empty(), "{bad:?}");
    assert!(BACKWARD_SPILLS.iter().all(|(name, ..)| all.iter().any(|(own, _)| own == name)));
}

#[test]
fn kernels_without_score_mods_do_not_spill() {
    let Some(nvrtc) = nvrtc() else { return };
    let mut work = Vec::new();
    for arch in ["sm_90a", "sm_80", "sm_89", "sm_100"] {
        for head_dim in [64, 128, 192, 256] {
            for (mask, dtype) in
                [(MaskKind::None, DType::F16), (MaskKind::Bitmap, DType::BF16), (MaskKind::Interval, DType::F16)]
            {
                work.push((arch, head_dim, shared(head_dim, dtype, mask, &Limits::of_arch(arch).unwrap())));
            }
        }
    }
    let most = |arch, dim| SHARED_SPILLS.iter().find(|row| (row.0, row.1) == (arch, dim)).map_or(0, |row| row.2);
    let bad = Mutex::new(Vec::new());
    let work = work.into_iter().enumerate().filter(|(at, (arch, ..))| is_taken(arch, *at));
    two_at_a_time(work.map(|(_, one)| one).collect(), |(arch, head_dim, spec)| {
        let artefact = kernel_of(spec, LiftedMods::new(None, None), arch, nvrtc).artefact;
        if artefact.spill_bytes > most(arch, head_dim) + slack(nvrtc) {
            bad.lock().unwrap().push((arch, artefact.name, artefact.spill_bytes));
        }
    });
    assert!(bad.lock().unwrap().is_empty(), "{bad:?}");
}

#[test]
fn soft_caps_are_bounded_and_distances_are_not() {
    let preset = library::preset("gemma2_softcap_window").expect("a preset").document().expect("reads");
    let score = compile(&preset, &BuiltIn).score.expect("a score mod");
    let of = |dtype, score| {
        bound::lowest(&with_mods(ProblemSpec { dtype, ..testing::spec(1, 2, 2, 512, 512, 64) }, None, Some(score)))
    };
    assert!(of(DType::BF16, score.as_ref().clone()).is_some_and(|lowest| (0.0..1.0).contains(&lowest)));
    assert_eq!(of(DType::F16, score.as_ref().clone()), None);
    assert_eq!(of(DType::BF16, distance_score()), None);
}
