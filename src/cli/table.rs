//! Aligned tables in plain text.
//!
//! Invariant: columns are separated by two spaces; a column of numbers is aligned to the right; no line ends in a space.

/// A table under construction.
#[derive(Clone, Debug, Default)]
pub struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these column titles.
    pub fn new(head: &[&str]) -> Table {
        Table { head: head.iter().map(|h| h.to_string()).collect(), rows: Vec::new() }
    }

    /// Adds a row; missing cells are empty.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table as text with a final newline.
    pub fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).chain([self.head.len()]).max().unwrap_or(0);
        let cell = |row: &'_ Vec<String>, at: usize| row.get(at).cloned().unwrap_or_default();
        let width = |at: usize| self.lines().map(|r| cell(r, at).chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let numeric: Vec<bool> = (0..columns).map(|at| self.rows.iter().all(|r| is_number(&cell(r, at)))).collect();
        let mut out = String::new();
        for row in self.lines() {
            let mut line = String::new();
            for at in 0..columns {
                let (text, width) = (cell(row, at), widths[at]);
                let pad = " ".repeat(width - text.chars().count());
                let (before, after) = if numeric[at] { (pad.as_str(), "") } else { ("", pad.as_str()) };
                line.push_str(&format!("{before}{text}{after}  "));
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }

    fn lines(&self) -> impl Iterator<Item = &Vec<String>> {
        std::iter::once(&self.head).filter(|h| !h.is_empty()).chain(&self.rows)
    }
}

fn is_number(text: &str) -> bool {
    let first = text.trim_start_matches(['-', '+']).chars().next();
    first.is_none_or(|c| c.is_ascii_digit() || c == '-')
}

/// `0.123 ms`, `12.3 ms`, `1.23 s`: three digits.
pub fn milliseconds(ms: f64) -> String {
    if ms >= 10_000.0 { format!("{:.1} s", ms / 1e3) } else { format!("{} ms", digits(ms)) }
}

/// Three significant digits without an exponent.
pub fn digits(x: f64) -> String {
    let decimals = match x.abs() {
        a if a >= 100.0 => 0,
        a if a >= 10.0 => 1,
        a if a >= 1.0 => 2,
        _ => 3,
    };
    format!("{x:.decimals$}")
}

/// `11.7%` of a share in 0..=1.
pub fn percent(share: f64) -> String {
    match 100.0 * share {
        p if p > 0.0 && p < 0.05 => format!("{p:.4}%"),
        p => format!("{p:.1}%"),
    }
}

/// `3.2e-3`, `0`.
pub fn error(x: f64) -> String {
    if x == 0.0 { "0".into() } else { format!("{x:.1e}") }
}

/// `8.6 G`, `123 M`.
pub fn big(x: f64) -> String {
    let units = [(1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    match units.iter().find(|(unit, _)| x.abs() >= *unit) {
        Some((unit, letter)) => format!("{} {letter}", digits(x / unit)),
        None => format!("{x:.0}"),
    }
}

/// `1.2 MiB`.
pub fn bytes(n: u64) -> String {
    let units = [(1u64 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.iter().find(|(unit, _)| n >= *unit) {
        Some((unit, name)) => format!("{} {name}", digits(n as f64 / *unit as f64)),
        None => format!("{n} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_numbers_stand_right() {
        let mut table = Table::new(&["backend", "median", "kernel"]);
        table.row(["flex", "1.25 ms", "cpu flex"]);
        table.row(["flash_attention_2", "110 ms", ""]);
        assert_eq!(
            table.render(),
            "backend             median  kernel\nflex               1.25 ms  cpu flex\nflash_attention_2   110 ms\n"
        );
        assert_eq!(Table::new(&[]).render(), "");
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([0.01234, 1.234, 12.34, 1234.0].map(milliseconds), ["0.012 ms", "1.23 ms", "12.3 ms", "1234 ms"]);
        assert_eq!(milliseconds(12_345.0), "12.3 s");
        assert_eq!((percent(0.1171), percent(0.0001), percent(0.0)), ("11.7%".into(), "0.0100%".into(), "0.0%".into()));
        assert_eq!((big(8.59e9), big(12.0), bytes(1536)), ("8.59 G".into(), "12".into(), "1.50 KiB".into()));
    }
}
