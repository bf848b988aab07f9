//! Outlines of texts, read without running them.

use crate::python::outline::*;

fn shown(text: &str) -> Vec<String> {
    let outline = outline(&Source::new("mod.py", text));
    assert!(outline.diagnostics.is_empty(), "{:?}", outline.diagnostics);
    let param = |p: &Param| format!("{}: {:?} = {:?} [{}]", p.name, p.kind, p.default, p.doc);
    let entry = |e: &Entry| {
        let params: Vec<String> = e.params.iter().map(param).collect();
        format!("{} {:?} ({})", e.name, e.kind, params.join("; "))
    };
    outline.entries.iter().map(entry).collect()
}

#[test]
fn factories_mods_and_combinations_are_entries() {
    let text = r#"
from torch.nn.attention.flex_attention import and_masks
W = 5

def causal(b, h, q, kv):
    return q >= kv

def window(size: int = 128, *, offsets: "torch.Tensor" = None, name="x"):
    """Keeps a window.

    More words.

    Args:
        size: keys seen [1..kv_len]
            and more
        offsets (Tensor): starts
    """
    def mask(b, h, q, kv):
        return q - kv < size
    return mask

def helper(x):
    return x + 1

both = and_masks(causal, window(3))
score = lambda s, b, h, q, kv: s * 2
other = window(7)

def main(device: str = "cpu"):
    print(device)
"#;
    assert_eq!(
        shown(text),
        [
            "causal MaskMod ()",
            "window Factory (size: Int = Some(Int(128)) [keys seen [1..kv_len] and more]; \
             offsets: Tensor = Some(None) [starts]; name: Str = Some(Str(\"x\")) [])",
            "both MaskMod ()",
            "score ScoreMod ()",
            "other MaskMod ()",
        ]
    );
    let doc = outline(&Source::new("mod.py", text)).entries[1].doc.clone();
    assert_eq!(doc, "Keeps a window.\n\nMore words.");
}

#[test]
fn four_parameters_and_a_returned_function_are_a_factory() {
    let text =
        "def natten(w: int, h: int, kw: int, kh: int):\n    def m(b, h, q, k):\n        return q >= k\n    return m\n";
    assert_eq!(shown(text).len(), 1);
    assert!(shown(text)[0].starts_with("natten Factory (w: Int"));
}

#[test]
fn broken_text_gives_what_stands_before_the_error() {
    let outline = outline(&Source::new("mod.py", "def f(b, h, q, k):\n    return q >= k\n\ndef g(:\n"));
    assert!(outline.entries.iter().any(|e| e.name == "f"), "{outline:?}");
    let error = &outline.diagnostics[0];
    assert_eq!((error.line_column().map(|(l, _)| l), error.is_error()), (Some(4), true));
}

#[test]
fn deep_and_long_texts_are_read() {
    let deep = format!("x = {}1{}\n", "(".repeat(900), ")".repeat(900));
    let _ = outline(&Source::new("deep.py", deep));
    let deeper = format!("x = {}1\n", "-".repeat(500_000));
    assert_eq!(outline(&Source::new("deep.py", deeper)).diagnostics[0].code, "nesting-too-deep");
}

#[test]
fn methods_of_objects_are_entries() {
    let text = "class Window:\n    def __init__(self, size):\n        self.size = size\n    def mask(self, b, h, q, kv):\n        return q - kv < self.size\n    \
                @staticmethod\n    def bias(score, b, h, q, kv):\n        return score + 1\n    def make(self):\n        return lambda b, h, q, kv: q >= kv\n    \
                def __call__(self, b, h, q, kv):\n        return q > kv\n\
                w = Window(5)\nmod = w.mask\nscore = Window.bias\nmade = w.make()\nother = w.size\n";
    assert_eq!(shown(text), ["w MaskMod ()", "mod MaskMod ()", "score ScoreMod ()", "made MaskMod ()"]);
}

#[test]
fn a_system_without_threads_is_told_and_no_panic() {
    let deep = format!("x = {}1{}\n", "(".repeat(90), ")".repeat(90));
    let source = Source::new("mod.py", deep.as_str());
    assert!(outline(&source).diagnostics.is_empty());
    // no system has room for such a stack
    let refused = outline_on(&source, 1 << 60);
    assert_eq!(refused.diagnostics.iter().map(|d| d.code.as_ref()).collect::<Vec<_>>(), ["no-thread"]);
    assert!(refused.entries.is_empty() && refused.diagnostics[0].hint.is_some());
}
