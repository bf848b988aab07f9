//! Functions of PyTorch's and Python's library that are compositions of supported functions: Python files that ship
//! with the tracer.
//!
//! Invariant: a function has one dotted name, in the file of its topic; `a__b` in a file is `a.b` below the file's
//! module, and names that start with `_` are private to the file. Must not know what the functions compute.

use std::collections::HashMap;
use std::sync::LazyLock;

/// When the functions of a file are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum For {
    /// Arguments that are known only when the mod runs come here first.
    Mods,
    /// Known tensors come here first.
    Setup,
    /// The file is a separate module, which texts import.
    Import,
}

/// A file.
#[derive(Debug)]
pub(crate) struct File {
    /// The module that its names belong to.
    module: &'static str,
    /// Its name in messages.
    pub name: &'static str,
    /// Its Python.
    pub text: &'static str,
    purpose: For,
}

macro_rules! file {
    ($module:literal, $name:literal, $purpose:expr) => {
        File {
            module: $module,
            name: $name,
            text: include_str!(concat!("../../assets/prelude/", $name, ".py")),
            purpose: $purpose,
        }
    };
}

const FILES: &[File] = &[
    file!("torch", "rows", For::Mods),
    file!("torch", "functions", For::Mods),
    file!("torch", "sums", For::Mods),
    file!("torch", "setup", For::Setup),
    file!("torch", "linalg", For::Setup),
    file!("torch.nn", "nn", For::Setup),
    file!("flex", "flex", For::Setup),
    file!("numpy", "numpy", For::Setup),
    file!("collections", "collections", For::Setup),
    file!("argparse", "argparse", For::Setup),
    file!("einops", "einops", For::Import),
    file!("heapq", "heapq", For::Import),
    file!("bisect", "bisect", For::Import),
    file!("statistics", "statistics", For::Import),
];

/// Modules of PyTorch with the functions of `torch`, except their own.
const SAME: [&str; 4] = ["torch.nn.functional.", "torch.special.", "torch.linalg.", "torch.Tensor."];

/// A name of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    /// Where.
    pub file: &'static File,
    /// As the file has it.
    pub name: &'static str,
    /// Whether tensors have it as a method.
    method: bool,
    class: bool,
}

static INDEX: LazyLock<HashMap<String, Vec<Found>>> = LazyLock::new(|| {
    let mut index: HashMap<String, Vec<Found>> = HashMap::new();
    for file in FILES {
        for line in file.text.lines() {
            let class = line.starts_with("class ");
            let Some(rest) = line.strip_prefix("def ").or_else(|| line.strip_prefix("class ")) else { continue };
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            if name.starts_with('_') {
                continue;
            }
            let method = after.starts_with("(input");
            let dotted = format!("{}.{}", file.module, name.replace("__", "."));
            index.entry(dotted).or_default().push(Found { file, name, method, class });
        }
    }
    index
});

/// The function or class of a dotted name; `symbolic`: some argument is known only when the mod runs.
pub(crate) fn find(dotted: &str, symbolic: bool) -> Option<Found> {
    let all = INDEX.get(dotted).or_else(|| {
        let short = SAME.iter().find_map(|p| dotted.strip_prefix(p))?;
        INDEX.get(&format!("torch.{short}"))
    })?;
    let wanted = if symbolic { For::Mods } else { For::Setup };
    all.iter().find(|f| f.file.purpose == wanted).or_else(|| all.first()).copied()
}

/// The same of a tensor's method.
pub(crate) fn find_method(name: &str, symbolic: bool) -> Option<Found> {
    find(&format!("torch.{name}"), symbolic).filter(|found| found.method)
}

/// The class of a dotted name, if it is a class.
pub(crate) fn find_class(dotted: &str) -> Option<Found> {
    let last = dotted.rsplit('.').next()?;
    let capital = last.starts_with(|c: char| c.is_ascii_uppercase());
    find(dotted, false).filter(|found| capital && found.class)
}

/// The file that a text imports under this name.
pub(crate) fn module(dotted: &str) -> Option<&'static File> {
    FILES.iter().find(|f| f.purpose == For::Import && f.module == dotted)
}

/// All dotted names, for suggestions.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    INDEX.keys().map(String::as_str)
}

#[cfg(test)]
mod tests {
    use crate::base::{Source, SourceId};
    use crate::python::prelude::*;
    use crate::python::syntax;

    #[test]
    fn every_file_parses_and_every_name_is_found() {
        for file in FILES {
            let parsed = syntax::parse(&Source::new(file.name, file.text), SourceId(0));
            assert!(parsed.errors.is_empty(), "{}: {}", file.name, parsed.errors[0].render());
        }
        assert!(names().count() > 200);
        assert!(find("torch.nn.functional.softmax", true).is_some_and(|f| f.file.name == "sums"));
        assert!(find("torch.linalg.cross", true).is_some_and(|f| f.name == "linalg__cross"));
        assert!(find("torch.kthvalue", true).is_some_and(|f| f.file.name == "rows"));
        assert!(find("torch.kthvalue", false).is_some_and(|f| f.file.name == "setup"));
        assert!(find_method("cosine_similarity", true).is_none() && find_method("argmax", true).is_some());
        assert!(find_class("torch.nn.Linear").is_some() && find_class("torch.nn.Parameter").is_none());
        assert!(module("einops").is_some() && module("torch").is_none());
    }
}
