//! The program: passes its arguments to the command line, and opens the window if they request it and a display exists.

use maskloom::base::identity::{self, Build};
use maskloom::base::memory::Counting;
use maskloom::cli;
use maskloom::worker::{asking, kin};
use std::process::ExitCode;

/// Races show what each backend holds; on the CPU that is counted here.
#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() -> ExitCode {
    // from build.rs
    let (commit, dirty) = (env!("BUILD_COMMIT"), env!("BUILD_DIRTY") == "true");
    identity::set(Build::of(env!("CARGO_PKG_VERSION"), commit, dirty, env!("BUILD_PROFILE")));
    if asking::is_helper() {
        return cli::answer(question);
    }
    let code = match cli::run() {
        cli::Asked::Done(code) => code,
        cli::Asked::Window { file } => window(file),
        cli::Asked::Frames(asked) => frames(*asked),
    };
    kin::settle();
    code
}

/// The window measures its frames, and the command line prints them.
#[cfg(feature = "window")]
fn frames(asked: cli::Frames) -> ExitCode {
    let of = |tokens: &usize| maskloom_app::frames::frame_times(*tokens, asked.only(), asked.seconds());
    let rows = asked.lengths().iter().flat_map(of).filter_map(|row| serde_json::to_value(row).ok()).collect();
    asked.tell(rows)
}

/// Without a display the tour replaces the window, unless something of the user's was to be opened; a window that was there and has
/// closed by itself says why. A name without a file may be a preset's.
#[cfg(feature = "window")]
fn window(file: Option<String>) -> ExitCode {
    let is_preset =
        |name: &String| maskloom::document::library::preset(name).is_some() && !std::path::Path::new(name).exists();
    let preset = file.clone().filter(is_preset);
    let open = file.clone().filter(|_| preset.is_none()).map(Into::into);
    use maskloom_app::Ended;
    match maskloom_app::run(maskloom_app::Options { open, preset, ..maskloom_app::Options::for_user() }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Ended::NoWindow(why)) => cli::without_window(why, file.as_deref()),
        Err(Ended::Broke(why)) => cli::refuse(why),
    }
}

/// A question of ssh in a window of its own.
#[cfg(feature = "window")]
fn question(words: &str, secret: bool) -> Option<String> {
    maskloom_app::ask(words, secret)
}

#[cfg(not(feature = "window"))]
fn question(_: &str, _: bool) -> Option<String> {
    None
}

#[cfg(not(feature = "window"))]
fn frames(_: cli::Frames) -> ExitCode {
    cli::refuse(without_window())
}

#[cfg(not(feature = "window"))]
fn window(file: Option<String>) -> ExitCode {
    cli::without_window(without_window(), file.as_deref())
}

#[cfg(not(feature = "window"))]
fn without_window() -> maskloom::base::Diagnostic {
    maskloom::base::Diagnostic::error("no-window", "this program was built without its window")
        .hint("build it with the feature `window`: cargo build --release")
}
