//! The name that was probably meant: the only code that suggests names.
//!
//! Invariant: a suggestion is a likely typing error of the given name, or there is none. Must not know what is named.

/// The name most like `name`, if one is near enough.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // only the last part of a dotted name is likely to be misspelt, and long names are rarely typing errors
    if name.len() > 64 {
        return None;
    }
    // every name of one letter is like every other
    if name.chars().count() < 2 {
        return None;
    }
    let own = Letters::of(name);
    let mut best: Option<(usize, &str)> = None;
    for other in known.filter(|k| *k != name && (2..=64).contains(&k.len())) {
        // most names are told apart by their letters alone
        let least = own.least_distance(&Letters::of(other));
        if least > MOST || best.is_some_and(|(nearer, _)| least >= nearer) {
            continue;
        }
        let edits = distance(name, other);
        if best.is_none_or(|(nearer, _)| edits < nearer) {
            best = Some((edits, other));
        }
    }
    let (edits, best) = best?;
    let last = |text: &str| text.rsplit('.').next().unwrap_or(text).len();
    (edits <= (last(name).max(last(best)) / 3).clamp(1, MOST)).then_some(best)
}

/// Edits of a likely typing error at most.
const MOST: usize = 4;

/// How many letters a word has, and which: a bit each, the same for some.
struct Letters {
    count: usize,
    which: u64,
}

impl Letters {
    fn of(word: &str) -> Letters {
        let which = word.chars().fold(0, |all, c| all | 1 << (c as u32 % 64));
        Letters { count: word.chars().count(), which }
    }

    /// At least so many edits: one exchanges a letter for another.
    fn least_distance(&self, other: &Letters) -> usize {
        let differing = (self.which ^ other.which).count_ones() as usize;
        self.count.abs_diff(other.count).max(differing.div_ceil(2))
    }
}

/// The word that `word` is but for one slip of the fingers: a letter more, less or another one, or two neighbours exchanged.
pub fn one_slip<'a>(word: &str, mut known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known.find(|other| other.len().abs_diff(word.len()) <= 1 && distance(word, other) == 1)
}

/// Edits between two words; swapped neighbours are one edit.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows: [Vec<usize>; 3] = [Vec::new(), (0..=b.len()).collect(), vec![0; b.len() + 1]];
    for i in 1..=a.len() {
        rows[2][0] = i;
        for j in 1..=b.len() {
            let change = usize::from(a[i - 1] != b[j - 1]);
            let mut best = (rows[1][j] + 1).min(rows[2][j - 1] + 1).min(rows[1][j - 1] + change);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[0][j - 2] + 1);
            }
            rows[2][j] = best;
        }
        let [oldest, middle, newest] = rows;
        rows = [middle, newest, if oldest.len() == b.len() + 1 { oldest } else { vec![0; b.len() + 1] }];
    }
    rows[1][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_seen_and_other_words_are_not() {
        let known = ["sliding_window", "causal", "torch.where"];
        let near = |name| nearest(name, known.iter().copied());
        assert_eq!(near("slidin_window"), Some("sliding_window"));
        assert_eq!(near("slidingwindow"), Some("sliding_window"));
        assert_eq!(near("cuasal"), Some("causal"));
        assert_eq!(near("torch.wheer"), Some("torch.where"));
        assert_eq!((near("nothere"), near("c"), near("causal")), (None, None, None));
        assert_eq!(near(&"x".repeat(65)), None);
        // as comparing all with all would find it
        let mut rng = base::rng::Rng::new(7);
        let mut word =
            || (0..2 + rng.below(6)).map(|_| ['a', 'b', 'é', '_', '.', '1'][rng.below(6)]).collect::<String>();
        for _ in 0..300 {
            let (name, all) = (word(), [word(), word(), word(), word()]);
            let last = |text: &str| text.rsplit('.').next().unwrap_or(text).len();
            let first = all.iter().filter(|k| **k != name).min_by_key(|k| distance(&name, k));
            let limit = |k: &&String| distance(&name, k) <= (last(&name).max(last(k)) / 3).clamp(1, 4);
            assert_eq!(
                nearest(&name, all.iter().map(String::as_str)),
                first.filter(limit).map(String::as_str),
                "{name} {all:?}"
            );
        }
        let slip = |word| one_slip(word, known.iter().copied());
        assert_eq!((slip("cuasal"), slip("causall"), slip("casal")), (Some("causal"), Some("causal"), Some("causal")));
        assert_eq!((slip("causal"), slip("cuaslal"), slip("casual_")), (None, None, None));
    }
}
