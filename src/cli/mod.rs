//! The command line: the same service without a window.
//!
//! Invariant: human output is a table, `--json` one object, errors go to stderr with a code; exit 0 done, 1 failed,
//! 2 wrong use. Must not know the window.
