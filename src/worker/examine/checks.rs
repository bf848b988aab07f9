//! The doctor's checks.
//!
//! Invariant: one function per check; none panics, none takes longer than its helpers' time limits. Must not know how
//! they are shown.

use super::settings;
use crate::backends::cuda::{self, Nvrtc, Probe};
use crate::base::Diagnostic;
use crate::worker::display::{self, Display};
use crate::worker::protocol::{Check, DoctorReport, Health};
use crate::worker::user_python::{self, Python};
use crate::worker::{folders, machine};
use std::path::Path;

pub(super) fn all() -> DoctorReport {
    let mut report = DoctorReport::default();
    let python = user_python::find();
    let gpu = cuda::probe();
    let nvrtc = match gpu.driver {
        Some(driver) => cuda::nvrtc_for_driver(driver),
        None => Nvrtc::get(),
    };
    report.checks.push(cpu());
    report.checks.extend(gpu_checks(&gpu));
    report.checks.push(nvrtc_check(&gpu, &nvrtc));
    report.checks.push(cudnn(&gpu, python.as_ref()));
    report.checks.extend(python_checks(python.as_ref(), &gpu));
    report.checks.push(toolkit());
    report.checks.push(window());
    report.checks.push(cache());
    report.checks.extend(settings::checks(&settings::Used {
        nvrtc: nvrtc.as_ref().ok().map(|n| n.path()),
        python: python.as_ref().map(|p| p.path.as_path()),
    }));
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
        let found = format!("{}; everything except GPU timing works", why.message);
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
            Some(why) => {
                let found = format!(
                    "{}; the CPU backends, pictures, export and compiling for other cards work without it",
                    why.message
                );
                check(&name, Health::Amber, found, Some("maskloom run causal --device cpu"))
            }
        });
    }
    checks
}

fn nvrtc_check(probe: &Probe, nvrtc: &Result<&'static Nvrtc, Diagnostic>) -> Check {
    match nvrtc {
        Ok(nvrtc) => {
            let (major, minor) = nvrtc.version();
            let path = nvrtc.path().display();
            let found = match probe.driver {
                None => format!("{major}.{minor} at {path}"),
                Some((a, b)) => format!("{major}.{minor} at {path}; the driver runs CUDA {a}.{b}: they match"),
            };
            check("nvrtc", Health::Green, found, None)
        }
        Err(why) => {
            // without it a GPU can do nothing
            let health = if probe.devices.iter().any(|d| d.unusable.is_none()) { Health::Red } else { Health::Amber };
            check("nvrtc", health, why.message.clone(), Some("maskloom doctor --fix"))
        }
    }
}

fn cudnn(probe: &Probe, python: Option<&Python>) -> Check {
    let python = python.map_or("python3".into(), |p| p.path.display().to_string());
    // the wheel brings the cuBLAS that it needs; a PyTorch built for the cpu brings neither
    let wheel = if probe.driver.is_some_and(|driver| driver.0 < 13) { "cu12" } else { "cu13" };
    let mend = format!("{python} -m pip install nvidia-cudnn-{wheel}");
    match cuda::cudnn_version() {
        Ok(version) => check("cudnn", Health::Green, format!("{version}: sdpa on a GPU uses its fused kernel"), None),
        Err(_) if probe.devices.is_empty() => {
            check("cudnn", Health::Amber, "not found; only sdpa on a GPU uses it", Some(&mend))
        }
        Err(why) => {
            let found = format!("{}: sdpa runs Maskloom's own kernel instead", why.message);
            check("cudnn", Health::Amber, found, Some(&mend))
        }
    }
}

fn python_checks(python: Option<&Python>, probe: &Probe) -> Vec<Check> {
    let Some(python) = python else {
        let found = "no working Python was found; only the torch:* backends and `doctor --fix` need one";
        return vec![check("python", Health::Amber, found, Some("sudo apt-get install -y python3 python3-pip"))];
    };
    let found = format!("{} at {}", python.version, python.path.display());
    let mut checks = vec![check("python", Health::Green, found, None)];
    let pip = format!("{} -m pip install", python.path.display());
    for (name, what_for, install) in [
        ("torch", "the torch:* backends", "torch"),
        ("triton", "torch:flex on a GPU", "triton"),
        ("flash-attn", "comparing with flash-attn", "flash-attn --no-build-isolation"),
        ("diffusers", "testing exports in a pipeline", "diffusers"),
        ("transformers", "testing exports in a language model", "transformers"),
    ] {
        checks.push(match python.packages.get(name) {
            Some(version) if name == "torch" => torch(version, &pip, probe),
            Some(version) => check(name, Health::Green, version.clone(), None),
            None if name == "flash-attn" => {
                let found = format!("not installed; only {what_for} needs it, and sdpa is often sufficient");
                check(name, Health::Amber, found, Some("maskloom doctor --guide flash-attn"))
            }
            None => {
                let mend = format!("{pip} {install}");
                check(name, Health::Amber, format!("not installed; only {what_for} needs it"), Some(&mend))
            }
        });
    }
    checks
}

/// Whether torch was built for this machine: `2.11.0+cu130` needs a driver for CUDA 13, `+cpu` never meets a GPU.
fn torch(version: &str, pip: &str, probe: &Probe) -> Check {
    let wheel = |driver: (u32, u32)| {
        let index = if driver.0 >= 13 { "cu130" } else { "cu126" };
        format!("{pip} --force-reinstall torch --index-url https://download.pytorch.org/whl/{index}")
    };
    let local = version.split_once('+').map_or("", |(_, local)| local);
    let Some(driver) = probe.driver.filter(|_| !probe.devices.is_empty()) else {
        return check("torch", Health::Green, version, None);
    };
    if local == "cpu" {
        let found = format!("{version} is built for the CPU: torch:* cannot use the GPU");
        return check("torch", Health::Amber, found, Some(&wheel(driver)));
    }
    // cu130: 13.0, cu126: 12.6
    let built = local.strip_prefix("cu").and_then(|n| n.parse::<u32>().ok()).map(|n| (n / 10, n % 10));
    if built.is_some_and(|b| b.0 > driver.0) {
        let found = format!("{version} needs a newer driver: this one runs CUDA {}.{}", driver.0, driver.1);
        return check("torch", Health::Amber, found, Some(&wheel(driver)));
    }
    check("torch", Health::Green, version, None)
}

fn toolkit() -> Check {
    let set = ["CUDA_HOME", "CUDA_PATH"].into_iter().find_map(|name| Some((name, std::env::var_os(name)?)));
    let program = if cfg!(windows) { "nvcc.exe" } else { "nvcc" };
    let found = match (&set, user_python::on_path("nvcc")) {
        (Some((name, home)), _) if !Path::new(home).join("bin").join(program).is_file() => {
            let home = Path::new(home).display();
            let found = format!(
                "{name} is {home}, which has no nvcc: a build of flash-attn would fail; Maskloom needs none: NVRTC's library alone compiles the kernels"
            );
            return check("toolkit", Health::Amber, found, Some(&format!("unset {name}")));
        }
        (Some((name, home)), _) => format!("{name} is {}", Path::new(home).display()),
        (None, Some(nvcc)) => format!("nvcc at {}", nvcc.display()),
        (None, None) => "neither CUDA_HOME nor nvcc".into(),
    };
    check("toolkit", Health::Green, format!("{found}; not needed: NVRTC's library alone compiles the kernels"), None)
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
        let mend = "export MASKLOOM_CACHE=/tmp/maskloom-cache";
        return check(
            "cache",
            Health::Amber,
            "no home folder: kernels are compiled again in every process",
            Some(mend),
        );
    };
    let shown = folder.display().to_string();
    // the nearest that exists decides whether it could be made; a file in the way never can
    let nearest = folder.ancestors().find(|f| f.exists()).unwrap_or(Path::new("/"));
    match tempfile::NamedTempFile::new_in(nearest) {
        Ok(_) => check("cache", Health::Green, shown, None),
        Err(e) => {
            let mend = "export MASKLOOM_CACHE=/tmp/maskloom-cache";
            let found = format!("{shown} is not writable ({e}): kernels are compiled again in every process");
            check("cache", Health::Amber, found, Some(mend))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn python(torch: &str) -> Python {
        let packages = BTreeMap::from([("torch".to_string(), torch.to_string())]);
        Python { path: "/x/python".into(), version: "3.11".into(), packages, folders: vec![] }
    }

    fn named<'a>(checks: &'a [Check], name: &str) -> &'a Check {
        checks.iter().find(|c| c.name == name).unwrap_or_else(|| panic!("no {name}"))
    }

    #[test]
    fn what_is_missing_names_its_command() {
        let checks = python_checks(Some(&python("2.11")), &Probe::default());
        let torch = named(&checks, "torch");
        assert_eq!((torch.health, torch.found.as_str()), (Health::Green, "2.11"));
        assert_eq!(named(&checks, "diffusers").mend.as_deref(), Some("/x/python -m pip install diffusers"));
        assert_eq!(named(&checks, "flash-attn").mend.as_deref(), Some("maskloom doctor --guide flash-attn"));
        assert_eq!(python_checks(None, &Probe::default())[0].health, Health::Amber);
    }

    /// A probe of a machine with one card.
    fn with_card(capability: (u32, u32), driver: (u32, u32), unusable: Option<Diagnostic>) -> Probe {
        let limits = cuda::Limits::of_arch("sm_80").expect("an architecture");
        let name = "NVIDIA Example".to_string();
        let device =
            cuda::GpuInfo { ordinal: 0, name, compute_capability: capability, memory: 16 << 30, limits, unusable };
        Probe { driver: Some(driver), devices: vec![device], problem: None }
    }

    #[test]
    fn torch_is_held_against_the_driver() {
        let card = with_card((9, 0), (12, 4), None);
        let found = |torch: &str| named(&python_checks(Some(&python(torch)), &card), "torch").clone();
        assert_eq!(found("2.6.0+cu124").health, Health::Green);
        let newer = found("2.11.0+cu130");
        assert!(newer.found.contains("needs a newer driver") && newer.mend.unwrap().ends_with("whl/cu126"));
        assert!(found("2.11.0+cpu").found.contains("built for the CPU"));
    }

    #[test]
    fn an_old_card_is_told_what_still_works_and_no_nvrtc_is_red_beside_a_good_one() {
        let why = Diagnostic::error("gpu-too-old", "it has compute capability 7.5; the kernels need 8.0 or newer");
        let old = gpu_checks(&with_card((7, 5), (12, 4), Some(why)));
        let old = named(&old, "cuda:0");
        assert!(
            old.health == Health::Amber && old.found.contains("7.5") && old.found.contains("work without it"),
            "{old:?}"
        );
        let gone: Result<&'static Nvrtc, Diagnostic> = Err(Diagnostic::error("nvrtc-missing", "none"));
        let reported = nvrtc_check(&with_card((9, 0), (13, 0), None), &gone);
        assert_eq!((reported.health, reported.mend.as_deref()), (Health::Red, Some("maskloom doctor --fix")));
        assert_eq!(nvrtc_check(&Probe::default(), &gone).health, Health::Amber);
    }

    #[test]
    fn nothing_but_green_lacks_a_mend() {
        let probe = cuda::probe();
        let all = examine_quickly(&probe);
        for check in all {
            assert!(check.health == Health::Green || check.mend.is_some(), "{check:?}");
        }
    }

    fn examine_quickly(probe: &Probe) -> Vec<Check> {
        let fixed = [cpu(), nvrtc_check(probe, &Nvrtc::get()), cudnn(probe, None), toolkit(), window(), cache()];
        gpu_checks(probe).into_iter().chain(fixed).collect()
    }
}
