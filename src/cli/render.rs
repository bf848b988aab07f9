//! `maskloom render`: the picture of a mask or a bias as PNG, or as a figure with axes.
//!
//! Invariant: only the requested rectangle is evaluated, at any length. Must not know workers.

use super::figures::{self, Shown};
use super::opened::{self, CodeArgs};
use super::out::{self, Failure};
use super::overrides::Overrides;
use crate::analysis::raster::{self, BiasRaster, Picture, Region};
use crate::base::{Control, Diagnostic, Lengths};
use crate::document::model::Document;
use crate::worker::files;
use image::{ExtendedColorType, ImageEncoder, codecs::png::PngEncoder};
use serde_json::json;
use std::ops::Range;
use std::path::PathBuf;

/// Draw a mask (or with --bias a score mod) as PNG, or as a figure with axes, legend and caption (SVG, PDF)
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Name of a preset, FILE.json or FILE.py:ENTRY
    preset: String,
    /// File of the picture
    #[arg(long, alias = "to", value_name = "F.png|svg|pdf", value_parser = super::ending::one_of(&["png", "svg", "pdf"]))]
    out: PathBuf,
    #[command(flatten)]
    code: CodeArgs,
    #[command(flatten)]
    overrides: Overrides,
    /// Pixels along the longer side, at most one pixel per token
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=16384))]
    size: u32,
    /// Batch entry
    #[arg(long, default_value_t = 0)]
    b: usize,
    /// Query head
    #[arg(long, default_value_t = 0)]
    h: usize,
    /// Query tokens shown, FROM..TO
    #[arg(long, value_name = "RANGE", value_parser = super::arguments::range)]
    rows: Option<Range<usize>>,
    /// Key tokens shown, FROM..TO
    #[arg(long, value_name = "RANGE", value_parser = super::arguments::range)]
    cols: Option<Range<usize>>,
    /// Draw the score mods' result for a score of zero
    #[arg(long)]
    bias: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn render(args: Args) -> Result<(), Failure> {
    let opened = opened::open(&args.preset, &args.code, &args.overrides)?;
    let compiled = opened.compile()?;
    let lengths = opened.document.axes.lengths()?;
    let view = View::new(&args, lengths).map_err(Failure::WrongUse)?;
    check_head(&opened.document, args.b, args.h)?;
    let control = Control::new();
    let (q, kv) = (view.q.clone(), view.kv.clone());
    let region = Region { b: args.b, h: args.h, q, kv, height: view.height, width: view.width };
    let shown = Shown {
        document: &opened.document,
        place: [args.b, args.h],
        q: view.q.clone(),
        kv: view.kv.clone(),
        pixels: [view.width, view.height],
    };
    let is_figure = figures::is_figure(&args.out);
    let (rgb, figure) = if args.bias {
        let score = compiled.score.ok_or_else(|| {
            Diagnostic::error("no-bias", "the document has no score mods").hint("leave out --bias to draw the mask")
        })?;
        let values = BiasRaster::new(score).tile(&region, &control);
        let rgb = bias_colours(&values);
        let figure = is_figure.then(|| shown.bias(&values, rgb.clone()));
        (rgb, figure)
    } else {
        let Picture { pixels, exact } = raster::picture(compiled.mask.as_ref(), &region, &control);
        (pixels.iter().flat_map(|s| viridis(*s)).collect(), is_figure.then(|| shown.mask(&pixels, exact)))
    };
    let mut bytes = 0;
    match &figure {
        Some(figure) => drop(figures::write(figure, &args.out)?),
        None => {
            let png = png(&view, &rgb)?;
            files::save(&args.out, &png)?;
            bytes = png.len() as u64;
        }
    }
    if args.json {
        // a device such as /dev/stdout has no length
        let written = std::fs::metadata(&args.out).map_or(bytes, |meta| meta.len());
        let shown = json!({ "b": args.b, "h": args.h, "rows": [view.q.start, view.q.end], "cols": [view.kv.start, view.kv.end] });
        out::json(
            &json!({ "picture": out::path(&args.out), "width": view.width, "height": view.height, "bytes": written, "shown": shown }),
        )?;
    }
    Ok(())
}

/// Errors: the document has no such batch entry or head.
pub(super) fn check_head(document: &Document, b: usize, h: usize) -> Result<(), Failure> {
    let settings = &document.settings;
    if b < settings.batch && h < settings.heads {
        return Ok(());
    }
    let message = format!("no batch {b}, head {h}: the document has {} x {}", settings.batch, settings.heads);
    Err(Failure::WrongUse(Diagnostic::error("picture-head", message).hint("indices count from 0")))
}

struct View {
    q: Range<usize>,
    kv: Range<usize>,
    height: usize,
    width: usize,
}

impl View {
    fn new(args: &Args, lengths: Lengths) -> Result<View, Diagnostic> {
        let q = args.rows.clone().unwrap_or(0..lengths.q_len);
        let kv = args.cols.clone().unwrap_or(0..lengths.kv_len);
        if q.end > lengths.q_len || kv.end > lengths.kv_len {
            let message =
                format!("rows {q:?} and columns {kv:?} are outside {} x {} tokens", lengths.q_len, lengths.kv_len);
            return Err(Diagnostic::error("picture-outside", message).hint("ranges are half-open: 0..512"));
        }
        let shown = Lengths { q_len: q.len(), kv_len: kv.len() };
        let [height, width] = shown.in_pixels(shown.longer().min(args.size as usize));
        Ok(View { height, width, q, kv })
    }
}

fn viridis(share: f32) -> [u8; 3] {
    let colour = colorous::VIRIDIS.eval_continuous(f64::from(share.clamp(0.0, 1.0)));
    [colour.r, colour.g, colour.b]
}

/// Cividis from the smallest to the largest finite value; white for other values.
fn bias_colours(values: &[f32]) -> Vec<u8> {
    let finite = values.iter().copied().filter(|v| v.is_finite());
    let (lo, hi) = finite.fold((f32::INFINITY, f32::NEG_INFINITY), |(lo, hi), v| (lo.min(v), hi.max(v)));
    let colour = |v: &f32| {
        if !v.is_finite() {
            return [255, 255, 255];
        }
        let at = if hi > lo { (v - lo) / (hi - lo) } else { 0.5 };
        let c = colorous::CIVIDIS.eval_continuous(f64::from(at));
        [c.r, c.g, c.b]
    };
    values.iter().flat_map(colour).collect()
}

fn png(view: &View, rgb: &[u8]) -> Result<Vec<u8>, Diagnostic> {
    let mut bytes = Vec::new();
    PngEncoder::new(&mut bytes)
        .write_image(rgb, view.width as u32, view.height as u32, ExtendedColorType::Rgb8)
        .map_err(|e| Diagnostic::error("png", format!("the picture cannot be encoded: {e}")))?;
    Ok(bytes)
}
