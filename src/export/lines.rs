//! Python in lines that fit: calls, lists, tuples and prose, broken where ruff's formatter breaks them.
//!
//! Invariant: what fits a line stays on it; the meaning is that of the unbroken text. Must not know designs.

/// Longest line of what is generated.
pub(super) const WIDTH: usize = 130;
/// Longest line of prose and of lists of numbers, which may be set further in.
pub(super) const PROSE: usize = 110;

/// `HEAD(ARGUMENTS)TAIL` of a statement at the column `indent`, after `before` columns of its first line: on one line, with the
/// arguments on a line of their own, or with each on its own.
pub(super) fn call(indent: usize, before: usize, head: &str, arguments: &[String], tail: &str) -> String {
    let inner = arguments.join(", ");
    let whole = format!("{head}({inner}){tail}");
    if fits(before, &whole) || arguments.is_empty() {
        return whole;
    }
    let (outside, inside) = (" ".repeat(indent), " ".repeat(indent + 4));
    if fits(indent + 4, &inner) {
        return format!("{head}(\n{inside}{inner}\n{outside}){tail}");
    }
    let each: String = arguments.iter().map(|argument| format!("{inside}{argument},\n")).collect();
    format!("{head}(\n{each}{outside}){tail}")
}

/// A Python tuple, from the column `indent` on, after `before` columns of its first line: on one line, or each part on its own.
pub(super) fn tuple(indent: usize, before: usize, parts: &[String]) -> String {
    let whole = format!("({}{})", parts.join(", "), if parts.len() == 1 { "," } else { "" });
    if fits(before, &whole) || parts.is_empty() {
        return whole;
    }
    let inside = " ".repeat(indent + 4);
    let each: String = parts.iter().map(|part| format!("{inside}{part},\n")).collect();
    format!("(\n{each}{})", " ".repeat(indent))
}

/// Values of a shape as nested lists, from the column `indent` on; what does not fit a line is filled into several.
pub(super) fn list(indent: usize, values: &[String], shape: &[usize]) -> String {
    let whole = nested(values, shape);
    let [n, inner @ ..] = shape else { return whole };
    if fits(indent + 1, &whole) {
        return whole;
    }
    let inside = " ".repeat(indent + 4);
    let rows: String = match inner {
        [] => filled(&inside, values),
        _ => {
            values.chunks(values.len() / n).map(|row| format!("{inside}{},\n", list(indent + 4, row, inner))).collect()
        }
    };
    format!("[\n{rows}{}]", " ".repeat(indent))
}

/// Values of a shape as nested lists on one line.
pub(super) fn nested(values: &[String], shape: &[usize]) -> String {
    match shape {
        [] => values[0].clone(),
        [_] => format!("[{}]", values.join(", ")),
        [n, inner @ ..] => {
            let rows: Vec<String> = values.chunks(values.len() / n).map(|row| nested(row, inner)).collect();
            format!("[{}]", rows.join(", "))
        }
    }
}

/// Values with commas, as many on a line as fit.
fn filled(start: &str, values: &[String]) -> String {
    let words: Vec<String> = values.iter().map(|value| format!("{value},")).collect();
    words_in_lines(start, words.iter().map(String::as_str), PROSE)
}

/// Prose in lines that begin with `start`, each with its end.
pub(super) fn prose(start: &str, text: &str) -> String {
    words_in_lines(start, text.split(' '), PROSE)
}

fn words_in_lines<'a>(start: &str, words: impl Iterator<Item = &'a str>, width: usize) -> String {
    let (mut out, mut line) = (String::new(), String::new());
    for word in words {
        if !line.is_empty() && start.len() + line.chars().count() + 1 + word.chars().count() > width {
            out.push_str(&format!("{start}{line}\n"));
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    out + &format!("{start}{line}\n")
}

/// Whether a text is one line and fits from a column on.
pub(super) fn fits(before: usize, text: &str) -> bool {
    !text.contains('\n') && before + text.chars().count() <= WIDTH
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(n: usize) -> Vec<String> {
        (0..n).map(|i| format!("{}.5", i * 1000)).collect()
    }

    #[test]
    fn calls_break_as_ruffs_formatter_breaks_them() {
        let given = |n: usize| (0..n).map(|i| format!("argument_{i}={i}")).collect::<Vec<_>>();
        assert_eq!(call(4, 4, "x = f", &given(2), ""), "x = f(argument_0=0, argument_1=1)");
        assert_eq!(
            call(4, 4, "a_long_name = f", &given(8), ""),
            format!("a_long_name = f(\n        {}\n    )", given(8).join(", ")),
            "the arguments fit a line of their own"
        );
        let many = call(4, 4, "x = f", &given(12), ".to(device)");
        assert!(many.starts_with("x = f(\n        argument_0=0,\n        argument_1=1,\n"), "{many}");
        assert!(many.ends_with("        argument_11=11,\n    ).to(device)"), "{many}");
    }

    #[test]
    fn lists_are_filled_and_rows_stay_together() {
        assert_eq!(list(4, &numbers(3), &[3]), "[0.5, 1000.5, 2000.5]");
        let long = list(4, &numbers(64), &[64]);
        assert!(long.lines().all(|line| line.chars().count() <= WIDTH), "{long}");
        assert!(long.lines().count() < 9 && long.ends_with("63000.5,\n    ]"), "{long}");
        let rows = list(4, &numbers(36), &[6, 6]);
        assert_eq!(rows.lines().count(), 8, "{rows}");
        assert!(rows.contains("\n        [6000.5, 7000.5, 8000.5, 9000.5, 10000.5, 11000.5],\n"), "{rows}");
        let plain = |text: &str| text.split_whitespace().collect::<String>().replace(",]", "]");
        assert_eq!(plain(&rows), plain(&nested(&numbers(36), &[6, 6])), "the meaning stays");
    }

    #[test]
    fn tuples_keep_the_comma_of_one() {
        assert_eq!(tuple(0, 8, &["1".to_string()]), "(1,)");
        assert_eq!(tuple(0, 8, &["1".to_string(), "2".to_string()]), "(1, 2)");
        let long = tuple(0, 8, &numbers(30));
        assert!(long.starts_with("(\n    0.5,\n") && long.ends_with("29000.5,\n)"), "{long}");
    }
}
