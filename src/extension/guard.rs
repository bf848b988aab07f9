//! How a call from Python runs: without Python's lock, on threads of this process, and without a panic that escapes.
//!
//! Invariant: a process that was forked never waits for threads of its parent. Must not know what is computed.

use crate::backends;
use crate::base::Diagnostic;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

pyo3::create_exception!(
    _native,
    Refused,
    pyo3::exceptions::PyException,
    "A diagnostic: (code, message, hint, line of the recording or None)."
);
pyo3::create_exception!(
    _native,
    Panicked,
    pyo3::exceptions::PyException,
    "A fault of Maskloom itself: (message, place in its source)."
);

thread_local! {
    /// Where the last panic of this thread was.
    static PANIC: RefCell<Option<(String, String)>> = const { RefCell::new(None) };
}

/// Keeps what a panic says instead of printing it: it becomes an exception.
pub(super) fn listen() {
    std::panic::set_hook(Box::new(|info| {
        let payload = info.payload();
        let text = payload.downcast_ref::<&str>().map(|s| s.to_string());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
        let place = info.location().map(|at| format!("{}:{}", at.file(), at.line())).unwrap_or_default();
        PANIC.with_borrow_mut(|kept| *kept = Some((text.unwrap_or_default(), place)));
    }));
}

/// The process whose threads the common pool has: the first that computed. 0: none yet.
static HOME: AtomicU32 = AtomicU32::new(0);

/// Threads of a forked process.
struct Threads {
    process: u32,
    pool: Option<ThreadPool>,
}

static THREADS: AtomicPtr<Threads> = AtomicPtr::new(std::ptr::null_mut());

/// The threads of a forked process; None in the process that the common pool belongs to. A fork copies the memory of its
/// parent's threads but not the threads, so a forked process makes its own. The former ones stay in memory: nothing may
/// be asked of them.
fn own_threads() -> Option<&'static ThreadPool> {
    let process = std::process::id();
    match HOME.compare_exchange(0, process, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => return None,
        Err(home) if home == process => return None,
        Err(_) => {}
    }
    let known = THREADS.load(Ordering::Acquire);
    if let Some(known) = super::memory::leaked(known).filter(|known| known.process == process) {
        return known.pool.as_ref();
    }
    let made = Box::leak(Box::new(Threads { process, pool: ThreadPoolBuilder::new().build().ok() }));
    let ours: *mut Threads = made;
    match THREADS.compare_exchange(known, ours, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => made.pool.as_ref(),
        // another thread of this process was first
        Err(first) => super::memory::leaked(first).unwrap_or(made).pool.as_ref(),
    }
}

/// Computes without Python's lock. Errors: the diagnostic as `Refused`, a panic as `Panicked`.
pub(super) fn computed<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T, Diagnostic> + Send) -> PyResult<T> {
    let run = || match own_threads() {
        // a panic of a pool's task is carried to the thread that waits for it
        Some(pool) => pool.install(|| kept(work)),
        None => kept(work),
    };
    py.detach(run).map_err(|fault| match fault {
        Fault::Reported(reported) => refused(&reported),
        Fault::Panic((message, place)) => Panicked::new_err((message, place)),
    })
}

enum Fault {
    Reported(Box<Diagnostic>),
    Panic((String, String)),
}

/// Runs on the thread whose panic message is read.
fn kept<T>(work: impl FnOnce() -> Result<T, Diagnostic>) -> Result<T, Fault> {
    let result = catch_unwind(AssertUnwindSafe(work));
    result.map_err(|payload| Fault::Panic(reported(&*payload)))?.map_err(|reported| Fault::Reported(Box::new(reported)))
}

/// The message of this thread's panic; one of another thread has only its payload.
fn reported(payload: &(dyn std::any::Any + Send)) -> (String, String) {
    let own = PANIC.with_borrow_mut(Option::take);
    own.unwrap_or_else(|| {
        let text = payload.downcast_ref::<&str>().map(|s| s.to_string());
        (text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default(), String::new())
    })
}

/// A diagnostic as a Python exception.
pub(super) fn refused(reported: &Diagnostic) -> PyErr {
    let line = reported.line_column().map(|(line, _)| line);
    Refused::new_err((reported.code.to_string(), reported.message.clone(), reported.hint.clone(), line))
}

/// Refuses what does not fit into the memory that is free, before it is allocated.
#[pyfunction]
pub(super) fn room(what: &str, bytes: u64) -> PyResult<()> {
    backends::room::check(what, bytes).map_err(|why| refused(&why))
}

/// For the test that a panic becomes an exception.
#[pyfunction]
pub(super) fn panic_on_purpose(py: Python<'_>, elsewhere: bool) -> PyResult<()> {
    computed(py, || {
        match elsewhere {
            true => drop(rayon::join(|| (), || panic!("on purpose"))),
            false => panic!("on purpose"),
        }
        Ok(())
    })
}
