//! The doctor's checks.
//!
//! Invariant: one function a check; none panics, none takes longer than its helpers' time limits. Must not know how
//! they are shown.

use crate::backends::cuda::{self, Nvrtc, Probe};
use crate::service::display::{self, Display};
use crate::service::protocol::{Check, DoctorReport, Health};
use crate::service::python::{self, Python};
use crate::service::{folders, machine};
use std::path::Path;

pub(super) fn all() -> DoctorReport {
    let mut report = DoctorReport::default();
    let python = python::find();
    let gpu = cuda::probe();
    report.checks.push(cpu());
    report.checks.extend(gpu_checks(&gpu));
    report.checks.push(nvrtc(&gpu));
    report.checks.extend(python_checks(python.as_ref()));
    report.checks.push(toolkit());
    report.checks.push(window());
    report.checks.push(cache());
    report.environment = machine::environment();
    if let Some(python) = &python {
        report.environment.insert("python".into(), python.version.clone());
        report.environment.extend(python.packages.clone());
    }
    report
}

fn check(name: &str, health: Health, found: impl Into<String>, mend: Option<&str>) -> Check {
    Check { name: name.into(), health, found: found.into(), mend: mend.map(String::from) }
}

fn cpu() -> Check {
    check("cpu", Health::Green, machine::cpu_name(), None)
}

fn gpu_checks(probe: &Probe) -> Vec<Check> {
    if let Some(why) = &probe.problem {
        let found = format!("{}; everything but GPU timing works", why.message);
        return vec![check("gpu", Health::Amber, found, why.hint.as_deref())];
    }
    let mut checks = Vec::new();
    if let Some((major, minor)) = probe.driver {
        checks.push(check("driver", Health::Green, format!("runs CUDA {major}.{minor} and older"), None));
    }
    for d in &probe.devices {
        let (major, minor) = d.compute_capability;
        let gib = d.memory as f64 / (1u64 << 30) as f64;
        let found = format!("{}, compute capability {major}.{minor}, {gib:.0} GiB", d.name);
        let name = format!("cuda:{}", d.ordinal);
        checks.push(match &d.unusable {
            None => check(&name, Health::Green, found, None),
            Some(why) => check(&name, Health::Amber, why.message.clone(), why.hint.as_deref()),
        });
    }
    checks
}

fn nvrtc(probe: &Probe) -> Check {
    let found = match probe.driver {
        Some(driver) => cuda::nvrtc_for_driver(driver),
        None => Nvrtc::get(),
    };
    match found {
        Ok(nvrtc) => {
            let (major, minor) = nvrtc.version();
            check("nvrtc", Health::Green, format!("{major}.{minor} at {}", nvrtc.path().display()), None)
        }
        Err(why) => {
            let hint = why.hint.map(|h| format!("; or {h}")).unwrap_or_default();
            let mend = format!("maskloom doctor --fix fetches it into Maskloom's own folder{hint}");
            // without it a GPU can do nothing
            let health = if probe.devices.iter().any(|d| d.unusable.is_none()) { Health::Red } else { Health::Amber };
            check("nvrtc", health, why.message, Some(&mend))
        }
    }
}

fn python_checks(python: Option<&Python>) -> Vec<Check> {
    let Some(python) = python else {
        let mend = "install Python 3.10 or newer, or set MASKLOOM_PYTHON (only torch:* backends need it)";
        return vec![check("python", Health::Amber, "no Python answers", Some(mend))];
    };
    let found = format!("{} at {}", python.version, python.path.display());
    let mut checks = vec![check("python", Health::Green, found, None)];
    let pip = format!("{} -m pip install", python.path.display());
    for (name, what_for, install) in [
        ("torch", "the torch:* backends", "torch"),
        ("triton", "torch:flex on a GPU", "triton"),
        ("flash-attn", "comparing with flash-attn itself", "flash-attn --no-build-isolation"),
        ("diffusers", "trying exports in a pipeline", "diffusers"),
    ] {
        checks.push(match python.packages.get(name) {
            Some(version) => check(name, Health::Green, version.clone(), None),
            None => {
                let mend = format!("{pip} {install}");
                check(name, Health::Amber, format!("not installed; only {what_for} would use it"), Some(&mend))
            }
        });
    }
    checks
}

fn toolkit() -> Check {
    let home = ["CUDA_HOME", "CUDA_PATH"].into_iter().find_map(std::env::var_os);
    let nvcc = python::on_path(if cfg!(windows) { "nvcc.exe" } else { "nvcc" });
    let found = match (&home, &nvcc) {
        (Some(home), _) => format!("CUDA_HOME is {}", Path::new(home).display()),
        (None, Some(nvcc)) => format!("nvcc at {}", nvcc.display()),
        (None, None) => "none".into(),
    };
    check("toolkit", Health::Green, format!("{found}; not needed: kernels are compiled by NVRTC's library alone"), None)
}

fn window() -> Check {
    match display::probe() {
        Display::Ready(words) => check("display", Health::Green, words, None),
        Display::ReadyWithoutWayland(words) => {
            check("display", Health::Amber, format!("{words}; WAYLAND_DISPLAY is stale"), Some("unset WAYLAND_DISPLAY"))
        }
        Display::Missing(why) => check("display", Health::Amber, why.message, why.hint.as_deref()),
    }
}

fn cache() -> Check {
    let Some(folder) = folders::cache() else {
        let mend = "set MASKLOOM_CACHE to a folder";
        return check("cache", Health::Amber, "no home folder: kernels are compiled anew each time", Some(mend));
    };
    let shown = folder.display().to_string();
    // the nearest folder that exists decides whether it could be made
    let nearest = folder.ancestors().find(|f| f.exists()).unwrap_or(Path::new("/"));
    match tempfile::tempfile_in(nearest) {
        Ok(_) => check("cache", Health::Green, shown, None),
        Err(e) => {
            let mend = "set MASKLOOM_CACHE to a folder that can be written";
            check("cache", Health::Amber, format!("{shown} cannot be written ({e})"), Some(mend))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn what_is_missing_names_its_command() {
        let packages = BTreeMap::from([("torch".to_string(), "2.11".to_string())]);
        let python = Python { path: "/x/python".into(), version: "3.11".into(), packages, folders: vec![] };
        let checks = python_checks(Some(&python));
        let torch = checks.iter().find(|c| c.name == "torch").unwrap();
        assert_eq!((torch.health, torch.found.as_str()), (Health::Green, "2.11"));
        let diffusers = checks.iter().find(|c| c.name == "diffusers").unwrap();
        assert_eq!(diffusers.mend.as_deref(), Some("/x/python -m pip install diffusers"));
        assert_eq!(python_checks(None)[0].health, Health::Amber);
    }

    #[test]
    fn nothing_but_green_lacks_a_mend() {
        let probe = cuda::probe();
        for check in gpu_checks(&probe).into_iter().chain([cpu(), nvrtc(&probe), toolkit(), window(), cache()]) {
            assert!(check.health == Health::Green || check.mend.is_some(), "{check:?}");
        }
    }
}
