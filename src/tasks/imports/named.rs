//! The tensors of a file by name, whatever its kind: safetensors, npz, npy, pt.
//!
//! Invariant: no code of a file runs; memory holds the tensors that are asked for. Must not know what they are for.

use super::{archive, torch_file};
use crate::base::{Diagnostic, HostTensor};
use crate::worker::{files, npy, tensors};
use std::path::Path;

/// Tensors whose names are among these, as (name, tensor). A file of one array without a name has it under "". Errors: the file
/// cannot be read, or is of another kind.
pub fn tensors_named(path: &Path, wanted: &[&str]) -> Result<Vec<(String, HostTensor)>, Diagnostic> {
    let ending = super::ending(path);
    match ending.as_str() {
        "safetensors" => {
            let file = tensors::TensorFile::open(path)?;
            let names = file.names().into_iter().filter(|name| wanted.contains(&name.as_str()));
            names.filter_map(|name| file.find(&name).map(|t| Some((name, t?))).transpose()).collect()
        }
        "npz" => {
            let bytes = files::read(path)?;
            let archive = archive::Archive::open(path, &bytes)?;
            let mut found = Vec::new();
            for member in archive.names() {
                let name = member.trim_end_matches(".npy");
                if wanted.contains(&name) {
                    found.push((name.to_string(), npy::parse(path, &archive.member(member)?.unwrap_or_default())?));
                }
            }
            Ok(found)
        }
        "npy" => Ok(vec![(String::new(), npy::parse(path, &files::read(path)?)?)]),
        "pt" | "pth" => torch_file::named(path, &files::read(path)?, wanted),
        _ => Err(Diagnostic::error("tensors-file", format!("{} is no file of tensors", path.display()))
            .hint("save q, k and v as .safetensors, .npz, .npy or .pt")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kept case of fuzzing without the byte that chooses its kind, under a name of that kind.
    fn kept(folder: &Path, name: &str) -> std::path::PathBuf {
        let case = maskloom_testing::repository().join("tests/data/fuzz/archive").join(name);
        let path = folder.join(name);
        std::fs::write(&path, &std::fs::read(case).expect("a kept case")[1..]).expect("written");
        path
    }

    #[test]
    fn tensors_are_found_by_name_in_archives_of_numpy_and_pytorch() {
        let folder = tempfile::tempdir().expect("a folder");
        let shapes = |name: &str, wanted: &[&str]| -> Vec<(String, Vec<usize>)> {
            let found = tensors_named(&kept(folder.path(), name), wanted).expect("readable");
            found.into_iter().map(|(name, t)| (name, t.shape().to_vec())).collect()
        };
        assert_eq!(shapes("mask.npz", &["mask", "q"]), [("mask".to_string(), vec![6, 6])]);
        assert_eq!(shapes("mask.npz", &["q"]), []);
        // torch.save of a tensor alone
        assert_eq!(shapes("mask.pt", &["q"]), [(String::new(), vec![6, 6])]);
        let other = folder.path().join("q.txt");
        std::fs::write(&other, "q").expect("written");
        assert_eq!(tensors_named(&other, &["q"]).expect_err("no tensors").code, "tensors-file");
    }
}
