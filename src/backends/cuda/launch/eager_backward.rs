//! Eager's backward pass on the GPU: scores and dP materialised, dS from them row by row, products of whole matrices.
//!
//! Invariant: every cell of the problem is computed and written to memory; a gradient has the same bits in every run;
//! the free memory decides only how many (batch, kv head) units run at a time. Must not skip anything.

use super::backward_pass::{BackwardPass, Saved, download, gradient_buffers};
use super::dense;
use super::params::{DeviceMods, Params, packed};
use crate::backends::cuda::device::gpu::{Buffer, Function, Gpu, Grid};
use crate::backends::cuda::device::tensors::InputSet;
use crate::backends::cuda::launch::eager;
use crate::backends::cuda::toolchain::compile::Obtained;
use crate::backends::cuda::toolchain::eager_backward::{EagerDraft, SHARED_BYTES, TILE};
use crate::backends::cuda::variant::spec::MaskKind;
use crate::backends::given::Given;
use crate::backends::gradients::Gradients;
use crate::base::Diagnostic;
use crate::ir::graph::CaptureId;
use crate::problem::Problem;
use std::sync::Arc;

/// Threads of the products, and of a row, as eager_backward.cu has them.
const THREADS: u32 = 128;
const ROW_THREADS: u32 = 256;
/// Most blocks along the launch's y and z.
const GRID_YZ: usize = 65_535;

packed! {
    /// kernels/eager_backward.cu's struct; addresses are u64, 0 where unused.
    EagerParams {
        d_o: u64, d_lse: u64, dq: u64, dk: u64, dv: u64, scores: u64, d_weights: u64, weights: u64, d_scores: u64,
        deltas: u64, largest: u64, sums: u64, places: u64, captured: u64,
    }
}

/// Bytes of the cells of one (batch, kv head) unit: scores and dP in f32, P and dS in 16 bits.
fn unit_bytes(problem: &Problem) -> u128 {
    (problem.group() * problem.q_len) as u128 * problem.kv_len.next_multiple_of(TILE) as u128 * 12
}

/// Units whose cells fit into half of the free memory, at least one.
fn units_at_once(problem: &Problem, free: usize) -> usize {
    let fitting = (free as u128 / 2 / unit_bytes(problem).max(1)) as usize;
    let units = problem.batch * problem.kv_heads;
    fitting.clamp(1, units.clamp(1, (GRID_YZ / problem.group()).max(1)))
}

/// Refuses problems that do not fit with the forward pass, whose tiles are this many keys wide, and lengths too large
/// for a launch.
pub(crate) fn check(gpu: &Gpu, problem: &Problem, tile_kv: usize) -> Result<(), Diagnostic> {
    let most = GRID_YZ * TILE;
    if problem.q_len.max(problem.kv_len) > most || problem.group() > GRID_YZ {
        let message = format!("eager's backward pass takes at most {most} tokens on a GPU");
        return Err(Diagnostic::error("eager-q-len", message).hint("use flex, which never holds Q_LEN x KV_LEN values"));
    }
    let forward = eager::scratch_bytes(problem, tile_kv, gpu.memory()?.0);
    let what = format!(
        "eager attention's backward pass, which keeps 12 bytes for every score of a kv head's {} query heads beside the \
         forward pass's scores,",
        problem.group()
    );
    gpu.check_memory(&what, forward + unit_bytes(problem))
}

/// Captured tensors that get gradients, and where each one's elements begin among all of them.
#[derive(Debug, Default)]
pub(super) struct Places {
    pub ids: Vec<CaptureId>,
    pub starts: Vec<u32>,
}

impl Places {
    /// Errors: more elements than are counted in 32 bits.
    pub(super) fn of(problem: &Problem, draft: &EagerDraft) -> Result<Places, Diagnostic> {
        let mut places = Places { starts: vec![0], ..Places::default() };
        let (Some(gradient), Some(score)) = (&draft.mods.gradient, problem.score.as_deref()) else { return Ok(places) };
        let mut sum = 0u64;
        for id in &gradient.captures {
            // an empty tensor is read as if each of its axes had an element
            sum += score.graph.capture(*id).tensor.shape().iter().map(|d| (*d).max(1) as u64).product::<u64>();
            places.ids.push(*id);
            places.starts.push(u32::try_from(sum).map_err(|_| {
                Diagnostic::error("captures-too-large", format!("captured tensors with gradients have {sum} elements"))
                    .hint("eager takes up to 2^32 - 1 on a GPU: use flex, or capture smaller tensors")
            })?);
        }
        Ok(places)
    }

    /// Elements of all.
    pub(super) fn elements(&self) -> usize {
        self.starts.last().map_or(0, |n| *n as usize)
    }

    /// The kernels' sums, as gradients of the tensors that the mod reads or from which a factory computed them.
    pub(super) fn gradients(
        &self,
        problem: &Problem,
        sums: &[f32],
    ) -> Result<Vec<backends::gradients::CaptureGradient>, Diagnostic> {
        let Some(score) = problem.score.as_deref() else { return Ok(Vec::new()) };
        let own = self.ids.iter().zip(&self.starts).map(|(id, start)| {
            let count = score.graph.capture(*id).tensor.numel();
            sums[*start as usize..][..count].iter().map(|x| f64::from(*x)).collect::<Vec<f64>>()
        });
        let own: Vec<Vec<f64>> = own.collect();
        let read: Vec<&[f64]> = own.iter().map(Vec::as_slice).collect();
        Given::new(score, &self.ids).tensors(&read)
    }
}

/// The launches in order: an entry, its blocks, its threads, whether it needs shared memory, and whether it receives
/// the mods.
pub(super) struct Step {
    pub entry: &'static str,
    pub blocks: (u32, u32, u32),
    pub threads: u32,
    pub shared: usize,
    pub mods: bool,
}

/// The launches for so many units at a time.
pub(super) fn steps(problem: &Problem, units: usize, captures: bool) -> Vec<Step> {
    let tiles = |n: usize| n.div_ceil(TILE) as u32;
    let (pairs, q_len) = ((units * problem.group()) as u32, problem.q_len as u32);
    let (q_tiles, kv_tiles) = (tiles(problem.q_len), tiles(problem.kv_len));
    let wider = tiles(problem.head_dim.max(problem.head_dim_v));
    let product = |entry, blocks| Step { entry, blocks, threads: THREADS, shared: SHARED_BYTES, mods: false };
    let row = |entry| Step { entry, blocks: (q_len, pairs, 1), threads: ROW_THREADS, shared: 0, mods: true };
    let mut steps = vec![product("eager_products", (kv_tiles, q_tiles, pairs)), row("eager_rows")];
    if captures {
        steps.push(row("eager_captures"));
        steps.push(Step { blocks: (1024, 1, 1), mods: false, ..row("eager_captured") });
    }
    steps.push(product("eager_queries", (tiles(problem.head_dim), q_tiles, pairs)));
    steps.push(product("eager_keys", (wider, kv_tiles, units as u32)));
    steps
}

/// The kernels, loaded, with everything but the inputs and seeds.
pub(crate) struct EagerBackward {
    gpu: Arc<Gpu>,
    problem: Problem,
    name: String,
    functions: Vec<Function>,
    params: Params,
    eager: EagerParams,
    mods: DeviceMods,
    places: Places,
    /// dq, dk and dv.
    gradients: [Buffer; 3],
    /// Scores, dP, P, dS, deltas.
    scratch: [Buffer; 5],
    /// For captured tensors: the largest parts, the sums, the gradients.
    captured: [Buffer; 3],
    _places: Buffer,
    _dense: Option<Buffer>,
    at_once: usize,
}

impl EagerBackward {
    /// Loads the kernels and takes memory for gradients and cells.
    pub(crate) fn new(
        gpu: &Arc<Gpu>,
        problem: &Problem,
        draft: EagerDraft,
        code: &Obtained,
    ) -> Result<EagerBackward, Diagnostic> {
        let module = gpu.module(&code.key, &code.cubin)?;
        let mut params = Params::of_problem(problem);
        let places = Places::of(problem, &draft)?;
        let mods = DeviceMods::with_gradients(gpu, &draft.mods, &draft.emitted, false, &vec![0; places.ids.len()])?;
        let held = match problem.mask.as_deref().filter(|_| draft.mask == MaskKind::Dense) {
            Some(mask) => Some(dense::fill_from_host(gpu, problem, mask, TILE, &mut params)?),
            None => None,
        };
        let gradients = gradient_buffers(gpu, problem)?;
        let elements = places.elements();
        let captured = [
            gpu.alloc(places.ids.len() * 4, "what captured tensors get")?,
            gpu.alloc(elements * 16, "the sums of captured tensors' gradients")?,
            gpu.alloc(elements * 4, "the gradients of captured tensors")?,
        ];
        let listed = gpu.upload(&places.starts, "where captured tensors begin")?;
        gpu.check_memory("eager attention's scores and their gradients of a single kv head", unit_bytes(problem))?;
        let at_once = units_at_once(problem, gpu.memory()?.0);
        let rows = at_once * problem.group() * problem.q_len;
        let cells = rows * problem.kv_len.next_multiple_of(TILE);
        let scratch = [
            gpu.alloc(cells * 4, "eager attention's scores")?,
            gpu.alloc(cells * 4, "the gradients of eager attention's weights")?,
            gpu.alloc(cells * 2, "eager attention's weights")?,
            gpu.alloc(cells * 2, "the gradients of eager attention's scores")?,
            gpu.alloc(rows * 4, "delta of the rows")?,
        ];
        let [dq, dk, dv] = gradients.each_ref().map(Buffer::address);
        let [scores, d_weights, weights, d_scores, deltas] = scratch.each_ref().map(Buffer::address);
        let [largest, sums, captured_at] = captured.each_ref().map(Buffer::address);
        let eager = EagerParams {
            dq,
            dk,
            dv,
            scores,
            d_weights,
            weights,
            d_scores,
            deltas,
            largest,
            sums,
            places: listed.address(),
            captured: captured_at,
            ..EagerParams::default()
        };
        let steps = steps(problem, at_once, !places.ids.is_empty());
        let functions = steps.iter().map(|step| gpu.function(&module, step.entry, step.shared));
        Ok(EagerBackward {
            functions: functions.collect::<Result<_, _>>()?,
            gpu: gpu.clone(),
            problem: problem.clone(),
            name: draft.name,
            params,
            eager,
            mods,
            places,
            gradients,
            scratch,
            captured,
            _places: listed,
            _dense: held,
            at_once,
        })
    }
}

impl BackwardPass for EagerBackward {
    fn enqueue(&self, set: &InputSet, saved: &Saved) -> Result<(), Diagnostic> {
        let whole = Params {
            q: set.q.address(),
            k: set.k.address(),
            v: set.v.address(),
            lse: saved.forward.lse.address(),
            ..self.params
        };
        let eager = EagerParams {
            d_o: saved.d_o.address(),
            d_lse: saved.d_lse.as_ref().map_or(0, Buffer::address),
            ..self.eager
        };
        let (eager, captures) = (eager.bytes(), !self.places.ids.is_empty());
        let [largest, sums, captured] = &self.captured;
        self.gpu.zero(sums)?;
        self.gpu.zero(captured)?;
        let units = self.problem.batch * self.problem.kv_heads;
        for first in (0..units).step_by(self.at_once) {
            let now = self.at_once.min(units - first);
            self.gpu.zero(largest)?;
            let params = Params { first: first as i32, section: now as i32, ..whole }.bytes();
            for (step, function) in steps(&self.problem, now, captures).iter().zip(&self.functions) {
                let grid = Grid { blocks: step.blocks, threads: step.threads, shared: step.shared as u32 };
                let both: [&[u8]; 3] = [&params, &eager, self.mods.argument()];
                self.gpu.launch(function, grid, &both[..if step.mods { 3 } else { 2 }])?;
            }
        }
        Ok(())
    }

    fn poison(&self) -> Result<(), Diagnostic> {
        self.gradients.iter().chain(&self.scratch).chain(&self.captured).try_for_each(|b| self.gpu.poison(b))
    }

    fn download(&self) -> Result<Gradients, Diagnostic> {
        let what = format!("running {}", self.name);
        let [dq, dk, dv] = download(&self.gpu, &self.problem, &self.gradients, &what)?;
        let sums = self.gpu.download::<f32>(&self.captured[2], self.places.elements(), &what)?;
        let captures = self.places.gradients(&self.problem, &sums)?;
        Ok(Gradients { dq, dk, dv, captures })
    }
}

#[cfg(test)]
mod tests {
    use crate::backends::cuda::launch::eager_backward::*;
    use crate::backends::cuda::launch::params::declared;
    use crate::backends::testing::problem;

    #[test]
    fn the_struct_is_the_kernels() {
        let text = include_str!("../../../../kernels/eager_backward.cu");
        let own: Vec<_> = EagerParams::fields().into_iter().map(|(n, s)| (n.to_string(), s)).collect();
        assert_eq!(own, declared(text, "Eager"));
        assert!(text.contains(&format!("TILE = {TILE}, THREADS = {THREADS}, ROW_THREADS = {ROW_THREADS}")));
    }

    #[test]
    fn units_follow_the_free_memory() {
        let p = problem(2, 4, 2, 100, 65, 16);
        assert_eq!(unit_bytes(&p), 2 * 100 * 128 * 12);
        assert_eq!(units_at_once(&p, 1 << 30), 4);
        assert_eq!(units_at_once(&p, 2 * 2 * 307_200), 2);
        assert_eq!(units_at_once(&p, 0), 1);
    }
}
