//! Patterns compared with CPython's matches (tests/data/python_re.json).

use super::pattern::{Flags, Mode, Program, Spans};
use crate::python::library::torch_tests::run;
use crate::python::value::Value;
use serde::Deserialize;

type Span = (i64, i64);
/// For `search`, `fullmatch`, `finditer`, `split` and `sub` with `<\g<0>>`.
type Want = (Option<Vec<Span>>, Option<Vec<Span>>, Vec<Vec<Span>>, Vec<Option<String>>, String);

#[derive(Deserialize)]
struct Case(String, String, Want);

fn reported(spans: &Spans) -> Vec<Span> {
    spans.iter().map(|s| s.map_or((-1, -1), |(a, b)| (a as i64, b as i64))).collect()
}

#[test]
fn matches_are_cpythons() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("../../../../tests/data/python_re.json")).expect("cases");
    assert!(cases.len() > 500);
    for Case(pattern, text, (search, whole, all, split, sub)) in &cases {
        let what = format!("{pattern:?} in {text:?}");
        let program = Program::new(pattern, Flags::default()).unwrap_or_else(|r| panic!("{what}: {r:?}"));
        let first = |mode| program.find(text, 0, mode).expect("short").map(|s| reported(&s));
        assert_eq!(first(Mode::Anywhere), *search, "{what}");
        assert_eq!(first(Mode::Whole), *whole, "{what}");
        let (mut found, mut from, mut mode) = (Vec::new(), 0, Mode::Anywhere);
        while let Some(spans) = program.find(text, from, mode).expect("short") {
            let (start, end) = spans[0].expect("the whole");
            (from, mode) = (end, if start == end { Mode::Further } else { Mode::Anywhere });
            found.push(reported(&spans));
        }
        assert_eq!(found, *all, "{what}");
        let quoted = |s: &str| serde_json::to_string(s).expect("text");
        let got = run(&format!("import re\nr = re.split({}, {})", quoted(pattern), quoted(text))).expect(&what);
        let got: Vec<Option<String>> =
            got.as_items().expect("a list").iter().map(|v| v.as_str().map(str::to_string)).collect();
        assert_eq!(got, *split, "{what}");
        let template = quoted(r"<\g<0>>");
        let got = run(&format!("import re\nr = re.sub({}, {template}, {})", quoted(pattern), quoted(text)));
        assert_eq!(got.expect(&what).as_str(), Some(sub.as_str()), "{what}");
    }
}

fn shown(code: &str) -> String {
    match run(&format!("import re\n{code}")) {
        Ok(value) => python::machine::repr(&value),
        Err(why) => why,
    }
}

#[test]
fn functions_methods_and_attributes() {
    let cases = [
        (r#"r = re.findall(r"(\w)=(\d)", "a=1 b=2")"#, "[('a', '1'), ('b', '2')]"),
        (r#"r = [int(x) for x in re.findall(r"\d+", "a10 b25")]"#, "[10, 25]"),
        (r#"r = re.match(r"layers\.(\d+)\.", "layers.12.attn").group(1)"#, "'12'"),
        (
            r#"m = re.search("(?P<n>b+)(c)?", "abbd"); r = (m["n"], m[2], m.span(), m.start("n"), m.groupdict())"#,
            "('bb', None, (1, 3), 1, {'n': 'bb'})",
        ),
        (r#"r = re.match("a", "b") is None"#, "True"),
        (r#"r = 1 if re.match("a", "ab") else 2"#, "1"),
        (
            r#"p = re.compile("[aeiou]", re.I); r = (p.sub("-", "AbE"), p.pattern, p.split("xAy", 1))"#,
            "('-b-', '[aeiou]', ['x', 'y'])",
        ),
        (r#"r = re.sub(r"\d+", lambda m: str(int(m.group()) * 2), "a1 b20", count=1)"#, "'a2 b20'"),
        (r#"r = re.subn("a", "b", "aa")"#, "('bb', 2)"),
        (r#"r = [m.start() for m in re.finditer("a", "banana")]"#, "[1, 3, 5]"),
        (r#"m = re.search(r"(\d+)é", "ü٣é"); r = (m.span(), m.group(1), m.start(1))"#, "((1, 3), '٣', 1)"),
        (r#"r = re.escape("a.b-c")"#, r"'a\\.b\\-c'"),
        (r#"r = re.split(r"[;,]\s*", "a, b;c", maxsplit=1)"#, "['a', 'b;c']"),
    ];
    for (code, want) in cases {
        assert_eq!(shown(code), want, "{code}");
    }
}

#[test]
fn what_is_no_pattern_or_is_not_matched_here_is_told() {
    let of = |pattern: &str| Program::new(pattern, Flags::default()).expect_err(pattern);
    for pattern in ["(", "a)", "[a", "*a", "a**", "(?P<1>a)", r"\1", "(?<=a+)b", "a{3,2}", r"\q", "b(?i)a"] {
        assert!(of(pattern).python, "{pattern}");
    }
    for pattern in ["(?>a)", "a++", r"\x41", "(a)(?(1)b|c)"] {
        assert!(!of(pattern).python, "{pattern}");
    }
    let deep = "(".repeat(5000) + &")".repeat(5000);
    assert!(!of(&deep).python && !of("(((a{1000}){1000}){1000})").python);
    assert_eq!(shown(r#"r = re.match("(a+)+$", "a" * 40 + "b")"#), "None");
    assert!(shown(r#"r = re.match("(a*)*$", "a" * 40 + "b")"#).contains("too many steps"));
    assert!(shown(r#"r = re.search("(", "a")"#).starts_with("ValueError: re.error: missing )"));
    assert!(matches!(run("import re\nr = re.search('a', 'b')"), Ok(Value::None)));
}
