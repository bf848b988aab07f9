//! The open capture in the rest of the window: its tokens are found by their texts, its tensors become arguments.
//!
//! Invariant: as in `tests`: every action is a user's action. Only compiled for tests.

use super::act::act;
use super::action::Action;
use super::tabs::quality_tests::{capture, document};
use super::tests::*;
use super::workspace::Workspace;
use crate::document::edit::Edit;
use crate::document::model::*;
use egui::Key;
use egui_kittest::kittest::Queryable;
use std::path::Path;

/// The capture of the tests, in which tokens 100 and 101 say something.
fn with_texts(folder: &Path) -> std::path::PathBuf {
    let bytes = std::fs::read(capture()).expect("is there");
    let (length, rest) = bytes.split_at(8);
    let length = u64::from_le_bytes(length.try_into().expect("eight")) as usize;
    let mut header: serde_json::Value = serde_json::from_slice(&rest[..length]).expect("json");
    let said = header["__metadata__"]["maskloom_capture"].as_str().expect("text").to_string();
    let mut said: serde_json::Value = serde_json::from_str(&said).expect("json");
    said["tokens"] = serde_json::json!([{"start": 100, "text": ["\u{120}zebra", "\u{120}crossing"]}]);
    header["__metadata__"]["maskloom_capture"] = said.to_string().into();
    let header = header.to_string();
    let mut made = (header.len() as u64).to_le_bytes().to_vec();
    made.extend(header.bytes());
    made.extend(&rest[length..]);
    let path = folder.join("said.safetensors");
    std::fs::write(&path, made).expect("is written");
    path
}

fn opened(document: Document, file: std::path::PathBuf) -> Window {
    let mut window = window(None);
    window.state_mut().state.edit(Edit::Replace(Box::new(document)));
    settle(&mut window);
    act(&mut window.state_mut().state, Action::Open(file));
    step_until(&mut window, "open", |state| state.session.captured.is_some());
    window
}

#[test]
fn a_token_is_found_by_what_it_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut window = opened(document(40), with_texts(folder.path()));
    let said = state(&window).texts()[1].and_then(|texts| texts.at(101));
    assert_eq!(said.as_deref(), Some("crossing"));
    command(&mut window, Key::P);
    window.event(egui::Event::Text("zebra".into()));
    window.run_steps(2);
    window.key_press(Key::Enter);
    window.run_steps(4);
    let focus = &state(&window).focus;
    assert_eq!((focus.pinned, focus.is_pinned), ([100, 100], true));
    // of other lengths they say nothing
    let mut other = document(40);
    other.axes = Axes::same(Axis::tokens(256));
    window.state_mut().state.edit(Edit::Replace(Box::new(other)));
    assert!(state(&window).texts().iter().all(Option::is_none));
}

#[test]
fn a_tensor_of_the_capture_becomes_an_argument() {
    let source = "def make(bias: torch.Tensor):\n    def mask_mod(b, h, q, k):\n        return bias[0, h, k] > 0\n    return mask_mod\n";
    let code = TextCode { source: source.into(), entry: "make".into(), ..TextCode::default() };
    let mut made = document(40);
    let content = MaskContent::Text(code);
    made.layers =
        vec![Layer { id: 1, name: "mine".into(), enabled: true, combine: Combine::And, heads: None, content }];
    let mut window = window(None);
    window.state_mut().state.edit(Edit::Replace(Box::new(made)));
    settle(&mut window);
    act(&mut window.state_mut().state, Action::Open(capture()));
    step_until(&mut window, "open", |state| state.session.captured.is_some());
    window.state_mut().state.view.show(Workspace::Design);
    window.state_mut().state.focus.layer = Some(1);
    window.run_steps(3);
    window.get_by_label("bias from the capture").scroll_to_me();
    window.run_steps(3);
    click(&mut window, "bias from the capture");
    // a distance has 1023 values, of no extent of the document's
    assert!(window.query_by_label_contains("step0.distance").is_none());
    window.get_by_label_contains("blocks.2.attn.step0.columns").click();
    window.run_steps(3);
    step_until(&mut window, "it is the value", |state| match state.document.layer(1).map(|l| &l.content) {
        Some(MaskContent::Text(code)) => {
            matches!(code.args.get("bias"), Some(ArgValue::Tensor { tensor }) if tensor.shape() == [1, 4, 512])
        }
        _ => false,
    });
    settle(&mut window);
    assert!(state(&window).session.built.as_ref().is_some_and(|b| b.problem.is_ok()));
}

#[test]
fn an_area_tells_how_much_attention_of_the_capture_falls_on_it() {
    use super::canvas::CanvasEvent;
    use super::region::Region;
    let mut window = opened(document(40), capture());
    step_until(&mut window, "its heads are read", |state| state.session.heads.is_some());
    let mut select = |region: Region| {
        act(&mut window.state_mut().state, Action::Canvas(CanvasEvent::AreaSelected(region)));
        step_until(&mut window, "the area is counted", |s| {
            s.focus.area.as_ref().is_some_and(|a| a.figures.as_ref().is_some_and(|f| f.of == s.area_of()))
        });
        state(&window).focus.area.clone().and_then(|area| area.figures).and_then(|f| f.mass).expect("a mass")
    };
    let all = select(Region::rectangle([[0, 512], [0, 512]]));
    assert!((all.all - 1.0).abs() < 1e-4 && all.lost > 0.01 && all.lost < 0.9, "{all:?}");
    // what two halves hold is what the whole holds
    let halves = [[0, 256], [256, 512]].map(|kv| select(Region::rectangle([[0, 512], kv])));
    assert!((halves[0].all + halves[1].all - 1.0).abs() < 1e-4, "{halves:?}");
    assert!((halves[0].lost + halves[1].lost - all.lost).abs() < 1e-4, "{halves:?}");
    // and keys to come get none
    let ahead = select(Region::rectangle([[0, 100], [200, 512]]));
    assert_eq!((ahead.all, ahead.lost), (0.0, 0.0));
}
