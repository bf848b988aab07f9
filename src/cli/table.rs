//! Tables: aligned plain text, or what `--table` asks for.
//!
//! Invariant: titles and words are in the reader's language in text alone, files have the English ones; in text, columns are
//! separated by two spaces, number columns are aligned to the right, and no line ends in a space; as CSV and TeX, lines of
//! tables are marked, so that `out` makes comments of all other lines.

use crate::base::words::columns as width_of;
use crate::base::words::is_number;
use crate::export::figure::{csv, tex};
use crate::words::{Language, Words};
use std::sync::OnceLock;

pub(super) use crate::base::words::{big, bytes, digits, error, memory, milliseconds, percent};

/// How tables are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Form {
    /// Aligned columns
    #[default]
    Text,
    /// Comma-separated values
    Csv,
    /// LaTeX, in the rules of booktabs
    Tex,
}

impl Form {
    /// The ending of its files.
    pub(super) fn ending(self) -> &'static str {
        match self {
            Form::Text => "txt",
            Form::Csv => "csv",
            Form::Tex => "tex",
        }
    }
}

static FORM: OnceLock<Form> = OnceLock::new();

/// Begins a line of a table that is no plain text.
const MARK: char = '\u{1}';

/// Says once how tables are printed.
pub(super) fn print_as(form: Form) {
    let _ = FORM.set(form);
}

/// How they are printed.
pub(super) fn form() -> Form {
    FORM.get().copied().unwrap_or_default()
}

/// Lines of tables that are no plain text.
pub(super) fn marked(text: &str) -> String {
    text.lines().map(|line| format!("{MARK}{line}\n")).collect()
}

/// Output in a form: tables as they are, all other lines as comments.
pub(super) fn in_form(text: &str, form: Form) -> String {
    let comment = match form {
        Form::Text => return text.into(),
        Form::Csv => "# ",
        Form::Tex => "% ",
    };
    let line = |line: &str| match line.strip_prefix(MARK) {
        Some(row) => format!("{row}\n"),
        None if line.trim().is_empty() => "\n".into(),
        None => format!("{comment}{line}\n"),
    };
    text.lines().map(line).collect()
}

/// A cell: what files have, and what a reader of text is shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Cell {
    file: String,
    shown: String,
}

impl Cell {
    /// Words of a language: English in files.
    pub(super) fn told(words: impl Fn(&'static Words) -> String) -> Cell {
        Cell { file: words(Words::of(Language::English)), shown: words(Words::of(Language::chosen())) }
    }

    /// A text by its id.
    pub(super) fn text(id: &str) -> Cell {
        Cell::told(|said| said.text(id).into())
    }

    /// A title: a text by its id, or a name, the same in every language.
    pub(super) fn title(title: &str) -> Cell {
        if title.starts_with("column-") { Cell::text(title) } else { title.into() }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell { shown: text.clone(), file: text }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        text.to_string().into()
    }
}

/// A table under construction.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    head: Vec<Cell>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table with these column titles.
    pub(super) fn new<C: Into<Cell> + Clone>(head: &[C]) -> Table {
        Table { head: head.iter().cloned().map(Into::into).collect(), rows: Vec::new() }
    }

    /// A table whose titles are texts by their ids; a title that is no id is a name, the same in every language.
    pub(super) fn told(head: &[&str]) -> Table {
        Table::told_in(Words::of(Language::chosen()), head)
    }

    fn told_in(said: &'static Words, head: &[&str]) -> Table {
        let in_words = |said: &'static Words, title: &str| {
            if title.starts_with("column-") { said.text(title).to_string() } else { title.to_string() }
        };
        let title =
            |title: &&str| Cell { file: in_words(Words::of(Language::English), title), shown: in_words(said, title) };
        Table { head: head.iter().map(title).collect(), rows: Vec::new() }
    }

    /// Adds a row; missing cells are empty.
    pub(super) fn row<C: Into<Cell>>(&mut self, cells: impl IntoIterator<Item = C>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Whether there are no rows.
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Its titles, if it has some, then its rows.
    pub(super) fn cells(&self) -> Vec<Vec<String>> {
        self.lines().map(|row| row.iter().map(|cell| cell.file.clone()).collect()).collect()
    }

    /// The table as a file of this ending; None: another ending.
    pub(super) fn file(&self, ending: &str) -> Option<String> {
        match ending {
            "csv" => Some(csv(&self.cells())),
            "tex" => Some(tex(&self.cells())),
            _ => None,
        }
    }

    /// The table with a final newline, as `--table` asks for it.
    pub(super) fn render(&self) -> String {
        self.rendered(form())
    }

    /// The table in Markdown: in English as files have it.
    pub(super) fn markdown_in(&self, said: &Words) -> String {
        let english = said.language() == Language::English;
        self.in_markdown(|cell| if english { &cell.file } else { &cell.shown })
    }

    fn in_markdown(&self, of: impl Fn(&Cell) -> &String) -> String {
        let texts = |row: &Vec<Cell>| row.iter().map(|cell| of(cell).clone()).collect::<Vec<String>>();
        let line = |cells: &[String]| {
            let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let full = |row: &Vec<Cell>| {
            let more = self.head.len().saturating_sub(row.len());
            line(&[texts(row), vec![String::new(); more]].concat())
        };
        let rule = format!("|{}\n", "---|".repeat(self.head.len()));
        line(&texts(&self.head)) + &rule + &self.rows.iter().map(full).collect::<String>()
    }

    /// The table as a line of text has it: in English as files have it.
    pub(super) fn render_in(&self, said: &Words) -> String {
        let english = said.language() == Language::English;
        match form() {
            Form::Text => self.aligned(|cell| if english { &cell.file } else { &cell.shown }),
            form => self.rendered(form),
        }
    }

    fn rendered(&self, form: Form) -> String {
        match form {
            Form::Text => self.aligned(|cell| &cell.shown),
            Form::Csv => marked(&csv(&self.cells())),
            Form::Tex => marked(&tex(&self.cells())),
        }
    }

    fn aligned(&self, of: impl Fn(&Cell) -> &String) -> String {
        let columns = self.rows.iter().map(Vec::len).chain([self.head.len()]).max().unwrap_or(0);
        let cell = |row: &'_ Vec<Cell>, at: usize| row.get(at).map(|cell| of(cell).clone()).unwrap_or_default();
        let lines = || self.lines();
        let width = |at: usize| lines().map(|r| width_of(&cell(r, at))).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let numeric: Vec<bool> = (0..columns).map(|at| self.rows.iter().all(|r| is_number(&cell(r, at)))).collect();
        let mut out = String::new();
        for row in lines() {
            let mut line = String::new();
            for at in 0..columns {
                let (text, width) = (cell(row, at), widths[at]);
                let pad = " ".repeat(width - width_of(&text));
                let (before, after) = if numeric[at] { (pad.as_str(), "") } else { ("", pad.as_str()) };
                line.push_str(&format!("{before}{text}{after}  "));
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }

    fn lines(&self) -> impl Iterator<Item = &Vec<Cell>> {
        std::iter::once(&self.head).filter(|h| !h.is_empty()).chain(&self.rows)
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
        assert_eq!(Table::new::<&str>(&[]).render(), "");
    }

    #[test]
    fn titles_are_told_in_text_and_english_in_files() {
        let mut table = Table::told_in(Words::of(Language::Chinese), &["column-preset", "head_dim"]);
        table.row(["causal", "128"]);
        table.row(["滑动窗口", "64"]);
        assert_eq!(table.rendered(Form::Text), "预设      head_dim\ncausal         128\n滑动窗口        64\n");
        assert_eq!(table.file("csv").as_deref(), Some("preset,head_dim\ncausal,128\n滑动窗口,64\n"));
        // words of a row likewise
        let told = Cell { file: "cached".into(), shown: "来自缓存".into() };
        table.row([told, "64".into()]);
        assert!(table.rendered(Form::Text).ends_with("来自缓存        64\n"), "{}", table.rendered(Form::Text));
        assert!(table.file("csv").is_some_and(|text| text.ends_with("cached,64\n")));
        assert!(
            table.markdown_in(Words::of(Language::English)).ends_with("| cached | 64 |\n")
                && table.markdown_in(Words::of(Language::Chinese)).contains("| 来自缓存 | 64 |")
        );
    }

    #[test]
    fn markdown_has_as_many_cells_in_each_row_and_a_bar_stays_in_its_cell() {
        let mut table = Table::new(&["a", "b"]);
        table.row(["x|y"]);
        assert_eq!(table.markdown_in(Words::of(Language::English)), "| a | b |\n|---|---|\n| x\\|y |  |\n");
    }

    #[test]
    fn other_forms_hold_the_cells_and_make_comments_of_the_words_around() {
        let mut table = Table::new(&["backend", "median"]);
        table.row(["flex, ours", "1.25 ms"]);
        let text = |form| in_form(&format!("Title\n\n{}2 more\n", table.rendered(form)), form);
        assert_eq!(text(Form::Csv), "# Title\n\nbackend,median\n\"flex, ours\",1.25 ms\n# 2 more\n");
        assert!(
            text(Form::Tex).starts_with("% Title\n\n\\begin{tabular}{lr}\n\\toprule\nbackend & median \\\\\n"),
            "{}",
            text(Form::Tex)
        );
        assert!(text(Form::Text).starts_with("Title\n\nbackend"));
        assert_eq!(table.file("csv").as_deref(), Some("backend,median\n\"flex, ours\",1.25 ms\n"));
    }
}
