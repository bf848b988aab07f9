//! `maskloom presets page`: every built-in preset with its picture, its code and its recorded times, as a page of Markdown.
//!
//! Invariant: everything on the page is made from the presets and the recorded runs that ship, so that the same program writes the same
//! bytes on any machine. Must not know the user's own presets.

use super::out::{self, Failure};
use crate::analysis::raster::{Raster, Region};
use crate::base::{BackendName, Control, Diagnostic, HostTensor};
use crate::document::compile::{BuiltIn, compile};
use crate::document::from_document;
use crate::document::library::{self, Preset};
use crate::document::model::Document;
use crate::export::picture::{FULL, colour};
use crate::ir::graph::Mod;
use crate::ir::passes::simplify::simplify;
use crate::ir::print::{Names, any_range, function};
use crate::problem::Problem;
use crate::problem::result::GradientReport;
use crate::tasks::recorded::{self, Recorded};
use crate::worker::files;
use rayon::prelude::*;
use serde_json::json;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

/// Write a page of all built-in presets: pictures, code, recorded times
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Folder to write README.md and the pictures into; created if missing, files of these names are replaced
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Print one JSON object instead of a line
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn page(args: &Args) -> Result<(), Failure> {
    let made = made()?;
    for (name, bytes) in &made {
        files::save_with_folders(&args.out.join(name), bytes)?;
    }
    let page = args.out.join(PAGE);
    if args.json {
        return out::json(&json!({ "page": out::path(&page), "presets": made.len() - 1 }));
    }
    let n = ("n", (made.len() - 1).to_string().into());
    out::text(&out::line("pages-presets", &[n, ("page", out::path(&page).into())]))
}

const PAGE: &str = "README.md";
/// Pixels along the longer side, and shades of mixed pixels: the first whose file is small enough is taken.
const SIZES: [(usize, usize); 5] = [(160, 4), (160, 1), (128, 1), (96, 1), (64, 1)];
/// Bytes of one picture.
const MOST: usize = 2048;
/// Shorter sides are drawn at least as long, so that a few queries over many keys can be seen.
const LEAST: usize = 16;
/// Lines of code of one preset on the page.
const LINES: usize = 60;

/// The page, then the pictures.
fn made() -> Result<Vec<(String, Vec<u8>)>, Vec<Diagnostic>> {
    let parts: Vec<Result<Part, Vec<Diagnostic>>> = library::presets().par_iter().map(Part::of).collect();
    let parts = parts.into_iter().collect::<Result<Vec<Part>, _>>()?;
    let mut text = HEAD.to_string();
    for part in &parts {
        let (name, title) = (part.name, &part.title);
        let _ = writeln!(text, "[<img src=\"{name}.png\" width=\"96\" alt=\"{title}\" title=\"{title}\">](#{name})");
    }
    parts.iter().for_each(|part| text.push_str(&part.text));
    let mut all = vec![(PAGE.to_string(), text.into_bytes())];
    all.extend(parts.into_iter().map(|part| (format!("{}.png", part.name), part.picture)));
    Ok(all)
}

const HEAD: &str = "\
# The presets

`maskloom presets page --out docs/gallery` writes this page. `maskloom run NAME` races a preset, and `maskloom NAME` opens it in the window.

Rows of a picture are queries, columns are keys, for batch entry 0 and head 0. Dark blue cells are kept, light ones are dropped, orange
pixels hold both. A recorded time is that of the GPU's work for one pass, the median of its run on the named card. The ratio is the other's
time over that of Maskloom's kernel, and names the other: where PyTorch did not run beside it, that is a kernel of our own or of cuDNN.

";

/// One preset.
struct Part {
    name: &'static str,
    title: String,
    text: String,
    picture: Vec<u8>,
}

impl Part {
    fn of(preset: &Preset) -> Result<Part, Vec<Diagnostic>> {
        let document = preset.document()?;
        let compiled = compile(&document, &BuiltIn);
        let errors: Vec<_> = compiled.all_diagnostics().filter(|d| d.is_error()).cloned().collect();
        if !errors.is_empty() {
            return Err(errors);
        }
        let problem = from_document(&document, &compiled)?;
        let picture = picture(&problem).map_err(|why| vec![why])?;
        let text = section(preset.name, &document, &problem).map_err(|why| vec![why])?;
        Ok(Part { name: preset.name, title: document.name, text, picture })
    }
}

fn section(name: &str, document: &Document, problem: &Problem) -> Result<String, Diagnostic> {
    let runs = recorded::of(document);
    let density = match runs.first() {
        Some(run) => run.report.work.density,
        None => problem.block_mask(problem.block_size, &Control::new())?.stats().density,
    };
    let mut text =
        format!("\n## {name}\n\n![{0}]({name}.png)\n\n**{0}.** {1}\n\n", document.name, linked(&document.about));
    let _ = writeln!(text, "Keeps {} of its cells.", super::table::percent(density));
    runs.iter().for_each(|run| text.push_str(&times(run)));
    text.push_str(&code(problem));
    Ok(text)
}

/// `- NVIDIA H200, 2026-11-21: forward 0.31 ms, 2.10x cuDNN 9.19 SDPA; backward 1.18 ms`.
fn times(run: &Recorded) -> String {
    let report = &run.report;
    let Some(forward) = report.median_ms(BackendName::Flex) else { return String::new() };
    let against = report.versus(BackendName::Flex).zip(report.baseline());
    let against = against.map(|(versus, base)| format!(", {}", versus.words_of(&base.words))).unwrap_or_default();
    let mut line = format!("- {}: forward {forward:.3} ms{against}", run.report.place());
    let flex = |row: &&GradientReport| row.backend == BackendName::Flex;
    if let Some(timing) = report.gradients.iter().find(flex).and_then(|row| row.outcome.right()) {
        let against = report.backward_versus(BackendName::Flex).zip(report.backward_baseline());
        let against = against.map(|(versus, base)| format!(", {}", versus.words_of(&base.words))).unwrap_or_default();
        let _ = write!(line, "; backward {:.3} ms{against}", timing.median_ms);
    }
    line + "\n"
}

/// Papers by their numbers become links.
fn linked(about: &str) -> String {
    const PREFIX: &str = "arXiv:";
    let mut out = String::new();
    let mut rest = about;
    while let Some(at) = rest.find(PREFIX) {
        let after = &rest[at + PREFIX.len()..];
        let end = after.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(after.len());
        let number = after[..end].trim_end_matches('.');
        let _ = write!(out, "{}[{PREFIX}{number}](https://arxiv.org/abs/{number})", &rest[..at]);
        rest = &after[number.len()..];
    }
    out + rest
}

/// The mods as FlexAttention code, folded.
fn code(problem: &Problem) -> String {
    let mut names = Names::default();
    let mut text = String::new();
    for (name, of) in [("mask_mod", &problem.mask), ("score_mod", &problem.score)] {
        let Some(of) = of else { continue };
        let of: Mod = simplify(of);
        text.push_str(&format!(
            "{}{}",
            if text.is_empty() { "" } else { "\n" },
            function(name, &of, &mut names, &any_range)
        ));
    }
    if text.is_empty() {
        return "\nIt has no mask: every query sees every key.\n".into();
    }
    let shape = |t: &HostTensor| t.shape().iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    let captured = names.tensors.iter().map(|(name, t)| format!("# {name}: {} of [{}]\n", t.dtype(), shape(t)));
    let text = captured.collect::<String>() + &text;
    let lines: Vec<&str> = text.lines().collect();
    let mut shown = lines[..lines.len().min(LINES)].join("\n");
    if lines.len() > LINES {
        let _ = write!(shown, "\n# ... and {} lines more: maskloom export writes them", lines.len() - LINES);
    }
    format!("\n<details><summary>FlexAttention code</summary>\n\n```python\n{shown}\n```\n\n</details>\n")
}

/// The mask of batch entry 0 and head 0. Errors: it cannot be encoded.
fn picture(problem: &Problem) -> Result<Vec<u8>, Diagnostic> {
    let mut smallest = Vec::new();
    for (size, shades) in SIZES {
        let longer = problem.q_len.max(problem.kv_len);
        let side = |n: usize| (n * size.min(longer)).div_ceil(longer).max(LEAST.min(n));
        let (height, width) = (side(problem.q_len), side(problem.kv_len));
        let shares = match &problem.mask {
            Some(mask) => {
                let region = Region::whole([0, 0], problem.lengths(), [height, width]);
                Raster::new(Arc::clone(mask)).tile(&region, &Control::new())
            }
            None => vec![1.0; height * width],
        };
        smallest = encoded(&shares, [height, width], shades)?;
        if smallest.len() <= MOST {
            break;
        }
    }
    Ok(smallest)
}

/// A PNG of at most 16 colours: dropped, the shades, kept.
fn encoded(shares: &[f32], [height, width]: [usize; 2], shades: usize) -> Result<Vec<u8>, Diagnostic> {
    let broken = |why: png::EncodingError| Diagnostic::error("png", format!("the picture cannot be encoded: {why}"));
    let shade = |share: f32| match share {
        s if s <= 0.0 => 0,
        s if s >= 1.0 => shades + 1,
        s => 1 + ((s * shades as f32) as usize).min(shades - 1),
    };
    let middle = |at: usize| colour((at as f32 + 0.5) / shades as f32);
    let palette: Vec<u8> =
        std::iter::once(colour(0.0)).chain((0..shades).map(middle)).chain([FULL]).flatten().collect();
    let mut rows = Vec::with_capacity(height * width.div_ceil(2));
    for row in shares.chunks(width) {
        rows.extend(row.chunks(2).map(|two| {
            let low = two.get(1).map_or(0, |share| shade(*share));
            (shade(two[0]) << 4 | low) as u8
        }));
    }
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width as u32, height as u32);
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(png::BitDepth::Four);
    encoder.set_palette(palette);
    encoder.set_compression(png::Compression::High);
    encoder.set_filter(png::Filter::NoFilter);
    let mut writer = encoder.write_header().map_err(broken)?;
    writer.write_image_data(&rows).map_err(broken)?;
    writer.finish().map_err(broken)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_gallery_is_what_the_program_writes() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/gallery");
        let made = made().expect("every preset loads");
        for (name, bytes) in &made {
            let kept = std::fs::read(folder.join(name)).unwrap_or_default();
            assert!(kept == *bytes, "{name} differs; write it anew: maskloom presets page --out docs/gallery");
        }
        let kept = std::fs::read_dir(&folder).expect("the folder").count();
        assert_eq!(kept, made.len(), "a picture of a preset that is gone is left in docs/gallery");
        assert_eq!(made.len(), library::presets().len() + 1);
        let large: Vec<_> = made[1..].iter().filter(|(_, bytes)| bytes.len() > MOST).map(|(name, _)| name).collect();
        assert!(large.is_empty(), "larger than {MOST} bytes: {large:?}");
    }

    #[test]
    fn pictures_have_the_colours_of_their_shares() {
        let bytes = encoded(&[1.0, 0.0, 0.5, 1.0, 0.1, 0.0], [2, 3], 4).expect("a PNG");
        let read = image::load_from_memory_with_format(&bytes, image::ImageFormat::Png).expect("a PNG").to_rgb8();
        assert_eq!(read.dimensions(), (3, 2));
        assert_eq!([read.get_pixel(0, 0).0, read.get_pixel(1, 0).0], [FULL, colour(0.0)]);
        assert_eq!([read.get_pixel(2, 0).0, read.get_pixel(1, 1).0], [colour(0.625), colour(0.125)]);
    }

    #[test]
    fn papers_become_links() {
        assert_eq!(linked("as in arXiv:2310.06825."), "as in [arXiv:2310.06825](https://arxiv.org/abs/2310.06825).");
        assert_eq!(linked("none"), "none");
    }
}
