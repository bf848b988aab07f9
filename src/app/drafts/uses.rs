//! What the mask is exported for: which files that takes, and what is done with them afterwards.
//!
//! Invariant: every use takes the design itself and the list of the files; a command names real paths. Must not know how files are made.

use crate::export::ExportFile;
use crate::trainers::Trainer;
use std::path::Path;

/// The user's program or framework.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Use {
    SimpleTuner,
    Diffusers,
    Transformers,
    PyTorch,
    Kernels,
    Mask,
    Everything,
}

impl Use {
    pub const ALL: [Use; 7] =
        [Use::SimpleTuner, Use::Diffusers, Use::Transformers, Use::PyTorch, Use::Kernels, Use::Mask, Use::Everything];

    /// Its name.
    pub fn title(self) -> &'static str {
        match self {
            Use::SimpleTuner => "SimpleTuner",
            Use::Diffusers => "diffusers",
            Use::Transformers => "transformers",
            Use::PyTorch => "PyTorch of my own",
            Use::Kernels => "The CUDA kernel",
            Use::Mask => "Only the mask",
            Use::Everything => "Everything",
        }
    }

    /// Its result, in a line.
    pub fn words(self) -> &'static str {
        match self {
            Use::SimpleTuner => "the trainer's config.json and a sidecar; the trainer itself is unchanged",
            Use::Diffusers => "one call applies the mask to a pipeline's transformer",
            Use::Transformers => "one call applies the mask to a loaded model",
            Use::PyTorch => "a module with the mask_mod, score_mod and block mask",
            Use::Kernels => "compiled for sm_80 and sm_90a, as a PyTorch operator; needs NVRTC here, no GPU",
            Use::Mask => "the design, its block lists, a picture and a report",
            Use::Everything => "all files except the kernel",
        }
    }

    /// The trainer or library whose configuration it sets, if any.
    pub fn trainer(self) -> Option<Trainer> {
        match self {
            Use::SimpleTuner | Use::Everything => Some(Trainer::SimpleTuner),
            Use::Transformers => Some(Trainer::Transformers),
            _ => None,
        }
    }

    /// Whether it takes this file. `first`: the file is the configuration; `named`: the user named one to change.
    pub fn takes(self, file: &ExportFile, first: bool, named: bool) -> bool {
        let name = file.name.as_str();
        if first {
            return matches!(self, Use::SimpleTuner | Use::Everything) || named && self.trainer().is_some();
        }
        let kernel = name.starts_with("kernels/") || name.ends_with("_kernel.py");
        let adapter = name.ends_with("_diffusers.py") || name.ends_with("_transformers.py");
        let blocks = name.ends_with("_blocks.safetensors");
        let sidecar = name.starts_with("sidecar/");
        let page = name.ends_with(".png") || name.ends_with("_report.html");
        let module = !(kernel || adapter || blocks || sidecar || page || name.ends_with(".maskloom.json"));
        match self {
            _ if name.ends_with(".maskloom.json") || name.ends_with("_manifest.json") => true,
            Use::Everything => !kernel,
            Use::SimpleTuner => sidecar || module,
            Use::Diffusers => sidecar || module || name.ends_with("_diffusers.py"),
            Use::Transformers => sidecar || module || name.ends_with("_transformers.py"),
            Use::PyTorch => module || blocks,
            Use::Kernels => kernel || module,
            Use::Mask => blocks || page,
        }
    }

    /// The next steps with the files in a folder, as lines to copy: of a shell or of Python.
    pub fn next(self, folder: &Path, stem: &str) -> Vec<(&'static str, String)> {
        let at = quoted(folder);
        let python = format!("import sys; sys.path.insert(0, {:?})", folder.display().to_string());
        let adapter = |kind: &str, model: &str| {
            let call = format!("import {stem}_{kind}; handle = {stem}_{kind}.use({model})");
            vec![("Python", format!("{python}\n{call}\nprint({stem}_{kind}.verify({model}, inputs))"))]
        };
        match self {
            Use::SimpleTuner => {
                let sidecar = quoted(&folder.join("sidecar"));
                vec![("shell", format!("PYTHONPATH={sidecar} MASKLOOM_SIDECAR={at} simpletuner train"))]
            }
            Use::Diffusers => adapter("diffusers", "pipe.transformer"),
            Use::Transformers => adapter("transformers", "model"),
            Use::PyTorch => vec![("Python", format!("{python}\nimport {stem}\nout = {stem}.attend(q, k, v)"))],
            Use::Kernels => {
                vec![("Python", format!("{python}\nimport {stem}_kernel\nout = {stem}_kernel.attend(q, k, v)"))]
            }
            Use::Mask | Use::Everything => {
                let design = quoted(&folder.join(format!("{stem}.maskloom.json")));
                vec![("shell", format!("maskloom run {design}"))]
            }
        }
    }
}

/// A path as a shell takes it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(of: Use, names: &[&str]) -> Vec<String> {
        let file = |name: &&str| ExportFile::new(*name, *b"", "");
        let files: Vec<_> = names.iter().map(file).collect();
        let wanted = files.iter().enumerate().filter(|(at, f)| of.takes(f, *at == 0, false));
        wanted.map(|(_, f)| f.name.clone()).collect()
    }

    #[test]
    fn each_use_takes_its_files_and_the_design() {
        let names = [
            "config.json",
            "m.maskloom.json",
            "m.py",
            "m.safetensors",
            "m_diffusers.py",
            "m_transformers.py",
            "sidecar/sidecar.json",
            "m_blocks.safetensors",
            "m.png",
            "m_report.html",
            "kernels/launch.json",
            "m_kernel.py",
        ];
        for of in Use::ALL {
            assert!(taken(of, &names).contains(&"m.maskloom.json".to_string()), "{of:?}");
        }
        let design = "m.maskloom.json";
        assert_eq!(
            taken(Use::SimpleTuner, &names),
            ["config.json", design, "m.py", "m.safetensors", "sidecar/sidecar.json"]
        );
        assert_eq!(
            taken(Use::Diffusers, &names),
            [design, "m.py", "m.safetensors", "m_diffusers.py", "sidecar/sidecar.json"]
        );
        assert_eq!(taken(Use::PyTorch, &names), [design, "m.py", "m.safetensors", "m_blocks.safetensors"]);
        assert_eq!(taken(Use::Mask, &names), [design, "m_blocks.safetensors", "m.png", "m_report.html"]);
        assert_eq!(taken(Use::Everything, &names).len(), 10);
        // a named configuration is changed, whichever program reads it
        let config = ExportFile::new("config.json", *b"{}", "");
        assert!(Use::Transformers.takes(&config, true, true) && !Use::Transformers.takes(&config, true, false));
        assert!(!Use::Diffusers.takes(&config, true, true));
    }

    #[test]
    fn what_is_next_names_real_paths() {
        let next = Use::SimpleTuner.next(Path::new("/home/me/my runs/out"), "m");
        let wanted =
            "PYTHONPATH='/home/me/my runs/out/sidecar' MASKLOOM_SIDECAR='/home/me/my runs/out' simpletuner train";
        assert_eq!(next[0], ("shell", wanted.to_string()));
        for of in Use::ALL {
            assert!(of.next(Path::new("/a"), "m").iter().all(|(_, text)| text.contains("/a")), "{of:?}");
        }
    }
}
