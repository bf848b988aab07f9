//! The shell text that runs on another machine.
//!
//! Invariant: POSIX only; what is not ours is quoted; a mark is never spelled in the text that prints it, because a terminal in
//! between echoes that text. Must not know who reads it.

use std::sync::atomic::{AtomicU32, Ordering};

/// A word that no earlier text contains.
pub fn nonce() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    format!("{:x}{:x}{:x}", since.as_nanos() as u64, std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The words that start a shell there. `sh` needs no quotes, whether its words are joined or not.
pub fn shell(words: &[String]) -> Vec<String> {
    words.iter().cloned().chain(["sh".to_string()]).collect()
}

/// A word as a shell reads it.
pub fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The mark of a worker that begins.
pub fn ready(nonce: &str) -> String {
    format!("maskloom-ready-{nonce}")
}

/// Turns echo and line editing off where a terminal is in between.
pub const RAW: &str = "if [ -t 0 ]; then stty raw -echo 2>/dev/null; fi";

/// Becomes the worker.
pub fn worker(name: &str, folder: &str, path: &str, nonce: &str) -> String {
    let (program, folder) = (quoted(path), quoted(folder));
    let gone =
        quoted(&format!("there is no worker {path} any more; `maskloom target update {name}` puts it there again"));
    // one compound command, which the shell has read to its end before it does anything
    format!(
        "{{ {RAW}; if [ ! -x {program} ]; then echo {gone} >&2; exit 127; fi; MASKLOOM_CACHE={folder}; export MASKLOOM_CACHE; \
         printf '\\n%s%s\\n' maskloom-ready- {nonce}; exec {program} worker; }}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_not_in_the_text_that_prints_it() {
        let nonce = nonce();
        assert_ne!(nonce, super::nonce());
        assert!(!worker("gpu", "/a b", "/a b/it's", &nonce).contains(&ready(&nonce)));
    }
}
