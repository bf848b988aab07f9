//! The recipe of a backward pass.
//!
//! Invariant: the launches are those of the worker's `flex`, on tensors with any strides. Must not know devices.

use super::live::{Live, Word};
use super::recipe::{At, Map, Part, Recipe, Step};
use super::{Card, Layouts};
use crate::backends::cuda::device::tensor_map::Extents;
use crate::backends::cuda::device::tensors::Strides;
use crate::backends::cuda::launch::backward::BackwardParams;
use crate::backends::cuda::lists::schedule::Schedule;
use crate::backends::cuda::lists::words::words;
use crate::backends::cuda::toolchain::backward::{BIN_BYTES, BackwardCode, BackwardDraft};
use crate::backends::cuda::toolchain::cache::Cache;
use crate::backends::cuda::toolchain::compile::Compiler;
use crate::backends::cuda::variant::backward::{BackwardKernel, BackwardWays};
use crate::backends::cuda::variant::spec::MaskKind;
use crate::base::Diagnostic;
use crate::problem::Problem;

/// Tensors of a call: q, k, v, o, d_o, lse, d_lse, dq, dk, dv, then those that the score mod reads, then their gradients.
pub(super) const READ: usize = 10;
const NAMES: [&str; READ] = ["q", "k", "v", "o", "d_o", "lse", "d_lse", "dq", "dk", "dv"];

/// One of these.
fn call(name: &str) -> At {
    At::call(NAMES.iter().position(|own| *own == name).expect("a tensor of the call"))
}

/// A captured tensor that gets a gradient: its number in the score mod, and the float32 elements of the gradient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Learned {
    /// Which.
    pub number: usize,
    /// How many; at least one.
    pub elements: usize,
}

/// Compiles the problem's kernels, or takes them from the cache, and lists what they launch.
pub(super) fn recipe(
    problem: &Problem,
    layouts: &Layouts,
    ways: BackwardWays,
    card: &Card,
    compiler: &dyn Compiler,
    cache: Option<&Cache>,
) -> Result<(Recipe, Vec<Learned>, String), Diagnostic> {
    let arch = card.limits.arch();
    let (draft, code) = BackwardDraft::made(problem, &card.limits, ways, &arch, compiler, cache)?;
    let schedule = draft.schedule(card.limits.multiprocessors);
    let live = Live::of(problem);
    let learned = learned(problem, &draft);
    let sums = READ + live.numbers.len();
    let mut recipe = Recipe { calls: sums + learned.len(), ..Recipe::default() };
    let bins = bins(&mut recipe, &draft, &learned, sums);
    let words = gradient_words(&draft, &learned, &bins, sums);
    let mods = live.mods(&mut recipe, (&draft.mods, &draft.emitted), READ, words)?;
    let own = Own { problem, layouts, card, draft: &draft, schedule: &schedule };
    own.launches(&mut recipe, &code, mods, (&learned, &bins, sums));
    Ok((recipe, learned, format!("{} {arch}", draft.spec.name())))
}

fn learned(problem: &Problem, draft: &BackwardDraft) -> Vec<Learned> {
    let (Some(gradient), Some(score)) = (&draft.mods.gradient, problem.score.as_deref()) else { return Vec::new() };
    let one = |id: &crate::ir::graph::CaptureId| {
        // an empty tensor is read as if each of its axes had an element
        let elements = score.graph.capture(*id).tensor.shape().iter().map(|d| (*d).max(1)).product();
        Learned { number: id.0 as usize, elements }
    };
    gradient.captures.iter().map(one).collect()
}

/// Clears the gradients' sums; where no order may change them, memory for the bins of each that needs some, cleared, too.
fn bins(recipe: &mut Recipe, draft: &BackwardDraft, learned: &[Learned], sums: usize) -> Vec<Option<At>> {
    let has = draft.mods.gradient.as_ref().filter(|_| draft.spec.has_bins()).map(|g| g.with_bins()).unwrap_or_default();
    for (at, own) in learned.iter().enumerate() {
        recipe.steps.push(Step::Zero(At::call(sums + at), own.elements * 4));
    }
    let one = |(at, own): (usize, &Learned)| {
        has.get(at).copied().unwrap_or(false).then(|| {
            let place = recipe.scratch(own.elements * BIN_BYTES);
            recipe.steps.push(Step::Zero(place, own.elements * BIN_BYTES));
            place
        })
    };
    learned.iter().enumerate().map(one).collect()
}

/// The words by which kernels find each gradient: its address, or bins.cuh's `BinSums`.
fn gradient_words(draft: &BackwardDraft, learned: &[Learned], bins: &[Option<At>], sums: usize) -> Vec<Word> {
    let mut words = Vec::new();
    for (at, (own, bins)) in learned.iter().zip(bins).enumerate() {
        words.push(Word::At(At::call(sums + at)));
        if draft.spec.has_bins() {
            words.push(bins.map_or(Word::Number(0), Word::At));
            words.push(Word::Number(own.elements as u64));
        }
    }
    words
}

struct Own<'a> {
    problem: &'a Problem,
    layouts: &'a Layouts,
    card: &'a Card,
    draft: &'a BackwardDraft,
    schedule: &'a Schedule<'a>,
}

impl Own<'_> {
    fn launches(
        &self,
        recipe: &mut Recipe,
        code: &BackwardCode,
        mods: usize,
        (learned, bins, sums): (&[Learned], &[Option<At>], usize),
    ) {
        let (spec, q_tiles) = (&self.draft.spec, self.draft.q_tiles);
        let (params, maps) = self.params(recipe);
        let main = recipe.code(&code.main.key, &code.main.cubin, spec.entry(), spec.shared_bytes());
        let [before, after] =
            ["backward_rows", "backward_queries"].map(|entry| recipe.code(&code.rows.key, &code.rows.cubin, entry, 0));
        let around = (q_tiles as u32, self.problem.heads as u32, self.problem.batch as u32);
        let units = self.schedule.items().len() as u32;
        let blocks = if spec.is_hopper() { units.min(self.card.limits.multiprocessors as u32) } else { units };
        recipe.launch(before, vec![params], around, 256);
        recipe.launch(main, [maps, vec![params, mods]].concat(), (blocks, 1, 1), spec.threads());
        recipe.launch(after, vec![params], around, 256);
        if bins.iter().all(Option::is_none) {
            return;
        }
        let captured = recipe.code(&code.rows.key, &code.rows.cubin, "backward_captured", 0);
        for (at, (own, bins)) in learned.iter().zip(bins).enumerate() {
            let Some(bins) = bins else { continue };
            let raw = [[0; 16].as_slice(), &(own.elements as u64).to_le_bytes()].concat();
            let part = recipe.part(Part::Bytes(raw, vec![(0, At::call(sums + at)), (8, *bins)]));
            recipe.launch(captured, vec![part], (own.elements.div_ceil(256) as u32, 1, 1), 256);
        }
    }

    /// The parameters, and the maps of Hopper's kernels.
    fn params(&self, recipe: &mut Recipe) -> (usize, Vec<usize>) {
        let (p, spec) = (self.problem, &self.draft.spec);
        let mut params = BackwardParams::new(p, self.draft, self.schedule);
        let whole = |strides: Strides| [strides.b, strides.h, strides.s].map(|n| n as i64);
        let l = self.layouts;
        [params.q_b, params.q_h, params.q_s] = whole(l.q);
        [params.k_b, params.k_h, params.k_s] = whole(l.k);
        [params.v_b, params.v_h, params.v_s] = whole(l.v);
        [params.o_b, params.o_h, params.o_s] = whole(l.o);
        [params.d_o_b, params.d_o_h, params.d_o_s] = whole(l.d_o);
        [params.dq_b, params.dq_h, params.dq_s] = whole(Strides::new(p.layout, p.heads, p.q_len, p.head_dim));
        [params.dk_b, params.dk_h, params.dk_s] = whole(Strides::new(p.layout, p.kv_heads, p.kv_len, p.head_dim));
        [params.dv_b, params.dv_h, params.dv_s] = whole(Strides::new(p.layout, p.kv_heads, p.kv_len, p.head_dim_v));
        let mut places: Vec<(&str, At)> = NAMES.into_iter().map(|name| (name, call(name))).collect();
        let tiles = p.batch * p.heads * self.draft.q_tiles;
        let rows = recipe.scratch(tiles * spec.tile_q * 8);
        let dq_sum = recipe.scratch(tiles * spec.tile_q * spec.qk_width * 4);
        let counter = recipe.scratch(16);
        places.extend([("rows", rows), ("dq_sum", dq_sum), ("turns", recipe.scratch(tiles * 8))]);
        if !self.schedule.by_block {
            places.push(("counter", counter));
        }
        let bitmaps = self.lists(recipe, &mut places);
        self.shared(recipe, &mut places);
        let part = recipe.fields(params.argument(), &BackwardParams::layout(), &places);
        let maps = if spec.is_hopper() { self.maps(recipe, (rows, bitmaps, dq_sum)) } else { Vec::new() };
        (part, maps)
    }

    /// Keeps the lists; where the bitmaps are.
    fn lists(&self, recipe: &mut Recipe, places: &mut Vec<(&'static str, At)>) -> At {
        let (schedule, lists) = (self.schedule, &self.schedule.lists);
        let blank = vec![0u32; self.draft.spec.bit_words()];
        let or_blank = |words: &[u32]| if words.is_empty() { blank.clone() } else { words.to_vec() };
        let bits = match self.draft.spec.mask {
            MaskKind::Bitmap => schedule.bits.clone().into_owned(),
            _ => Default::default(),
        };
        for (name, words) in [
            ("items", words(schedule.items())),
            ("row_start", lists.row_start.clone()),
            ("runs", lists.runs.as_flattened().to_vec()),
            ("order_start", lists.order_start.clone()),
            ("order", lists.order.clone()),
            ("bitmap_start", or_blank(&bits.start)),
            ("bitmap_ids", or_blank(&bits.ids)),
            ("ranges", or_blank(&schedule.ranges)),
        ] {
            places.push((name, recipe.words(&words)));
        }
        let bitmaps = recipe.words(&or_blank(&bits.words));
        places.push(("bitmaps", bitmaps));
        bitmaps
    }

    /// Sums and counts of items that several blocks share, cleared before each pass.
    fn shared(&self, recipe: &mut Recipe, places: &mut Vec<(&'static str, At)>) {
        let Some(parts) = &self.schedule.parts else { return };
        let floats = parts.slots * self.draft.spec.part_floats();
        let bytes = (floats * 4 + parts.slots * 8).max(8);
        let sums = recipe.scratch(bytes);
        recipe.steps.push(Step::Zero(sums, bytes));
        places.extend([("part_sums", sums), ("part_counts", sums.plus(floats * 4))]);
        places.push(("parts", recipe.words(&words(&parts.parts))));
    }

    /// Maps of q, k, v, d_o, dk, dv, rows, bits and the sums of dq, in the kernel's order.
    fn maps(&self, recipe: &mut Recipe, (rows, bitmaps, dq_sum): (At, At, At)) -> Vec<usize> {
        let (p, spec, l) = (self.problem, &self.draft.spec, self.layouts);
        let (m, n) = (spec.tile_q, spec.tile_kv);
        let q_tiles = self.draft.q_tiles;
        let map = |heads, tokens, dim, strides, rows| {
            Map::Halves(p.dtype, Extents { batch: p.batch, heads, tokens, dim }, strides, rows)
        };
        let of_keys = |dim| Strides::new(p.layout, p.kv_heads, p.kv_len, dim);
        let lines = p.batch * p.heads * q_tiles * m * spec.qk_width / 256;
        let part_lines = match spec.kernel {
            BackwardKernel::Hopper => 64 * spec.part_width() / 256,
            _ => 1,
        };
        let bit_lines = (self.draft.bits.words.len() / spec.bit_words()).max(1) * spec.bit_words() / (2 * m);
        let all = [
            (map(p.heads, p.q_len, p.head_dim, l.q, m), call("q")),
            (map(p.kv_heads, p.kv_len, p.head_dim, l.k, n), call("k")),
            (map(p.kv_heads, p.kv_len, p.head_dim_v, l.v, n), call("v")),
            (map(p.heads, p.q_len, p.head_dim_v, l.d_o, m), call("d_o")),
            (map(p.kv_heads, p.kv_len, p.head_dim, of_keys(p.head_dim), 64), call("dk")),
            (map(p.kv_heads, p.kv_len, p.head_dim_v, of_keys(p.head_dim_v), 64), call("dv")),
            (Map::Words(true, [2 * m, q_tiles, p.heads, p.batch], [2 * m, 1]), rows),
            (Map::Words(false, [2 * m, bit_lines, 1, 1], [2 * m, n / 64]), bitmaps),
            (Map::Words(true, [256, lines, 1, 1], [256, part_lines]), dq_sum),
        ];
        all.into_iter().map(|(map, at)| recipe.part(Part::Map(map, at))).collect()
    }
}
