//! What stands around Python where people copy it from: notebooks, prompts, fences, diffs, magics.
//!
//! Invariant: a text that is Python already is returned as it is; lines keep their numbers, except in notebooks, whose
//! cells follow each other. Must not know what the Python means.

use std::borrow::Cow;

/// The Python in a text: the code cells of a notebook, the code inside Markdown fences, what follows prompts, the new
/// side of a diff; magics and shell lines of notebooks become comments.
pub fn bare(text: &str) -> Cow<'_, str> {
    if let Some(cells) = notebook(text) {
        return Cow::Owned(cells);
    }
    let lines: Vec<&str> = text.lines().collect();
    let step = fenced(&lines).or_else(|| prompted(&lines)).or_else(|| changed(&lines));
    match step {
        Some(lines) => {
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            let lines = without_magics(&lines).unwrap_or_else(|| lines.iter().map(|l| l.to_string()).collect());
            Cow::Owned(joined(&lines))
        }
        None => without_magics(&lines).map_or(Cow::Borrowed(text), |lines| Cow::Owned(joined(&lines))),
    }
}

fn joined(lines: &[String]) -> String {
    lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
}

/// The code cells of a Jupyter notebook, one after the other; None for other texts.
/// The format: <https://nbformat.readthedocs.io/en/latest/format_description.html>
fn notebook(text: &str) -> Option<String> {
    if !text.trim_start().starts_with('{') || !text.contains("nbformat") {
        return None;
    }
    let value: serde_json::Value = serde_json::from_str(text).ok()?;
    value.get("nbformat")?.as_u64()?;
    // version 3 has its cells in worksheets, with `input` for `source`
    let cells = value.get("cells").or_else(|| value.get("worksheets")?.get(0)?.get("cells"))?.as_array()?;
    let mut out = String::new();
    for cell in cells.iter().filter(|c| c.get("cell_type").and_then(|t| t.as_str()) == Some("code")) {
        let source = match cell.get("source").or_else(|| cell.get("input"))? {
            serde_json::Value::String(text) => text.clone(),
            serde_json::Value::Array(lines) => lines.iter().filter_map(|l| l.as_str()).collect(),
            _ => continue,
        };
        // a cell magic such as %%bash makes the cell another language, timings leave it Python
        let first = source.lines().find(|l| !l.trim().is_empty()).unwrap_or_default().trim_start();
        let foreign =
            first.strip_prefix("%%").is_some_and(|m| !["time", "timeit", "capture", "prun"].contains(&word(m)));
        if foreign {
            continue;
        }
        let lines: Vec<&str> = source.lines().collect();
        match without_magics(&lines) {
            Some(lines) => out.push_str(&joined(&lines)),
            None => lines.iter().for_each(|line| out.extend([line, "\n"])),
        }
        out.push('\n');
    }
    Some(out)
}

fn word(text: &str) -> &str {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("")
}

/// Lines that only IPython reads (`%matplotlib inline`, `%%time`, `!pip install torch`, `?name`) as comments. None: there
/// are none, or such a line continues an expression, where `%` is an operator.
fn without_magics(lines: &[&str]) -> Option<Vec<String>> {
    let mut found = false;
    let mut open = 0i64;
    let mut continued = false;
    let mut out = Vec::with_capacity(lines.len());
    for line in lines {
        let code = line.trim_start();
        let magic = match code.as_bytes() {
            [b'%', b'%', c, ..] | [b'%', c, ..] => c.is_ascii_alphabetic(),
            [b'!', c, ..] => *c != b'=',
            [b'?', ..] => true,
            _ => false,
        };
        if magic && open <= 0 && !continued {
            found = true;
            // of the same length: places in the line stay, and an indented block keeps a statement
            let indent = line.len() - code.len();
            out.push(if indent > 0 { format!("{}pass  # {code}", &line[..indent]) } else { format!("# {code}") });
            continue;
        }
        // brackets in strings miscount; the count only decides whether a line that looks like a magic is one
        open += line.matches(['(', '[', '{']).count() as i64 - line.matches([')', ']', '}']).count() as i64;
        continued = line.trim_end().ends_with('\\');
        out.push(line.to_string());
    }
    found.then_some(out)
}

/// The lines inside Markdown fences; the others become comments.
fn fenced(lines: &[&str]) -> Option<Vec<String>> {
    let is_fence = |l: &str| l.trim_start().starts_with("```") || l.trim_start().starts_with("~~~");
    let first = lines.iter().position(|l| is_fence(l))?;
    // a fence inside a docstring has Python before it
    let before =
        lines[..first].iter().any(|l| ["def ", "import ", "from ", "class ", "@"].iter().any(|w| l.starts_with(w)));
    if before {
        return None;
    }
    let mut inside = false;
    let kept = |line: &&str| {
        if is_fence(line) {
            inside = !inside;
            return "#".to_string();
        }
        if inside { line.to_string() } else { commented(line) }
    };
    Some(lines.iter().map(kept).collect())
}

fn commented(line: &str) -> String {
    if line.trim().is_empty() { String::new() } else { format!("# {line}") }
}

/// What follows `>>> ` and `... `, or IPython's `In [1]: `; printed results become comments.
fn prompted(lines: &[&str]) -> Option<Vec<String>> {
    let first = lines.iter().find(|l| !l.trim().is_empty())?.trim_start();
    if !first.starts_with(">>>") && numbered(first, "In [").is_none() {
        return None;
    }
    let kept = |line: &&str| {
        let code = line.trim_start();
        let python = [">>>", "...:", "..."].iter().find_map(|p| code.strip_prefix(p));
        let python = python.map(|rest| rest.strip_prefix(' ').unwrap_or(rest)).or_else(|| numbered(code, "In ["));
        python.map_or_else(|| commented(line), str::to_string)
    };
    Some(lines.iter().map(kept).collect())
}

/// The rest of a line after `In [12]: `.
fn numbered<'a>(line: &'a str, prompt: &str) -> Option<&'a str> {
    let (number, rest) = line.strip_prefix(prompt)?.split_once("]:")?;
    number.chars().all(|c| c.is_ascii_digit() || c == ' ').then(|| rest.strip_prefix(' ').unwrap_or(rest))
}

/// The new side of a unified diff, or of lines that all begin with `+`; headers and old lines become empty comments.
fn changed(lines: &[&str]) -> Option<Vec<String>> {
    let text = || lines.iter().filter(|l| !l.trim().is_empty());
    let header = |l: &str| {
        ["diff ", "index ", "--- ", "+++ ", "@@", "new file", "\\ No newline"].iter().any(|h| l.starts_with(h))
    };
    let is_diff = text().any(|l| l.starts_with("@@ ")) && text().all(|l| header(l) || l.starts_with(['+', '-', ' ']));
    let all_added = text().count() > 1 && text().all(|l| l.starts_with('+'));
    if !is_diff && !all_added {
        return None;
    }
    let kept = |line: &&str| match line.chars().next() {
        _ if header(line) => "#".to_string(),
        Some('+' | ' ') => line[1..].to_string(),
        Some('-') => "#".to_string(),
        _ => line.to_string(),
    };
    Some(lines.iter().map(kept).collect())
}

#[cfg(test)]
mod tests {
    use super::bare;

    const MOD: &str = "def m(b, h, q, k):\n    return q >= k\n";

    #[test]
    fn python_stays_as_it_is() {
        let others =
            ["x = (7\n    % 2)\n", "x = 7 \\\n% 2\n", "s = \"\"\"\n```\n>>> a\n\"\"\"\nimport torch\n", "a != b\n", ""];
        for text in [MOD, others[0], others[1], others[3], others[4]] {
            assert!(matches!(bare(text), std::borrow::Cow::Borrowed(same) if same == text), "{text}");
        }
        let documented = "def f():\n    \"\"\"\n    ```python\n    f()\n    ```\n    \"\"\"\n";
        assert_eq!(bare(documented), documented);
    }

    #[test]
    fn what_stands_around_python_is_taken_off() {
        let same = |text: &str, lines: &[&str]| {
            let got = bare(text);
            let code: Vec<&str> =
                got.lines().filter(|l| !l.trim_start().starts_with('#') && !l.trim().is_empty()).collect();
            assert_eq!(code, lines, "{text}\n{got}");
            if !text.starts_with('{') {
                assert_eq!(got.lines().count(), text.lines().count(), "lines keep their numbers");
            }
        };
        let lines = ["def m(b, h, q, k):", "    return q >= k"];
        same(&format!("%matplotlib inline\n!pip install torch\n{MOD}"), &lines);
        same(
            ">>> def m(b, h, q, k):\n...     return q >= k\n...\n>>> m(0, 0, 1, 1)\nTrue\n",
            &[lines[0], lines[1], "m(0, 0, 1, 1)"],
        );
        same("In [1]: def m(b, h, q, k):\n   ...:     return q >= k\n   ...:\nOut[1]: 3\n", &lines);
        same(&format!("Here is the mask:\n\n```python\n{MOD}```\nIt is causal.\n"), &lines);
        same("+def m(b, h, q, k):\n+    return q >= k\n", &lines);
        let diff = "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1,3 +1,2 @@\n def m(b, h, q, k):\n-    return q > k\n+    return q >= k\n";
        same(diff, &lines);
        let cells = r#"{"nbformat": 4, "cells": [{"cell_type": "markdown", "source": ["text"]},
            {"cell_type": "code", "source": ["%%bash\n", "ls\n"]},
            {"cell_type": "code", "source": ["%%time\n", "def m(b, h, q, k):\n", "    return q >= k\n"]},
            {"cell_type": "code", "source": "x = 3"}]}"#;
        same(cells, &[lines[0], lines[1], "x = 3"]);
    }
}
