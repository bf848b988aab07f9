//! Hand-made captures, complete and damaged.
//!
//! Invariant: the files here are written from the format's description, not with the reader's code. Only compiled for
//! tests.

use super::*;
use crate::base::tensor::Data;
use crate::base::{Control, HostTensor};
use crate::quality::head::Own;
use crate::quality::masses::masses;
use crate::quality::testing::head;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A file in memory.
#[derive(Clone, Default)]
pub(crate) struct InMemory {
    pub metadata: BTreeMap<String, String>,
    pub tensors: BTreeMap<String, HostTensor>,
}

impl Tensors for InMemory {
    fn name(&self) -> String {
        "made.safetensors".into()
    }
    fn metadata(&self, key: &str) -> Option<String> {
        self.metadata.get(key).cloned()
    }
    fn about(&self, tensor: &str) -> Option<(DType, Vec<usize>)> {
        self.tensors.get(tensor).map(|t| (t.dtype(), t.shape().to_vec()))
    }
    fn names(&self) -> Vec<String> {
        self.tensors.keys().cloned().collect()
    }
    fn bytes(&self, tensor: &str, from: usize, count: usize) -> Result<Vec<u8>, Diagnostic> {
        let of = &self.tensors[tensor];
        let size = of.dtype().size();
        Ok(of.data().to_le_bytes()[from * size..(from + count) * size].to_vec())
    }
}

fn f32s(shape: &[usize], values: Vec<f32>) -> HostTensor {
    HostTensor::new(shape, Data::F32(values)).unwrap()
}

/// Two layers of four query heads over two kv heads, 40 x 40 tokens of 8; layer 1 has q, k, v of heads 1 and 3 only.
fn made() -> (InMemory, Value, Value) {
    let call = json!({"source": "sdpa", "layer": 0, "model": "Net", "heads": 4, "kv_heads": 2, "q_len": 40, "kv_len": 40, "head_dim": 8,
        "scale": null, "is_causal": true, "mask": "none", "name": "blocks.0.attn", "step": 0, "prompt": 0, "batch": 1,
        "dtype": "float32", "qkv": true, "statistics": null});
    let mut second = call.clone();
    second["layer"] = json!(1);
    second["name"] = json!("blocks.1.attn");
    second["captured_heads"] = json!([1, 3]);
    second["is_causal"] = json!(false);
    second["scale"] = json!(0.25);
    second["softcap"] = json!(5.0);
    let mut file = InMemory::default();
    let values =
        |seed: u64, heads: usize| (0..heads).flat_map(|h| head(seed + h as u64, 40, 40, 8, 2.0).q().to_vec()).collect();
    for (n, (letter, heads)) in [("q", 4), ("k", 2), ("v", 2)].into_iter().enumerate() {
        file.tensors.insert(format!("a.{letter}"), f32s(&[1, heads, 40, 8], values(10 * n as u64, heads)));
        file.tensors.insert(format!("b.{letter}"), f32s(&[1, 2, 40, 8], values(50 + 10 * n as u64, 2)));
    }
    file.tensors.insert("b.sinks".into(), f32s(&[2], vec![0.5, 1.5]));
    let whole = json!({"version": 2, "complete": true, "calls": 2, "tensors": 7, "block_size": [16, 16], "mass_log2_step": 1.0 / 12.0,
        "axes": {"names": ["h", "w"], "extents": [4, 9], "start": 4}, "prompts": ["a cat"], "left_out": 0, "stopped": null, "new": 1});
    (file, json!({"a": call, "b": second}), whole)
}

fn open(file: &InMemory, calls: &Value, whole: &Value) -> Result<Capture, Diagnostic> {
    let mut file = file.clone();
    file.metadata.insert("maskloom".into(), calls.to_string());
    file.metadata.insert("maskloom_capture".into(), whole.to_string());
    Capture::open(Box::new(file))
}

#[test]
fn heads_come_with_what_the_model_does_to_them() {
    let (file, calls, whole) = made();
    let capture = open(&file, &calls, &whole).unwrap();
    assert_eq!(capture.warnings(), []);
    assert_eq!((capture.grid().unwrap().extents, capture.grid().unwrap().start), ([1, 4, 9], 4));
    let first = capture.find(Some("blocks.0.attn"), None, None).unwrap();
    let three = capture.head(first, 0, 3).unwrap();
    assert!(matches!(three.own, Own::Causal) && three.softcap.is_none() && three.place == (0, 3));
    assert_eq!(three.q(), head(3, 40, 40, 8, 2.0).q());
    // query head 3 of four over two kv heads reads the second
    assert_eq!(three.k(), head(11, 40, 40, 8, 2.0).q());
    // calls are listed by their layers, whatever they are called in the file
    let mut later = calls.clone();
    later["a"]["layer"] = json!(5);
    let listed = open(&file, &later, &whole).unwrap();
    assert_eq!(listed.calls().iter().map(|call| call.info.layer).collect::<Vec<_>>(), [1, 5]);
    let second = capture.find(Some("1"), Some(0), Some(0)).unwrap();
    let three = capture.head(second, 0, 3).unwrap();
    assert_eq!((three.scale, three.softcap, three.sink), (0.25, Some(5.0), Some(1.5)));
    assert_eq!(three.q(), head(51, 40, 40, 8, 2.0).q());
    let missing = capture.head(second, 0, 0).unwrap_err();
    assert_eq!((&*missing.code, missing.hint.as_deref()), ("capture-head", Some("heads with q and k: 1, 3")));
    assert_eq!(capture.find(Some("blocks.7"), None, None).unwrap_err().code, "capture-call");
    // a part of one layer's name selects that layer; a part of several names selects none, and a number is not a part
    assert_eq!(capture.find(Some("blocks.1"), None, None).unwrap().info.name, "blocks.1.attn");
    let several = capture.find(Some("attn"), None, None).unwrap_err();
    assert!(several.message.contains("2 layers"), "{}", several.message);
    assert!(several.hint.unwrap().contains("blocks.0.attn, blocks.1.attn"));
    assert_eq!(capture.find(Some("0.0"), None, None).unwrap_err().code, "capture-call");
    assert_eq!(capture.find(Some("7"), None, None).unwrap_err().code, "capture-call");
}

#[test]
fn texts_of_tokens_are_those_of_the_call_s_prompt_and_side() {
    let (file, mut calls, mut whole) = made();
    (calls["b"]["q_len"], calls["b"]["qkv"]) = (json!(30), json!(false));
    whole["tokens"] = json!([
        {"prompt": 1, "start": 0, "text": ["of", "another"]},
        {"start": 2, "text": ["a", " cat"]},
        {"side": "q", "start": 39, "text": ["x", "too far"]},
    ]);
    let capture = open(&file, &calls, &whole).unwrap();
    let texts = |name: &str| capture.tokens(capture.find(Some(name), None, None).unwrap());
    let cat = (2, &["a".to_string(), " cat".to_string()][..]);
    assert_eq!(texts("blocks.0.attn"), [Some(cat), Some(cat)]);
    // queries of another number are other tokens
    assert_eq!(texts("blocks.1.attn"), [None, Some(cat)]);
    assert_eq!(open(&file, &calls, &made().2).unwrap().tokens(&capture.calls()[0]), [None, None]);
    let tensors = capture.tensors();
    assert_eq!(tensors.len(), 7);
    assert_eq!(tensors[0], ("a.k".to_string(), DType::F32, vec![1, 2, 40, 8]));
}

#[test]
fn version_1_has_its_names_in_the_keys() {
    let (file, mut calls, _) = made();
    let call = calls["a"].as_object_mut().unwrap();
    ["name", "step", "prompt", "batch", "qkv", "statistics"].iter().for_each(|key| drop(call.remove(*key)));
    let renamed = json!({"net.0.step12": calls["a"]});
    let tensors = file.tensors.iter().map(|(name, t)| (name.replace("a.", "net.0.step12."), t.clone())).collect();
    let mut old = InMemory { tensors, ..InMemory::default() };
    old.metadata.insert("maskloom".into(), renamed.to_string());
    let capture = Capture::open(Box::new(old)).unwrap();
    let call = &capture.calls()[0];
    assert_eq!((call.info.name.as_str(), call.info.step, call.info.qkv), ("net.0", 12, true));
    assert_eq!(capture.file.version, 1);
    assert!(capture.head(call, 0, 2).is_ok());
}

#[test]
fn what_is_wrong_is_told_by_name() {
    let (file, calls, whole) = made();
    let code = |file: &InMemory, calls: &Value, whole: &Value| open(file, calls, whole).err().unwrap().code;
    assert_eq!(Capture::open(Box::new(file.clone())).err().unwrap().code, "not-a-capture");
    let mut newer = whole.clone();
    newer["version"] = json!(9);
    assert_eq!(code(&file, &calls, &newer), "capture-version");
    let mut short = file.clone();
    short.tensors.insert("a.k".into(), f32s(&[1, 2, 39, 8], vec![1.0; 624]));
    let reported = open(&short, &calls, &whole).err().unwrap();
    assert!(
        reported.message.contains("a.k is [1, 2, 39, 8], where its description says [1, 2, 40, 8]"),
        "{}",
        reported.message
    );
    short.tensors.remove("a.k");
    assert!(open(&short, &calls, &whole).err().unwrap().message.contains("a.k is missing"));
    let mut none = calls.clone();
    none["a"]["heads"] = json!(3);
    assert_eq!(code(&file, &none, &whole), "capture-shape");
    none["a"]["heads"] = json!("x");
    assert_eq!(code(&file, &none, &whole), "capture-metadata");
    let mut early = whole.clone();
    (early["complete"], early["stopped"]) = (json!(false), json!("CUDA out of memory"));
    let reported = open(&file, &calls, &early).unwrap().warnings();
    assert!(reported[0].message.contains("ended early: CUDA out of memory"), "{reported:?}");
    let mut fewer = whole.clone();
    fewer["tensors"] = json!(12);
    assert!(open(&file, &calls, &fewer).unwrap().warnings()[0].message.contains("lists 12 tensors but contains 7"));
}

#[test]
fn what_a_description_cannot_mean_is_refused() {
    let (file, calls, whole) = made();
    let reported = |key: &str, name: &str, value: Value| {
        let mut calls = calls.clone();
        calls[key][name] = value;
        let why = open(&file, &calls, &whole).err().unwrap();
        assert!(why.hint.is_some());
        (why.code.into_owned(), why.message)
    };
    assert!(reported("b", "captured_heads", json!([1, 9])).1.contains("lists head 9 of 4 heads"));
    assert!(reported("b", "captured_heads", json!([4, 1])).1.contains("lists head 4 of 4 heads"));
    assert!(reported("b", "captured_heads", json!([3, 3])).1.contains("lists head 3 twice"));
    // so many that a list of them would fill the memory
    let mut many = calls.clone();
    (many["b"]["heads"], many["b"]["kv_heads"]) = (json!(1u64 << 60), json!(1u64 << 60));
    assert_eq!(open(&file, &many, &whole).err().unwrap().code, "capture-shape");
    let mut short = file.clone();
    short.tensors.insert("a.v".into(), f32s(&[1, 2, 20, 16], vec![1.0; 640]));
    assert!(open(&short, &calls, &whole).err().unwrap().message.contains("a.v is [1, 2, 20, 16]"));
    let mut turned = file.clone();
    turned.metadata.insert("layout".into(), "bshd".into());
    let why = open(&turned, &calls, &whole).err().unwrap();
    assert!(why.code == "capture-layout" && why.message.contains("bshd"), "{why:?}");
    let none = open(&file, &json!({}), &whole).unwrap();
    assert!(none.find(None, None, None).err().unwrap().message.contains("contains no call of attention"));
    let mut large = whole.clone();
    large["axes"]["extents"] = json!([9, 9]);
    let capture = open(&file, &calls, &large).unwrap();
    assert!(capture.warnings()[0].message.contains("9 x 9 from token 4 does not fit 40 tokens"));
    // 0 is no softcap
    let mut flat = calls.clone();
    flat["b"]["softcap"] = json!(0.0);
    let capture = open(&file, &flat, &whole).unwrap();
    assert_eq!(capture.head(&capture.calls()[1], 0, 1).unwrap().softcap, None);
}

/// 201 GB of captured heads that no disk holds; counts the bytes that are read.
struct Huge {
    calls: String,
    read: Arc<AtomicUsize>,
}

impl Tensors for Huge {
    fn name(&self) -> String {
        "huge.safetensors".into()
    }
    fn metadata(&self, key: &str) -> Option<String> {
        (key == "maskloom").then(|| self.calls.clone())
    }
    fn about(&self, tensor: &str) -> Option<(DType, Vec<usize>)> {
        [".q", ".k", ".v"].iter().any(|end| tensor.ends_with(end)).then(|| (DType::F32, vec![1, 64, 2048, 128]))
    }
    fn names(&self) -> Vec<String> {
        Vec::new()
    }
    fn bytes(&self, _: &str, from: usize, count: usize) -> Result<Vec<u8>, Diagnostic> {
        self.read.fetch_add(4 * count, Ordering::Relaxed);
        Ok((0..count).flat_map(|at| (((from + at) % 7) as f32).to_le_bytes()).collect())
    }
}

#[test]
fn a_capture_of_201_gigabytes_costs_the_bytes_of_the_heads_that_are_read() {
    let call = |layer: usize| json!({"layer": layer, "name": format!("blocks.{layer}"), "heads": 64, "kv_heads": 64, "q_len": 2048, "kv_len": 2048, "head_dim": 128});
    let calls: serde_json::Map<String, Value> = (0..1000).map(|n| (format!("blocks.{n}.step0"), call(n))).collect();
    let read = Arc::new(AtomicUsize::new(0));
    let file = Huge { calls: Value::Object(calls).to_string(), read: read.clone() };
    let capture = Capture::open(Box::new(file)).unwrap();
    assert_eq!((capture.calls().len(), read.load(Ordering::Relaxed)), (1000, 0));
    let call = capture.find(Some("blocks.999"), None, None).unwrap();
    let head = capture.head(call, 0, 63).unwrap();
    assert_eq!(head.q().len(), 2048 * 128);
    assert_eq!(read.load(Ordering::Relaxed), 3 * 4 * 2048 * 128);
}

#[test]
fn statistics_are_masses_within_the_codes_rounding() {
    let (mut file, mut calls, whole) = made();
    let mut mass = Vec::new();
    let mut lse = Vec::new();
    let exact: Vec<_> = (0..4)
        .map(|h| {
            let capture = open(&file, &calls, &whole).unwrap();
            let head = capture.head(&capture.calls()[0], 0, h).unwrap();
            masses(&head, BlockSize::square(16), false, &Control::new()).unwrap()
        })
        .collect();
    for of in &exact {
        let code = |p: &f32| if *p == 0.0 { 0 } else { (255.0 + 12.0 * p.log2()).round().clamp(1.0, 255.0) as u8 };
        mass.extend(of.blocks.iter().map(code));
        lse.extend(of.lse.iter().map(|x| *x as f32));
    }
    file.tensors.insert("a.mass".into(), HostTensor::new([1, 4, 3, 3], Data::U8(mass)).unwrap());
    file.tensors.insert("a.lse".into(), f32s(&[1, 4, 40], lse));
    calls["a"]["statistics"] = json!({"mass": "a.mass", "lse": "a.lse", "max": null, "own_mask": "applied"});
    let capture = open(&file, &calls, &whole).unwrap();
    for (h, exact) in exact.iter().enumerate().take(4) {
        let found = capture.statistics(&capture.calls()[0], 0, h).unwrap().unwrap();
        assert_eq!(found.masses.blocks.len(), exact.blocks.len());
        for (a, b) in found.masses.blocks.iter().zip(&exact.blocks) {
            assert!((a / b.max(1e-30) - 1.0).abs() < 0.03 || *b < 5e-7, "{a} {b}");
        }
    }
    assert!(capture.statistics(&capture.calls()[1], 0, 0).unwrap().is_none());
    calls["a"]["statistics"]["mass"] = json!("gone");
    let capture = open(&file, &calls, &whole).unwrap();
    assert!(capture.statistics(&capture.calls()[0], 0, 0).unwrap_err().message.contains("gone is missing"));
}

#[test]
fn masses_have_the_codes_of_their_format() {
    // twelve codes are a factor of two
    let of = |code| decode_mass(code, 1.0 / 12.0);
    assert_eq!([of(0), of(255), of(243), of(231)], [0.0, 1.0, 0.5, 0.25]);
    assert_eq!(decode_mass(253, 0.5), 0.5);
}

/// Two batch entries of four heads, with masses as float32 numbers.
fn with_statistics() -> (InMemory, Value, Value) {
    let (mut file, mut calls, mut whole) = made();
    (calls["a"]["batch"], calls["a"]["qkv"]) = (json!(2), json!(false));
    whole["block_size"] = json!([16, 20]);
    let count = |n: usize, by: f32| (0..n).map(|at| by * at as f32).collect::<Vec<f32>>();
    file.tensors.insert("a.mass".into(), f32s(&[2, 4, 3, 2], count(48, 1.0 / 64.0)));
    // in head 1 of entry 1 the rows 3, 5 and 39 keep nothing
    let mut lse = count(320, 0.125);
    [3, 5, 39].iter().for_each(|row| lse[(4 + 1) * 40 + row] = f32::NEG_INFINITY);
    file.tensors.insert("a.lse".into(), f32s(&[2, 4, 40], lse));
    file.tensors.insert("a.max".into(), f32s(&[2, 4, 40], count(320, -1.0)));
    file.tensors.insert("a.entropy".into(), f32s(&[2, 4, 40], count(320, 2.0)));
    file.tensors.insert("a.columns".into(), f32s(&[2, 4, 40], count(320, 4.0)));
    calls["a"]["statistics"] =
        json!({"mass": "a.mass", "lse": "a.lse", "max": "a.max", "entropy": "a.entropy", "columns": "a.columns"});
    (file, calls, whole)
}

#[test]
fn statistics_are_those_of_their_batch_entry_and_head() {
    let (file, mut calls, whole) = with_statistics();
    let capture = open(&file, &calls, &whole).unwrap();
    let call = &capture.calls()[0];
    let found = capture.statistics(call, 1, 2).unwrap().unwrap();
    // six heads stand before it
    let (first, row) = (6.0 * 6.0, 6 * 40);
    assert_eq!(found.masses.blocks, (0..6).map(|at| (first + at as f32) / 64.0).collect::<Vec<f32>>());
    assert_eq!((found.masses.lse[0], found.masses.lse[39]), (f64::from(row) / 8.0, f64::from(row + 39) / 8.0));
    assert_eq!((found.masses.max[1], found.entropy[1], found.columns[39]), (-241.0, 482.0, 1116.0));
    assert_eq!(
        (found.masses.rounding, found.masses.block, found.masses.judged(2)),
        (1.0, BlockSize { q: 16, kv: 20 }, 8)
    );
    // the file's means count rows that keep nothing: two of the first sixteen, and one of the last eight
    let found = capture.statistics(call, 1, 1).unwrap().unwrap();
    let by = [16.0 / 14.0, 1.0, 8.0 / 7.0];
    let wanted: Vec<f32> = (0..6).map(|at| (30.0 + at as f32) / 64.0 * by[at / 2]).collect();
    assert!(found.masses.blocks.iter().zip(&wanted).all(|(a, b)| (a - b).abs() < 1e-6), "{:?}", found.masses.blocks);
    for (batch, head) in [(2, 0), (0, 4)] {
        let refused = capture.statistics(call, batch, head).unwrap_err();
        assert_eq!(refused.code, "capture-head");
        assert!(refused.message.contains("has 4 heads and 2 batch entries"), "{}", refused.message);
    }
    assert!(capture.statistics(call, 1, 3).is_ok());
    // without the rows' sums every row counts; what was not captured is not there
    calls["a"]["statistics"] = json!({"mass": "a.mass"});
    let capture = open(&file, &calls, &whole).unwrap();
    let found = capture.statistics(&capture.calls()[0], 1, 1).unwrap().unwrap();
    assert_eq!((found.masses.judged(0), found.masses.empty_rows(), found.masses.blocks[0]), (16, 0, 30.0 / 64.0));
    assert!(found.masses.max.len() == 40 && found.masses.max.iter().all(|max| max.is_nan()));
    assert_eq!((found.entropy.len(), found.columns.len()), (0, 0));
    // codes stand for masses within half a step
    let mut coded = file.clone();
    coded.tensors.insert("a.mass".into(), HostTensor::new([2, 4, 3, 2], Data::U8(vec![243; 48])).unwrap());
    // the usual step where the file says none
    let mut usual = whole.clone();
    usual["mass_log2_step"] = json!(null);
    let capture = open(&coded, &calls, &usual).unwrap();
    let found = capture.statistics(&capture.calls()[0], 0, 0).unwrap().unwrap();
    assert_eq!((found.masses.blocks[5], found.masses.rounding), (0.5, 2f64.powf(1.0 / 24.0)));
    // no statistics of this call, none of masses, and no size of blocks
    for nothing in [json!(null), json!({"lse": "a.lse"})] {
        calls["a"]["statistics"] = nothing;
        let capture = open(&file, &calls, &whole).unwrap();
        assert_eq!(capture.statistics(&capture.calls()[0], 0, 0).unwrap(), None);
    }
    let (file, calls, mut whole) = with_statistics();
    for size in [json!(null), json!([0, 20]), json!([16, 0])] {
        whole["block_size"] = size;
        let capture = open(&file, &calls, &whole).unwrap();
        assert_eq!(capture.statistics(&capture.calls()[0], 0, 0).unwrap(), None);
    }
}

/// Two batch entries of 3 queries and 2 keys, four heads over two kv heads; every number is its own place in the tensor.
fn small(own: Option<(&str, HostTensor)>, causal: bool, sinks: Option<Vec<f32>>) -> Capture {
    let mut call = json!({"layer": 0, "heads": 4, "kv_heads": 2, "q_len": 3, "kv_len": 2, "head_dim": 2, "batch": 2, "name": "x", "is_causal": causal});
    let mut file = InMemory::default();
    let numbers = |n: usize| (0..n).map(|at| at as f32).collect::<Vec<f32>>();
    file.tensors.insert("a.q".into(), f32s(&[2, 4, 3, 2], numbers(48)));
    file.tensors.insert("a.k".into(), f32s(&[2, 2, 2, 2], numbers(16)));
    file.tensors.insert("a.v".into(), f32s(&[2, 2, 2, 5], numbers(40)));
    if let Some((name, tensor)) = own {
        call["mask_tensor"] = json!(name);
        file.tensors.insert(name.into(), tensor);
    }
    if let Some(sinks) = sinks {
        file.tensors.insert("a.sinks".into(), f32s(&[sinks.len()], sinks));
    }
    open(&file, &json!({"a": call}), &json!({"version": 2})).unwrap()
}

#[test]
fn a_head_has_the_numbers_of_its_own_place() {
    let capture = small(None, false, None);
    let call = &capture.calls()[0];
    let head = capture.head(call, 1, 2).unwrap();
    // entry 1, query head 2, kv head 1
    assert_eq!(head.q(), [36.0, 37.0, 38.0, 39.0, 40.0, 41.0]);
    assert_eq!(head.k(), [12.0, 13.0, 14.0, 15.0]);
    assert_eq!(head.v(), Some(&(30..40).map(|n| n as f32).collect::<Vec<_>>()[..]));
    assert!(matches!(head.own, Own::None) && head.sink.is_none() && head.place == (1, 2));
    assert_eq!(capture.head(call, 1, 1).unwrap().k(), [8.0, 9.0, 10.0, 11.0]);
    assert_eq!(capture.batch(call), 2);
    for (batch, head) in [(2, 0), (0, 4)] {
        assert_eq!(capture.head(call, batch, head).unwrap_err().code, "capture-head");
    }
}

#[test]
fn one_batch_entry_of_keys_is_that_of_all_queries_and_none_is_refused() {
    let (file, mut calls, whole) = made();
    calls["a"]["batch"] = json!(2);
    let numbers = |n: usize| (0..n).map(|at| at as f32).collect::<Vec<f32>>();
    let with_keys = |batch: usize| {
        let mut file = file.clone();
        file.tensors.insert("a.q".into(), f32s(&[2, 4, 40, 8], numbers(2560)));
        file.tensors.insert("a.k".into(), f32s(&[batch, 2, 40, 8], numbers(batch * 640)));
        open(&file, &calls, &whole)
    };
    let capture = with_keys(1).unwrap();
    let head = capture.head(&capture.calls()[0], 1, 2).unwrap();
    // entry 1 and query head 2; the one entry, and its second kv head
    assert_eq!((head.q()[0], head.k()[0], head.k().len()), (1920.0, 320.0, 320));
    let refused = with_keys(0).err().unwrap();
    assert!(refused.message.contains("a.k is [0, 2, 40, 8]"), "{}", refused.message);
}

/// A file of which one tensor has a type that is not read.
struct Quantised(InMemory);

impl Tensors for Quantised {
    fn name(&self) -> String {
        self.0.name()
    }
    fn metadata(&self, key: &str) -> Option<String> {
        self.0.metadata(key)
    }
    fn about(&self, tensor: &str) -> Option<(DType, Vec<usize>)> {
        self.0.about(tensor).filter(|_| tensor != "a.k")
    }
    fn names(&self) -> Vec<String> {
        self.0.names()
    }
    fn bytes(&self, tensor: &str, from: usize, count: usize) -> Result<Vec<u8>, Diagnostic> {
        self.0.bytes(tensor, from, count)
    }
}

#[test]
fn a_tensor_of_another_type_is_not_called_missing() {
    let (mut file, calls, whole) = made();
    file.metadata.insert("maskloom".into(), calls.to_string());
    file.metadata.insert("maskloom_capture".into(), whole.to_string());
    let refused = Capture::open(Box::new(Quantised(file))).err().unwrap();
    assert_eq!(refused.code, "capture-dtype");
    assert!(refused.message.contains("a.k has an unsupported element type"), "{}", refused.message);
}

#[test]
fn a_models_own_mask_is_read_for_its_batch_entry_and_head() {
    let bools = |shape: &[usize]| {
        let bits = (0..shape.iter().product::<usize>()).map(|n| u8::from((n * n + n / 6) % 11 < 6)).collect();
        HostTensor::new(shape, Data::Bool(bits)).unwrap()
    };
    let kept = |from: usize| (from..from + 6).map(|n| u8::from((n * n + n / 6) % 11 < 6)).collect::<Vec<u8>>();
    let read = |tensor: &HostTensor, causal: bool, batch: usize, head: usize| {
        let capture = small(Some(("a.mask", tensor.clone())), causal, None);
        capture.head(&capture.calls()[0], batch, head).unwrap().own
    };
    let cells = |own: Own| match own {
        Own::Keep(table) => table.to_vec(),
        other => panic!("{other:?}"),
    };
    for (shape, first) in [([2, 4, 3, 2], (4 + 3) * 6), ([2, 1, 3, 2], 6), ([1, 4, 3, 2], 3 * 6), ([1, 1, 3, 2], 0)] {
        assert_eq!(cells(read(&bools(&shape), false, 1, 3)), kept(first), "{shape:?}");
    }
    // both: of 3 x 2 cells one lies behind its query
    let all = HostTensor::new([1, 1, 3, 2], Data::Bool(vec![1; 6])).unwrap();
    assert_eq!(cells(read(&all, true, 0, 0)), [1, 0, 1, 1, 1, 1]);
    assert_eq!(cells(read(&all, false, 0, 0)), [1; 6]);
    let bias = f32s(&[1, 4, 3, 2], (0..24).map(|n| n as f32 / 4.0).collect());
    let Own::Bias(table) = read(&bias, false, 1, 2) else { panic!("a bias") };
    assert_eq!(&table[..], [3.0, 3.25, 3.5, 3.75, 4.0, 4.25]);
    assert!(matches!(
        small(None, true, None).head(&small(None, true, None).calls()[0], 0, 0).unwrap().own,
        Own::Causal
    ));
    for shape in [&[1, 1, 2, 3][..], &[3, 2], &[0, 1, 3, 2], &[1, 0, 3, 2]] {
        let capture = small(Some(("a.mask", bools(shape))), false, None);
        let refused = capture.head(&capture.calls()[0], 0, 0).unwrap_err();
        assert!(refused.message.contains("own mask a.mask is not 3 x 2"), "{}", refused.message);
    }
}

#[test]
fn a_sink_is_that_of_its_head() {
    let sink = |sinks: &[f32], head: usize| {
        let capture = small(None, false, Some(sinks.to_vec()));
        capture.head(&capture.calls()[0], 0, head).unwrap().sink
    };
    assert_eq!((sink(&[1.0, 2.0, 3.0, 4.0], 0), sink(&[1.0, 2.0, 3.0, 4.0], 3)), (Some(1.0), Some(4.0)));
    // a file that holds fewer
    assert_eq!((sink(&[1.0, 2.0], 1), sink(&[1.0, 2.0], 2), sink(&[1.0, 2.0], 3)), (Some(2.0), None, None));
}

#[test]
fn as_many_heads_and_cells_as_can_be_read_are_read() {
    let opened = |heads: usize, kv_heads: usize| {
        let call = json!({"layer": 0, "heads": heads, "kv_heads": kv_heads, "q_len": 3, "kv_len": 2, "head_dim": 2, "qkv": false});
        open(&InMemory::default(), &json!({"a": call}), &json!({"version": 2})).err().map(|e| e.code.into_owned())
    };
    let refused = Some("capture-shape".to_string());
    assert_eq!((opened(1 << 16, 1), opened((1 << 16) + 1, 1)), (None, refused.clone()));
    assert_eq!((opened(6, 3), opened(6, 4)), (None, refused));
    // values without a width
    let (mut file, calls, whole) = made();
    file.tensors.insert("a.v".into(), f32s(&[1, 2, 40, 0], vec![]));
    assert!(open(&file, &calls, &whole).err().unwrap().message.contains("a.v is [1, 2, 40, 0]"));
    file.tensors.remove("a.v");
    let capture = open(&file, &calls, &whole).unwrap();
    assert!(capture.head(&capture.calls()[0], 0, 0).unwrap().v().is_none());
    // a mask of more cells than are held: 2^28 and some
    let long = (1 << 14) + 1;
    let call = json!({"layer": 0, "heads": 1, "kv_heads": 1, "q_len": long, "kv_len": long, "head_dim": 1, "mask_tensor": "blocks.mask"});
    let read = Arc::new(AtomicUsize::new(0));
    let file = Wide { calls: json!({"blocks": call}).to_string(), long, read: read.clone() };
    let capture = Capture::open(Box::new(file)).unwrap();
    let refused = capture.head(&capture.calls()[0], 0, 0).unwrap_err();
    assert_eq!(refused.code, "capture-mask-size");
    assert_eq!(read.load(Ordering::Relaxed), 3 * long, "q, k and v alone are read");
}

/// One head of `long` tokens with a dense mask that is only named.
struct Wide {
    calls: String,
    long: usize,
    read: Arc<AtomicUsize>,
}

impl Tensors for Wide {
    fn name(&self) -> String {
        "wide.safetensors".into()
    }
    fn metadata(&self, key: &str) -> Option<String> {
        (key == "maskloom").then(|| self.calls.clone())
    }
    fn about(&self, tensor: &str) -> Option<(DType, Vec<usize>)> {
        let width = if tensor == "blocks.mask" { self.long } else { 1 };
        (!tensor.ends_with("sinks")).then(|| (DType::F32, vec![1, 1, self.long, width]))
    }
    fn names(&self) -> Vec<String> {
        Vec::new()
    }
    fn bytes(&self, _: &str, _: usize, count: usize) -> Result<Vec<u8>, Diagnostic> {
        self.read.fetch_add(count, Ordering::Relaxed);
        Ok(vec![0; 4 * count])
    }
}
