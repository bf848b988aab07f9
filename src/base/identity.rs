//! Which build of Maskloom this is: version, commit, profile.
//!
//! Invariant: the program says it once, before anyone asks; where no program said it, the commit is unknown and not guessed.
//! Must not know where a commit comes from.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::OnceLock;

/// Letters of a commit that are shown.
const SHOWN: usize = 9;

/// A build. Two builds of one commit differ only where the tree had changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// `0.1.0`
    pub version: String,
    /// The whole hash; None: unknown, as in a tarball.
    #[serde(default)]
    pub commit: Option<String>,
    /// Whether files differed from the commit.
    #[serde(default)]
    pub dirty: bool,
    /// `release`, `debug`, `dist`
    #[serde(default)]
    pub profile: String,
}

static BUILD: OnceLock<Build> = OnceLock::new();

/// The program says what it is; only the first call counts.
pub fn set(build: Build) {
    let _ = BUILD.set(build);
}

/// This build.
pub fn build() -> &'static Build {
    BUILD.get_or_init(|| Build {
        version: env!("CARGO_PKG_VERSION").into(),
        commit: None,
        dirty: false,
        profile: if cfg!(debug_assertions) { "debug" } else { "release" }.into(),
    })
}

impl Build {
    /// From the texts that a build script hands over: an empty commit is an unknown one.
    pub fn of(version: &str, commit: &str, dirty: bool, profile: &str) -> Build {
        let commit = Some(commit.trim()).filter(|commit| !commit.is_empty()).map(String::from);
        Build { version: version.into(), dirty: dirty && commit.is_some(), commit, profile: profile.into() }
    }

    /// `825843d5c, dirty`, or `unknown commit`.
    pub fn commit_words(&self) -> String {
        let commit = self.commit.as_deref().map_or("unknown commit", |commit| commit.get(..SHOWN).unwrap_or(commit));
        format!("{commit}{}", if self.dirty { ", dirty" } else { "" })
    }
}

/// `0.1.0 (825843d5c, dirty, release)`
impl fmt::Display for Build {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, {})", self.version, self.commit_words(), self.profile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_says_its_commit_whether_files_were_changed_and_how_it_was_compiled() {
        let commit = "825843d5c0f1a2b3825843d5c0f1a2b3825843d5";
        let words = |commit: &str, dirty| Build::of("0.1.0", commit, dirty, "release").to_string();
        assert_eq!(words(commit, false), "0.1.0 (825843d5c, release)");
        assert_eq!(words(commit, true), "0.1.0 (825843d5c, dirty, release)");
        assert_eq!(words("\n", true), "0.1.0 (unknown commit, release)");
        assert_eq!(words("v1", false), "0.1.0 (v1, release)");
        // the tests' library belongs to no program
        assert_eq!((build().commit.as_deref(), build().dirty), (None, false));
    }
}
