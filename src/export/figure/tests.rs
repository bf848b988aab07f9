//! Figures: texts leave each other room, and both files hold the same words.

use super::plots::{Bar, MaskPlot, bars, mask, sheet};
use super::*;
use crate::base::provenance::{Looked, Place};
use crate::document::model::Axis;

/// Asserts that all texts lie on the page and none touches another.
#[track_caller]
fn assert_readable(figure: &Figure) {
    let texts: Vec<&Text> =
        figure.items.iter().filter_map(|item| if let Item::Text(text) = item { Some(text) } else { None }).collect();
    for (at, text) in texts.iter().enumerate() {
        let [l, t, r, b] = text.room();
        let [w, h] = figure.size;
        assert!(
            l >= 0.0 && t >= 0.0 && r <= w + 0.01 && b <= h,
            "`{}` leaves the page: {:?} of {w} x {h}",
            text.words,
            text.room()
        );
        for other in &texts[..at] {
            let [ol, ot, or, ob] = other.room();
            assert!(l >= or || ol >= r || t >= ob || ot >= b, "`{}` touches `{}`", text.words, other.words);
        }
    }
}

fn drawn(axis: &str, [rows, cols]: [[usize; 2]; 2]) -> Figure {
    let axis = Axis::parse(axis).expect("an axis");
    mask(&MaskPlot {
        title: "A mask <with> a long name that would not fit on a page of this width & more of it",
        caption: "Keeps 12.5% of its cells.",
        rgb: [0, 0, 0].repeat(16),
        pixels: [4, 4],
        rows,
        cols,
        q_axis: &axis,
        kv_axis: &axis,
        legend: [("kept", [11, 47, 91]), ("dropped", [244, 243, 238]), ("some of its cells kept", [213, 106, 10])]
            .map(|(words, colour)| (colour, words.to_string()))
            .into(),
        from: Provenance::design([0, 0], [rows[1] - rows[0], cols[1] - cols[0]], [4, 4], Looked::All),
    })
}

fn card() -> Place {
    let build = Some("0.1.0 (825843d5c, release)".into());
    Place { device: "NVIDIA H200".into(), date: Some("2026-11-21".into()), build, copy: false }
}

/// All words of a figure in the order of drawing.
fn words(figure: &Figure) -> String {
    let texts = figure.items.iter().filter_map(|item| match item {
        Item::Text(text) => Some(text.words.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_figure_says_where_its_numbers_come_from_and_what_made_it() {
    let run = "Measured on NVIDIA H200, 2026-11-21, by Maskloom 0.1.0 (825843d5c, release). Made by Maskloom ";
    assert!(words(&raced()).contains(&format!("Four heads. {run}")), "{}", words(&raced()));
    assert!(raced().described.ends_with("Four heads. Measured on NVIDIA H200, 2026-11-21."), "{}", raced().described);
    let mask = drawn("64", [[0, 64], [0, 32]]);
    let shown = "Batch entry 0, head 0; one pixel is at most 16 x 8 cells; shares are exact. Made by Maskloom ";
    assert!(words(&mask).contains(shown), "{}", words(&mask));
}

fn raced() -> Figure {
    let bar = |name: &str, ms: Option<f64>, words: &str| Bar {
        name: name.into(),
        ms,
        range: ms.map(|ms| [ms * 0.9, ms * 1.3]),
        words: words.into(),
        colour: [11, 47, 91],
    };
    let rows = vec![
        bar("flex", Some(0.31), "0.310 ms"),
        bar("torch:flex-flash", Some(1.2), "1.20 ms, 3.87x"),
        bar("eager", None, "refused: the scores would take 2.1 TB, \"too much\""),
    ];
    let groups = [("forward", rows.clone()), ("backward", rows), ("none", vec![])];
    bars("Times, of a run", &groups, "Four heads.", &Provenance::Measured(card()))
}

#[test]
fn texts_stay_on_the_page_and_leave_each_other_room() {
    for axis in ["4096", "text 512 | image 64x56", "a 8 | b 8 | c 8 | d 4072", "1048576"] {
        let n = Axis::parse(axis).expect("an axis").len();
        assert_readable(&drawn(axis, [[0, n]; 2]));
        assert_readable(&drawn(axis, [[0, n], [n / 3, n / 2]]));
        assert_readable(&drawn(axis, [[n / 2, n / 2 + 3], [0, n]]));
    }
    assert_readable(&raced());
    let tile = |n: usize| (format!("layer.{n} h{n}"), Some((vec![0; 12], [2, 2])));
    for across in [1, 3, 12, 40] {
        assert_readable(&sheet(
            "Atlas",
            &(0..17).map(tile).collect::<Vec<_>>(),
            across,
            &[([0; 3], "mass".into())],
            "One a head.",
            &Provenance::inputs("lm.safetensors"),
        ));
    }
}

/// A caption goes on below where it has no spaces, and a viewer without the font keeps each text in its room.
#[test]
fn captions_in_other_scripts_and_fonts_stay_on_the_page() {
    let axis = Axis::parse("64").expect("an axis");
    let plot = |caption: &str| {
        let from = Provenance::design([0, 0], [64, 64], [4, 4], Looked::All);
        let (title, rgb) = ("滑动窗口".repeat(30), [0, 0, 0].repeat(16));
        let [rows, cols] = [[0, 64]; 2];
        let (q_axis, kv_axis, legend) = (&axis, &axis, Vec::new());
        mask(&MaskPlot { title: &title, caption, rgb, pixels: [4, 4], rows, cols, q_axis, kv_axis, legend, from })
    };
    for caption in ["滑动窗口掩码".repeat(40), "विंडो".repeat(60), "one_word_".repeat(60), "क्षि".repeat(80)]
    {
        let figure = plot(&caption);
        assert_readable(&figure);
        let lines = figure.items.iter().filter_map(|item| if let Item::Text(text) = item { Some(text) } else { None });
        let all: String = lines.clone().map(|text| text.words.as_str()).collect();
        assert!(all.contains(&caption), "no letter is lost");
        let begins = |c: char| ('\u{93a}'..='\u{94f}').contains(&c);
        assert!(lines.clone().all(|text| !text.words.starts_with(begins)), "no line begins with a vowel sign");
    }
    let svg = String::from_utf8(plot("Keeps 12.5%.").files("a.svg").expect("made").remove(0).bytes).expect("text");
    let line = svg.lines().find(|line| line.contains(">Keeps 12.5%.")).expect("the caption");
    assert!(line.contains("lengthAdjust=\"spacingAndGlyphs\""), "{line}");
    let title = svg.lines().find(|line| line.contains("\">滑动窗口")).expect("the title");
    assert!(!title.contains("textLength"), "{title}");
}

#[test]
fn both_files_are_of_the_figure_and_the_data_stands_beside_a_chart() {
    let figure = raced();
    let files = figure.files("a.b.svg").expect("made");
    let names: Vec<&str> = files.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(names, ["a.b.svg", "a.b.csv"]);
    let svg = String::from_utf8_lossy(&files[0].bytes);
    assert!(svg.contains(">torch:flex-flash</text>") && svg.ends_with("</svg>\n"), "{svg}");
    assert!(!svg.contains("<style>"), "paper is white");
    let themed = Figure { follows_theme: true, ..figure.clone() }.files("a.svg").expect("made");
    let style = "<style>@media (prefers-color-scheme: dark){[fill=\"#ffffff\"]{fill:#0d1117}";
    assert!(String::from_utf8_lossy(&themed[0].bytes).contains(style));
    let csv = String::from_utf8_lossy(&files[1].bytes);
    assert!(
        csv.starts_with("pass,backend,median_ms") && csv.contains("forward,flex,0.310000,0.279000,0.403000,0.310 ms\n"),
        "{csv}"
    );
    assert!(csv.contains("\"refused: the scores would take 2.1 TB, \"\"too much\"\"\""), "{csv}");
    assert_eq!(drawn("64", [[0, 64]; 2]).files("m.pdf").expect("made").len(), 1);
    assert_eq!(figure.files("a.png").expect_err("no such figure").code, "figure-ending");
}

#[test]
fn a_pdf_holds_its_font_and_its_text_can_be_read_back() {
    let bytes = &raced().files("a.pdf").expect("made")[0].bytes;
    let text = String::from_utf8_lossy(bytes);
    for part in ["%PDF-", "/FontFile2", "/ToUnicode", "/Identity-H", "startxref", "%%EOF"] {
        assert!(text.contains(part), "{part}");
    }
    assert!(bytes.len() < 60_000, "only the glyphs that it needs: {}", bytes.len());
    let mut figure = Figure::new([100.0, 40.0], "x", &Provenance::Random);
    figure.text(Text::new("滑", [10.0, 20.0], 9.0));
    let why = figure.files("a.pdf").expect_err("the font has no such glyph");
    assert!(why.code == "figure-character" && why.message.contains("U+6ED1"), "{}", why.message);
    assert!(figure.files("a.svg").is_ok());
}

#[test]
fn tables_are_quoted_for_their_readers() {
    let rows = [["name", "time"], ["a,b", "1.25 ms"], ["50% & \"x_1\"", "-"]].map(|row| row.map(String::from).to_vec());
    assert_eq!(csv(&rows), "name,time\n\"a,b\",1.25 ms\n\"50% & \"\"x_1\"\"\",-\n");
    let text = tex(&rows);
    assert!(text.starts_with("\\begin{tabular}{lr}\n\\toprule\nname & time \\\\\n\\midrule\n"), "{text}");
    assert!(text.contains("50\\% \\& \"x\\_1\" & - \\\\\n\\bottomrule"), "{text}");
}
