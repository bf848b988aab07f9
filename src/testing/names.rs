//! The names of an enum's variants, as serde knows them: tests compare them with the lists that programs show.
//!
//! Invariant: a variant that a list forgets is found. Must not know any enum.

/// The names of all variants, in their order: serde lists them where it refuses a name.
pub fn variants<T: serde::de::DeserializeOwned>() -> Vec<String> {
    let why = serde_json::from_str::<T>("\"?\"").err().expect("no variant has this name").to_string();
    why.split('`').skip(3).step_by(2).map(String::from).collect()
}

#[cfg(test)]
mod tests {
    use super::variants;

    #[derive(serde::Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Way {
        And,
        #[serde(rename = "or")]
        Either,
        AndNot,
    }

    #[test]
    fn all_variants_have_the_names_that_are_written() {
        assert_eq!(variants::<Way>(), ["and", "or", "and_not"]);
        let ways = [Way::And, Way::Either, Way::AndNot];
        assert_eq!(variants::<Way>().len(), ways.len());
    }
}
