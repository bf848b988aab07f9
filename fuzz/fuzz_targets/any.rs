//! The target that the variable MASKLOOM_FUZZ names: one program with all targets, for a machine without a compiler.
#![no_main]
use maskloom_tasks::fuzzing::TARGETS;
use std::sync::OnceLock;

static TARGET: OnceLock<fn(&[u8])> = OnceLock::new();

fn named() -> fn(&[u8]) {
    let name = std::env::var("MASKLOOM_FUZZ").unwrap_or_default();
    let found = TARGETS.iter().find(|(of, _)| *of == name);
    found.unwrap_or_else(|| panic!("MASKLOOM_FUZZ={name:?} is no target")).1
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| TARGET.get_or_init(named)(bytes));
