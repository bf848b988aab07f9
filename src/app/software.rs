//! A painter on the processor alone, for pictures of the window in tests.
//!
//! Invariant: a pixel on an edge shared by two triangles belongs to one of them; colours are blended like in egui's own
//! painters, in gamma space with premultiplied alpha. Only compiled for tests; must not know the window.

use egui::epaint::{ImageDelta, Primitive, Vertex};
use egui::{Color32, ImageData, Mesh, Pos2, Rect, TextureFilter, TextureId, TexturesDelta};
use egui_kittest::TestRenderer;
use image::{Rgba, RgbaImage};
use std::collections::HashMap;

#[derive(Debug, Default)]
pub(super) struct Software {
    textures: HashMap<TextureId, Texture>,
}

#[derive(Debug)]
struct Texture {
    size: [usize; 2],
    pixels: Vec<Color32>,
    nearest: bool,
}

impl TestRenderer for Software {
    fn handle_delta(&mut self, delta: &mut TexturesDelta) {
        for (id, deltas) in delta.set.drain() {
            deltas.into_iter().for_each(|delta| self.set(id, delta));
        }
        // freed textures may be used in the next painted frame
        delta.free.clear();
    }

    fn render(&mut self, ctx: &egui::Context, output: &egui::FullOutput) -> Result<RgbaImage, String> {
        let scale = output.pixels_per_point;
        let size = ctx.content_rect().size() * scale;
        let mut canvas = Canvas::new(size.x.round() as usize, size.y.round() as usize);
        for clipped in ctx.tessellate(output.shapes.clone(), scale) {
            if let Primitive::Mesh(mesh) = &clipped.primitive {
                let texture = self.textures.get(&mesh.texture_id).ok_or("a texture that was never set")?;
                canvas.mesh(mesh, texture, clipped.clip_rect, scale);
            }
        }
        Ok(canvas.image())
    }
}

impl Software {
    fn set(&mut self, id: TextureId, delta: ImageDelta) {
        let ImageData::Color(image) = delta.image;
        let nearest = delta.options.magnification == TextureFilter::Nearest;
        match (delta.pos, self.textures.get_mut(&id)) {
            (Some([x, y]), Some(texture)) => {
                for row in 0..image.height() {
                    let to = (y + row) * texture.size[0] + x;
                    let from = row * image.width();
                    let pixels = &image.pixels[from..from + image.width()];
                    texture.pixels[to..to + image.width()].copy_from_slice(pixels);
                }
            }
            _ => {
                let texture = Texture { size: image.size, pixels: image.pixels.clone(), nearest };
                self.textures.insert(id, texture);
            }
        }
    }
}

impl Texture {
    fn pixel(&self, x: i64, y: i64) -> [f32; 4] {
        let clamp = |v: i64, n: usize| v.clamp(0, n as i64 - 1) as usize;
        let color = self.pixels[clamp(y, self.size[1]) * self.size[0] + clamp(x, self.size[0])];
        color.to_array().map(f32::from)
    }

    fn sample(&self, uv: Pos2) -> [f32; 4] {
        let (x, y) = (uv.x * self.size[0] as f32, uv.y * self.size[1] as f32);
        if self.nearest {
            return self.pixel(x.floor() as i64, y.floor() as i64);
        }
        let (x, y) = (x - 0.5, y - 0.5);
        let (x0, y0) = (x.floor(), y.floor());
        let (fx, fy) = (x - x0, y - y0);
        let at = |dx: i64, dy: i64| self.pixel(x0 as i64 + dx, y0 as i64 + dy);
        let (a, b, c, d) = (at(0, 0), at(1, 0), at(0, 1), at(1, 1));
        let mix = |n: usize| (a[n] * (1.0 - fx) + b[n] * fx) * (1.0 - fy) + (c[n] * (1.0 - fx) + d[n] * fx) * fy;
        [mix(0), mix(1), mix(2), mix(3)]
    }
}

struct Canvas {
    size: [usize; 2],
    pixels: Vec<[f32; 4]>,
}

impl Canvas {
    fn new(width: usize, height: usize) -> Canvas {
        Canvas { size: [width, height], pixels: vec![[0.0, 0.0, 0.0, 255.0]; width * height] }
    }

    fn mesh(&mut self, mesh: &Mesh, texture: &Texture, clip: Rect, scale: f32) {
        let edge = |v: f32, most: usize| (v * scale).round().clamp(0.0, most as f32) as usize;
        let [x0, x1] = [clip.min.x, clip.max.x].map(|v| edge(v, self.size[0]));
        let [y0, y1] = [clip.min.y, clip.max.y].map(|v| edge(v, self.size[1]));
        for corners in mesh.indices.chunks_exact(3) {
            let corners = [0, 1, 2].map(|n| mesh.vertices[corners[n] as usize]);
            self.triangle(corners, texture, [x0, x1, y0, y1], scale);
        }
    }

    fn triangle(&mut self, corners: [Vertex; 3], texture: &Texture, [x0, x1, y0, y1]: [usize; 4], scale: f32) {
        let mut corners = corners;
        let area = cross(corners[0].pos, corners[1].pos, corners[2].pos);
        if area == 0.0 || !area.is_finite() {
            return;
        }
        if area < 0.0 {
            corners.swap(1, 2);
        }
        let p = corners.map(|v| (v.pos.to_vec2() * scale).to_pos2());
        let area = cross(p[0], p[1], p[2]);
        let least = |f: fn(&Pos2) -> f32| p.iter().map(f).fold(f32::INFINITY, f32::min);
        let most = |f: fn(&Pos2) -> f32| p.iter().map(f).fold(f32::NEG_INFINITY, f32::max);
        let rows = (least(|p| p.y).floor().max(y0 as f32) as usize)..(most(|p| p.y).ceil().min(y1 as f32) as usize);
        let columns = (least(|p| p.x).floor().max(x0 as f32) as usize)..(most(|p| p.x).ceil().min(x1 as f32) as usize);
        let sides = [(p[1], p[2]), (p[2], p[0]), (p[0], p[1])];
        let owns = sides.map(|(a, b)| b.y < a.y || (b.y == a.y && b.x > a.x));
        for y in rows {
            for x in columns.clone() {
                let at = Pos2::new(x as f32 + 0.5, y as f32 + 0.5);
                let w = sides.map(|(a, b)| cross(a, b, at));
                if (0..3).all(|n| w[n] > 0.0 || (w[n] == 0.0 && owns[n])) {
                    self.blend(x, y, shade(&corners, w.map(|w| (w / area) as f32), texture));
                }
            }
        }
    }

    fn blend(&mut self, x: usize, y: usize, source: [f32; 4]) {
        let below = &mut self.pixels[y * self.size[0] + x];
        let rest = 1.0 - source[3] / 255.0;
        for n in 0..4 {
            below[n] = (source[n] + below[n] * rest).min(255.0);
        }
    }

    fn image(self) -> RgbaImage {
        let [width, height] = self.size.map(|n| n as u32);
        RgbaImage::from_fn(width, height, |x, y| {
            let [r, g, b, _] = self.pixels[(y * width + x) as usize].map(|v| (v + 0.5) as u8);
            Rgba([r, g, b, 255])
        })
    }
}

/// Twice the area of a triangle; positive if it turns right on the screen. In double precision, so that a pixel on a
/// shared edge is on it from both sides.
fn cross(a: Pos2, b: Pos2, c: Pos2) -> f64 {
    let [a, b, c] = [a, b, c].map(|p| [f64::from(p.x), f64::from(p.y)]);
    (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
}

/// The colour at a place given by its share of each corner.
fn shade(corners: &[Vertex; 3], w: [f32; 3], texture: &Texture) -> [f32; 4] {
    let uv = (0..3).fold(egui::Vec2::ZERO, |sum, n| sum + corners[n].uv.to_vec2() * w[n]);
    let texel = texture.sample(uv.to_pos2());
    let tint = corners.map(|v| v.color.to_array().map(f32::from));
    let color = |n: usize| (0..3).map(|corner| tint[corner][n] * w[corner]).sum::<f32>() / 255.0;
    [0, 1, 2, 3].map(|n| texel[n] * color(n))
}
