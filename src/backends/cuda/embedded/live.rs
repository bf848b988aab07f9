//! The score mod's tensors whose contents kernels read in place, and the mods' struct with their addresses.
//!
//! Invariant: nothing that is chosen or listed depends on the content of such a tensor. Must not know launches.

use super::recipe::{At, Part, Recipe};
use crate::backends::cuda::emit::functions::Emitted;
use crate::backends::cuda::emit::layout::capture_bytes;
use crate::backends::cuda::emit::mods::LiftedMods;
use crate::base::{Diagnostic, HostTensor};
use crate::problem::Problem;

/// Float tensors that the score mod captured, by their numbers in it.
pub(super) struct Live<'a> {
    pub numbers: Vec<usize>,
    tensors: Vec<&'a HostTensor>,
}

/// A word of the struct before the numbers.
pub(super) enum Word {
    At(At),
    Number(u64),
}

impl<'a> Live<'a> {
    /// Those of a problem.
    pub(super) fn of(problem: &'a Problem) -> Live<'a> {
        let captured = problem.score.as_deref().map(|score| score.graph.captures()).unwrap_or_default();
        let floats = captured.iter().enumerate().filter(|(_, c)| c.tensor.dtype().is_float());
        let (numbers, tensors) = floats.map(|(at, c)| (at, &c.tensor)).unzip();
        Live { numbers, tensors }
    }

    /// The mods as a parameter: the live tensors are the call's from `first` on, the others are kept. `gradients` are the words behind.
    pub(super) fn mods(
        &self,
        recipe: &mut Recipe,
        (mods, emitted): (&LiftedMods, &Emitted),
        first: usize,
        gradients: Vec<Word>,
    ) -> Result<usize, Diagnostic> {
        let captured = mods.captures();
        let mut words = Vec::new();
        for (name, tensor) in &captured {
            let own = self.tensors.iter().position(|live| live.same_storage(tensor));
            words.push(Word::At(match own {
                Some(at) => At::call(first + at),
                None => recipe.keep(&capture_bytes(name, tensor)?),
            }));
        }
        words.extend(gradients);
        let tensors: Vec<_> = captured.iter().map(|(_, tensor)| *tensor).collect();
        let numbers: Vec<u64> = words.iter().map(|w| if let Word::Number(n) = w { *n } else { 0 }).collect();
        let raw = emitted.layout.fill(&numbers, &tensors, &mods.ints, &mods.floats);
        let places =
            words.iter().enumerate().filter_map(|(i, w)| if let Word::At(at) = w { Some((8 * i, *at)) } else { None });
        let places: Vec<(usize, At)> = places.collect();
        if !emitted.layout.by_pointer() {
            return Ok(recipe.part(Part::Bytes(raw, places)));
        }
        if places.iter().any(|(_, at)| at.base != super::recipe::ARENA) {
            let message = "the mods hold more than 3 KB of numbers besides tensors that kernels read in place";
            return Err(Diagnostic::error("mods-too-large", message)
                .hint("put the numbers into a tensor and read it by an index"));
        }
        let kept = recipe.keep(&raw);
        recipe.arena_places.extend(places.into_iter().map(|(offset, at)| (kept.offset as usize + offset, at)));
        Ok(recipe.part(Part::Bytes(vec![0; 8], vec![(0, kept)])))
    }
}
