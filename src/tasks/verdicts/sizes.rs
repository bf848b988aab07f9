//! How large a mask is in the form in which it is passed.
//!
//! Invariant: sizes are those of the tensors that a call is given, as PyTorch and the exported files make them; what a kernel keeps
//! besides is not counted. Must not know words.

use super::{Answer, Dispatched, Facts, Given, How, Verdict};

/// Bytes of an int32.
const INT: u64 = 4;

impl Facts<'_> {
    /// Bytes of the mask that a row of the table is given. None: it is given none, or makes its own.
    pub(super) fn mask_bytes(&self, of: &Verdict) -> Option<u64> {
        let (Answer::Takes(how) | Answer::Dense(how)) = &of.forward else { return None };
        let p = self.problem;
        // what is equal for all entries is passed once
        let batches = if p.mask_per_batch() { p.batch as u64 } else { 1 };
        match how {
            How::EveryBlock(Given::DenseBool) | How::ScoresAnd(_, Given::DenseBool) => {
                let heads = if p.mask_per_head() { p.heads as u64 } else { 1 };
                Some(batches * heads * p.q_len as u64 * p.kv_len as u64)
            }
            How::ListsOrScores(_)
            | How::Lists
            | How::Dispatched(Dispatched::BlockMask | Dispatched::BlockMaskAlone, _)
                if p.mask.is_some() =>
            {
                Some(self.block_mask_bytes())
            }
            How::Ranges(_) => self.lowered.as_ref().ok().map(|lowered| lowered.row_ends().bytes(p.batch)),
            // two ranges and a kind each, which count tokens through all batch entries
            How::Slices(count) => {
                let each = if p.mask_per_batch() { 1 } else { p.batch as u64 };
                Some(*count as u64 * each * 5 * INT)
            }
            How::Bounds(count, _) => Some(batches * p.kv_len as u64 * *count as u64 * INT),
            How::Documents(count, _) => Some(2 * (*count as u64 + 1) * INT),
            _ => None,
        }
    }

    /// create_block_mask's tensors: the partial and the full blocks of each row, and of each column.
    fn block_mask_bytes(&self) -> u64 {
        let p = self.problem;
        let (rows, columns) = (p.q_len.div_ceil(p.block_size.q) as u64, p.kv_len.div_ceil(p.block_size.kv) as u64);
        let masks = |differ: bool, n: usize| if differ { n as u64 } else { 1 };
        let lists = 2 * (2 * rows * columns + rows + columns);
        masks(p.mask_per_batch(), p.batch) * masks(p.mask_per_head(), p.heads) * lists * INT
    }
}
