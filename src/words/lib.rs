//! What window and terminal say, in English, Chinese, Spanish and Hindi: Fluent files, embedded.
//!
//! Invariant: a text that a language lacks is the English one; the same id and figures give the same text. Codes, JSON, logs and files
//! are not its business: they stay English. Must not know who shows a text.

mod files;
mod hints;
mod language;

pub use fluent_bundle::FluentValue as Value;
pub use language::Language;

use fluent_bundle::concurrent::FluentBundle;
use fluent_bundle::{FluentArgs, FluentResource};
use fluent_syntax::ast::{Entry, Expression, InlineExpression, Pattern, PatternElement};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

/// The texts of one language.
pub struct Words {
    language: Language,
    /// Texts without figures, by `id` or `id.attribute`.
    plain: HashMap<String, String>,
    bundle: FluentBundle<Arc<FluentResource>>,
}

impl std::fmt::Debug for Words {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Words({:?}, {} texts)", self.language, self.plain.len())
    }
}

/// A language's texts are read when one of them is first asked for.
static ALL: [LazyLock<Words>; 4] = [
    LazyLock::new(|| Words::read(Language::English)),
    LazyLock::new(|| Words::read(Language::Chinese)),
    LazyLock::new(|| Words::read(Language::Spanish)),
    LazyLock::new(|| Words::read(Language::Hindi)),
];

impl Words {
    /// Those of a language.
    pub fn of(language: Language) -> &'static Words {
        &ALL[language as usize]
    }

    fn read(language: Language) -> Words {
        let mut bundle = FluentBundle::new_concurrent(vec![language.identifier()]);
        // marks around figures would be drawn, and found by who copies a text
        bundle.set_use_isolating(false);
        let mut plain = HashMap::new();
        for (name, text) in files::of(language) {
            let read = FluentResource::try_new((*text).to_string());
            let resource = read.unwrap_or_else(|(rest, errors)| {
                debug_assert!(false, "{language:?} {name}: {errors:?}");
                rest
            });
            texts(&resource, &mut plain);
            let added = bundle.add_resource(Arc::new(resource));
            debug_assert!(added.is_ok(), "{language:?} {name}: {added:?}");
        }
        Words { language, plain, bundle }
    }

    /// Which language.
    pub fn language(&self) -> Language {
        self.language
    }

    /// A text of this language without figures; None: it has none of this name. `id.attribute` names a part.
    pub fn own(&self, id: &str) -> Option<&str> {
        self.plain.get(id).map(String::as_str)
    }

    /// A text without figures, in English where this language lacks it.
    pub fn text(&'static self, id: &str) -> &'static str {
        let found = self.own(id).or_else(|| Words::of(Language::English).own(id));
        debug_assert!(found.is_some(), "no text is called {id}");
        found.unwrap_or_default()
    }

    /// A text with figures or names in it.
    pub fn with(&self, id: &str, figures: &[(&str, Value<'_>)]) -> String {
        let pattern = |words: &'static Words| Some((words, words.bundle.get_message(id)?.value()?));
        let found = pattern(Words::of(self.language)).or_else(|| pattern(Words::of(Language::English)));
        debug_assert!(found.is_some(), "no text is called {id}");
        let Some((words, pattern)) = found else { return String::new() };
        let args: FluentArgs<'_> = figures.iter().map(|(name, value)| (*name, value.clone())).collect();
        let mut wrong = Vec::new();
        let text = words.bundle.format_pattern(pattern, Some(&args), &mut wrong).into_owned();
        debug_assert!(wrong.is_empty(), "{id}: {wrong:?}");
        text
    }

    /// What a diagnostic of this code is about, in this language. None in English, whose message says it itself.
    pub fn refusal(&self, code: &str) -> Option<&str> {
        self.own(&format!("refusal-{code}"))
    }

    /// The way out of a diagnostic in this language: what its English hint says with its names and figures, or, where that is not known
    /// by its words, what fits all hints of its code. None without a hint, and in English.
    pub fn way_out(&self, code: &str, hint: Option<&str>) -> Option<String> {
        self.ways_out(code, hint).0
    }

    /// The same, and the English hint where it is wanted besides: in English, and where its names and figures would be lost.
    pub fn ways_out<'a>(&self, code: &str, hint: Option<&'a str>) -> (Option<String>, Option<&'a str>) {
        let Some(english) = hint else { return (None, None) };
        if self.language == Language::English {
            return (None, Some(english));
        }
        match hints::told(self, english) {
            Some(whole) => (Some(whole), None),
            None => (self.own(&format!("refusal-{code}.hint")).map(String::from), Some(english)),
        }
    }

    /// An English description in this language; itself where no text has it.
    pub fn phrase(&self, english: &str) -> String {
        let told = || hints::phrase(self, english);
        (self.language != Language::English).then(told).flatten().unwrap_or_else(|| english.into())
    }

    /// Which text of `hints.ftl` or `phrases.ftl` an English way out or description of a file is told by in the other languages.
    pub fn hint_id(english: &str) -> Option<&'static str> {
        hints::id(english)
    }

    /// A diagnostic in one line: its sentence in this language, then its English message with the figures.
    pub fn reported(&self, code: &str, message: &str) -> String {
        self.refusal(code).map_or(message.to_string(), |sentence| format!("{sentence} {message}"))
    }

    /// What a pattern of the library keeps, in this language. None in English, whose docstring says it.
    pub fn pattern(&self, name: &str) -> Option<&str> {
        self.own(&format!("pattern-{name}"))
    }

    /// What a preset is, in this language. None in English, whose document says it.
    pub fn preset(&self, name: &str) -> Option<&str> {
        self.own(&format!("preset-{name}"))
    }

    /// What a parameter of that pattern is, in this language.
    pub fn parameter(&self, pattern: &str, name: &str) -> Option<&str> {
        self.own(&format!("pattern-{pattern}.{name}"))
    }

    /// The doctor's explanation of a message of this code, and the fix. None: the English one alone.
    pub fn explanation(&self, code: &str) -> Option<(&str, &str)> {
        let id = format!("doctor-{code}");
        Some((self.own(&id)?, self.own(&format!("{id}.fix"))?))
    }

    /// Every id of this language with the names of its figures.
    pub fn ids(language: Language) -> BTreeMap<String, Vec<String>> {
        let mut ids = BTreeMap::new();
        for (name, text) in files::of(language) {
            let resource = FluentResource::try_new((*text).to_string()).unwrap_or_else(|(rest, _)| rest);
            for (id, pattern) in patterns(&resource) {
                let mut figures = Vec::new();
                let twice = ids.insert(id.clone(), {
                    names(pattern, &mut figures);
                    figures.sort();
                    figures.dedup();
                    figures
                });
                debug_assert!(twice.is_none(), "{language:?} {name}: {id} stands there twice");
            }
        }
        ids
    }
}

/// The pieces of a resource: messages and their attributes.
fn patterns(resource: &FluentResource) -> Vec<(String, &Pattern<&str>)> {
    let mut found = Vec::new();
    for entry in resource.entries() {
        let Entry::Message(message) = entry else { continue };
        found.extend(message.value.as_ref().map(|value| (message.id.name.to_string(), value)));
        let part = |name: &str| format!("{}.{name}", message.id.name);
        found.extend(message.attributes.iter().map(|attribute| (part(attribute.id.name), &attribute.value)));
    }
    found
}

/// Adds the texts without figures.
fn texts(resource: &FluentResource, into: &mut HashMap<String, String>) {
    for (id, pattern) in patterns(resource) {
        let piece = |element: &PatternElement<&str>| match element {
            PatternElement::TextElement { value } => Some((*value).to_string()),
            // a brace, which Fluent's own signs would take for a figure
            PatternElement::Placeable { expression: Expression::Inline(InlineExpression::StringLiteral { value }) } => {
                Some((*value).to_string())
            }
            PatternElement::Placeable { .. } => None,
        };
        if let Some(text) = pattern.elements.iter().map(piece).collect::<Option<String>>() {
            into.insert(id, text);
        }
    }
}

/// Adds the names of a pattern's figures, in all its variants.
fn names(pattern: &Pattern<&str>, into: &mut Vec<String>) {
    let mut inline = |expression: &InlineExpression<&str>| {
        if let InlineExpression::VariableReference { id } = expression {
            into.push(id.name.to_string());
        }
    };
    let mut below = Vec::new();
    for element in &pattern.elements {
        match element {
            PatternElement::TextElement { .. } => {}
            PatternElement::Placeable { expression: Expression::Inline(one) } => inline(one),
            PatternElement::Placeable { expression: Expression::Select { selector, variants } } => {
                inline(selector);
                below.extend(variants.iter().map(|variant| &variant.value));
            }
        }
    }
    below.into_iter().for_each(|pattern| names(pattern, into));
}

#[cfg(test)]
mod tests;
