//! What a pass launches: kernels, their parameters as bytes with places for addresses, and the lists that they read.
//!
//! Invariant: with the same addresses the bytes are those that the worker's launches have. An address is that of one of a call's tensors, or
//! lies in memory that the caller takes for the pass. Plain data, tested without a device. Must not know PyTorch.

use crate::backends::cuda::device::gpu::Grid;
use crate::backends::cuda::device::tensor_map::{Extents, encode, encode_words};
use crate::backends::cuda::device::tensors::Strides;
use crate::base::{DType, Diagnostic};

/// Memory of the caller's: lists that launches read, what a call's launches leave each other, counters that launches leave at zero.
pub(crate) const ARENA: usize = 0;
pub(crate) const SCRATCH: usize = 1;
pub(crate) const COUNTER: usize = 2;
/// The first of a call's tensors.
pub(crate) const CALL: usize = 3;

/// An address: so many bytes behind one of the bases of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct At {
    pub base: usize,
    pub offset: u64,
}

impl At {
    /// A tensor of the call.
    pub(super) fn call(index: usize) -> At {
        At { base: CALL + index, offset: 0 }
    }

    /// So many bytes further.
    pub(super) fn plus(self, bytes: usize) -> At {
        At { offset: self.offset + bytes as u64, ..self }
    }

    /// Where that is; 0 stays 0: a tensor that a call does not have.
    pub(super) fn of(self, bases: &[u64]) -> u64 {
        match bases[self.base] {
            0 => 0,
            base => base + self.offset,
        }
    }
}

/// A tensor map but for its address.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Map {
    /// 16-bit numbers, boxes of so many tokens.
    Halves(DType, Extents, Strides, usize),
    /// Words, floats or not.
    Words(bool, [usize; 4], [usize; 2]),
}

impl Map {
    /// Its 128 bytes. Errors: the driver's.
    pub(super) fn encoded(&self, address: u64) -> Result<Vec<u8>, Diagnostic> {
        match *self {
            Map::Halves(dtype, extents, strides, rows) => encode(address, dtype, extents, strides, rows),
            Map::Words(floats, dims, boxes) => encode_words(address, floats, dims, boxes),
        }
    }
}

/// A parameter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    /// Bytes, with addresses at these offsets.
    Bytes(Vec<u8>, Vec<(usize, At)>),
    Map(Map, At),
}

/// Machine code of one entry.
#[derive(Clone, Debug)]
pub(crate) struct Code {
    pub key: String,
    pub cubin: Vec<u8>,
    pub entry: &'static str,
    pub shared: usize,
}

/// One step of a pass.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// A kernel by its number, with parameters by their numbers.
    Launch { kernel: usize, parts: Vec<usize>, grid: Grid },
    /// Zeros in so many bytes.
    Zero(At, usize),
}

/// A pass but for addresses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recipe {
    pub kernels: Vec<Code>,
    pub parts: Vec<Part>,
    pub steps: Vec<Step>,
    /// What the arena holds, and addresses in it.
    pub arena: Vec<u8>,
    pub arena_places: Vec<(usize, At)>,
    pub scratch: usize,
    pub counter: usize,
    /// Tensors of a call.
    pub calls: usize,
}

/// Lists begin at multiples of this.
const ALIGNED: usize = 256;

impl Recipe {
    /// Puts bytes into the arena.
    pub(super) fn keep(&mut self, bytes: &[u8]) -> At {
        let offset = self.arena.len().next_multiple_of(ALIGNED);
        self.arena.resize(offset, 0);
        self.arena.extend(bytes);
        // an empty list has an address, too
        self.arena.resize(self.arena.len().max(offset + 16), 0);
        At { base: ARENA, offset: offset as u64 }
    }

    /// Puts words into the arena.
    pub(super) fn words(&mut self, words: &[u32]) -> At {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.keep(&bytes)
    }

    /// Takes memory that a call has for itself.
    pub(super) fn scratch(&mut self, bytes: usize) -> At {
        let offset = self.scratch.next_multiple_of(2 * ALIGNED);
        self.scratch = offset + bytes.max(16);
        At { base: SCRATCH, offset: offset as u64 }
    }

    /// Takes words that are zero before and after a call.
    pub(super) fn counter(&mut self, words: usize) -> At {
        let offset = self.counter;
        self.counter += words * 4;
        At { base: COUNTER, offset: offset as u64 }
    }

    pub(super) fn part(&mut self, part: Part) -> usize {
        self.parts.push(part);
        self.parts.len() - 1
    }

    /// A struct by the layout of its fields, some of which are addresses.
    pub(super) fn fields(&mut self, raw: Vec<u8>, layout: &[(&str, &str)], places: &[(&str, At)]) -> usize {
        let start = |name: &str| {
            let before = layout.iter().take_while(|(field, _)| *field != name);
            before.map(|(_, ty)| if ty.ends_with("64") { 8 } else { 4 }).sum::<usize>()
        };
        let places = places.iter().map(|(name, at)| (start(name), *at)).collect();
        self.part(Part::Bytes(raw, places))
    }

    pub(super) fn code(&mut self, key: &str, cubin: &[u8], entry: &'static str, shared: usize) -> usize {
        self.kernels.push(Code { key: key.to_string(), cubin: cubin.to_vec(), entry, shared });
        self.kernels.len() - 1
    }

    pub(super) fn launch(&mut self, kernel: usize, parts: Vec<usize>, blocks: (u32, u32, u32), threads: usize) {
        let shared = self.kernels[kernel].shared as u32;
        let grid = Grid { blocks, threads: threads as u32, shared };
        self.steps.push(Step::Launch { kernel, parts, grid });
    }

    /// The arena's bytes where it lies at this address.
    pub(super) fn image(&self, address: u64) -> Vec<u8> {
        let mut bytes = self.arena.clone();
        for (offset, at) in &self.arena_places {
            bytes[*offset..offset + 8].copy_from_slice(&at.of(&[address]).to_le_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use crate::backends::cuda::embedded::recipe::*;

    #[test]
    fn what_is_kept_lies_apart_and_addresses_follow_their_bases() {
        let mut recipe = Recipe::default();
        let (first, empty, last) = (recipe.words(&[1, 2, 3]), recipe.words(&[]), recipe.words(&[7]));
        assert_eq!([first, empty, last].map(|at| at.offset), [0, 256, 512]);
        assert_eq!(recipe.arena.len(), 528);
        assert_eq!(recipe.arena[512..516], 7u32.to_le_bytes());
        let (a, b) = (recipe.scratch(5), recipe.scratch(1));
        assert_eq!((a.offset, b.offset, recipe.scratch), (0, 512, 528));
        let layout = [("one", "u64"), ("two", "i32"), ("three", "f32"), ("four", "u64")];
        let part = recipe.fields(vec![0; 24], &layout, &[("four", last), ("one", At::call(1))]);
        assert_eq!(recipe.parts[part], Part::Bytes(vec![0; 24], vec![(16, last), (0, At::call(1))]));
        let bases = [1 << 20, 2 << 20, 0, 0, 64];
        assert_eq!((last.of(&bases), b.of(&bases), At::call(1).of(&bases)), ((1 << 20) + 512, (2 << 20) + 512, 64));
        assert_eq!(At::call(0).plus(8).of(&bases), 0, "a tensor that is not there");
        recipe.arena_places.push((0, last));
        assert_eq!(recipe.image(4096)[..8], 4608u64.to_le_bytes());
    }
}
