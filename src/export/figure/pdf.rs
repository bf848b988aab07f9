//! A figure as PDF: one page of its size, its font within.
//!
//! Invariant: every text is selectable text in an embedded font; a character that the font lacks is refused by name, never left out. Must
//! not know what is drawn.

use super::text::{FONT, advance, font, glyph, units, width};
use super::{Anchor, Colour, Figure, Item, Text};
use crate::base::{Diagnostic, identity};
use crate::export::picture::packed;
use pdf_writer::types::{CidFontType, FontFlags, SystemInfo, UnicodeCmap};
use pdf_writer::{Content, Filter, Finish, Name, Pdf, Rect, Ref, Str, TextStr};
use skrifa::MetadataProvider;
use skrifa::instance::{LocationRef, Size};
use std::collections::BTreeMap;
use subsetter::GlyphRemapper;

const CATALOG: Ref = Ref::new(1);
const TREE: Ref = Ref::new(2);
const PAGE: Ref = Ref::new(3);
const CONTENT: Ref = Ref::new(4);
const TYPE0: Ref = Ref::new(5);
const CID: Ref = Ref::new(6);
const DESCRIPTOR: Ref = Ref::new(7);
const CMAP: Ref = Ref::new(8);
const DATA: Ref = Ref::new(9);
const INFO: Ref = Ref::new(10);
/// The first picture.
const PICTURES: i32 = 11;
const NAME: Name<'static> = Name(b"AAAAAA+Ubuntu-Light");
const SYSTEM: SystemInfo<'static> = SystemInfo { registry: Str(b"Adobe"), ordering: Str(b"Identity"), supplement: 0 };

/// The file. Errors: a character without a glyph.
pub(super) fn bytes(figure: &Figure) -> Result<Vec<u8>, Diagnostic> {
    let mut glyphs = Glyphs::default();
    let mut pictures: Vec<(&[u8], [usize; 2])> = Vec::new();
    let content = content(figure, &mut glyphs, &mut pictures)?;
    let mut pdf = Pdf::new();
    pdf.catalog(CATALOG).pages(TREE);
    pdf.pages(TREE).kids([PAGE]).count(1);
    let mut page = pdf.page(PAGE);
    page.parent(TREE).media_box(Rect::new(0.0, 0.0, figure.size[0] as f32, figure.size[1] as f32)).contents(CONTENT);
    let mut resources = page.resources();
    resources.fonts().pair(Name(b"F"), TYPE0);
    let mut objects = resources.x_objects();
    for at in 0..pictures.len() {
        objects.pair(Name(format!("P{at}").as_bytes()), Ref::new(PICTURES + at as i32));
    }
    objects.finish();
    resources.finish();
    page.finish();
    pdf.stream(CONTENT, &packed(&content)).filter(Filter::FlateDecode);
    for (at, (rgb, [across, down])) in pictures.iter().enumerate() {
        let raw = packed(rgb);
        let mut image = pdf.image_xobject(Ref::new(PICTURES + at as i32), &raw);
        image.filter(Filter::FlateDecode);
        image.width(*across as i32).height(*down as i32).bits_per_component(8);
        image.color_space().device_rgb();
        image.interpolate(false);
    }
    write_font(&mut pdf, &glyphs)?;
    pdf.document_info(INFO)
        .title(TextStr(&figure.described))
        .producer(TextStr(&format!("Maskloom {}", identity::build())));
    Ok(pdf.finish())
}

/// The glyphs of all texts, by their numbers in the smaller font.
#[derive(Default)]
struct Glyphs {
    map: GlyphRemapper,
    used: BTreeMap<u16, (char, f64)>,
}

impl Glyphs {
    /// A text as the numbers of its glyphs, two bytes each.
    fn codes(&mut self, words: &str) -> Result<Vec<u8>, Diagnostic> {
        let mut out = Vec::new();
        for c in words.chars() {
            let found = glyph(c).and_then(|glyph| Some((glyph, u16::try_from(glyph.to_u32()).ok()?)));
            let Some((glyph, old)) = found else {
                let message =
                    format!("the font of PDF figures has no character `{c}` (U+{:04X}) of `{words}`", u32::from(c));
                return Err(Diagnostic::error("figure-character", message)
                    .hint("write the figure as .svg, which is shown in the reader's own fonts, or rename the design"));
            };
            let new = self.map.remap(old);
            self.used.insert(new, (c, advance(glyph) * 1000.0 / units()));
            out.extend(new.to_be_bytes());
        }
        Ok(out)
    }
}

fn content<'a>(
    figure: &'a Figure,
    glyphs: &mut Glyphs,
    pictures: &mut Vec<(&'a [u8], [usize; 2])>,
) -> Result<Vec<u8>, Diagnostic> {
    let mut out = Content::new();
    let up = |y: f64| (figure.size[1] - y) as f32;
    for item in &figure.items {
        match item {
            Item::Box([x, y, w, h], colour) => {
                fill(&mut out, *colour);
                out.rect(*x as f32, up(y + h), *w as f32, *h as f32).fill_nonzero();
            }
            Item::Line([x, y], [to_x, to_y], thick, dashed, colour) => {
                let [r, g, b] = colour.map(|c| f32::from(c) / 255.0);
                out.set_stroke_rgb(r, g, b).set_line_width(*thick as f32);
                let dashes: &[f32] = if *dashed { &[3.0, 2.0] } else { &[] };
                out.set_dash_pattern(dashes.iter().copied(), 0.0);
                out.move_to(*x as f32, up(*y)).line_to(*to_x as f32, up(*to_y)).stroke();
            }
            Item::Text(text) => words(&mut out, text, up(text.at[1]), &glyphs.codes(&text.words)?),
            Item::Pixels([x, y, w, h], rgb, size) => {
                let name = format!("P{}", pictures.len());
                pictures.push((rgb, *size));
                out.save_state().transform([*w as f32, 0.0, 0.0, *h as f32, *x as f32, up(y + h)]);
                out.x_object(Name(name.as_bytes())).restore_state();
            }
        }
    }
    Ok(out.finish().to_vec())
}

fn fill(out: &mut Content, colour: Colour) {
    let [r, g, b] = colour.map(|c| f32::from(c) / 255.0);
    out.set_fill_rgb(r, g, b);
}

fn words(out: &mut Content, text: &Text, y: f32, codes: &[u8]) {
    let long = width(&text.words, text.size);
    let before = match text.anchor {
        Anchor::Start => 0.0,
        Anchor::Middle => long / 2.0,
        Anchor::End => long,
    } as f32;
    let x = text.at[0] as f32;
    let place = match text.up {
        false => [1.0, 0.0, 0.0, 1.0, x - before, y],
        true => [0.0, 1.0, -1.0, 0.0, x, y - before],
    };
    fill(out, text.colour);
    out.begin_text().set_font(Name(b"F"), text.size as f32).set_text_matrix(place).show(Str(codes)).end_text();
}

/// The part of the font that the texts need. Errors: it cannot be made smaller.
fn write_font(pdf: &mut Pdf, glyphs: &Glyphs) -> Result<(), Diagnostic> {
    let small = subsetter::subset(FONT, 0, &glyphs.map)
        .map_err(|why| Diagnostic::error("figure-font", format!("the font cannot be put into the PDF: {why}")))?;
    let mut type0 = pdf.type0_font(TYPE0);
    type0.base_font(NAME).encoding_predefined(Name(b"Identity-H")).descendant_font(CID).to_unicode(CMAP);
    type0.finish();
    let mut cid = pdf.cid_font(CID);
    cid.subtype(CidFontType::Type2).base_font(NAME).system_info(SYSTEM).font_descriptor(DESCRIPTOR);
    cid.default_width(0.0).cid_to_gid_map_predefined(Name(b"Identity"));
    let mut widths = cid.widths();
    for (glyph, (_, wide)) in &glyphs.used {
        widths.consecutive(*glyph, [*wide as f32]);
    }
    widths.finish();
    cid.finish();
    let metrics = font().metrics(Size::new(1000.0), LocationRef::default());
    let box_ = metrics.bounds.unwrap_or_default();
    let mut descriptor = pdf.font_descriptor(DESCRIPTOR);
    descriptor.name(NAME).flags(FontFlags::SYMBOLIC).italic_angle(0.0).stem_v(60.0);
    descriptor.bbox(Rect::new(box_.x_min, box_.y_min, box_.x_max, box_.y_max));
    descriptor.ascent(metrics.ascent).descent(metrics.descent).cap_height(metrics.cap_height.unwrap_or(693.0));
    descriptor.font_file2(DATA);
    descriptor.finish();
    let mut cmap = UnicodeCmap::new(Name(b"Maskloom"), SYSTEM);
    glyphs.used.iter().for_each(|(glyph, (c, _))| cmap.pair(*glyph, *c));
    pdf.cmap(CMAP, &cmap.finish());
    let data = packed(&small);
    pdf.stream(DATA, &data).filter(Filter::FlateDecode).pair(Name(b"Length1"), small.len() as i32);
    Ok(())
}
