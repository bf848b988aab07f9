//! Run-time routers over the heads of a call, and over all calls: means, and the resulting settings.
//!
//! Invariant: a mean covers the given heads. Must not know how routers rank.

use super::live_heads;
use crate::base::{BlockSize, Control, Diagnostic, Lengths};
use crate::quality::capture::{Call, Capture};
use crate::quality::live::LiveHead;
use crate::quality::profile::Grid;
use crate::quality::routers::settings::{Settings, settings};
use crate::quality::routers::{Routed, route, routers};
use crate::quality::suggest::order::Order;
use crate::quality::suggest::schedule::{Schedule, Seen, schedule};
use crate::quality::suggest::{Candidate, Form, Kind, Material, Reason, Target};

/// Routers at a target's budget: a share of the blocks, or a mass; where only one is given the other is what methods ship with.
pub(super) fn compared(target: Target, grid: Option<Grid>) -> Vec<crate::quality::routers::Router> {
    match target {
        Target::Mass(mass) => routers(0.25, mass, grid),
        Target::Blocks(share) => routers(share, 0.9, grid),
    }
}

/// Each router's means over heads. Without the grid if the tokens are not one. Errors: `cancelled`.
pub fn routed(
    heads: &[LiveHead],
    target: Target,
    grid: Option<Grid>,
    control: &Control,
) -> Result<Vec<Routed>, Diagnostic> {
    Ok(each(heads, target, grid, control)?.iter().map(|of| mean(of)).collect())
}

/// Each router's means over heads, and, for those that cut rows of tokens, masks of the blocks that they picked, head
/// by head. Errors: `cancelled`.
pub fn router_layers(
    material: &Material,
    target: Target,
    grid: Option<Grid>,
    control: &Control,
) -> Result<(Vec<Routed>, Vec<Candidate>), Diagnostic> {
    let all = each(&material.heads, target, grid, control)?;
    let mut layers = Vec::new();
    for of in all.iter().filter(|of| of[0].router.order == Order::Raster) {
        let mut heads = vec![vec![1; of[0].blocks.len()]; material.head_count()];
        material.numbers().into_iter().zip(of).for_each(|(number, one)| heads[number] = one.blocks.clone());
        let form = Form::Blocks { size: of[0].block, heads, causal: material.causal };
        let name = || of[0].router.name.to_string();
        layers.push(material.judge(Kind::Router(name()), Reason::Router(name()), form, control)?);
    }
    Ok((all.iter().map(|of| mean(of)).collect(), layers))
}

/// Each router on each head.
fn each(
    heads: &[LiveHead],
    target: Target,
    grid: Option<Grid>,
    control: &Control,
) -> Result<Vec<Vec<Routed>>, Diagnostic> {
    let lengths = heads[0].masses.lengths;
    let grid = grid.filter(|g| lengths.q_len == lengths.kv_len && g.tokens().end <= lengths.q_len && g.count() > 0);
    let all = compared(target, grid);
    let mut found = Vec::new();
    for (n, router) in all.iter().enumerate() {
        let each: Vec<Routed> =
            heads.iter().map(|h| route(h.scorer.head(), &h.masses, router, grid, control)).collect::<Result<_, _>>()?;
        found.push(each);
        control.set_progress((n + 1) as f64 / all.len() as f64);
    }
    Ok(found)
}

/// Means of a router over heads; the blocks are those of the first.
fn mean(each: &[Routed]) -> Routed {
    let of = |value: fn(&Routed) -> f64| each.iter().map(value).sum::<f64>() / each.len() as f64;
    Routed {
        density: of(|r| r.density),
        mass: of(|r| r.mass),
        ceiling: of(|r| r.ceiling),
        recall: of(|r| r.recall),
        cost: of(|r| r.cost),
        ..each[0].clone()
    }
}

/// Routers in one call.
pub struct RoutedCall {
    /// Key of the call.
    pub key: String,
    /// Layer's number and name.
    pub layer: (usize, String),
    /// Step.
    pub step: usize,
    /// Every router.
    pub routers: Vec<Routed>,
}

/// Routers in every call of a capture that has q and k, heads meaned. Errors: `cancelled`, tensors that cannot be read.
pub fn routed_calls(
    capture: &Capture,
    entry: usize,
    target: Target,
    block: BlockSize,
    control: &Control,
) -> Result<Vec<RoutedCall>, Diagnostic> {
    let calls: Vec<&Call> = capture.calls().iter().filter(|c| !c.info.full_heads().is_empty()).collect();
    let mut found = Vec::new();
    for (n, call) in calls.iter().enumerate() {
        let lengths = Lengths::new(call.info.q_len, call.info.kv_len)?;
        let heads = live_heads(capture, call, entry, &call.info.full_heads(), block, None, &Control::new())?;
        let grid = capture.grid().filter(|g| g.tokens().end <= lengths.q_len.min(lengths.kv_len));
        let routers = routed(&heads, target, grid, &Control::new())?;
        let layer = (call.info.layer, call.info.name.clone());
        found.push(RoutedCall { key: call.key.clone(), layer, step: call.info.step, routers });
        control.set_progress((n + 1) as f64 / calls.len() as f64);
        if control.is_cancelled() {
            return Err(Diagnostic::note("cancelled", "stopped"));
        }
    }
    Ok(found)
}

/// The calls that stay dense so that a router keeps `mass` in all others.
pub fn router_schedule(of: &[RoutedCall], router: &str, mass: f64) -> Schedule {
    let seen: Vec<Seen> = of
        .iter()
        .filter_map(|c| {
            let found = c.routers.iter().find(|r| r.router.name == router)?;
            Some(Seen { layer: c.layer.clone(), step: c.step, mass: found.mass })
        })
        .collect();
    schedule(&seen, mass)
}

/// A router's settings with what stays dense: first steps, and the first layers as far as they are dense one after the other.
pub fn settings_of(of: &Routed, dense: Option<&Schedule>) -> Vec<Settings> {
    let layers = dense.map_or(0, |s| (0..).take_while(|n| s.dense_layers.iter().any(|(l, _)| l == n)).count());
    settings(&of.router, dense.map_or(0, |s| s.dense_steps), layers)
}
