//! `Params` and `Mods` as bytes for a launch, and the block lists on the device.
//!
//! Invariant: the fields and their order are those of kernels/params.cuh; a test reads the header and compares. Must
//! not know which kernel is launched.

use crate::backends::cuda::device::gpu::{Buffer, Gpu};
use crate::backends::cuda::device::tensors::{InputSet, Outputs, Strides};
use crate::backends::cuda::emit::functions::Emitted;
use crate::backends::cuda::emit::layout::capture_bytes;
use crate::backends::cuda::emit::mods::LiftedMods;
use crate::backends::cuda::lists::plan::Plan;
use crate::backends::cuda::toolchain::compile::Program;
use crate::backends::cuda::variant::spec::ScoreKind;
use crate::base::Diagnostic;
use crate::problem::Problem;
use std::sync::Arc;

/// A struct of little-endian fields without padding, and its bytes.
macro_rules! packed {
    ($(#[$note:meta])* $name:ident { $($field:ident: $ty:ty),* $(,)? }) => {
        $(#[$note])*
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        pub(crate) struct $name {
            $(pub $field: $ty,)*
        }

        impl $name {
            /// As the kernel reads it.
            pub(crate) fn bytes(&self) -> Vec<u8> {
                let mut bytes = Vec::new();
                $(bytes.extend(self.$field.to_le_bytes());)*
                bytes
            }

            /// Names and types of the fields, in order: for bundles.
            #[allow(dead_code)] // not every struct goes into a bundle
            pub(crate) fn layout() -> Vec<(&'static str, &'static str)> {
                vec![$((stringify!($field), stringify!($ty))),*]
            }

            /// Names and bytes of the fields, in order.
            #[cfg(test)]
            pub(crate) fn fields() -> Vec<(&'static str, usize)> {
                vec![$((stringify!($field), size_of::<$ty>())),*]
            }
        }
    };
}

packed! {
    /// kernels/params.cuh's struct; addresses are u64, 0 where unused.
    Params {
        q: u64, k: u64, v: u64, o: u64, lse: u64, tile_order: u64, row_start: u64, runs: u64, dense: u64,
        bitmap_start: u64, bitmap_ids: u64, bitmaps: u64, scratch: u64,
        q_b: i64, q_h: i64, q_s: i64, k_b: i64, k_h: i64, k_s: i64, v_b: i64, v_h: i64, v_s: i64,
        o_b: i64, o_h: i64, o_s: i64, dense_b: i64, dense_h: i64, dense_q: i64,
        batch: i32, heads: i32, group: i32, q_len: i32, kv_len: i32, q_tiles: i32, mask_batch: i32, mask_heads: i32,
        section: i32, first: i32, scale: f32, lowest: f32,
        // the driver copies as many bytes as the kernel takes, so that one without this never sees it
        max_scores: u64,
    }
}

packed! {
    /// kernels/pipeline_sm90.cuh's struct; addresses are u64, 0 where unused.
    Hopper {
        kv_num_tiles: u64, counter: u64, pieces: u64, parts: u64, arrived: u64,
        units: u32, whole: u32,
    }
}

packed! {
    /// kernels/decode_sm80.cu's struct; addresses are u64, 0 where unused.
    Decode {
        parts: u64, part_lse: u64,
        kv_heads: i32, rows: i32, row_tiles: i32, splits: i32,
        part_max: u64,
    }
}

pub(crate) use packed;

impl Params {
    /// Everything that the problem decides; addresses, lists and sections are still 0.
    pub(crate) fn of_problem(problem: &Problem) -> Params {
        let p = problem.spec();
        let int = |n: usize| n as i32; // validated: lengths, heads and batches fit in 31 bits
        let mut params = Params {
            batch: int(p.batch),
            heads: int(p.heads),
            group: int(problem.group()),
            q_len: int(p.q_len),
            kv_len: int(p.kv_len),
            mask_batch: 1,
            mask_heads: 1,
            scale: problem.scale() as f32,
            ..Params::default()
        };
        let strides = |heads, tokens, dim| {
            let Strides { b, h, s } = Strides::new(p.layout, heads, tokens, dim);
            (b as i64, h as i64, s as i64)
        };
        (params.q_b, params.q_h, params.q_s) = strides(p.heads, p.q_len, p.head_dim);
        (params.k_b, params.k_h, params.k_s) = strides(p.kv_heads, p.kv_len, p.head_dim);
        (params.v_b, params.v_h, params.v_s) = strides(p.kv_heads, p.kv_len, p.head_dim_v);
        (params.o_b, params.o_h, params.o_s) = strides(p.heads, p.q_len, p.head_dim_v);
        params
    }

    /// The same for a copy of the inputs and an output.
    pub(crate) fn with_tensors(self, set: &InputSet, outputs: &Outputs) -> Params {
        Params {
            q: set.q.address(),
            k: set.k.address(),
            v: set.v.address(),
            o: outputs.out.address(),
            lse: outputs.lse.address(),
            max_scores: outputs.max_scores.as_ref().map_or(0, Buffer::address),
            ..self
        }
    }

    /// The same with the result of [`upload_kept`], if there is any.
    pub(crate) fn with_kept(self, held: &[Buffer]) -> Params {
        match held {
            [start, ids, words, ..] => {
                let [bitmap_start, bitmap_ids, bitmaps] = [start, ids, words].map(Buffer::address);
                Params { bitmap_start, bitmap_ids, bitmaps, ..self }
            }
            _ => self,
        }
    }

    /// The same with block lists.
    pub(crate) fn with_lists(self, lists: &Lists) -> Params {
        Params {
            tile_order: lists.tile_order.address(),
            row_start: lists.row_start.address(),
            runs: lists.runs.address(),
            q_tiles: lists.q_tiles as i32,
            mask_batch: lists.batch as i32,
            mask_heads: lists.heads as i32,
            ..self
        }
    }
}

/// Uploads the kept cells of partial tiles, if a variant takes them as data: `bitmap_start`, `bitmap_ids`, `bitmaps`.
pub(crate) fn upload_kept(gpu: &Arc<Gpu>, arrays: Option<[&[u32]; 3]>) -> Result<Vec<Buffer>, Diagnostic> {
    let arrays = arrays.into_iter().flatten();
    arrays.map(|words| gpu.upload(words, "what the partial tiles keep")).collect()
}

/// Block lists on the device.
pub(crate) struct Lists {
    tile_order: Buffer,
    row_start: Buffer,
    runs: Buffer,
    /// Query tiles of a list.
    pub q_tiles: usize,
    /// Distinct batch entries.
    pub batch: usize,
    /// Distinct heads.
    pub heads: usize,
}

impl Lists {
    /// Uploads a plan.
    pub(crate) fn upload(gpu: &Arc<Gpu>, plan: &Plan) -> Result<Lists, Diagnostic> {
        let what = "the block lists";
        Ok(Lists {
            tile_order: gpu.upload(&plan.tile_order, what)?,
            row_start: gpu.upload(&plan.row_start, what)?,
            runs: gpu.upload(&plan.runs, what)?,
            q_tiles: plan.q_tiles,
            batch: plan.batch,
            heads: plan.heads,
        })
    }
}

/// The mods' struct for a launch, with the captured tensors that it points to.
pub(crate) struct DeviceMods {
    argument: Vec<u8>,
    _captures: Vec<Buffer>,
    _by_pointer: Option<Buffer>,
}

impl DeviceMods {
    /// Uploads what the program's mods capture. Errors: a captured int beyond int32, no memory.
    pub(crate) fn upload(gpu: &Arc<Gpu>, program: &Program) -> Result<DeviceMods, Diagnostic> {
        Self::of(gpu, &program.mods, &program.emitted, program.spec.score == ScoreKind::Linked)
    }

    /// The same of mods as they were emitted; `by_pointer`: at any size.
    pub(crate) fn of(
        gpu: &Arc<Gpu>,
        mods: &LiftedMods,
        emitted: &Emitted,
        by_pointer: bool,
    ) -> Result<DeviceMods, Diagnostic> {
        Self::with_gradients(gpu, mods, emitted, by_pointer, &[])
    }

    /// The same with the addresses of captured tensors' gradients.
    pub(crate) fn with_gradients(
        gpu: &Arc<Gpu>,
        mods: &LiftedMods,
        emitted: &Emitted,
        by_pointer: bool,
        gradients: &[u64],
    ) -> Result<DeviceMods, Diagnostic> {
        let captured = mods.captures();
        let mut buffers = Vec::with_capacity(captured.len());
        for (name, tensor) in &captured {
            buffers.push(gpu.upload(&capture_bytes(name, tensor)?, &format!("captured tensor `{name}`"))?);
        }
        let addresses: Vec<u64> = buffers.iter().map(Buffer::address).chain(gradients.iter().copied()).collect();
        let tensors: Vec<_> = captured.iter().map(|(_, tensor)| *tensor).collect();
        let layout = &emitted.layout;
        let bytes = layout.fill(&addresses, &tensors, &mods.ints, &mods.floats);
        if !layout.by_pointer() && !by_pointer {
            return Ok(DeviceMods { argument: bytes, _captures: buffers, _by_pointer: None });
        }
        let buffer = gpu.upload(&bytes, "the mods' constants")?;
        let argument = buffer.address().to_le_bytes().to_vec();
        Ok(DeviceMods { argument, _captures: buffers, _by_pointer: Some(buffer) })
    }

    /// The bytes of the kernel's parameter: the struct, or its address.
    pub(crate) fn argument(&self) -> &[u8] {
        &self.argument
    }
}

/// Names and sizes of a struct's fields, read from the text of kernels.
#[cfg(test)]
pub(crate) fn declared(text: &str, name: &str) -> Vec<(String, usize)> {
    let (_, text) = text.split_once(&format!("struct {name} {{")).expect("the struct is declared");
    let mut fields = Vec::new();
    for line in text.split("};").next().unwrap_or("").lines() {
        let line = line.split("//").next().unwrap_or("").trim().trim_end_matches(';');
        let line = line.trim_start_matches("const ");
        let Some((ty, names)) = line.split_once(' ') else { continue };
        let size = match ty {
            "u32" if !names.starts_with('*') => 4,
            "u16" | "u32" | "u64" | "u8" | "Run" | "Item" | "Part" | "Piece" | "void" => 8,
            "int" | "float" if names.starts_with('*') => 8,
            "i64" => 8,
            "int" | "float" => 4,
            _ => continue,
        };
        fields.extend(names.split(',').map(|n| (n.trim().trim_start_matches('*').to_string(), size)));
    }
    fields
}

#[cfg(test)]
mod tests {
    use crate::backends::cuda::launch::params::*;
    use crate::backends::testing::spec;
    use crate::base::{DType, Layout};

    fn header(name: &str) -> Vec<(String, usize)> {
        let text = concat!(
            include_str!("../../../../kernels/params.cuh"),
            include_str!("../../../../kernels/pipeline_sm90.cuh"),
            include_str!("../../../../kernels/decode_sm80.cu")
        );
        declared(text, name)
    }

    #[test]
    fn the_struct_is_the_headers() {
        let owned =
            |fields: Vec<(&str, usize)>| fields.into_iter().map(|(n, s)| (n.to_string(), s)).collect::<Vec<_>>();
        assert_eq!(owned(Hopper::fields()), header("Hopper"));
        assert_eq!(owned(Decode::fields()), header("Decode"));
        let wanted = header("Params");
        assert_eq!(owned(Params::fields()), wanted);
        let bytes = Params { q: 7, dense_q: -2, batch: 5, scale: 1.5, ..Params::default() }.bytes();
        assert_eq!(bytes.len(), wanted.iter().map(|f| f.1).sum::<usize>());
        assert_eq!(bytes.len() % 8, 0);
        let at = |name: &str| {
            let index = wanted.iter().position(|f| f.0 == name).unwrap();
            wanted[..index].iter().map(|f| f.1).sum::<usize>()
        };
        assert_eq!(bytes[at("q")..][..8], 7u64.to_le_bytes());
        assert_eq!(bytes[at("dense_q")..][..8], (-2i64).to_le_bytes());
        assert_eq!(bytes[at("batch")..][..4], 5i32.to_le_bytes());
        assert_eq!(bytes[at("scale")..][..4], 1.5f32.to_le_bytes());
    }

    #[test]
    fn strides_follow_the_layout_and_the_padding() {
        let mut spec = spec(2, 6, 3, 100, 70, 20);
        spec.dtype = DType::BF16;
        spec.head_dim_v = 40;
        let of = |layout| {
            let spec = crate::problem::ProblemSpec { layout, ..spec.clone() };
            Params::of_problem(&Problem::new(spec).unwrap())
        };
        let p = of(Layout::Bhsd);
        assert_eq!((p.q_b, p.q_h, p.q_s), (6 * 100 * 24, 100 * 24, 24));
        assert_eq!((p.v_b, p.v_h, p.v_s), (3 * 70 * 40, 70 * 40, 40));
        assert_eq!((p.group, p.q_len, p.kv_len), (2, 100, 70));
        let p = of(Layout::Bshd);
        assert_eq!((p.k_b, p.k_h, p.k_s), (3 * 70 * 24, 24, 3 * 24));
        assert_eq!((p.o_b, p.o_h, p.o_s), (6 * 100 * 40, 40, 6 * 40));
    }
}
