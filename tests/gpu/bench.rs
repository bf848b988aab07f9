//! Timings of our backends on a few workloads, as TFLOP/s on unmasked work.

use super::check::{Device, alibi, plain_causal, problem, soft_cap, spec, window};
use maskloom::base::BackendName;
use maskloom::problem::ProblemSpec;
use maskloom::problem::result::Outcome;

/// Prints a table.
pub(crate) fn run(device: &Device) {
    let wide = spec(4, 16, 16, 8192, 8192, 128);
    let narrow = spec(4, 32, 32, 8192, 8192, 64);
    let sliding = || Some(window(1024));
    let workloads = [
        ("full d128", wide.clone()),
        ("causal d128", ProblemSpec { mask: Some(plain_causal()), ..wide.clone() }),
        ("window 1024 d128", ProblemSpec { mask: sliding(), ..wide.clone() }),
        ("alibi causal d128", ProblemSpec { mask: Some(plain_causal()), score: Some(alibi()), ..wide.clone() }),
        ("soft cap d128", ProblemSpec { score: Some(soft_cap()), ..wide }),
        ("full d64", narrow.clone()),
        ("causal d64", ProblemSpec { mask: Some(plain_causal()), ..narrow.clone() }),
        ("window 1024 d64", ProblemSpec { mask: sliding(), ..narrow }),
        ("decode 8 x 32k", spec(8, 32, 8, 1, 32_768, 128)),
        ("decode 1 x 131k", spec(1, 32, 8, 1, 131_072, 128)),
        ("causal d256", ProblemSpec { mask: Some(plain_causal()), ..spec(2, 8, 4, 8192, 8192, 256) }),
    ];
    let only = [BackendName::Sdpa, BackendName::FlashAttention2, BackendName::Flex];
    for (name, s) in workloads {
        let race = device.race(&problem(s), 3, 5, &only);
        for report in race.reports {
            match report.outcome {
                Outcome::Done { kernel, timings, error, .. } => match timings.forward() {
                    Some(timing) => println!(
                        "{name:18} {:18} {:8.3} ms {:6.1} TFLOP/s spread {:.3} error {:.1e}  {kernel}",
                        report.backend.to_string(),
                        timing.median_ms,
                        race.work.flop / timing.median_ms / 1e9,
                        timing.spread,
                        error.max_abs()
                    ),
                    None => println!("{name:18} WRONG {kernel} {error:?}"),
                },
                Outcome::Refused { .. } => {}
                Outcome::Failed { why } => println!("{name:18} {} failed: {why}", report.backend),
            }
        }
    }
}
