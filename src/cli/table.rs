//! Aligned tables in plain text.
//!
//! Invariant: columns are separated by two spaces; number columns are aligned to the right; no line ends in a space.

pub use crate::base::words::{big, bytes, digits, error, memory, milliseconds, percent};

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
}
