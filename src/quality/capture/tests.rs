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
