//! A case's masks compared with PyTorch's: every cell of the dense mask, every listed entry of every BlockMask,
//! sparsity.
//!
//! Invariant: exact; the first difference is reported with its place. Entries that PyTorch leaves unspecified (index
//! entries beyond the count) are not compared. Must not know outputs.

use super::cases::{Arrays, Case};
use crate::analysis::block_mask::{BlockMask, MaskShape};
use crate::base::tensor::Data;
use crate::base::{BlockSize, Control, Diagnostic, HostTensor, Lengths};
use crate::ir::graph::Mod;
use crate::ir::tiles::dense_mask;

/// Arrays of ours, by the names of the file.
pub(super) type Ours = Vec<(String, HostTensor)>;

/// Checks everything the case lists about its mask; differences go into `wrong`. Errors: it cannot be checked at all.
pub(super) fn check(case: &Case, mask: &Mod, arrays: &Arrays, wrong: &mut Vec<Diagnostic>) -> Result<Ours, Diagnostic> {
    let lengths = case.lengths()?;
    let (batch, heads) = case.mask_groups();
    let mut ours = Vec::new();
    let kept = dense_mask(mask, batch, heads, lengths);
    let count = kept.iter().filter(|k| **k != 0).count() as u64;
    if case.mask_true.is_some_and(|want| want != count) {
        let want = case.mask_true.unwrap_or_default();
        wrong.push(differs("mask-differs", format!("the mask keeps {count} cells, PyTorch's keeps {want}")));
    }
    let packed = pack(&kept);
    // a case of gradients need not list its mask
    let theirs = match arrays.find(&format!("{}.mask", case.name))? {
        None if case.grads.is_none() => Some(arrays.get(&format!("{}.mask", case.name))?),
        found => found,
    };
    wrong.extend(theirs.and_then(|theirs| compare_bits(&packed, &theirs, kept.len(), heads, lengths)));
    ours.push((format!("{}.mask", case.name), HostTensor::vector(Data::U8(packed))));
    for (q, kv) in &case.blocks {
        let size = BlockSize { q: *q, kv: *kv };
        ours.extend(check_blocks(case, mask, MaskShape { batch, heads, lengths }, size, arrays, wrong)?);
    }
    Ok(ours)
}

/// 8 cells a byte, lowest bit first.
pub(super) fn pack(cells: &[u8]) -> Vec<u8> {
    cells.chunks(8).map(|eight| eight.iter().enumerate().fold(0, |byte, (i, c)| byte | (c & 1) << i)).collect()
}

fn compare_bits(ours: &[u8], theirs: &HostTensor, cells: usize, heads: usize, lengths: Lengths) -> Option<Diagnostic> {
    let Data::U8(theirs) = theirs.data() else {
        return Some(differs("mask-differs", format!("the reference mask is {}, not uint8", theirs.dtype())));
    };
    if theirs.len() != ours.len() {
        return Some(differs("mask-differs", format!("{} bytes of mask, PyTorch has {}", ours.len(), theirs.len())));
    }
    let bit = |bytes: &[u8], i: usize| bytes[i / 8] >> (i % 8) & 1;
    let mut different = (0..cells).filter(|i| bit(ours, *i) != bit(theirs, *i));
    let first = different.next()?;
    let count = 1 + different.count();
    let (row, kv) = (first / lengths.kv_len, first % lengths.kv_len);
    let (group, q) = (row / lengths.q_len, row % lengths.q_len);
    let (b, h) = (group / heads, group % heads);
    let verb = if bit(theirs, first) != 0 { "keeps" } else { "masks" };
    let place = format!("the first at b {b}, h {h}, q_idx {q}, kv_idx {kv}, which PyTorch {verb}");
    Some(differs("mask-differs", format!("{count} of {cells} cells differ, {place}")))
}

fn check_blocks(
    case: &Case,
    mask: &Mod,
    shape: MaskShape,
    size: BlockSize,
    arrays: &Arrays,
    wrong: &mut Vec<Diagnostic>,
) -> Result<Ours, Diagnostic> {
    let blocks = BlockMask::build(Some(mask), shape, size, &Control::new())?;
    let torch = blocks.torch_arrays()?;
    let fields = torch.fields();
    let mut ours = Vec::new();
    for pair in fields.chunks_exact(2) {
        let [(count_name, counts), (index_name, indices)] = pair else { continue };
        let full = |field: &str| format!("{}.b{size}.{field}", case.name);
        let want = (arrays.get(&full(count_name))?, arrays.get(&full(index_name))?);
        wrong.extend(compare_lists(&format!("{size} {index_name}"), (counts, indices), (&want.0, &want.1)));
        ours.push((full(count_name), (*counts).clone()));
        ours.push((full(index_name), (*indices).clone()));
    }
    wrong.extend(check_sparsity(case, size, blocks.stats().sparsity, blocks.stats().padded_sparsity()));
    Ok(ours)
}

/// The two ways in which versions of PyTorch count agree unless blocks reach beyond the lengths; a case with such a
/// name is compared with the newer way alone.
fn check_sparsity(case: &Case, size: BlockSize, lengths: f64, padded: f64) -> Option<Diagnostic> {
    let near = |want: f64, ours: f64| (want - ours).abs() <= 1e-4;
    let either = case.sparsity(size).filter(|want| !near(*want, lengths) && !near(*want, padded));
    let newer = case.padded_sparsity(size).filter(|want| !near(*want, padded));
    let want = either.or(newer)?;
    let message = format!("sparsity at {size} is {lengths} by the lengths and {padded} padded, PyTorch has {want}");
    Some(differs("blocks-differ", message))
}

/// Counts, and of each row of indices as many as its count.
fn compare_lists(
    name: &str,
    ours: (&HostTensor, &HostTensor),
    theirs: (&HostTensor, &HostTensor),
) -> Option<Diagnostic> {
    if (ours.0.shape(), ours.1.shape()) != (theirs.0.shape(), theirs.1.shape()) {
        let message = format!("{name} has shape {:?}, PyTorch's has {:?}", ours.1.shape(), theirs.1.shape());
        return Some(differs("blocks-differ", message));
    }
    let (counts, want_counts) = (ours.0.to_i64_vec(), theirs.0.to_i64_vec());
    let (indices, want) = (ours.1.to_i64_vec(), theirs.1.to_i64_vec());
    let columns = *ours.1.shape().last().unwrap_or(&0);
    for (row, (count, want_count)) in counts.iter().zip(&want_counts).enumerate() {
        if count != want_count {
            let message = format!("{name} lists {count} blocks in row {row}, PyTorch lists {want_count}");
            return Some(differs("blocks-differ", message));
        }
        let range = row * columns..row * columns + *count as usize;
        if indices[range.clone()] != want[range.clone()] {
            let (got, want) = (&indices[range.clone()], &want[range]);
            return Some(differs("blocks-differ", format!("{name} row {row} is {got:?}, PyTorch's is {want:?}")));
        }
    }
    None
}

fn differs(code: &'static str, message: String) -> Diagnostic {
    Diagnostic::error(code, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_packed_lowest_first_and_the_first_difference_is_placed() {
        assert_eq!(pack(&[1, 0, 0, 0, 0, 0, 0, 1, 0, 1]), [0b1000_0001, 0b10]);
        let lengths = Lengths::new(2, 5).unwrap();
        let theirs = |bits: [u8; 3]| HostTensor::vector(Data::U8(bits.to_vec()));
        let ours = pack(&[0; 20]);
        assert_eq!(compare_bits(&ours, &theirs([0, 0, 0]), 20, 2, lengths), None);
        let why = compare_bits(&ours, &theirs([0, 0b0100_0000, 1]), 20, 2, lengths).unwrap();
        assert_eq!(why.message, "2 of 20 cells differ, the first at b 0, h 1, q_idx 0, kv_idx 4, which PyTorch keeps");
    }

    #[test]
    fn sparsity_is_held_to_the_version_that_printed_it() {
        let case = |key: &str, value: f64| -> Case {
            let text = format!(
                r#"{{"name": "x", "mask": null, "score": null, "B": 1, "H": 1, "Hkv": 1, "q_len": 100, "kv_len": 90,
                    "head_dim": 0, "blocks": [[64, 32]], "{key}": {value}}}"#
            );
            serde_json::from_str(&text).unwrap()
        };
        let wrong =
            |key: &str, value| check_sparsity(&case(key, value), BlockSize { q: 64, kv: 32 }, -36.5, 0.0).is_some();
        assert!(!wrong("sparsity_64x32", -36.5) && !wrong("sparsity_64x32", 0.0) && wrong("sparsity_64x32", 5.0));
        assert!(!wrong("ragged_sparsity_64x32", 0.0) && wrong("ragged_sparsity_64x32", -36.5));
    }

    #[test]
    fn index_entries_beyond_the_count_do_not_matter() {
        let ints = |shape: &[usize], v: &[i32]| HostTensor::new(shape, Data::I32(v.to_vec())).unwrap();
        let (counts, a, b) = (ints(&[1, 1, 1], &[1]), ints(&[1, 1, 1, 2], &[1, 0]), ints(&[1, 1, 1, 2], &[1, 7]));
        assert_eq!(compare_lists("x", (&counts, &a), (&counts, &b)), None);
        let two = ints(&[1, 1, 1], &[2]);
        assert_eq!(
            compare_lists("x", (&two, &a), (&two, &b)).unwrap().message,
            "x row 0 is [1, 0], PyTorch's is [1, 7]"
        );
    }
}
