//! The readers: npy, PNG, dense masks and block lists in safetensors, each to cells.
//!
//! Invariant: a broken file is a diagnostic that names it, and no allocation exceeds its own size. Must not know
//! documents.

use super::cells::{Cells, MOST};
use crate::backends::inputs::host_tensor;
use crate::base::{BlockSize, Diagnostic, HostTensor};
use crate::export::picture;
use crate::worker::npy;
use safetensors::SafeTensors;
use std::collections::HashMap;
use std::path::Path;

/// A NumPy array: bools, ints (0 drops), or floats as [`of_floats`] reads them.
pub(super) fn npy(path: &Path, bytes: &[u8]) -> Result<Cells, Diagnostic> {
    let hint = "write it with numpy.save(path, mask) where mask is bool, [q_len, kv_len]";
    of_tensor(path, &path.display().to_string(), &npy::parse(path, bytes).map_err(|why| why.hint(hint))?)
}

/// Cells of a dense mask of any dtype.
pub(super) fn of_tensor(path: &Path, what: &str, tensor: &HostTensor) -> Result<Cells, Diagnostic> {
    if tensor.numel() > MOST {
        return Err(too_large(path, tensor.numel()));
    }
    let all = 0..tensor.numel();
    let kept = match tensor.dtype().is_float() {
        true => of_floats(what, all.map(|i| tensor.float_at(i)))?,
        // 1 and -1 would both count as kept
        false if all.clone().any(|i| tensor.int_at(i) < 0) => return Err(bias(what)),
        false => all.map(|i| u8::from(tensor.int_at(i) != 0)).collect(),
    };
    Cells::dense(what, tensor.shape(), kept)
}

/// Floats: an additive mask (0 keeps, -10000 and below drops), or 1 keeps and 0 drops. Errors: other values, a bias.
fn of_floats(what: &str, values: impl Iterator<Item = f64> + Clone) -> Result<Vec<u8>, Diagnostic> {
    let (mut adds, mut ones) = (true, true);
    values.clone().for_each(|x| {
        adds &= x == 0.0 || x <= -1e4;
        ones &= x == 0.0 || x == 1.0;
    });
    // all zeros: nothing is added anywhere
    match (adds, ones) {
        (true, _) => Ok(values.map(|x| u8::from(x == 0.0)).collect()),
        (_, true) => Ok(values.map(|x| u8::from(x == 1.0)).collect()),
        _ => Err(bias(what)),
    }
}

fn bias(what: &str) -> Diagnostic {
    let message = format!("{what} contains a bias, not a mask: values other than 0, 1 and -inf");
    Diagnostic::error("import-bias", message)
        .hint("load it in code: def score_mod(score, b, h, q_idx, kv_idx): return score + bias[q_idx, kv_idx]")
}

/// A picture, one pixel per cell: pixels lighter than middle grey and not transparent are kept.
pub(super) fn png(path: &Path, bytes: &[u8]) -> Result<Cells, Diagnostic> {
    let broken = |why: String| {
        Diagnostic::error("import-png", format!("{} is not a readable PNG picture: {why}", path.display()))
            .hint("a mask is a picture with a pixel for each query (down) and key (across), white for kept cells")
    };
    let cursor = std::io::Cursor::new(bytes);
    let reader = image::ImageReader::with_format(cursor, image::ImageFormat::Png);
    let (width, height) = reader.into_dimensions().map_err(|e| broken(e.to_string()))?;
    if width as usize * height as usize > MOST {
        return Err(too_large(path, width as usize * height as usize));
    }
    let image =
        image::load_from_memory_with_format(bytes, image::ImageFormat::Png).map_err(|e| broken(e.to_string()))?;
    let own = [picture::FULL, picture::EMPTY];
    if image.to_rgb8().pixels().any(|p| own.contains(&p.0)) {
        let message = format!("{} is a picture that Maskloom drew: its pixels are not cells", path.display());
        return Err(
            Diagnostic::error("import-own-picture", message).hint("open the design next to it: NAME.maskloom.json")
        );
    }
    let kept = image.to_luma_alpha8().pixels().map(|p| u8::from(p.0[0] >= 128 && p.0[1] >= 128)).collect();
    Cells::dense(&path.display().to_string(), &[height as usize, width as usize], kept)
}

fn too_large(path: &Path, cells: usize) -> Diagnostic {
    Diagnostic::error(
        "import-too-large",
        format!("{} has {cells} cells, above the limit of a document ({MOST})", path.display()),
    )
    .hint("write the mask as a formula, or import block lists instead of cells")
}

/// transformers' `attention_mask` [batch, tokens], 1 for real tokens: no query attends to keys of padding. None: it is
/// a table of queries and keys.
pub(super) fn padding(path: &Path, tensor: &HostTensor) -> Result<Option<Cells>, Diagnostic> {
    let &[batch, tokens] = tensor.shape() else { return Ok(None) };
    if batch == tokens {
        return Ok(None);
    }
    let cells = batch.saturating_mul(tokens).saturating_mul(tokens);
    if cells > MOST {
        return Err(too_large(path, cells));
    }
    let real = of_tensor(path, "attention_mask", tensor)?.kept;
    let kept = real.chunks(tokens).flat_map(|row| std::iter::repeat_n(row, tokens).flatten().copied()).collect();
    Cells::dense("attention_mask", &[batch, 1, tokens, tokens], kept).map(Some)
}

/// The only tensor of a file, if it is a mask by dtype or by name.
pub(super) fn dense(path: &Path, file: &SafeTensors) -> Result<Option<Cells>, Diagnostic> {
    let [(name, view)] = &file.tensors()[..] else { return Ok(None) };
    let named = name.to_lowercase().contains("mask");
    if !(2..=4).contains(&view.shape().len()) || !(named || view.dtype() == safetensors::Dtype::BOOL) {
        return Ok(None);
    }
    let tensor = host_tensor(view)?;
    if name == "attention_mask"
        && let Some(cells) = padding(path, &tensor)?
    {
        return Ok(Some(cells));
    }
    of_tensor(path, &format!("`{name}` of {}", path.display()), &tensor).map(Some)
}

/// The known facts about block lists.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lists {
    /// BLOCK_SIZE; None: PyTorch's default 128 x 128, which is reported.
    pub block_size: Option<BlockSize>,
    /// Tokens; None: whole blocks.
    pub q_len: Option<usize>,
    pub kv_len: Option<usize>,
}

/// A BlockMask's lists in safetensors. Lengths and block size come from the file's own metadata, else from `block_size`.
pub(super) fn blocks(
    path: &Path,
    file: &SafeTensors,
    metadata: Option<&HashMap<String, String>>,
    block_size: Option<BlockSize>,
) -> Result<Cells, Diagnostic> {
    let tensor = |name: &str| file.tensor(name).ok().map(|view| host_tensor(&view)).transpose();
    let number = |name: &str| metadata?.get(name)?.parse::<usize>().ok().filter(|n| *n > 0);
    let own = number("block_size_q").zip(number("block_size_kv")).map(|(q, kv)| BlockSize { q, kv });
    let lists = Lists { block_size: own.or(block_size), q_len: number("q_len"), kv_len: number("kv_len") };
    block_lists(path, &tensor, &lists)
}

/// Block lists as PyTorch names them.
pub(super) fn block_lists(
    path: &Path,
    tensor: &dyn Fn(&str) -> Result<Option<HostTensor>, Diagnostic>,
    lists: &Lists,
) -> Result<Cells, Diagnostic> {
    let broken = |why: &str| {
        Diagnostic::error("import-blocks", format!("{} contains no readable block lists: {why}", path.display()))
            .hint("kv_num_blocks is [B, H, rows], kv_indices [B, H, rows, columns], full_kv_* the same, all int32")
    };
    let indices = tensor("kv_indices")?.ok_or_else(|| broken("there is no kv_indices"))?;
    let &[batch, heads, rows, cols] = indices.shape() else { return Err(broken("kv_indices has no 4 dimensions")) };
    if indices.numel() == 0 {
        return Err(broken("kv_indices is empty"));
    }
    let cell = lists.block_size.unwrap_or(BlockSize::DEFAULT);
    let (q_len, kv_len) = (lists.q_len.unwrap_or(rows * cell.q), lists.kv_len.unwrap_or(cols * cell.kv));
    if (q_len.div_ceil(cell.q), kv_len.div_ceil(cell.kv)) != (rows, cols) {
        return Err(broken("its lengths do not fit its lists"));
    }
    let mut kept = vec![0u8; indices.numel()];
    let mut fill = |counts: &HostTensor, indices: &HostTensor| -> Result<usize, Diagnostic> {
        if counts.shape() != [batch, heads, rows] || indices.shape() != [batch, heads, rows, cols] {
            return Err(broken("shapes differ"));
        }
        for row in 0..counts.numel() {
            for at in 0..(counts.int_at(row).max(0) as usize).min(cols) {
                let block = indices.int_at(row * cols + at);
                let block = usize::try_from(block).ok().filter(|b| *b < cols);
                kept[row * cols + block.ok_or_else(|| broken("an index is out of range"))?] = 1;
            }
        }
        Ok((0..counts.numel()).map(|row| counts.int_at(row).max(0) as usize).sum())
    };
    let counts = tensor("kv_num_blocks")?.ok_or_else(|| broken("there is no kv_num_blocks"))?;
    let partial = fill(&counts, &indices)?;
    if let (Some(counts), Some(indices)) = (tensor("full_kv_num_blocks")?, tensor("full_kv_indices")?) {
        fill(&counts, &indices)?;
    }
    let guessed = lists.block_size.is_none();
    Ok(Cells { batch, heads, q_len, kv_len, cell, kept, partial, guessed })
}
