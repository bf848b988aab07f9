//! NumPy's `.npy` files as captured tensors.
//!
//! Invariant: the numbers of the file, row-major, or a diagnostic that names it. Must not know their use.

use crate::base::tensor::Data;
use crate::base::{DType, Diagnostic, HostTensor};
use npyz::{NpyFile, Order};
use std::io::Read;
use std::path::Path;

/// The array in a file's bytes.
pub fn parse(path: &Path, bytes: &[u8]) -> Result<HostTensor, Diagnostic> {
    if !is_countable(bytes) {
        return Err(broken(path, "its shape has too many elements"));
    }
    // the reader takes as much memory as the header says that it has
    if header_end(bytes).is_some_and(|end| end > bytes.len() as u64) {
        return Err(broken(path, "its header is longer than the file"));
    }
    if nesting(bytes) > MOST_NESTING {
        return Err(broken(path, "its header has brackets within brackets"));
    }
    let file = NpyFile::new(bytes).map_err(|e| broken(path, &e.to_string()))?;
    let described = file.dtype().descr();
    let Stored { size: stored, most_first, dtype } = Stored::of(described.trim_matches('\'')).ok_or_else(|| {
        Diagnostic::error("npy-dtype", format!("{} contains {described}, which no mod can read", path.display()))
            .hint("save it as int64, int32, float32 or bool: `np.save(path, array.astype(np.int64))`")
    })?;
    let shape: Vec<usize> = file.shape().iter().map(|n| usize::try_from(*n).unwrap_or(usize::MAX)).collect();
    let by_columns = file.order() == Order::Fortran && shape.len() > 1;
    let size = shape.iter().try_fold(stored, |size, n| size.checked_mul(*n));
    let mut data = Vec::new();
    file.into_inner().read_to_end(&mut data).map_err(|e| broken(path, &e.to_string()))?;
    if size != Some(data.len()) {
        return Err(broken(path, &format!("its shape {shape:?} does not fit {} bytes", data.len())));
    }
    let mut data = if by_columns { row_major(&data, &shape, stored) } else { data };
    if most_first {
        data.chunks_exact_mut(stored).for_each(<[u8]>::reverse);
    }
    if stored < dtype.size() {
        // unsigned numbers in the next wider signed ones
        let widened = data.chunks_exact(stored).flat_map(|n| n.iter().copied().chain(vec![0; dtype.size() - stored]));
        data = widened.collect();
    }
    HostTensor::new(shape, Data::from_le_bytes(dtype, &data)?)
}

/// Whether the number of elements that the header states can be held in a number: the reader multiplies without a look.
fn is_countable(bytes: &[u8]) -> bool {
    let header = String::from_utf8_lossy(&bytes[..bytes.len().min(1 << 12)]).into_owned();
    let shape = header.split("'shape'").nth(1).and_then(|rest| rest.split('(').nth(1)?.split(')').next());
    let extents = shape.unwrap_or_default().split(',').map(str::trim).filter(|n| !n.is_empty());
    extents.map(str::parse::<u64>).try_fold(1u64, |all, n| all.checked_mul(n.ok()?)).is_some()
}

/// Where the header says that the numbers begin; None: there is none.
fn header_end(bytes: &[u8]) -> Option<u64> {
    let (version, stated) = (*bytes.get(6)?, bytes.get(8..12)?);
    Some(match version {
        1 => 10 + u64::from(u16::from_le_bytes([stated[0], stated[1]])),
        _ => 12 + u64::from(u32::from_le_bytes([stated[0], stated[1], stated[2], stated[3]])),
    })
}

/// Brackets within one another in a header. NumPy's own need two, and a structured array's five; the reader tries each level of
/// braces several ways, and so takes exponentially long.
const MOST_NESTING: usize = 6;

/// How deep the header's brackets are at most.
fn nesting(bytes: &[u8]) -> usize {
    let end = header_end(bytes).map_or(bytes.len(), |end| bytes.len().min(end as usize));
    let (mut now, mut most) = (0usize, 0);
    for byte in &bytes[..end] {
        match byte {
            b'{' | b'[' | b'(' => now += 1,
            b'}' | b']' | b')' => now = now.saturating_sub(1),
            _ => {}
        }
        most = most.max(now);
    }
    most
}

fn broken(path: &Path, why: &str) -> Diagnostic {
    Diagnostic::error("npy", format!("{} is not a NumPy array: {why}", path.display()))
        .hint("write it with numpy.save(path, array)")
}

/// The layout of elements in a file.
struct Stored {
    /// Bytes of one.
    size: usize,
    /// Whether the most significant byte comes first.
    most_first: bool,
    /// Their type here.
    dtype: DType,
}

impl Stored {
    fn of(described: &str) -> Option<Stored> {
        // single bytes have no order
        let rest = described.strip_prefix(['<', '>', '|'])?;
        let dtype = match rest {
            "b1" => DType::Bool,
            "u1" => DType::U8,
            "i1" => DType::I8,
            "i2" => DType::I16,
            "i4" | "u2" => DType::I32,
            "i8" | "u4" => DType::I64,
            "f2" => DType::F16,
            "f4" => DType::F32,
            "f8" => DType::F64,
            _ => return None,
        };
        let size = match rest.strip_prefix('u') {
            Some(size) => size.parse().ok()?,
            None => dtype.size(),
        };
        Some(Stored { size, most_first: described.starts_with('>'), dtype })
    }
}

/// Elements of `size` bytes, first index fastest, as last index fastest.
fn row_major(data: &[u8], shape: &[usize], size: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len());
    let mut index = vec![0; shape.len()];
    for _ in 0..data.len() / size {
        let at = index.iter().zip(shape).rev().fold(0, |at, (i, n)| at * n + i) * size;
        out.extend_from_slice(&data[at..at + size]);
        for (i, n) in index.iter_mut().zip(shape).rev() {
            *i += 1;
            if *i < *n {
                break;
            }
            *i = 0;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let header = format!("{header}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    }

    fn parsed(header: &str, data: &[u8]) -> Result<HostTensor, String> {
        parse(Path::new("a.npy"), &file(header, data)).map_err(|d| d.code.to_string())
    }

    /// Found by fuzzing: 28 braces held the reader for minutes.
    #[test]
    fn brackets_within_brackets_are_not_tried() {
        for open in ["{", "[", "("] {
            assert_eq!(parsed(&format!("{{'shape': {}", open.repeat(9000)), &[]).unwrap_err(), "npy");
        }
        let structured = "{'descr': [('a', '<f4', (2, 3))], 'fortran_order': False, 'shape': (0,), }";
        assert_eq!(parsed(structured, &[]).unwrap_err(), "npy-dtype");
    }

    /// Found by fuzzing: 20 bytes that say to begin with 4 GiB of header.
    #[test]
    fn a_header_that_is_longer_than_its_file_takes_no_memory() {
        for head in [&b"\x93NUMPY\x02\x00\xf6\xff\xff\xff{'descr'"[..], b"\x93NUMPY\x01\x00\xff\xff{'des"] {
            let why = parse(Path::new("a.npy"), head).unwrap_err();
            assert!(why.message.contains("its header is longer than the file"), "{}", why.message);
        }
        assert_eq!(parse(Path::new("a.npy"), b"\x93NUMPY\x02\x00\xf6").unwrap_err().code, "npy");
    }

    #[test]
    fn arrays_are_read_in_either_order_and_refused_in_words() {
        let numbers: Vec<u8> = (0..6i32).flat_map(i32::to_le_bytes).collect();
        let rows = parsed("{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }", &numbers).unwrap();
        assert_eq!(rows, HostTensor::new([2, 3], Data::I32((0..6).collect())).unwrap());
        let columns = parsed("{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3), }", &numbers).unwrap();
        assert_eq!(columns, HostTensor::new([2, 3], Data::I32(vec![0, 2, 4, 1, 3, 5])).unwrap());
        let swapped: Vec<u8> = (0..6i32).flat_map(i32::to_be_bytes).collect();
        let swapped = parsed("{'descr': '>i4', 'fortran_order': False, 'shape': (2, 3), }", &swapped).unwrap();
        assert_eq!(swapped, rows);
        let unsigned = parsed("{'descr': '<u2', 'fortran_order': False, 'shape': (2,), }", &[1, 0, 255, 255]).unwrap();
        assert_eq!(unsigned, HostTensor::vector(Data::I32(vec![1, 65_535])));
        let flags = parsed("{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }", &[1, 0, 1]).unwrap();
        assert_eq!(flags, HostTensor::vector(Data::Bool(vec![1, 0, 1])));
        let short = "{'descr': '<i8', 'fortran_order': False, 'shape': (4,), }";
        assert_eq!(parsed(short, &numbers), Err("npy".into()));
        let endless = "{'descr': '|b1', 'fortran_order': False, 'shape': (99999999999, 99999999999), }";
        assert_eq!(parsed(endless, &[1; 9]), Err("npy".into()));
        let complex = "{'descr': '<c16', 'fortran_order': False, 'shape': (0,), }";
        assert_eq!(parsed(complex, &[]), Err("npy-dtype".into()));
        assert_eq!(parse(Path::new("a.npy"), b"nonsense").unwrap_err().code, "npy");
    }
}
