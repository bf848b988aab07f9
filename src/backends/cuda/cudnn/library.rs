//! Places of cuDNN: a path from the user, PyTorch environments, the system's loader; with the cuBLAS next to it.
//!
//! Invariant: it only looks and opens nothing. cuBLASLt is always listed with it, because cuDNN ends the process
//! without it. Must not know how cuDNN is used.

use crate::backends::cuda::toolchain::library::{Looked, Places};
use std::path::{Path, PathBuf};

/// A cuDNN and the libraries to open before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CudnnCandidate {
    /// Path, or a bare name for the system's loader.
    pub library: PathBuf,
    /// `libcublasLt.so.*`, any of which must open first; then NVRTCs, which may be missing.
    pub cublas: Vec<PathBuf>,
    /// `libnvrtc.so.*` of the same environment.
    pub nvrtc: Vec<PathBuf>,
}

/// Every candidate, best first: `user` (`MASKLOOM_CUDNN`), Python environments, the system's loader; and what could not be looked at.
pub(crate) fn candidates(user: Option<&Path>, places: &Places) -> (Vec<CudnnCandidate>, Looked) {
    let (mut found, mut looked) = (Vec::new(), Looked::default());
    if let Some(user) = user {
        let library = if user.is_dir() { user.join("libcudnn.so.9") } else { user.to_path_buf() };
        // a wheel's nvidia/cudnn/lib has its neighbours two folders up
        let packages = user.ancestors().find(|a| a.file_name().is_some_and(|n| n == "nvidia"));
        found.push(match packages {
            Some(packages) => of_packages(library, packages, &mut looked),
            None => bare(library),
        });
    }
    for root in &places.environments {
        for lib in looked.entries(&root.join("lib"), "python3") {
            for packages in ["site-packages/nvidia", "dist-packages/nvidia"].map(|p| lib.join(p)) {
                let libraries = looked.entries(&packages.join("cudnn/lib"), "libcudnn.so");
                found.extend(libraries.into_iter().map(|library| of_packages(library, &packages, &mut looked)));
            }
        }
    }
    found.push(bare("libcudnn.so.9".into()));
    (found, looked)
}

fn bare(library: PathBuf) -> CudnnCandidate {
    let cublas = ["libcublasLt.so.13", "libcublasLt.so.12"].map(PathBuf::from).to_vec();
    CudnnCandidate { library, cublas, nvrtc: Vec::new() }
}

fn of_packages(library: PathBuf, packages: &Path, looked: &mut Looked) -> CudnnCandidate {
    let mut all = |folders: [&str; 2], prefix: &str| -> Vec<PathBuf> {
        let found = folders.iter().flat_map(|f| looked.entries(&packages.join(f), prefix));
        found.filter(|p| !p.to_string_lossy().contains(".alt.")).collect()
    };
    CudnnCandidate {
        library,
        cublas: all(["cu13/lib", "cublas/lib"], "libcublasLt.so"),
        nvrtc: all(["cu13/lib", "cuda_nvrtc/lib"], "libnvrtc.so"),
    }
}

#[cfg(test)]
mod tests {
    use crate::backends::cuda::cudnn::library::*;

    #[test]
    fn a_pytorch_environment_gives_cudnn_with_its_neighbours() {
        let root = tempfile::tempdir().unwrap();
        let packages = root.path().join("lib/python3.12/site-packages/nvidia");
        for (folder, name) in [
            ("cudnn/lib", "libcudnn.so.9"),
            ("cu13/lib", "libcublasLt.so.13"),
            ("cu13/lib", "libnvrtc.so.13"),
            ("cu13/lib", "libnvrtc.alt.so.13"),
        ] {
            std::fs::create_dir_all(packages.join(folder)).unwrap();
            std::fs::write(packages.join(folder).join(name), "").unwrap();
        }
        let places = Places { environments: vec![root.path().to_path_buf()], ..Places::default() };
        let (found, _) = candidates(None, &places);
        assert_eq!(found[0].library, packages.join("cudnn/lib/libcudnn.so.9"));
        assert_eq!(found[0].cublas, [packages.join("cu13/lib/libcublasLt.so.13")]);
        assert_eq!(found[0].nvrtc, [packages.join("cu13/lib/libnvrtc.so.13")]);
        assert_eq!(found[1].library, Path::new("libcudnn.so.9"));
        let (named, _) = candidates(Some(&packages.join("cudnn/lib")), &Places::default());
        assert_eq!(named[0], found[0]);
    }
}
