//! Proposals as documents, and capture files on disk, complete and damaged.
//!
//! Invariant: a document's compiled mask is compared with the form's own, cell by cell. Only compiled for tests.

use super::*;
use crate::base::tensor::Data;
use crate::base::{HostTensor, Layout, Lengths};
use crate::document::compile::{BuiltIn, compile};
use crate::document::edit;
use crate::document::model::{Axes, Axis, Document, Settings};
use crate::ir::cell::{Cell, eval};
use crate::quality::profile::Grid;
use crate::quality::suggest::{Beside, Kind, Reason};
use crate::worker::{files, tensors};
use serde_json::json;

fn candidate(form: Form) -> Candidate {
    Candidate {
        kind: Kind::List,
        why: Reason::OneList,
        form,
        mass: 0.9,
        p5: 0.8,
        min: 0.7,
        density: 0.2,
        heads: vec![],
        masks: 1,
    }
}

fn forms() -> Vec<Form> {
    let size = BlockSize { q: 8, kv: 16 };
    let set = |seed: usize| (0..15).map(|at| u8::from((at * 7 + seed).is_multiple_of(3))).collect::<Vec<u8>>();
    let grid = Grid { extents: [2, 3, 4], start: 6 };
    let beside = |text: bool, first_frame: bool, form: Form| Form::Beside {
        places: Beside { grid, text, first_frame },
        form: Box::new(form),
    };
    vec![
        Form::Window { back: 5, ahead: 0, sinks: 2, causal: true },
        Form::Window { back: 5, ahead: 3, sinks: 2, causal: false },
        Form::Stripes { block: 8, columns: vec![[0, 1], [3, 4]], diagonals: vec![[0, 2]], causal: true },
        Form::Box { grid, kernel: [3, 1, 3], first_frame: true },
        Form::Box { grid, kernel: [1, 5, 7], first_frame: false },
        Form::Tiles { grid, tile: [1, 3, 2], kernel: [2, 1, 1], first_frame: true },
        Form::Tiles { grid, tile: [1, 1, 2], kernel: [1, 2, 2], first_frame: false },
        beside(true, false, Form::Window { back: 2, ahead: 3, sinks: 1, causal: false }),
        beside(true, true, Form::Window { back: 2, ahead: 0, sinks: 1, causal: true }),
        beside(false, true, Form::Stripes { block: 8, columns: vec![[1, 2]], diagonals: vec![[0, 1]], causal: true }),
        Form::PerHead(vec![
            (vec![0], beside(true, true, Form::Window { back: 2, ahead: 3, sinks: 0, causal: true })),
            (vec![1], beside(true, true, Form::Window { back: 0, ahead: 3, sinks: 0, causal: false })),
        ]),
        Form::Radial { grid, width: 5, halving: 1, first_frame: true },
        Form::Radial { grid, width: 0, halving: 2, first_frame: false },
        Form::PerHead(vec![
            (vec![0], Form::Window { back: 5, ahead: 3, sinks: 2, causal: true }),
            (vec![1], Form::Box { grid, kernel: [3, 1, 3], first_frame: true }),
        ]),
        Form::PerHead(vec![(vec![1], Form::Blocks { size, heads: vec![set(2)], causal: true })]),
        Form::Blocks { size, heads: vec![set(1)], causal: true },
        Form::Blocks { size, heads: vec![set(0), set(1)], causal: false },
    ]
}

#[test]
fn a_proposal_taken_keeps_the_cells_that_were_judged() {
    let lengths = Lengths::new(40, 40).unwrap();
    for form in forms() {
        let mut document = Document::new("d", Axes::same(Axis::tokens(40)), Settings::new(2, 8));
        document.layers =
            layers("old", &Form::Window { back: 1, ahead: 0, sinks: 0, causal: true }, lengths, 1).unwrap();
        let before = document.clone();
        let taken = take(&document, &candidate(form.clone())).unwrap();
        let undo = edit::apply(&mut document, taken).unwrap();
        let compiled = compile(&document, &BuiltIn);
        let reported: Vec<_> = compiled.all_diagnostics().map(|d| d.render()).collect();
        let mask = compiled.mask.as_ref().unwrap_or_else(|| panic!("{form:?}: {reported:?}"));
        let wanted = form.mask(lengths).unwrap();
        for (h, q_idx, kv_idx) in (0..2).flat_map(|h| (0..40).flat_map(move |q| (0..40).map(move |kv| (h, q, kv)))) {
            let cell = Cell { b: 0, h, q_idx, kv_idx, score: 0.0 };
            assert_eq!(eval(mask, &cell).as_bool(), eval(&wanted, &cell).as_bool(), "{form:?} {cell:?}");
        }
        edit::apply(&mut document, undo).unwrap();
        assert_eq!(document, before);
    }
}

fn saved(folder: &Path) -> std::path::PathBuf {
    let of = |seed: u64| {
        let mut rng = crate::ir::random::Rng::new(seed);
        HostTensor::new([1, 2, 40, 8], Data::F32((0..640).map(|_| rng.unit() as f32 * 4.0 - 2.0).collect())).unwrap()
    };
    let call = json!({"a": {"layer": 3, "heads": 2, "kv_heads": 2, "q_len": 40, "kv_len": 40, "head_dim": 8, "is_causal": true,
        "name": "net.attn", "step": 0}});
    let whole = json!({"version": 2, "complete": true, "calls": 1, "tensors": 3});
    let metadata = [("maskloom".to_string(), call.to_string()), ("maskloom_capture".to_string(), whole.to_string())];
    let all = [("a.q", of(1)), ("a.k", of(2)), ("a.v", of(3))];
    let bytes: Vec<_> = all.iter().map(|(name, t)| (*name, t.shape().to_vec(), t.data().to_le_bytes())).collect();
    let views = bytes.iter().map(|(name, shape, bytes)| {
        (*name, safetensors::tensor::TensorView::new(safetensors::Dtype::F32, shape.clone(), bytes).unwrap())
    });
    let path = folder.join("made.safetensors");
    files::save(&path, &safetensors::serialize(views, Some(metadata.into())).unwrap()).unwrap();
    path
}

#[test]
fn a_capture_is_judged_under_a_document_and_proposals_come_from_it() {
    let folder = tempfile::tempdir().unwrap();
    let capture = open(&saved(folder.path())).unwrap();
    let call = capture.find(Some("net.attn"), None, None).unwrap();
    let block = BlockSize::square(8);
    let material = material(&capture, call, 0, &[0, 1], block, None, &Control::new()).unwrap();
    assert!(material.causal);
    let wanted = Wanted { target: Target::Mass(0.9), protect: Default::default(), grid: None, most_masks: 2 };
    let found = suggest(&material, &wanted, &Control::new()).unwrap();
    let made = document(&capture, call, &found[0]).unwrap();
    let mut made = Document { settings: Settings { block_size: block, ..made.settings.clone() }, ..made };
    let problem = crate::document::from_document(&made, &compile(&made, &BuiltIn)).unwrap();
    let kept = blocks(&problem, &capture, call, &Control::new()).unwrap();
    let heads: Vec<_> =
        (0..2).map(|h| judge(&capture, call, (0, h), &problem, &kept, &Control::new()).unwrap()).collect();
    assert_eq!(found[0].heads.len(), heads.len());
    for (one, mass) in heads.iter().zip(&found[0].heads) {
        assert!((one.judged.measures.mass.mean - mass).abs() < 1e-5);
        assert!(one.judged.measures.error.is_some());
    }
    let bounded = suggest_for_error(&material, &wanted, 0.1, &Control::new()).unwrap();
    assert!(form_error(&material, &bounded[0].form, &Control::new()).unwrap() <= 0.1);
    made.axes = Axes::same(Axis::tokens(41));
    let other = crate::document::from_document(&made, &compile(&made, &BuiltIn)).unwrap();
    let refused = check(&other, &capture, call).unwrap_err();
    assert!(
        refused.message.contains("the document has 41 x 41 tokens, a of made.safetensors has 40 x 40"),
        "{refused:?}"
    );
}

#[test]
fn a_document_of_another_model_is_told_with_both_sides() {
    let path = &maskloom_testing::repository().join("tests/data/captures/video.safetensors");
    let capture = open(path).unwrap();
    let call = capture.find(None, None, None).unwrap();
    let fitting = blank(&capture, call).unwrap();
    assert_eq!(doubts(&fitting, &capture, call), vec![]);
    let mut other = fitting.clone();
    (other.settings.heads, other.settings.kv_heads, other.settings.head_dim) = (8, 2, 64);
    other.settings.scale = Some(1.0);
    // the same tokens in other frames
    other.axes.q.segments[1].grid = vec![8, 6, 8];
    let reported: Vec<String> = doubts(&other, &capture, call).into_iter().map(|d| d.message).collect();
    let wanted = [
        "the document has 8 heads, 2 kv heads of 64, blocks.1.attn.step1 has 4 heads, 4 kv heads of 16",
        "the document scales scores by 1, blocks.1.attn.step1 by 0.25",
        "the document's grid is 8 x 6 x 8 tokens from token 8, that of video.safetensors 6 x 8 x 8 tokens from token 8",
    ];
    assert_eq!(reported, wanted);
}

#[test]
fn a_routers_pick_is_a_mask_of_the_mass_that_it_kept() {
    let capture = open(&maskloom_testing::repository().join("tests/data/captures/lm.safetensors")).unwrap();
    let call = capture.find(None, None, None).unwrap();
    let (block, control) = (BlockSize::square(32), Control::new());
    let material = material(&capture, call, 0, &[0, 2], block, None, &control).unwrap();
    let (routed, layers) = router_layers(&material, Target::Blocks(0.3), None, &control).unwrap();
    assert_eq!(layers.len(), 7, "all that cut rows of tokens");
    assert!(routed.len() >= layers.len(), "a layer without its router");
    for (of, layer) in routed.iter().zip(&layers) {
        assert_eq!(layer.kind.to_string(), format!("router {}", of.router.name));
        assert!((layer.mass - of.mass).abs() < 1e-4, "{}: {} {}", layer.kind, layer.mass, of.mass);
        // the two heads without q and k keep everything
        let Form::Blocks { heads, .. } = &layer.form else { panic!("{:?}", layer.form) };
        assert!(heads.len() == 4 && heads[1].iter().all(|b| *b == 1) && heads[0].contains(&0));
    }
}

/// Heads of a million tokens that must not be read completely.
struct Wide;

impl crate::quality::capture::Tensors for Wide {
    fn name(&self) -> String {
        "wide.safetensors".into()
    }
    fn metadata(&self, key: &str) -> Option<String> {
        let call =
            json!({"layer": 0, "heads": 64, "kv_heads": 64, "q_len": 1 << 20, "kv_len": 1 << 20, "head_dim": 128});
        (key == "maskloom").then(|| json!({"net.step0": call}).to_string())
    }
    fn about(&self, _: &str) -> Option<(crate::base::DType, Vec<usize>)> {
        Some((crate::base::DType::F32, vec![1, 64, 1 << 20, 128]))
    }
    fn names(&self) -> Vec<String> {
        Vec::new()
    }
    fn bytes(&self, tensor: &str, _: usize, _: usize) -> Result<Vec<u8>, Diagnostic> {
        panic!("{tensor} is read")
    }
}

#[test]
fn a_layer_that_does_not_fit_into_memory_is_refused_before_it_is_read() {
    let capture = Capture::open(Box::new(Wide)).unwrap();
    let call = capture.find(None, None, None).unwrap();
    assert_eq!(most_heads(call), 1);
    let made = live_heads(&capture, call, 0, &[0, 1], BlockSize::square(128), None, &Control::new());
    let why = made.err().unwrap();
    assert_eq!(why.code, "capture-memory");
    assert!(why.message.contains("2 heads of net.step0 would take more than 4 GiB of memory; 1 fit"), "{why:?}");
}

#[test]
fn damaged_files_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = saved(folder.path());
    let bytes = std::fs::read(&path).unwrap();
    let code = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let why = open(&path).err().unwrap();
        assert!(why.hint.is_some() && why.message.contains("made.safetensors"), "{why:?}");
        why.code.into_owned()
    };
    assert_eq!(code(&bytes[..bytes.len() - 100]), "capture-cut-off");
    assert_eq!(code(&bytes[..40]), "capture-cut-off");
    let mut unfinished = bytes.clone();
    unfinished[..8].fill(0);
    assert_eq!(code(&unfinished), "capture-unfinished");
    assert_eq!(code(b"nonsense, and more of it"), "safetensors");
    // bytes after the last tensor occur while a capture still runs
    std::fs::write(&path, [&bytes[..], &[7; 30]].concat()).unwrap();
    assert!(open(&path).is_ok());
    let plain = tensors::write([("q".to_string(), &HostTensor::vector(Data::F32(vec![1.0])))]).unwrap();
    assert_eq!(code(&plain), "not-a-capture");
}

#[test]
fn pictures_are_pngs_of_the_asked_size() {
    let read = |bytes: Vec<u8>| image::load_from_memory(&bytes).unwrap().to_rgb8();
    let heat = read(heat(&[0.0, 1.0, 0.1, 0.01, 1e-3, 1e-9], 3, 30).unwrap());
    assert_eq!(heat.dimensions(), (30, 20));
    assert_ne!(heat.get_pixel(0, 0), heat.get_pixel(12, 0));
    let tile = Tile { values: vec![0.5; 4], columns: 2, mark: 0.5 };
    let sheet = read(sheet(&[Some(tile.clone()), None, Some(tile)], 2, 16).unwrap());
    assert_eq!(sheet.dimensions(), (44, 52));
}

fn committed(name: &str) -> Capture {
    open(&maskloom_testing::repository().join("tests/data/captures").join(name)).unwrap()
}

#[test]
fn captures_of_trained_models_hold_the_masses_that_are_counted_here() {
    for name in ["lm.safetensors", "video.safetensors", "encoder.safetensors"] {
        let capture = committed(name);
        assert_eq!(capture.warnings(), []);
        let (block, call) = (capture.block_size().unwrap(), &capture.calls()[0]);
        for head in call.info.full_heads() {
            let made = capture.head(call, 0, head).unwrap();
            let ours = masses::masses(&made, block, false, &Control::new()).unwrap();
            let theirs = capture.statistics(call, 0, head).unwrap().unwrap().masses;
            assert_eq!(
                (ours.blocks.len(), ours.lse.len()),
                (theirs.blocks.len(), made.lengths().q_len),
                "{name} {head}"
            );
            assert!(ours.blocks.iter().sum::<f32>() > 1.0, "{name} {head}");
            // the file's masses are rounded to 3%, its q and k to float16
            for (a, b) in ours.blocks.iter().zip(&theirs.blocks) {
                assert!((a - b).abs() <= 0.04 * b + 1e-6, "{name} {head}: {a} {b}");
            }
            // and both are those of a plain softmax in float64
            let plain = crate::quality::testing::dense(&made);
            assert_eq!(ours.lse.len(), plain.lse.len());
            for (a, b) in ours.lse.iter().zip(&plain.lse) {
                assert!((a - b).abs() < 1e-4, "{name} {head}: {a} {b}");
            }
            let kv_len = made.lengths().kv_len;
            let first: f64 = plain.p.chunks(kv_len).take(block.q).map(|row| row[..block.kv].iter().sum::<f64>()).sum();
            assert!((first / block.q as f64 - f64::from(ours.blocks[0])).abs() < 1e-5);
        }
    }
}

#[test]
fn masks_on_other_captures_and_times_are_those_of_each_alone() {
    let (capture, control) = (committed("video.safetensors"), Control::new());
    let (call, block) = (&capture.calls()[0], capture.block_size().unwrap());
    let form = Form::Window { back: 100, ahead: 50, sinks: 8, causal: false };
    let lengths = Lengths::new(call.info.q_len, call.info.kv_len).unwrap();
    let found = on_all(&capture, call, 0, &[Mask::of_form(&form, lengths).unwrap()], block, &control).unwrap();
    assert_eq!(found.len(), capture.calls().len());
    for of in &found {
        let call = capture.find(Some(&of.key), None, None).unwrap();
        let heads = call.info.full_heads();
        let material = material(&capture, call, 0, &heads, block, None, &control).unwrap();
        let alone = material.judge(Kind::List, Reason::Part, form.clone(), &control).unwrap();
        assert!((alone.mass - of.mass[0]).abs() < 1e-9 && of.least[0] <= of.mass[0]);
    }
    let spread = spread(&found, 0);
    assert!(spread.min <= spread.mean && spread.mean <= spread.max && spread.count == found.len());
    let heads = call.info.full_heads();
    let material = material(&capture, call, 0, &heads, block, None, &control).unwrap();
    let per_head = Form::PerHead(vec![(vec![heads[1]], form.clone())]);
    let times = times(&material, &[&form, &per_head], &control).unwrap();
    assert!(times.len() == 3 && times.iter().all(|ms| *ms > 0.0), "{times:?}");
    // an unnamed head keeps everything, and heads are renumbered
    assert_eq!(per_head.only(&heads), Form::PerHead(vec![(vec![1], form)]));
}

#[test]
fn an_atlas_has_every_head_and_groups_those_that_look_alike() {
    let capture = committed("video.safetensors");
    let calls: Vec<&Call> = capture.calls().iter().collect();
    let mut found = atlas(&capture, &calls, 0, BlockSize::square(64), 3, &Control::new()).unwrap();
    let heads: usize = calls.iter().map(|c| c.info.heads).sum();
    assert_eq!(found.len(), heads, "heads without q and k have statistics");
    for head in &found {
        let call = capture.find(Some(&head.call), None, None).unwrap();
        assert_eq!(head.full, call.info.has_head(head.head));
        assert!(head.prefix.is_some_and(|p| (0.0..1.0).contains(&p)) && head.keys.is_some());
        // the file's masses are rounded
        assert!((head.tile.values.iter().sum::<f32>() - 13.0).abs() < 0.5, "{head:?}");
    }
    let groups = found.iter().map(|h| h.cluster).max().unwrap() + 1;
    assert!((1..=3).contains(&groups));
    sort(&mut found, Sort::Sinks);
    assert!(found.windows(2).all(|w| w[0].sinks >= w[1].sinks));
}

#[test]
fn proposals_on_trained_models_are_no_worse_than_the_plain_window() {
    for name in ["lm.safetensors", "video.safetensors", "encoder.safetensors"] {
        let capture = committed(name);
        let call = &capture.calls()[0];
        let block = capture.block_size().unwrap();
        let heads = call.info.full_heads();
        let material = material(&capture, call, 0, &heads, block, None, &Control::new()).unwrap();
        let wanted =
            Wanted { target: Target::Mass(0.95), protect: Default::default(), grid: capture.grid(), most_masks: 4 };
        let plain = crate::quality::suggest::plain_window(&material, &wanted, &Control::new()).unwrap();
        let best = &suggest(&material, &wanted, &Control::new()).unwrap()[0];
        assert!(best.mass >= 0.95 - 1e-6 && best.density <= plain.density, "{name}: {best:?} {plain:?}");
        println!("{name}: {} {:.4} of {} {:.4}", best.kind, best.density, plain.form.words(), plain.density);
    }
}

/// q, k and v as people save them: by names in safetensors, or stacked in one array.
#[test]
fn plain_files_of_q_k_and_v_are_captures_of_one_call() {
    let folder = tempfile::tempdir().expect("a folder");
    let values =
        |seed: usize, n: usize| (0..n).map(|at| ((at * 7 + seed * 13) % 11) as f32 - 5.0).collect::<Vec<f32>>();
    let tensor = |seed: usize, heads: usize| {
        HostTensor::new([1, heads, 6, 16], Data::F32(values(seed, heads * 96))).expect("a tensor")
    };
    let named = |names: [&str; 3], file: &str| {
        let all = [tensor(1, 4), tensor(2, 2), tensor(3, 2)];
        let path = folder.path().join(file);
        let parts = names.iter().zip(&all).map(|(name, t)| (name.to_string(), t));
        files::save(&path, &tensors::write(parts).expect("bytes")).expect("written");
        open(&path)
    };
    for names in [["q", "k", "v"], ["query", "key", "value"]] {
        let capture = named(names, "qkv.safetensors").expect("a capture");
        let [call] = capture.calls() else { panic!("one call") };
        let i = &call.info;
        assert_eq!((i.heads, i.kv_heads, i.q_len, i.kv_len, i.head_dim, i.is_causal), (4, 2, 6, 6, 16, false));
        let head = capture.head(call, 0, 3).expect("a head");
        assert_eq!(head.q(), &values(1, 4 * 96)[3 * 96..]);
        assert_eq!(head.k(), &values(2, 2 * 96)[96..]);
        assert_eq!(head.v().expect("v"), &values(3, 2 * 96)[96..]);
    }
    // heads behind tokens, as flash-attn and diffusers have them
    let turned = |seed: usize, heads: usize| {
        let own = values(seed, heads * 96);
        let of = |at: usize| own[(at / 16 % heads) * 96 + at / 16 / heads * 16 + at % 16];
        HostTensor::new([1, 6, heads, 16], Data::F32((0..heads * 96).map(of).collect())).expect("a tensor")
    };
    let all = [turned(1, 4), turned(2, 2), turned(3, 2)];
    let path = folder.path().join("bshd.safetensors");
    let parts = ["q", "k", "v"].iter().zip(&all).map(|(name, t)| (name.to_string(), t));
    files::save(&path, &tensors::write(parts).expect("bytes")).expect("written");
    let capture = open_as(&path, Some(Layout::Bshd)).expect("a capture");
    let head = capture.head(&capture.calls()[0], 0, 3).expect("a head");
    assert_eq!((head.q(), head.k()), (&values(1, 4 * 96)[3 * 96..], &values(2, 2 * 96)[96..]));
    let odd = [[1, 6, 4, 16], [1, 7, 2, 16]]
        .map(|shape| HostTensor::new(shape, Data::F32(vec![1.0; shape.iter().product()])).expect("a tensor"));
    let parts = ["q", "k"].iter().zip(&odd).map(|(name, t)| (name.to_string(), t));
    files::save(&path, &tensors::write(parts).expect("bytes")).expect("written");
    let why = open(&path).err().expect("7 heads of k for 6 of q");
    assert!(why.code == "plain-qkv" && why.message.contains("--layout bshd"), "{why:?}");
    let lm = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/captures/lm.safetensors");
    assert_eq!(open_as(&lm, Some(Layout::Bshd)).err().expect("its own order").code, "capture-layout");
    // [3, heads, tokens, head_dim] in NumPy's format
    let header = format!("{:<117}\n", "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2, 6, 16), }");
    let stacked: Vec<u8> = (1..4).flat_map(|seed| values(seed, 192)).flat_map(f32::to_le_bytes).collect();
    let npy = [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), &stacked].concat();
    std::fs::write(folder.path().join("qkv.npy"), npy).expect("written");
    let capture = open(&folder.path().join("qkv.npy")).expect("a capture");
    assert_eq!(capture.head(&capture.calls()[0], 0, 1).expect("a head").k(), &values(2, 192)[96..]);
    let refused = named(["q", "keys", "v"], "odd.safetensors").err().expect("no k");
    assert_eq!(refused.code, "not-a-capture");
}
