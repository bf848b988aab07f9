//! Whether a window can be opened here, determined before any call of the window system.
//!
//! Invariant: answers within a second and never panics (the window system's own start panics if a library is missing).
//! Must not know the window.

use crate::base::Diagnostic;
use std::path::{Path, PathBuf};

/// Libraries that an X11 window opens at run time.
const X11_LIBRARIES: [&str; 7] = [
    "libX11.so.6",
    "libX11-xcb.so.1",
    "libXcursor.so.1",
    "libXi.so.6",
    "libxkbcommon.so.0",
    "libxkbcommon-x11.so.0",
    "libGL.so.1",
];
/// Libraries that a Wayland window opens at run time.
const WAYLAND_LIBRARIES: [&str; 4] =
    ["libwayland-client.so.0", "libwayland-egl.so.1", "libxkbcommon.so.0", "libEGL.so.1"];

/// Debian's packages of all of them.
pub const X11_PACKAGES: &str = "libx11-6 libx11-xcb1 libxcursor1 libxi6 libxkbcommon0 libxkbcommon-x11-0 libgl1";
/// Debian's packages for Wayland.
pub const WAYLAND_PACKAGES: &str = "libwayland-client0 libwayland-egl1 libxkbcommon0 libegl1";

/// The requirements of a window on this machine.
#[derive(Clone, Debug, PartialEq)]
pub enum Display {
    /// A window can be opened; which system, in words.
    Ready(String),
    /// Only without `WAYLAND_DISPLAY`, which names a compositor that is gone: start again without it.
    ReadyWithoutWayland(String),
    /// None can; why and what to do.
    Missing(Diagnostic),
}

/// Looks.
pub fn probe() -> Display {
    if cfg!(not(target_os = "linux")) {
        return Display::Ready(std::env::consts::OS.into());
    }
    let variable = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
    let found = Found {
        wayland: variable("WAYLAND_DISPLAY").map(|name| (name.clone(), wayland_answers(&name))),
        x11: variable("DISPLAY").map(|name| (name.clone(), x11_answers(&name))),
        missing_wayland: missing(&WAYLAND_LIBRARIES),
        missing_x11: missing(&X11_LIBRARIES),
    };
    decide(&found)
}

struct Found {
    wayland: Option<(String, bool)>,
    x11: Option<(String, bool)>,
    missing_wayland: Vec<&'static str>,
    missing_x11: Vec<&'static str>,
}

fn decide(found: &Found) -> Display {
    let x11_ready = matches!(found.x11, Some((_, true))) && found.missing_x11.is_empty();
    let x11_words = || format!("X11 on {}", found.x11.as_ref().map_or("", |(n, _)| n));
    match &found.wayland {
        Some((name, true)) if found.missing_wayland.is_empty() => Display::Ready(format!("Wayland on {name}")),
        Some(_) if x11_ready => Display::ReadyWithoutWayland(x11_words()),
        None if x11_ready => Display::Ready(x11_words()),
        _ => Display::Missing(why_not(found)),
    }
}

fn why_not(found: &Found) -> Diagnostic {
    let install = |missing: &[&str], packages: &str| {
        Diagnostic::error("display-libraries", format!("no window: missing libraries: {}", missing.join(", ")))
            .hint(format!("sudo apt-get install -y {packages}"))
    };
    if matches!(found.x11, Some((_, true))) {
        return install(&found.missing_x11, X11_PACKAGES);
    }
    if matches!(found.wayland, Some((_, true))) {
        return install(&found.missing_wayland, WAYLAND_PACKAGES);
    }
    let message = match (&found.wayland, &found.x11) {
        (_, Some((name, _))) => format!("no window: no X server answers on DISPLAY={name}"),
        (Some((name, _)), None) => format!("no window: no compositor answers on WAYLAND_DISPLAY={name}"),
        (None, None) => "no window: neither DISPLAY nor WAYLAND_DISPLAY is set".into(),
    };
    let mut hint = String::from(
        "run Maskloom on your own machine and connect to this one (maskloom, Connect a GPU, `ssh HOST maskloom worker`); \
         or use `ssh -X`",
    );
    if !found.missing_x11.is_empty() {
        hint.push_str(&format!("; a window here also needs: sudo apt-get install -y {X11_PACKAGES}"));
    }
    Diagnostic::error("no-display", message).hint(hint)
}

#[cfg(unix)]
fn wayland_answers(name: &str) -> bool {
    let folder = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).unwrap_or_default();
    std::os::unix::net::UnixStream::connect(folder.join(name)).is_ok()
}

#[cfg(unix)]
fn x11_answers(display: &str) -> bool {
    use std::net::ToSocketAddrs;
    let Some((host, number)) = parse_x11(display) else { return false };
    if host.is_empty() || host == "unix" {
        if std::os::unix::net::UnixStream::connect(format!("/tmp/.X11-unix/X{number}")).is_ok() {
            return true;
        }
        return abstract_x11_answers(number);
    }
    let second = std::time::Duration::from_secs(1);
    let addresses = (host, 6000 + number).to_socket_addrs().into_iter().flatten();
    addresses.take(2).any(|a| std::net::TcpStream::connect_timeout(&a, second).is_ok())
}

#[cfg(target_os = "linux")]
fn abstract_x11_answers(number: u16) -> bool {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixStream};
    let address = SocketAddr::from_abstract_name(format!("/tmp/.X11-unix/X{number}"));
    address.and_then(|a| UnixStream::connect_addr(&a)).is_ok()
}

#[cfg(all(unix, not(target_os = "linux")))]
fn abstract_x11_answers(_number: u16) -> bool {
    false
}

#[cfg(not(unix))]
fn wayland_answers(_name: &str) -> bool {
    true
}

#[cfg(not(unix))]
fn x11_answers(_display: &str) -> bool {
    true
}

/// Host and display number of `host:number.screen`.
#[cfg(unix)]
fn parse_x11(display: &str) -> Option<(&str, u16)> {
    let (host, rest) = display.rsplit_once(':')?;
    let number: u16 = rest.split('.').next()?.parse().ok()?;
    (number < 50_000).then_some((host, number))
}

/// Which of these libraries the system's loader would not find.
fn missing(names: &[&'static str]) -> Vec<&'static str> {
    let cached = loader_cache();
    let folders = loader_folders();
    let found = |name: &str| cached.contains(name) || folders.iter().any(|f| f.join(name).exists());
    names.iter().copied().filter(|name| !found(name)).collect()
}

fn loader_cache() -> String {
    for program in ["/sbin/ldconfig", "/usr/sbin/ldconfig", "ldconfig"] {
        let mut command = std::process::Command::new(program);
        command.arg("-p");
        let limit = std::time::Duration::from_secs(1);
        if let Some(said) = worker::limited::run(command, limit).filter(|s| s.success) {
            return said.stdout;
        }
    }
    String::new()
}

fn loader_folders() -> Vec<PathBuf> {
    let arch = std::env::consts::ARCH;
    let mut folders: Vec<PathBuf> =
        std::env::var_os("LD_LIBRARY_PATH").map(|v| std::env::split_paths(&v).collect()).unwrap_or_default();
    for folder in ["/usr/lib64", "/usr/lib", "/lib64", "/lib", "/usr/local/lib", "/run/opengl-driver/lib"] {
        folders.push(folder.into());
        folders.push(Path::new(folder).join(format!("{arch}-linux-gnu")));
    }
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(wayland: Option<bool>, x11: Option<bool>, missing_x11: &[&'static str]) -> Found {
        Found {
            wayland: wayland.map(|ok| ("wayland-0".into(), ok)),
            x11: x11.map(|ok| (":1".into(), ok)),
            missing_wayland: vec![],
            missing_x11: missing_x11.to_vec(),
        }
    }

    fn code(found: &Found) -> String {
        match decide(found) {
            Display::Missing(why) => why.code.into_owned(),
            Display::Ready(words) => words,
            Display::ReadyWithoutWayland(words) => format!("without wayland: {words}"),
        }
    }

    #[test]
    fn each_situation_has_its_answer() {
        assert_eq!(code(&found(None, Some(true), &[])), "X11 on :1");
        assert_eq!(code(&found(Some(true), None, &["libXi.so.6"])), "Wayland on wayland-0");
        assert_eq!(code(&found(Some(false), Some(true), &[])), "without wayland: X11 on :1");
        assert_eq!(code(&found(None, Some(true), &["libxkbcommon.so.0"])), "display-libraries");
        assert_eq!(code(&found(None, Some(false), &[])), "no-display");
        assert_eq!(code(&found(Some(false), None, &[])), "no-display");
        assert_eq!(code(&found(None, None, &["libXi.so.6"])), "no-display");
        let Display::Missing(why) = decide(&found(None, None, &["libXi.so.6"])) else { panic!() };
        assert!(why.hint.unwrap().contains("libxi6"));
    }

    #[cfg(unix)]
    #[test]
    fn displays_are_read_as_x_does() {
        assert_eq!(parse_x11(":99"), Some(("", 99)));
        assert_eq!(parse_x11("localhost:10.0"), Some(("localhost", 10)));
        for bad in ["", "99", ":x", ":99999"] {
            assert_eq!(parse_x11(bad), None, "{bad}");
        }
        assert!(!x11_answers(":4711"));
    }
}
