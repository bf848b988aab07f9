//! The derivative of a score mod as CUDA C++: `score_grad`, and `CaptureSums`, by which captured tensors get theirs.
//!
//! Invariant: a cell that the mask drops adds nothing, whatever its derivative is. Must not know kernels beyond the
//! contract of `captures.cuh`.

use super::functions::{Accuracy, Emitter, Function, offset};
use super::hoist::Holder;
use super::mods::{LiftedGradient, LiftedRead};
use crate::ir::graph::NodeId;
use std::fmt::Write;

const VALUES: &str = "const HeadValues head, const RowValues row, const ColumnValues column";
const CELL: &str = "int b, int h, int q_idx, int kv_idx";
/// How a cell calls what is emitted for a read.
const AT_CELL: &str = "(m, r, raw, scale, head, row, column, b, h, q_idx, kv_idx)";

impl Emitter<'_> {
    /// Everything that the backward kernels want of a score mod besides itself.
    pub(super) fn gradient(&self, text: &mut String, gradient: &LiftedGradient) {
        if let Some(root) = gradient.score {
            self.of_cell(text, "float score_grad", &[root], |e, f| e.operand(root, f));
        }
        for (at, read) in gradient.reads.iter().enumerate() {
            self.of_cell(text, &format!("float read_value{at}"), &[read.value], |e, f| e.operand(read.value, f));
            let place =
                |e: &Emitter, f: &Function| offset(read.capture.0, read.index.iter().map(|id| e.operand(*id, f)));
            self.of_cell(text, &format!("int read_place{at}"), &read.index, place);
        }
        if !gradient.captures.is_empty() {
            sums(text, &gradient.reads);
        }
    }

    /// A function of a cell.
    fn of_cell(&self, text: &mut String, name: &str, roots: &[NodeId], result: impl Fn(&Self, &Function) -> String) {
        let head = format!("{name}(const Mods &m, int way, float raw, float scale, {VALUES}, {CELL})");
        let function = Function { head: &head, roots, given: &Holder::ALL, accuracy: Accuracy::Fast };
        let result = result(self, &function);
        self.function(text, &function, &result);
    }
}

/// Sums stay in a thread where all of its cells of a head, or of a key, add to one element.
fn sums(text: &mut String, reads: &[LiftedRead]) {
    text.push_str("#line 1 \"mods\"\nstruct CaptureSums {\n");
    for (at, read) in reads.iter().enumerate().filter(|(_, read)| !read.by_query) {
        let _ = match read.by_key {
            true => writeln!(text, "    float sum{at}[2] = {{0.0f, 0.0f}};"),
            false => writeln!(text, "    float sum{at} = 0.0f;"),
        };
    }
    text.push_str(
        "    __device__ __forceinline__ void cell(const Mods &m, float d_score, float raw, float scale, const HeadValues &head, \
         const RowValues &row, const ColumnValues &column, int b, int h, int q_idx, int kv_idx, int r) {\n        \
         if (d_score == 0.0f) return;\n",
    );
    for (at, read) in reads.iter().enumerate() {
        let (slot, value) = (read.slot, format!("d_score * read_value{at}{AT_CELL}"));
        let _ = match (read.by_query, read.by_key) {
            (true, _) => writeln!(text, "        atomicAdd(m.g{slot} + read_place{at}{AT_CELL}, {value});"),
            (false, true) => writeln!(text, "        sum{at}[r] += {value};"),
            (false, false) => writeln!(text, "        sum{at} += {value};"),
        };
    }
    text.push_str(
        "    }\n    __device__ __forceinline__ void end_head(const Mods &m, int b, int h, int kv_idx, int kv_len) {\n        \
         const HeadValues head = head_values(m, b, h);\n        \
         const RowValues row = row_values(m, head, b, h, 0);\n        const int lane = threadIdx.x % 32;\n",
    );
    for (at, read) in reads.iter().enumerate().filter(|(_, read)| !read.by_query) {
        let place = |key: &str| {
            let column = format!("column_values(m, head, b, h, {key})");
            format!("m.g{} + read_place{at}(m, 0, 0.0f, 1.0f, head, row, {column}, b, h, 0, {key})", read.slot)
        };
        let _ = match read.by_key {
            true => (0..2).try_for_each(|r| {
                let key = format!("kv_idx + {}", 8 * r);
                writeln!(
                    text,
                    "        {{\n            const float sum = sum_of_quad(sum{at}[{r}]);\n            \
                     if (lane % 4 == 0 && {key} < kv_len) atomicAdd({}, sum);\n        }}",
                    place(&key)
                )
            }),
            false => writeln!(
                text,
                "        {{\n            const float sum = sum_of_warp(sum{at});\n            \
                 if (lane == 0) atomicAdd({}, sum);\n        }}",
                place("kv_idx")
            ),
        };
    }
    text.push_str("    }\n};\n");
}
