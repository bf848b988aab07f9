//! `maskloom bench cpu`: the backends race on the benchmark's own workloads.
//!
//! Invariant: a timing without a check against the reference gives no row. Must not know a backend.

use super::{Args, sgemm};
use crate::base::{BackendName, Device};
use crate::cli::out::Failure;
use crate::cli::work::Worker;
use crate::cli::{race, workloads};
use serde_json::Value;
use std::path::Path;

/// Races workloads; returns whether all were right.
pub(super) fn rows(args: &Args, workloads: Vec<workloads::Workload>) -> Result<(Vec<Value>, bool), Failure> {
    let mut worker = Worker::connect(&args.at.target)?;
    let (mut all, mut right) = (Vec::new(), true);
    let here = args.at.target.is_empty() && args.at.device.is_none_or(|device| device == Device::Cpu);
    let sgemm = || -> Result<Option<f64>, Failure> {
        let python = args.python.as_deref().filter(|_| here).map(Path::new);
        Ok(python.map(sgemm::rate).transpose().map_err(|why| vec![why])?)
    };
    let before = sgemm()?;
    for workload in workloads.into_iter().filter(|w| w.name.contains(args.only.as_str())) {
        let mut request = workload.request()?;
        request.device = args.at.device.unwrap_or(Device::Cpu);
        request.python = args.python.clone();
        match args.python.is_some() {
            _ if !args.backend.is_empty() => request.backends = args.backend.clone(),
            true => request.backends.extend([BackendName::TorchSdpa, BackendName::TorchFlex]),
            false => {}
        }
        request.options.rounds = args.rounds.max(1);
        request.options.reference_rows = 128;
        let (report, _) = worker.run(request.clone())?;
        right &= race::succeeded(&report);
        all.extend(race::rows(workload.name, &request.problem, &report));
    }
    if let Some((before, after)) = before.zip(sgemm()?) {
        sgemm::add_shares(&mut all, (before + after) / 2.0);
    }
    Ok((all, right))
}
