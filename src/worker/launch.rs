//! How a target's worker is launched: the words to start, and what is told to a shell there before the worker has its pipe.
//!
//! Invariant: a target with a name is launched through `sh`, which reads what it shall do from the pipe: no word is quoted for a
//! program that may or may not join its words (ssh does, docker does not). Must not know the protocol.

use crate::base::Diagnostic;
use crate::worker::far::script;
use crate::worker::named::{self, Named};
use crate::worker::target::Target;

/// A launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Program and arguments.
    pub words: Vec<String>,
    /// For the shell that these words start.
    pub opening: Option<Opening>,
}

/// What a shell is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// For its stdin.
    pub script: String,
    /// What it prints when its stdin is the worker's.
    pub ready: String,
}

impl Launch {
    /// Of a target. Errors: as of [`Target::words`].
    pub fn of(target: &Target) -> Result<Launch, Diagnostic> {
        match named::of_command(&target.command) {
            Some(named) => Ok(Launch::of_named(&named)),
            None => Ok(Launch { words: target.words()?, opening: None }),
        }
    }

    fn of_named(named: &Named) -> Launch {
        let nonce = script::nonce();
        let opening = Opening {
            script: script::worker(&named.name, &named.found.folder, &named.worker.path, &nonce),
            ready: script::ready(&nonce),
        };
        Launch { words: script::shell(&named.words), opening: Some(opening) }
    }
}
