//! The recipe of a forward pass.
//!
//! Invariant: the launches are those of the worker's `flex`, on tensors with any strides. Must not know devices.

use super::live::Live;
use super::recipe::{At, Map, Part, Recipe};
use super::{Card, Layouts};
use crate::backends::cuda::choose::{self, Choice};
use crate::backends::cuda::device::tensor_map::Extents;
use crate::backends::cuda::device::tensors::Strides;
use crate::backends::cuda::launch::decode::{JOIN_ENTRY, JOIN_THREADS};
use crate::backends::cuda::launch::hopper::{STORED_ROWS, Work, bits_geometry};
use crate::backends::cuda::launch::params::{Decode, Hopper, Params};
use crate::backends::cuda::lists::bitmap::Bitmaps;
use crate::backends::cuda::lists::decode_plan::{self, Cut};
use crate::backends::cuda::lists::kept::Kept;
use crate::backends::cuda::lists::of_problem;
use crate::backends::cuda::lists::pieces;
use crate::backends::cuda::lists::plan::Plan;
use crate::backends::cuda::lists::words::words;
use crate::backends::cuda::toolchain::cache::Cache;
use crate::backends::cuda::toolchain::compile::{Compiler, Draft, Program};
use crate::backends::cuda::variant::spec::Kernel;
use crate::base::{BackendName, Control, Diagnostic};
use crate::problem::Problem;

/// Tensors of a call: q, k, v, o, lse, largest scores, then those that the score mod reads.
pub(super) const READ: usize = 6;
const Q: usize = 0;
const K: usize = 1;
const V: usize = 2;
const O: usize = 3;
const LSE: usize = 4;
const MAX: usize = 5;

/// Compiles the problem's kernel, or takes it from the cache, and lists what it launches.
pub(super) fn recipe(
    problem: &Problem,
    layouts: &Layouts,
    card: &Card,
    compiler: &dyn Compiler,
    cache: Option<&Cache>,
) -> Result<(Recipe, String), Diagnostic> {
    let live = Live::of(problem);
    let choice = choose::choose(problem, BackendName::Flex)?;
    let mut spec = choose::spec(problem, &choice, &card.limits);
    // the range of the scores would be that of the tensors as they are now
    spec.bounded &= live.numbers.is_empty();
    choose::check_exact(problem, &spec)?;
    let mods = Choice { mask: spec.mask, ..choice }.mods(problem);
    let program = Draft::of(spec, mods, &card.limits.arch()).finish(compiler, cache)?;
    let mut recipe = Recipe { calls: READ + live.numbers.len(), ..Recipe::default() };
    let mods = live.mods(&mut recipe, (&program.mods, &program.emitted), READ, Vec::new())?;
    let own = Own { problem, layouts, card, program: &program, mods };
    match spec.kernel {
        Kernel::FlexSm90 => own.hopper(&mut recipe)?,
        Kernel::FlexSm80 => own.ampere(&mut recipe)?,
        Kernel::DecodeSm80 => own.decode(&mut recipe)?,
        Kernel::Eager => return Err(Diagnostic::error("no-kernel", "there is no flex kernel for this problem")),
    }
    Ok((recipe, format!("{} {}", program.artefact.name, program.artefact.arch)))
}

/// What the kernels' recipes share.
struct Own<'a> {
    problem: &'a Problem,
    layouts: &'a Layouts,
    card: &'a Card,
    program: &'a Program,
    /// The mods' parameter.
    mods: usize,
}

impl Own<'_> {
    fn code(&self, recipe: &mut Recipe, entry: &'static str, shared: usize) -> usize {
        recipe.code(&self.program.artefact.key, &self.program.cubin, entry, shared)
    }

    /// The parameters with lists, tensors and strides.
    fn params(&self, recipe: &mut Recipe, params: Params, plan: &Plan, kept: Option<[&[u32]; 3]>) -> usize {
        let mut params = Params {
            q_tiles: plan.q_tiles as i32,
            mask_batch: plan.batch as i32,
            mask_heads: plan.heads as i32,
            ..params
        };
        let whole = |strides: Strides| [strides.b, strides.h, strides.s].map(|n| n as i64);
        [params.q_b, params.q_h, params.q_s] = whole(self.layouts.q);
        [params.k_b, params.k_h, params.k_s] = whole(self.layouts.k);
        [params.v_b, params.v_h, params.v_s] = whole(self.layouts.v);
        let mut places = vec![("q", Q), ("k", K), ("v", V), ("o", O), ("lse", LSE)];
        if self.problem.max_scores {
            places.push(("max_scores", MAX));
        }
        let mut places: Vec<(&str, At)> = places.into_iter().map(|(name, at)| (name, At::call(at))).collect();
        places.push(("tile_order", recipe.words(&plan.tile_order)));
        places.push(("row_start", recipe.words(&plan.row_start)));
        places.push(("runs", recipe.words(plan.runs.as_flattened())));
        for (name, words) in ["bitmap_start", "bitmap_ids", "bitmaps"].into_iter().zip(kept.into_iter().flatten()) {
            places.push((name, recipe.words(words)));
        }
        recipe.fields(params.bytes(), &Params::layout(), &places)
    }

    fn hopper(&self, recipe: &mut Recipe) -> Result<(), Diagnostic> {
        let (p, spec) = (self.problem, &self.program.spec);
        let sections = of_problem::sections(&self.card.limits, p, p.batch);
        let work = Work::new(p, spec, &sections, spec.at_once(&self.card.limits))?;
        let params = self.params(recipe, work.params(p), &work.plan, work.kept.as_ref().map(Kept::arrays));
        let counter = recipe.counter(2);
        let mut places = vec![("counter", counter), ("kv_num_tiles", recipe.words(&work.plan.kv_num_tiles()))];
        let pieces = &work.units.pieces;
        if !pieces.is_empty() {
            places.push(("pieces", recipe.words(&words(pieces))));
            places.push(("arrived", recipe.counter(pieces.len() * spec.consumers())));
            places.push(("parts", recipe.scratch(pieces.len() * pieces::part_bytes(spec))));
        }
        let extra = work.extra();
        let blocks = extra.units.min(spec.at_once(&self.card.limits) as u32).max(1);
        let extra = recipe.fields(extra.bytes(), &Hopper::layout(), &places);
        let l = self.layouts;
        let map = |heads, tokens, dim, strides, rows| {
            Map::Halves(p.dtype, Extents { batch: p.batch, heads, tokens, dim }, strides, rows)
        };
        let own = Strides::new(p.layout, p.heads, p.q_len, p.head_dim_v);
        let maps = [
            (map(p.heads, p.q_len, p.head_dim, l.q, spec.tile_q), Q),
            (map(p.kv_heads, p.kv_len, p.head_dim, l.k, spec.tile_kv), K),
            (map(p.kv_heads, p.kv_len, p.head_dim_v, l.v, spec.tile_kv), V),
            (map(p.heads, p.q_len, p.head_dim_v, own, STORED_ROWS), O),
        ];
        let mut parts: Vec<usize> =
            maps.into_iter().map(|(map, at)| recipe.part(Part::Map(map, At::call(at)))).collect();
        // without bitmaps nothing is read by their map
        parts.push(match work.kept.as_ref().and_then(Kept::bits) {
            Some(bits) => {
                let (extents, strides, rows) = bits_geometry(bits);
                let at = self.bitmaps(recipe, params);
                recipe.part(Part::Map(Map::Halves(p.dtype, extents, strides, rows), at))
            }
            None => parts[K],
        });
        parts.extend([params, extra, self.mods]);
        let kernel = self.code(recipe, spec.kernel.entry(), spec.shared_bytes());
        recipe.launch(kernel, parts, (blocks, 1, 1), spec.threads());
        Ok(())
    }

    /// Where the parameters' bitmaps are.
    fn bitmaps(&self, recipe: &Recipe, params: usize) -> At {
        let Part::Bytes(_, places) = &recipe.parts[params] else { unreachable!("a struct is bytes") };
        // the last list that was placed
        places.last().expect("lists were placed").1
    }

    fn ampere(&self, recipe: &mut Recipe) -> Result<(), Diagnostic> {
        let (p, spec) = (self.problem, &self.program.spec);
        let mut plan = of_problem::plan(p, spec, &Control::new())?;
        let units = of_problem::units(&self.card.limits, p, p.batch, spec, &mut plan, None);
        let kept = of_problem::kept(p, spec, &plan);
        let params = Params { section: units.section as i32, ..Params::of_problem(p) };
        let params = self.params(recipe, params, &plan, kept.as_ref().map(Kept::arrays));
        let blocks = self.blocks(p.batch * p.heads * plan.q_tiles)?;
        let kernel = self.code(recipe, spec.kernel.entry(), spec.shared_bytes());
        recipe.launch(kernel, vec![params, self.mods], (blocks, 1, 1), spec.threads());
        Ok(())
    }

    fn decode(&self, recipe: &mut Recipe) -> Result<(), Diagnostic> {
        let (p, spec) = (self.problem, &self.program.spec);
        let cut = Cut::new(p, spec, spec.at_once(&self.card.limits))?;
        let params = self.params(recipe, Params::of_problem(p), &cut.plan, cut.bits.as_ref().map(Bitmaps::arrays));
        let rows = p.batch * p.heads * p.q_len;
        let parts = rows * cut.parts();
        let mut places = vec![
            ("parts", recipe.scratch(parts * decode_plan::part_width(p) * 4)),
            ("part_lse", recipe.scratch(parts * 4)),
        ];
        if spec.max_scores {
            places.push(("part_max", recipe.scratch(parts * 4)));
        }
        let extra = recipe.fields(Decode::of(p, &cut).bytes(), &Decode::layout(), &places);
        let main = self.code(recipe, spec.kernel.entry(), spec.shared_bytes());
        let join = self.code(recipe, JOIN_ENTRY, 0);
        let (blocks, rows) = (self.blocks(cut.blocks(p))?, self.blocks(rows)?);
        recipe.launch(main, vec![params, extra, self.mods], (blocks, 1, 1), spec.threads());
        recipe.launch(join, vec![params, extra], (rows, 1, 1), JOIN_THREADS as usize);
        Ok(())
    }

    fn blocks(&self, blocks: usize) -> Result<u32, Diagnostic> {
        u32::try_from(blocks).ok().filter(|n| *n <= i32::MAX as u32).ok_or_else(|| {
            Diagnostic::error("gpu-grid", format!("{blocks} tiles of queries are more than one launch takes"))
                .hint("make the batch, the heads or the sequence smaller")
        })
    }
}
