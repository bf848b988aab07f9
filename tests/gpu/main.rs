//! Tests that need a CUDA device: every backend compared with the f64 reference. Without a device, or without NVRTC,
//! this binary lists its tests as skipped with the reason, and exits 0; it fails if `MASKLOOM_NEEDS` promises a GPU. Words
//! on the command line run only the tests whose names contain one of them; `bench` runs timings instead.

mod bench;
mod cases;
mod check;
mod gradients;

use check::Device;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let device = match Device::open() {
        Ok(device) => device,
        Err(why) => {
            let tests = cases::ALL.len() + gradients::ALL.len();
            maskloom_testing::needs::missing_for(tests, "gpu", &format!("no GPU ({})", why.message));
            return ExitCode::SUCCESS;
        }
    };
    println!("{}", device.describe());
    if wanted.iter().any(|w| w == "bench") {
        bench::run(&device);
        return ExitCode::SUCCESS;
    }
    let mut failed = Vec::new();
    for (name, test) in cases::ALL.iter().chain(gradients::ALL) {
        if !wanted.is_empty() && !wanted.iter().any(|w| name.contains(w.as_str())) {
            continue;
        }
        let start = Instant::now();
        let passed = catch_unwind(AssertUnwindSafe(|| test(&device))).is_ok();
        println!("{} {name} ({:.1} s)", if passed { "ok    " } else { "FAILED" }, start.elapsed().as_secs_f64());
        if !passed {
            failed.push(*name);
        }
        if device.is_lost() {
            println!("the device's context is lost; what follows is not run");
            failed.push("context");
            break;
        }
    }
    if failed.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("failed: {}", failed.join(", "));
    ExitCode::FAILURE
}
