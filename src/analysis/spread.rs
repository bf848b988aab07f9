//! Tasks of one kind over threads, or by one thread where that is sooner.
//!
//! Invariant: results are in the tasks' order, whoever made them. Must not know what a task is.

use rayon::prelude::*;
use std::time::{Duration, Instant};

/// Work that one thread does alone. Waking another and being woken takes two times 50 us on a quiet machine, and up to a tick of the scheduler
/// (4 ms) where a thread that looks for work holds the processor: preparing a mask took 7 to 8 ms with 16 threads and 2.6 ms with one (the
/// machine of an H200, 2026-11-28).
const QUICK: Duration = Duration::from_millis(3);

/// The results of so many tasks. `start` makes what a thread keeps from task to task. The first tasks tell how long all take.
pub fn in_order<S, T: Send>(
    tasks: usize,
    start: impl Fn() -> S + Sync + Send,
    task: impl Fn(&mut S, usize) -> T + Sync + Send,
) -> Vec<T> {
    let began = Instant::now();
    let mut own = start();
    let mut made = Vec::with_capacity(tasks);
    while made.len() < tasks {
        made.push(task(&mut own, made.len()));
        // with each task it is known better how long one takes
        let (done, left) = (made.len() as f64, (tasks - made.len()) as f64);
        if left > 1.0 && began.elapsed().as_secs_f64() / done * left > QUICK.as_secs_f64() {
            break;
        }
    }
    let first = made.len();
    made.par_extend((first..tasks).into_par_iter().map_init(start, task));
    made
}

#[cfg(test)]
mod tests {
    use crate::analysis::spread::*;
    use std::sync::Mutex;
    use std::thread::ThreadId;

    #[test]
    fn results_are_in_order_and_quick_tasks_stay_with_their_thread() {
        let seen: Mutex<Vec<ThreadId>> = Mutex::new(Vec::new());
        let own = |kept: &mut usize, n: usize| {
            *kept += 1;
            seen.lock().expect("no panic").push(std::thread::current().id());
            (n * n, *kept)
        };
        let found = in_order(100, || 0, own);
        assert_eq!(found, (0..100).map(|n| (n * n, n + 1)).collect::<Vec<_>>(), "one thread, one state");
        assert!(seen.into_inner().expect("no panic").iter().all(|id| *id == std::thread::current().id()));
        assert_eq!(in_order(0, || (), |(), n| n), [0usize; 0]);
    }

    #[test]
    fn slow_tasks_are_divided_and_stay_in_order() {
        let slow = |(): &mut (), n: usize| {
            std::thread::sleep(Duration::from_millis(4));
            n
        };
        assert_eq!(in_order(12, || (), slow), (0..12).collect::<Vec<_>>());
    }
}
