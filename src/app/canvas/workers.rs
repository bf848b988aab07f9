//! Threads that create tiles and analyse single blocks.
//!
//! Invariant: the window's thread never waits for them: it replaces the wish list and takes finished tiles. Workers
//! process wishes in order, no tile twice at a time; work for an outdated revision is cancelled. Must not know textures
//! or the screen.

use super::render::{Source, Tile, TileKey, is_whole, render};
use crate::analysis::classify::{Exact, Verdict};
use crate::analysis::interval::Cells;
use crate::analysis::raster::{Effort, Region};
use crate::app::mishaps::guarded;
use crate::base::{BlockSize, Control};
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A question about a rectangle of cells: the block under the pointer, or a rectangle being drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Probe {
    /// Revision of the scene.
    pub revision: u64,
    /// Batch entry.
    pub b: usize,
    /// Head.
    pub h: usize,
    /// Rows.
    pub q: Range<usize>,
    /// Columns.
    pub kv: Range<usize>,
}

impl Probe {
    /// The block of a cell, clipped to the mask.
    pub(super) fn block(source: &Source, [b, h]: [usize; 2], cell: [usize; 2], size: BlockSize) -> Probe {
        let range = |at: usize, size: usize, len: usize| at / size * size..((at / size + 1) * size).min(len);
        let (q, kv) = (range(cell[0], size.q, source.lengths.q_len), range(cell[1], size.kv, source.lengths.kv_len));
        Probe { revision: source.revision, b, h, q, kv }
    }
}

/// The kept cells of a rectangle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Answer {
    /// All, none or some of it.
    pub verdict: Verdict,
    /// Part of its cells that are kept.
    pub share: f64,
    /// Whether the share was counted rather than sampled.
    pub exact: bool,
}

/// Cells up to which a probe counts instead of sampling.
const COUNTED: u64 = 1 << 22;

/// A worker's finished work.
#[derive(Debug)]
pub(super) enum Done {
    /// A tile; None: cancelled.
    Tile(TileKey, Option<Tile>),
    /// The kept cells of a rectangle.
    Answer(Probe, Answer),
    /// For this revision: the tiles of the previous one that are unchanged.
    Carried(u64, Vec<TileKey>),
    /// The analysis failed on a tile; its words.
    Failed(TileKey, String),
}

#[derive(Debug, Default)]
struct Queue {
    source: Option<Arc<Source>>,
    wishes: VecDeque<TileKey>,
    /// Tiles of the revision before the source's that may show the same in it.
    carry: Vec<TileKey>,
    flying: HashMap<TileKey, Control>,
    probe: Option<Probe>,
    stop: bool,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The threads of one canvas; they end when it is dropped.
#[derive(Debug)]
pub(super) struct Workers {
    shared: Arc<Shared>,
    done: Receiver<Done>,
}

impl Workers {
    /// Starts all cores but one, at least one. `wake_window` is called whenever something is finished.
    pub(super) fn start(wake_window: impl Fn() + Send + Sync + 'static) -> Workers {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let (sender, done) = channel();
        let shared = Arc::new(Shared::default());
        let wake_window: Arc<dyn Fn() + Send + Sync> = Arc::new(wake_window);
        for n in 0..cores.saturating_sub(1).max(1) {
            let worker = Worker { shared: shared.clone(), done: sender.clone(), wake_window: wake_window.clone() };
            // without threads the picture stays empty, which is no reason to end the program
            let _ = std::thread::Builder::new().name(format!("canvas {n}")).spawn(move || worker.run());
        }
        Workers { shared, done }
    }

    /// Replaces the wish list, most wanted first. Work for other revisions is cancelled. `carry`, passed once per
    /// revision: tiles of the previous one that may be unchanged.
    pub(super) fn wish(
        &self,
        source: &Arc<Source>,
        wishes: impl IntoIterator<Item = TileKey>,
        carry: Vec<TileKey>,
        probe: Option<Probe>,
    ) {
        let mut queue = self.shared.lock();
        if queue.source.as_ref().is_none_or(|last| last.revision != source.revision) || !carry.is_empty() {
            queue.carry = carry;
        }
        queue.source = Some(source.clone());
        // the whole mask is let through, so that something new shows even when every frame brings a revision
        let outdated = |key: &TileKey| key.revision != source.revision && !is_whole(key, source.lengths);
        queue.flying.iter().filter(|(key, _)| outdated(key)).for_each(|(_, control)| control.cancel());
        let Queue { wishes: list, flying, .. } = &mut *queue;
        list.clear();
        list.extend(wishes.into_iter().filter(|key| !flying.contains_key(key)));
        queue.probe = probe;
        let waiting = !queue.wishes.is_empty() || !queue.carry.is_empty() || queue.probe.is_some();
        drop(queue);
        if waiting {
            self.shared.wake.notify_all();
        }
    }

    /// The work finished since the last call.
    pub(super) fn finished(&self) -> Vec<Done> {
        let done: Vec<Done> = self.done.try_iter().collect();
        if !done.is_empty() {
            let mut queue = self.shared.lock();
            for done in &done {
                if let Done::Tile(key, _) | Done::Failed(key, _) = done {
                    queue.flying.remove(key);
                }
            }
        }
        done
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        let mut queue = self.shared.lock();
        queue.stop = true;
        queue.flying.values().for_each(Control::cancel);
        drop(queue);
        self.shared.wake.notify_all();
    }
}

enum Job {
    Carry(Arc<Source>, Vec<TileKey>),
    Tile(Arc<Source>, TileKey, Control),
    Probe(Arc<Source>, Probe),
}

struct Worker {
    shared: Arc<Shared>,
    done: Sender<Done>,
    wake_window: Arc<dyn Fn() + Send + Sync>,
}

impl Worker {
    fn run(self) {
        // a frame never waits for a tile
        crate::worker::process::calm_thread();
        // the analysis is parallel inside; a pool of this thread alone leaves the other cores to the window
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build();
        while let Some(job) = self.next() {
            let done = match &pool {
                Ok(pool) => pool.install(|| carry_out(job)),
                Err(_) => carry_out(job),
            };
            if self.done.send(done).is_err() {
                return;
            }
            (self.wake_window)();
        }
    }

    fn next(&self) -> Option<Job> {
        let mut queue = self.shared.lock();
        loop {
            if queue.stop {
                return None;
            }
            if let Some(source) = queue.source.clone() {
                if !queue.carry.is_empty() {
                    return Some(Job::Carry(source, std::mem::take(&mut queue.carry)));
                }
                if let Some(probe) = queue.probe.take() {
                    return Some(Job::Probe(source, probe));
                }
                if let Some(key) = queue.wishes.pop_front() {
                    let control = Control::new();
                    queue.flying.insert(key, control.clone());
                    return Some(Job::Tile(source, key, control));
                }
            }
            queue = self.shared.wake.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn carry_out(job: Job) -> Done {
    match job {
        Job::Carry(source, tiles) => {
            let same = guarded("comparing pictures", || source.unchanged(tiles)).unwrap_or_default();
            Done::Carried(source.revision, same)
        }
        Job::Probe(source, probe) => {
            let answer = guarded("looking into a block", || look(&source, &probe)).unwrap_or(Answer {
                verdict: Verdict::Mixed,
                share: f64::NAN,
                exact: false,
            });
            Done::Answer(probe, answer)
        }
        Job::Tile(source, key, control) => match guarded("drawing the picture", || render(&source, &key, &control)) {
            Ok(tile) => Done::Tile(key, tile),
            Err(why) => Done::Failed(key, why.message),
        },
    }
}

fn look(source: &Source, probe: &Probe) -> Answer {
    let everything = Answer { verdict: Verdict::Full, share: 1.0, exact: true };
    let Some(raster) = source.raster() else { return everything };
    if probe.q.is_empty() || probe.kv.is_empty() {
        return Answer { verdict: Verdict::Empty, share: 0.0, exact: true };
    }
    let cells = Cells::new(probe.b, probe.h, probe.q.clone(), probe.kv.clone());
    if cells.area() <= COUNTED {
        let share = Exact::new(raster.mask()).count(&cells).kept as f64 / cells.area() as f64;
        let verdict = match share {
            0.0 => Verdict::Empty,
            1.0 => Verdict::Full,
            _ => Verdict::Mixed,
        };
        return Answer { verdict, share, exact: true };
    }
    let (height, width) = (64.min(probe.q.len()), 64.min(probe.kv.len()));
    let control = Control::new();
    let region = Region { b: probe.b, h: probe.h, q: probe.q.clone(), kv: probe.kv.clone(), height, width };
    let picture = raster.picture(&region, Effort::FULL, &control);
    let share = picture.pixels.iter().map(|p| f64::from(*p)).sum::<f64>() / picture.pixels.len() as f64;
    let verdict = match share {
        0.0 if picture.exact => Verdict::Empty,
        1.0 if picture.exact => Verdict::Full,
        _ => Verdict::Mixed,
    };
    Answer {
        verdict,
        share,
        exact: picture.exact && height * width > 0 && even(&probe.q, height) && even(&probe.kv, width),
    }
}

/// Whether pixels of a range cover equally many tokens, so that their mean is the whole's.
fn even(range: &Range<usize>, parts: usize) -> bool {
    range.len().is_multiple_of(parts)
}
