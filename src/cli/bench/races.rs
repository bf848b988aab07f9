//! `maskloom bench cpu`: the backends race on the benchmark's own workloads.
//!
//! Invariant: a timing without a check against the reference gives no row. Must not know a backend.

use super::Args;
use crate::base::BackendName;
use crate::cli::out::Failure;
use crate::cli::work::Worker;
use crate::cli::{race, workloads};
use serde_json::Value;

/// Races workloads; returns whether all were right.
pub(super) fn rows(args: &Args, workloads: Vec<workloads::Workload>) -> Result<(Vec<Value>, bool), Failure> {
    let mut worker = Worker::connect(&args.at.target)?;
    let (mut all, mut right) = (Vec::new(), true);
    for workload in workloads.into_iter().filter(|w| w.name.contains(args.only.as_str())) {
        let mut request = workload.request()?;
        request.device = args.at.device.unwrap_or(crate::base::Device::Cpu);
        request.python = args.python.clone();
        match args.python.is_some() {
            _ if !args.backend.is_empty() => request.backends = args.backend.clone(),
            true => request.backends.push(BackendName::TorchSdpa),
            false => {}
        }
        request.options.rounds = args.rounds.max(1);
        request.options.reference_rows = 128;
        let (report, _) = worker.run(request.clone())?;
        right &= race::succeeded(&report);
        all.extend(race::rows(workload.name, &request.problem, &report));
    }
    Ok((all, right))
}
