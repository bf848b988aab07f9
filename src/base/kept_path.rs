//! Paths in files of ours: as text, or as the system's own bytes where they are no text.
//!
//! Invariant: every path comes back as it was. Must not know files. serde's own way refuses a name that is not UTF-8, and then the
//! whole object that has it is not written: `#[serde(with = "base::kept_path")]` is for each field that is kept.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ffi::OsString;
use std::path::PathBuf;

/// A path as it is written.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Written {
    /// Most are text.
    Text(String),
    /// The bytes, with the name of the system that they are for.
    Own(OsString),
}

/// One path, none or several.
pub trait Paths: Sized {
    /// As they are written.
    type Written: Serialize + DeserializeOwned;
    /// For a file.
    fn written(&self) -> Self::Written;
    /// Of a file.
    fn read(written: Self::Written) -> Self;
}

impl Paths for PathBuf {
    type Written = Written;

    fn written(&self) -> Written {
        self.to_str().map_or_else(|| Written::Own(self.clone().into()), |text| Written::Text(text.into()))
    }

    fn read(written: Written) -> PathBuf {
        match written {
            Written::Text(text) => text.into(),
            Written::Own(bytes) => bytes.into(),
        }
    }
}

impl Paths for Option<PathBuf> {
    type Written = Option<Written>;

    fn written(&self) -> Option<Written> {
        self.as_ref().map(Paths::written)
    }

    fn read(written: Option<Written>) -> Self {
        written.map(Paths::read)
    }
}

impl Paths for Vec<PathBuf> {
    type Written = Vec<Written>;

    fn written(&self) -> Vec<Written> {
        self.iter().map(Paths::written).collect()
    }

    fn read(written: Vec<Written>) -> Self {
        written.into_iter().map(Paths::read).collect()
    }
}

/// For serde.
///
/// # Errors
/// Those of the writer.
pub fn serialize<T: Paths, S: Serializer>(paths: &T, to: S) -> Result<S::Ok, S::Error> {
    paths.written().serialize(to)
}

/// For serde.
///
/// # Errors
/// It is no path, or one of another system.
pub fn deserialize<'a, T: Paths, D: Deserializer<'a>>(from: D) -> Result<T, D::Error> {
    T::Written::deserialize(from).map(T::read)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Kept {
        #[serde(with = "super")]
        one: PathBuf,
        #[serde(with = "super")]
        perhaps: Option<PathBuf>,
        #[serde(with = "super")]
        all: Vec<PathBuf>,
    }

    #[test]
    fn a_name_that_is_no_text_comes_back_and_text_stays_text() {
        let odd = || PathBuf::from(OsString::from_vec(b"/home/caf\xe9.json".to_vec()));
        assert!(serde_json::to_vec(&odd()).is_err(), "serde's own way");
        let odd = Kept { one: odd(), perhaps: Some(odd()), all: vec!["a".into(), odd()] };
        assert_eq!(serde_json::from_slice::<Kept>(&serde_json::to_vec(&odd).unwrap()).unwrap(), odd);
        let plain = Kept { one: "/a".into(), perhaps: None, all: vec!["b".into()] };
        assert_eq!(serde_json::to_string(&plain).unwrap(), r#"{"one":"/a","perhaps":null,"all":["b"]}"#);
        assert_eq!(serde_json::from_str::<Kept>(r#"{"one":"/a","perhaps":null,"all":["b"]}"#).unwrap(), plain);
    }
}
