//! Files that become documents: dense masks (npy, npz, pt, safetensors, PNG), BlockMasks, exported block lists, exported modules and folders.
//!
//! Invariant: reading changes nothing; missing information (the kept cells of a partial block) is reported with the
//! document. Must not know its callers.

mod archive;
mod cells;
mod module;
pub mod named;
mod pickle;
mod read;
mod torch_file;

use crate::base::{BlockSize, Diagnostic};
use crate::document::model::Document;
use crate::document::page;
use crate::worker::{files, folders};
use cells::Cells;
use safetensors::SafeTensors;
use std::path::{Path, PathBuf};

/// A document made from a file, with notes.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// One layer that keeps the file's cells.
    pub document: Document,
    /// The information that the file lacks.
    pub notes: Vec<Diagnostic>,
}

/// Reads a file with a mask. None: it is of another kind (a document, code, a configuration, q, k and v). Errors: its
/// first problem.
pub fn import(path: &Path) -> Result<Option<Imported>, Diagnostic> {
    import_blocks(path, None)
}

/// The same, with the user's values for the missing information of block lists.
pub fn import_blocks(path: &Path, block_size: Option<BlockSize>) -> Result<Option<Imported>, Diagnostic> {
    match ending(path).as_str() {
        "py" => module::module(path),
        "html" | "htm" => shared(path).map(Some),
        "npy" | "png" | "npz" | "pt" | "pth" | "safetensors" => of_bytes(path, &files::read(path)?, block_size),
        _ => Ok(None),
    }
}

/// The same from the bytes of a file of such a name.
#[cfg(any(test, feature = "testing"))]
pub fn import_bytes(path: &Path, bytes: &[u8]) -> Result<Option<Imported>, Diagnostic> {
    of_bytes(path, bytes, None)
}

fn ending(path: &Path) -> String {
    path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default()
}

fn of_bytes(path: &Path, bytes: &[u8], block_size: Option<BlockSize>) -> Result<Option<Imported>, Diagnostic> {
    let name = path.file_stem().map_or("mask".into(), |n| n.to_string_lossy().into_owned());
    let cells = match ending(path).as_str() {
        "npy" => read::npy(path, bytes)?,
        "png" => read::png(path, bytes)?,
        "npz" => npz(path, bytes)?,
        "safetensors" => match from_tensors(path, bytes, block_size)? {
            Some(cells) => cells,
            None => return Ok(None),
        },
        _ => torch_file::mask(path, bytes, block_size)?,
    };
    let mut notes = reported(&cells);
    if cells.partial > 0 {
        let mut message =
            format!("{} partial blocks are kept whole: block lists do not contain their cells", cells.partial);
        let beside = preset_beside(path).unwrap_or_else(|why| {
            message.push_str(&format!("; {why}"));
            None
        });
        let note = Diagnostic::note("import-partial-blocks", message);
        notes.push(match beside {
            Some(preset) => note.hint(format!("the design itself is in {}: open this file", preset.display())),
            None => note.hint("open the design's .maskloom.json for the exact mask"),
        });
    }
    let document = cells.into_document(&name)?;
    Ok(Some(Imported { document, notes }))
}

/// The design of a page that Maskloom shared. Errors: the first mistake.
fn shared(path: &Path) -> Result<Imported, Diagnostic> {
    let named = |why: Diagnostic| Diagnostic { message: format!("{}: {}", path.display(), why.message), ..why };
    let text = files::read_text(path)?;
    let none = || {
        Diagnostic::error("page-design", "the file is no HTML page").hint("open the page that was shared, unchanged")
    };
    let found = page::read(&text).ok_or_else(|| named(none()))?;
    let document = found.map_err(|mut all| named(all.swap_remove(0)))?;
    Ok(Imported { document, notes: Vec::new() })
}

/// The assumptions.
fn reported(cells: &Cells) -> Vec<Diagnostic> {
    let mut notes = Vec::new();
    if cells.guessed {
        let message = "the block lists contain no BLOCK_SIZE: PyTorch's default of 128 x 128 is used";
        notes.push(
            Diagnostic::warning("import-block-size", message).hint("set it: --block-size N, or --block-size QxKV"),
        );
    }
    // a row for each sample of a batch
    if cells.cell.q == 1 && cells.heads * cells.batch == 1 && cells.q_len * 8 <= cells.kv_len {
        let message = format!("the table of {} x {} was read as queries x keys", cells.q_len, cells.kv_len);
        notes.push(
            Diagnostic::warning("import-two-axes", message)
                .hint("if it is a padding mask [batch, tokens], name the tensor attention_mask"),
        );
    }
    if cells.cell.q == 1 && cells.batch == 1 && cells.heads > 1 {
        let message = format!("the first axis was read as {} heads", cells.heads);
        notes.push(Diagnostic::note("import-heads", message).hint("a batch is [batch, 1, q_len, kv_len]"));
    }
    notes
}

/// One mask of a NumPy archive: the only array, or the only one named like a mask.
fn npz(path: &Path, bytes: &[u8]) -> Result<Cells, Diagnostic> {
    let archive = archive::Archive::open(path, bytes)?;
    let named: Vec<&str> = archive.names().filter(|name| name.to_lowercase().contains("mask")).collect();
    let chosen = if named.is_empty() { archive.names().collect() } else { named };
    let [name] = chosen[..] else {
        let names: Vec<&str> = archive.names().map(|n| n.trim_end_matches(".npy")).collect();
        let message = format!("{} contains {}: it does not name the mask", path.display(), names.join(", "));
        return Err(Diagnostic::error("import-no-mask", message).hint("numpy.savez(path, mask=mask)"));
    };
    let data = &archive.member(name)?.unwrap_or_default();
    if name.to_lowercase().starts_with("attention_mask")
        && let Some(cells) = read::padding(path, &crate::worker::npy::parse(path, data)?)?
    {
        return Ok(cells);
    }
    read::npy(path, data)
}

/// The cells of a safetensors file: exported block lists, or one dense mask.
fn from_tensors(path: &Path, bytes: &[u8], block_size: Option<BlockSize>) -> Result<Option<Cells>, Diagnostic> {
    let broken = |why: String| {
        Diagnostic::error("safetensors", format!("{} is not a safetensors file: {why}", path.display()))
            .hint("write it with safetensors.torch.save_file({\"mask\": mask}, path)")
    };
    let file = SafeTensors::deserialize(bytes).map_err(|e| broken(e.to_string()))?;
    if file.tensor("kv_indices").is_ok() {
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(|e| broken(e.to_string()))?;
        return read::blocks(path, &file, header.metadata().as_ref(), block_size).map(Some);
    }
    read::dense(path, &file)
}

/// The message about a safetensors file without a mask: its tensors, as (name, shape).
pub fn no_mask<'a>(path: &Path, tensors: impl Iterator<Item = (&'a str, &'a [usize])>) -> Diagnostic {
    const SHOWN: usize = 4;
    let mut listed: Vec<String> = tensors.map(|(name, shape)| format!("`{name}` {shape:?}")).collect();
    let more = listed.len().saturating_sub(SHOWN);
    listed.truncate(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let held = if listed.is_empty() { "nothing".to_string() } else { listed.join(", ") };
    let message = format!("{} contains {held}{more}, which is not a mask", path.display());
    Diagnostic::error("import-no-mask", message).hint(
        "a mask is the only tensor of its file, bool or named `mask`: save_file({\"mask\": mask}, path); q, k and v are \
         inputs of a run (--inputs F.safetensors)",
    )
}

/// The exported design in a file's folder, if there is exactly one. Errors: the folder cannot be listed.
pub fn preset_beside(path: &Path) -> Result<Option<PathBuf>, String> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let found = folders::entries(folder).map_err(|why| format!("{} cannot be listed: {why}", folder.display()))?;
    let is_preset = |p: &PathBuf| p.file_name().is_some_and(|n| n.to_string_lossy().ends_with(".maskloom.json"));
    let mut found = found.into_iter().filter(is_preset);
    Ok(found.next().filter(|_| found.next().is_none()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::tensor::Data;
    use crate::base::{Control, HostTensor};
    use crate::document::compile::{BuiltIn, compile};
    use crate::document::from_document;
    use crate::document::library;
    use crate::document::model::MaskContent;
    use crate::ir::cell::{Cell, eval};
    use crate::problem::Problem;

    fn problem(document: &Document) -> Problem {
        let compiled = compile(document, &BuiltIn);
        assert!(!compiled.has_errors(), "{:?}", compiled.all_diagnostics().collect::<Vec<_>>());
        from_document(document, &compiled).expect("a problem")
    }

    /// Every cell of an imported mask compared with the written one.
    fn check(imported: &Imported, batch: usize, heads: usize, keep: impl Fn(usize, usize, usize, usize) -> bool) {
        let problem = problem(&imported.document);
        let mask = problem.mask.clone().expect("a mask");
        for (b, h) in (0..batch).flat_map(|b| (0..heads).map(move |h| (b, h))) {
            for (q, kv) in (0..problem.q_len).flat_map(|q| (0..problem.kv_len).map(move |kv| (q, kv))) {
                let cell = Cell { b: b as i64, h: h as i64, q_idx: q as i64, kv_idx: kv as i64, score: 0.0 };
                assert_eq!(eval(&mask, &cell).as_bool(), keep(b, h, q, kv), "{b} {h} {q} {kv}");
            }
        }
    }

    fn written(name: &str, bytes: &[u8]) -> Result<Option<Imported>, Diagnostic> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("written");
        import(&path)
    }

    /// An npy file of version 1.
    fn npy(descr: &str, fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
        let fortran = if fortran { "True" } else { "False" };
        let header = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    }

    fn noise(q: usize, kv: usize) -> bool {
        (q * 2654435761 + kv * 40503 + (q ^ kv) * 97) % 7 < 3
    }

    #[test]
    fn numpy_masks_come_in_by_cells_whatever_their_order_and_dtype() {
        let bytes: Vec<u8> = (0..30 * 41).map(|i| u8::from(noise(i / 41, i % 41))).collect();
        let imported = written("a.npy", &npy("|b1", false, "(30, 41)", &bytes)).expect("read").expect("a mask");
        check(&imported, 1, 1, |_, _, q, kv| noise(q, kv));
        let columns: Vec<u8> = (0..30 * 41).map(|i| u8::from(noise(i % 30, i / 30))).collect();
        let imported = written("a.npy", &npy("|u1", true, "(30, 41)", &columns)).expect("read").expect("a mask");
        check(&imported, 1, 1, |_, _, q, kv| noise(q, kv));
        let additive: Vec<u8> = (0..2 * 9 * 9)
            .flat_map(|i| if noise(i / 9, i % 9) { 0.0f32 } else { f32::NEG_INFINITY }.to_le_bytes())
            .collect();
        let imported = written("a.npy", &npy("<f4", false, "(1, 2, 9, 9)", &additive)).expect("read").expect("a mask");
        assert_eq!(imported.document.settings.heads, 2);
        check(&imported, 1, 2, |_, h, q, kv| noise(h * 9 + q, kv));
    }

    #[test]
    fn a_plain_shape_becomes_a_painted_layer_that_can_be_edited() {
        let bytes: Vec<u8> = (0..64 * 64).map(|i| u8::from(i / 64 / 16 == i % 64 / 16)).collect();
        let imported = written("a.npy", &npy("|b1", false, "(64, 64)", &bytes)).expect("read").expect("a mask");
        assert!(matches!(imported.document.layers[0].content, MaskContent::Painted(_)));
        check(&imported, 1, 1, |_, _, q, kv| q / 16 == kv / 16);
    }

    #[test]
    fn pictures_keep_what_is_light() {
        let image =
            image::GrayImage::from_fn(41, 30, |x, y| image::Luma([u8::from(noise(y as usize, x as usize)) * 255]));
        let mut bytes = std::io::Cursor::new(Vec::new());
        image.write_to(&mut bytes, image::ImageFormat::Png).expect("encoded");
        let imported = written("a.png", &bytes.into_inner()).expect("read").expect("a mask");
        check(&imported, 1, 1, |_, _, q, kv| noise(q, kv));
    }

    #[test]
    fn exported_block_lists_come_back_block_by_block() {
        let mut document = library::preset("sliding_window").expect("there").document().expect("loads");
        document.axes = crate::document::model::Axes::same(crate::document::model::Axis::tokens(300));
        document.settings.block_size = BlockSize { q: 32, kv: 64 };
        let MaskContent::Pattern(code) = &mut document.layers[0].content else { panic!("a pattern") };
        code.args.insert("window".into(), crate::document::model::ArgValue::Int(90));
        let original = problem(&document);
        let file = crate::export::block_mask("x_blocks.safetensors", &original, &Control::new()).expect("made");
        let imported = written("x_blocks.safetensors", &file.bytes).expect("read").expect("blocks");
        assert_eq!((imported.notes.len(), problem(&imported.document).q_len), (1, 300));
        let mask = original.mask.clone().expect("a mask");
        let mut any = [false; 10 * 5];
        for (q, kv) in (0..300).flat_map(|q| (0..300).map(move |kv| (q, kv))) {
            let cell = Cell { q_idx: q as i64, kv_idx: kv as i64, ..Cell::default() };
            any[q / 32 * 5 + kv / 64] |= eval(&mask, &cell).as_bool();
        }
        check(&imported, 1, 1, |_, _, q, kv| any[q / 32 * 5 + kv / 64]);
    }

    #[test]
    fn dense_masks_in_safetensors_come_in_and_real_tensors_do_not() {
        let mask = HostTensor::new([20, 20], Data::Bool((0..400).map(|i| u8::from(noise(i / 20, i % 20))).collect()));
        let mask = mask.expect("a tensor");
        let file = |name: &str| crate::worker::tensors::write([(name.to_string(), &mask)]).expect("written");
        let imported = written("m.safetensors", &file("attention_mask")).expect("read").expect("a mask");
        check(&imported, 1, 1, |_, _, q, kv| noise(q, kv));
        let q = HostTensor::new([1, 2, 3, 4], Data::F32(vec![0.5; 24])).expect("a tensor");
        let other = crate::worker::tensors::write([("q".to_string(), &q), ("k".to_string(), &q)]).expect("written");
        assert_eq!(written("qkv.safetensors", &other).expect("read"), None);
    }

    #[test]
    fn broken_and_unfit_files_are_told() {
        let code = |name: &str, bytes: &[u8]| written(name, bytes).expect_err("refused").code.to_string();
        assert_eq!(code("a.npy", b"nothing"), "npy");
        assert_eq!(code("a.npy", &npy("|b1", false, "(30, 41)", &[1; 10])), "npy");
        assert_eq!(code("a.npy", &npy("|b1", false, "(30,)", &[1; 30])), "import-shape");
        assert_eq!(code("a.npy", &npy("|b1", false, "(0, 4)", &[])), "import-shape");
        assert_eq!(code("a.npy", &npy("<f4", false, "(1, 2)", &[0, 0, 0, 64, 0, 0, 128, 191])), "import-bias");
        assert_eq!(code("a.npy", &npy("|i1", false, "(1, 2)", &[1, 255])), "import-bias");
        assert_eq!(code("a.png", b"\x89PNG"), "import-png");
        let own = crate::export::picture(
            "p.png",
            None,
            crate::base::Lengths::new(9, 9).unwrap(),
            &Default::default(),
            &Control::new(),
        );
        assert_eq!(code("p.png", &own.expect("drawn").bytes), "import-own-picture");
        assert_eq!(code("a.safetensors", b"abc"), "safetensors");
        assert_eq!(written("a.txt", b"").expect("another kind"), None);
    }
}
