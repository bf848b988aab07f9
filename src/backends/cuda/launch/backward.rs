//! The backward pass on the GPU: preparation of rows, the kernel of the architecture, dq in 16 bits.
//!
//! Invariant: no launch depends on memory contents of an earlier pass; gradients are poisoned before a checked pass.
//! Must not know how a backend chose its forward kernel.

use super::backward_pass::{BackwardPass, Saved, download, gradient_buffers};
use super::params::{DeviceMods, Params, packed};
use crate::backends::cuda::device::gpu::{Buffer, Function, Gpu, Grid};
use crate::backends::cuda::device::tensor_map::{Extents, encode, encode_words};
use crate::backends::cuda::device::tensors::{InputSet, Strides};
use crate::backends::cuda::lists::schedule::Schedule;
use crate::backends::cuda::lists::words::words;
use crate::backends::cuda::toolchain::backward::{BIN_BYTES, BackwardCode, BackwardDraft, no_fixed_order};
use crate::backends::cuda::variant::backward::{BackwardKernel, BackwardSpec};
use crate::backends::cuda::variant::spec::MaskKind;
use crate::backends::given::Given;
use crate::backends::gradients::Gradients;
use crate::base::Diagnostic;
use crate::ir::graph::CaptureId;
use crate::problem::Problem;
use std::sync::Arc;

packed! {
    /// kernels/backward.cuh's struct; addresses are u64, 0 where unused.
    BackwardParams {
        q: u64, k: u64, v: u64, o: u64, d_o: u64, dq: u64, dk: u64, dv: u64, lse: u64, d_lse: u64, rows: u64, dq_sum: u64,
        turns: u64, counter: u64, items: u64, row_start: u64, runs: u64, bitmap_start: u64, bitmap_ids: u64, bitmaps: u64,
        ranges: u64, order_start: u64, order: u64,
        parts: u64, part_sums: u64, part_counts: u64,
        q_b: i64, q_h: i64, q_s: i64, k_b: i64, k_h: i64, k_s: i64, v_b: i64, v_h: i64, v_s: i64,
        o_b: i64, o_h: i64, o_s: i64, d_o_b: i64, d_o_h: i64, d_o_s: i64, dq_b: i64, dq_h: i64, dq_s: i64,
        dk_b: i64, dk_h: i64, dk_s: i64, dv_b: i64, dv_h: i64, dv_s: i64,
        batch: i32, heads: i32, group: i32, q_len: i32, kv_len: i32, q_tiles: i32, kv_tiles: i32, mask_batch: i32,
        mask_heads: i32, units: u32, scale: f32,
    }
}

impl BackwardParams {
    /// Everything but addresses.
    pub(crate) fn new(problem: &Problem, draft: &BackwardDraft, schedule: &Schedule) -> BackwardParams {
        let p = Params::of_problem(problem);
        let lists = &schedule.lists;
        BackwardParams {
            q_b: p.q_b,
            q_h: p.q_h,
            q_s: p.q_s,
            k_b: p.k_b,
            k_h: p.k_h,
            k_s: p.k_s,
            v_b: p.v_b,
            v_h: p.v_h,
            v_s: p.v_s,
            o_b: p.o_b,
            o_h: p.o_h,
            o_s: p.o_s,
            d_o_b: p.o_b,
            d_o_h: p.o_h,
            d_o_s: p.o_s,
            dq_b: p.q_b,
            dq_h: p.q_h,
            dq_s: p.q_s,
            dk_b: p.k_b,
            dk_h: p.k_h,
            dk_s: p.k_s,
            dv_b: p.v_b,
            dv_h: p.v_h,
            dv_s: p.v_s,
            batch: p.batch,
            heads: p.heads,
            group: p.group,
            q_len: p.q_len,
            kv_len: p.kv_len,
            q_tiles: draft.q_tiles as i32,
            kv_tiles: lists.kv_tiles as i32,
            mask_batch: lists.batch as i32,
            mask_heads: lists.heads as i32,
            units: schedule.items().len() as u32,
            // an address, written where there is one
            counter: u64::from(!schedule.by_block),
            scale: p.scale,
            ..BackwardParams::default()
        }
    }

    /// As a kernel takes it: the struct ends at a multiple of 8.
    pub(crate) fn argument(&self) -> Vec<u8> {
        let mut bytes = self.bytes();
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    }
}

/// A captured tensor's gradient on the device.
struct Captured {
    id: CaptureId,
    shape: Vec<usize>,
    /// Elements, at least one.
    extent: usize,
    sum: Buffer,
    /// Where additions go if no order may change the sums.
    bins: Option<Buffer>,
}

impl Captured {
    /// bins.cuh's `BinSums`.
    fn words(&self) -> [u64; 3] {
        [self.sum.address(), self.bins.as_ref().map_or(0, Buffer::address), self.extent as u64]
    }
}

/// The kernels, loaded, with everything but the inputs and seeds.
pub(crate) struct Backward {
    gpu: Arc<Gpu>,
    problem: Problem,
    spec: BackwardSpec,
    rows: Function,
    main: Function,
    queries: Function,
    /// What makes gradients of bins, if there are any.
    captured: Option<Function>,
    params: BackwardParams,
    mods: DeviceMods,
    bitmaps: usize,
    captures: Vec<Captured>,
    /// Sums and counts of items that several blocks share.
    shared: Option<Buffer>,
    /// dq, dk and dv.
    gradients: [Buffer; 3],
    /// Rows, sums of dq, turns, the counter.
    scratch: [Buffer; 4],
    _lists: Vec<Buffer>,
}

impl Backward {
    /// Loads the kernels, uploads lists and captured tensors, takes memory for gradients and sums.
    pub(crate) fn new(
        gpu: &Arc<Gpu>,
        problem: &Problem,
        draft: &BackwardDraft,
        code: &BackwardCode,
    ) -> Result<Backward, Diagnostic> {
        let spec = draft.spec;
        let module = gpu.module(&code.main.key, &code.main.cubin)?;
        let around = gpu.module(&code.rows.key, &code.rows.cubin)?;
        let schedule = draft.schedule(gpu.limits().multiprocessors);
        let mut params = BackwardParams::new(problem, draft, &schedule);
        let captures = captured(gpu, problem, draft)?;
        let words = if spec.has_bins() { 3 } else { 1 };
        let sums: Vec<u64> = captures.iter().flat_map(|c| c.words().into_iter().take(words)).collect();
        let mods = DeviceMods::with_gradients(gpu, &draft.mods, &draft.emitted, false, &sums)?;
        let tiles = problem.batch * problem.heads * draft.q_tiles;
        let gradients = gradient_buffers(gpu, problem)?;
        let scratch = [
            gpu.alloc(tiles * spec.tile_q * 8, "lse and delta of the rows")?,
            gpu.alloc(tiles * spec.tile_q * spec.qk_width * 4, "the sums of dq")?,
            gpu.alloc(tiles * 8, "the order of adding")?,
            gpu.alloc(16, "the tile counter")?,
        ];
        [params.dq, params.dk, params.dv] = gradients.each_ref().map(Buffer::address);
        let counter;
        [params.rows, params.dq_sum, params.turns, counter] = scratch.each_ref().map(Buffer::address);
        params.counter = if schedule.by_block { 0 } else { counter };
        let (lists, shared) = upload_lists(gpu, &draft.spec, &schedule, &mut params)?;
        Ok(Backward {
            rows: gpu.function(&around, "backward_rows", 0)?,
            queries: gpu.function(&around, "backward_queries", 0)?,
            captured: spec.has_bins().then(|| gpu.function(&around, "backward_captured", 0)).transpose()?,
            main: gpu.function(&module, spec.entry(), spec.shared_bytes())?,
            gpu: gpu.clone(),
            problem: problem.clone(),
            bitmaps: (draft.bits.words.len() / spec.bit_words()).max(1),
            spec,
            params,
            mods,
            captures,
            shared,
            gradients,
            scratch,
            _lists: lists,
        })
    }

    /// Maps of q, k, v, d_o, dk, dv, rows, bits and the sums of dq, in the kernel's order.
    fn maps(&self, p: &BackwardParams) -> Result<Vec<Vec<u8>>, Diagnostic> {
        let (s, m, n) = (self.problem.spec(), self.spec.tile_q, self.spec.tile_kv);
        let map = |address, heads, tokens, dim, rows| {
            let extents = Extents { batch: s.batch, heads, tokens, dim };
            encode(address, s.dtype, extents, Strides::new(s.layout, heads, tokens, dim), rows)
        };
        let q_tiles = p.q_tiles as usize;
        let lines = s.batch * s.heads * q_tiles * m * self.spec.qk_width / 256;
        let part_lines = match self.spec.kernel {
            BackwardKernel::Hopper => 64 * self.spec.part_width() / 256,
            _ => 1,
        };
        Ok(vec![
            map(p.q, s.heads, s.q_len, s.head_dim, m)?,
            map(p.k, s.kv_heads, s.kv_len, s.head_dim, n)?,
            map(p.v, s.kv_heads, s.kv_len, s.head_dim_v, n)?,
            map(p.d_o, s.heads, s.q_len, s.head_dim_v, m)?,
            map(p.dk, s.kv_heads, s.kv_len, s.head_dim, 64)?,
            map(p.dv, s.kv_heads, s.kv_len, s.head_dim_v, 64)?,
            encode_words(p.rows, true, [2 * m, q_tiles, s.heads, s.batch], [2 * m, 1])?,
            encode_words(
                p.bitmaps,
                false,
                [2 * m, self.bitmaps * self.spec.bit_words() / (2 * m), 1, 1],
                [2 * m, n / 64],
            )?,
            encode_words(p.dq_sum, true, [256, lines, 1, 1], [256, part_lines])?,
        ])
    }
}

impl BackwardPass for Backward {
    fn enqueue(&self, set: &InputSet, saved: &Saved) -> Result<(), Diagnostic> {
        let params = BackwardParams {
            q: set.q.address(),
            k: set.k.address(),
            v: set.v.address(),
            o: saved.forward.out.address(),
            d_o: saved.d_o.address(),
            lse: saved.forward.lse.address(),
            d_lse: saved.d_lse.as_ref().map_or(0, Buffer::address),
            ..self.params
        };
        let p = params.argument();
        let blocks = (self.params.q_tiles as u32, self.params.heads as u32, self.params.batch as u32);
        let around = Grid { blocks, threads: 256, shared: 0 };
        let sums = self.captures.iter().flat_map(|c| std::iter::once(&c.sum).chain(&c.bins));
        sums.chain(&self.shared).try_for_each(|sums| self.gpu.zero(sums))?;
        self.gpu.launch(&self.rows, around, &[&p])?;
        let multiprocessors = self.gpu.limits().multiprocessors as u32;
        let units = self.params.units;
        let blocks = if self.spec.is_hopper() { units.min(multiprocessors) } else { units };
        let grid = Grid {
            blocks: (blocks, 1, 1),
            threads: self.spec.threads() as u32,
            shared: self.spec.shared_bytes() as u32,
        };
        if self.spec.is_hopper() {
            let maps = self.maps(&params)?;
            let mut arguments: Vec<&[u8]> = maps.iter().map(Vec::as_slice).collect();
            arguments.extend([p.as_slice(), self.mods.argument()]);
            self.gpu.launch(&self.main, grid, &arguments)?;
        } else {
            self.gpu.launch(&self.main, grid, &[&p, self.mods.argument()])?;
        }
        self.gpu.launch(&self.queries, around, &[&p])?;
        for captured in self.captures.iter().filter(|c| c.bins.is_some()) {
            let function = self.captured.as_ref().expect("loaded where there are bins");
            let words: Vec<u8> = captured.words().iter().flat_map(|word| word.to_le_bytes()).collect();
            let blocks = (captured.extent.div_ceil(256) as u32, 1, 1);
            self.gpu.launch(function, Grid { blocks, threads: 256, shared: 0 }, &[&words])?;
        }
        Ok(())
    }

    fn poison(&self) -> Result<(), Diagnostic> {
        self.gradients.iter().chain(&self.scratch).try_for_each(|b| self.gpu.poison(b))
    }

    fn download(&self) -> Result<Gradients, Diagnostic> {
        let what = format!("running {}", self.spec.name());
        let [dq, dk, dv] = download(&self.gpu, &self.problem, &self.gradients, &what)?;
        let sums = self.captures.iter().map(|c| {
            let values = self.gpu.download::<f32>(&c.sum, c.shape.iter().product(), &what)?;
            Ok(values.into_iter().map(f64::from).collect())
        });
        let sums: Vec<Vec<f64>> = sums.collect::<Result<_, Diagnostic>>()?;
        let read: Vec<&[f64]> = sums.iter().map(Vec::as_slice).collect();
        let captures = match self.problem.score.as_deref() {
            Some(score) => {
                let ids: Vec<CaptureId> = self.captures.iter().map(|c| c.id).collect();
                Given::new(score, &ids).tensors(&read)?
            }
            None => Vec::new(),
        };
        Ok(Gradients { dq, dk, dv, captures })
    }
}

fn captured(gpu: &Arc<Gpu>, problem: &Problem, draft: &BackwardDraft) -> Result<Vec<Captured>, Diagnostic> {
    let (Some(gradient), Some(score)) = (&draft.mods.gradient, problem.score.as_deref()) else { return Ok(Vec::new()) };
    let one = |(id, in_bins): (&CaptureId, bool)| {
        let held = score.graph.capture(*id);
        let shape = held.tensor.shape().to_vec();
        // an empty tensor is read as if each of its axes had an element
        let extent: usize = shape.iter().map(|d| (*d).max(1)).product();
        let what = format!("the gradient of `{}`", held.name);
        let sum = gpu.alloc(extent * 4, &what)?;
        let bins = in_bins.then(|| {
            let what = format!("{what}, with {BIN_BYTES} bytes an element for the same bits in every run,");
            gpu.check_memory(&what, (extent * BIN_BYTES) as u128).map_err(|why| no_fixed_order(why.message))?;
            gpu.alloc(extent * BIN_BYTES, &what)
        });
        Ok(Captured { id: *id, shape, extent, sum, bins: bins.transpose()? })
    };
    gradient.captures.iter().zip(gradient.with_bins()).map(one).collect()
}

/// The lists on the device, and memory for the sums of items that several blocks share.
fn upload_lists(
    gpu: &Arc<Gpu>,
    spec: &BackwardSpec,
    schedule: &Schedule,
    p: &mut BackwardParams,
) -> Result<(Vec<Buffer>, Option<Buffer>), Diagnostic> {
    let (lists, what) = (&schedule.lists, "the block lists of the backward pass");
    let items = gpu.upload(&words(schedule.items()), what)?;
    let runs = gpu.upload(lists.runs.as_flattened(), what)?;
    p.items = items.address();
    p.runs = runs.address();
    let mut held = vec![items, runs];
    let mut shared = None;
    if let Some(parts) = &schedule.parts {
        let floats = parts.slots * spec.part_floats();
        let sums = gpu.alloc((floats * 4 + parts.slots * 8).max(8), "the sums of shared key tiles")?;
        (p.part_sums, p.part_counts) = (sums.address(), sums.address() + floats as u64 * 4);
        shared = Some(sums);
        let words = gpu.upload(&words(&parts.parts), what)?;
        p.parts = words.address();
        held.push(words);
    }
    let blank = vec![0u32; spec.bit_words()];
    let is_bitmap = spec.mask == MaskKind::Bitmap;
    let or_blank = |words: &'_ [u32]| if words.is_empty() { blank.clone() } else { words.to_vec() };
    let bits = if is_bitmap { schedule.bits.clone().into_owned() } else { Default::default() };
    for (words, address) in [
        (lists.row_start.clone(), &mut p.row_start),
        (lists.order_start.clone(), &mut p.order_start),
        (lists.order.clone(), &mut p.order),
        (or_blank(&bits.start), &mut p.bitmap_start),
        (or_blank(&bits.ids), &mut p.bitmap_ids),
        (or_blank(&bits.words), &mut p.bitmaps),
        (or_blank(&schedule.ranges), &mut p.ranges),
    ] {
        let buffer = gpu.upload(&words, what)?;
        *address = buffer.address();
        held.push(buffer);
    }
    Ok((held, shared))
}

#[cfg(test)]
mod tests {
    use crate::backends::cuda::launch::backward::*;
    use crate::backends::cuda::launch::params::declared;

    #[test]
    fn the_struct_is_the_headers() {
        let text = include_str!("../../../../kernels/backward.cuh");
        let own: Vec<_> = BackwardParams::fields().into_iter().map(|(n, s)| (n.to_string(), s)).collect();
        assert_eq!(own, declared(text, "Params"));
        assert_eq!(BackwardParams::default().argument().len(), 448);
    }
}
