//! All exported files of a design, in one list.
//!
//! Invariant: names in the list differ, and a file that could not be created is replaced by a note. Must not know
//! folders.

use super::adapters::adapters;
use super::following::following;
use super::picture::{PictureOptions, picture};
use super::report::{ReportRequest, report};
use super::sidecar::sidecar;
use super::{ExportFile, ExportKind, ModuleOptions, about, blocks, torch_module_with};
use crate::base::{Control, Diagnostic};
use crate::document::file;
use crate::document::model::Document;
use crate::problem::Problem;
use crate::problem::result::RunReport;
use crate::trainers::config::{ConfigRequest, config};

/// Block arrays larger than this are left out, with a note.
const MAX_BLOCKS: usize = 1 << 24;

/// The input of an export.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExportOptions<'a> {
    /// The trainer's config; its `designed` is set here.
    pub config: ConfigRequest<'a>,
    /// The picture.
    pub picture: PictureOptions,
    /// The race for the report, if there was one.
    pub run: Option<&'a RunReport>,
    /// Runs of exactly this design that ship with Maskloom, for the report.
    pub recorded: &'a [&'a RunReport],
    /// Day of the export, for the report.
    pub date: Option<&'a str>,
    /// Stem of the files' names; None: of the document's name.
    pub name: Option<&'a str>,
}

/// The files, with notes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bundle {
    /// In the order in which a preview shows them.
    pub files: Vec<ExportFile>,
    /// Limits of the trainer, and files that were not created.
    pub notes: Vec<Diagnostic>,
}

/// The trainer's config, the preset, the PyTorch module with its tensors, the block lists, a picture and a report. Errors: the
/// config to be merged into cannot be read, or it was cancelled.
pub fn export_all(
    document: &Document,
    problem: &Problem,
    options: &ExportOptions,
    control: &Control,
) -> Result<Bundle, Diagnostic> {
    let designed = problem.mask.is_some() || problem.score.is_some();
    let config = config(&ConfigRequest { designed, ..options.config })?;
    let mut bundle = Bundle { files: vec![config.file], notes: config.notes };
    let stem = file_stem(options.name.unwrap_or(&document.name));
    bundle.files.push(preset(document, &format!("{stem}.maskloom.json")));
    bundle.files.extend(code(document, problem, &stem));
    if problem.mask.is_some() {
        bundle.blocks(&format!("{stem}_blocks.safetensors"), problem, control)?;
    }
    let name = format!("{stem}.png");
    let picture = picture(&name, problem.mask.as_ref(), problem.lengths(), &options.picture, control)?;
    let request = ReportRequest {
        name: &format!("{stem}_report.html"),
        stem: &stem,
        document,
        problem,
        picture: &picture,
        run: options.run,
        recorded: options.recorded,
        date: options.date,
    };
    let page = report(&request, control)?;
    bundle.files.extend([picture, page]);
    Ok(bundle)
}

/// Every file of code: the module with its tensors, the script that checks gradients, and the ways into models.
pub(super) fn code(document: &Document, problem: &Problem, stem: &str) -> Vec<ExportFile> {
    let module = ModuleOptions {
        name: stem.to_string(),
        title: format!("{}: an attention mask made with Maskloom.", document.name),
        about: about::lines(document),
        other_lengths: Some(about::other_lengths(document, problem)),
        promises: true,
    };
    let mut files = torch_module_with(problem, &module);
    files.push(gradcheck(stem));
    if problem.mask.is_some() || problem.score.is_some() {
        files.extend(adapters(stem));
        files.extend(sidecar(document, problem, stem));
        files.extend(following(document, stem));
    }
    files
}

/// The script that checks the module's gradients, and the kernel's if one is exported.
fn gradcheck(stem: &str) -> ExportFile {
    let text = include_str!("../../assets/python/gradcheck.py").replace("DESIGN", stem);
    ExportFile::new(
        ExportKind::Module,
        format!("{stem}_gradcheck.py"),
        text,
        "checks gradients against float64 and finite differences",
    )
}

/// The document as a preset file.
pub fn preset(document: &Document, name: &str) -> ExportFile {
    ExportFile::new(ExportKind::Design, name, file::to_json(document), "the design: opens in Maskloom again")
}

impl Bundle {
    fn blocks(&mut self, name: &str, problem: &Problem, control: &Control) -> Result<(), Diagnostic> {
        let (rows, cols) = problem.block_size.grid(problem.lengths());
        let pairs = problem.mask_copies();
        if rows.saturating_mul(cols).saturating_mul(pairs) > MAX_BLOCKS {
            let message = format!("{name} was not written: it would list {rows} x {cols} blocks {pairs} times");
            self.notes.push(
                Diagnostic::note("export-blocks-too-large", message)
                    .hint("make_block_mask(device) of the module builds them on the device"),
            );
            return Ok(());
        }
        self.files.push(blocks::block_mask(name, problem, control)?);
        Ok(())
    }
}

/// A document's name as a Python module's.
pub fn file_stem(name: &str) -> String {
    let mut stem = String::new();
    for c in name.chars() {
        match c {
            c if c.is_ascii_alphanumeric() => stem.push(c.to_ascii_lowercase()),
            _ if !stem.is_empty() && !stem.ends_with('_') => stem.push('_'),
            _ => {}
        }
        if stem.len() >= 48 {
            break;
        }
    }
    let stem = stem.trim_end_matches('_');
    match stem.chars().next() {
        None => "mask".to_string(),
        Some(c) if c.is_ascii_digit() => format!("mask_{stem}"),
        // a module that shadows one of Python's or of a trainer's, or a Python word, cannot be imported
        _ if TAKEN.split(' ').any(|name| name == stem) => format!("{stem}_mask"),
        _ if crate::ir::print::is_reserved(stem) => format!("{stem}_mask"),
        _ => stem.to_string(),
    }
}

/// Modules of Python itself, of the exports' imports and of trainers: the folder of an export is on their path.
const TAKEN: &str = "\
    abc accelerate aifc antigravity argparse array ast asynchat asyncio asyncore atexit audioop base64 \
    bdb binascii bisect builtins bz2 calendar cgi cgitb chunk cmath cmd code codecs codeop collections \
    colorsys compileall concurrent config configparser contextlib contextvars copy copyreg crypt csv \
    ctypes curses dataclasses datetime dbm decimal difflib diffusers dis distutils doctest email \
    encodings ensurepip enum errno faulthandler fcntl filecmp fileinput filelock fnmatch fractions \
    fsspec ftplib functools gc genericpath getopt getpass gettext glob graphlib grp gzip hashlib heapq \
    hmac html http idlelib imaplib imghdr imp importlib inspect io ipaddress itertools jinja2 json \
    keyword lib2to3 linecache locale logging lzma mailbox mailcap marshal maskloom_sidecar math \
    mimetypes mmap modulefinder msilib msvcrt multiprocessing netrc networkx nis nntplib nt ntpath \
    nturl2path numbers numpy opcode operator optparse os ossaudiodev packaging pathlib pdb peft pickle \
    pickletools pip pipes pkgutil platform plistlib poplib posix posixpath pprint profile pstats pty pwd \
    py_compile pyclbr pydoc pydoc_data pyexpat queue quopri random re readline regex reprlib requests \
    resource rlcompleter runpy safetensors sched secrets select selectors setuptools shelve shlex shutil \
    sidecar signal site sitecustomize smtpd smtplib sndhdr socket socketserver spwd sqlite3 sre_compile \
    sre_constants sre_parse ssl stat statistics string stringprep struct subprocess sunau sympy symtable \
    sys sysconfig syslog tabnanny tarfile telnetlib tempfile termios textwrap this threading time timeit \
    tkinter token tokenize tomllib torch tqdm trace traceback tracemalloc transformers triton tty turtle \
    turtledemo types typing unicodedata unittest urllib uu uuid venv warnings wave weakref webbrowser \
    winreg winsound wsgiref xdrlib xml xmlrpc yaml zipapp zipfile zipimport zlib zoneinfo";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::BackendName;
    use crate::document::compile::{BuiltIn, compile};
    use crate::document::from_document;
    use crate::document::model::MaskContent;
    use crate::document::testing;

    fn document() -> Document {
        let mut document = testing::empty("tokens 300");
        document.layers.push(testing::layer(1, MaskContent::Band { lo: Some(0), hi: Some(40) }));
        document
    }

    fn exported(document: &Document, existing: Option<&[u8]>) -> Result<Bundle, Diagnostic> {
        let problem = from_document(document, &compile(document, &BuiltIn)).expect("compiles");
        let config = ConfigRequest {
            backend: Some(BackendName::Flex),
            existing: existing.map(|bytes| ("config.json", bytes)),
            ..ConfigRequest::default()
        };
        export_all(document, &problem, &ExportOptions { config, ..Default::default() }, &Control::new())
    }

    #[test]
    fn a_design_leaves_whole() {
        let bundle = exported(&document(), Some(b"{\"seed\": 1}\n")).expect("made");
        let names: Vec<_> =
            bundle.files.iter().map(|f| f.name.as_str()).filter(|n| !n.contains("/maskloom_sidecar/")).collect();
        let want = [
            "config.json",
            "test.maskloom.json",
            "test.py",
            "test_gradcheck.py",
            "test_diffusers.py",
            "test_transformers.py",
            "sidecar/sidecar.json",
            "sidecar/sitecustomize.py",
            "test_blocks.safetensors",
            "test.png",
            "test_report.html",
        ];
        assert_eq!(names, want);
        let file = |name: &str| bundle.files.iter().find(|f| f.name == name).expect("there").bytes.clone();
        assert_eq!(bundle.files[0].bytes, b"{\"seed\": 1, \"attention_mechanism\": \"flex\"}\n");
        let text = std::str::from_utf8(&bundle.files[1].bytes).expect("text");
        assert_eq!(file::from_json(text).expect("a document"), document());
        let module = std::str::from_utf8(&bundle.files[2].bytes).expect("text");
        assert!(module.contains("    return (q_idx >= kv_idx) & (q_idx - kv_idx <= 40)\n"), "{module}");
        let blocks = file("test_blocks.safetensors");
        let blocks = safetensors::SafeTensors::deserialize(&blocks).expect("tensors");
        assert_eq!(blocks.tensor("kv_indices").expect("there").shape(), [1, 1, 75, 75]);
        assert_eq!(blocks.len(), 8);
        assert!(bundle.notes.iter().any(|n| n.code == "config-carries-no-mask"));
    }

    #[test]
    fn a_broken_config_stops_the_export() {
        assert_eq!(exported(&document(), Some(b"{")).expect_err("refused").code, "config-not-json");
    }

    #[test]
    fn names_become_module_names() {
        let cases = [
            ("Flux (regional) 2x", "flux_regional_2x"),
            ("3D NATTEN", "mask_3d_natten"),
            ("  ", "mask"),
            ("config", "config_mask"),
            ("Random", "random_mask"),
            ("types", "types_mask"),
            ("sidecar", "sidecar_mask"),
            ("Random window", "random_window"),
            ("class", "class_mask"),
            ("Bänder", "b_nder"),
        ];
        for (name, want) in cases {
            assert_eq!(file_stem(name), want);
        }
        assert!(file_stem(&"long ".repeat(50)).len() <= 48);
    }
}
