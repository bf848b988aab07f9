//! What a search weighs: for each chunk of queries its cost and the chunks of keys that it needs, for each kind of layer.
//!
//! Invariant: needs are the union over batch entries and heads, costs their sum. Must not know ranks.

/// One kind of layer.
#[derive(Clone, Debug)]
pub(crate) struct KindWork {
    /// How many layers have this mask.
    pub layers: f64,
    /// The cost of each row of chunks.
    pub weight: Vec<f64>,
    /// The sum of `weight`.
    pub total: f64,
    offsets: Vec<u32>,
    spans: Vec<(u32, u32)>,
}

impl KindWork {
    /// From each row's cost and its needed columns, ascending and disjoint.
    pub(crate) fn new(layers: f64, weight: Vec<f64>, rows: &[Vec<(u32, u32)>]) -> Self {
        let mut offsets = vec![0];
        let mut spans = Vec::with_capacity(rows.iter().map(Vec::len).sum());
        for row in rows {
            spans.extend_from_slice(row);
            offsets.push(spans.len() as u32);
        }
        Self { layers, total: weight.iter().sum(), weight, offsets, spans }
    }

    /// The columns that a row needs.
    pub(crate) fn needs(&self, row: usize) -> &[(u32, u32)] {
        &self.spans[self.offsets[row] as usize..self.offsets[row + 1] as usize]
    }
}

/// All kinds over one sequence.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    /// Chunks of queries.
    pub rows: usize,
    /// Chunks of keys.
    pub cols: usize,
    /// Whether row i and column i are the same tokens, so that one rank owns both.
    pub coupled: bool,
    pub kinds: Vec<KindWork>,
}

impl Work {
    /// The same with `factor` neighbouring rows and columns as one.
    pub(crate) fn coarse(&self, factor: usize) -> Work {
        let kind = |kind: &KindWork| {
            let (mut weight, mut rows) = (Vec::new(), Vec::new());
            for first in (0..self.rows).step_by(factor) {
                let of = first..(first + factor).min(self.rows);
                weight.push(kind.weight[of.clone()].iter().sum());
                let f = factor as u32;
                let mut spans: Vec<(u32, u32)> =
                    of.flat_map(|row| kind.needs(row).iter().map(move |(a, b)| (a / f, b.div_ceil(f)))).collect();
                rows.push(merged(&mut spans));
            }
            KindWork::new(kind.layers, weight, &rows)
        };
        Work {
            rows: self.rows.div_ceil(factor),
            cols: self.cols.div_ceil(factor),
            coupled: self.coupled,
            kinds: self.kinds.iter().map(kind).collect(),
        }
    }

    /// What all ranks receive if each gets every key: the unit of shares.
    pub(crate) fn all_gather(&self, ranks: usize) -> f64 {
        let layers: f64 = self.kinds.iter().map(|kind| kind.layers).sum();
        layers * (ranks.max(1) - 1) as f64 * self.cols as f64
    }

    /// Each kind's share of the whole time, from 0 to 1.
    pub(crate) fn shares(&self) -> Vec<f64> {
        let whole: f64 = self.kinds.iter().map(|kind| kind.layers * kind.total).sum();
        let share = |kind: &KindWork| if whole > 0.0 { kind.layers * kind.total / whole } else { 0.0 };
        self.kinds.iter().map(share).collect()
    }
}

/// Spans sorted and joined where they touch.
pub(crate) fn merged(spans: &mut [(u32, u32)]) -> Vec<(u32, u32)> {
    spans.sort_unstable();
    let mut out: Vec<(u32, u32)> = Vec::new();
    for (from, to) in spans.iter() {
        match out.last_mut() {
            Some(last) if *from <= last.1 => last.1 = last.1.max(*to),
            _ => out.push((*from, *to)),
        }
    }
    out
}
