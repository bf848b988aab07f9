//! The draft of the gallery: its cards, the typed text, and the finished pictures.
//!
//! Invariant: every card opens something. Must not know how presets are opened, nor how cards are drawn.

use crate::app::action::Action;
use crate::app::opening::Thumbnail;
use crate::base::{BackendName, Diagnostic};
use crate::document::library;
use crate::problem::result::RunReport;
use crate::problem::verdict::Ran;
use crate::tasks::ratios;
use crate::tasks::recorded::{self, Recorded};
use crate::words::{Language, Words};
use egui::TextureHandle;
use std::collections::HashMap;
use std::path::PathBuf;

/// The groups of presets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Group {
    Language,
    Image,
    Video,
    Encoders,
    Patterns,
    /// Files of the user's own.
    Yours,
}

impl Group {
    /// In the order on the screen.
    pub(crate) const ALL: [Group; 6] =
        [Group::Language, Group::Image, Group::Video, Group::Encoders, Group::Patterns, Group::Yours];

    /// The text on its heading.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Group::Language => "gallery-language",
            Group::Image => "gallery-images",
            Group::Video => "gallery-video",
            Group::Encoders => "gallery-encoders",
            Group::Patterns => "gallery-patterns",
            Group::Yours => "gallery-yours",
        }
    }

    /// Words of a preset's name that put it here; what none has is a pattern.
    fn words(self) -> &'static [&'static str] {
        match self {
            Group::Language => &[
                "gemma",
                "llama",
                "mistral",
                "gpt_oss",
                "qwen3",
                "deepseek",
                "streaming",
                "yarn",
                "packed_doc",
                "packed_prefix",
                "shared_prefix",
                "speculative",
                "tree_decoding",
                "prefix_lm",
                "block_diffusion",
            ],
            Group::Image => &[
                "flux",
                "sd3",
                "sdxl",
                "qwen_image",
                "image",
                "swin",
                "natten_2d",
                "natten_morton",
                "natten_tiled",
                "var_",
            ],
            Group::Video => &["wan", "hunyuan", "ltx", "svg"],
            Group::Encoders => &["bigbird", "longformer", "modernbert", "t5", "graphormer"],
            Group::Patterns | Group::Yours => &[],
        }
    }

    fn of(preset: &str) -> Group {
        // a vision model's cross-attention is a language model's
        let has = |group: &Group| group.words().iter().any(|word| preset.contains(word));
        let order = [Group::Video, Group::Encoders, Group::Language, Group::Image];
        order.into_iter().find(has).unwrap_or(Group::Patterns)
    }
}

/// The draft.
#[derive(Clone)]
pub(crate) struct GalleryDialog {
    pub filter: String,
    /// None: all of them.
    pub group: Option<Group>,
    pub cards: Vec<Card>,
    pub drawn: HashMap<String, Thumbnail>,
    pub textures: HashMap<String, TextureHandle>,
    /// Why some have no picture.
    pub failed: HashMap<String, String>,
    /// Where the user's own presets belong, once it is known.
    pub folder: Option<PathBuf>,
    /// Typing filters from the start.
    pub focused: bool,
}

impl std::fmt::Debug for GalleryDialog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "GalleryDialog({:?})", self.filter)
    }
}

/// A preset or a document of the user's own.
#[derive(Clone, Debug)]
pub(crate) struct Card {
    /// A preset's name, or a path.
    pub name: String,
    pub file: Option<PathBuf>,
    pub title: String,
    pub about: String,
    pub axes: String,
    pub group: Group,
    /// Its recorded runs, one a card.
    pub recorded: Vec<&'static Recorded>,
    /// `2.1x PyTorch 2.11`: of the first of them, if it is clear.
    pub times: Option<Times>,
}

impl GalleryDialog {
    /// All cards; gives the presets and documents whose pictures are to be drawn, too.
    pub(crate) fn new(recent: &[PathBuf]) -> (Self, Vec<String>, Vec<PathBuf>) {
        let card = |preset: &library::Preset| {
            let document = preset.document().ok()?;
            let axes = document.axes.q.to_string();
            let recorded = recorded::of(&document);
            let times = recorded.first().and_then(|run| badge(&run.report));
            let (name, group) = (preset.name.to_string(), Group::of(preset.name));
            let (title, about) = (document.name, document.about);
            Some(Card { name, file: None, title, about, axes, group, recorded, times })
        };
        let mut cards: Vec<Card> = library::presets().iter().filter_map(card).collect();
        cards.sort_by_key(|card| card.group);
        let presets = cards.iter().map(|c| c.name.clone()).collect();
        let own = own_documents(recent);
        cards.extend(own.iter().cloned().map(Card::of_file));
        let (drawn, textures, failed) = (HashMap::new(), HashMap::new(), HashMap::new());
        let made =
            Self { filter: String::new(), group: None, cards, drawn, textures, failed, folder: None, focused: false };
        (made, presets, own)
    }

    /// The user's own presets have been found: also one with a built-in one's name has a card.
    pub(crate) fn add(&mut self, folder: Option<PathBuf>, own: Vec<PathBuf>) {
        self.folder = folder;
        for path in own {
            if self.cards.iter().all(|card| card.file.as_ref() != Some(&path)) {
                self.cards.push(Card::of_file(path));
            }
        }
    }

    /// A picture has arrived, or the reason why there is none.
    pub(crate) fn put(&mut self, preset: String, picture: Result<Thumbnail, Diagnostic>) {
        match picture {
            Ok(picture) => drop(self.drawn.insert(preset, picture)),
            Err(why) => drop(self.failed.insert(preset, why.message)),
        }
    }

    /// How many pictures have come, and how many could not be drawn.
    #[cfg(test)]
    pub(crate) fn pictures(&self) -> (usize, usize) {
        (self.drawn.len() + self.textures.len(), self.failed.len())
    }

    /// Cards that have the words that were typed; groups by their names in this language and in English.
    pub(crate) fn matching(&self, said: &'static Words) -> Vec<Card> {
        let wanted = self.filter.to_lowercase();
        let has = |card: &&Card| {
            let group = [said, Words::of(Language::English)].map(|said| said.text(card.group.title()));
            let told = card.told(said).unwrap_or_default();
            let texts = [&*card.name, &card.title, &card.about, told, &card.axes, group[0], group[1]];
            let texts = texts.map(str::to_lowercase);
            let here = self.group.is_none_or(|group| group == card.group);
            here && wanted.split_whitespace().all(|word| texts.iter().any(|text| text.contains(word)))
        };
        self.cards.iter().filter(has).cloned().collect()
    }

    /// The one of these cards that Enter opens: whose name or title was typed, else which begins so, else the first.
    pub(crate) fn meant<'a>(&self, cards: &'a [Card]) -> Option<&'a Card> {
        let typed = self.filter.trim().to_lowercase();
        let is = |card: &&Card| [&card.name, &card.title].into_iter().any(|name| name.to_lowercase() == typed);
        let begins = |card: &&Card| [&card.name, &card.title].into_iter().any(|n| n.to_lowercase().starts_with(&typed));
        cards.iter().find(is).or_else(|| cards.iter().find(begins)).or(cards.first())
    }
}

/// How often a run goes into its baseline's time: `2.1x PyTorch 2.11`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Times {
    pub times: f64,
    pub base: Ran,
}

impl Times {
    /// Whether it may be praised.
    pub(crate) fn is_faster(&self) -> bool {
        self.times > 1.05
    }

    /// In a language.
    pub(crate) fn told(&self, said: &'static Words) -> String {
        let base = ratios::ran_shortest(said, &self.base);
        let digits = if self.times < 0.1 { 2 } else { 1 };
        said.with("ratio-of", &[("ratio", format!("{:.digits$}", self.times).into()), ("base", base.into())])
    }
}

/// If the difference from its baseline is clear, also where the baseline is the faster one.
fn badge(run: &RunReport) -> Option<Times> {
    let (versus, base) = run.versus(BackendName::Flex).zip(run.baseline())?;
    versus.is_clear().then_some(Times { times: versus.ratio, base: base.ran })
}

/// Documents among the recently opened files.
fn own_documents(recent: &[PathBuf]) -> Vec<PathBuf> {
    let is_document = |path: &&PathBuf| path.extension().is_some_and(|e| e.eq_ignore_ascii_case("json"));
    let config = |path: &&PathBuf| path.file_name().is_some_and(|name| name == "config.json");
    recent.iter().filter(|path| is_document(path) && !config(path)).cloned().collect()
}

impl Card {
    /// What a preset is, in a language that is not its document's.
    pub(crate) fn told(&self, said: &'static Words) -> Option<&'static str> {
        said.preset(&self.name).filter(|_| self.file.is_none())
    }

    fn of_file(path: PathBuf) -> Card {
        let stem = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let title = stem.trim_end_matches(".maskloom").to_string();
        let folder = path.parent().map(|folder| folder.display().to_string()).unwrap_or_default();
        let (name, group) = (path.display().to_string(), Group::Yours);
        let (about, recorded) = (name.clone(), Vec::new());
        Card { name, file: Some(path), title, about, axes: folder, group, recorded, times: None }
    }

    /// The effect of a click.
    pub(crate) fn opens(&self) -> Action {
        match &self.file {
            Some(path) => Action::Open(path.clone()),
            None => Action::OpenPreset(self.name.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enter_opens_what_was_named() {
        let opened = |typed: &str| {
            let mut dialog = GalleryDialog::new(&[]).0;
            dialog.filter = typed.to_string();
            let cards = dialog.matching(Words::of(Language::English));
            dialog.meant(&cards).map(|card| card.name.clone())
        };
        // many are causal, and the first one in the list is another
        assert_eq!(opened("causal").as_deref(), Some("causal"));
        assert_eq!(opened("Sliding_Window ").as_deref(), Some("sliding_window"));
        assert_eq!(opened("gemma-2").as_deref(), Some("gemma2_softcap_window"));
        assert_eq!(opened("no such preset"), None);
        assert!(opened("").is_some());
    }

    #[test]
    fn every_group_has_presets_and_each_is_where_one_looks_for_it() {
        for group in Group::ALL.into_iter().filter(|group| *group != Yours) {
            assert!(library::presets().iter().any(|p| Group::of(p.name) == group), "{group:?}");
        }
        let of = [
            "flux_joint",
            "wan_radial",
            "svg_heads",
            "qwen3_30b_a3b",
            "qwen_image_joint",
            "llama32_vision_cross",
            "var_512",
            "alibi",
        ];
        let groups = of.map(Group::of);
        use Group::*;
        assert_eq!(groups, [Image, Video, Video, Language, Image, Language, Image, Patterns]);
    }

    #[test]
    fn a_badge_names_what_it_is_compared_with_and_a_doubtful_ratio_is_none() {
        let (dialog, ..) = GalleryDialog::new(&[]);
        let english = Words::of(Language::English);
        let times = |name: &str| {
            let card = dialog.cards.iter().find(|card| card.name == name).unwrap();
            card.times.as_ref().map(|times| times.told(english))
        };
        assert_eq!(times("alibi").as_deref(), Some("1.4x PyTorch 2.11"));
        // the fastest of the user's own is not PyTorch's
        assert_eq!(times("causal").as_deref(), Some("1.1x cudnn:flex 1.32"));
        // nothing of PyTorch ran: whose kernel it was is said
        let document = library::preset("wan_natten_3d").unwrap().document().unwrap();
        let mut run = recorded::of(&document).first().expect("recorded").report.clone();
        run.backends.retain(|report| [BackendName::Flex, BackendName::Sdpa].contains(&report.backend));
        assert!(badge(&run).unwrap().told(english).ends_with("x our dense-mask"));
        // PyTorch was faster: that is told as well, and not praised
        assert_eq!(times("graphormer").as_deref(), Some("0.4x PyTorch 2.11"));
        assert_eq!(times("deepseek_mla_rope").as_deref(), Some("0.03x PyTorch 2.11"));
        let praised = |card: &&Card| card.times.as_ref().is_some_and(Times::is_faster);
        assert!(!dialog.cards.iter().filter(praised).any(|card| card.name == "graphormer"));
        assert!(dialog.cards.iter().filter(|card| card.times.is_some()).count() > 70, "of the recorded presets");
        let badge = |name: &str| times(name).is_none_or(|times| times.contains("x PyTorch 2.11"));
        let beside = |card: &&Card| {
            card.recorded.first().and_then(|run| run.summary()).is_some_and(|line| line.contains("x PyTorch"))
        };
        assert!(dialog.cards.iter().filter(beside).count() > 10);
        assert!(dialog.cards.iter().filter(beside).all(|card| badge(&card.name)));
    }

    #[test]
    fn a_preset_of_ones_own_is_there_beside_the_built_in_one_of_its_name() {
        let recent = PathBuf::from("/presets/causal.json");
        let (mut dialog, ..) = GalleryDialog::new(std::slice::from_ref(&recent));
        dialog.add(None, vec![recent, PathBuf::from("/presets/mine.json")]);
        dialog.filter = "/presets".into();
        let found = dialog.matching(Words::of(Language::English));
        assert_eq!(found.iter().map(|card| &*card.title).collect::<Vec<_>>(), ["causal", "mine"]);
        assert!(found.iter().all(|card| matches!(card.opens(), Action::Open(_))));
        assert!(dialog.cards.iter().any(|card| card.name == "causal" && card.file.is_none()));
    }

    #[test]
    fn documents_of_ones_own_have_cards_with_pictures_and_a_configuration_has_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.maskloom.json");
        let document = library::presets()[0].document().expect("loads");
        std::fs::write(&path, crate::document::file::to_json(&document)).unwrap();
        let recent = [path.clone(), folder.path().join("config.json"), folder.path().join("mods.py")];
        assert_eq!(own_documents(&recent), std::slice::from_ref(&path));
        let card = Card::of_file(path.clone());
        assert_eq!((card.title.as_str(), card.group), ("mine", Group::Yours));
        assert!(matches!(card.opens(), Action::Open(opened) if opened == path));
        let drawn = app::opening::thumbnail_of_file(&path, 16).expect("is drawn");
        assert_eq!(drawn.size, [16, 16]);
        assert!(drawn.pixels.contains(&0.0) && drawn.pixels.iter().any(|share| *share > 0.0));
    }
}
