//! Results computed once per problem and shared by all users: its block mask at each tile size, and its pattern.
//!
//! Invariant: a tile size is computed at most once unless two threads need it at the same moment; the cached value
//! equals a fresh computation. No thread waits for the pool inside a `OnceLock` initialiser: a mask is built outside
//! the lock and stored afterwards. Must not know its callers.

use super::Problem;
use super::pattern::Pattern;
use crate::analysis::block_mask::{BlockMask, MaskShape};
use crate::base::{BlockSize, Control, Diagnostic};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The plans of one mask over one extent; copies share them.
#[derive(Clone, Debug, Default)]
pub struct MaskPlans {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    blocks: Mutex<HashMap<BlockSize, BlockMask>>,
    pattern: OnceLock<Pattern>,
}

impl PartialEq for MaskPlans {
    /// Plans follow from the problem: they make no difference.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl MaskPlans {
    /// The blocks at a tile size, if known.
    pub fn known(&self, size: BlockSize) -> Option<BlockMask> {
        self.shared.blocks.lock().unwrap_or_else(PoisonError::into_inner).get(&size).cloned()
    }

    /// Stores blocks that were computed elsewhere; the first ones stay.
    pub fn keep(&self, size: BlockSize, found: BlockMask) -> BlockMask {
        let mut blocks = self.shared.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        blocks.entry(size).or_insert(found).clone()
    }
}

impl Problem {
    /// Extent of the mask: batch entries and heads between which it differs, 1 if it does not read them.
    pub fn mask_shape(&self) -> MaskShape {
        MaskShape::of(self.mask.as_deref(), (self.batch, self.heads), self.lengths())
    }

    /// Masks that differ: batch entries times heads of [`Problem::mask_shape`].
    pub fn mask_copies(&self) -> usize {
        let shape = self.mask_shape();
        shape.batch * shape.heads
    }

    /// The known facts of the mask.
    pub fn plans(&self) -> &MaskPlans {
        &self.plans
    }

    /// The mask's blocks at a tile size, counted when they are first wanted. Errors: those of [`BlockMask::build`].
    pub fn block_mask(&self, size: BlockSize, control: &Control) -> Result<BlockMask, Diagnostic> {
        match self.plans.known(size) {
            Some(found) => Ok(found),
            None => {
                let found = BlockMask::build(self.mask.as_deref(), self.mask_shape(), size, control)?;
                Ok(self.plans.keep(size, found))
            }
        }
    }

    /// The form of the mask for a kernel without block lists. Errors: those of [`BlockMask::build`].
    pub fn pattern(&self, control: &Control) -> Result<Pattern, Diagnostic> {
        match self.plans.shared.pattern.get() {
            Some(found) => Ok(*found),
            None => {
                let found = super::pattern::find(self, control)?;
                Ok(*self.plans.shared.pattern.get_or_init(|| found))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::graph::ModKind;
    use crate::ir::random;
    use crate::problem::ProblemSpec;

    fn problem() -> Problem {
        let mask = random::mask(3, &random::Options { batch: 2, heads: 3, ..random::Options::new(150, 170) });
        assert_eq!(mask.kind, ModKind::Mask);
        Problem::new(ProblemSpec { mask: Some(Arc::new(mask)), ..ProblemSpec::plain(2, (3, 3), (150, 170), 16) })
            .expect("valid")
    }

    #[test]
    fn blocks_are_counted_once_and_shared_with_copies() {
        let (problem, control) = (problem(), Control::new());
        let copy = problem.clone();
        let size = BlockSize::square(32);
        let fresh = BlockMask::build(problem.mask.as_deref(), problem.mask_shape(), size, &control).unwrap();
        let builds = BlockMask::builds_here();
        let found = problem.block_mask(size, &control).unwrap();
        assert_eq!(found, fresh);
        assert_eq!(copy.block_mask(size, &control).unwrap(), fresh);
        assert_eq!(problem.without_aux().block_mask(size, &control).unwrap(), fresh);
        assert_eq!(BlockMask::builds_here().len(), builds.len() + 1);
        copy.block_mask(BlockSize::square(64), &control).unwrap();
        assert_eq!(BlockMask::builds_here().len(), builds.len() + 2);
    }

    #[test]
    fn a_cancelled_count_is_not_kept() {
        let (problem, control) = (problem(), Control::new());
        control.cancel();
        let size = BlockSize::square(1);
        if problem.block_mask(size, &control).is_err() {
            assert!(problem.plans().known(size).is_none());
        }
        assert!(problem.block_mask(size, &Control::new()).is_ok());
    }

    #[test]
    fn the_shape_has_what_the_mask_reads() {
        let plain = Problem::new(ProblemSpec::plain(2, (4, 2), (8, 9), 16)).unwrap();
        assert_eq!((plain.mask_shape().batch, plain.mask_shape().heads, plain.mask_copies()), (1, 1, 1));
        assert_eq!((plain.mask_shape().lengths.q_len, plain.mask_shape().lengths.kv_len), (8, 9));
    }
}
