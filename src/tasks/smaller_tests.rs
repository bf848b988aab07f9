//! Every preset's copy is the same mask, or there is none.

use super::*;
use crate::document::compile::BuiltIn;
use crate::document::from_document;
use crate::document::library;
use maskloom_testing::needs;

fn copy_of(name: &str) -> Result<Copy, Diagnostic> {
    let document = library::preset(name).unwrap().document().unwrap();
    let compiled = compile(&document, &BuiltIn);
    copy(&document, &compiled, None, &BuiltIn, Wish::quick(), &Control::new())
}

/// Presets that are others at more tokens.
const LARGER: [&str; 3] = ["wan_720p_radial", "wan_5b_natten", "hunyuan_sta_3d"];

/// Presets of which nothing smaller is the same mask.
const REFUSED: [&str; 1] = ["strided"];

#[test]
fn every_preset_has_a_copy_that_keeps_the_same_share_or_says_why_not() {
    if !needs::all_cases() {
        println!("without {LARGER:?}; all with MASKLOOM_ALL_CASES=1");
    }
    for preset in library::presets().iter().filter(|p| !LARGER.contains(&p.name) || needs::all_cases()) {
        let document = preset.document().unwrap();
        let compiled = compile(&document, &BuiltIn);
        let whole = from_document(&document, &compiled).unwrap();
        if !is_heavy(whole.spec()) {
            continue;
        }
        let share = kept(&whole, &Control::new()).unwrap();
        let refused = REFUSED.contains(&preset.name);
        let copy = match copy(&document, &compiled, Some(share), &BuiltIn, Wish::quick(), &Control::new()) {
            Ok(copy) if !refused => copy,
            Err(why) if refused => {
                assert!(why.code == "no-smaller-copy" && why.message.contains("the original 1.4"), "{}", why.render());
                continue;
            }
            Ok(copy) => panic!("{}: {} of {}", preset.name, copy.kept, copy.kept_of),
            Err(why) => panic!("{}: {}", preset.name, why.render()),
        };
        let name = format!("{}: {} of {}", preset.name, words(&copy.problem), words(whole.spec()));
        println!("{name}: keeps {:.3}% of {:.3}%", 100.0 * copy.kept, 100.0 * copy.kept_of);
        assert_eq!(copy.kept, kept(&copy.problem, &Control::new()).unwrap(), "{name}");
        assert!((copy.kept / copy.kept_of - 1.0).abs() <= TOLERANCE, "{name}: {} of {}", copy.kept, copy.kept_of);
        assert!(!is_heavy(&copy.problem), "{name}");
        assert!(copy.problem.q_len <= whole.q_len && copy.problem.kv_len <= whole.kv_len, "{name}");
        assert_eq!(copy.document.layers.len(), document.layers.len(), "{name}");
        assert_eq!(copy.problem.group(), whole.group(), "{name}");
    }
}

#[test]
fn the_first_screens_copy_is_a_window_and_padding_stays_padding() {
    let window = copy_of("sliding_window").unwrap();
    assert_eq!(words(&window.problem), "1024 x 1024 tokens, 4 heads");
    assert!((window.kept - 0.117).abs() < 0.002 && (window.kept_of - 0.117).abs() < 0.002, "{window:?}");
    let padded = copy_of("flux_text_padding").unwrap();
    assert!(padded.kept < 0.99 && (padded.kept - padded.kept_of).abs() < 0.01, "{} {}", padded.kept, padded.kept_of);
}

/// A document of one layer of code.
fn of_code(source: &str, tokens: usize) -> Document {
    use crate::document::model::{Axes, Axis, Combine, Layer, MaskContent, Settings, TextCode};
    let mut document = Document::new("own", Axes::same(Axis::tokens(tokens)), Settings::new(32, 128));
    let content = MaskContent::Text(TextCode { source: source.into(), ..TextCode::default() });
    let (name, combine) = ("own".into(), Combine::And);
    document.layers.push(Layer { id: 1, name, enabled: true, combine, heads: None, content });
    document
}

#[test]
fn code_that_fixes_its_window_has_no_copy_rather_than_another_mask() {
    let document = of_code("def near(b, h, q, k):\n    return (q >= k) & (q - k < 1024)\n", 32768);
    let compiled = compile(&document, &BuiltIn);
    let why = copy(&document, &compiled, None, &BuiltIn, Wish::quick(), &Control::new()).unwrap_err();
    assert_eq!(why.code, "no-smaller-copy");
    assert!(why.message.contains("the same mask") && why.hint.unwrap().contains("32768 x 32768 tokens, 32 heads"));
}

/// The code of the README, pasted unchanged: nobody has moved its slider yet.
#[test]
fn a_default_of_code_is_a_window_as_one_that_was_set() {
    let readme = include_str!("../../README.md");
    let code = readme.split("```python\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a block of code");
    assert!(code.contains("window: int = 1024"), "{code}");
    let document = of_code(code, 4096);
    let compiled = compile(&document, &BuiltIn);
    let made = copy(&document, &compiled, None, &BuiltIn, Wish::quick(), &Control::new()).expect("a copy");
    assert_eq!(words(&made.problem), "1024 x 1024 tokens, 4 heads");
    assert!((made.kept - made.kept_of).abs() < 0.01 * made.kept_of, "{} {}", made.kept, made.kept_of);
}

#[test]
fn times_are_told_in_a_few_digits() {
    let words = [0.2, 40.0, 200.0, 8000.0, 400_000.0, 2e11].map(|s| about(Duration::from_secs_f64(s)));
    assert_eq!(words, ["1 s", "40 s", "3 min", "2 h", "5 days", "more than ten years"]);
    let spec = ProblemSpec::plain(1, (1, 1), (1000, 1000), 50);
    let time = estimate(&spec, Device::Cpu, 2, 10, 2).unwrap();
    assert!((time.as_secs_f64() - 0.1).abs() < 1e-9, "{time:?}");
    assert_eq!(estimate(&spec, Device::Cuda(0), 2, 10, 2), None);
    let endless = ProblemSpec::plain(1, (1, 1), (1_000_000_000, 1_000_000_000), 64);
    assert_eq!(about(estimate(&endless, Device::Cpu, 2, 10, 2).unwrap()), "more than ten years");
}
