//! A picture of one head's scores or probabilities, from the inputs of the last run.
//!
//! Invariant: only the requested rows are computed; the picture is the same on every device. Must not know colours.

use super::child;
use super::racers::Gpus;
use super::run::{Kept, payload};
use crate::backends::attention_map::{self, Region, Values};
use crate::backends::cuda::{self, Cache};
use crate::base::tensor::Data;
use crate::base::{Control, Device, Diagnostic, HostTensor};
use crate::worker::protocol::{MapKind, MapRequest, Reply};
use crate::worker::transport::Payload;

/// Multiply-adds from which a map is made on the GPU of the run: some hundredths of a second on a few cores.
const WORTH_A_GPU: u128 = 1 << 27;
/// Pixels of one map at most.
const MAX_PIXELS: usize = 1 << 26;

/// Answers a map request.
pub(super) fn map(
    kept: Option<&Kept>,
    gpus: &mut Gpus,
    request: &MapRequest,
) -> Result<(Reply, Vec<Payload>), Vec<Diagnostic>> {
    let Some(kept) = kept else {
        return Err(vec![
            Diagnostic::error("no-inputs", "the map needs the inputs of a run").hint("run the problem first"),
        ]);
    };
    let Kept { problem, inputs, .. } = kept;
    check(problem, request).map_err(|d| vec![d])?;
    let region = Region {
        b: request.b,
        h: request.h,
        q: request.q[0]..request.q[1],
        kv: request.kv[0]..request.kv[1],
        height: request.height.min(request.q[1] - request.q[0]),
        width: request.width.min(request.kv[1] - request.kv[0]),
    };
    let values = match request.kind {
        MapKind::Scores => Values::Scores,
        MapKind::Probabilities => Values::Probabilities,
    };
    let pixels = match on_gpu(kept, gpus, &region, values) {
        Some(pixels) => pixels,
        None => attention_map::map(problem, inputs, &region, values, &Control::new()).map_err(|d| vec![d])?,
    };
    let tensor = HostTensor::new([region.height, region.width], Data::F32(pixels)).map_err(|d| vec![d])?;
    let reply = Reply::Map { height: region.height, width: region.width };
    Ok((reply, vec![payload("map".into(), &tensor)]))
}

/// The pixels from the GPU of the last run, if the host would take long; None if the host should draw them.
fn on_gpu(kept: &Kept, gpus: &mut Gpus, region: &Region, values: Values) -> Option<Vec<f32>> {
    let Device::Cuda(ordinal) = kept.device else { return None };
    if attention_map::cost(&kept.problem, region) < WORTH_A_GPU {
        return None;
    }
    let gpu = gpus.open(ordinal).ok()?;
    let compiler = child::compiler(cuda::nvrtc_for(&gpu).ok()?);
    let cache = Cache::user();
    let tools = (compiler.as_ref(), cache.as_ref());
    // on any error, the host draws the same picture
    cuda::map(&gpu, tools, &kept.problem, &kept.inputs, region, values).ok()
}

fn check(problem: &crate::problem::Problem, r: &MapRequest) -> Result<(), Diagnostic> {
    let inside = r.b < problem.batch
        && r.h < problem.heads
        && r.q[0] < r.q[1]
        && r.q[1] <= problem.q_len
        && r.kv[0] < r.kv[1]
        && r.kv[1] <= problem.kv_len;
    let drawable = r.height > 0 && r.width > 0 && r.height.saturating_mul(r.width) <= MAX_PIXELS;
    if inside && drawable {
        return Ok(());
    }
    let message = format!(
        "the map of b {}, h {}, rows {:?}, columns {:?} as {} x {} pixels is outside the last run: {} x {} heads, {} x {} tokens",
        r.b, r.h, r.q, r.kv, r.height, r.width, problem.batch, problem.heads, problem.q_len, problem.kv_len
    );
    Err(Diagnostic::error("map-outside", message).hint("run again after the document's lengths or heads have changed"))
}
