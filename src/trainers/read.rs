//! Reads a trainer's or model's config.json: its attention setting, the effect of this setting, and the training shape.
//!
//! Invariant: reading changes nothing; a shape is the model's real one or absent. Must not know dialogs or
//! measurements.

use super::config::Trainer;
use super::effects::{self, Setup};
use super::known;
use super::meaning::{Fact, Meaning, Unset};
use super::own_masks::{OwnMask, own_masks};
use super::settings_file::SettingsFile;
use crate::base::{BackendName, DType, Diagnostic};
use crate::document::model::*;
use serde_json::Value;

/// The relevant part of a config.json.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainerConfig {
    /// Its probable owner.
    pub trainer: Trainer,
    /// `model_family` or `model_type`.
    pub family: Option<String>,
    /// `model_flavour`, which distinguishes sizes of a family.
    pub flavour: String,
    /// The present attention setting.
    pub setting: Option<String>,
    /// `mixed_precision` or the model's dtype.
    pub precision: Option<String>,
    /// `base_model_precision`: how the frozen weights are kept.
    pub weights: Option<String>,
    values: serde_json::Map<String, Value>,
}

impl TrainerConfig {
    /// Reads a file. Errors: not UTF-8, not JSON, not an object, a key twice; each with line and column.
    pub fn read(name: &str, bytes: &[u8]) -> Result<TrainerConfig, Diagnostic> {
        let object = SettingsFile::parse(name, bytes)?;
        let mut values = serde_json::Map::new();
        // `key` and `--key` are one flag, and the last one counts
        for member in object.members() {
            let value = object.value(member);
            let key = member.key.trim_start_matches('-').to_string();
            if value.is_null() {
                values.remove(&key)
            } else {
                values.insert(key, value)
            };
        }
        let text = |keys: &[&str]| keys.iter().find_map(|k| values.get(*k)).map(plain);
        let tuner = values.contains_key("model_family") || values.contains_key("attention_mechanism");
        let trainer = if tuner { Trainer::SimpleTuner } else { Trainer::Transformers };
        let setting = text(&["attention_mechanism", "attn_implementation", "_attn_implementation"]);
        Ok(TrainerConfig {
            trainer,
            family: text(&["model_family", "model_type"]),
            flavour: text(&["model_flavour", "model_flavor", "pretrained_model_name_or_path", "_name_or_path"])
                .unwrap_or_default()
                .to_lowercase(),
            setting,
            precision: text(&["mixed_precision", "torch_dtype", "dtype"]),
            weights: text(&["base_model_precision"]),
            values,
        })
    }

    /// The present effect of the setting.
    pub fn meaning(&self) -> Meaning {
        let value = self.value();
        let (edition, facts) = match self.trainer {
            Trainer::SimpleTuner => (Some(known::edition()), effects::meaning(value, self.setup())),
            Trainer::Transformers => (None, vec![meaning_of(value)]),
        };
        let unset = self.setting.is_none().then(|| Unset { value: value.into(), edition });
        Meaning { unset, facts }
    }

    /// The present value, or the trainer's default.
    pub fn value(&self) -> &str {
        let default = match self.trainer {
            Trainer::SimpleTuner => known::newest().default.as_str(),
            Trainer::Transformers => "sdpa",
        };
        self.setting.as_deref().unwrap_or(default)
    }

    /// What decides the setting's effect besides its value.
    pub fn setup(&self) -> Setup<'_> {
        let text = |key: &str| self.values.get(key).and_then(Value::as_str);
        let count = |key: &str| self.number(key).map_or(0, |n| n as usize);
        Setup {
            family: self.family.as_deref(),
            usage: text("sageattention_usage"),
            parallel: count("context_parallel_size"),
            dynamo_mode: text("dynamo_mode"),
            batch: count("train_batch_size"),
        }
    }

    /// What the family's own mask is, where it is not plain causal or full attention.
    pub fn own_masks(&self) -> Vec<OwnMask> {
        let family = self.family.as_deref().unwrap_or_default();
        own_masks(family, &self.values, self.setup().batch)
    }

    /// Attention of the model as it is trained, without a designed mask. None: the family's shape is not known.
    pub fn document(&self) -> Option<Document> {
        let shape = match self.trainer {
            Trainer::SimpleTuner => self.family_shape()?,
            Trainer::Transformers => self.stated_shape()?,
        };
        Some(shape.document(self))
    }

    fn number(&self, key: &str) -> Option<f64> {
        let value = self.values.get(key)?;
        value.as_f64().or_else(|| value.as_str()?.trim().parse().ok()).filter(|n: &f64| n.is_finite() && *n > 0.0)
    }

    /// Width and height in pixels: those of the validation pictures, else a square of the training resolution.
    fn pixels(&self, default: (usize, usize)) -> (usize, usize) {
        let stated = self.values.get("validation_resolution").map(plain);
        let parsed = stated.as_deref().and_then(|text| {
            let first = text.split(',').next()?.trim().to_lowercase();
            match first.split_once('x') {
                Some((w, h)) => Some((w.trim().parse().ok()?, h.trim().parse().ok()?)),
                None => first.parse().ok().map(|side| (side, side)),
            }
        });
        let square = || {
            let resolution = self.number("resolution")?;
            // small numbers are an area in megapixels
            let side = if resolution <= 16.0 { (resolution * 1024.0 * 1024.0).sqrt() } else { resolution };
            Some((side.round() as usize, side.round() as usize))
        };
        let inside = |n: usize| (64..=8192).contains(&n);
        parsed.or_else(square).filter(|(w, h)| inside(*w) && inside(*h)).unwrap_or(default)
    }

    fn frames(&self, default: usize) -> usize {
        let stated = ["validation_num_video_frames", "num_frames"].iter().find_map(|k| self.number(k));
        stated.map(|n| n as usize).filter(|n| (1..=1024).contains(n)).unwrap_or(default)
    }

    fn family_shape(&self) -> Option<Shape> {
        let has = |words: &[&str]| words.iter().any(|w| self.flavour.contains(w));
        let image = |heads, head_dim, text: usize, text_first: bool, cell: usize| {
            let (w, h) = self.pixels((1024, 1024));
            Shape::joint(heads, head_dim, text, vec![h.div_ceil(cell), w.div_ceil(cell)], text_first)
        };
        let video = |heads, head_dim, pixels, frames, steps: usize, cell: usize, text: usize| {
            let ((w, h), frames) = (self.pixels(pixels), self.frames(frames));
            let grid = vec![(frames.max(1) - 1) / steps + 1, h.div_ceil(cell), w.div_ceil(cell)];
            Shape::joint(heads, head_dim, text, grid, false)
        };
        Some(match self.family.as_deref()? {
            "flux" | "flux2" | "chroma" => {
                image(if self.family.as_deref() == Some("flux2") { 48 } else { 24 }, 128, 512, true, 16)
            }
            "qwen_image" => image(24, 128, 256, true, 16),
            "sd3" => image(if has(&["large"]) { 38 } else { 24 }, 64, 333, false, 16),
            "sdxl" => image(10, 64, 0, false, 16),
            "wan" if has(&["5b"]) => video(24, 128, (1280, 704), 121, 4, 32, 0),
            "wan" if has(&["1.3b", "1-3b", "1_3b"]) => video(12, 128, (832, 480), 81, 4, 16, 0),
            "wan" => video(40, 128, (832, 480), 81, 4, 16, 0),
            "ltxvideo" => video(32, if has(&["13b"]) { 128 } else { 64 }, (704, 512), 161, 8, 32, 0),
            "hunyuanvideo" => video(24, 128, (1280, 720), 129, 4, 16, 256),
            _ => return None,
        })
    }

    /// A transformers model states its own heads.
    fn stated_shape(&self) -> Option<Shape> {
        let inner = self.values.get("text_config").and_then(Value::as_object).unwrap_or(&self.values);
        let get = |key: &str| inner.get(key).and_then(Value::as_u64).filter(|n| (1..=1 << 20).contains(n));
        let heads = get("num_attention_heads")? as usize;
        let head_dim = match get("head_dim") {
            Some(dim) => dim as usize,
            None => get("hidden_size")? as usize / heads,
        };
        let kv_heads = get("num_key_value_heads").map_or(heads, |n| n as usize);
        let tokens = get("max_position_embeddings").unwrap_or(4096).clamp(16, 8192) as usize;
        let window = get("sliding_window").map(|w| w as i64);
        let causal = !matches!(self.family.as_deref(), Some("bert" | "modernbert" | "roberta" | "vit" | "siglip"));
        let fits = heads <= 1024 && head_dim <= 1024 && kv_heads > 0 && heads.is_multiple_of(kv_heads) && head_dim > 0;
        fits.then(|| Shape { heads, kv_heads, head_dim, axis: Axis::tokens(tokens), causal, window })
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), String::from)
}

/// A model's attention.
struct Shape {
    heads: usize,
    kv_heads: usize,
    head_dim: usize,
    axis: Axis,
    causal: bool,
    window: Option<i64>,
}

impl Shape {
    fn joint(heads: usize, head_dim: usize, text: usize, grid: Vec<usize>, text_first: bool) -> Shape {
        let picture = Segment::new(if grid.len() == 3 { "video" } else { "image" }, grid);
        let mut segments = vec![picture];
        if text > 0 {
            segments.insert(if text_first { 0 } else { 1 }, Segment::new("text", vec![text]));
        }
        Shape { heads, kv_heads: heads, head_dim, axis: Axis { segments }, causal: false, window: None }
    }

    fn document(self, config: &TrainerConfig) -> Document {
        use BackendName::{FlashAttention2, Flex, Sdpa, TorchFlex, TorchSdpa};
        let family = config.family.as_deref().unwrap_or("the model");
        let pattern = |name: &str, args: &[(&str, i64)]| {
            let args = args.iter().map(|(k, v)| (k.to_string(), ArgValue::Int(*v))).collect();
            MaskContent::Pattern(CodeRef { name: name.into(), args })
        };
        let content = match self.window {
            Some(window) => Some(("Window", pattern("sliding_window", &[("window", window)]))),
            None => self.causal.then(|| ("Causal", pattern("causal", &[]))),
        };
        let layers = content.into_iter().map(|(name, content)| Layer {
            id: 1,
            name: name.into(),
            enabled: true,
            combine: Combine::And,
            heads: None,
            content,
        });
        let half = config.precision.as_deref().is_some_and(|p| p.contains("16") && p.starts_with('f'));
        let settings = Settings {
            kv_heads: self.kv_heads,
            dtype: if half { DType::F16 } else { DType::BF16 },
            backends: vec![Sdpa, FlashAttention2, Flex, TorchSdpa, TorchFlex],
            ..Settings::new(self.heads, self.head_dim)
        };
        Document {
            about: format!(
                "Attention of {family} in the shape of its config.json, as the trainer computes it without a design."
            ),
            layers: layers.collect(),
            ..Document::new(format!("{family} as configured"), Axes::same(self.axis), settings)
        }
    }
}

/// The backend that a value of transformers' setting selects.
fn meaning_of(value: &str) -> Fact {
    match value {
        "sdpa" => Fact::Sdpa,
        "eager" => Fact::Math,
        "flash_attention_2" | "flash_attention_3" => Fact::FlashPackage,
        "flex_attention" => Fact::Flex,
        v => Fact::NotOwn(v.into()),
    }
}

#[cfg(test)]
mod tests {
    use crate::trainers::read::*;

    fn read(text: &str) -> TrainerConfig {
        TrainerConfig::read("config.json", text.as_bytes()).unwrap_or_else(|e| panic!("{}", e.render()))
    }

    fn shape(text: &str) -> String {
        let d = read(text).document().expect("a shape");
        let s = &d.settings;
        assert!(d.validate().is_empty());
        let layers: Vec<_> = d.layers.iter().map(|l| l.name.as_str()).collect();
        format!("{} {}/{}/{} {}", d.axes.q, s.heads, s.kv_heads, s.head_dim, layers.join(",")).trim().to_string()
    }

    #[test]
    fn the_file_that_accelerate_writes_tells_its_ranks() {
        let text = "distributed_type: FSDP\nparallelism_config:\n  parallelism_config_cp_size: 2\n";
        let config = TrainerConfig::read("default_config.yaml", text.as_bytes()).expect("a mapping");
        assert_eq!(config.own_masks(), [OwnMask::Ranks(2)]);
    }

    #[test]
    fn families_have_their_real_shapes() {
        assert_eq!(shape(r#"{"model_family": "flux", "resolution": 1024}"#), "text 512 | image 64x64 24/24/128");
        assert_eq!(shape(r#"{"--model_family": "flux", "resolution": 0.25}"#), "text 512 | image 32x32 24/24/128");
        assert_eq!(
            shape(r#"{"model_family": "wan", "model_flavour": "i2v-14b-2.2-high"}"#),
            "video 21x30x52 40/40/128"
        );
        let big = r#"{"model_family": "wan", "validation_resolution": "1280x720", "validation_num_video_frames": 81}"#;
        assert_eq!(shape(big), "video 21x45x80 40/40/128");
        assert_eq!(shape(r#"{"model_family": "wan", "model_flavour": "ti2v-5b-2.2"}"#), "video 31x22x40 24/24/128");
        assert_eq!(shape(r#"{"model_family": "ltxvideo"}"#), "video 21x16x22 32/32/64");
        assert_eq!(shape(r#"{"model_family": "hunyuanvideo"}"#), "video 33x45x80 | text 256 24/24/128");
        let llama =
            r#"{"model_type": "llama", "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_size": 4096}"#;
        assert_eq!(shape(llama), "tokens 4096 32/8/128 Causal");
        let gemma = r#"{"model_type": "gemma3", "text_config": {"num_attention_heads": 16, "num_key_value_heads": 8,
            "head_dim": 256, "sliding_window": 1024, "max_position_embeddings": 131072}}"#;
        assert_eq!(shape(gemma), "tokens 8192 16/8/256 Window");
        assert_eq!(read(r#"{"model_family": "unheard_of"}"#).document(), None);
        assert_eq!(read(r#"{"model_type": "llama", "num_attention_heads": 0}"#).document(), None);
        assert_eq!(
            read(r#"{"model_type": "x", "num_attention_heads": 3, "num_key_value_heads": 2, "head_dim": 8}"#)
                .document(),
            None
        );
    }

    #[test]
    fn the_last_spelling_counts_and_settings_are_told_in_words() {
        let both = read("\u{feff}{\"attention_mechanism\": \"flex\",\r\n\"--attention_mechanism\": \"cudnn\"}");
        assert_eq!(both.setting.as_deref(), Some("cudnn"));
        assert_eq!(both.meaning().facts[0], Fact::Cudnn);
        let flux = read(r#"{"model_family": "flux", "attention_mechanism": "flex"}"#).meaning().to_string();
        assert!(flux.contains("FlexAttention") && flux.contains("has no effect there"), "{flux}");
        assert!(
            read(r#"{"model_family": "wan"}"#)
                .meaning()
                .to_string()
                .starts_with("not set, which is `kohaku-fa-auto` in SimpleTuner 4.10.1, 2026-10-18: ")
        );
        assert!(read(r#"{"model_type": "llama"}"#).meaning().to_string().starts_with("not set, which is `sdpa`"));
        assert!(read(r#"{"attention_mechanism": "flexx"}"#).meaning().to_string().contains("unknown to Maskloom"));
        assert_eq!(read(r#"{"attention_mechanism": null, "model_family": "wan"}"#).setting, None);
    }

    #[test]
    fn bad_files_are_told_where() {
        let code = |bytes: &[u8]| TrainerConfig::read("c.json", bytes).unwrap_err();
        assert_eq!(code(b"").code, "config-not-json");
        assert_eq!(code(b"[1]").code, "config-not-object");
        let twice = code(b"{\"a\": 1,\r\n\"a\": 2}");
        assert_eq!((twice.code.as_ref(), twice.line_column()), ("config-duplicate-key", Some((2, 1))));
        assert!(TrainerConfig::read("c.json", b"{\"a\": \xff}").is_err());
        let large = format!("{{\"model_family\": \"wan\", \"notes\": \"{}\"}}", "x".repeat(50 << 20));
        assert!(TrainerConfig::read("c.json", large.as_bytes()).unwrap().document().is_some());
    }
}
