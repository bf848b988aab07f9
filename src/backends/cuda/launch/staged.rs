//! Two kernels for one problem: a kernel that is ready at once gives the first output while the fast one compiles.
//!
//! Invariant: only the fast kernel is timed. Must not know how either is built.

use super::runner::Forward;
use crate::backends::cuda::device::tensors::Outputs;
use crate::backends::{Output, Prepared};
use crate::base::Diagnostic;
use crate::problem::facts::KernelReport;
use crate::problem::result::{KernelArtefact, Timed};
use std::sync::Arc;
use std::thread::JoinHandle;

/// Makes a compiled kernel ready to run.
pub(crate) type Finish<P> = Box<dyn FnOnce(P) -> Result<Box<dyn Forward>, Diagnostic>>;

/// The fast kernel, on its way.
pub(crate) type Compiling<P> = JoinHandle<Result<P, Diagnostic>>;

/// The kernel that serves, and the one to come, which is a program `P` before it is ready.
pub(crate) struct Staged<P> {
    serving: Box<dyn Forward>,
    coming: Option<(Compiling<P>, Finish<P>)>,
}

impl<P> Staged<P> {
    /// `serving` gives outputs until `compiling` has ended and `finish` has made it ready.
    pub(crate) fn new(serving: Box<dyn Forward>, compiling: Compiling<P>, finish: Finish<P>) -> Staged<P> {
        Staged { serving, coming: Some((compiling, finish)) }
    }
}

/// Waits for a compile. Errors: the compiler's, or that it ended without an answer.
pub(crate) fn join<P>(compiling: Compiling<P>) -> Result<P, Diagnostic> {
    compiling.join().unwrap_or_else(|_| {
        Err(Diagnostic::error("compiler-died", "the thread that compiles the kernel ended before it had an answer")
            .hint("run it again, and please report the mod"))
    })
}

impl<P> Prepared for Staged<P> {
    fn kernel(&self) -> KernelReport {
        let wait = if self.is_provisional() { "; the kernel that is timed still compiles" } else { "" };
        let KernelReport { words, facts } = self.serving.kernel();
        KernelReport { words: words + wait, facts }
    }

    fn artefact(&self) -> Option<&KernelArtefact> {
        self.serving.artefact()
    }

    fn output(&mut self) -> Result<Output, Diagnostic> {
        self.serving.output()
    }

    fn memory(&self) -> Option<u64> {
        self.serving.memory()
    }

    fn is_provisional(&self) -> bool {
        self.coming.is_some()
    }

    fn settle(&mut self) -> Result<(), Diagnostic> {
        if let Some((compiling, finish)) = self.coming.take() {
            self.serving = finish(join(compiling)?)?;
        }
        Ok(())
    }

    fn time(&mut self, count: usize) -> Result<Timed, Diagnostic> {
        self.settle()?;
        self.serving.time(count)
    }
}

impl<P> Forward for Staged<P> {
    fn saved(&mut self) -> Result<Arc<Outputs>, Diagnostic> {
        self.settle()?;
        self.serving.saved()
    }
}

#[cfg(test)]
mod tests {
    use crate::backends::cuda::launch::staged::*;
    use crate::base::HostTensor;
    use crate::base::tensor::Data;

    /// Says its number.
    struct Numbered(f32);

    impl Prepared for Numbered {
        fn kernel(&self) -> KernelReport {
            format!("kernel {}", self.0).as_str().into()
        }
        fn output(&mut self) -> Result<Output, Diagnostic> {
            Ok(Output { out: HostTensor::vector(Data::F32(vec![self.0])), lse: None, max_scores: None })
        }
        fn time(&mut self, count: usize) -> Result<Timed, Diagnostic> {
            Ok(vec![f64::from(self.0); count].into())
        }
    }

    impl Forward for Numbered {
        fn saved(&mut self) -> Result<Arc<Outputs>, Diagnostic> {
            Err(Diagnostic::error("no-device", "it runs nowhere"))
        }
    }

    fn staged(compiled: Result<(), Diagnostic>) -> Staged<()> {
        let compiling = std::thread::spawn(move || compiled);
        Staged::new(Box::new(Numbered(1.0)), compiling, Box::new(|()| Ok(Box::new(Numbered(2.0)))))
    }

    #[test]
    fn the_first_kernel_serves_until_the_other_is_there_and_is_never_timed() {
        let value = |s: &mut Staged<()>| s.output().unwrap().out.to_f32_vec()[0];
        let mut both = staged(Ok(()));
        assert!(value(&mut both) == 1.0 && both.kernel().words.contains("still compiles"));
        assert!(both.is_provisional());
        both.settle().unwrap();
        assert!(value(&mut both) == 2.0 && both.kernel().words == "kernel 2" && !both.is_provisional());
        assert_eq!(staged(Ok(())).time(2).unwrap().passes_ms, [2.0, 2.0]);
    }

    #[test]
    fn a_kernel_that_does_not_compile_is_told() {
        let mut broken = staged(Err(Diagnostic::error("kernel-compile", "no")));
        assert_eq!(broken.settle().unwrap_err().code, "kernel-compile");
    }
}
