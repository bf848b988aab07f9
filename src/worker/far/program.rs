//! The program that becomes a worker on another machine, and whether it runs there.
//!
//! Invariant: a program of another processor or for a newer C library is refused before it travels; whether it runs is known only
//! when it has run there. Must not know how it travels.

use crate::base::Diagnostic;
use crate::worker::files;
use crate::worker::named::Found;
use miniz_oxide::deflate::compress_to_vec;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// Most bytes of a program.
const MOST: u64 = 1 << 30;
/// How hard it is packed, of 10: higher levels take twice as long for one part in a hundred.
const LEVEL: u8 = 6;

/// A program that can travel.
#[derive(Debug)]
pub struct Program {
    /// Where it is here.
    pub path: PathBuf,
    /// Its content.
    pub bytes: Vec<u8>,
    /// Its SHA-256.
    pub hash: String,
}

/// Machines by their numbers in a program's header, and by uname's names.
const MACHINES: [(u16, &[&str]); 3] = [(62, &["x86_64", "amd64"]), (183, &["aarch64", "arm64"]), (243, &["riscv64"])];

impl Program {
    /// A given file, `MASKLOOM_REMOTE_WORKER`, or the running program. Errors: it cannot be read.
    pub fn chosen(given: Option<&Path>) -> Result<Program, Diagnostic> {
        let variable = || std::env::var_os("MASKLOOM_REMOTE_WORKER").filter(|v| !v.is_empty()).map(PathBuf::from);
        let own = || {
            // the running program, also if its file was replaced meanwhile
            let same = Path::new("/proc/self/exe");
            if same.exists() { Ok(same.to_path_buf()) } else { std::env::current_exe() }
        };
        let path = match given.map(Path::to_path_buf).or_else(variable) {
            Some(path) => path,
            None => own().map_err(|e| {
                Diagnostic::error("target-worker", format!("cannot find the running program: {e}"))
                    .hint("name the program for the target: --worker /path/to/maskloom")
            })?,
        };
        let (file, length) = files::open(&path)?;
        if length > MOST {
            let message = format!("{} has {length} bytes: no program of Maskloom has", path.display());
            return Err(
                Diagnostic::error("target-worker", message).hint("name the program: --worker /path/to/maskloom")
            );
        }
        drop(file);
        let bytes = files::read(&path)?;
        let hash = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        let shown = std::fs::read_link(&path).unwrap_or(path);
        Ok(Program { path: shown, bytes, hash })
    }

    /// Errors: it cannot run there.
    pub fn fits(&self, found: &Found) -> Result<(), Diagnostic> {
        let shown = self.path.display();
        let other = |message: String| {
            Diagnostic::error("target-worker", message).hint(
                "build it for that machine and name it: cargo build -p maskloom --profile dist --no-default-features, then \
                 --worker /path/to/maskloom (or MASKLOOM_REMOTE_WORKER)",
            )
        };
        let Some(machine) = machine(&self.bytes) else {
            // a script may start a program that is there already
            let script = self.bytes.starts_with(b"#!");
            return if script { Ok(()) } else { Err(other(format!("{shown} is no program of Linux"))) };
        };
        let fitting = MACHINES.iter().any(|(number, names)| *number == machine && names.contains(&&*found.arch));
        if !fitting {
            let own = MACHINES
                .iter()
                .find(|(number, _)| *number == machine)
                .map_or("another processor", |(_, names)| names[0]);
            return Err(other(format!("{shown} is for {own}, and the target is {}", found.arch)));
        }
        let Some(needed) = glibc(&self.bytes) else { return Ok(()) };
        let (major, minor) = needed;
        if found.libc == "musl" {
            return Err(other(format!("{shown} needs glibc {major}.{minor}, and the target has musl")));
        }
        match there(&found.libc) {
            Some(has) if has < needed => {
                Err(other(format!("{shown} needs glibc {major}.{minor}, and the target has {}.{}", has.0, has.1)))
            }
            _ => Ok(()),
        }
    }

    /// Packed for gzip.
    pub fn packed(&self) -> Vec<u8> {
        gzip(&self.bytes)
    }
}

/// The format of gzip: which every system unpacks.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    out.extend(compress_to_vec(bytes, LEVEL));
    out.extend(crc32(bytes).to_le_bytes());
    out.extend((bytes.len() as u32).to_le_bytes());
    out
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut table = [0u32; 256];
    for (n, entry) in table.iter_mut().enumerate() {
        *entry = (0..8).fold(n as u32, |c, _| if c & 1 == 1 { 0xedb8_8320 ^ (c >> 1) } else { c >> 1 });
    }
    !bytes.iter().fold(!0, |crc, byte| table[usize::from(crc as u8 ^ byte)] ^ (crc >> 8))
}

/// The machine of an ELF file.
fn machine(bytes: &[u8]) -> Option<u16> {
    let header = bytes.get(..20)?;
    header.starts_with(b"\x7fELF").then(|| u16::from_le_bytes([header[18], header[19]]))
}

/// The newest version of glibc that a program names.
fn glibc(bytes: &[u8]) -> Option<(u32, u32)> {
    let mark: Vec<u8> = [b"GLIBC".as_slice(), b"_"].concat();
    let mut newest = None;
    let mut rest = bytes;
    while let Some(at) = find(rest, &mark) {
        rest = &rest[at + mark.len()..];
        let end = rest.iter().position(|b| !b.is_ascii_digit() && *b != b'.').unwrap_or(rest.len()).min(12);
        // versions end with a zero in the table of strings
        if rest.get(end) == Some(&0) {
            newest = newest.max(version(&String::from_utf8_lossy(&rest[..end])));
        }
    }
    newest
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = text[from..].iter().position(|b| *b == part[0]) {
        if text[from + at..].starts_with(part) {
            return Some(from + at);
        }
        from += at + 1;
    }
    None
}

/// `glibc 2.36`
fn there(libc: &str) -> Option<(u32, u32)> {
    version(libc.strip_prefix("glibc ")?)
}

fn version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn found(arch: &str, libc: &str) -> Found {
        Found { arch: arch.into(), libc: libc.into(), ..Found::default() }
    }

    #[test]
    fn another_processor_and_an_older_library_are_refused_before_anything_travels() {
        let own = Program::chosen(Some(Path::new("/bin/sh"))).unwrap();
        let arch = std::env::consts::ARCH;
        own.fits(&found(arch, "glibc 2.99")).unwrap();
        own.fits(&found(arch, "")).unwrap();
        let other = if arch == "x86_64" { "aarch64" } else { "x86_64" };
        let why = own.fits(&found(other, "glibc 2.99")).unwrap_err();
        assert!(why.message.contains(&format!("is for {arch}, and the target is {other}")), "{why}");
        let why = own.fits(&found(arch, "glibc 2.1")).unwrap_err();
        assert!(
            why.message.contains("the target has 2.1") && why.hint.unwrap().contains("--worker"),
            "{}",
            why.message
        );
        assert!(own.fits(&found(arch, "musl")).unwrap_err().message.contains("has musl"));
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        let mut bytes = Vec::new();
        for text in ["GLIBC", "_2.9\0", "GLIBC", "_2.34\0", "GLIBC", "_2.4\0x", "GLIBC", "_2.99 in a message"] {
            bytes.extend(text.as_bytes());
        }
        assert_eq!(glibc(&bytes), Some((2, 34)));
        assert!(there("glibc 2.9") < there("glibc 2.34") && there("musl").is_none());
    }

    #[test]
    fn gzip_of_the_system_unpacks_it() {
        use std::io::Write;
        let bytes: Vec<u8> = (0..100_000u32).flat_map(|n| n.wrapping_mul(n).to_le_bytes()).collect();
        let mut gzip = std::process::Command::new("gzip")
            .arg("-dc")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = gzip.stdin.take().unwrap();
        let packed = super::gzip(&bytes);
        let writing = std::thread::spawn(move || stdin.write_all(&packed).unwrap());
        let out = gzip.wait_with_output().unwrap();
        writing.join().unwrap();
        assert!(out.status.success() && out.stdout == bytes);
    }
}
