//! Numbers as text: shares, times, counts, bytes, errors. The window, the terminal and the reports all use it.
//!
//! Invariant: only significant digits, and always a unit. Must not know what is counted.

use std::borrow::Cow;

/// `0.117` as `11.7%`, with only significant digits.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        p if p == 0.0 || p >= 99.95 => format!("{p:.0}%"),
        p if p >= 0.1 => format!("{p:.1}%"),
        p if p >= 0.001 => format!("{p:.3}%"),
        p => format!("{p:.1e}%"),
    }
}

/// Columns of a terminal that a text takes: wide letters two, marks above and below others none.
pub fn columns(text: &str) -> usize {
    text.chars().map(column).sum()
}

/// A text that may be another program's, for a terminal: a sign that would steer it becomes the picture of that sign, one column wide.
pub fn visible(text: &str) -> Cow<'_, str> {
    let steers = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t');
    if !text.contains(steers) {
        return text.into();
    }
    let picture = |letter: char| match letter as u32 {
        _ if !steers(letter) => letter,
        low @ ..0x20 => char::from_u32(0x2400 + low).unwrap_or('\u{fffd}'),
        0x7f => '\u{2421}',
        _ => '\u{fffd}',
    };
    text.chars().map(picture).collect::<String>().into()
}

fn column(letter: char) -> usize {
    match letter as u32 {
        // combining marks, those of Devanagari, joiners, variants
        0x300..=0x36f | 0x200b..=0x200f | 0xfe00..=0xfe0f => 0,
        0x900..=0x902 | 0x93a | 0x93c | 0x941..=0x948 | 0x94d | 0x951..=0x957 | 0x962..=0x963 => 0,
        // Chinese, Japanese, Korean, full width, pictures
        0x1100..=0x115f | 0x2e80..=0x303e | 0x3041..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff => 2,
        0xfe30..=0xfe6f | 0xff00..=0xff60 | 0xffe0..=0xffe6 | 0x1f300..=0x1faff | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

/// A count with thousands apart.
pub fn grouped(n: u128) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

/// A count as people type it: `8192`, `8_192`, `8,192`, `8k` for 8 x 1024, `1.5k`, `1m` for 1024 x 1024. None: it is none, or
/// too large.
pub fn count(text: &str) -> Option<usize> {
    let text = text.trim();
    let grouped = in_groups(text);
    let (digits, unit) = in_units(grouped.as_deref().unwrap_or(text))?;
    if let Some((whole, part)) = digits.split_once('.') {
        let number = (unit > 1 && is_digits(whole) && is_digits(part)).then(|| number(text)).flatten()?;
        return (number.fract() == 0.0 && number < EXACT).then_some(number as usize);
    }
    // as in Python: between digits, one at a time
    let whole = digits.split('_').all(is_digits).then(|| digits.replace('_', ""))?;
    whole.parse::<usize>().ok()?.checked_mul(unit)
}

/// A number as people type it, with the units of a count: `0.5`, `1e-3`, `1.5k`. None: it is none, or not finite.
pub fn number(text: &str) -> Option<f64> {
    let (digits, unit) = in_units(text.trim())?;
    let number = digits.replace('_', "").parse::<f64>().ok()? * unit as f64;
    number.is_finite().then_some(number)
}

/// Up to here every whole number is an f64.
const EXACT: f64 = (1u64 << 53) as f64;

/// The digits before a unit, and what the unit multiplies by. None: there is no text.
fn in_units(text: &str) -> Option<(&str, usize)> {
    Some(match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 1 << 10),
        b'm' | b'M' => (&text[..text.len() - 1], 1 << 20),
        _ => (text, 1),
    })
}

/// The digits of a whole number in groups of three, as `2,048`. None: it is not in groups.
fn in_groups(text: &str) -> Option<String> {
    let mut groups = text.split([',', ' ', '\u{a0}', '\u{202f}']);
    let first = groups.next()?;
    let rest: Vec<&str> = groups.collect();
    let threes = !rest.is_empty() && rest.iter().all(|group| group.len() == 3 && is_digits(group));
    let begins = is_digits(first) && first.len() <= 3 && !first.starts_with('0');
    (threes && begins).then(|| format!("{first}{}", rest.concat()))
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// Whether a cell of a table stands right: it is empty, a dash, or begins with a number.
pub fn is_number(cell: &str) -> bool {
    cell.trim_start_matches(['-', '+']).chars().next().is_none_or(|c| c.is_ascii_digit())
}

/// A time in a sentence, in the unit that fits it: `12.3 µs`, `1.23 ms`, `12.3 s`.
pub fn time(ms: f64) -> String {
    match ms {
        ms if !ms.is_finite() => "no time".into(),
        ms if ms < 1.0 => format!("{:.1} \u{b5}s", ms * 1000.0),
        ms => milliseconds(ms),
    }
}

/// A time in a column, which keeps its unit up to ten seconds: `0.123 ms`, `12.3 ms`, `12.3 s`.
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

/// The same, `-` where it was not counted.
pub fn memory(n: Option<u64>) -> String {
    n.map_or("-".into(), bytes)
}

/// What a memory column counts.
pub const MEMORY: &str =
    "held at the peak of a pass beside q, k and v: output, lse, captured tensors, mask or block lists, working memory";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_steer_a_terminal_is_shown() {
        assert_eq!(visible("q >= \u{1b}[31mk\0\r\n\tä 中"), "q >= ␛[31mk␀␍\n\tä 中");
        assert_eq!(visible("\u{7f}\u{9b}2J"), "␡\u{fffd}2J");
        assert!(matches!(visible("plain\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn wide_letters_take_two_columns_and_marks_none() {
        let all = ["causal", "滑动窗口", "हिन्दी", "e\u{301}", "（x）", ""].map(columns);
        assert_eq!(all, [6, 8, 5, 1, 5, 0]);
    }

    #[test]
    fn counts_are_read_as_they_are_typed() {
        for (text, n) in [("8192", 8192), ("1_024", 1024), ("8k", 8192), ("128K", 131_072), ("1m", 1 << 20), (" 0 ", 0)]
        {
            assert_eq!(count(text), Some(n), "{text}");
        }
        for (text, n) in [("1.5k", 1536), ("2,048", 2048), ("1,048,576", 1 << 20), ("2\u{202f}048", 2048)] {
            assert_eq!(count(text), Some(n), "{text}");
        }
        for text in [
            "",
            "k",
            "_1",
            "1_",
            "1__0",
            "8kk",
            "-1",
            "+8",
            "1.5",
            "1.0001k",
            ".5k",
            "1e3",
            "2,04",
            "0,125",
            "12,,345",
            ",048",
            "8 k",
            "0x10",
            "99999999999999999999",
            "18014398509481984k",
        ] {
            assert_eq!(count(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_are_read_as_they_are_typed() {
        for (text, n) in [("0.5", 0.5), (" 1e-3 ", 0.001), ("1.5k", 1536.0), ("-3", -3.0), ("1_024", 1024.0)] {
            assert_eq!(number(text), Some(n), "{text}");
        }
        for text in ["", "k", "0,5", "nan", "inf", "1e999", "8kb"] {
            assert_eq!(number(text), None, "{text}");
        }
    }

    #[test]
    fn cells_with_numbers_stand_right() {
        let right = ["", "-", "1.25 ms", "-3", "+1.2%", "0"];
        let left = ["a1", "-abc", "+x", "\u{2248} 3"];
        assert!(right.iter().all(|cell| is_number(cell)) && !left.iter().any(|cell| is_number(cell)));
    }

    #[test]
    fn numbers_read_well() {
        let percents = [0.0, 0.117_18, 1.0, 0.9999, 0.000_3, 1e-9].map(percent);
        assert_eq!(percents, ["0%", "11.7%", "100%", "100%", "0.030%", "1.0e-7%"]);
        assert_eq!(grouped(7_864_320), "7\u{202f}864\u{202f}320");
        assert_eq!(
            [0.0123, 1.234, 56.78, 123.4, 12_345.0, f64::NAN].map(time),
            ["12.3 \u{b5}s", "1.23 ms", "56.8 ms", "123 ms", "12.3 s", "no time"]
        );
    }

    #[test]
    fn numbers_of_a_column_are_short() {
        assert_eq!([0.01234, 1.234, 12.34, 1234.0].map(milliseconds), ["0.012 ms", "1.23 ms", "12.3 ms", "1234 ms"]);
        assert_eq!(milliseconds(12_345.0), "12.3 s");
        assert_eq!((big(8.59e9), big(12.0), bytes(1536)), ("8.59 G".into(), "12".into(), "1.50 KiB".into()));
        assert_eq!([memory(None), memory(Some(3 << 29))], ["-", "1.50 GiB"]);
        assert_eq!((error(0.0), error(0.0032)), ("0".into(), "3.2e-3".into()));
    }
}
