//! The window with the program's own worker behind it: draw, undo, run on the CPU, view the map, save the run, export.
//!
//! Invariant: driven by accessible names alone, like a user without a mouse.

use egui::{Key, Modifiers, Vec2};
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT, Queryable};
use maskloom::tasks::run_file::RunFile;
use maskloom::worker::target::Target;
use maskloom_app::{Options, Workbench};
use std::path::Path;
use std::time::{Duration, Instant};

type Window = Harness<'static, Workbench>;

const DOCUMENT: &str = r#"{
  "maskloom": 1,
  "name": "Small band",
  "axes": {"q": "text 64 | image 12x16"},
  "layers": [
    {"id": 1, "name": "Near", "enabled": true, "combine": "and", "content": {"kind": "band", "lo": 0, "hi": 40}}
  ],
  "scores": [
    {"id": 2, "name": "Far", "enabled": true, "content": {"kind": "curve", "points": [[0, 0], [40, -1.5]]}}
  ],
  "settings": {
    "batch": 1, "heads": 2, "kv_heads": 1, "head_dim": 32, "dtype": "bf16",
    "block_size": {"q": 32, "kv": 32}, "backends": ["eager", "sdpa", "flash_attention_2", "flex"], "device": "cpu"
  }
}"#;

fn window(open: &Path) -> Window {
    window_on(Some(open), Target::from_words(&[env!("CARGO_BIN_EXE_maskloom"), "worker"]))
}

fn window_on(open: Option<&Path>, target: Target) -> Window {
    let options = Options { target: Some(target), open: open.map(Into::into), ..Options::default() };
    let builder = Harness::builder().with_size(Vec2::new(1500.0, 950.0)).with_step_dt(0.05);
    builder.build_eframe(|cc| Workbench::new(&cc.egui_ctx, options))
}

fn shows(window: &Window, text: &str) -> bool {
    window.query_all_by_label_contains(text).next().is_some()
}

/// Every text of the window, for a failure's message.
fn labels(window: &Window) -> Vec<String> {
    let nodes = window.query_all_by_label_contains("");
    let text = |node: egui_kittest::Node<'_>| {
        let node = node.accesskit_node();
        node.label().or_else(|| node.value()).map(|text| text.to_string())
    };
    nodes.filter_map(text).collect()
}

fn wait(window: &mut Window, text: &str) {
    let patience = Instant::now() + Duration::from_secs(300);
    while !shows(window, text) {
        assert!(Instant::now() < patience, "`{text}` is never shown, but {:#?}", labels(window));
        window.step();
        std::thread::sleep(Duration::from_millis(5));
    }
    window.run_steps(2);
}

fn press(window: &mut Window, modifiers: Modifiers, key: Key) {
    window.key_press_modifiers(modifiers, key);
    window.run_steps(4);
}

fn fill(window: &mut Window, name: &str, text: &str) {
    window.get_by_label(name).focus();
    window.run_steps(2);
    press(window, Modifiers::COMMAND, Key::A);
    window.event(egui::Event::Text(text.into()));
    window.run_steps(2);
}

fn draw(window: &mut Window) {
    let canvas = window.get_by_label("Mask canvas").rect();
    let at = |x: f32, y: f32| canvas.min + Vec2::new(x, y) * canvas.size();
    window.hover_at(at(0.6, 0.3));
    window.drag_at(at(0.6, 0.3));
    window.run_steps(1);
    window.hover_at(at(0.65, 0.35));
    window.run_steps(1);
    window.drop_at(at(0.65, 0.35));
    window.run_steps(3);
}

#[test]
fn draw_undo_run_look_save_and_export() {
    let home = tempfile::tempdir().unwrap();
    let document = home.path().join("band.json");
    std::fs::write(&document, DOCUMENT).unwrap();
    let mut window = window(&document);
    wait(&mut window, "Near");
    wait(&mut window, "% of cells");

    // draw, take it back, do it again
    press(&mut window, Modifiers::NONE, Key::B);
    draw(&mut window);
    wait(&mut window, "Enable Painted");
    window.get_by_label("Undo").click();
    window.run_steps(6);
    assert!(!shows(&window, "Enable Painted"));
    window.get_by_label("Redo").click();
    wait(&mut window, "Enable Painted");

    // a race: every backend checked, refusals with their reason
    press(&mut window, Modifiers::COMMAND, Key::Enter);
    wait(&mut window, "our CPU eager kernel");
    wait(&mut window, "Save the run");
    assert!(shows(&window, "baseline") && shows(&window, "refused"));
    assert_eq!(
        window.query_all_by_label_contains(" ok").count(),
        2,
        "eager and flex take score mods: {:#?}",
        labels(&window)
    );

    // another seed: the shown numbers become stale only if the problem changed
    press(&mut window, Modifiers::COMMAND, Key::Num3);
    wait(&mut window, "Heat map: probability of random q and k");
    let map = window.get_by_label("Heat map: probability of random q and k").rect();
    window.hover_at(map.min + map.size() * 0.5);
    wait(&mut window, "probability");

    // the run as a file
    let run = home.path().join("run.json");
    press(&mut window, Modifiers::COMMAND.plus(Modifiers::SHIFT), Key::R);
    fill(&mut window, "Path", &run.display().to_string());
    press(&mut window, Modifiers::NONE, Key::Enter);
    wait(&mut window, "Saved the run");
    let saved = RunFile::open(&run).unwrap();
    assert_eq!(saved.document.name, "Small band");
    assert_eq!(saved.report.backends.len(), 4);

    // export
    let out = home.path().join("out");
    press(&mut window, Modifiers::COMMAND, Key::E);
    window.get_by_label("Everything").click();
    window.run_steps(4);
    fill(&mut window, "Folder", &out.display().to_string());
    window.run_steps(2);
    while shows(&window, "creating the files") {
        window.step();
        std::thread::sleep(Duration::from_millis(5));
    }
    window.run_steps(4);
    window.get_by_label("Write the files").focus();
    press(&mut window, Modifiers::NONE, Key::Enter);
    wait(&mut window, "Written");
    let preset = std::fs::read_to_string(out.join("small_band.maskloom.json")).unwrap();
    assert_eq!(maskloom::document::file::from_json(&preset).unwrap(), saved.document);

    // a change makes the result stale, and it is labelled so
    press(&mut window, Modifiers::COMMAND, Key::Num1);
    press(&mut window, Modifiers::COMMAND, Key::Z);
    wait(&mut window, "from the last race here");
    press(&mut window, Modifiers::COMMAND, Key::Num3);
    wait(&mut window, "stale");
}

/// A run of the document above, as the command line saves it.
fn saved_run(home: &Path) -> std::path::PathBuf {
    let (document, run) = (home.join("band.json"), home.join("run.json"));
    std::fs::write(&document, DOCUMENT).unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_maskloom"));
    command.arg("run").arg(&document).args(["--device", "cpu", "--rounds", "1", "--save-run"]).arg(&run);
    assert!(command.output().unwrap().status.success());
    run
}

#[test]
fn a_run_file_named_on_the_command_line_opens_with_its_timings() {
    let home = tempfile::tempdir().unwrap();
    let run = saved_run(home.path());
    let mut window = window(&run);
    wait(&mut window, "Opened the run");
    wait(&mut window, "% of cells");
    // its document, its numbers, and their source
    for text in ["our CPU eager kernel", "refused", "run.json"] {
        assert!(shows(&window, text), "`{text}` is not shown, but {:#?}", labels(&window));
    }
    press(&mut window, Modifiers::COMMAND, Key::Num1);
    for layer in ["Near", "Far"] {
        wait(&mut window, layer);
    }
    // a race here is listed with the others
    press(&mut window, Modifiers::COMMAND, Key::Enter);
    wait(&mut window, "Save the run");
}

#[test]
fn a_run_file_that_cannot_be_read_is_told_and_the_window_stays() {
    let home = tempfile::tempdir().unwrap();
    let run = saved_run(home.path());
    let newer = std::fs::read_to_string(&run).unwrap().replace("\"maskloom_run\": 2", "\"maskloom_run\": 7");
    std::fs::write(&run, newer).unwrap();
    let mut window = window(&run);
    wait(&mut window, "could not be opened");
    assert!(shows(&window, "version 7") && shows(&window, "update Maskloom"), "{:#?}", labels(&window));
}

#[test]
fn a_worker_that_is_killed_is_told_and_started_again() {
    let home = tempfile::tempdir().unwrap();
    let document = home.path().join("band.json");
    let scores = DOCUMENT.lines().find(|line| line.contains("\"curve\"")).unwrap();
    let masked = DOCUMENT.replace(scores, "").replace("12x16", "64x32");
    std::fs::write(&document, masked).unwrap();
    let mut window = window(&document);
    wait(&mut window, "% of cells");
    press(&mut window, Modifiers::COMMAND, Key::Enter);
    wait(&mut window, "Cancel");
    press(&mut window, Modifiers::COMMAND, Key::Period);
    wait(&mut window, "cancelled");
    press(&mut window, Modifiers::COMMAND, Key::Enter);
    wait(&mut window, "our CPU");
}

/// Carries a command out by its name.
fn command(window: &mut Window, name: &str) {
    press(window, Modifiers::COMMAND, Key::P);
    window.event(egui::Event::Text(name.into()));
    window.run_steps(4);
    press(window, Modifiers::NONE, Key::Enter);
}

#[test]
fn a_race_goes_on_without_its_window_and_opens_in_another() {
    let home = tempfile::tempdir().unwrap();
    let document = home.path().join("band.json");
    std::fs::write(&document, DOCUMENT).unwrap();
    let cache = format!("MASKLOOM_CACHE={}", home.path().join("cache").display());
    let target = Target::from_words(&["env", &cache, env!("CARGO_BIN_EXE_maskloom"), "worker"]);
    let mut first = window_on(Some(&document), target.clone());
    wait(&mut first, "% of cells");
    command(&mut first, "Race without waiting");
    wait(&mut first, "goes on as job");
    drop(first);

    let mut second = window_on(None, target);
    command(&mut second, "Jobs");
    wait(&mut second, "Open run of Small band");
    second.get_by_label("Open run of Small band").click();
    // with its document, as a run file opens
    wait(&mut second, "our CPU eager kernel");
    wait(&mut second, "256 x 256 tokens, 2 heads of 32");
    command(&mut second, "Jobs");
    wait(&mut second, "Remove what is over");
    second.get_by_label("Remove what is over").click();
    wait(&mut second, "There are none.");
}

#[test]
fn a_capture_of_the_worker_s_machine_is_found_by_keyboard_and_looked_at_where_it_is() {
    let home = tempfile::tempdir().unwrap();
    let there = home.path().join("a folder/of captures");
    std::fs::create_dir_all(&there).unwrap();
    let capture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/captures/lm.safetensors");
    std::fs::copy(capture, there.join("lm.safetensors")).unwrap();
    std::fs::write(there.join(".hidden.json"), DOCUMENT).unwrap();
    let mut window = window_on(None, Target::from_words(&[env!("CARGO_BIN_EXE_maskloom"), "worker"]));
    wait(&mut window, "% of cells");
    press(&mut window, Modifiers::COMMAND, Key::O);
    let far = format!("On {} worker", env!("CARGO_BIN_EXE_maskloom"));
    wait(&mut window, &far);
    window.get_by_label(&far).click();
    // the folder of this machine goes, so that the next one is of that machine
    window.run_steps(4);
    // the home there, which nobody typed
    wait(&mut window, "The folder above");
    fill(&mut window, "Path", &format!("{}/", home.path().display()));
    wait(&mut window, "a folder/");
    press(&mut window, Modifiers::NONE, Key::ArrowDown);
    press(&mut window, Modifiers::NONE, Key::Enter);
    wait(&mut window, "of captures/");
    window.get_by_label("of captures/").click();
    wait(&mut window, "lm.safetensors");
    assert!(!shows(&window, ".hidden.json"));
    window.get_by_label("Hidden files").click();
    wait(&mut window, ".hidden.json");
    // a folder that is gone is told, and typing goes on
    fill(&mut window, "Path", &format!("{}/gone/", home.path().display()));
    wait(&mut window, "cannot be listed");
    fill(&mut window, "Path", &there.join("lm.safetensors").display().to_string());
    press(&mut window, Modifiers::NONE, Key::Enter);
    // the first screen's document makes way, and the measures are those of the capture
    wait(&mut window, "Head 2");
    assert!(shows(&window, "of mass"), "{:#?}", labels(&window));
    window.get_by_label("Atlas").click();
    wait(&mut window, "blocks.2.attn.step0 head 2");
    // a document of that machine comes here, without a file of its own
    press(&mut window, Modifiers::COMMAND, Key::O);
    wait(&mut window, &far);
    window.get_by_label(&far).click();
    // the folder of this machine goes, so that the next one is of that machine
    window.run_steps(4);
    wait(&mut window, "The folder above");
    fill(&mut window, "Path", &there.join(".hidden.json").display().to_string());
    press(&mut window, Modifiers::NONE, Key::Enter);
    wait(&mut window, "it has no file here yet");
}
