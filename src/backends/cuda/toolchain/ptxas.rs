//! The data of the compiler's log: a kernel's registers, shared memory, stack and spills; the place of an error.
//!
//! Invariant: reads text only; a number that is missing in the log is 0. Must not know how the kernel was compiled.

/// Resources of one entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Resources {
    /// Registers a thread.
    pub registers: u32,
    /// Static shared memory, bytes.
    pub shared_bytes: u32,
    /// Stack frame a thread, bytes.
    pub stack_bytes: u32,
    /// Spill stores plus loads, bytes.
    pub spill_bytes: u32,
}

/// Resources that `--ptxas-options=-v` reported for `entry`.
pub(crate) fn resources(log: &str, entry: &str) -> Resources {
    let mut found = Resources::default();
    let quoted = format!("'{entry}'");
    let mut inside = false;
    for line in log.lines() {
        if line.contains("Compiling entry function") {
            inside = line.contains(&quoted);
        }
        if !inside {
            continue;
        }
        if line.contains("bytes stack frame") {
            // functions that the entry calls report their own frames in between: the largest counts
            found.stack_bytes = found.stack_bytes.max(number_before(line, "bytes stack frame"));
            let spills = number_before(line, "bytes spill stores") + number_before(line, "bytes spill loads");
            found.spill_bytes = found.spill_bytes.max(spills);
        }
        if line.contains("registers") {
            found.registers = number_before(line, "registers");
            found.shared_bytes = number_before(line, "bytes smem");
        }
    }
    found
}

/// The number right before `words` in a line.
fn number_before(line: &str, words: &str) -> u32 {
    let Some(at) = line.find(words) else { return 0 };
    let digits = line[..at].trim_end().rsplit(|c: char| !c.is_ascii_digit()).next();
    digits.and_then(|d| d.parse().ok()).unwrap_or(0)
}

/// Warnings that mean a slow kernel: serialised matrix instructions, an ignored register reallocation.
pub(crate) fn performance_loss(log: &str) -> Option<&str> {
    log.lines().find(|l| l.contains("Potential Performance Loss"))
}

/// One error of the C++ front end: `file(line): error: message`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CompileError<'a> {
    /// File by its `#line` name.
    pub file: &'a str,
    /// Line in it, from 1.
    pub line: usize,
    /// The error message.
    pub message: &'a str,
}

/// The first error of a log.
pub(crate) fn first_error(log: &str) -> Option<CompileError<'_>> {
    log.lines().find_map(|line| {
        let (place, message) = line.split_once(": error: ").or_else(|| line.split_once("): error "))?;
        let (file, number) = place.trim_end_matches(')').rsplit_once('(')?;
        Some(CompileError { file, line: number.parse().ok()?, message: message.trim() })
    })
}

#[cfg(test)]
mod tests {
    use crate::backends::cuda::toolchain::ptxas::*;

    const LOG: &str = "\
ptxas info    : 68 bytes gmem, 136 bytes cmem[4]
ptxas info    : Compiling entry function 'fill_dense' for 'sm_80'
ptxas info    : Function properties for fill_dense
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 20 registers, used 0 barriers, 632 bytes cmem[0]
ptxas info    : Compiling entry function 'flex_forward' for 'sm_80'
ptxas info    : Function properties for flex_forward
ptxas         .     48 bytes stack frame, 52 bytes spill stores, 44 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 128 bytes smem, 600 bytes cmem[0]
";

    #[test]
    fn reads_the_entry_asked_for() {
        let wanted = Resources { registers: 255, shared_bytes: 128, stack_bytes: 48, spill_bytes: 96 };
        assert_eq!(resources(LOG, "flex_forward"), wanted);
        assert_eq!(resources(LOG, "fill_dense").registers, 20);
        assert_eq!(resources(LOG, "absent"), Resources::default());
    }

    #[test]
    fn finds_errors_and_slow_code() {
        let log =
            "mods(3): warning #177-D: unused\nmod_source_1(12): error: identifier \"foo\" is undefined\n\n1 error";
        let error = first_error(log).unwrap();
        assert_eq!((error.file, error.line), ("mod_source_1", 12));
        assert_eq!(error.message, "identifier \"foo\" is undefined");
        assert_eq!(first_error("all is well"), None);
        assert!(performance_loss("ptxas info : (C7510) Potential Performance Loss: wgmma serialized").is_some());
    }
}
