//! `maskloom_tasks::fuzzing::config` on bytes of libFuzzer.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| maskloom_tasks::fuzzing::config(bytes));
