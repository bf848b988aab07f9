//! The parameters of a pass's launches in memory, and their run.
//!
//! Invariant: one call at a time writes them; the driver copies them as it launches, so that the next call may write them at once. Memory
//! of the call is its caller's until its stream has come past the launches. Waits for nothing and allocates nothing on the device.

use super::recipe::{ARENA, At, CALL, COUNTER, Map, Part, Recipe, SCRATCH, Step};
use crate::backends::cuda::device::gpu::Grid;
use crate::backends::cuda::device::guest::{self, Entry, MOST_PARAMETERS};
use crate::base::Diagnostic;

/// What a parameter begins at.
const ALIGNED: usize = 64;

/// All parameters in one piece of memory.
pub(super) struct Block {
    /// Words, so that the bytes lie at multiples of 8.
    memory: Vec<u64>,
    /// Where in bytes each part begins.
    starts: Vec<usize>,
    /// Word, and the address in it.
    places: Vec<(usize, At)>,
    /// Where in bytes a map lies, what it is of, and the address that it has now.
    maps: Vec<(usize, Map, At, u64)>,
}

impl Block {
    /// All parts, at no addresses yet.
    pub(super) fn new(recipe: &Recipe) -> Block {
        let mut block = Block { memory: Vec::new(), starts: Vec::new(), places: Vec::new(), maps: Vec::new() };
        for part in &recipe.parts {
            let start = (block.memory.len() * 8).next_multiple_of(ALIGNED);
            block.starts.push(start);
            match part {
                Part::Bytes(raw, places) => {
                    block.grow(start, raw.len());
                    block.write(start, raw);
                    block.places.extend(places.iter().map(|(offset, at)| ((start + offset) / 8, *at)));
                }
                Part::Map(map, at) => {
                    block.grow(start, 128);
                    block.maps.push((start, *map, *at, 0));
                }
            }
        }
        block
    }

    fn grow(&mut self, start: usize, bytes: usize) {
        self.memory.resize((start + bytes).div_ceil(8), 0);
    }

    fn write(&mut self, start: usize, raw: &[u8]) {
        for (word, bytes) in self.memory[start / 8..].iter_mut().zip(raw.chunks(8)) {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_le_bytes(whole);
        }
    }

    /// Writes a call's addresses. Errors: the driver's, about a map.
    pub(super) fn fill(&mut self, bases: &[u64]) -> Result<(), Diagnostic> {
        for (word, at) in &self.places {
            self.memory[*word] = at.of(bases);
        }
        for index in 0..self.maps.len() {
            let (start, map, at, now) = self.maps[index];
            let address = at.of(bases);
            if address != now {
                self.write(start, &map.encoded(address)?);
                self.maps[index].3 = address;
            }
        }
        Ok(())
    }

    /// Addresses of a launch's parameters, and how many there are.
    fn pointers(&self, parts: &[usize]) -> ([usize; MOST_PARAMETERS], usize) {
        let begin = self.memory.as_ptr() as usize;
        let mut all = [0; MOST_PARAMETERS];
        for (pointer, part) in all.iter_mut().zip(parts) {
            *pointer = begin + self.starts[*part];
        }
        (all, parts.len())
    }

    /// Enqueues the steps on a stream.
    pub(super) fn run(&self, steps: &[Step], entries: &[Entry], bases: &[u64], stream: u64) -> Result<(), Diagnostic> {
        for step in steps {
            match step {
                Step::Zero(at, bytes) => guest::zero(at.of(bases), *bytes, stream)?,
                Step::Launch { grid: Grid { blocks: (0, ..) | (_, 0, _) | (.., 0), .. }, .. } => {}
                Step::Launch { kernel, parts, grid } => {
                    let (pointers, count) = self.pointers(parts);
                    guest::launch(&entries[*kernel], *grid, &pointers[..count], stream)?;
                }
            }
        }
        Ok(())
    }

    /// The bytes of a part as they are now.
    #[cfg(test)]
    pub(super) fn bytes(&self, part: usize, length: usize) -> Vec<u8> {
        let words = &self.memory[self.starts[part] / 8..];
        words.iter().flat_map(|word| word.to_le_bytes()).take(length).collect()
    }
}

/// The bases of a call in the order of [`At::base`].
pub(super) fn bases(arena: u64, scratch: u64, counter: u64, call: &[u64]) -> Vec<u64> {
    let mut all = Vec::with_capacity(CALL + call.len());
    all.resize(CALL, 0);
    (all[ARENA], all[SCRATCH], all[COUNTER]) = (arena, scratch, counter);
    all.extend(call);
    all
}
