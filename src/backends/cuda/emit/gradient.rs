//! The derivative of a score mod as CUDA C++: `score_grad`, and `CaptureSums`, which sums the gradients of captured
//! tensors.
//!
//! Invariant: a cell that the mask drops adds nothing, for any derivative. Must not know kernels beyond the contract of
//! `captures.cuh`.

use super::families::{families, tile};
use super::functions::{Accuracy, CELL, Emitter, Function, VALUES};
use super::hoist::Holder;
use super::mods::{LiftedGradient, LiftedRead};
use crate::backends::cuda::variant::backward::MOST_READS;
use crate::ir::graph::NodeId;
use std::fmt::Write;

/// The call of the emitted code for a read.
const AT_CELL: &str = "(m, r, raw, scale, head, row, column, b, h, q_idx, kv_idx)";

impl Emitter<'_> {
    /// All parts of a score mod that the backward kernels need, other than the mod itself.
    pub(super) fn gradient(&self, text: &mut String, gradient: &LiftedGradient) {
        if let Some(root) = gradient.score {
            self.of_cell(text, "float score_grad", &[root], |e, f| e.operand(root, f));
        }
        for (at, read) in gradient.reads.iter().enumerate() {
            self.of_cell(text, &format!("float read_value{at}"), &[read.value], |e, f| e.operand(read.value, f));
            let place = |e: &Emitter, f: &Function| e.offset(read.capture.0, &read.index, f);
            self.of_cell(text, &format!("int read_place{at}"), &read.index, place);
        }
        if !gradient.captures.is_empty() {
            each_read(text, &gradient.reads);
            self.tile_sums(text, gradient);
        }
    }

    /// `CaptureSums`. Of many reads those that are alike stand in loops.
    fn tile_sums(&self, text: &mut String, gradient: &LiftedGradient) {
        let reads = &gradient.reads;
        let many = reads.len() > MOST_READS;
        let families = if many { families(self.template.graph, reads) } else { Vec::new() };
        let is_single = |(at, _): &(usize, _)| !families.iter().any(|family| family.reads.contains(at));
        let single: Vec<(usize, &LiftedRead)> = reads.iter().enumerate().filter(is_single).collect();
        text.push_str("#line 1 \"mods\"\n#ifndef ML_EAGER\n");
        self.of_families(text, reads, &families);
        text.push_str("struct CaptureSums {\n");
        if many {
            tile(text, reads, &families, gradient.in_bins);
        }
        sums(text, &single, gradient.in_bins);
    }

    /// A function of a cell.
    fn of_cell(&self, text: &mut String, name: &str, roots: &[NodeId], result: impl Fn(&Self, &Function) -> String) {
        let head = format!("{name}(const Mods &m, int way, float raw, float scale, {VALUES}, {CELL})");
        let function = Function { head: &head, roots, given: &Holder::ALL, accuracy: Accuracy::Fast, strides: None };
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

/// Where the sums of a read are kept until they are added to its tensor: what its cells of a thread, a warp or a block share.
#[derive(Clone, Copy, PartialEq)]
enum Class {
    /// One element a head: one sum a thread.
    Head,
    /// One a key: two sums a thread.
    Key,
    /// One a query: two sums a thread, over a warp's keys after every eight queries.
    Query,
    /// One a distance: sums along a warp's diagonals.
    Difference,
    /// One a cell, and no other cell has it: written.
    Alone,
    /// Anything else: an addition a cell.
    Cell,
}

impl LiftedGradient {
    /// For each gradient: whether it is made of bins. Elements of one cell alone are written.
    pub fn with_bins(&self) -> Vec<bool> {
        let added = |slot| move |read: &LiftedRead| read.slot == slot && Class::of(read) != Class::Alone;
        (0..self.captures.len()).map(|slot| self.in_bins && self.reads.iter().any(added(slot))).collect()
    }

    /// Additions that an element gets at most of one batch entry, of those heads, queries and keys, by tiles of those queries and keys.
    pub fn most_additions(&self, lengths: [usize; 3], tile: (usize, usize)) -> u128 {
        let of_slot = |slot| {
            let own = self.reads.iter().filter(move |read| read.slot == slot);
            own.map(|read| additions(read, lengths, tile)).sum()
        };
        (0..self.captures.len()).map(of_slot).max().unwrap_or(0)
    }
}

/// Additions of a read to one element: as many as its class adds in tiles that all keep cells, and that add for every head.
fn additions(read: &LiftedRead, [heads, q_len, kv_len]: [usize; 3], (tile_q, tile_kv): (usize, usize)) -> u128 {
    let [_, by_head, by_query, by_key] = read.reported;
    let of = |reported: bool, all: usize| if reported { 1 } else { all as u128 };
    let q_tiles = q_len.div_ceil(tile_q);
    let keys = kv_len.next_multiple_of(tile_kv);
    // of a warp
    let (tiles, diagonals) = (q_tiles as u128 * (keys / 16) as u128, 8 * (tile_q / 8 + 2).next_multiple_of(4));
    let of_head = match Class::of(read) {
        Class::Head => tiles,
        Class::Key => q_tiles as u128 * of(by_key, keys),
        Class::Query => of(by_query, q_tiles * tile_q) * (keys / 16) as u128,
        // the last sum of each thread is added behind the tile
        Class::Difference => tiles * (diagonals + 32) as u128,
        Class::Alone => 0,
        Class::Cell => of(by_query, q_len) * of(by_key, kv_len),
    };
    of(by_head, heads) * of_head
}

impl Class {
    fn of(read: &LiftedRead) -> Class {
        match (read.by_query, read.by_key) {
            (false, false) => Class::Head,
            (false, true) => Class::Key,
            (true, false) => Class::Query,
            (true, true) if read.by_difference => Class::Difference,
            (true, true) if read.alone => Class::Alone,
            (true, true) => Class::Cell,
        }
    }
}

/// The reads of one class, with their numbers.
fn of_class<'a>(reads: &'a [(usize, &LiftedRead)], class: Class) -> impl Iterator<Item = (usize, &'a LiftedRead)> {
    reads.iter().copied().filter(move |(_, read)| Class::of(read) == class)
}

/// Where a read finds its element at a query and a key. `row` and `column`: expressions for them.
fn place(at: usize, row: &str, column: &str, (q_idx, kv_idx): (&str, &str)) -> String {
    format!("read_place{at}(m, 0, 0.0f, 1.0f, head, {row}, {column}, b, h, {q_idx}, {kv_idx})")
}

fn row_of(q_idx: &str) -> String {
    format!("row_values(m, head, b, h, {q_idx})")
}

fn column_of(kv_idx: &str) -> String {
    format!("column_values(m, head, b, h, {kv_idx})")
}

/// For kernels that keep tiles: sums stay in threads where their cells add to one element.
fn sums(text: &mut String, reads: &[(usize, &LiftedRead)], in_bins: bool) {
    for (at, read) in reads {
        let _ = match Class::of(read) {
            Class::Head => writeln!(text, "    float sum{at} = 0.0f;"),
            Class::Key | Class::Query => writeln!(text, "    float sum{at}[2] = {{0.0f, 0.0f}};"),
            Class::Difference => writeln!(text, "    DiagonalSums sum{at};"),
            Class::Alone | Class::Cell => Ok(()),
        };
    }
    text.push_str(
        "    __device__ __forceinline__ void cell(const Mods &m, float d_score, float raw, float scale, const HeadValues &head, \
         const RowValues &row, const ColumnValues &column, int b, int h, int q_idx, int kv_idx, int r, int e) {\n        \
         if (d_score == 0.0f) return;\n",
    );
    for (at, read) in reads {
        let value = format!("d_score * read_value{at}{AT_CELL}");
        let place = format!("read_place{at}{AT_CELL}");
        let total = if in_bins { ".total" } else { "" };
        let _ = match Class::of(read) {
            Class::Head => writeln!(text, "        sum{at} += {value};"),
            Class::Key => writeln!(text, "        sum{at}[r] += {value};"),
            Class::Query => writeln!(text, "        sum{at}[e] += {value};"),
            Class::Difference => writeln!(text, "        sum{at}.cell[r][e] += {value};"),
            Class::Alone => writeln!(text, "        *(m.g{}{total} + {place}) = {value};", read.slot),
            Class::Cell => writeln!(text, "        {};", read.addition(in_bins, &place, &value)),
        };
    }
    text.push_str("    }\n");
    end_queries(text, reads, in_bins);
    end_tile(text, reads);
    end_head(text, reads, in_bins);
    text.push_str("};\n#endif\n");
}

/// The cells of eight queries are done: what they add to elements of these leaves the warp, and sums along diagonals go
/// one step on.
fn end_queries(text: &mut String, reads: &[(usize, &LiftedRead)], in_bins: bool) {
    text.push_str(
        "    __device__ __forceinline__ void end_queries(const Mods &m, const HeadValues &head, int b, int h, int first, int step, int q_len) {\n        \
         const int lane = threadIdx.x % 32, q_idx = first + (lane & 4) / 4;\n",
    );
    for (at, read) in of_class(reads, Class::Query) {
        let to = place(at, &row_of("q_idx"), &column_of("0"), ("q_idx", "0"));
        let add = read.addition(in_bins, &to, "sum");
        let _ = writeln!(
            text,
            "        {{\n            const float sum = sum_of_keys(sum{at});\n            \
             sum{at}[0] = sum{at}[1] = 0.0f;\n            \
             if (lane < 8 && sum != 0.0f && q_idx < q_len) {add};\n        }}"
        );
    }
    for (at, _) in of_class(reads, Class::Difference) {
        let _ = writeln!(text, "        sum{at}.next(step);");
    }
    text.push_str("    }\n");
}

/// Sums of a tile's diagonals leave the thread when the element is another, because distances of a clamped table share theirs.
fn end_tile(text: &mut String, reads: &[(usize, &LiftedRead)]) {
    text.push_str(
        "    __device__ __forceinline__ void end_tile(const Mods &m, const HeadValues &head, int b, int h, int first, int kv_idx, int q_len, int kv_len) {\n",
    );
    for (at, read) in of_class(reads, Class::Difference) {
        let to = place(at, &row_of("q_idx"), &column_of("kv_idx"), ("q_idx", "kv_idx"));
        let _ = writeln!(
            text,
            "        sum{at}.next(M / 8);\n        sum{at}.next(M / 8 + 1);\n#pragma unroll\n        \
             for (int n = 0; n < DiagonalSums::FOURS; ++n) {{\n            \
             const int lane = threadIdx.x % 32, difference = DiagonalSums::difference(first - 2 * (lane % 4), kv_idx - lane / 4, n);\n            \
             const float sum = sum{at}.of_four(n);\n            \
             if (sum == 0.0f || difference >= q_len || -difference >= kv_len) continue;\n            \
             const int q_idx = max(difference, 0), kv_idx = q_idx - difference;\n            \
             sum{at}.add(m.g{}, {to}, sum);\n        }}",
            read.slot
        );
    }
    text.push_str("    }\n");
}

/// Writes the sums of all cells of a head for its elements, or for its keys' elements, from the warp.
fn end_head(text: &mut String, reads: &[(usize, &LiftedRead)], in_bins: bool) {
    text.push_str(
        "    __device__ __forceinline__ void end_head(const Mods &m, int b, int h, int kv_idx, int kv_len) {\n        \
         const HeadValues head = head_values(m, b, h);\n        \
         const RowValues row = row_values(m, head, b, h, 0);\n        const int lane = threadIdx.x % 32;\n",
    );
    for (at, read) in of_class(reads, Class::Key) {
        for r in 0..2 {
            let key = format!("kv_idx + {}", 8 * r);
            let to = place(at, "row", &column_of(&key), ("0", &key));
            let add = read.addition(in_bins, &to, "sum");
            let _ = writeln!(
                text,
                "        {{\n            const float sum = sum_of_quad(sum{at}[{r}]);\n            \
                 if (lane % 4 == 0 && {key} < kv_len) {add};\n        }}"
            );
        }
    }
    for (at, read) in of_class(reads, Class::Head) {
        let to = place(at, "row", &column_of("kv_idx"), ("0", "kv_idx"));
        let add = read.addition(in_bins, &to, "sum");
        let _ = writeln!(
            text,
            "        {{\n            const float sum = sum_of_warp(sum{at});\n            if (lane == 0) {add};\n        }}"
        );
    }
    for (at, read) in of_class(reads, Class::Difference) {
        let _ = writeln!(text, "        sum{at}.leave(m.g{});", read.slot);
    }
    text.push_str("    }\n");
}
