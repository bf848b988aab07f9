//! `maskloom kernels`: compiles kernels ahead of time, and manages the cache.
//!
//! Invariant: builds go through the same cache as runs. Must not know compilers.

use super::opened::{self, CodeArgs};
use super::out::{self, Failure};
use super::overrides::Overrides;
use super::table::{self, Cell, Table};
use super::work::Worker;
use crate::backends::cuda::Cache;
use crate::base::{BackendName, Diagnostic};
use crate::document::library;
use crate::problem::result::KernelArtefact;
use crate::tasks::plan;
use crate::words::Words;
use clap::Subcommand;
use serde_json::json;
use std::time::SystemTime;

/// Build kernels ahead of time, list or clear the cache
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
    /// Print one JSON object instead of a table
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Compile kernels into the cache; works without a GPU if NVRTC is installed
    Build(Box<Build>),
    /// List the cached kernels, most recently used first
    List,
    /// Remove all cached kernels
    Clear,
    /// Print the cache's folder
    Where,
}

#[derive(Debug, clap::Args)]
struct Build {
    /// Presets, FILE.json or FILE.py:ENTRY; the default is all presets
    presets: Vec<String>,
    /// Architectures: sm_80, sm_86, sm_89, sm_90a, sm_100, sm_120; the default is the device's own
    #[arg(long, value_delimiter = ',', value_name = "sm_N,...")]
    arch: Vec<String>,
    /// Backends
    #[arg(long, value_delimiter = ',', default_value = "flex", value_parser = super::arguments::backend)]
    backend: Vec<BackendName>,
    #[command(flatten)]
    code: CodeArgs,
    #[command(flatten)]
    overrides: Overrides,
    /// Name of a target, or the launch command of a worker
    #[arg(long, value_name = "COMMAND", default_value = "")]
    target: String,
}

/// Runs the command.
pub(super) fn kernels(args: Args) -> Result<(), Failure> {
    match &args.what {
        What::Build(build) => compile(build, args.json),
        What::List => list(args.json),
        What::Clear => {
            let cache = cache()?;
            let removed = cache.clear().map_err(|e| unlisted(&cache, &e))?;
            if args.json {
                out::json(&json!({ "removed": removed }))
            } else {
                out::text(&out::line("kernels-removed", &[("n", removed.to_string().into())]))
            }
        }
        What::Where => {
            let folder = cache()?.folder().display().to_string();
            if args.json { out::json(&json!({ "folder": folder })) } else { out::text(&format!("{folder}\n")) }
        }
    }
}

fn cache() -> Result<Cache, Diagnostic> {
    Cache::user().ok_or_else(|| {
        Diagnostic::error("no-cache", "the kernel cache needs a home folder").hint("set MASKLOOM_CACHE to a folder")
    })
}

fn unlisted(cache: &Cache, why: &std::io::Error) -> Diagnostic {
    let message = format!("the kernels in {} cannot be listed or removed: {why}", cache.folder().display());
    Diagnostic::error("cache-folder", message)
        .hint("give this user the right to, or set MASKLOOM_CACHE to another folder")
}

fn list(as_json: bool) -> Result<(), Failure> {
    let cache = cache()?;
    let kernels = cache.list().map_err(|e| unlisted(&cache, &e))?;
    let age = |used: SystemTime| used.elapsed().map_or(0, |d| d.as_secs());
    if as_json {
        let one = |k: &crate::backends::cuda::Listed| json!({ "key": k.key, "kernel": cache.about(&k.key), "bytes": k.bytes, "unused_s": age(k.used) });
        return out::json(
            &json!({ "folder": out::path(cache.folder()), "kernels": kernels.iter().map(one).collect::<Vec<_>>() }),
        );
    }
    let mut table = Table::told(&["column-key", "column-kernel", "column-size", "column-used"]);
    for k in &kernels {
        let key: String = k.key.chars().take(16).collect();
        let kernel = cache.about(&k.key).map_or_else(|| Cell::text("kernels-unknown"), Cell::from);
        let used = Cell::told(|said| said.with("kernels-ago", &[("time", ago(said, age(k.used)).into())]));
        table.row([key.into(), kernel, table::bytes(k.bytes).into(), used]);
    }
    let total: u64 = kernels.iter().map(|k| k.bytes).sum();
    let figures = [("size", table::bytes(total).into()), ("folder", out::path(cache.folder()).into())];
    let sum = match kernels.len() {
        1 => out::line("kernels-one", &figures),
        n => out::line("kernels-sum", &[&figures[..], &[("n", n.to_string().into())]].concat()),
    };
    out::text(&if kernels.is_empty() { sum } else { table.render() + &sum })
}

fn ago(said: &'static Words, seconds: u64) -> String {
    match seconds {
        s if s < 120 => format!("{s} s"),
        s if s < 7200 => format!("{} min", s / 60),
        s if s < 172_800 => format!("{} h", s / 3600),
        s => said.with("time-days", &[("n", (s / 86_400).to_string().into())]),
    }
}

fn compile(build: &Build, as_json: bool) -> Result<(), Failure> {
    let all = || library::presets().iter().map(|p| p.name.to_string()).collect();
    let names: Vec<String> = if build.presets.is_empty() { all() } else { build.presets.clone() };
    let archs: Vec<Option<String>> =
        if build.arch.is_empty() { vec![None] } else { build.arch.iter().cloned().map(Some).collect() };
    let mut worker = Worker::connect(&build.target)?;
    let (mut built, mut failed) = (Vec::new(), Vec::new());
    for name in &names {
        let opened = opened::open(name, &build.code, &build.overrides)?;
        let problem = opened.problem(&opened.compile()?)?;
        for backend in &build.backend {
            for arch in &archs {
                let request = plan::compile_request(&problem, *backend, arch.clone());
                match worker.compile(request) {
                    Ok(artefact) => built.push((name.clone(), *backend, artefact)),
                    Err(Failure::Reported(why)) => {
                        let missing = why.iter().any(|d| d.code.starts_with("nvrtc-missing") || d.code == "no-arch");
                        failed.extend(why);
                        if missing {
                            return Err(failed.into());
                        }
                    }
                    Err(other) => return Err(other),
                }
            }
        }
    }
    if as_json {
        out::json(&json!({ "kernels": built.iter().map(object).collect::<Vec<_>>() }))?
    } else if !built.is_empty() {
        out::text(&render(&built))?
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.into()) }
}

type Built = (String, BackendName, KernelArtefact);

fn object((name, backend, a): &Built) -> serde_json::Value {
    json!({
        "name": name, "backend": backend, "kernel": a.name, "arch": a.arch, "registers": a.registers,
        "shared_bytes": a.shared_bytes, "stack_bytes": a.stack_bytes, "spill_bytes": a.spill_bytes,
        "compile_ms": a.compile_ms, "cached": a.cached, "key": a.key,
    })
}

fn render(built: &[Built]) -> String {
    let mut table = Table::told(&[
        "column-preset",
        "column-backend",
        "column-kernel",
        "arch",
        "column-registers",
        "column-shared",
        "column-spills",
        "column-compiled",
    ]);
    for (name, backend, a) in built {
        let time = if a.cached { Cell::text("row-cached") } else { table::milliseconds(a.compile_ms).into() };
        table.row([
            name.as_str().into(),
            backend.as_str().into(),
            a.name.as_str().into(),
            a.arch.as_str().into(),
            a.registers.to_string().into(),
            table::bytes(a.shared_bytes.into()).into(),
            table::bytes(a.spill_bytes.into()).into(),
            time,
        ]);
    }
    table.render()
}
