//! A design as one file to hand on, for the window and the terminal.
//!
//! Invariant: the shared document needs no files beside it. Nothing is written here. Must not know its callers.

use super::exporting::embedded;
use crate::base::{Control, Diagnostic};
use crate::document::compile::{BuiltIn, Environment, compile};
use crate::document::model::Document;
use crate::document::page::{self, Tongue};
use crate::export::{ExportFile, ShareRequest, file_stem, share};
use crate::problem::Problem;
use crate::problem::result::RunReport;
use crate::tasks::{pages, recorded};
use crate::words::{Language, Words};
use crate::worker::machine::day_of_export;

/// The page of a design, as one HTML file with labels in a language. `run`: a race of it. `shown`: batch entry and head. Errors: a linked
/// file cannot be read, or it was cancelled.
pub fn html(
    document: &Document,
    problem: &Problem,
    environment: &dyn Environment,
    run: Option<&RunReport>,
    shown: (usize, usize),
    language: Language,
    control: &Control,
) -> Result<ExportFile, Diagnostic> {
    let shipped = recorded::of_problem(document, problem.spec(), None);
    let shipped: Vec<_> = shipped.iter().map(|run| &run.report).collect();
    let (day, name) = (day_of_export(), format!("{}.html", file_stem(&document.name)));
    let document = whole(document, problem, environment)?;
    let said = Words::of(language);
    let tongue = Tongue { code: language.code(), tell: &|text| pages::told(said, text) };
    let (recorded, date) = (&*shipped, Some(&*day));
    share(&ShareRequest { name: &name, document: &document, problem, shown, run, recorded, date, tongue }, control)
}

/// The document with linked files' texts; their printed mods where the texts need other files.
fn whole(document: &Document, problem: &Problem, environment: &dyn Environment) -> Result<Document, Diagnostic> {
    let (made, notes) = embedded(document, environment)?;
    let needs_more = !notes.is_empty() || compile(&made, &BuiltIn).has_errors();
    Ok(match needs_more {
        true => page::whole(document, problem.mask.as_deref(), problem.score.as_deref()),
        false => made,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Source;
    use crate::document::from_document;
    use crate::document::model::{LinkedCode, MaskContent};
    use crate::document::testing;

    struct Two;

    impl Environment for Two {
        fn pattern(&self, name: &str) -> Option<Source> {
            BuiltIn.pattern(name)
        }

        fn linked(&self, path: &str) -> Result<String, Diagnostic> {
            Ok(match path {
                "alone.py" => "def mask_mod(b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx\n".into(),
                _ => {
                    "from beside import near\n\n\ndef mask_mod(b, h, q_idx, kv_idx):\n    return near(q_idx, kv_idx)\n"
                        .into()
                }
            })
        }

        fn module(&self, name: &str) -> Option<Source> {
            (name == "beside").then(|| Source::new("beside.py", "def near(q, k):\n    return (q - k < 5) & (q >= k)\n"))
        }
    }

    #[test]
    fn a_shared_design_needs_no_files_beside_it() {
        for path in ["alone.py", "imports.py"] {
            let mut document = testing::empty("64");
            let linked = LinkedCode { path: path.into(), ..LinkedCode::default() };
            document.layers.push(testing::layer(1, MaskContent::Linked(linked)));
            let compiled = compile(&document, &Two);
            let problem = from_document(&document, &compiled).expect("compiles");
            let made = html(&document, &problem, &Two, None, (0, 0), Language::English, &Control::new()).expect("made");
            let text = String::from_utf8(made.bytes).expect("text");
            let back = page::read(&text).expect("a page").expect("a design");
            let again = from_document(&back, &compile(&back, &BuiltIn)).expect("compiles alone");
            let kept = |p: &Problem| p.block_mask(p.block_size, &Control::new()).expect("made").stats().density;
            assert_eq!(kept(&again), kept(&problem), "{path}");
        }
    }

    /// Labels, names of numbers and a recorded run's table; the design and the names in its data stay as they are.
    #[test]
    fn a_page_speaks_the_language_and_holds_the_same_design() {
        let document = crate::document::library::preset("sliding_window").expect("there").document().expect("loads");
        let problem = from_document(&document, &compile(&document, &BuiltIn)).expect("compiles");
        let page = |language| {
            let made = html(&document, &problem, &BuiltIn, None, (0, 0), language, &Control::new()).expect("made");
            String::from_utf8(made.bytes).expect("text")
        };
        let (english, chinese) = (page(Language::English), page(Language::Chinese));
        for (own, other) in [
            ("<html lang=\"zh\">", "<html lang=\"en\">"),
            ("<h2>代码</h2>", "<h2>Code</h2>"),
            ("<th>保留的单元格</th>", "<th>cells kept</th>"),
            ("\"nothing\":\"什么也不保留\"", "\"nothing\":\"nothing kept\""),
            ("<h2>在 NVIDIA ", "<h2>Recorded on NVIDIA "),
            ("误差以float64 参考结果为准", "Errors are measured against the float64 reference"),
            ("<th>运行的是</th>", "<th>what ran</th>"),
        ] {
            assert!(chinese.contains(own) && !chinese.contains(other), "{own}");
            assert!(english.contains(other) && !english.contains(own), "{other}");
        }
        assert!(chinese.contains("\"cells kept\":"), "names of data stay English");
        let design = |text: &str| page::read(text).expect("a page").expect("a design");
        assert_eq!(design(&chinese), design(&english));
    }
}
