//! Texts of window and terminal against the sources that name them.
//!
//! Invariant: ids are literals in the sources; a text that no source names is gone from the files. Must not know what texts say.

use maskloom_words::{Language, Words};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Calls whose next literal is an id.
const ASKS: [&str; 8] = [
    "say(ui, \"",
    "say_with(ui, \"",
    "words.text(\"",
    "said.text(\"",
    "words().text(\"",
    "words.with(\"",
    "said.with(\"",
    "words().with(\"",
];

/// The sources of crates, tests left out.
fn sources(crates: &[&str]) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    crates.iter().for_each(|own| crate::layering::rust_files(&root.join(own), &mut files));
    let text = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path).expect("UTF-8");
        let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
        (path.display().to_string(), text[..end].to_string())
    };
    files.iter().filter(|path| !path.display().to_string().ends_with("tests.rs")).map(text).collect()
}

/// Literals of a source that look like ids.
fn literals(text: &str) -> impl Iterator<Item = &str> {
    text.split('"').filter(|part| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || ".-".contains(c))
    })
}

/// The ids that a source asks for by a call.
fn asked(text: &str) -> Vec<&str> {
    let behind = |ask: &&str| text.match_indices(*ask).map(|(at, ask)| at + ask.len()).collect::<Vec<_>>();
    ASKS.iter().flat_map(behind).filter_map(|at| text[at..].split('"').next()).collect()
}

/// The ids that a source chooses in the arms of a match.
fn chosen(text: &str) -> impl Iterator<Item = &str> {
    let arms = text.match_indices("=> \"").filter_map(|(at, arm)| text[at + arm.len()..].split('"').next());
    arms.filter(|id| id.contains('-') && literals(&format!("\"{id}\"")).next().is_some())
}

/// Codes of diagnostics that a source makes.
fn codes(text: &str) -> Vec<&str> {
    let calls = ["Diagnostic::error(", "Diagnostic::warning(", "Diagnostic::note(", "Fault::limit("];
    let first = |call: &&str| text.match_indices(*call).map(|(at, call)| &text[at + call.len()..]).collect::<Vec<_>>();
    let plain = calls.iter().flat_map(first).filter_map(|rest| rest.trim_start().strip_prefix('"'));
    // a fault names Python's class first
    let faults = text.match_indices("Fault::new(").filter_map(|(at, _)| text[at..].splitn(4, '"').nth(3));
    plain
        .chain(faults)
        .filter_map(|rest| rest.split('"').next())
        .filter(|code| literals(&format!("\"{code}\"")).next().is_some())
        .collect()
}

/// Functions and closures that make a diagnostic of the code that they are given, and at which place of their arguments it stands.
fn makers(text: &str) -> Vec<(&str, usize)> {
    let name_before = |head: &str| head.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |at| at + 1);
    let functions = text.match_indices("code: &'static str").filter_map(|(at, _)| {
        let open = text[..at].rfind('(')?;
        let name = &text[name_before(&text[..open])..open];
        let before = text[open + 1..at].split(',').filter(|part| part.contains(':')).count();
        let signature = text[at..].split('{').next().unwrap_or_default();
        let makes = signature.contains("-> Diagnostic") && text[..open].ends_with(&format!("fn {name}"));
        makes.then_some((name, before))
    });
    let closures = text.match_indices(" = |code, ").map(|(at, _)| (&text[name_before(&text[..at])..at], 0));
    functions.chain(closures).collect()
}

/// Codes that a source gives to such a function.
fn given<'a>(text: &'a str, makers: &BTreeSet<(&str, usize)>) -> Vec<&'a str> {
    let calls = |(name, place): &(&str, usize)| {
        let (call, place) = (format!("{name}("), *place);
        let is_whole = |at: usize| !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let at =
            move |(at, call): (usize, &str)| text[at + call.len()..].split(',').nth(place).filter(|_| is_whole(at));
        let found: Vec<&'a str> = text.match_indices(&*call).filter_map(at).collect();
        found
    };
    let literal = |argument: &'a str| argument.trim().strip_prefix('"')?.split('"').next();
    let codes = makers.iter().flat_map(calls).filter_map(literal);
    codes.filter(|code| code.contains('-') && literals(&format!("\"{code}\"")).next().is_some()).collect()
}

/// The arguments and statements of a source that say a way out, with the code that stands before them.
fn ways_out<'a>(text: &'a str, codes: &BTreeSet<&str>) -> Vec<(Option<&'a str>, Vec<String>)> {
    let starts = [".hint(", "let hint = ", "let way = ", "way: "];
    let spots = starts.iter().flat_map(|start| text.match_indices(start).map(|(at, start)| at + start.len()));
    let of = |at: usize| {
        let (mut depth, mut quoted, mut end, mut chars) = (0_i32, false, text.len(), text[at..].char_indices());
        while let Some((n, c)) = chars.next() {
            match c {
                '\\' if quoted => drop(chars.next()),
                '"' => quoted = !quoted,
                _ if quoted => {}
                '(' | '[' | '{' => depth += 1,
                ')' | ']' | '}' => depth -= 1,
                _ => {}
            }
            if depth < 0 || !quoted && depth == 0 && (c == ';' || c == ',') {
                end = at + n;
                break;
            }
        }
        let from = (0..=at.saturating_sub(1500)).rev().find(|n| text.is_char_boundary(*n)).unwrap_or(0);
        let code = text[from..at].split('"').rfind(|part| codes.contains(part));
        (code, sentences(&text[at..end]))
    };
    spots.map(of).collect()
}

/// Literals of more than one word, as they are when figures are put in.
fn sentences(rest: &str) -> Vec<String> {
    let (mut found, mut chars) = (Vec::new(), rest.chars().peekable());
    while let Some(c) = chars.next() {
        match c {
            // a comment may have a quotation mark alone
            '/' if chars.peek() == Some(&'/') => while chars.next().is_some_and(|c| c != '\n') {},
            '\'' => {
                let one = chars.clone().take(3).collect::<String>();
                if one.starts_with('\\') || one.chars().nth(1) == Some('\'') {
                    while chars.next().is_some_and(|c| c != '\'') {}
                }
            }
            '"' => {
                let mut text = String::new();
                while let Some(c) = chars.next().filter(|c| *c != '"') {
                    match (c, chars.peek().copied()) {
                        ('\\', Some('\n')) => while chars.next_if(|c| c.is_whitespace()).is_some() {},
                        ('\\', _) => text.extend(chars.next()),
                        ('{', Some('{')) | ('}', Some('}')) => text.extend(chars.next()),
                        ('{', _) => {
                            // a literal that is no format may have a brace alone
                            while let Some(c) = chars.next_if(|c| *c != '"').filter(|c| *c != '}') {
                                if c == '\\' {
                                    chars.next();
                                }
                            }
                            text.push_str("x1");
                        }
                        _ => text.push(c),
                    }
                }
                found.push(text);
            }
            _ => {}
        }
    }
    found.retain(|text| text.trim().contains(' '));
    found
}

/// The code of a sentence or of its way out.
fn code_of(id: &str) -> &str {
    id.strip_suffix(".hint").unwrap_or(id)
}

/// Codes without a sentence yet, sorted: the list shrinks. What is shown for them is the English message alone.
const UNSAID: [&str; 0] = [];

/// The crates that make diagnostics.
const CRATES: [&str; 16] = [
    "app",
    "cli",
    "tasks",
    "worker",
    "backends",
    "python",
    "trainers",
    "document",
    "parallel",
    "analysis",
    "quality",
    "extension",
    "export",
    "base",
    "problem",
    "ir",
];

/// Ways out that no language but English has yet, sorted: the list shrinks.
const UNHINTED: [&str; 0] = [];

/// What stands behind `.hint(` in a source has a template in `hints.ftl`, or a text for all hints of its code; a template that no source
/// has is gone.
#[test]
fn every_way_out_of_a_source_is_said() {
    let mut all = sources(&CRATES);
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/main.rs");
    all.push(("src/main.rs".into(), std::fs::read_to_string(program).expect("UTF-8")));
    let chinese = Words::of(Language::Chinese);
    let ids = Words::ids(Language::Chinese);
    let general: BTreeSet<&str> =
        ids.keys().filter_map(|id| id.strip_prefix("refusal-")?.strip_suffix(".hint")).collect();
    let codes: BTreeSet<&str> = ids.keys().filter_map(|id| id.strip_prefix("refusal-")).map(code_of).collect();
    let mut unsaid = BTreeSet::new();
    for (file, text) in &all {
        for (code, hints) in ways_out(text, &codes) {
            let covered = |hint: &String| {
                code.is_some_and(|code| general.contains(code)) || chinese.way_out("no-such-code", Some(hint)).is_some()
            };
            let open = hints.into_iter().filter(|hint| !covered(hint) && !NO_WORDS.contains(&hint.trim_end()));
            unsaid.extend(open.map(|hint| format!("{hint}  ({file})")));
        }
    }
    assert_eq!(Vec::from_iter(unsaid), UNHINTED, "ways out without a template in hints.ftl");
    let literals = all.iter().flat_map(|(_, text)| sentences(text));
    let used: BTreeSet<&str> = literals
        .flat_map(|text| text.split("; ").map(String::from).chain([text.clone()]).collect::<Vec<_>>())
        // what was probably meant may stand before it
        .filter_map(|text| Words::hint_id(&text).or_else(|| Words::hint_id(text.strip_prefix("x1")?)))
        .collect();
    let gone: Vec<&String> =
        ids.keys().filter(|id| id.starts_with("hint-") && *id != "hint-or" && !used.contains(id.as_str())).collect();
    assert!(gone.is_empty(), "no source says {gone:?}");
    // it sees them
    let seen = ways_out("f(\"a-b\").hint(format!(\"do {x} \\\"now\\\"\")); let hint = 'c';", &BTreeSet::from(["a-b"]));
    assert_eq!(seen, [(Some("a-b"), vec!["do x1 \"now\"".to_string()]), (Some("a-b"), Vec::new())]);
}

/// A description that comes in English is found by its words, which a source has.
#[test]
fn every_phrase_is_one_that_a_source_says() {
    let plain =
        |text: &str| text.replace("\\\"", "\"").replace("\\\n", "").split_whitespace().collect::<Vec<_>>().join(" ");
    let all: String = sources(&CRATES).iter().map(|(_, text)| plain(text)).collect();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/words/en/phrases.ftl");
    let phrases = std::fs::read_to_string(file).expect("UTF-8");
    let gone: Vec<&str> = phrases
        .lines()
        .filter_map(|line| line.split_once(" = "))
        .filter(|(_, text)| {
            let said = text.split('{').flat_map(|piece| piece.rsplit('}').next());
            said.max_by_key(|piece| piece.len()).is_some_and(|longest| !all.contains(&plain(longest)))
        })
        .map(|(id, _)| id)
        .collect();
    assert!(gone.is_empty(), "no source says {gone:?}");
}

/// Literals behind a way out that need no words: commands and code alone, two ways out that are joined, what a test of text looks for.
const NO_WORDS: [&str; 7] = [
    "`torch.arange(n) < k`",
    "maskloom conform --grad PRESET --backend torch:flex",
    "maskloom doctor --explain \"the printed line\"",
    "sudo apt-get install -y x1",
    "x1; x1",
    "Expected an expression",
    "else if",
];

/// Titles of a terminal's tables that are the same in all languages.
const NAMES: [&str; 15] = [
    "", "GPUs", "L2", "TFLOP/s", "arch", "dtype", "flex", "head_dim", "kv_len", "lse", "min", "ms", "p5", "q_len",
    "rel L1",
];

/// The titles that a source gives to its tables as a list.
fn titles(text: &str) -> impl Iterator<Item = &str> {
    let lists = ["Table::told(&[", "Table::new(&["].map(|call| text.split(call).skip(1));
    let lists = lists.into_iter().flatten().filter_map(|rest| rest.split(']').next());
    lists.flat_map(|list| list.split('"').skip(1).step_by(2))
}

#[test]
fn every_title_of_a_table_in_the_terminal_is_said_or_a_name() {
    let mut own = Vec::new();
    for (file, text) in sources(&["cli"]) {
        let words = titles(&text).filter(|title| !title.starts_with("column-") && !NAMES.contains(title));
        own.extend(words.map(|title| format!("{file}: {title}")));
    }
    assert!(own.is_empty(), "titles that are in no file of texts:\n{}", own.join("\n"));
    // it sees them
    assert_eq!(titles("Table::new(&[\n\"call\", \"ms\"]); f(\"x\")").collect::<Vec<_>>(), ["call", "ms"]);
}

/// Sentences over diagnostics: one for each code in each language, and none for a code that is gone.
#[test]
fn every_code_of_a_diagnostic_has_its_sentence() {
    let all = sources(&CRATES);
    // a name is one function's within its crate
    let own = |file: &str| file.split("/src/").nth(1).and_then(|rest| rest.split('/').next()).map(String::from);
    let mut made_by: BTreeMap<Option<String>, BTreeSet<(&str, usize)>> = BTreeMap::new();
    all.iter().for_each(|(file, text)| made_by.entry(own(file)).or_default().extend(makers(text)));
    let named = |(file, text): &'_ (String, String)| -> Vec<String> {
        let given = given(text, &made_by[&own(file)]);
        codes(text).into_iter().chain(given).map(String::from).collect()
    };
    let made: BTreeSet<String> = all.iter().flat_map(named).filter(|code| code != "done").collect();
    assert!(made.len() > 400, "{}", made.len());
    assert!(made.contains("gpu-none") && made.contains("config-long-value"), "codes that a function is given");
    let said: BTreeSet<&str> = all.iter().flat_map(|(_, text)| literals(text)).collect();
    for language in [Language::Chinese, Language::Spanish, Language::Hindi] {
        let words = Words::of(language);
        let missing: Vec<&str> = made.iter().map(String::as_str).filter(|code| words.refusal(code).is_none()).collect();
        assert_eq!(missing, UNSAID, "left: the codes of which {language:?} says nothing");
        let ids = Words::ids(language);
        let gone: Vec<_> =
            ids.keys().filter_map(|id| id.strip_prefix("refusal-")).filter(|id| !said.contains(code_of(id))).collect();
        assert!(gone.is_empty(), "{language:?} speaks of {gone:?}");
    }
}

#[test]
fn every_id_that_a_source_names_has_a_text_and_every_text_is_named() {
    let known = Words::ids(Language::English);
    let mut named = BTreeSet::new();
    for (file, text) in sources(&["app", "cli", "tasks"]) {
        let missing: Vec<&str> = asked(&text).into_iter().filter(|id| !known.contains_key(*id)).collect();
        assert!(missing.is_empty(), "{file} asks for {missing:?}");
        let missing =
            chosen(&text).filter(|id| file.contains("/app/") && !known.contains_key(*id) && *id != "xdg-open");
        let missing: Vec<&str> = missing.collect();
        assert!(missing.is_empty(), "{file} chooses {missing:?}");
        named.extend(literals(&text).filter(|id| known.contains_key(*id)).map(String::from));
    }
    // parts that are asked for by the whole's id, and ways out, which are found by their words
    let part = |id: &str| {
        id.rsplit_once('.').is_some_and(|(whole, part)| {
            ["tip", "about", "button", "does", "words", "hint"].contains(&part) && named.contains(whole)
        }) || ["hint-", "phrase-"].iter().any(|found| id.starts_with(found))
    };
    let unused: Vec<&String> = known.keys().filter(|id| !named.contains(*id) && !part(id)).collect();
    assert!(unused.is_empty(), "no source names {unused:?}");
    // it sees them
    assert_eq!(chosen("A => \"a-b\", B => \"b\", C => \"Not one\"").collect::<Vec<_>>(), ["a-b"]);
    assert_eq!(asked("f(say(ui, \"a-b\"), words.with(\"c\", &[]))"), ["a-b", "c"]);
    assert_eq!(literals("x(\"a-b\", \"Not one\", \"c.tip\")").collect::<Vec<_>>(), ["a-b", "c.tip"]);
}

/// Calls that put their words on the screen, or tell them to a reader.
const SHOWS: [&str; 36] = [
    ".label(",
    ".strong(",
    ".weak(",
    ".heading(",
    ".monospace(",
    ".colored_label(",
    ".link(",
    ".button(",
    ".small_button(",
    ".menu_button(",
    ".checkbox(",
    ".radio(",
    ".radio_value(",
    ".selectable_label(",
    ".selectable_value(",
    ".selected_text(",
    ".collapsing(",
    ".on_hover_text(",
    ".on_hover_text_at_pointer(",
    ".on_disabled_hover_text(",
    ".hint_text(",
    ".accessible_name(",
    ".alt_text(",
    ".x_axis_label(",
    ".y_axis_label(",
    ".done(",
    "Button::new(",
    "Checkbox::new(",
    "CollapsingHeader::new(",
    "RichText::new(",
    "WidgetInfo::labeled(",
    "WidgetInfo::selected(",
    "Dialog::failure(",
    "primary_button(ui, ",
    "section(ui, ",
    "text_field(ui, ",
];

/// Words that are the same in all languages: names of programs and of the field.
const SAME: [&str; 14] = [
    "BLOCK_SIZE",
    "Ctrl",
    "Enter",
    "FLOP",
    "GPU",
    "NVIDIA",
    "PyTorch",
    "dtype",
    "head_dim_v",
    "kv",
    "kv_idx",
    "ms",
    "q_idx",
    "sqrt",
];

/// Sentences of the sources of the window that no one reads in it, with the reason.
const NOT_SAID: [(&str, &str); 4] = [
    ("def mask_mod(b, h, q_idx, kv_idx)", "code to be typed"),
    ("maskloom worker", "commands of a shell"),
    ("qkv.safetensors", "a file's name"),
    ("{keys}.does", "an id that is put together"),
];

/// The window's sources.
fn of_window() -> Vec<(String, String)> {
    sources(&["app"])
}

/// The arguments behind a call's parenthesis, without what they are made by: an id of a text, a name of a figure, a closure.
fn arguments(rest: &str) -> String {
    let (mut depth, mut quoted, mut end, mut chars) = (1_i32, false, rest.len(), rest.char_indices());
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' if quoted => drop(chars.next()),
            '"' => quoted = !quoted,
            _ if quoted => {}
            '(' => depth += 1,
            ')' => depth -= 1,
            // what a closure shows is seen by the calls inside of it
            '|' => (end, depth) = (at, 0),
            _ => {}
        }
        if depth == 0 {
            end = end.min(at);
            break;
        }
    }
    let mut own = rest[..end].to_string();
    for made in ["say(ui, \"", "say(&child, \"", "say_with(ui, \"", ".text(\"", ".with(\"", "[(\"", " (\""] {
        while let Some(at) = own.find(made) {
            let close = own[at + made.len()..].find('"').map_or(own.len(), |length| at + made.len() + length + 1);
            own.replace_range(at..close, "");
        }
    }
    own
}

/// The literals in some arguments that have words, which are ids of texts no more than names that are the same everywhere.
fn spoken(arguments: &str, known: &BTreeSet<String>) -> Vec<String> {
    let text = arguments.replace("\\\"", "'");
    let has_words = |literal: &&str| {
        let (mut plain, mut inside) = (String::new(), false);
        for c in literal.replace("\\u", "").replace("\\n", " ").chars() {
            (inside, plain) = match c {
                '{' => (true, plain),
                '}' => (false, plain + " "),
                c => (inside, if inside { plain } else { plain + &c.to_string() }),
            };
        }
        let words = plain.split(|c: char| !c.is_alphanumeric() && c != '_');
        words
            .filter(|word| word.chars().filter(char::is_ascii_alphabetic).count() > 1)
            .any(|word| !SAME.contains(&word))
    };
    let literals = text.split('"').skip(1).step_by(2).filter(|literal| !known.contains(*literal));
    literals.filter(has_words).map(String::from).collect()
}

#[test]
fn no_widget_has_words_of_its_own() {
    let known: BTreeSet<String> = Words::ids(Language::English).into_keys().collect();
    let mut own = Vec::new();
    for (file, text) in of_window() {
        let calls = SHOWS.iter().flat_map(|call| text.match_indices(call).map(|(at, call)| at + call.len()));
        for at in calls {
            let line = text[..at].rsplit('\n').next().unwrap_or_default();
            if line.trim_start().starts_with("//") {
                continue;
            }
            let said = spoken(&arguments(&text[at..]), &known);
            own.extend(said.into_iter().map(|words| format!("{file}:{}: {words}", text[..at].lines().count())));
        }
    }
    own.retain(|line| !NOT_SAID.iter().any(|(part, _)| line.contains(part)));
    assert!(own.is_empty(), "words that are in no file of texts:\n{}", own.join("\n"));
    // it sees them
    let shown = |call: &str| spoken(&arguments(call), &known);
    assert_eq!(shown("\"Run again\").clicked()"), ["Run again"]);
    assert_eq!(shown("format!(\"{} heads of {name}\", n))"), ["{} heads of {name}"]);
    assert!(shown("say_with(ui, \"race-who\", &[(\"names\", a.into()), (\"n\", b.into())]))").is_empty());
    for silent in
        ["format!(\"{a} \\u{b7} {b}\"))", "say(ui, \"x\"), |ui| f(\"Some words\"))", "say(ui, id(\"close\")))"]
    {
        assert!(shown(silent).is_empty(), "{silent}");
    }
}

/// Sentences that reach a widget through a table or a variable.
#[test]
fn no_sentence_of_the_window_stands_in_its_sources() {
    let rooms = ["panels", "dialogs", "tabs", "canvas", "drafts", "editor"];
    let mut own = Vec::new();
    for (file, text) in of_window() {
        if !rooms.iter().any(|room| file.contains(&format!("/app/{room}/"))) {
            continue;
        }
        for (n, line) in text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")) {
            // diagnostics are English, below a sentence by their code
            if ["Diagnostic::", ".hint(", "guarded(", ".expect("].iter().any(|call| line.contains(call)) {
                continue;
            }
            let sentence = |literal: &&str| {
                let words = literal.split(' ').filter(|word| word.len() > 1 && word.chars().all(char::is_alphabetic));
                words.count() > 3
            };
            let found = line.split('"').skip(1).step_by(2).filter(sentence);
            own.extend(found.map(|words| format!("{file}:{}: {words}", n + 1)));
        }
    }
    own.retain(|line| !NOT_SAID.iter().any(|(part, _)| line.contains(part)));
    assert!(own.is_empty(), "sentences that are in no file of texts:\n{}", own.join("\n"));
}

/// Every pattern and each of its parameters, and none that is gone.
#[test]
fn every_pattern_has_its_help_in_every_language() {
    use maskloom_document::library;
    let mut wanted = BTreeSet::new();
    for pattern in library::patterns() {
        wanted.insert(format!("pattern-{}", pattern.name));
        let doc = pattern.text.split("\"\"\"").nth(1).unwrap_or_default();
        let lines = doc.split_once("Args:").map_or("", |(_, lines)| lines).lines();
        let names = lines.filter_map(|line| Some(line.trim().split_once(':')?.0));
        wanted.extend(names.map(|name| format!("pattern-{}.{name}", pattern.name)));
    }
    assert!(wanted.len() > 200, "{}", wanted.len());
    for language in [Language::Chinese, Language::Spanish, Language::Hindi] {
        let ids = Words::ids(language).into_keys().filter(|id| id.starts_with("pattern-"));
        assert_eq!(ids.collect::<BTreeSet<_>>(), wanted, "{language:?}");
    }
    let hindi = Words::of(Language::Hindi);
    assert_eq!(hindi.parameter("causal", "offset"), Some("key के बीच पहली query का स्थान"));
    assert!(Words::of(Language::English).pattern("causal").is_none());
}

/// Every preset, and none that is gone.
#[test]
fn every_preset_is_described_in_every_language() {
    let wanted: BTreeSet<String> =
        maskloom_document::library::presets().iter().map(|preset| format!("preset-{}", preset.name)).collect();
    assert!(wanted.len() > 70, "{}", wanted.len());
    for language in [Language::Chinese, Language::Spanish, Language::Hindi] {
        let ids = Words::ids(language).into_keys().filter(|id| id.starts_with("preset-"));
        assert_eq!(ids.collect::<BTreeSet<_>>(), wanted, "{language:?}");
    }
}
