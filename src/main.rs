//! The program: hands its arguments to the command line, and opens the window where they ask for it and there is one.

use maskloom::cli;
use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::run() {
        cli::Asked::Done(code) => code,
        cli::Asked::Window { file } => window(file),
    }
}

/// Without a display the tour stands in.
fn window(_file: Option<String>) -> ExitCode {
    let why = maskloom::base::Diagnostic::error("no-window", "this build has no window yet");
    cli::tour(&why)
}
