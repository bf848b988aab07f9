//! Tiles on the screen: the wanted ones, replacements for missing ones, and the number of cached ones.
//!
//! Invariant: drawing uses the cache's content and never waits; at most [`UPLOADS`] textures are created per frame and
//! about [`BUDGET`] bytes are cached. Must not know what a mask is or who creates tiles.

use super::Picture;
use super::render::{SIDE, Source, TileKey, impression, is_whole, whole};
use super::view::{AxisMap, ScreenFromWorld};
use super::workers::{Answer, Done, Probe, Workers};
use crate::base::{BlockSize, Lengths};
use egui::{Color32, Painter, Rect, TextureHandle, TextureOptions, pos2};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Textures made in one frame, at most.
const UPLOADS: usize = 8;
/// Bytes of pixels that are kept.
const BUDGET: usize = 64 << 20;
/// Seconds for which tiles of the last revision are preferred to coarser ones of the new.
const PATIENCE: f64 = 0.12;
/// Number of levels by which the first requested tiles are coarser.
const COARSE: u8 = 3;
/// How far a level may be from the ideal one before another is taken; a level is a factor of two.
const KEEP: [f64; 2] = [-0.3, 1.3];

struct Entry {
    texture: TextureHandle,
    exact: bool,
    bytes: usize,
    /// Frame in which it was last drawn.
    used: u64,
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry").field("bytes", &self.bytes).field("used", &self.used).finish_non_exhaustive()
    }
}

/// The requests of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look<'a> {
    /// The visible part.
    pub map: &'a ScreenFromWorld,
    /// Extent of the mask.
    pub lengths: Lengths,
    /// Batch entry and head.
    pub group: [usize; 2],
    /// The kind of picture.
    pub picture: Picture,
    /// BLOCK_SIZE.
    pub block: BlockSize,
    /// Theme.
    pub dark: bool,
    /// Pixels a point.
    pub pixels_per_point: f32,
    /// Seconds.
    pub now: f64,
}

/// The cache and its workers.
#[derive(Debug)]
pub(super) struct Tiles {
    workers: Workers,
    cache: HashMap<TileKey, Entry>,
    bytes: usize,
    frame: u64,
    arrived: VecDeque<Done>,
    failed: HashMap<TileKey, String>,
    level: Option<[u8; 2]>,
    /// Revision and theme before the present, and when the present began.
    before: Option<TileKey>,
    current: Option<TileKey>,
    /// The lengths of everything that may stand in.
    lengths: Option<Lengths>,
    since: f64,
    /// The newest picture of the whole mask, for when revisions come faster than tiles.
    newest: Option<TileKey>,
    answers: Vec<(Probe, Answer)>,
    /// Revision for which tiles of the one before have been asked about, and have been taken over.
    asked: Option<u64>,
    carried: Option<u64>,
    /// Whether everything visible was drawn from its own tile in the last frame.
    settled: bool,
    exact: bool,
    /// Whether something of an earlier revision was drawn for longer than a blink.
    stood_in: bool,
}

impl Tiles {
    /// An empty cache over running workers.
    pub(super) fn new(workers: Workers) -> Tiles {
        Tiles {
            workers,
            cache: HashMap::new(),
            bytes: 0,
            frame: 0,
            arrived: VecDeque::new(),
            failed: HashMap::new(),
            level: None,
            before: None,
            current: None,
            lengths: None,
            since: 0.0,
            newest: None,
            answers: Vec::new(),
            asked: None,
            carried: None,
            settled: false,
            exact: true,
            stood_in: false,
        }
    }

    /// Whether the last frame showed nothing but finished tiles of the present revision.
    pub(super) fn settled(&self) -> bool {
        self.settled
    }

    /// Whether every pixel of the last frame was exact.
    pub(super) fn exact(&self) -> bool {
        self.exact
    }

    /// Whether the last frame showed the mask before the last change where its own tiles are late.
    pub(super) fn stood_in(&self) -> bool {
        self.stood_in
    }

    /// Words of the analysis that failed on a tile, if any did.
    pub(super) fn failure(&self) -> Option<&str> {
        self.failed.values().next().map(String::as_str)
    }

    /// The results about a rectangle.
    pub(super) fn answer(&self, probe: &Probe) -> Option<Answer> {
        self.answers.iter().find(|(known, _)| known == probe).map(|(_, answer)| *answer)
    }

    /// Takes finished tiles in; call once a frame before painting. Returns whether more wait.
    pub(super) fn receive(&mut self, ctx: &egui::Context, source: &Source) -> bool {
        self.frame += 1;
        self.arrived.extend(self.workers.finished());
        let mut uploads = 0;
        while uploads < UPLOADS
            && let Some(done) = self.arrived.pop_front()
        {
            match done {
                Done::Tile(key, Some(tile)) if self.is_welcome(&key, source) => {
                    self.insert(ctx, key, tile);
                    uploads += 1;
                }
                Done::Tile(..) => {}
                Done::Carried(revision, tiles) if revision == source.revision => self.carry(revision, tiles),
                Done::Carried(..) => {}
                Done::Failed(key, words) => {
                    self.failed.insert(key, words);
                }
                Done::Answer(probe, answer) => {
                    self.answers.retain(|(known, _)| *known != probe);
                    self.answers.push((probe, answer));
                    let extra = self.answers.len().saturating_sub(8);
                    self.answers.drain(..extra);
                }
            }
        }
        self.failed.retain(|key, _| key.revision == source.revision);
        self.evict();
        !self.arrived.is_empty()
    }

    /// Tiles of outdated revisions are dropped, unless they show the whole mask newer than anything else does.
    fn is_welcome(&mut self, key: &TileKey, source: &Source) -> bool {
        let better = |n: &TileKey| n.revision < key.revision || n.revision == key.revision && n.level > key.level;
        let shown = |c: &TileKey| TileKey { revision: key.revision, level: key.level, at: key.at, ..*c } == *key;
        let wanted = is_whole(key, source.lengths) && self.current.as_ref().is_some_and(shown);
        if wanted && self.newest.as_ref().is_none_or(better) {
            self.newest = Some(*key);
            return true;
        }
        key.revision == source.revision
    }

    /// Whether there are tiles of a revision, its own or carried over.
    pub(super) fn is_carried(&self, revision: u64) -> bool {
        self.carried == Some(revision)
    }

    /// Takes tiles of the revision before over.
    fn carry(&mut self, revision: u64, tiles: Vec<TileKey>) {
        self.carried = Some(revision);
        for old in tiles {
            let Some(entry) = self.cache.remove(&old) else { continue };
            let key = TileKey { revision, ..old };
            if let Some(double) = self.cache.insert(key, entry) {
                self.bytes -= double.bytes;
            }
            if self.newest == Some(old) {
                self.newest = Some(key);
            }
        }
    }

    /// Tiles of the revision before that may be carried over, as long as that is not known.
    fn carriable(&mut self, source: &Source) -> Vec<TileKey> {
        if self.is_carried(source.revision) {
            return Vec::new();
        }
        let of = |key: &&TileKey| Some(key.revision) == source.before();
        let tiles: Vec<TileKey> = self.cache.keys().filter(of).copied().collect();
        if tiles.is_empty() {
            self.carried = Some(source.revision);
        }
        tiles
    }

    fn insert(&mut self, ctx: &egui::Context, key: TileKey, tile: super::render::Tile) {
        let bytes = tile.image.pixels.len() * 4;
        let options = TextureOptions { minification: egui::TextureFilter::Linear, ..TextureOptions::NEAREST };
        let texture = ctx.load_texture("tile", tile.image, options);
        let entry = Entry { texture, exact: tile.exact, bytes, used: self.frame };
        self.bytes += bytes;
        if let Some(old) = self.cache.insert(key, entry) {
            self.bytes -= old.bytes;
        }
    }

    /// Drops the least recently drawn tiles.
    fn evict(&mut self) {
        if self.bytes <= BUDGET {
            return;
        }
        let mut by_age: Vec<(u64, TileKey)> = self.cache.iter().map(|(k, e)| (e.used, *k)).collect();
        by_age.sort_unstable_by_key(|(used, _)| *used);
        for (used, key) in by_age {
            if self.bytes <= BUDGET || used + 1 >= self.frame {
                break;
            }
            if let Some(old) = self.cache.remove(&key) {
                self.bytes -= old.bytes;
            }
        }
    }

    /// A key that has everything but its place.
    pub(super) fn key(&self, source: &Source, look: &Look<'_>) -> TileKey {
        TileKey::of(source, look.group, look.picture, look.block, look.dark)
    }

    /// Paints what there is and wishes for the rest. `extra` tiles (minimap, thumbnails) come after the visible ones.
    pub(super) fn paint(
        &mut self,
        painter: &Painter,
        source: &Arc<Source>,
        look: &Look<'_>,
        extra: &[TileKey],
        probe: Option<Probe>,
    ) {
        let base = self.key(source, look);
        if self.lengths.replace(look.lengths) != Some(look.lengths) {
            self.forget_stand_ins();
        }
        self.note_change(base, look.now);
        let level = self.choose_level(look);
        let top = whole(look.lengths, SIDE);
        let level = [level[0].min(top[0]), level[1].min(top[1])];
        let visible = visible(TileKey { level, ..base }, look);
        let first = impression(look.lengths);
        let mut wishes = Vec::new();
        // a sketch of everything comes first, unless something of this revision shows already
        if !self.has(&TileKey { level: top, ..base }) {
            wishes.push(TileKey { level: first, ..base });
        }
        wishes.push(TileKey { level: top, ..base });
        wishes.extend(visible.iter().map(|key| ancestor(key, COARSE, top)));
        wishes.extend(&visible);
        wishes.extend(extra);
        (self.settled, self.exact, self.stood_in) = (true, true, false);
        for key in &visible {
            self.paint_tile(painter, key, look, first);
        }
        self.keep(&wishes);
        let mut seen = std::collections::HashSet::new();
        let carriable = self.carriable(source);
        let may_come =
            |key: &TileKey| source.before().is_some_and(|revision| carriable.contains(&TileKey { revision, ..*key }));
        wishes.retain(|key| !self.has(key) && !may_come(key) && seen.insert(*key));
        let probe = probe.filter(|p| self.answer(p).is_none());
        let first_time = self.asked.replace(source.revision) != Some(source.revision);
        self.workers.wish(source, wishes, if first_time { carriable } else { Vec::new() }, probe);
    }

    fn has(&self, key: &TileKey) -> bool {
        let waits = |done: &Done| matches!(done, Done::Tile(k, Some(_)) if k == key);
        self.cache.contains_key(key) || self.failed.contains_key(key) || self.arrived.iter().any(waits)
    }

    fn keep(&mut self, keys: &[TileKey]) {
        for key in keys {
            if let Some(entry) = self.cache.get_mut(key) {
                entry.used = self.frame;
            }
        }
    }

    /// From here on nothing that was drawn of another document, or at other lengths, stands in for what is missing.
    pub(super) fn forget_stand_ins(&mut self) {
        (self.before, self.current, self.newest, self.settled) = (None, None, None, false);
    }

    /// Stores the previous revision, whose tiles are replacements.
    fn note_change(&mut self, base: TileKey, now: f64) {
        if self.current != Some(base) {
            let shown = self.current.filter(|_| self.settled || self.before.is_none());
            self.before = shown.or(self.before);
            self.current = Some(base);
            if self.settled {
                self.since = now;
            }
        }
    }

    /// The level whose pixels are nearest to the screen's, changed only when it has become too coarse or too fine.
    fn choose_level(&mut self, look: &Look<'_>) -> [u8; 2] {
        let ideal = [look.map.q, look.map.kv].map(|axis| ideal_level(axis, look.pixels_per_point));
        let kept = self.level.unwrap_or([u8::MAX; 2]);
        let level = [0, 1].map(|at| {
            let off = f64::from(kept[at]) - ideal[at];
            if (KEEP[0]..=KEEP[1]).contains(&off) { kept[at] } else { ideal[at].ceil().clamp(0.0, 31.0) as u8 }
        });
        self.level = Some(level);
        level
    }

    /// The tile itself, or its replacement.
    fn paint_tile(&mut self, painter: &Painter, key: &TileKey, look: &Look<'_>, coarsest: [u8; 2]) {
        if self.draw(painter, key, key, look) {
            self.exact &= self.cache.get(key).is_some_and(|e| e.exact);
            return;
        }
        self.settled = false;
        let stale = self.before.map(|b| TileKey { level: key.level, at: key.at, ..b });
        let patient = look.now - self.since < PATIENCE;
        if patient && stale.is_some_and(|stale| self.draw(painter, &stale, key, look)) {
            return;
        }
        let same = |n: &TileKey| TileKey { revision: key.revision, level: key.level, at: key.at, ..*n } == *key;
        let newest = self.newest.filter(|n| same(n) && is_whole(n, look.lengths));
        if !self.draw_ancestor(painter, key, look, coarsest) {
            let newer = newest.is_some_and(|newest| self.draw(painter, &newest, key, look));
            let old = |tiles: &mut Tiles, stale: TileKey| {
                tiles.draw(painter, &stale, key, look) || tiles.draw_ancestor(painter, &stale, look, coarsest)
            };
            self.stood_in |= newer || stale.is_some_and(|stale| old(self, stale));
        }
        self.draw_children(painter, key, look);
    }

    fn draw_ancestor(&mut self, painter: &Painter, key: &TileKey, look: &Look<'_>, coarsest: [u8; 2]) -> bool {
        let up = coarsest[0].saturating_sub(key.level[0]).max(coarsest[1].saturating_sub(key.level[1]));
        (1..=up).any(|by| self.draw(painter, &ancestor(key, by, coarsest), key, look))
    }

    /// Finer tiles that are still there from before zooming out.
    fn draw_children(&mut self, painter: &Painter, key: &TileKey, look: &Look<'_>) {
        let Some(level) = key.level[0].checked_sub(1).zip(key.level[1].checked_sub(1)) else { return };
        for child in [[0, 0], [0, 1], [1, 0], [1, 1]] {
            let at = [key.at[0] * 2 + child[0], key.at[1] * 2 + child[1]];
            let child = TileKey { level: level.into(), at, ..*key };
            self.draw(painter, &child, &child, look);
        }
    }

    /// Draws the part of a cached tile over `over`; false if it is not cached.
    fn draw(&mut self, painter: &Painter, key: &TileKey, over: &TileKey, look: &Look<'_>) -> bool {
        let frame = self.frame;
        let Some(entry) = self.cache.get_mut(key) else { return false };
        entry.used = frame;
        let size = entry.texture.size();
        paint_part(painter, &entry.texture, size, key, over, look.map, look.lengths);
        true
    }

    /// A tile of the cache for a minimap or thumbnail: its texture and the part of it that the mask fills.
    pub(super) fn texture(&mut self, key: &TileKey, lengths: Lengths) -> Option<(egui::TextureId, Rect)> {
        let frame = self.frame;
        let entry = self.cache.get_mut(key)?;
        entry.used = frame;
        let [q, kv] = key.tokens(lengths);
        let (steps, size) = (key.steps(), entry.texture.size());
        let part = |len: usize, step: usize, pixels: usize| (len as f64 / (step * pixels) as f64) as f32;
        let uv = pos2(part(kv.len(), steps[1], size[0]), part(q.len(), steps[0], size[1]));
        Some((entry.texture.id(), Rect::from_min_max(pos2(0.0, 0.0), uv)))
    }
}

/// The coarser tile over this one, no coarser than `top` on either axis.
fn ancestor(key: &TileKey, by: u8, top: [u8; 2]) -> TileKey {
    let by = [0, 1].map(|a| by.min(top[a].saturating_sub(key.level[a])));
    let level = [key.level[0] + by[0], key.level[1] + by[1]];
    TileKey { level, at: [key.at[0] >> by[0], key.at[1] >> by[1]], ..*key }
}

/// Binary logarithm of the tokens a screen pixel covers; negative when cells are larger than pixels.
fn ideal_level(axis: AxisMap, pixels_per_point: f32) -> f64 {
    -(axis.scale * f64::from(pixels_per_point)).log2()
}

/// Tiles on the screen, those in the middle first.
fn visible(key: TileKey, look: &Look<'_>) -> Vec<TileKey> {
    let [q0, q1, kv0, kv1] = look.map.visible(look.lengths);
    let side = key.steps().map(|s| (s * SIDE) as f64);
    let range = |lo: f64, hi: f64, side: f64| (lo / side) as u32..(hi / side).ceil() as u32;
    let (rows, cols) = (range(q0, q1, side[0]), range(kv0, kv1, side[1]));
    let mut keys: Vec<TileKey> =
        rows.clone().flat_map(|row| cols.clone().map(move |col| TileKey { at: [row, col], ..key })).collect();
    let middle = |r: &std::ops::Range<u32>| i64::from(r.start) + i64::from(r.end);
    let centre = [middle(&rows), middle(&cols)];
    keys.sort_by_key(|k| [0, 1].map(|a| (2 * i64::from(k.at[a]) + 1 - centre[a]).abs()).iter().max().copied());
    keys
}

/// Draws the tokens of `over` from the texture of `key`, which covers them.
fn paint_part(
    painter: &Painter,
    texture: &TextureHandle,
    size: [usize; 2],
    key: &TileKey,
    over: &TileKey,
    map: &ScreenFromWorld,
    lengths: Lengths,
) {
    let (mine, wanted, steps) = (key.tokens(lengths), over.tokens(lengths), key.steps());
    if wanted.iter().any(|r| r.is_empty()) {
        return;
    }
    // only the visible part, in f64, so that a tile far larger than the screen stays sharp
    let seen = map.visible(lengths);
    let mut spans = [[0.0; 2]; 2];
    for at in 0..2 {
        spans[at] =
            [(wanted[at].start as f64).max(seen[2 * at].floor()), (wanted[at].end as f64).min(seen[2 * at + 1].ceil())];
        if spans[at][0] >= spans[at][1] {
            return;
        }
    }
    let uv = |at: usize, token: f64| {
        let pixels = [size[1], size[0]][at];
        ((token - mine[at].start as f64) / (steps[at] * pixels) as f64) as f32
    };
    let [q, kv] = spans;
    let rect = Rect::from_min_max(map.pos(q[0], kv[0]), map.pos(q[1], kv[1]));
    let uv = Rect::from_min_max(pos2(uv(1, kv[0]), uv(0, q[0])), pos2(uv(1, kv[1]), uv(0, q[1])));
    // a bare mesh: image shapes are feathered, which shows as seams between tiles
    let mut mesh = egui::Mesh::with_texture(texture.id());
    mesh.add_rect_with_uv(rect, uv, Color32::WHITE);
    painter.add(mesh);
}
