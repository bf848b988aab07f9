//! A cubin's own data about its kernels: registers, static shared memory, stack. For compilers without a log.
//!
//! Invariant: any bytes are accepted; bytes that are not a complete cubin give zeros. Must not know compilers or
//! devices.

pub(crate) mod sass;

use super::ptxas::Resources;

/// Attributes of `.nv.info`: pairs of a function's symbol and a value.
const REGISTERS: u8 = 0x2f;
const FRAME_SIZE: u8 = 0x11;
/// A record with its own payload; the other formats have their value in the header.
const WITH_PAYLOAD: u8 = 4;
const SECTION_BYTES: usize = 64;
const SYMBOL_BYTES: usize = 24;

/// Resources of `entry`. Cubins do not distinguish spills from other locals: the whole frame counts as spilled.
pub(crate) fn resources(cubin: &[u8], entry: &str) -> Resources {
    read(cubin, entry).unwrap_or_default()
}

/// The instructions of `entry`; None if it is missing.
pub(crate) fn code<'a>(cubin: &'a [u8], entry: &str) -> Option<&'a [u8]> {
    Some(Sections::of(cubin)?.named(&format!(".text.{entry}"))?.bytes)
}

fn read(cubin: &[u8], entry: &str) -> Option<Resources> {
    let sections = Sections::of(cubin)?;
    let symbols = sections.named(".symtab")?;
    let names = sections.at(symbols.link)?;
    let function_of = |symbol: usize| {
        let record = symbols.bytes.get(symbol * SYMBOL_BYTES..)?;
        text(names.bytes, int(record, 0, 4)?)
    };
    let mut found = Resources::default();
    let mut rest = sections.named(".nv.info")?.bytes;
    while let (Some([format, attribute]), Some(size)) = (rest.get(..2), int(rest, 2, 2)) {
        let size = if *format == WITH_PAYLOAD { size } else { 0 };
        let record = rest.get(4..4 + size)?;
        if *format == WITH_PAYLOAD && size >= 8 && function_of(int(record, 0, 4)?) == Some(entry.as_bytes()) {
            let value = int(record, 4, 4)? as u32;
            match *attribute {
                REGISTERS => found.registers = value,
                FRAME_SIZE => (found.stack_bytes, found.spill_bytes) = (value, value),
                _ => {}
            }
        }
        rest = &rest[4 + size..];
    }
    if let Some(shared) = sections.named(&format!(".nv.shared.{entry}")) {
        found.shared_bytes = shared.size as u32;
    }
    Some(found)
}

/// The section table of a 64-bit little-endian ELF file.
struct Sections<'a> {
    file: &'a [u8],
    table: usize,
    count: usize,
    names: usize,
}

#[derive(Clone, Copy)]
struct Section<'a> {
    /// Empty if the section has no bytes in the file.
    bytes: &'a [u8],
    size: usize,
    link: usize,
}

impl<'a> Sections<'a> {
    fn of(file: &'a [u8]) -> Option<Self> {
        let is_ours = file.get(..6)? == [0x7f, b'E', b'L', b'F', 2, 1];
        let sections = Sections { file, table: int(file, 40, 8)?, count: int(file, 60, 2)?, names: int(file, 62, 2)? };
        is_ours.then_some(sections)
    }

    fn header(&self, index: usize) -> Option<&'a [u8]> {
        self.file.get(self.table.checked_add(index.checked_mul(SECTION_BYTES)?)?..)?.get(..SECTION_BYTES)
    }

    fn at(&self, index: usize) -> Option<Section<'a>> {
        const NO_BITS: usize = 8;
        let header = self.header(index)?;
        let (from, size) = (int(header, 24, 8)?, int(header, 32, 8)?);
        let bytes = match int(header, 4, 4)? {
            NO_BITS => &[],
            _ => self.file.get(from..from.checked_add(size)?)?,
        };
        Some(Section { bytes, size, link: int(header, 40, 4)? })
    }

    fn named(&self, name: &str) -> Option<Section<'a>> {
        let names = self.at(self.names)?.bytes;
        let is_it = |index: &usize| {
            let offset = self.header(*index).and_then(|header| int(header, 0, 4));
            offset.and_then(|offset| text(names, offset)) == Some(name.as_bytes())
        };
        self.at((0..self.count).find(is_it)?)
    }
}

/// A little-endian number of `width` bytes.
fn int(bytes: &[u8], at: usize, width: usize) -> Option<usize> {
    let bytes = bytes.get(at..at.checked_add(width)?)?;
    Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | usize::from(*byte)))
}

/// The text up to the next zero.
fn text(bytes: &[u8], at: usize) -> Option<&[u8]> {
    bytes.get(at..)?.split(|byte| *byte == 0).next()
}

#[cfg(test)]
mod tests {
    use super::super::compile::compile;
    use super::super::nvrtc::Nvrtc;
    use super::super::ptxas;
    use crate::backends::cuda::choose::tests::{causal, problem};
    use crate::backends::cuda::toolchain::elf::*;
    use crate::base::BackendName;

    #[test]
    fn what_is_no_cubin_gives_nothing() {
        for bytes in [&b""[..], b"\x7fELF", b"ELF", &[0x7f, b'E', b'L', b'F', 2, 1, 0, 0][..], &[0xff; 200]] {
            assert_eq!(resources(bytes, "flex_forward"), Resources::default());
        }
    }

    #[test]
    fn cubins_say_what_the_log_says_and_survive_damage() {
        let Ok(nvrtc) = Nvrtc::get() else { return maskloom_testing::needs::missing("nvrtc", "no NVRTC") };
        for (arch, entry) in [("sm_80", "flex_forward"), ("sm_89", "flex_forward"), ("sm_90a", "flex_hopper")] {
            let (artefact, cubin) = compile(&problem(Some(causal()), None), BackendName::Flex, arch, nvrtc).unwrap();
            let (reported, read) = (ptxas::resources(&artefact.log, entry), resources(&cubin, entry));
            assert!(read.registers > 0, "{arch}");
            assert_eq!((read.registers, read.stack_bytes), (reported.registers, reported.stack_bytes), "{arch}");
            assert_eq!(resources(&cubin, "absent").registers, 0);
            for cut in (0..cubin.len()).step_by(97) {
                resources(&cubin[..cut], entry);
                let mut damaged = cubin.clone();
                damaged[cut] ^= 0xff;
                resources(&damaged, entry);
            }
        }
    }
}
