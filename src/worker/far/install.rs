//! Copying a worker to another machine, and taking it away.
//!
//! Invariant: a program has its name there only when its hash is right and it has run; a broken line leaves at most a part in our
//! folder, which the next copy removes; a folder that other clients use stays. Must not know the list of targets.

use crate::base::Diagnostic;
use crate::base::words;
use crate::worker::far::probe::Probed;
use crate::worker::far::program::Program;
use crate::worker::far::script::quoted;
use crate::worker::far::shell::{SOON, Shell};
use crate::worker::named::Installed;
use std::time::Duration;

/// For a copy over a slow line.
const COPYING: Duration = Duration::from_secs(1800);
/// Letters of the hash in the name of a worker's folder.
const SHORT: usize = 16;
/// The status of a script that found no space.
const FULL: i32 = 81;

/// Whose worker it is: a client's name for it.
pub struct Whose<'a> {
    /// The client of [`crate::worker::named::List`].
    pub client: &'a str,
    /// The target's name there.
    pub name: &'a str,
}

/// How it went.
pub struct Copied {
    /// The worker there.
    pub worker: Installed,
    /// Bytes that travelled; 0: it was there.
    pub sent: u64,
}

/// Puts the program there unless it is there. `on_way` hears the share that has travelled. Errors: it does not fit, the disk is
/// full, it does not run.
pub fn install(
    shell: &mut Shell,
    probed: &Probed,
    program: &Program,
    whose: &Whose,
    on_way: &mut dyn FnMut(usize, usize),
) -> Result<Copied, Diagnostic> {
    program.fits(&probed.found)?;
    let sum = probed.sum.as_deref().ok_or_else(|| {
        Diagnostic::error("target-tools", "the target has none of sha256sum, shasum and openssl")
            .hint("install coreutils there: what was copied must be checked")
    })?;
    let head = header(probed, program, whose, sum);
    let there = shell.run(&format!("{head}{CHECK}"), SOON)?;
    let sent = if there.value("there") == Some("yes") { 0 } else { copy(shell, probed, program, &head, on_way)? };
    let tried = shell.run(&format!("{head}{TRY}"), SOON)?;
    let path = format!("{}/maskloom", folder_of(probed, program));
    match tried.value("says").and_then(build_of) {
        Some(build) => {
            let worker = Installed { path, hash: program.hash.clone(), bytes: program.bytes.len() as u64, build };
            Ok(Copied { worker, sent })
        }
        None => {
            let said = tried.lines.join(" ");
            let message = format!("the worker was copied to {path} and does not run there: {}", said.trim());
            Err(Diagnostic::error("target-worker", message).hint(
                "a folder of programs that may not run (noexec) can be replaced: --folder; a program for that machine is named by \
                 --worker",
            ))
        }
    }
}

fn folder_of(probed: &Probed, program: &Program) -> String {
    format!("{}/worker-{}", probed.found.folder, &program.hash[..SHORT])
}

/// Sets the scripts' variables.
fn header(probed: &Probed, program: &Program, whose: &Whose, sum: &str) -> String {
    format!(
        "base={}\nat={}\nhash={}\nmark={}\nsum() {{ {sum} | cut -c 1-64; }}\numask 077\n",
        quoted(&probed.found.folder),
        quoted(&folder_of(probed, program)),
        program.hash,
        quoted(&mark(whose)),
    )
}

fn mark(whose: &Whose) -> String {
    format!("{}.{}", whose.client, whose.name)
}

/// Whether the right program is there.
const CHECK: &str = r#"
if [ -x "$at/maskloom" ] && [ "$(sum < "$at/maskloom")" = "$hash" ]; then echo there=yes; else echo there=no; fi
"#;

/// Takes `count` bytes and gives the program its name. `unpack` is set before.
const COPY: &str = r#"
mkdir -p "$at" || exit 80
[ "$(printf abc | head -c 2)" = ab ] || exit 86
rm -f "$at"/.new.*
new="$at/.new.$$"
trap 'rm -f "$new"' EXIT HUP TERM
ready
# every byte is read, also behind a failure: what is left would be taken for commands
if ! head -c "$count" | { $unpack > "$new"; status=$?; cat > /dev/null; exit $status; }; then
  free=$(df -Pk "$at" | awk 'NR == 2 { print $4 }')
  if [ "${free:-1}" -lt 64 ]; then exit 81; fi
  exit 82
fi
if [ "$(sum < "$new")" != "$hash" ]; then exit 83; fi
chmod 700 "$new" && mv -f "$new" "$at/maskloom" || exit 84
sync "$at/maskloom" 2>/dev/null || true
"#;

/// Runs it, and leaves our mark.
const TRY: &str = r#"
if says=$("$at/maskloom" --version 2>&1); then
  mkdir -p "$base/clients" && printf '%s\n' "${at##*/}" > "$base/clients/$mark"
  printf 'says=%s\n' "$says" | head -n 1
else
  printf '%s\n' "$says" | head -n 3
fi
"#;

fn copy(
    shell: &mut Shell,
    probed: &Probed,
    program: &Program,
    head: &str,
    on_way: &mut dyn FnMut(usize, usize),
) -> Result<u64, Diagnostic> {
    let needed = program.bytes.len() as u64;
    let folder = &probed.found.folder;
    let full = || {
        let (needed, free) = (words::bytes(needed), words::bytes(probed.found.free));
        Diagnostic::error(
            "target-disk-full",
            format!("the worker needs {needed} in {folder} there, and {free} are free"),
        )
        .hint("free some space there, or name another folder: --folder /scratch/me/maskloom")
    };
    if probed.found.free < needed {
        return Err(full());
    }
    let packed;
    let (bytes, unpack) = match probed.unpacks {
        true => {
            packed = program.packed();
            (&packed, "gzip -dc")
        }
        false => (&program.bytes, "cat"),
    };
    let script = format!("{head}count={}\nunpack='{unpack}'\n{COPY}", bytes.len());
    let fed = shell.feed(&script, bytes, COPYING, &mut |n| on_way(n, bytes.len()))?;
    match fed.status {
        0 => Ok(bytes.len() as u64),
        FULL => Err(full()),
        83 => Err(Diagnostic::error("target-copy", "what arrived there is not what was sent: its SHA-256 differs")
            .hint("something on the way changes bytes (a terminal?); use words that give a plain pipe")),
        status => Err(Diagnostic::error(
            "target-copy",
            format!("the worker cannot be written to {folder} there (step {status})"),
        )
        .hint("look at the folder there: it must be this user's, with free space and no limit (quota)")),
    }
}

/// `maskloom 0.1.0 (825843d5c, release)`: the build.
fn build_of(says: &str) -> Option<String> {
    says.strip_prefix("maskloom ").map(|build| build.trim().to_string()).filter(|build| !build.is_empty())
}

/// Takes older workers of ours away, while nothing runs there that may still start them.
pub fn clear(shell: &mut Shell, folder: &str) -> Result<(), Diagnostic> {
    let script = format!(
        r#"base={}
for job in "$base"/jobs/*/; do
  if [ -d "$job" ] && [ ! -e "$job/end.json" ]; then exit 0; fi
done
for at in "$base"/worker-*; do
  if [ -d "$at" ] && ! grep -qsx "${{at##*/}}" "$base"/clients/*; then rm -rf "$at"; fi
done
"#,
        quoted(folder)
    );
    shell.run(&script, SOON).map(drop)
}

/// What was taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Our whole folder.
    All,
    /// Only our mark: so many others use the folder.
    Shared(usize),
}

/// Takes the worker away. The folder goes with it unless other clients use it. Errors: jobs run there.
pub fn remove(shell: &mut Shell, folder: &str, whose: &Whose, even_with_jobs: bool) -> Result<Taken, Diagnostic> {
    // what is removed has the look of ours: a folder of another content stays
    let script = format!(
        r#"base={}
mark={}
force={}
if [ ! -d "$base" ]; then echo others=0; exit 0; fi
others=$(ls "$base/clients" 2>/dev/null | grep -cvxF -e "$mark")
if [ "$others" -eq 0 ] && [ "$force" = no ]; then
  for job in "$base"/jobs/*/; do
    if [ -f "$job/job.json" ] && [ ! -e "$job/end.json" ]; then
      pid=$(sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' "$job/began.json" 2>/dev/null)
      if [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null; then job=${{job%/}}; echo running="${{job##*/}}"; fi
    fi
  done | head -n 20 | grep . && exit 85
fi
rm -f "$base/clients/$mark"
if [ "$others" -eq 0 ]; then
  rm -rf "$base"/worker-* "$base/clients" "$base/jobs" "$base/kernels" "$base"/.maskloom-* "$base"/.try.*
  rmdir "$base" 2>/dev/null && rmdir "${{base%/*}}" 2>/dev/null
fi
echo others="$others"
"#,
        quoted(folder),
        quoted(&mark(whose)),
        if even_with_jobs { "yes" } else { "no" }
    );
    let answer = shell.run(&script, SOON)?;
    let running: Vec<&str> = answer.lines.iter().filter_map(|line| line.strip_prefix("running=")).collect();
    if !running.is_empty() {
        let message = format!("jobs still run there: {}", running.join(", "));
        return Err(Diagnostic::error("target-busy", message).hint(format!(
            "`maskloom cancel ID --target {}` ends one; `maskloom target remove {} --force` takes the worker away from under them",
            whose.name, whose.name
        )));
    }
    match answer.value("others").and_then(|n| n.parse().ok()) {
        Some(0) => Ok(Taken::All),
        Some(others) => Ok(Taken::Shared(others)),
        None => Err(Diagnostic::error("target-remove", format!("{folder} could not be removed there"))
            .hint("remove it by hand, then `maskloom target remove NAME --only-here`")),
    }
}
