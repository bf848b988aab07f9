//! What another machine has: asked by one script over its pipe.
//!
//! Invariant: the script changes nothing but our own folder there, which it makes to see whether it can; what is not found is left
//! out. Must not know what is done with the answer.

use crate::base::Diagnostic;
use crate::worker::far::script::quoted;
use crate::worker::far::shell::{Answer, SOON, Shell};
use crate::worker::named::Found;

/// `folder` and `root` are set before it. Each line that it prints is `key=value`; several lines of one key are a list.
const SCRIPT: &str = r#"
say() { if [ -n "$2" ]; then printf '%s=%s\n' "$1" "$2"; fi; }
have() { command -v "$1" >/dev/null 2>&1; }
say system "$(uname -s 2>/dev/null)"
say arch "$(uname -m 2>/dev/null)"
say host "$(uname -n 2>/dev/null)"
say user "$(id -un 2>/dev/null)"
libc=$(getconf GNU_LIBC_VERSION 2>/dev/null)
if [ -z "$libc" ]; then
  case "$(ldd --version 2>&1 | head -n 1)" in
    *musl*) libc=musl ;;
    *GLIBC*|*GNU*) libc="glibc $(ldd --version 2>&1 | head -n 1 | sed 's/.* //')" ;;
  esac
fi
say libc "$libc"
say driver "$(sed -n 's/^NVRM version:[^0-9]*\([0-9][0-9.]*[0-9]\).*/\1/p' /proc/driver/nvidia/version 2>/dev/null | head -n 1)"
if have nvidia-smi; then
  nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 16 | while read -r gpu; do say gpu "$gpu"; done
fi
for at in "$MASKLOOM_NVRTC" /usr/local/cuda*/lib64/libnvrtc.so.1[2-9] /usr/lib/*/libnvrtc.so.1[2-9] "${VIRTUAL_ENV:-/none}"/lib/python3*/site-packages/nvidia/*/lib/libnvrtc.so.1[2-9]; do
  if [ -f "$at" ]; then say nvrtc "$at"; break; fi
done
for at in "$MASKLOOM_PYTHON" "${VIRTUAL_ENV:-/none}/bin/python" "${CONDA_PREFIX:-/none}/bin/python" "$(command -v python3)" "$(command -v python)"; do
  if [ -x "$at" ]; then
    say python "$at $("$at" -c 'import sys; print(sys.version.split()[0])' 2>/dev/null)"
    break
  fi
done
case "$folder" in
  '') if [ -n "$XDG_CACHE_HOME" ]; then folder="$XDG_CACHE_HOME/maskloom"; else folder="$HOME/.cache/maskloom"; fi; folder="$folder/remote" ;;
esac
say folder "$folder"
say home "$HOME"
why=$( (umask 077; mkdir -p "$folder" && : > "$folder/.try.$$" && rm -f "$folder/.try.$$") 2>&1) || say unwritable "${why:-no reason given}"
say free "$(df -Pk "$folder" 2>/dev/null | awk 'NR == 2 { print $4 }')"
if have gzip; then say unpack gzip; fi
if have sha256sum; then say sum sha256sum; elif have shasum; then say sum 'shasum -a 256'; elif have openssl; then say sum 'openssl dgst -sha256 -r'; fi
"#;

/// What the script found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probed {
    /// To be remembered.
    pub found: Found,
    /// It can take a packed program apart.
    pub unpacks: bool,
    /// The command that gives SHA-256 sums.
    pub sum: Option<String>,
}

/// Asks. `folder`: ours there, in place of the one in its cache. Errors: no shell there, no Linux, no folder that can be written.
pub fn probe(shell: &mut Shell, folder: Option<&str>) -> Result<Probed, Diagnostic> {
    let script = format!("folder={}\n{SCRIPT}", quoted(folder.unwrap_or_default()));
    read(&shell.run(&script, SOON)?)
}

fn read(answer: &Answer) -> Result<Probed, Diagnostic> {
    let text = |key: &str| answer.value(key).unwrap_or_default().to_string();
    let some = |key: &str| answer.value(key).map(String::from);
    let gpus = answer.lines.iter().filter_map(|line| line.strip_prefix("gpu=")).map(String::from).collect();
    let found = Found {
        system: text("system"),
        arch: text("arch"),
        libc: text("libc"),
        host: text("host"),
        user: text("user"),
        driver: some("driver"),
        gpus,
        nvrtc: some("nvrtc"),
        python: some("python"),
        folder: text("folder"),
        free: answer.value("free").and_then(|kib| kib.parse::<u64>().ok()).map_or(0, |kib| kib * 1024),
    };
    if found.system != "Linux" {
        let system = if found.system.is_empty() { "of an unknown system" } else { &found.system };
        return Err(Diagnostic::error("target-system", format!("the target is {system}, not Linux"))
            .hint("a target must run Linux; on Windows give the words that reach its WSL: ssh HOST wsl"));
    }
    if let Some(why) = answer.value("unwritable") {
        return Err(Diagnostic::error(
            "target-folder",
            format!("nothing can be written to {} there: {why}", found.folder),
        )
        .hint("name a folder there that can be written: --folder /scratch/me/maskloom"));
    }
    Ok(Probed { found, unpacks: answer.value("unpack").is_some(), sum: some("sum") })
}

impl Found {
    /// `Linux x86_64, glibc 2.36`
    pub fn system_words(&self) -> String {
        let libc = if self.libc.is_empty() { "unknown C library" } else { &self.libc };
        format!("{} {}, {libc}", self.system, self.arch)
    }

    /// The GPUs with their numbers, and the driver: `2 x NVIDIA H100, driver 580.95`.
    pub fn gpu_words(&self) -> String {
        let mut counted: Vec<(&str, usize)> = Vec::new();
        for gpu in &self.gpus {
            match counted.iter_mut().find(|(name, _)| name == gpu) {
                Some((_, count)) => *count += 1,
                None => counted.push((gpu, 1)),
            }
        }
        let gpus: Vec<String> =
            counted.iter().map(|(name, n)| if *n == 1 { name.to_string() } else { format!("{n} x {name}") }).collect();
        let gpus = if gpus.is_empty() { "no GPU".to_string() } else { gpus.join(", ") };
        match &self.driver {
            Some(driver) => format!("{gpus}, driver {driver}"),
            None => gpus,
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn answer(lines: &[&str]) -> Answer {
        Answer { lines: lines.iter().map(|l| l.to_string()).collect(), status: 0 }
    }

    #[test]
    fn this_machine_is_probed_through_a_shell() {
        let home = tempfile::tempdir().unwrap();
        let at = home.path().join("it's a $HOME \"x\"");
        let mut shell = Shell::open(&["sh", "-c", "exec sh", "--"].map(String::from)).unwrap();
        let probed = probe(&mut shell, Some(&at.display().to_string())).unwrap();
        assert_eq!((probed.found.system.as_str(), probed.found.arch.as_str()), ("Linux", std::env::consts::ARCH));
        assert!(probed.found.free > 0 && at.is_dir() && std::fs::read_dir(&at).unwrap().count() == 0, "{probed:?}");
        assert!(probed.sum.is_some() && probed.unpacks && !probed.found.libc.is_empty(), "{probed:?}");
    }

    #[test]
    fn what_cannot_be_a_target_is_refused_with_its_reason() {
        let refused = |lines: &[&str]| read(&answer(lines)).unwrap_err();
        assert!(refused(&["system=Darwin", "arch=arm64"]).message.contains("Darwin, not Linux"));
        assert_eq!(refused(&[]).code, "target-system");
        let why = refused(&["system=Linux", "folder=/h/.cache", "unwritable=mkdir: Read-only file system"]);
        assert!(why.code == "target-folder" && why.message.contains("Read-only"), "{why}");
    }

    #[test]
    fn gpus_are_counted() {
        let lines = ["system=Linux", "gpu=NVIDIA H100", "gpu=NVIDIA H100", "gpu=NVIDIA L4", "driver=580.95.05"];
        let words = read(&answer(&lines)).unwrap().found.gpu_words();
        assert_eq!(words, "2 x NVIDIA H100, NVIDIA L4, driver 580.95.05");
    }
}
