//! The content of a capture file: calls by layer, step and prompt, with full q, k and v of some and statistics of all.
//!
//! Invariant: everything is addressed through the file's metadata, and a tensor is read only on use, one head at a
//! time, so that memory holds one head for any file. Errors use the file's own names. Must not know files: bytes come
//! in through [`Tensors`].

mod header;
mod info;
mod read;
mod statistics;
#[cfg(test)]
mod tests;

pub use header::Header;
pub use info::{CallInfo, StatisticsInfo};
pub use statistics::{Statistics, decode_mass};

use super::profile::Grid;
use crate::base::{BlockSize, DType, Diagnostic, Provenance};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// The newest format that is read.
pub const VERSION: u64 = 2;

/// Tensors of a file, read by name and in part.
pub trait Tensors: Send + Sync {
    /// The file's name, for messages.
    fn name(&self) -> String;
    /// The file's own metadata.
    fn metadata(&self, key: &str) -> Option<String>;
    /// Element type and shape of a tensor.
    fn about(&self, tensor: &str) -> Option<(DType, Vec<usize>)>;
    /// Names of all tensors.
    fn names(&self) -> Vec<String>;
    /// Elements `from..from + count` of a tensor, row-major, as little-endian bytes. Errors: the file cannot be read there.
    fn bytes(&self, tensor: &str, from: usize, count: usize) -> Result<Vec<u8>, Diagnostic>;
}

/// A capture file that is open.
pub struct Capture {
    tensors: Box<dyn Tensors>,
    file: FileInfo,
    calls: Vec<Call>,
}

/// An attention call of a model: one layer at one step for one prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Its key in the file.
    pub key: String,
    /// The file's description of it.
    pub info: CallInfo,
}

/// The file's description of itself.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct FileInfo {
    version: u64,
    complete: Option<bool>,
    calls: Option<usize>,
    tensors: Option<usize>,
    block_size: Option<[usize; 2]>,
    mass_log2_step: Option<f64>,
    axes: Option<AxesInfo>,
    prompts: Vec<String>,
    tokens: Vec<TokensInfo>,
    left_out: usize,
    world_size: Option<usize>,
    stopped: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct AxesInfo {
    names: Vec<String>,
    extents: Vec<usize>,
    start: usize,
}

/// The texts of some tokens, in their order.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct TokensInfo {
    prompt: usize,
    /// Index of the first.
    start: usize,
    /// `q`, `kv`, or both if it is not stated.
    side: Option<String>,
    text: Vec<String>,
}

/// Texts of a call's tokens: the index of the first, and one for each.
pub type TokenTexts<'a> = (usize, &'a [String]);

impl Capture {
    /// Reads what the file holds, no tensor. Errors: no capture, a newer format.
    pub fn open(tensors: Box<dyn Tensors>) -> Result<Capture, Diagnostic> {
        let name = tensors.name();
        let broken = |what: &str, why: String| {
            Diagnostic::error("capture-metadata", format!("{name}: `{what}` of its metadata cannot be read: {why}"))
                .hint("capture the model again with this version's maskloom_capture.py (`maskloom recorder --to DIR` writes it)")
        };
        let Some(calls) = tensors.metadata("maskloom") else {
            return Err(Diagnostic::error(
                "not-a-capture",
                format!("{name} is a safetensors file, but not a capture: it has no `maskloom` in its metadata"),
            )
            .hint("record one: python maskloom_capture.py --out qkv.safetensors script.py (`maskloom recorder --to DIR` writes that script)"));
        };
        if let Some(layout) = tensors.metadata("layout").filter(|layout| layout != "bhsd") {
            let message =
                format!("{name} has the layout {layout}; only bhsd is supported: batch, heads, tokens, head_dim");
            return Err(Diagnostic::error("capture-layout", message)
                .hint("capture with maskloom_capture.py, or transpose the tensors and set the layout to bhsd"));
        }
        let file: FileInfo = match tensors.metadata("maskloom_capture") {
            Some(text) => serde_json::from_str(&text).map_err(|e| broken("maskloom_capture", e.to_string()))?,
            None => FileInfo { version: 1, ..FileInfo::default() },
        };
        if file.version > VERSION {
            let message = format!("{name} has capture format {}; this Maskloom reads up to {VERSION}", file.version);
            return Err(Diagnostic::error("capture-version", message)
                .hint("update Maskloom, or capture with this version's maskloom_capture.py"));
        }
        let infos: BTreeMap<String, CallInfo> =
            serde_json::from_str(&calls).map_err(|e| broken("maskloom", e.to_string()))?;
        let mut calls: Vec<Call> = infos.into_iter().map(|(key, info)| Call { info: info.named(&key), key }).collect();
        calls.sort_by(|a, b| a.order().cmp(&b.order()));
        let capture = Capture { tensors, file, calls };
        capture.calls.iter().try_for_each(|call| capture.check(call))?;
        Ok(capture)
    }

    /// The file's name.
    pub fn name(&self) -> String {
        self.tensors.name()
    }

    /// All that it says of itself, without its tensors.
    pub fn header(&self) -> Header {
        Header::of(&*self.tensors)
    }

    /// Where numbers of its q and k come from.
    pub fn provenance(&self) -> Provenance {
        Provenance::inputs(self.name())
    }

    /// All calls, by layer, step and prompt.
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// BLOCK_SIZE of the statistics, if there are any.
    pub fn block_size(&self) -> Option<BlockSize> {
        self.file.block_size.filter(|[q, kv]| *q > 0 && *kv > 0).map(|[q, kv]| BlockSize { q, kv })
    }

    /// The grid of the tokens, if the capture has one.
    pub fn grid(&self) -> Option<Grid> {
        let axes = self.file.axes.as_ref()?;
        let extents = match axes.extents[..] {
            [t, h, w] => [t, h, w],
            [h, w] => [1, h, w],
            _ => return None,
        };
        extents.iter().all(|n| *n > 0).then_some(Grid { extents, start: axes.start })
    }

    /// Names of the grid's axes.
    pub fn axes(&self) -> Vec<String> {
        self.file.axes.as_ref().map_or_else(Vec::new, |a| a.names.clone())
    }

    /// A prompt's name.
    pub fn prompt(&self, number: usize) -> String {
        self.file.prompts.get(number).cloned().unwrap_or_else(|| number.to_string())
    }

    /// The name of a call's prompt; None where there is one prompt only.
    pub fn prompt_of(&self, call: &Call) -> Option<String> {
        (self.file.prompts.len() > 1).then(|| self.prompt(call.info.prompt))
    }

    /// The texts of a call's queries and of its keys, if the file has them. Texts without a side belong to both if
    /// queries and keys are equal in number, otherwise to the keys; those beyond the call's lengths belong to another
    /// model.
    pub fn tokens(&self, call: &Call) -> [Option<TokenTexts<'_>>; 2] {
        let i = &call.info;
        let of = |side: &str, length: usize| {
            let both = i.q_len == i.kv_len || side == "kv";
            let fits = |t: &&TokensInfo| {
                t.prompt == i.prompt
                    && t.side.as_deref().map_or(both, |named| named == side)
                    && !t.text.is_empty()
                    && t.start.checked_add(t.text.len()).is_some_and(|end| end <= length)
            };
            self.file.tokens.iter().find(fits).map(|t| (t.start, &t.text[..]))
        };
        [of("q", i.q_len), of("kv", i.kv_len)]
    }

    /// Names, element types and shapes of all tensors that can be read, by name.
    pub fn tensors(&self) -> Vec<(String, DType, Vec<usize>)> {
        let mut names = self.tensors.names();
        names.sort();
        let about = |name: String| {
            let (dtype, shape) = self.tensors.about(&name)?;
            Some((name, dtype, shape))
        };
        names.into_iter().filter_map(about).collect()
    }

    /// The missing parts of the file, in words.
    pub fn warnings(&self) -> Vec<Diagnostic> {
        let mut reported = Vec::new();
        let mut warn =
            |message: String, hint: &str| reported.push(Diagnostic::warning("capture-incomplete", message).hint(hint));
        let name = self.name();
        if let Some(why) = &self.file.stopped {
            warn(format!("{name}: the captured program ended early: {why}"), "the data captured before is usable");
        } else if self.file.complete == Some(false) {
            warn(
                format!("{name}: the capture ended early; it contains {} calls", self.calls.len()),
                "capture again for the rest",
            );
        }
        let held = self.tensors.names().len();
        for (what, said, found) in [("calls", self.file.calls, self.calls.len()), ("tensors", self.file.tensors, held)]
        {
            if let Some(said) = said.filter(|said| self.file.complete == Some(true) && found < *said) {
                warn(format!("{name} lists {said} {what} but contains {found}"), "was the file changed? capture again");
            }
        }
        if let Some(grid) = self.grid() {
            let longest = self.calls.iter().map(|c| c.info.q_len.min(c.info.kv_len)).max().unwrap_or(0);
            if grid.tokens().end > longest {
                let [t, h, w] = grid.extents;
                let message = format!(
                    "{name}: a grid of {t} x {h} x {w} from token {} does not fit {longest} tokens: it is ignored",
                    grid.start
                );
                warn(message, "capture again with --axes of the model's tokens");
            }
        }
        if self.file.left_out > 0 {
            warn(
                format!("{name}: {} calls beyond the size limit were not captured", self.file.left_out),
                "choose layers or a larger --limit",
            );
        }
        reported
    }

    /// The call of a layer by name, number or a part of one name, at a step and of a prompt; None takes the first.
    /// Errors: there is none, with the existing ones; the part occurs in several names.
    pub fn find(&self, layer: Option<&str>, step: Option<usize>, prompt: Option<usize>) -> Result<&Call, Diagnostic> {
        let asked =
            |call: &&Call| step.is_none_or(|s| s == call.info.step) && prompt.is_none_or(|p| p == call.info.prompt);
        let fits = |call: &&Call| {
            let named =
                |layer: &str| call.key == layer || call.info.name == layer || layer.parse() == Ok(call.info.layer);
            layer.is_none_or(named) && asked(call)
        };
        if let Some(found) = self.calls.iter().find(fits) {
            return Ok(found);
        }
        let holding = |part: &str| {
            self.calls.iter().filter(asked).filter(|call| call.info.name.contains(part)).collect::<Vec<_>>()
        };
        // a number that is no layer's is no part of a name
        let parts = layer.filter(|l| l.parse::<usize>().is_err()).map(holding).unwrap_or_default();
        match parts.as_slice() {
            [found, rest @ ..] if rest.iter().all(|call| call.info.name == found.info.name) => return Ok(found),
            [] => {}
            several => {
                let names: BTreeSet<&str> = several.iter().map(|call| call.info.name.as_str()).collect();
                let layer = layer.unwrap_or_default();
                let message = format!("{} layers of {} have `{layer}` in their names", names.len(), self.name());
                let names = names.into_iter().take(12).collect::<Vec<_>>().join(", ");
                return Err(Diagnostic::error("capture-call", message).hint(format!("name one: {names}")));
            }
        }
        Err(self.no_call(layer, step, prompt))
    }

    /// The error that no call matches, with the existing ones.
    fn no_call(&self, layer: Option<&str>, step: Option<usize>, prompt: Option<usize>) -> Diagnostic {
        if self.calls.is_empty() {
            return Diagnostic::error("capture-call", format!("{} contains no call of attention", self.name())).hint(
                "did the captured program use PyTorch's attention? maskloom_capture.py lists the captured functions",
            );
        }
        let asked = [
            layer.map(|l| format!("layer {l}")),
            step.map(|s| format!("step {s}")),
            prompt.map(|p| format!("prompt {p}")),
        ];
        let asked = asked.into_iter().flatten().collect::<Vec<_>>().join(", ");
        let there: Vec<&str> = self.calls.iter().take(12).map(|c| c.key.as_str()).collect();
        let more = if self.calls.len() > 12 { ", ..." } else { "" };
        Diagnostic::error("capture-call", format!("{} has no call of {asked}", self.name()))
            .hint(format!("it has {}{more}; `maskloom atlas FILE` lists all", there.join(", ")))
    }
}

impl Call {
    /// Model, layer, step, prompt: the order in which calls are listed.
    fn order(&self) -> (&str, usize, usize, usize, &str) {
        (&self.info.model, self.info.layer, self.info.step, self.info.prompt, &self.key)
    }

    /// `blocks.3.attn, step 0`, with the prompt if there are several.
    pub fn title(&self, capture: &Capture) -> String {
        let (layer, step) = (&self.info.name, self.info.step);
        match capture.prompt_of(self) {
            None => format!("{layer}, step {step}"),
            Some(prompt) => format!("{layer}, step {step}, prompt {prompt}"),
        }
    }
}
