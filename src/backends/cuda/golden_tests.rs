//! What the compiler reads, held as whole texts: the emitted CUDA of presets.
//!
//! Invariant: nothing here depends on the machine, the time or a device. Must not judge what a text says: a reader of the
//! change does.

use super::choose;
use super::emit::functions;
use crate::base::BackendName;
use crate::document::compile::{BuiltIn, compile};
use crate::document::{from_document, library};
use maskloom_testing::golden;

/// Presets whose mods are emitted: formulas over ints, tables, score mods with functions and captured tensors.
const EMITTED: [&str; 6] =
    ["sliding_window", "gemma2_softcap_window", "alibi", "packed_documents", "sta_image", "graphormer"];

#[test]
fn golden_cuda() {
    for name in EMITTED {
        let document = library::preset(name).expect("a preset").document().expect("it opens");
        let problem = from_document(&document, &compile(&document, &BuiltIn)).expect("a problem");
        let choice = choose::choose(&problem, BackendName::Eager).expect("supported");
        golden::check(&format!("cuda/{name}.cu"), &functions::emit(&choice.mods(&problem).template()).text);
    }
    golden::only("cuda", &EMITTED.map(|name| format!("{name}.cu")));
}
