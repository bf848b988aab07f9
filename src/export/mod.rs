//! What leaves Maskloom: trainers' `config.json`, PyTorch modules, block-mask tensors, pictures, reports.
//!
//! Invariant: every export returns bytes and says what they are; nothing here writes a file. Must not know the worker or
//! the window.
