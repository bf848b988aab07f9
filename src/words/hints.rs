//! Ways out and descriptions that come in English, told in another language: which template of `hints.ftl` or `phrases.ftl` one was
//! written by, with its names and figures.
//!
//! Invariant: a template is found by its literal words, the one that has most of them; what it holds open is taken over as it stands. A
//! message carries its way out in English alone, through files and workers of every version, so that it is found by its words and not by
//! an id. Must not know codes.

use super::{Language, Value, Words, files, patterns};
use fluent_bundle::FluentResource;
use fluent_syntax::ast::{Expression, InlineExpression, Pattern, PatternElement};
use std::sync::LazyLock;

/// The files of the templates: ways out, and other descriptions.
const WAYS: &str = "hints.ftl";
const PHRASES: &str = "phrases.ftl";

/// What joins a way out to another one, which is none by itself.
const OR: &str = "hint-or";

enum Piece {
    /// What every way out of the template says.
    Said(String),
    /// What differs: its name.
    Open(String),
}

struct Template {
    id: String,
    pieces: Vec<Piece>,
    /// Bytes that are the same in all.
    said: usize,
}

static ALL: LazyLock<Vec<Template>> = LazyLock::new(|| templates(WAYS));
static OTHERS: LazyLock<Vec<Template>> = LazyLock::new(|| templates(PHRASES));

fn templates(file: &str) -> Vec<Template> {
    let english = files::of(Language::English).iter().find(|(name, _)| *name == file);
    let Some(resource) = english.and_then(|(_, text)| FluentResource::try_new((*text).to_string()).ok()) else {
        return Vec::new();
    };
    let whole = patterns(&resource).into_iter().filter(|(id, _)| id != OR);
    whole.map(|(id, pattern)| Template::new(id, pattern)).collect()
}

impl Template {
    fn new(id: String, pattern: &Pattern<&str>) -> Template {
        let mut pieces: Vec<Piece> = Vec::new();
        for element in &pattern.elements {
            let text = match element {
                PatternElement::TextElement { value } => value,
                PatternElement::Placeable {
                    expression: Expression::Inline(InlineExpression::StringLiteral { value }),
                } => value,
                PatternElement::Placeable {
                    expression: Expression::Inline(InlineExpression::VariableReference { id }),
                } => {
                    pieces.push(Piece::Open(id.name.to_string()));
                    continue;
                }
                PatternElement::Placeable { .. } => continue,
            };
            match pieces.last_mut() {
                Some(Piece::Said(before)) => before.push_str(text),
                _ => pieces.push(Piece::Said((*text).to_string())),
            }
        }
        let said = pieces.iter().map(|piece| if let Piece::Said(text) = piece { text.len() } else { 0 }).sum();
        Template { id, pieces, said }
    }

    /// What stands in the open places of a way out; None: it is of another template.
    fn read<'a>(&'static self, hint: &'a str) -> Option<Vec<(&'static str, &'a str)>> {
        let (mut rest, mut open, mut found) = (hint, None, Vec::<(&str, &str)>::new());
        for (n, piece) in self.pieces.iter().enumerate() {
            let text = match piece {
                Piece::Open(name) => {
                    open = Some(name.as_str());
                    continue;
                }
                Piece::Said(text) => text.as_str(),
            };
            let (before, after) = match open {
                None => ("", rest.strip_prefix(text)?),
                Some(_) if n + 1 == self.pieces.len() => (rest.strip_suffix(text)?, ""),
                Some(_) => rest.split_once(text)?,
            };
            if let Some(name) = open.take() {
                take(&mut found, name, before)?;
            }
            rest = after;
        }
        match open {
            Some(name) => take(&mut found, name, rest)?,
            None if !rest.is_empty() => return None,
            None => {}
        }
        Some(found)
    }
}

/// Adds what stands at a name; None: nothing stands there, or something else than before.
fn take<'a>(found: &mut Vec<(&'static str, &'a str)>, name: &'static str, value: &'a str) -> Option<()> {
    match found.iter().find(|(known, _)| *known == name) {
        Some((_, before)) if *before != value => return None,
        Some(_) => {}
        None if value.is_empty() => return None,
        None => found.push((name, value)),
    }
    Some(())
}

/// An English way out in the language of `words`; None: no template has it. One that two sources joined by a semicolon is told by both.
pub(super) fn told(words: &Words, hint: &str) -> Option<String> {
    if let Some(whole) = whole(words, hint) {
        return Some(whole);
    }
    if let Some(other) = hint.strip_prefix("or ") {
        return Some(words.with(OR, &[("way", told(words, other)?.into())]));
    }
    // what was probably meant stands before where all are listed
    if let Some((meant, rest)) = hint.split_once("`? ") {
        let between = if words.language() == Language::Chinese { "" } else { " " };
        let meant = whole(words, &[meant, "`?"].concat())?;
        return Some([&meant, between, &told(words, rest)?].concat());
    }
    let between = if words.language() == Language::Chinese { "；" } else { "; " };
    hint.match_indices("; ").find_map(|(at, sign)| {
        let first = whole(words, &hint[..at])?;
        Some([&first, between, &told(words, &hint[at + sign.len()..])?].concat())
    })
}

fn found<'a>(all: &'static [Template], text: &'a str) -> Option<(&'static Template, Vec<(&'static str, &'a str)>)> {
    let fitting = all.iter().filter_map(|template| Some((template, template.read(text)?)));
    fitting.max_by_key(|(template, _)| template.said)
}

/// The id of the template that an English way out was written by, or a description.
pub(super) fn id(text: &str) -> Option<&'static str> {
    found(&ALL, text).or_else(|| found(&OTHERS, text)).map(|(template, _)| template.id.as_str())
}

fn whole(words: &Words, hint: &str) -> Option<String> {
    let (template, open) = found(&ALL, hint)?;
    let open: Vec<(&str, Value<'_>)> = open.into_iter().map(|(name, value)| (name, value.into())).collect();
    Some(words.with(&template.id, &open))
}

/// An English description in the language of `words`; None: no template has it.
pub(super) fn phrase(words: &Words, english: &str) -> Option<String> {
    let (template, open) = found(&OTHERS, english)?;
    // what a description holds open may be another one
    let own = |value: &str| phrase(words, value).unwrap_or_else(|| value.into());
    let open: Vec<(&str, Value<'_>)> = open.into_iter().map(|(name, value)| (name, own(value).into())).collect();
    Some(words.with(&template.id, &open))
}

#[cfg(test)]
mod tests {
    use super::{ALL, OTHERS, phrase, told};
    use crate::{Language, Words};

    fn in_all(hint: &str) -> [Option<String>; 3] {
        [Language::Chinese, Language::Spanish, Language::Hindi].map(|language| told(Words::of(language), hint))
    }

    #[test]
    fn a_way_out_keeps_its_names_and_figures_in_every_language() {
        let [chinese, spanish, hindi] = in_all("did you mean `sliding_window`?");
        assert_eq!(chinese.as_deref(), Some("您是想写 `sliding_window` 吗？"));
        assert_eq!(spanish.as_deref(), Some("¿quería decir `sliding_window`?"));
        assert_eq!(hindi.as_deref(), Some("क्या आपका मतलब `sliding_window` था?"));
        // the more words, the nearer: a template with an open place would take it, too
        let known = in_all("write `.to(torch.int64)`; for a quotient use `//`");
        assert_eq!(known[1].as_deref(), Some("escriba `.to(torch.int64)`; para un cociente use `//`"));
        assert_eq!(in_all("write `x.int()`")[0].as_deref(), Some("写 `x.int()`"));
        // a name that stands twice is one name
        let pass = "pass `window`, by position or as `window=...`";
        assert!(in_all(pass).iter().all(|told| told.as_ref().is_some_and(|told| told.matches("`window").count() == 2)));
        assert_eq!(in_all("pass `window`, by position or as `other=...`"), [None, None, None]);
    }

    #[test]
    fn two_ways_out_of_one_message_are_both_told_and_what_is_unknown_is_not() {
        let joined = "restart the worker; please report it with the file /tmp/a.txt";
        assert_eq!(in_all(joined)[0].as_deref(), Some("请重新启动工作进程；请连同文件 /tmp/a.txt 报告"));
        let fetched = "let Maskloom fetch it into its own folder: maskloom doctor --fix; or remove one of them";
        assert!(in_all(fetched)[1].as_ref().is_some_and(|told| told.ends_with("doctor --fix; o quite uno de los dos")));
        let meant = "did you mean `causal`? `maskloom presets` lists all patterns";
        assert_eq!(in_all(meant)[0].as_deref(), Some("您是想写 `causal` 吗？`maskloom presets` 列出所有模式"));
        assert_eq!(
            in_all(meant)[1].as_deref(),
            Some("¿quería decir `causal`? `maskloom presets` lista todos los patrones")
        );
        for unknown in
            ["did you mean `causal`? dance", "or dance", "restart the worker; or dance", "", "dance", "it has: "]
        {
            assert_eq!(in_all(unknown), [None, None, None], "{unknown}");
        }
    }

    #[test]
    fn a_description_keeps_its_names_and_figures() {
        let spanish = Words::of(Language::Spanish);
        let code = phrase(spanish, "machine code for sm_90a, made by NVRTC 13.3");
        assert_eq!(code.as_deref(), Some("código máquina para sm_90a, hecho por NVRTC 13.3"));
        assert_eq!((phrase(spanish, "a dance"), spanish.phrase("a dance")), (None, "a dance".to_string()));
        assert_eq!(Words::of(Language::English).phrase("the figure"), "the figure");
    }

    #[test]
    fn every_template_is_found_by_its_own_words() {
        assert!(ALL.len() > 350, "{}", ALL.len());
        for template in ALL.iter().chain(OTHERS.iter()) {
            let said = |piece: &super::Piece| match piece {
                super::Piece::Said(text) => text.clone(),
                super::Piece::Open(name) => format!("x_{name}"),
            };
            let hint: String = template.pieces.iter().map(said).collect();
            assert_eq!(super::id(&hint), Some(&*template.id), "{hint}");
        }
    }
}
