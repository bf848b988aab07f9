//! Proposed masks in the words of a language: what kind, why, and their numbers.
//!
//! Invariant: in English these are the words that files have. Must not know how proposals are found, nor what shows them.

use crate::quality::capture::{Call, Capture};
use crate::quality::suggest::order::Order;
use crate::quality::suggest::schedule::Schedule;
use crate::quality::suggest::{First, Form, Kind, Reach, Reason};
use crate::words::{Value, Words};

/// What a head's attention is like, by its name in files.
pub fn character(said: &'static Words, of: &str) -> &'static str {
    said.text(match of {
        "sinks" => "atlas-sinks",
        "prefix" => "atlas-prefix",
        "local" => "atlas-local",
        "sparse" => "atlas-sparse",
        _ => "atlas-spread",
    })
}

/// What kind of mask a proposal is.
pub fn kind(said: &'static Words, of: &Kind) -> String {
    let id = match of {
        Kind::WindowSinks => "form-window-sinks",
        Kind::ColumnsDiagonals => "form-columns-diagonals",
        Kind::KeysDistances => "form-keys-distances",
        Kind::Box => "form-box",
        Kind::Tiles => "form-tiles",
        Kind::Radial => "form-radial",
        Kind::HeadGroups => "form-groups",
        Kind::Budget => "form-budget",
        Kind::TopP => "form-top-p",
        Kind::TopK => "form-top-k",
        Kind::TopEither => "form-top-either",
        Kind::Global => "form-global",
        Kind::OneList => "form-one-list",
        Kind::List => "form-list",
        Kind::Everything => "form-everything",
        Kind::Router(name) => return said.with("form-router", &[("name", name.into())]),
    };
    said.text(id).into()
}

/// Why it looks as it does.
pub fn reason(said: &'static Words, of: &Reason) -> String {
    match of {
        Reason::Part => String::new(),
        Reason::Window { reach, near, first } => window(said, *reach, *near, *first),
        Reason::Columns { columns, diagonals } => {
            said.with("form-columns-why", &[count("columns", columns), count("diagonals", diagonals)])
        }
        Reason::Keys { keys, distances } => {
            said.with("form-keys-why", &[count("keys", keys), count("distances", distances)])
        }
        Reason::Box { extents: [frames, rows, columns], mass } => said.with(
            "form-box-why",
            &[count("frames", frames), count("rows", rows), count("columns", columns), tenths("mass", *mass)],
        ),
        Reason::Tiles { kernel, tile, mass } => {
            let sides = |of: &[usize; 3]| Value::from(of.map(|n| n.to_string()).join(" x "));
            said.with("form-tiles-why", &[("kernel", sides(kernel)), ("tile", sides(tile)), tenths("mass", *mass)])
        }
        Reason::Radial { width, halving, mass } => {
            said.with("form-radial-why", &[count("width", width), count("halving", halving), tenths("mass", *mass)])
        }
        Reason::HeadGroups { lists, heads } => {
            said.with("form-groups-why", &[count("lists", lists), count("heads", heads)])
        }
        Reason::BudgetOfHeads(heads) => said.with("form-budget-each", &[count("count", heads)]),
        Reason::BudgetOfGroups(groups) => said.with("form-budget-groups", &[count("count", groups)]),
        Reason::TopP(share) => said.with("form-top-p-why", &[whole("share", *share)]),
        Reason::TopK(blocks) => said.with("form-top-k-why", &[count("k", blocks)]),
        Reason::TopEither(blocks, share) => {
            said.with("form-top-either-why", &[count("k", blocks), whole("share", *share)])
        }
        Reason::Global => said.text("form-global-why").into(),
        Reason::OneList => said.text("form-one-list-why").into(),
        Reason::Router(name) => said.with("form-router-why", &[("name", name.into())]),
    }
}

fn window(said: &'static Words, reach: Reach, near: f64, first: Option<First>) -> String {
    let mut figures = vec![tenths("mass", near)];
    match reach {
        Reach::Last(keys) => figures.push(count("n", &keys)),
        Reach::Around(before, after) => figures.extend([count("before", &before), count("after", &after)]),
    }
    if let Some(First { keys, more }) = first {
        figures.extend([count("keys", &keys), tenths("more", more)]);
    }
    let id = match (reach, first.map(|first| first.keys)) {
        (Reach::Last(_), None) => "form-last",
        (Reach::Last(_), Some(1)) => "form-last-first",
        (Reach::Last(_), Some(_)) => "form-last-firsts",
        (Reach::Around(..), None) => "form-around",
        (Reach::Around(..), Some(1)) => "form-around-first",
        (Reach::Around(..), Some(_)) => "form-around-firsts",
    };
    said.with(id, &figures)
}

/// Its numbers.
pub fn form(said: &'static Words, of: &Form) -> String {
    let sides = |of: &[usize; 3]| Value::from(of.map(|n| n.to_string()).join("x"));
    let ranges =
        |of: &[[i64; 2]]| Value::from(of.iter().map(|[a, b]| format!("{a}..{b}")).collect::<Vec<_>>().join(" "));
    match of {
        Form::Window { back, ahead: 0, sinks, causal: true } => {
            said.with("form-is-window", &[count("n", &(back + 1)), count("sinks", sinks)])
        }
        Form::Window { back, ahead, sinks, .. } => {
            said.with("form-is-around", &[count("back", back), count("ahead", ahead), count("sinks", sinks)])
        }
        Form::Stripes { block, columns, diagonals, .. } => {
            let figures = [("columns", ranges(columns)), ("diagonals", ranges(diagonals)), count("block", block)];
            said.with("form-is-stripes", &figures)
        }
        Form::Box { kernel, .. } => said.with("form-is-box", &[("kernel", sides(kernel))]),
        Form::Tiles { tile, kernel, .. } => {
            said.with("form-is-tiles", &[("kernel", sides(kernel)), ("tile", sides(tile))])
        }
        Form::Radial { width, halving, .. } => {
            said.with("form-is-radial", &[count("width", width), count("halving", halving)])
        }
        Form::Beside { places, form: inner } => {
            let figures = [("form", Value::from(form(said, inner)))];
            match (places.text, places.first_frame) {
                (true, true) => said.with("form-is-beside-both", &figures),
                (_, true) => said.with("form-is-beside-frame", &figures),
                _ => said.with("form-is-beside-text", &figures),
            }
        }
        Form::PerHead(groups) => {
            let one = |(heads, form_of): &(Vec<usize>, Form)| {
                let heads = heads.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
                said.with("form-is-heads-one", &[("heads", heads.into()), ("form", form(said, form_of).into())])
            };
            let list = groups.iter().map(one).collect::<Vec<_>>().join("; ");
            said.with("form-is-heads", &[("list", list.into())])
        }
        Form::Blocks { size, heads, .. } => {
            let size = ("size", size.to_string().into());
            match &heads[..] {
                [one] => said.with("form-is-list", &[count("n", &one.iter().filter(|k| **k != 0).count()), size]),
                all => said.with("form-is-lists", &[size, count("n", &all.len())]),
            }
        }
    }
}

/// Which layers and first steps stay dense, and what the others keep.
pub fn schedule(said: &'static Words, of: &Schedule) -> String {
    let layers: Vec<&str> = of.dense_layers.iter().map(|(_, name)| name.as_str()).collect();
    let steps = (of.dense_steps > 0).then(|| said.with("dense-steps", &[count("n", &of.dense_steps)]));
    let layers = (!layers.is_empty()).then(|| said.with("dense-layers", &[("names", layers.join(", ").into())]));
    let rest = match of.worst {
        Some(mass) => said.with("dense-others", &[("mass", format!("{mass:.4}").into())]),
        None => said.text("dense-all").into(),
    };
    let places = match (steps, layers) {
        (Some(steps), Some(layers)) => said.with("dense-both", &[("steps", steps.into()), ("layers", layers.into())]),
        (steps, layers) => match steps.or(layers) {
            Some(one) => one,
            None => return said.with("dense-none", &[("rest", rest.into())]),
        },
    };
    said.with("dense-is", &[("places", places.into()), ("rest", rest.into())])
}

/// An order of the tokens.
pub fn order(said: &'static Words, of: Order) -> String {
    match of {
        Order::Raster => said.text("order-raster").into(),
        Order::PlaceMajor => said.text("order-places").into(),
        Order::Tiles(sides) => said.with("order-tiles", &[("sides", sides.map(|n| n.to_string()).join("x").into())]),
        // the curves' own names
        Order::Morton | Order::Hilbert => of.name(),
    }
}

/// Which call of a capture: its layer and step, and its prompt where the capture has several.
pub fn call(said: &'static Words, capture: &Capture, of: &Call) -> String {
    let figures = [("layer", Value::from(&*of.info.name)), ("step", of.info.step.to_string().into())];
    match capture.prompt_of(of) {
        None => said.with("call-step", &figures),
        Some(prompt) => {
            let [layer, step] = figures;
            said.with("call-prompt", &[layer, step, ("prompt", prompt.into())])
        }
    }
}

/// A head of a call.
pub fn head(said: &'static Words, call: &str, head: usize) -> String {
    said.with("call-head", &[("call", call.into()), count("head", &head)])
}

/// A count, as plain digits.
fn count(name: &'static str, n: &usize) -> (&'static str, Value<'static>) {
    (name, n.to_string().into())
}

/// A share in percent, with one decimal.
fn tenths(name: &'static str, share: f64) -> (&'static str, Value<'static>) {
    (name, format!("{:.1}", 100.0 * share).into())
}

/// A share in whole percent.
fn whole(name: &'static str, share: f64) -> (&'static str, Value<'static>) {
    (name, format!("{:.0}", 100.0 * share).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::BlockSize;
    use crate::quality::profile::Grid;
    use crate::quality::suggest::Beside;
    use crate::words::Language;

    fn kinds() -> Vec<Kind> {
        use Kind::*;
        vec![
            WindowSinks,
            ColumnsDiagonals,
            KeysDistances,
            Box,
            Tiles,
            Radial,
            HeadGroups,
            Budget,
            TopP,
            TopK,
            TopEither,
            Global,
            OneList,
            List,
            Everything,
            Router("Quest".into()),
        ]
    }

    fn reasons() -> Vec<Reason> {
        let window = |reach, keys: Option<usize>| Reason::Window {
            reach,
            near: 0.912,
            first: keys.map(|keys| First { keys, more: 0.0314 }),
        };
        let reaches = [Reach::Last(512), Reach::Around(64, 32)];
        let windows = reaches.into_iter().flat_map(|reach| [None, Some(1), Some(4)].map(|keys| window(reach, keys)));
        let others = [
            Reason::Columns { columns: 2, diagonals: 3 },
            Reason::Keys { keys: 7, distances: 12 },
            Reason::Box { extents: [3, 9, 9], mass: 0.88 },
            Reason::Tiles { kernel: [3, 3, 3], tile: [4, 8, 8], mass: 0.9 },
            Reason::Radial { width: 12, halving: 2, mass: 1.0 },
            Reason::HeadGroups { lists: 2, heads: 4 },
            Reason::BudgetOfHeads(8),
            Reason::BudgetOfGroups(2),
            Reason::TopP(0.95),
            Reason::TopK(4),
            Reason::TopEither(4, 0.9),
            Reason::Global,
            Reason::OneList,
            Reason::Router("Quest".into()),
        ];
        windows.chain(others).collect()
    }

    fn forms() -> Vec<Form> {
        let grid = Grid { extents: [2, 3, 4], start: 6 };
        let boxed = Form::Box { grid, kernel: [1, 3, 3], first_frame: false };
        let beside = |text, first_frame| Form::Beside {
            places: Beside { grid, text, first_frame },
            form: Box::new(boxed.clone()),
        };
        let list =
            |heads: usize| Form::Blocks { size: BlockSize::square(64), heads: vec![vec![1, 0]; heads], causal: true };
        vec![
            Form::Window { back: 511, ahead: 0, sinks: 4, causal: true },
            Form::Window { back: 64, ahead: 32, sinks: 0, causal: false },
            Form::Stripes { block: 64, columns: vec![[0, 1], [3, 4]], diagonals: vec![[0, 4]], causal: true },
            Form::Tiles { grid, tile: [1, 3, 2], kernel: [1, 1, 2], first_frame: true },
            Form::Radial { grid, width: 12, halving: 2, first_frame: false },
            beside(true, true),
            beside(true, false),
            beside(false, true),
            Form::PerHead(vec![(vec![0, 2], list(1)), (vec![1], list(1))]),
            list(1),
            list(3),
        ]
    }

    #[test]
    fn heads_are_told_as_files_name_them_and_in_each_language() {
        for of in ["sinks", "prefix", "local", "sparse", "spread"] {
            assert_eq!(character(Words::of(Language::English), of), of);
            // Hindi writes the field's words, and Spanish has this one
            assert_ne!(character(Words::of(Language::Chinese), of), of);
            assert!(of == "local" || character(Words::of(Language::Spanish), of) != of, "{of}");
        }
    }

    /// All of them in a language.
    fn all(said: &'static Words) -> Vec<String> {
        let (kinds, reasons, forms) = (kinds(), reasons(), forms());
        let told = kinds.iter().map(|of| kind(said, of));
        let told = told.chain(reasons.iter().map(|of| reason(said, of)));
        told.chain(forms.iter().map(|of| form(said, of))).collect()
    }

    #[test]
    fn english_is_what_files_say_and_the_others_say_it_themselves() {
        let english: Vec<String> = kinds()
            .iter()
            .map(Kind::to_string)
            .chain(reasons().iter().map(Reason::to_string))
            .chain(forms().iter().map(Form::words))
            .collect();
        assert_eq!(all(Words::of(Language::English)), english);
        for language in [Language::Chinese, Language::Spanish, Language::Hindi] {
            let told = all(Words::of(language));
            // the field's own word
            for (own, english) in told.iter().zip(&english).filter(|(_, english)| *english != "router Quest") {
                assert_ne!(own, english, "{language:?}");
            }
        }
        let window =
            Reason::Window { reach: Reach::Last(512), near: 0.912, first: Some(First { keys: 4, more: 0.031 }) };
        assert_eq!(
            reason(Words::of(Language::Chinese), &window),
            "最后 512 个键保留 91.2% 的注意力质量，前 4 个键再多 3.1%"
        );
        // the grid's kernel is a name
        let boxed = Form::Box { grid: Grid { extents: [2, 3, 4], start: 0 }, kernel: [1, 3, 3], first_frame: false };
        assert_eq!(form(Words::of(Language::English), &boxed), boxed.words());
    }
}
