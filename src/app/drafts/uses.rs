//! What the mask is exported for: which files that takes, and what is done with them afterwards.
//!
//! Invariant: every use takes the design itself and the list of the files; a command names real paths. Must not know how files are made.

use crate::export::ExportKind;
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
    pub(crate) const ALL: [Use; 7] =
        [Use::SimpleTuner, Use::Diffusers, Use::Transformers, Use::PyTorch, Use::Kernels, Use::Mask, Use::Everything];

    /// The text on its name.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Use::SimpleTuner => "use-simpletuner",
            Use::Diffusers => "use-diffusers",
            Use::Transformers => "use-transformers",
            Use::PyTorch => "use-pytorch",
            Use::Kernels => "use-kernels",
            Use::Mask => "use-mask",
            Use::Everything => "use-everything",
        }
    }

    /// The text on its result, in a line.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Use::SimpleTuner => "use-simpletuner.words",
            Use::Diffusers => "use-diffusers.words",
            Use::Transformers => "use-transformers.words",
            Use::PyTorch => "use-pytorch.words",
            Use::Kernels => "use-kernels.words",
            Use::Mask => "use-mask.words",
            Use::Everything => "use-everything.words",
        }
    }

    /// The trainer or library whose configuration it sets, if any.
    pub(crate) fn trainer(self) -> Option<Trainer> {
        match self {
            Use::SimpleTuner | Use::Everything => Some(Trainer::SimpleTuner),
            Use::Transformers => Some(Trainer::Transformers),
            _ => None,
        }
    }

    /// Whether it takes a file of this kind. `named`: the user named a configuration to change.
    pub(crate) fn takes(self, kind: ExportKind, named: bool) -> bool {
        use ExportKind::{
            Blocks, Config, Design, Diffusers, Kernel, Manifest, Module, Page, Recorder, Sidecar, Transformers,
        };
        match kind {
            Design | Manifest => true,
            Recorder => false,
            Config => matches!(self, Use::SimpleTuner | Use::Everything) || named && self.trainer().is_some(),
            Module => self != Use::Mask,
            Diffusers => matches!(self, Use::Diffusers | Use::Everything),
            Transformers => matches!(self, Use::Transformers | Use::Everything),
            Sidecar => matches!(self, Use::SimpleTuner | Use::Diffusers | Use::Transformers | Use::Everything),
            Blocks => matches!(self, Use::PyTorch | Use::Mask | Use::Everything),
            Page => matches!(self, Use::Mask | Use::Everything),
            Kernel => self == Use::Kernels,
        }
    }

    /// The next steps with the files in a folder, as lines to copy: of a shell or of Python.
    pub(crate) fn next(self, folder: &Path, stem: &str) -> Vec<(&'static str, String)> {
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
    use crate::export::ExportKind::*;

    fn taken(of: Use) -> Vec<ExportKind> {
        ALL.into_iter().filter(|kind| of.takes(*kind, false)).collect()
    }

    const ALL: [ExportKind; 10] =
        [Config, Design, Manifest, Module, Diffusers, Transformers, Sidecar, Blocks, Page, Kernel];

    #[test]
    fn each_use_takes_its_files_and_the_design() {
        for of in Use::ALL {
            assert!(taken(of).starts_with(&[Config, Design, Manifest]) || taken(of).starts_with(&[Design, Manifest]));
        }
        assert_eq!(taken(Use::SimpleTuner), [Config, Design, Manifest, Module, Sidecar]);
        assert_eq!(taken(Use::Diffusers), [Design, Manifest, Module, Diffusers, Sidecar]);
        assert_eq!(taken(Use::Transformers), [Design, Manifest, Module, Transformers, Sidecar]);
        assert_eq!(taken(Use::PyTorch), [Design, Manifest, Module, Blocks]);
        assert_eq!(taken(Use::Kernels), [Design, Manifest, Module, Kernel]);
        assert_eq!(taken(Use::Mask), [Design, Manifest, Blocks, Page]);
        assert_eq!(taken(Use::Everything), ALL[..9]);
        // a named configuration is changed, whichever program reads it
        assert!(Use::Transformers.takes(Config, true) && !Use::Transformers.takes(Config, false));
        assert!(!Use::Diffusers.takes(Config, true));
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
