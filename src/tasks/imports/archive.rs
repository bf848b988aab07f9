//! Zip archives in the form of NumPy and PyTorch: names and bytes.
//!
//! Invariant: no allocation exceeds the archive's stated sizes and a limit. Must not know the members' meaning.

use crate::base::Diagnostic;
use std::collections::BTreeMap;
use std::path::Path;

/// Most bytes of all members together.
const MOST: usize = 1 << 31;

/// The members of an archive. Errors: it is not an archive, is truncated, or has an unsupported compression.
pub(super) fn members(path: &Path, bytes: &[u8]) -> Result<BTreeMap<String, Vec<u8>>, Diagnostic> {
    let broken = |why: &str| {
        Diagnostic::error("import-archive", format!("{} is not a readable archive: {why}", path.display()))
            .hint("write it with numpy.savez(path, mask=mask) or torch.save(mask, path)")
    };
    let number = |at: usize, n: usize| -> Option<usize> {
        let part = bytes.get(at..at.checked_add(n)?)?;
        usize::try_from(part.iter().rev().fold(0u64, |all, b| all << 8 | u64::from(*b))).ok()
    };
    let last = bytes.len().saturating_sub(22);
    let end = (last.saturating_sub(1 << 16)..=last).rev().find(|at| bytes[*at..].starts_with(b"PK\x05\x06"));
    let end = end.ok_or_else(|| broken("it has no list of members"))?;
    let cut = || broken("it was cut off");
    let (count, mut at) = (number(end + 10, 2).ok_or_else(cut)?, number(end + 16, 4).ok_or_else(cut)?);
    let (mut found, mut total) = (BTreeMap::new(), 0usize);
    for _ in 0..count {
        if !bytes.get(at..).is_some_and(|b| b.starts_with(b"PK\x01\x02")) {
            return Err(broken("its list of members is damaged"));
        }
        let field = |offset, n| number(at + offset, n).ok_or_else(cut);
        let (method, packed, size) = (field(10, 2)?, field(20, 4)?, field(24, 4)?);
        let (name, extra, comment, start) = (field(28, 2)?, field(30, 2)?, field(32, 2)?, field(42, 4)?);
        if size == 0xffff_ffff || start == 0xffff_ffff {
            return Err(broken("it is larger than 4 GiB"));
        }
        let text = bytes.get(at + 46..at + 46 + name).ok_or_else(cut)?;
        let key = String::from_utf8_lossy(text).into_owned();
        // the member's own header may be longer than listed
        let own = number(start + 26, 2).zip(number(start + 28, 2)).ok_or_else(cut)?;
        let from = start + 30 + own.0 + own.1;
        let data = bytes.get(from..from + packed).ok_or_else(cut)?;
        total = total.saturating_add(size);
        if total > MOST {
            return Err(broken("its members are larger than 2 GiB together"));
        }
        let data = match method {
            0 => data.to_vec(),
            8 => miniz_oxide::inflate::decompress_to_vec_with_limit(data, size)
                .map_err(|_| broken("a member is damaged"))?,
            _ => return Err(broken("a member is packed by an unknown method")),
        };
        if data.len() != size {
            return Err(broken("a member has another length than listed"));
        }
        found.insert(key, data);
        at += 46 + name + extra + comment;
    }
    Ok(found)
}
