//! Slow work that needs no worker: reading and writing files, native dialogs, small pictures.
//!
//! Invariant: starting and polling never wait; each ends in exactly one answer; files are written in the order of the
//! requests. Must not know what is done with the answers.

use super::action::TensorsFor;
use super::area::{self, Figures, Of};
use super::background::Wake;
use super::compile::{self, Built};
use super::exporting::{self, ExportWish, Pieces};
use super::hosts::Names;
use super::mishaps::guarded;
use super::opening::{self, Opened, Thumbnail};
use super::races::SmallerCopy;
use super::region::Region;
use super::unsaved::{self, Kept};
use super::writing::{self, Order, Written};
use crate::base::{Control, Diagnostic, HostTensor, Lengths};
use crate::document::model::Document;
use crate::document::scaling::Groups;
use crate::tasks::doctor::mend::{self, FetchPlan};
use crate::tasks::environment::Files;
use crate::tasks::machines::{self, Listed};
use crate::tasks::verdicts::{Place, Verdict, verdicts_on_grid};
use crate::tasks::{lab, lengths, run_file, smaller};
use crate::worker::protocol::folder::{FolderAsk, Listing};
use crate::worker::seen::Seen;
use crate::worker::target::Target;
use crate::worker::{browse, files, folders, named};
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// An answer.
#[derive(Debug)]
pub(crate) enum Done {
    /// A file was read.
    Opened { path: PathBuf, what: Result<Opened, Vec<Diagnostic>> },
    /// A native dialog was closed; None: without a choice. `shown`: there is such a dialog on this system.
    Picked { path: Option<PathBuf>, shown: bool },
    /// The content of a folder.
    Listed(FolderAsk, Listing),
    /// A file of the worker's machine has come, and was read.
    OpenedThere { path: String, what: Result<Opened, Vec<Diagnostic>> },
    /// The jobs of a target of the list; None: that is all.
    JobsOf { target: Option<String>, listed: Listed },
    /// The document of this revision was written, or not.
    Saved { path: PathBuf, revision: u64, result: Result<Seen, Diagnostic> },
    /// What a file holds now.
    Looked { path: PathBuf, now: Now },
    /// The document's own file was read again.
    Reloaded { path: PathBuf, what: Result<(Box<Document>, Seen), Vec<Diagnostic>> },
    /// The text of the document's own file, to be shown beside the document.
    Compared { path: PathBuf, theirs: Result<String, Diagnostic> },
    /// A run was written, or not.
    RunSaved { path: PathBuf, result: Result<(), Diagnostic> },
    /// The capture script was written, or not.
    RecorderSaved { path: PathBuf, result: Result<(), Diagnostic> },
    /// The design was written as a page, or not.
    HtmlSaved { path: PathBuf, result: Result<(), Diagnostic> },
    /// An area was counted.
    Area { region: Region, figures: Figures },
    /// The files of the user's preset folder, and why there are none.
    OwnPresets { folder: Option<PathBuf>, own: Vec<PathBuf>, why: Option<Diagnostic> },
    /// A race was kept for later windows, or not.
    RaceKept(Result<(), Diagnostic>),
    /// An export was written, or not.
    Written(Result<Written, Diagnostic>),
    /// Tensors for a layer were read.
    Tensors { asked: TensorsFor, tensors: Result<Vec<(String, HostTensor)>, Diagnostic> },
    /// Documents that were kept unsaved.
    Unsaved(Result<Vec<Kept>, Diagnostic>),
    /// One of them; the file that has an older state of it.
    Reopened { file: PathBuf, what: Result<(Box<Document>, Option<PathBuf>), Vec<Diagnostic>> },
    /// The files of an export, or the reason why there are none.
    Exported { wish: ExportWish, pieces: Pieces },
    /// How NVRTC would be fetched.
    Planned(Result<FetchPlan, Diagnostic>),
    /// Its present path.
    Fetched(Result<PathBuf, Diagnostic>),
    /// A smaller copy of the document with this number and revision, or the reason why there is none.
    Smaller { of: [u64; 2], made: Result<Box<Shrunk>, Diagnostic> },
    /// Who takes the document with this number and revision at a place.
    Verdicts { of: [u64; 2], place: Place, found: Result<Vec<Verdict>, Diagnostic> },
    /// Names of the user's ssh configuration.
    SshNames(Names),
    /// A length of a race over lengths: which race, which length, and its document.
    Length { sweep: u64, at: usize, made: Result<Box<Built>, Diagnostic> },
    /// A small picture of a preset by its name, or of a document by its path.
    Thumbnail { preset: String, picture: Result<Thumbnail, Diagnostic> },
}

/// What stands where a file was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Now {
    Holds(Seen),
    /// Nothing, or a folder.
    Gone,
    /// It cannot be read, and may be as it was.
    Unknown,
}

impl Now {
    fn at(path: &Path) -> Now {
        match std::fs::metadata(path) {
            Err(why) if files::is_nothing(&why) => Now::Gone,
            Err(_) => Now::Unknown,
            Ok(about) if about.is_dir() => Now::Gone,
            Ok(_) => match Seen::at(path) {
                Ok(Some(seen)) => Now::Holds(seen),
                Ok(None) => Now::Gone,
                Err(_) => Now::Unknown,
            },
        }
    }
}

/// A smaller copy, compiled, and how like the whole it is.
#[derive(Debug)]
pub(crate) struct Shrunk {
    pub built: Built,
    pub about: SmallerCopy,
}

/// Work of the writer.
type Write = Box<dyn FnOnce() -> Done + Send>;

/// Writes files one after another, in the order of the requests.
struct Writer {
    queue: Sender<Write>,
    thread: std::thread::JoinHandle<()>,
}

/// A native dialog that is closed sooner was never there: without a portal the answer comes at once.
const SHOWN: Duration = Duration::from_millis(400);

/// Starts errands and hears of them.
pub(crate) struct Errands {
    sender: Sender<Done>,
    answers: Receiver<Done>,
    wake: Wake,
    /// A native dialog is open.
    pub picking: bool,
    writer: Option<Writer>,
}

impl Errands {
    /// None started.
    pub(crate) fn new(wake: Wake) -> Self {
        let (sender, answers) = channel();
        Self { sender, answers, wake, picking: false, writer: None }
    }

    /// The finished errands.
    pub(crate) fn poll(&mut self) -> Vec<Done> {
        let done: Vec<_> = self.answers.try_iter().collect();
        if done.iter().any(|d| matches!(d, Done::Picked { .. })) {
            self.picking = false;
        }
        done
    }

    /// Reads a file and determines its kind; `config`: it is stated to be a trainer's configuration.
    pub(crate) fn open(&self, path: &Path, config: bool) {
        // a relative path means another file when the next window starts elsewhere
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        self.start("open", move || {
            let read = || if config { opening::open_config(&path) } else { opening::open(&path) };
            let what = guarded("reading a file", read).unwrap_or_else(|why| Err(vec![why]));
            Done::Opened { path, what }
        });
    }

    /// Looks what a file holds.
    pub(crate) fn look(&self, path: PathBuf) {
        self.start("look", move || {
            let now = Now::at(&path);
            Done::Looked { path, now }
        });
    }

    /// Reads the document's own file again.
    pub(crate) fn reload(&self, path: PathBuf) {
        self.start("reload", move || {
            let what = guarded("reading a file", || opening::document(&path)).unwrap_or_else(|why| Err(vec![why]));
            Done::Reloaded { path, what }
        });
    }

    /// Reads the text of the document's own file.
    pub(crate) fn compare(&self, path: PathBuf) {
        self.start("compare", move || {
            let theirs = files::read_text(&path);
            Done::Compared { path, theirs }
        });
    }

    /// Opens the capture that comes with Maskloom.
    pub(crate) fn sample(&self) {
        self.start("sample", || match lab::sample() {
            Ok(path) => Done::Opened { path, what: Ok(Opened::Capture) },
            Err(why) => Done::Opened { path: PathBuf::from("the sample capture"), what: Err(vec![why]) },
        });
    }

    /// Opens a native dialog, unless one is open.
    pub(crate) fn pick(&mut self, pick: &super::action::Pick) {
        use super::action::Pick;
        if self.picking {
            return;
        }
        self.picking = true;
        let pick = pick.clone();
        self.start("dialog", move || {
            let began = Instant::now();
            // without a portal some systems panic in here; to the user that is the same as no choice
            let ask = move || match pick {
                Pick::File(label, extensions) => rfd::FileDialog::new().add_filter(label, extensions).pick_file(),
                Pick::Save(name) => rfd::FileDialog::new().set_file_name(name).save_file(),
                Pick::Folder => rfd::FileDialog::new().pick_folder(),
            };
            let path = catch_unwind(ask).ok().flatten();
            Done::Picked { shown: path.is_some() || began.elapsed() > SHOWN, path }
        });
    }

    /// Looks into a folder.
    pub(crate) fn list(&self, ask: FolderAsk) {
        self.start("list", move || {
            let listing = browse::list(&ask);
            Done::Listed(ask, listing)
        });
    }

    /// Reads a file that came from the worker's machine.
    pub(crate) fn open_from_there(&self, path: String, bytes: Vec<u8>) {
        self.start("open from there", move || {
            let what = guarded("reading a file", || opening::open_bytes(Path::new(&path), &bytes));
            Done::OpenedThere { what: what.unwrap_or_else(|why| Err(vec![why])), path }
        });
    }

    /// Asks this machine and every target of the list but one for their jobs.
    pub(crate) fn jobs_of_targets(&self, but: Target) {
        self.start_many("jobs of targets", move |send| {
            let names = named::list().map(|list| list.targets.into_iter().map(|target| target.name));
            // a test's binary would run its tests again
            let ours = std::env::current_exe().is_ok_and(|own| own.file_stem().is_some_and(|name| name == "maskloom"));
            let all = ours.then(String::new).into_iter().chain(names.into_iter().flatten());
            let names: Vec<String> = all.filter(|name| *name != but.command).collect();
            let targets: Vec<Target> = names.iter().map(Target::new).collect();
            machines::jobs_of_all(&targets, machines::DEADLINE, &mut |at, listed| {
                send(Done::JobsOf { target: Some(names[at].clone()), listed });
            });
            send(Done::JobsOf { target: None, listed: Ok(Vec::new()) });
        });
    }

    /// Reads the names of the user's ssh configuration.
    pub(crate) fn ssh_names(&self) {
        self.start("ssh names", || Done::SshNames(super::hosts::read_names()));
    }

    /// Reads tensors of a file.
    pub(crate) fn tensors(&self, asked: TensorsFor) {
        self.start("tensors", move || {
            let tensors = super::reading::tensors(&asked);
            Done::Tensors { asked, tensors }
        });
    }

    /// Lists the documents that were kept unsaved.
    pub(crate) fn unsaved(&self, root: PathBuf) {
        self.start("unsaved", move || Done::Unsaved(unsaved::list(&root)));
    }

    /// Reads one of them.
    pub(crate) fn reopen(&self, file: PathBuf) {
        self.start("reopen", move || {
            let what = unsaved::read(&file).map(|(document, path)| (Box::new(document), path));
            Done::Reopened { file, what }
        });
    }

    /// Removes one of them and lists the others.
    pub(crate) fn discard(&mut self, root: PathBuf, file: PathBuf) {
        self.write(move || {
            // a file that cannot be removed stays in the list
            let _ = std::fs::remove_file(file);
            Done::Unsaved(unsaved::list(&root))
        });
    }

    /// Writes an export.
    pub(crate) fn export_to(&mut self, order: Order) {
        self.write(move || Done::Written(writing::write(&order)));
    }

    /// Writes a file, after all earlier requests.
    pub(crate) fn write(&mut self, work: impl FnOnce() -> Done + Send + 'static) {
        if self.writer.is_none() {
            self.writer = self.start_writer();
        }
        let work: Write = Box::new(work);
        let unsent = match &self.writer {
            Some(writer) => writer.queue.send(work).err().map(|e| e.0),
            None => Some(work),
        };
        // a system without threads left still saves
        if let Some(work) = unsent {
            let _ = self.sender.send(work());
        }
    }

    fn start_writer(&self) -> Option<Writer> {
        let (queue, work) = channel::<Write>();
        let (sender, wake) = (self.sender.clone(), self.wake.clone());
        let write = move || {
            while let Ok(work) = work.recv() {
                let _ = sender.send(work());
                wake();
            }
        };
        let thread = std::thread::Builder::new().name("write".into()).spawn(write).ok()?;
        Some(Writer { queue, thread })
    }

    /// Waits until everything is written. At the end only.
    pub(crate) fn finish(&mut self) {
        if let Some(writer) = self.writer.take() {
            drop(writer.queue);
            let _ = writer.thread.join();
        }
    }

    /// Makes the files of an export.
    pub(crate) fn export(&self, built: Arc<Built>, wish: ExportWish) {
        self.start("export", move || {
            let made = guarded("exporting", || exporting::pieces(&built, &wish));
            let pieces = made.unwrap_or_else(|why| Err(vec![why]));
            Done::Exported { wish, pieces }
        });
    }

    /// Counts an area of a design.
    pub(crate) fn area(
        &self,
        built: Arc<Built>,
        lengths: Lengths,
        region: Region,
        captured: Option<area::Heads>,
        of: Of,
    ) {
        self.start("area", move || {
            let figures = area::figures(&built, lengths, &region, captured.as_ref(), of, &Control::new());
            Done::Area { region, figures }
        });
    }

    /// Finds out how NVRTC would be fetched.
    pub(crate) fn plan_fetch(&self) {
        self.start("plan", || Done::Planned(mend::nvrtc_plan()));
    }

    /// Fetches it.
    pub(crate) fn fetch(&self, plan: FetchPlan) {
        self.start("fetch", move || Done::Fetched(mend::fetch_nvrtc(&plan)));
    }

    /// Creates a smaller copy of a document. `kept`: the share of cells that the original keeps, if known.
    pub(crate) fn shrink(&self, built: Arc<Built>, base: Option<PathBuf>, kept: Option<f64>, control: Control) {
        self.start("shrink", move || {
            let made = guarded("making a smaller copy", || shrunk(&built, base, kept, &control)).and_then(|made| made);
            Done::Smaller { of: [built.number, built.revision], made: made.map(Box::new) }
        });
    }

    /// Finds out who takes a document at a place.
    pub(crate) fn verdicts(&self, built: Arc<Built>, place: Place, control: Control) {
        self.start("verdicts", move || {
            let found = guarded("finding out who takes the design", || match &built.problem {
                Ok(problem) => verdicts_on_grid(problem, built.document.axes.grid(), &place, &control),
                Err(why) => {
                    Err(why.first().cloned().unwrap_or_else(|| Diagnostic::error("cannot-run", "it cannot run")))
                }
            });
            Done::Verdicts { of: [built.number, built.revision], place, found: found.and_then(|found| found) }
        });
    }

    /// Makes a document of each length, one after the other.
    pub(crate) fn lengths(
        &self,
        sweep: u64,
        built: Arc<Built>,
        base: Option<PathBuf>,
        tokens: Vec<usize>,
        groups: Groups,
    ) {
        self.start_many("lengths", move |send| {
            for (at, tokens) in tokens.into_iter().enumerate() {
                let files = Files::new(base.clone(), Vec::new());
                let made = guarded("making a shorter copy", || lengths::at(&built.document, &files, tokens, groups))
                    .and_then(|made| made)
                    .map(|document| Box::new(compile::build(document, base.clone())));
                if !send(Done::Length { sweep, at, made }) {
                    return;
                }
            }
        });
    }

    /// Lists the user's own presets. Draws presets small, one after the other, and after them documents by their paths.
    pub(crate) fn thumbnails(&self, presets: Vec<String>, mut files: Vec<PathBuf>, size: usize) {
        self.start_many("thumbnails", move |send| {
            let (folder, own, why) = own_presets();
            files.extend(own.iter().filter(|path| !files.contains(path)).cloned().collect::<Vec<_>>());
            if !send(Done::OwnPresets { folder, own, why }) {
                return;
            }
            let files = files.into_iter().map(|path| (path.display().to_string(), Some(path)));
            for (preset, file) in presets.into_iter().map(|preset| (preset, None)).chain(files) {
                let drawn = guarded(&format!("drawing {preset}"), || match &file {
                    Some(path) => opening::thumbnail_of_file(path, size),
                    None => opening::thumbnail(&preset, size),
                });
                if !send(Done::Thumbnail { preset, picture: drawn.and_then(|drawn| drawn) }) {
                    return;
                }
            }
        });
    }

    fn start(&self, name: &str, work: impl FnOnce() -> Done + Send + 'static) {
        self.start_many(name, move |send| {
            send(work());
        });
    }

    fn start_many(&self, name: &str, work: impl FnOnce(&dyn Fn(Done) -> bool) + Send + 'static) {
        let (sender, wake) = (self.sender.clone(), self.wake.clone());
        let send = move |done| {
            let heard = sender.send(done).is_ok();
            wake();
            heard
        };
        // a system without threads left answers nothing; the window stays
        drop(std::thread::Builder::new().name(name.into()).spawn(move || work(&send)));
    }
}

/// The folder of the user's own presets, what is in it, and what is wrong with it.
fn own_presets() -> (Option<PathBuf>, Vec<PathBuf>, Option<Diagnostic>) {
    let folder = folders::presets();
    let mut own = folder.as_ref().and_then(|folder| folders::entries(folder).ok()).unwrap_or_default();
    own.retain(|path| path.extension().is_some_and(|e| e.eq_ignore_ascii_case("json")));
    (folder, own, folders::wrong("MASKLOOM_PRESETS"))
}

fn shrunk(of: &Built, base: Option<PathBuf>, kept: Option<f64>, control: &Control) -> Result<Shrunk, Diagnostic> {
    let files = Files::new(base.clone(), Vec::new());
    let copy = smaller::copy(&of.document, &of.compiled, kept, &files, smaller::Wish::quick(), control)?;
    let pictures = run_file::pictures(&copy.document, &copy.compiled);
    let about = SmallerCopy {
        words: smaller::words(&copy.problem),
        of: of.problem.as_ref().map(|whole| smaller::words(whole)).unwrap_or_default(),
        kept: copy.kept,
        kept_of: copy.kept_of,
        picture: pictures.into_iter().find(|p| p.title == "mask"),
    };
    Ok(Shrunk { built: compile::build(copy.document, base), about })
}
