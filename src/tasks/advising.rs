//! Advice on a trainer's setting in the words of a language.
//!
//! Invariant: the only place where advice becomes words; JSON has the English ones. Must not know how advice is found.

use crate::tasks::origins;
use crate::trainers::advice::{Advice, Headline, Measuring, Next, Reason, Shape, Trained};
use crate::words::{Language, Value, Words};
use serde::Serialize;

/// Where advice is read, and what is named there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// Commands have options.
    Terminal,
    /// Pages have buttons.
    Window,
}

/// Advice in words.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// In one line.
    pub headline: String,
    /// The reasons, one a line.
    pub why: Vec<String>,
    /// The next steps, one a line.
    pub next: Vec<String>,
}

/// Advice in a language.
pub fn told(said: &'static Words, reader: Reader, advice: &Advice) -> Told {
    Told {
        headline: headline(said, advice.key, &advice.headline),
        why: advice.why.iter().map(|why| reason(said, reader, why)).collect(),
        next: advice.next.iter().map(|step| next(said, advice.key, step)).collect(),
    }
}

/// Advice as text for a terminal.
pub fn render(said: &'static Words, advice: &Advice) -> String {
    let Told { headline, why, next } = told(said, Reader::Terminal, advice);
    let why = why.into_iter().map(|line| said.with("advice-because", &[("line", line.into())]));
    let next = next.into_iter().map(|line| said.with("advice-next", &[("line", line.into())]));
    let below: String = why.chain(next).map(|line| format!("  {line}\n")).collect();
    format!("{headline}\n{below}")
}

/// Advice as JSON has it.
pub fn json(advice: &Advice) -> impl Serialize + use<> {
    #[derive(Serialize)]
    struct Json {
        forward: Option<&'static str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        training: Option<&'static str>,
        must: Option<&'static str>,
        headline: String,
        why: Vec<String>,
        next: Vec<String>,
    }
    let Told { headline, why, next } = told(Words::of(Language::English), Reader::Terminal, advice);
    let Advice { forward, training, must, .. } = *advice;
    Json { forward, training, must, headline, why, next }
}

fn headline(said: &'static Words, key: &str, of: &Headline) -> String {
    let key = ("key", key.into());
    let value = |value: &'static str| ("value", Value::from(value));
    let gain = |share: f64| ("gain", whole(share));
    match of {
        Headline::None => said.with("advice-none", &[key]),
        Headline::Must(must) => said.with("advice-must", &[key, value(must)]),
        Headline::Fused { current, fused } => {
            let [fused, other] = [("fused", Value::from(*fused)), ("other", Value::from(*fused))];
            said.with("advice-fused", &[key, fused, ("current", current.as_str().into()), other])
        }
        Headline::Only(only) => said.with("advice-only", &[value(only), key]),
        Headline::Within(names, share) => {
            let names = joined(said, "list-two", names.iter().map(|name| (*name).to_string()));
            said.with("advice-within", &[("names", names.into()), ("share", whole(*share))])
        }
        Headline::Present(present, None) => said.with("advice-present", &[value(present)]),
        Headline::Present(present, Some(ahead)) => said.with("advice-present-ahead", &[value(present), gain(*ahead)]),
        Headline::Fastest(best, None) => said.with("advice-fastest", &[value(best), key]),
        Headline::Fastest(best, Some(ahead)) => said.with("advice-fastest-ahead", &[value(best), key, gain(*ahead)]),
    }
}

fn reason(said: &'static Words, reader: Reader, of: &Reason) -> String {
    match of {
        Reason::Noted(note) => said.reported(&note.code, &note.message),
        Reason::Weights(weights) => said.with("advice-weights", &[("weights", weights.into())]),
        Reason::Untrained(current, edition) => {
            said.with("advice-untrained", &[("current", current.into()), ("edition", edition.into())])
        }
        Reason::Formats(current, precision) => {
            said.with("advice-formats", &[("current", current.into()), ("precision", precision.into())])
        }
        Reason::Needs(current, gib) => {
            let scores = match gib {
                Some(gib) => said.with("advice-scores", &[("n", decimals(*gib))]),
                None => said.text("advice-scores-all").into(),
            };
            said.with("advice-needs", &[("current", current.into()), ("scores", scores.into())])
        }
        Reason::Differs { design, model } => {
            let [design, model] = [design, model].map(|of| Value::from(shape(said, of)));
            said.with("advice-differs", &[("design", design), ("model", model)])
        }
        Reason::NoEffect { family, values, edition } => {
            let names = quoted(said, values);
            let figures =
                [("family", family.into()), ("names", names.into()), ("edition", Value::from(edition.as_str()))];
            said.with("advice-no-effect", &figures)
        }
        Reason::Plain(place, times) => {
            let times = times.iter().map(|(value, ms)| format!("{value} {ms:.2} ms"));
            let list = joined(said, "list-comma", times);
            said.with("advice-plain", &[("place", origins::whole(said, place).into()), ("list", list.into())])
        }
        Reason::Both { place, designed, of } => {
            let list = joined(said, "list-comma", of.iter().map(|one| trained(said, one)));
            let figures = [("place", origins::whole(said, place).into()), ("list", Value::from(list))];
            let id = if *designed { "advice-designed-both" } else { "advice-plain-both" };
            said.with(id, &figures)
        }
        Reason::OwnForwardOnly(names) => {
            let names = [("names", quoted(said, names).into())];
            match reader {
                Reader::Terminal => said.with("advice-own-forward-option", &names),
                Reader::Window => said.with("advice-own-forward", &names),
            }
        }
        Reason::Designed { place, fits, ms, ours, times } => {
            let (ms, ratio) = (("ms", decimals(*ms)), times.map(|times| ("ratio", decimals(times))));
            let time = match (ours, ratio) {
                (false, None) => said.with("advice-by-torch", &[ms]),
                (false, Some(ratio)) => said.with("advice-by-torch-times", &[ms, ratio]),
                (true, None) => said.with("advice-by-ours", &[ms]),
                (true, Some(ratio)) => said.with("advice-by-ours-times", &[ms, ratio]),
            };
            let figures = [("place", origins::whole(said, place).into()), ("time", Value::from(time))];
            let id = if *fits { "advice-designed" } else { "advice-designed-own" };
            said.with(id, &figures)
        }
    }
}

fn trained(said: &'static Words, of: &Trained) -> String {
    match of {
        Trained::Timed(name, forward, backward) => {
            format!("{name} {forward:.2} + {backward:.2} = {:.2} ms", forward + backward)
        }
        Trained::Wrong(name, fault) => {
            said.with("advice-wrong-gradients", &[("name", name.into()), ("words", fault.into())])
        }
        Trained::NotTimed(name) => said.with("advice-not-timed", &[("name", name.into())]),
        Trained::NoBackward(name, None) => said.with("advice-no-backward", &[("name", name.into())]),
        Trained::NoBackward(name, Some(why)) => {
            said.with("advice-no-backward-why", &[("name", name.into()), ("why", why.into())])
        }
    }
}

fn next(said: &'static Words, key: &str, of: &Next) -> String {
    let command = |of: &Measuring| match of {
        Measuring::Command(command) => command.clone(),
        Measuring::OpenAgain => said.text("advice-open").to_string(),
    };
    let key = ("key", key.into());
    match of {
        Next::Measure(by) => said.with("advice-measure", &[("command", command(by).into())]),
        Next::MeasureOthers(by) => said.with("advice-others", &[("command", command(by).into())]),
        Next::Training(value) => said.with("advice-training", &[("value", (*value).into())]),
        Next::ForwardOnly => said.with("advice-forward-only", &[key]),
        Next::RaceDesign => said.text("advice-race-design").into(),
        Next::NoValue => said.with("advice-no-value", &[key]),
        Next::Export(axis, heads) => {
            let options = format!("--axes \"{axis}\" --heads {heads}");
            said.with("advice-export", &[("options", options.into())])
        }
    }
}

fn shape(said: &'static Words, of: &Shape) -> String {
    let number = |name, n: usize| (name, Value::from(n.to_string()));
    let figures =
        [number("heads", of.heads), number("q", of.q_len), number("kv", of.kv_len), ("axis", of.axis.as_str().into())];
    said.with("advice-attended", &figures)
}

/// `a` and `b`, in ticks that the text around it opens and closes.
fn quoted(said: &'static Words, names: &[&'static str]) -> String {
    let last = names.len().saturating_sub(1);
    let ticked = names
        .iter()
        .enumerate()
        .map(|(n, name)| format!("{}{name}{}", if n == 0 { "" } else { "`" }, if n == last { "" } else { "`" }));
    joined(said, "list-two", ticked)
}

/// Items one after the other.
fn joined(said: &'static Words, id: &str, items: impl Iterator<Item = String>) -> String {
    items.reduce(|one, other| said.with(id, &[("one", one.into()), ("other", other.into())])).unwrap_or_default()
}

fn decimals(x: f64) -> Value<'static> {
    format!("{x:.2}").into()
}

/// A share in whole percent.
fn whole(share: f64) -> Value<'static> {
    format!("{:.0}", share * 100.0).into()
}

#[cfg(test)]
#[path = "advising_tests.rs"]
mod tests;
