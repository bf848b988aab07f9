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
            each_read(text, &gradient.reads);
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

/// For eager: what every read gets of a cell: `add(captured tensor, read, whether its element depends on the key, element, part)`.
fn each_read(text: &mut String, reads: &[LiftedRead]) {
    text.push_str(
        "#line 1 \"mods\"\ntemplate <class Add> __device__ __forceinline__ void each_read(const Mods &m, float d_score, float raw, float scale, \
         const HeadValues &head, const RowValues &row, const ColumnValues &column, int b, int h, int q_idx, int kv_idx, Add add) {\n    \
         const int r = 0;\n",
    );
    for (at, LiftedRead { slot, by_key, .. }) in reads.iter().enumerate() {
        let _ = writeln!(
            text,
            "    add({slot}, {at}, {by_key}, read_place{at}{AT_CELL}, d_score * read_value{at}{AT_CELL});"
        );
    }
    text.push_str("}\n");
}

/// For kernels that keep tiles: sums stay in a thread where all of its cells of a head, of a key or of a query add to one element.
fn sums(text: &mut String, reads: &[LiftedRead]) {
    text.push_str("#line 1 \"mods\"\n#ifndef ML_EAGER\nstruct CaptureSums {\n");
    for (at, read) in reads.iter().enumerate() {
        let _ = match (read.by_query, read.by_key) {
            (false, false) => writeln!(text, "    float sum{at} = 0.0f;"),
            (false, true) | (true, false) => writeln!(text, "    float sum{at}[2] = {{0.0f, 0.0f}};"),
            (true, true) => Ok(()),
        };
    }
    text.push_str(
        "    __device__ __forceinline__ void cell(const Mods &m, float d_score, float raw, float scale, const HeadValues &head, \
         const RowValues &row, const ColumnValues &column, int b, int h, int q_idx, int kv_idx, int r, int e) {\n        \
         if (d_score == 0.0f) return;\n",
    );
    for (at, read) in reads.iter().enumerate() {
        let (slot, value) = (read.slot, format!("d_score * read_value{at}{AT_CELL}"));
        let _ = match (read.by_query, read.by_key) {
            (true, true) => writeln!(text, "        atomicAdd(m.g{slot} + read_place{at}{AT_CELL}, {value});"),
            (true, false) => writeln!(text, "        sum{at}[e] += {value};"),
            (false, true) => writeln!(text, "        sum{at}[r] += {value};"),
            (false, false) => writeln!(text, "        sum{at} += {value};"),
        };
    }
    text.push_str("    }\n");
    end_queries(text, reads);
    end_head(text, reads);
    text.push_str("};\n#endif\n");
}

/// What the cells of eight queries add to elements of these leaves the warp.
fn end_queries(text: &mut String, reads: &[LiftedRead]) {
    text.push_str(
        "    __device__ __forceinline__ void end_queries(const Mods &m, const HeadValues &head, int b, int h, int first, int q_len) {\n        \
         const int lane = threadIdx.x % 32, q_idx = first + (lane & 4) / 4;\n",
    );
    for (at, read) in reads.iter().enumerate().filter(|(_, read)| read.by_query && !read.by_key) {
        let _ = writeln!(
            text,
            "        {{\n            const float sum = sum_of_keys(sum{at});\n            \
             sum{at}[0] = sum{at}[1] = 0.0f;\n            \
             if (lane < 8 && sum != 0.0f && q_idx < q_len)\n                \
             atomicAdd(m.g{} + read_place{at}(m, 0, 0.0f, 1.0f, head, row_values(m, head, b, h, q_idx), \
             column_values(m, head, b, h, 0), b, h, q_idx, 0), sum);\n        }}",
            read.slot
        );
    }
    text.push_str("    }\n");
}

/// What all cells of a head add to elements of it, or of its keys, leaves the warp.
fn end_head(text: &mut String, reads: &[LiftedRead]) {
    text.push_str(
        "    __device__ __forceinline__ void end_head(const Mods &m, int b, int h, int kv_idx, int kv_len) {\n        \
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
    text.push_str("    }\n");
}
