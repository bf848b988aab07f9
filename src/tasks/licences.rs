//! The licences of what this program is built from: packages and fonts, with their texts.
//!
//! Invariant: every package of Cargo.lock is named in it. `.ci/licences.py` writes the file. Must not know its callers.

use crate::base::Diagnostic;

const PACKED: &[u8] = include_bytes!("../../assets/licences.txt.gz");
/// The head and the end of a gzip file without a name.
const AROUND: (usize, usize) = (10, 8);

/// The whole text. Errors: this build holds a broken one.
pub fn text() -> Result<String, Diagnostic> {
    let broken = || Diagnostic::error("licences", "the licences of this build cannot be read");
    let inner = PACKED.get(AROUND.0..PACKED.len() - AROUND.1).ok_or_else(broken)?;
    let bytes = miniz_oxide::inflate::decompress_to_vec(inner).map_err(|_| broken())?;
    String::from_utf8(bytes).map_err(|_| broken())
}

/// Names and versions of the packages.
pub fn packages(text: &str) -> Vec<(&str, &str)> {
    let inside = text.split("===== packages =====").nth(1).and_then(|rest| rest.split("\n===== ").next());
    let line = |line: &'_ str| !line.starts_with(' ') && !line.is_empty();
    inside.unwrap_or_default().lines().filter(|l| line(l)).filter_map(|l| l.split_once(' ')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_package_of_the_lock_file_is_named_with_its_licence() {
        let text = text().expect("it unpacks");
        let named = packages(&text);
        let lock = std::fs::read_to_string(maskloom_testing::repository().join("Cargo.lock")).expect("readable");
        let value = |block: &str, key: &str| {
            let line = block.lines().find_map(|l| l.strip_prefix(&format!("{key} = \"")).map(str::to_string));
            line.map(|l| l.trim_end_matches('"').to_string())
        };
        let taken: Vec<(String, String)> = lock
            .split("[[package]]")
            .filter(|block| value(block, "source").is_some())
            .filter_map(|block| Some((value(block, "name")?, value(block, "version")?)))
            .collect();
        assert!(taken.len() > 300, "{}", taken.len());
        let missing: Vec<_> = taken.iter().filter(|(n, v)| !named.contains(&(n, v))).collect();
        assert!(missing.is_empty(), "run `python .ci/licences.py`: {missing:?}");
        for words in ["UBUNTU FONT LICENCE", "SIL OPEN FONT LICENSE", "The Maskloom developers"] {
            assert!(text.to_uppercase().contains(&words.to_uppercase()), "{words}");
        }
    }
}
