//! Ratios, what makes them doubtful, who ran and why one is faster, in the words of a language.
//!
//! Invariant: in English these are the words that tables and files have. Must not know how anything was measured.

use crate::base::BackendName;
use crate::base::words::milliseconds;
use crate::problem::result::{Clock, Waits};
use crate::problem::verdict::{Doubt, Own, Ran, Shown, Versus};
use crate::tasks::why::{Cause, Why};
use crate::words::{Language, Words};

/// A ratio with its doubts; with who it is of, if that is named.
pub fn versus(said: &'static Words, of: &Versus, base: Option<&Ran>) -> String {
    let base = base.map(|base| ran(said, base));
    let figures = |base: Option<String>| {
        let ratio = ("ratio", format!("{:.2}", of.ratio).into());
        [ratio].into_iter().chain(base.map(|base| ("base", base.into()))).collect::<Vec<_>>()
    };
    let words = match (of.shows(), base) {
        (Shown::Nothing, _) => said.text("ratio-none").to_string(),
        (Shown::Ratio, None) => format!("{:.2}x", of.ratio),
        (Shown::Ratio, base) => said.with("ratio-of", &figures(base)),
        (Shown::Alike, None) => said.with("ratio-alike", &figures(None)),
        (Shown::Alike, base) => said.with("ratio-alike-of", &figures(base)),
    };
    let host = of.host.map(|host| said.with("doubt-host", &[("what", waits(said, host.0).into())]));
    let doubts = of.doubts.iter().map(|one| doubt(said, one)).chain(host);
    let join = |all: String, one: String| said.with("list-comma", &[("one", all.into()), ("other", one.into())]);
    match doubts.reduce(join) {
        Some(doubts) => said.with("ratio-doubts", &[("words", words.into()), ("doubts", doubts.into())]),
        None => words,
    }
}

/// What stands after the ratio itself: that it shows no difference, and its doubts; empty without any, or without a ratio.
pub fn remark(said: &'static Words, of: &Versus) -> String {
    let words = versus(said, of, None);
    let rest = words.strip_prefix(&format!("{:.2}x", of.ratio)).unwrap_or_default();
    rest.trim_start_matches([',', '，', ' ']).to_string()
}

/// What makes a ratio doubtful.
pub fn doubt(said: &'static Words, of: &Doubt) -> String {
    match of {
        Doubt::Overlap => said.text("doubt-overlap").into(),
        Doubt::Spread(share) => said.with("doubt-spread", &[("share", format!("{:.0}", 100.0 * share).into())]),
        Doubt::Busy(busy) => {
            let others = ("others", format!("{:.1}", busy.others).into());
            said.with("doubt-busy", &[others, ("cores", busy.cores.to_string().into())])
        }
        Doubt::Waits(of) => waits(said, *of),
        Doubt::Unraced(name) => said.with("doubt-unraced", &[("name", name.as_str().into())]),
    }
}

/// Calls that wait for the host.
pub fn waits(said: &'static Words, of: Waits) -> String {
    said.with("why-launch", &[("call", milliseconds(of.call_ms).into()), ("own", milliseconds(of.own_ms).into())])
}

/// Who ran.
pub fn ran(said: &'static Words, of: &Ran) -> String {
    match of {
        Ran::Ours { cpu: true, kernel } => said.with("ran-ours-cpu", &[("name", own(said, *kernel).into())]),
        Ran::Ours { cpu: false, kernel } => said.with("ran-ours", &[("name", own(said, *kernel).into())]),
        // names and versions are the same everywhere
        Ran::Torch(..) | Ran::Cudnn(_) => of.to_string(),
    }
}

/// Who ran where there is little room: without the kernel that PyTorch chose.
pub fn ran_briefly(said: &'static Words, of: &Ran) -> String {
    match of {
        Ran::Torch(backend, version, _) => ran(said, &Ran::Torch(*backend, version.clone(), None)),
        other => ran(said, other),
    }
}

/// Where there is less: `PyTorch 2.11`, `cuDNN 9.19`, `cudnn:flex 1.32`, `our dense-mask`.
pub fn ran_shortest(said: &'static Words, of: &Ran) -> String {
    match of {
        Ran::Ours { cpu: true, .. } => said.with("ran-ours-short", &[("name", "CPU".into())]),
        Ran::Ours { cpu: false, kernel } => said.with("ran-ours-short", &[("name", own(said, *kernel).into())]),
        Ran::Torch(backend @ BackendName::CudnnFlex, ..) => {
            let version = of.to_string().rsplit(' ').next().unwrap_or_default().to_string();
            format!("{backend} {version}")
        }
        Ran::Torch(..) | Ran::Cudnn(_) => of.to_string().split(' ').take(2).collect::<Vec<_>>().join(" "),
    }
}

fn own(said: &'static Words, of: Own) -> String {
    match of {
        Own::Maskless => said.text("ran-maskless").into(),
        Own::DenseMask => said.text("ran-dense").into(),
        other => other.to_string(),
    }
}

/// Why one is faster.
pub fn why(said: &'static Words, of: &Why) -> String {
    let share = |share: &Option<f64>| {
        let words = match share {
            Some(share) => said.with("why-computes", &[("share", format!("{:.1}", 100.0 * share).into())]),
            None => said.text("why-skips").into(),
        };
        [("share", words.into())]
    };
    let words = match &of.cause {
        Cause::SkipsDense(tiles) => said.with("why-skips-dense", &share(tiles)),
        Cause::SkipsScores(tiles) => said.with("why-skips-scores", &share(tiles)),
        Cause::SkipsPlain(tiles) => said.with("why-skips-plain", &share(tiles)),
        Cause::BothSkip => said.text("why-both-skip").into(),
        Cause::BothSkipMasked => said.text("why-both-masked").into(),
        Cause::BothDense => said.text("why-both-dense").into(),
        Cause::DenseAgainstSkips => said.text("why-dense-skips").into(),
        Cause::Scores => said.text("why-scores").into(),
        Cause::DenseAgainstScores => said.text("why-dense-scores").into(),
        Cause::OtherScores => said.text("why-other-scores").into(),
        Cause::Same => said.text("why-same").into(),
        Cause::NothingMasked => said.text("why-nothing-masked").into(),
        Cause::OtherDense => said.text("why-other-dense").into(),
        Cause::Dense => said.text("why-dense").into(),
    };
    if of.waits { said.with("why-short", &[("why", words.into())]) } else { words }
}

/// Why one is faster, in English.
pub fn why_in_english(of: &Why) -> String {
    why(Words::of(Language::English), of)
}

/// What takes samples.
pub fn clock(said: &'static Words, of: Clock) -> &'static str {
    match of {
        Clock::Queue => said.text("clock-queue"),
        Clock::Graph => said.text("clock-graph"),
        Clock::Profiler => said.text("clock-profiler"),
    }
}

/// What a column of memory counts.
pub fn memory(said: &'static Words) -> &'static str {
    said.text("memory-held")
}

#[cfg(test)]
mod tests {
    use super::why as told_why;
    use super::*;
    use crate::base::words::MEMORY;
    use crate::problem::facts::Busy;
    use crate::problem::verdict::Host;
    use crate::tasks::recorded;

    const OTHERS: [Language; 3] = [Language::Chinese, Language::Spanish, Language::Hindi];

    /// Of recorded runs, with all that makes them doubtful.
    #[test]
    fn ratios_are_told_in_every_language_and_stay_as_they_are_in_english() {
        let (english, mut seen, mut hosts) = (Words::of(Language::English), 0, 0);
        for run in recorded::embedded().iter().flat_map(|of| of.runs.values()) {
            let Some(base) = run.report.baseline() else { continue };
            for of in &run.report.backends {
                let Some(found) = run.report.versus(of.backend) else { continue };
                assert_eq!(versus(english, &found, Some(&base.ran)), found.words_of(&base.words));
                assert_eq!(versus(english, &found, None), found.words());
                let after = found.words().split_once('x').map_or(String::new(), |(_, rest)| rest.to_string());
                assert_eq!(remark(english, &found), after.trim_start_matches([',', ' ']));
                assert_eq!(ran_briefly(english, &base.ran), base.short());
                let shortest = ran_shortest(english, &base.ran);
                let begins = base.words.starts_with(&shortest);
                assert!(begins || shortest == base.words.replace("cudnn.flex_attention", "cudnn:flex"), "{shortest}");
                assert!(shortest.chars().count() <= 16, "{shortest}: a tile of the gallery has no room for more");
                let told = versus(Words::of(Language::Chinese), &found, Some(&base.ran));
                let left =
                    [" our ", "kernel", "spread", "overlap", "launch", "the other", "did not", "shown", "a call"];
                assert!(left.iter().all(|word| !told.contains(word)), "{told}");
                (seen, hosts) = (seen + 1, hosts + usize::from(found.host.is_some()));
            }
        }
        assert!(seen > 100 && hosts > 5, "{seen} ratios, {hosts} of them with a slow host");
    }

    #[test]
    fn doubts_are_told_one_after_the_other() {
        let waits = Waits { call_ms: 1.22, own_ms: 0.55 };
        let doubts = vec![
            Doubt::Overlap,
            Doubt::Spread(0.41),
            Doubt::Busy(Busy { others: 1.2, cores: 2 }),
            Doubt::Waits(waits),
            Doubt::Unraced(BackendName::TorchFlex),
        ];
        let found = Versus { ratio: 1.284, shown: true, spread: 0.41, doubts, host: Some(Host(waits)) };
        let base = Ran::Ours { cpu: false, kernel: Own::DenseMask };
        assert_eq!(versus(Words::of(Language::English), &found, Some(&base)), found.words_of(&base.to_string()));
        for (of, english) in found.doubts.iter().map(|of| (of, of.to_string())) {
            assert_eq!(doubt(Words::of(Language::English), of), english);
            OTHERS.iter().for_each(|language| assert_ne!(doubt(Words::of(*language), of), english, "{language:?}"));
        }
        let few = Versus { doubts: vec![Doubt::Overlap, Doubt::Spread(0.41)], ..found };
        assert_eq!(
            versus(Words::of(Language::Spanish), &few, Some(&base)),
            "1.28x nuestro kernel de máscara densa (los intervalos se solapan, variación 41%, el otro está limitado por el \
             lanzamiento: 1.22 ms por llamada, 0.550 ms en la GPU)"
        );
        let clocks = [Clock::Queue, Clock::Graph, Clock::Profiler];
        clocks.iter().for_each(|of| assert_eq!(clock(Words::of(Language::English), *of), of.to_string()));
        assert_eq!(memory(Words::of(Language::English)), MEMORY);
    }

    /// Reasons that recorded runs have.
    #[test]
    fn reasons_are_told_in_every_language() {
        let mut seen = std::collections::BTreeSet::new();
        for run in recorded::embedded().iter().flat_map(|of| of.runs.values()) {
            let Some(base) = run.report.baseline() else { continue };
            for found in run.report.backends.iter().filter_map(|of| tasks::why::between_runs(of, &base)) {
                let english = why_in_english(&found);
                OTHERS.iter().for_each(|of| assert_ne!(told_why(Words::of(*of), &found), english, "{of:?}"));
                seen.insert(english);
            }
        }
        assert!(seen.len() > 5, "{seen:?}");
        let found = Why { cause: Cause::SkipsScores(Some(0.125)), waits: true };
        let words =
            "it computes 12.5% of the tiles; the other writes every score to memory; so short that launching counts";
        assert_eq!(why_in_english(&found), words);
        let told = told_why(Words::of(Language::Spanish), &found);
        assert!(told.contains("12.5%") && !told.contains("tiles") && !told.contains("launching"), "{told}");
    }
}
