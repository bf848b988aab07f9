//! Whether a text contains a known message: by its words, so that other versions' wording, quotes and line breaks do not matter.
//!
//! Invariant: the words of a piece are found in order and close together; `..` joins pieces in order, `&` parts in any order.
//! Must not know entries.

use std::collections::HashMap;

/// A text as words, with its lower-case form for scripts that do not divide words.
pub(super) struct Text {
    plain: String,
    words: Vec<String>,
    /// Where each word occurs.
    places: HashMap<String, Vec<usize>>,
}

/// Words between two words of a piece that may be missing in the pattern.
const GAP: usize = 2;
/// Words between two pieces or parts.
const REACH: usize = 400;
/// Different words of a text that are looked at for slips.
const MENDED: usize = 400;

impl Text {
    pub(super) fn new(text: &str) -> Text {
        Text::of(plain(text), words(text))
    }

    /// The same with each word that `mend` knows better.
    pub(super) fn mended(text: &str, mend: impl Fn(&str) -> Option<String>) -> Text {
        let mut known: HashMap<String, String> = HashMap::new();
        let mut better = |word: String| {
            // a page of a megabyte is no typing error
            if known.len() < MENDED || known.contains_key(&word) {
                known.entry(word).or_insert_with_key(|word| mend(word).unwrap_or_else(|| word.clone())).clone()
            } else {
                word
            }
        };
        // a mended word may be two by its usual name
        let named = |word: String| if SAME.iter().any(|(from, _)| *from == word) { words(&word) } else { vec![word] };
        let better = words(text).into_iter().flat_map(|word| named(better(word))).collect();
        Text::of(plain(text), better)
    }

    fn of(plain: String, words: Vec<String>) -> Text {
        let mut places: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, word) in words.iter().enumerate() {
            places.entry(word.clone()).or_default().push(at);
        }
        Text { plain, words, places }
    }

    /// Whether the pattern's words are in the text.
    pub(super) fn has(&self, pattern: &str) -> bool {
        if !pattern.is_ascii() {
            let pattern = plain(pattern);
            return pattern.split('&').flat_map(|part| part.split("..")).all(|part| self.plain.contains(part.trim()));
        }
        let mut parts = pattern.split(" & ");
        let Some(first) = parts.next() else { return false };
        let rest: Vec<Vec<usize>> = parts.map(|part| self.all(part)).collect();
        if rest.iter().any(Vec::is_empty) {
            return false;
        }
        let mut from = 0;
        while let Some((start, end)) = self.part(first, from) {
            let near = |at: usize| at + REACH >= start && at <= end + REACH;
            if rest.iter().all(|places| places.iter().any(|at| near(*at))) {
                return true;
            }
            from = start + 1;
        }
        false
    }

    /// Every place of a part.
    fn all(&self, part: &str) -> Vec<usize> {
        let (mut found, mut from) = (Vec::new(), 0);
        while let Some((start, _)) = self.part(part, from) {
            found.push(start);
            from = start + 1;
        }
        found
    }

    /// The first place of pieces in order, from a word on: its first word and the word behind its last.
    fn part(&self, part: &str, from: usize) -> Option<(usize, usize)> {
        let pieces: Vec<Vec<String>> = part.split("..").map(words).filter(|p| !p.is_empty()).collect();
        let (first, rest) = pieces.split_first()?;
        let mut start = from;
        loop {
            let (begin, mut end) = self.piece(first, start, usize::MAX)?;
            let fits = rest.iter().all(|piece| match self.piece(piece, end, end + REACH) {
                Some((_, behind)) => {
                    end = behind;
                    true
                }
                None => false,
            });
            if fits {
                return Some((begin, end));
            }
            start = begin + 1;
        }
    }

    /// The first place of words in order, each at most `GAP` words behind the one before it.
    fn piece(&self, piece: &[String], from: usize, to: usize) -> Option<(usize, usize)> {
        let (first, rest) = piece.split_first()?;
        let starts: Vec<usize> = if first == "#" {
            (from..self.words.len()).filter(|at| same(&self.words[*at], first)).collect()
        } else {
            self.places.get(first)?.iter().copied().filter(|at| *at >= from).collect()
        };
        starts.into_iter().take_while(|at| *at < to).find_map(|start| {
            let mut at = start + 1;
            for word in rest {
                let end = (at + GAP + 1).min(self.words.len());
                at = (at..end).find(|i| same(&self.words[*i], word))? + 1;
            }
            Some((start, at))
        })
    }
}

/// Whether a word of the text is the pattern's; `#` is any number.
fn same(word: &str, wanted: &str) -> bool {
    if wanted == "#" { word.starts_with(|c: char| c.is_ascii_digit()) } else { word == wanted }
}

/// Lower case, quotes made alike, white space joined.
pub(super) fn plain(text: &str) -> String {
    let text = uncoloured(text).to_lowercase().replace(['’', '`', '"', '“', '”', '‘'], "'");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The words of a text, in a common form: lower case, without endings, without words that say nothing, synonyms by one
/// name. `#` stays.
pub(super) fn words(text: &str) -> Vec<String> {
    let lower = uncoloured(text).to_lowercase().replace('’', "'");
    let lower = lower.replace("head size", "head dim").replace("head_size", "head dim");
    let lower = lower.replace("n't ", " not ").replace("headdim", "head dim").replace("data type", "dtype");
    let lower = divided(&lower);
    let split = lower.split(|c: char| !(c.is_alphanumeric() || c == '#'));
    let known = split.filter(|w| !w.is_empty() && !EMPTY.contains(w));
    known
        .flat_map(|word| match SAME.iter().find(|(from, _)| *from == word) {
            Some((_, to)) => to.split(' ').map(stem).collect(),
            None => vec![stem(word)],
        })
        .collect()
}

/// The text without the folders of its paths, `x.so` for `/home/me/.cache/hub/x.so`: where a file lies is not what the message says.
pub(super) fn without_folders(text: &str) -> String {
    let text = uncoloured(text);
    let ends = |c: char| !c.is_ascii() || c.is_whitespace() || "'\"`()[]{}<>,;=|".contains(c);
    let name = |piece: &'_ str| piece.rfind(['/', '\\']).filter(|_| is_path(piece)).map_or(0, |at| at + 1);
    text.split_inclusive(ends).map(|piece| &piece[name(piece)..]).collect()
}

/// Whether a word is a path from the root, a drive, the home folder or the current one.
fn is_path(word: &str) -> bool {
    let drive = |rest: &str| rest.starts_with(":\\") || rest.starts_with(":/");
    let named = word.starts_with(|c: char| c.is_ascii_alphabetic()) && word.get(1..).is_some_and(drive);
    named || ["/", "~/", "./", "../"].iter().any(|start| word.starts_with(start))
}

/// The text without a terminal's colours, `ESC [ 3 1 m`, whose letters would stand against the first word.
fn uncoloured(text: &str) -> std::borrow::Cow<'_, str> {
    if !text.contains('\x1b') {
        return text.into();
    }
    let mut parts = text.split('\x1b');
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        out.push(' ');
        let code =
            part.strip_prefix('[').map(|p| p.trim_start_matches(|c: char| c.is_ascii_digit() || ";?".contains(c)));
        out.push_str(code.map_or(part, |rest| rest.get(1..).unwrap_or_default()));
    }
    out.into()
}

/// The text with a space wherever writing without spaces, such as Chinese, stands against a message's words.
fn divided(text: &str) -> String {
    let spaceless = |c: char| matches!(u32::from(c), 0x2e80..=0x9fff | 0xf900..=0xfaff | 0xff00..=0xffef);
    let mut out = String::with_capacity(text.len());
    let mut before = false;
    for c in text.chars() {
        if spaceless(c) != before {
            out.push(' ');
            before = !before;
        }
        out.push(c);
    }
    out
}

/// Words whose absence or presence changes no message.
const EMPTY: [&str; 21] = [
    "the", "a", "an", "is", "are", "was", "were", "be", "been", "to", "of", "that", "it", "its", "has", "have", "can",
    "could", "do", "does", "by",
];

/// Words that messages and their readers use for the same thing.
const SAME: [(&str, &str); 34] = [
    ("q", "query"),
    ("k", "key"),
    ("v", "value"),
    ("queries", "query"),
    ("attn", "attention"),
    ("flashattention", "flash attention"),
    ("flashattn", "flash attention"),
    ("flashattention2", "flash attention 2"),
    ("flashattention3", "flash attention 3"),
    ("flexattention", "flex attention"),
    ("sageattention", "sage attention"),
    ("sageattn", "sage attention"),
    ("blockmask", "block mask"),
    ("fa2", "flash attention 2"),
    ("fa3", "flash attention 3"),
    ("fa4", "flash attention 4"),
    ("flash4", "flash attention 4"),
    ("dimension", "dim"),
    ("dimensions", "dim"),
    ("divisible", "multiple"),
    ("unsupported", "not support"),
    ("refuses", "not support"),
    ("refused", "not support"),
    ("rejects", "not support"),
    ("unable", "not"),
    ("cannot", "not"),
    ("no", "not"),
    ("lacks", "not"),
    ("without", "not"),
    ("invalid", "not valid"),
    ("incompatible", "not compatible"),
    ("oom", "out memory"),
    ("cards", "gpu"),
    ("card", "gpu"),
];

/// Words that stand for others.
pub(super) fn synonyms() -> impl Iterator<Item = &'static str> {
    SAME.iter().map(|(from, _)| *from)
}

/// A word without the endings of plural and verb.
fn stem(word: &str) -> String {
    let bare = |end: &str, least: usize| word.strip_suffix(end).filter(|rest| rest.len() >= least);
    let cut = bare("ing", 4).or(bare("ed", 4)).or(bare("es", 5)).or(bare("s", 4)).unwrap_or(word);
    // "matches" and "match", "sizes" and "size"
    cut.strip_suffix('e').filter(|rest| rest.len() >= 4).unwrap_or(cut).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, pattern: &str, want: bool) {
        assert_eq!(Text::new(text).has(pattern), want, "{text} / {pattern}");
    }

    #[test]
    fn wording_and_quotes_do_not_matter_but_the_words_do() {
        let said = "RuntimeError: The `attn_mask` argument isn't supported\n by flash-attn 2";
        check(said, "attn_mask..supported", true);
        check("attn_mask is not supported for", "attn mask not supported", true);
        check("the mask of this attention", "attn mask not supported", false);
        check("one two three four five six", "one six", false);
        check("multiple of 128", "multiple of 8", false);
        check("wants libcudart.so.12 here", "libcudart.so.#", true);
        check("size 128, which must be a multiple of 256", "which must be a multiple of # & size #", true);
        check("训练始终未切换到该后端", "切换到 & 未", true);
        check("运行时报错No module named 'triton'，怎么办", "no module named triton", true);
        check("使用flash-attn时attn_mask不受支持：attn_mask is not supported", "attn mask not supported", true);
        check("\u{1b}[31mheaddim should be in [64, 96, 128].\u{1b}[0m", "headdim should be in", true);
        check("\u{1b}[1;31mé", "1 31m", false);
        check("", "x", false);
        check("x", "", false);
    }

    /// Names of files stay, and what only looks like a path.
    #[test]
    fn folders_are_no_part_of_a_message() {
        for (text, want) in [
            ("Kernel at /home/me/.cache/hub/x does not have build", "Kernel at x does not have build"),
            ("File \"C:\\a\\sageattention\\core.py\", line 82", "File \"core.py\", line 82"),
            ("/x/flash_attn_2_cuda.so: undefined symbol", "flash_attn_2_cuda.so: undefined symbol"),
            ("错误在~/.triton/cache/a.json中", "错误在a.json中"),
            ("CC=/usr/bin/gcc-12 ./run", "CC=gcc-12 run"),
            ("\u{1b}[31m/home/me/.cache/x\u{1b}[0m", " x "),
            ("kernels-community/flash-attn2 at https://x.y/z", "kernels-community/flash-attn2 at https://x.y/z"),
            ("q/k/v must be greater than 0 / key", "q/k/v must be greater than 0  key"),
            ("", ""),
        ] {
            assert_eq!(without_folders(text), want);
        }
    }

    /// A page of a megabyte ends, whatever repeats in it.
    #[test]
    fn a_large_page_is_read() {
        let page = "attn mask of a query and a key in a model ".repeat(20_000);
        check(&page, "attn..mask..never & query", false);
        check(&page, "mask & never", false);
        check(&page, "mask & model", true);
    }
}
