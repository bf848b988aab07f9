//! Zip archives in the form of NumPy and PyTorch: names, and the bytes of the members that are asked for.
//!
//! Invariant: only a requested member is unpacked, and none is larger than a mask can be. Must not know the members' meaning.

use crate::base::Diagnostic;
use std::collections::BTreeMap;
use std::path::Path;

/// Most bytes of a member: two for each cell of the largest mask.
const MOST: usize = 2 * super::cells::MOST;

/// An archive whose members are still packed.
pub(super) struct Archive<'a> {
    path: &'a Path,
    members: BTreeMap<String, Member<'a>>,
}

struct Member<'a> {
    method: usize,
    data: &'a [u8],
    size: usize,
}

fn broken(path: &Path, why: &str) -> Diagnostic {
    Diagnostic::error("import-archive", format!("{} is not a readable archive: {why}", path.display()))
        .hint("write it with numpy.savez(path, mask=mask) or torch.save(mask, path)")
}

impl<'a> Archive<'a> {
    /// Reads the list of members. Errors: it is not an archive, or is truncated.
    pub(super) fn open(path: &'a Path, bytes: &'a [u8]) -> Result<Archive<'a>, Diagnostic> {
        let broken = |why: &str| broken(path, why);
        let number = |at: usize, n: usize| -> Option<usize> {
            let part = bytes.get(at..at.checked_add(n)?)?;
            usize::try_from(part.iter().rev().fold(0u64, |all, b| all << 8 | u64::from(*b))).ok()
        };
        let last = bytes.len().saturating_sub(22);
        let end = (last.saturating_sub(1 << 16)..=last).rev().find(|at| bytes[*at..].starts_with(b"PK\x05\x06"));
        let end = end.ok_or_else(|| broken("it has no list of members"))?;
        let cut = || broken("it was cut off");
        let (count, mut at) = (number(end + 10, 2).ok_or_else(cut)?, number(end + 16, 4).ok_or_else(cut)?);
        let mut members = BTreeMap::new();
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
            // the member's own header may be longer than listed
            let own = number(start + 26, 2).zip(number(start + 28, 2)).ok_or_else(cut)?;
            let from = start + 30 + own.0 + own.1;
            let data = bytes.get(from..from + packed).ok_or_else(cut)?;
            members.insert(String::from_utf8_lossy(text).into_owned(), Member { method, data, size });
            at += 46 + name + extra + comment;
        }
        Ok(Archive { path, members })
    }

    /// The members' names, sorted.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.members.keys().map(String::as_str)
    }

    /// The bytes of a member; None if there is none of this name. Errors: it is damaged, has an unsupported compression or
    /// is larger than any mask.
    pub(super) fn member(&self, name: &str) -> Result<Option<Vec<u8>>, Diagnostic> {
        let Some(Member { method, data, size }) = self.members.get(name) else { return Ok(None) };
        let broken = |why: &str| broken(self.path, &format!("{name} {why}"));
        if *size > MOST {
            return Err(broken(&format!("is larger than {} MiB", MOST >> 20)));
        }
        let data = match method {
            0 => data.to_vec(),
            8 => miniz_oxide::inflate::decompress_to_vec_with_limit(data, *size).map_err(|_| broken("is damaged"))?,
            _ => return Err(broken("is packed by an unknown method")),
        };
        if data.len() != *size {
            return Err(broken("has another length than listed"));
        }
        Ok(Some(data))
    }
}

#[cfg(test)]
mod tests {
    use super::Archive;
    use std::path::Path;

    /// An archive of members stored without packing, as (name, stated size, bytes).
    fn zip(members: &[(&str, u32, &[u8])]) -> Vec<u8> {
        let (mut out, mut list) = (Vec::new(), Vec::new());
        for (name, size, data) in members {
            let start = out.len() as u32;
            let sizes = [(data.len() as u32).to_le_bytes(), size.to_le_bytes()].concat();
            let length = (name.len() as u16).to_le_bytes();
            out.extend([&b"PK\x03\x04"[..], &[0; 14], &sizes, &length, &[0; 2], name.as_bytes(), data].concat());
            let listed =
                [&b"PK\x01\x02"[..], &[0; 16], &sizes, &length, &[0; 12], &start.to_le_bytes(), name.as_bytes()];
            list.extend(listed.concat());
        }
        let (count, start) = ((members.len() as u16).to_le_bytes(), (out.len() as u32).to_le_bytes());
        let end = [&b"PK\x05\x06"[..], &[0; 4], &count, &count, &(list.len() as u32).to_le_bytes(), &start, &[0; 2]];
        [out, list, end.concat()].concat()
    }

    /// A member that nobody asks for costs nothing, however large it says it is.
    #[test]
    fn only_what_is_asked_for_is_unpacked() {
        let bytes = zip(&[("mask.npy", 3, b"abc"), ("bomb.npy", 4_000_000_000, b"x"), ("short.npy", 7, b"ab")]);
        let archive = Archive::open(Path::new("a.npz"), &bytes).unwrap();
        assert_eq!(archive.names().collect::<Vec<_>>(), ["bomb.npy", "mask.npy", "short.npy"]);
        assert_eq!(archive.member("mask.npy").unwrap().as_deref(), Some(&b"abc"[..]));
        assert_eq!(archive.member("none").unwrap(), None);
        assert!(archive.member("bomb.npy").unwrap_err().message.contains("larger than 512 MiB"));
        assert!(archive.member("short.npy").unwrap_err().message.contains("another length"));
    }
}
