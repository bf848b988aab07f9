//! `maskloom_tasks::fuzzing::archive` on bytes of libFuzzer.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| maskloom_tasks::fuzzing::archive(bytes));
