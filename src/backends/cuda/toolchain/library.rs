//! Places of NVRTC's library: a path from the user, Maskloom's own folder, PyTorch environments, CUDA toolkits, the
//! system's loader.
//!
//! Invariant: it only looks and opens nothing. Newest version first within a place. A folder that cannot be listed is named, never
//! taken as empty. Must not know how a library is used.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A library and the one that must be opened first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Path, or a bare name for the system's loader.
    pub library: PathBuf,
    /// `libnvrtc-builtins.so.*` next to it.
    pub builtins: Vec<PathBuf>,
}

/// Where to look, from the environment. Fields are public so that tests can make one.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// `MASKLOOM_NVRTC`: a file or a folder.
    pub user: Option<PathBuf>,
    /// Folders of Python's packages that a caller knows.
    pub packages: Vec<PathBuf>,
    /// Maskloom's own folder of fetched libraries.
    pub own: Option<PathBuf>,
    /// Roots of Python environments (`VIRTUAL_ENV`, `CONDA_PREFIX`, the prefixes of `python3` on PATH).
    pub environments: Vec<PathBuf>,
    /// `CUDA_HOME`, `CUDA_PATH` and `/usr/local/cuda*`.
    pub toolkits: Vec<PathBuf>,
}

impl Places {
    /// From the process's environment.
    pub fn from_environment() -> Places {
        let variable = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let own = directories::ProjectDirs::from("", "", "maskloom").map(|d| d.data_local_dir().join("nvrtc"));
        let mut environments: Vec<PathBuf> = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(variable).collect();
        environments.extend(python_prefixes());
        let mut toolkits: Vec<PathBuf> = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(variable).collect();
        toolkits.extend(Looked::default().entries(Path::new("/usr/local"), "cuda"));
        Places { user: variable("MASKLOOM_NVRTC"), packages: Vec::new(), own, environments, toolkits }
    }

    /// Every candidate, best first, and what could not be looked at.
    pub fn candidates(&self) -> (Vec<Candidate>, Looked) {
        let (mut found, mut looked) = (Vec::new(), Looked::default());
        if let Some(user) = &self.user {
            if user.is_file() {
                found.push(candidate(user.clone(), &mut looked));
            }
            found.extend(in_folder(user, &mut looked));
        }
        found.extend(self.packages.iter().flat_map(|packages| in_packages(packages, &mut looked)));
        if let Some(own) = &self.own {
            found.extend(in_folder(own, &mut looked));
            found.extend(in_packages(own, &mut looked));
        }
        for root in &self.environments {
            for lib in looked.entries(&root.join("lib"), "python3") {
                found.extend(in_packages(&lib.join("site-packages"), &mut looked));
                found.extend(in_packages(&lib.join("dist-packages"), &mut looked));
            }
            found.extend(in_folder(&root.join("lib"), &mut looked));
        }
        for root in &self.toolkits {
            found.extend(in_folder(&root.join("lib64"), &mut looked));
            found.extend(in_folder(&root.join("targets/x86_64-linux/lib"), &mut looked));
        }
        let bare = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"];
        found.extend(bare.map(|name| Candidate { library: name.into(), builtins: Vec::new() }));
        let mut seen = std::collections::HashSet::new();
        found.retain(|c| seen.insert(c.library.clone()));
        (found, looked)
    }
}

/// `X` for every `X/bin/python3` on PATH.
fn python_prefixes() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .filter(|bin| bin.join("python3").exists())
        .filter_map(|bin| bin.parent().map(Path::to_path_buf))
        .collect()
}

/// NVIDIA's wheels put it into `nvidia/cu13/lib` (13.x) or `nvidia/cuda_nvrtc/lib` (12.x).
fn in_packages(packages: &Path, looked: &mut Looked) -> Vec<Candidate> {
    ["nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"].iter().flat_map(|at| in_folder(&packages.join(at), looked)).collect()
}

fn in_folder(folder: &Path, looked: &mut Looked) -> Vec<Candidate> {
    let libraries = looked.entries(folder, "libnvrtc.so");
    libraries.into_iter().filter(|p| p.is_file()).map(|library| candidate(library, looked)).collect()
}

fn candidate(library: PathBuf, looked: &mut Looked) -> Candidate {
    let builtins = library.parent().map(|f| looked.entries(f, "libnvrtc-builtins.so")).unwrap_or_default();
    Candidate { library, builtins }
}

/// What a search could not look at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Looked {
    unread: Vec<String>,
}

impl Looked {
    /// Entries of a folder whose names start with `prefix`, the greatest name first; none where there is no such folder. One
    /// that cannot be listed is remembered.
    pub(crate) fn entries(&mut self, folder: &Path, prefix: &str) -> Vec<PathBuf> {
        let starts = |p: &PathBuf| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with(prefix));
        let listed =
            std::fs::read_dir(folder).and_then(|all| all.map(|e| Ok(e?.path())).collect::<Result<Vec<_>, _>>());
        let mut found = match listed {
            Ok(found) => found,
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Vec::new(),
            Err(e) => {
                let why = format!("{}: {e}", folder.display());
                if !self.unread.contains(&why) {
                    self.unread.push(why);
                }
                Vec::new()
            }
        };
        found.retain(starts);
        found.sort_by(|a, b| b.cmp(a));
        found
    }

    /// The end of a message that something was not found; nothing where all was looked at.
    pub(crate) fn told(&self) -> String {
        match &self.unread[..] {
            [] => String::new(),
            unread => format!("; what cannot be listed may have it: {}", unread.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::backends::cuda::toolchain::library::*;
    use crate::backends::cuda::toolchain::nvrtc::Nvrtc;

    #[test]
    fn the_users_path_comes_first_and_wheels_are_found_with_their_builtins() {
        let root = tempfile::tempdir().unwrap();
        let lib = root.path().join("lib/python3.12/site-packages/nvidia/cu13/lib");
        std::fs::create_dir_all(&lib).unwrap();
        for name in ["libnvrtc.so.13", "libnvrtc-builtins.so.13.0", "libcudart.so.13"] {
            std::fs::write(lib.join(name), "").unwrap();
        }
        let mine = root.path().join("mine.so");
        std::fs::write(&mine, "").unwrap();
        let environments = vec![root.path().to_path_buf()];
        let places = Places { user: Some(mine.clone()), environments, ..Places::default() };
        let (found, looked) = places.candidates();
        assert_eq!(looked.told(), "", "places that do not exist are no fault");
        assert_eq!(found[0].library, mine);
        assert_eq!(found[1].library, lib.join("libnvrtc.so.13"));
        assert_eq!(found[1].builtins, [lib.join("libnvrtc-builtins.so.13.0")]);
        assert_eq!(found.last().unwrap().library, Path::new("libnvrtc.so"));
    }
    /// A link to itself can be listed by nobody, whatever this user's rights are.
    #[cfg(unix)]
    #[test]
    fn a_folder_that_cannot_be_listed_is_named() {
        let root = tempfile::tempdir().unwrap();
        let lib = root.path().join("lib");
        std::os::unix::fs::symlink(&lib, &lib).unwrap();
        let places = Places { environments: vec![root.path().to_path_buf()], ..Places::default() };
        let told = places.candidates().1.told();
        assert_eq!(told.matches(&*lib.to_string_lossy()).count(), 1, "{told}");
        let why = Nvrtc::open_where(&places, |_| Some(crate::base::Diagnostic::error("nvrtc-missing", ""))).err();
        let why = why.map(|why| why.message).unwrap_or_default();
        assert!(why.is_empty() || why.contains(&told), "{why}");
    }
}
