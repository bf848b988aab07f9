//! Fonts of the system for writing that the window's own fonts lack: Chinese, Japanese, Korean, Devanagari and others.
//!
//! Invariant: the window never waits for them: a thread reads them after the start; the window's own fonts come first. Must not know what is
//! written.

use egui::{FontData, FontDefinitions, FontFamily};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// A kind of writing: its name, a character of it, how the files of its fonts begin (the best first), the package of Debian that has them.
struct Script {
    name: &'static str,
    sample: char,
    files: &'static [&'static str],
    package: &'static str,
}

const SCRIPTS: [Script; 7] = [
    Script {
        name: "Chinese, Japanese and Korean",
        sample: '\u{6ed1}',
        files: &[
            "NotoSansCJK-Regular",
            "NotoSansCJKsc-Regular",
            "NotoSansSC",
            "SourceHanSans-Regular",
            "SourceHanSansSC-Regular",
            "wqy-microhei",
            "wqy-zenhei",
            "DroidSansFallbackFull",
            "msyh",
            "PingFang",
            "Hiragino Sans GB",
            "STHeiti",
        ],
        package: "fonts-noto-cjk",
    },
    Script {
        name: "Devanagari",
        sample: '\u{935}',
        files: &[
            "NotoSansDevanagari-Regular",
            "NotoSansDevanagari",
            "Lohit-Devanagari",
            "Nirmala",
            "mangal",
            "Kohinoor",
            "FreeSans",
        ],
        package: "fonts-noto-core",
    },
    Script {
        name: "Arabic",
        sample: '\u{627}',
        files: &["NotoSansArabic-Regular", "NotoNaskhArabic-Regular", "DejaVuSans", "Geeza"],
        package: "fonts-noto-core",
    },
    Script {
        name: "Hebrew",
        sample: '\u{5d0}',
        files: &["NotoSansHebrew-Regular", "DejaVuSans", "arial"],
        package: "fonts-noto-core",
    },
    Script {
        name: "Thai",
        sample: '\u{e01}',
        files: &["NotoSansThai-Regular", "Loma", "Garuda", "Thonburi"],
        package: "fonts-noto-core",
    },
    Script {
        name: "Bengali",
        sample: '\u{995}',
        files: &["NotoSansBengali-Regular", "Lohit-Bengali"],
        package: "fonts-noto-core",
    },
    Script {
        name: "Tamil",
        sample: '\u{b95}',
        files: &["NotoSansTamil-Regular", "Lohit-Tamil"],
        package: "fonts-noto-core",
    },
];

/// Folders below a folder of fonts that are looked into.
const DEEP: usize = 4;
/// Bytes of a font that is read, at most.
const LARGEST: u64 = 64 << 20;

/// What was found.
static FOUND: OnceLock<Vec<&'static str>> = OnceLock::new();

/// Where systems keep fonts.
fn folders() -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> =
        ["/usr/share/fonts", "/usr/local/share/fonts", "/run/host/fonts", "/System/Library/Fonts", "/Library/Fonts"]
            .map(PathBuf::from)
            .into();
    if let Some(dirs) = directories::UserDirs::new() {
        let home = dirs.home_dir();
        all.extend([".local/share/fonts", ".fonts", "Library/Fonts"].map(|below| home.join(below)));
    }
    all.extend(std::env::var_os("XDG_DATA_HOME").map(|data| PathBuf::from(data).join("fonts")));
    all.extend(std::env::var_os("WINDIR").map(|windows| PathBuf::from(windows).join("Fonts")));
    all
}

/// The font files below a folder.
fn files(folder: &Path, deep: usize, out: &mut Vec<PathBuf>) {
    for path in std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let ending = path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
        match ending.as_str() {
            "ttf" | "otf" | "ttc" => out.push(path),
            _ if deep > 0 && path.is_dir() => files(&path, deep - 1, out),
            _ => {}
        }
    }
}

/// The best file of each kind of writing that there is one of.
fn choose(all: &[PathBuf]) -> Vec<(&'static str, PathBuf)> {
    let named = |begin: &str| {
        let fits = |path: &&PathBuf| path.file_stem().is_some_and(|stem| stem.to_string_lossy().starts_with(begin));
        // the plain weight has the shortest name
        all.iter().filter(fits).min_by_key(|path| path.as_os_str().len())
    };
    SCRIPTS
        .iter()
        .filter_map(|script| Some((script.name, script.files.iter().find_map(|begin| named(begin))?.clone())))
        .collect()
}

/// Which face of a collection: Noto's and Source Han's hold Japan's forms of the letters, Korea's, China's and Taiwan's in this
/// order; the window speaks Chinese.
fn face(path: &Path) -> u32 {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let collection = ["NotoSansCJK-", "SourceHanSans-"].iter().any(|begin| name.starts_with(begin));
    if collection && name.ends_with(".ttc") { 2 } else { 0 }
}

/// The window's fonts, and behind them those of files.
fn with(found: &[(&'static str, PathBuf)]) -> FontDefinitions {
    let mut fonts = FontDefinitions::default();
    let mut taken: Vec<&PathBuf> = Vec::new();
    for (name, path) in found {
        let small = std::fs::metadata(path).is_ok_and(|meta| meta.len() <= LARGEST);
        if taken.contains(&path) || !small {
            continue;
        }
        let Ok(bytes) = std::fs::read(path) else { continue };
        taken.push(path);
        let font = FontData { index: face(path), ..FontData::from_owned(bytes) };
        fonts.font_data.insert((*name).into(), Arc::new(font));
        for family in [FontFamily::Proportional, FontFamily::Monospace] {
            fonts.families.entry(family).or_default().push((*name).into());
        }
    }
    fonts
}

/// Reads them in a thread, and gives them to the window.
pub(super) fn start(ctx: &egui::Context) {
    let ctx = ctx.clone();
    let read = move || {
        let mut all = Vec::new();
        folders().iter().for_each(|folder| files(folder, DEEP, &mut all));
        let found = choose(&all);
        let _ = FOUND.set(found.iter().map(|(name, _)| *name).collect());
        if !found.is_empty() {
            // a font that is broken is never shown: the others stay
            let fonts = with(&found);
            ctx.set_fonts(fonts);
            ctx.request_repaint();
        }
    };
    // a system without threads left shows boxes
    drop(std::thread::Builder::new().name("fonts".into()).spawn(read));
}

/// What a text needs and the system lacks: the kind of writing, and the package that has it. None before the fonts are read.
pub(super) fn missing(text: &str) -> Option<(&'static str, &'static str)> {
    let found = FOUND.get()?;
    let script = text.chars().find_map(script_of)?;
    (!found.contains(&script.name)).then_some((script.name, script.package))
}

/// The kind of writing of a character that the window's own fonts lack.
fn script_of(c: char) -> Option<&'static Script> {
    let block = |c: char| match u32::from(c) {
        0x2e80..=0x9fff | 0xac00..=0xd7ff | 0xf900..=0xfaff | 0x20000..=0x3ffff => 0x6ed1,
        n => n & !0x7f,
    };
    // the scripts of the Indian subcontinent and Thai have 128 places each; Arabic has two such blocks
    let of = |c: char| if matches!(u32::from(c), 0x600..=0x77f) { 0x600 } else { block(c) };
    SCRIPTS.iter().find(|script| of(script.sample) == of(c) && c > '\u{58f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_font_of_each_writing_is_taken_and_the_windows_own_come_first() {
        let home = tempfile::tempdir().expect("a folder");
        let deep = home.path().join("truetype/noto");
        std::fs::create_dir_all(&deep).expect("made");
        let bytes = FontDefinitions::default().font_data["Hack"].font.as_ref().as_ref().to_vec();
        for name in [
            "wqy-microhei.ttc",
            "NotoSansCJK-Regular.ttc",
            "NotoSansDevanagari-Regular.ttf",
            "NotoSansDevanagari-Bold.ttf",
            "x.txt",
        ] {
            std::fs::write(deep.join(name), &bytes).expect("written");
        }
        let mut all = Vec::new();
        files(home.path(), DEEP, &mut all);
        assert_eq!(all.len(), 4);
        let found = choose(&all);
        let names: Vec<_> =
            found.iter().map(|(_, path)| path.file_name().expect("a name").to_string_lossy().into_owned()).collect();
        assert_eq!(names, ["NotoSansCJK-Regular.ttc", "NotoSansDevanagari-Regular.ttf"]);
        assert_eq!([0, 1].map(|at| face(&found[at].1)), [2, 0], "China's forms of the letters");
        let fonts = with(&found);
        let (own, all) = (FontDefinitions::default(), &fonts.families[&FontFamily::Proportional]);
        let first = &own.families[&FontFamily::Proportional];
        assert_eq!((&all[..first.len()], all.len()), (&first[..], first.len() + 2));
        // a file that has gone meanwhile changes nothing
        assert_eq!(with(&[("Thai", home.path().join("gone.ttf"))]).font_data.len(), own.font_data.len());
    }

    #[test]
    fn a_character_tells_its_writing() {
        for (text, name) in [
            ("滑动窗口", "Chinese, Japanese and Korean"),
            ("विंडो", "Devanagari"),
            ("窓", "Chinese, Japanese and Korean"),
            ("창", "Chinese, Japanese and Korean"),
            ("نافذة", "Arabic"),
            ("หน้า", "Thai"),
        ] {
            assert_eq!(text.chars().find_map(script_of).map(|s| s.name), Some(name), "{text}");
        }
        assert!("plain é Ω ж ≤ µ".chars().find_map(script_of).is_none());
    }
}
