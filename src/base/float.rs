//! Floats in JSON that may be infinite or NaN: `"inf"`, `"-inf"`, `"nan"`, because JSON has no such numbers.
//!
//! Invariant: every f64 round-trips (all NaNs as one NaN). Must not know the number's meaning.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Wire {
    Number(f64),
    Word(Word),
    Null,
}

#[derive(Serialize, Deserialize)]
enum Word {
    #[serde(rename = "inf")]
    Infinity,
    #[serde(rename = "-inf")]
    MinusInfinity,
    #[serde(rename = "nan")]
    NotANumber,
}

/// For `#[serde(with = "crate::base::float")]`.
pub fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
    let word = match *value {
        v if v.is_finite() => return to.serialize_f64(v),
        v if v.is_nan() => Word::NotANumber,
        v if v > 0.0 => Word::Infinity,
        _ => Word::MinusInfinity,
    };
    word.serialize(to)
}

/// For `#[serde(with = "crate::base::float")]`.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(match Wire::deserialize(from)? {
        Wire::Number(v) => v,
        Wire::Word(Word::Infinity) => f64::INFINITY,
        Wire::Word(Word::MinusInfinity) => f64::NEG_INFINITY,
        Wire::Word(Word::NotANumber) | Wire::Null => f64::NAN,
    })
}

/// The same for `Option<f64>`, whose None is null: for `#[serde(default, with = "crate::base::float::option")]`.
pub mod option {
    use super::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(transparent)]
    struct Float(#[serde(with = "super")] f64);

    /// See the module.
    pub fn serialize<S: Serializer>(value: &Option<f64>, to: S) -> Result<S::Ok, S::Error> {
        value.map(Float).serialize(to)
    }

    /// See the module.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
        Ok(Option::<Float>::deserialize(from)?.map(|f| f.0))
    }
}

/// The same for `Vec<f64>`: for `#[serde(with = "crate::base::float::list")]`.
pub mod list {
    use super::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(transparent)]
    struct Float(#[serde(with = "super")] f64);

    /// See the module.
    pub fn serialize<S: Serializer>(values: &[f64], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(values.iter().map(|value| Float(*value)))
    }

    /// See the module.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
        Ok(Vec::<Float>::deserialize(from)?.into_iter().map(|value| value.0).collect())
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Both {
        #[serde(with = "super")]
        must: f64,
        #[serde(default, with = "super::option")]
        may: Option<f64>,
    }

    #[test]
    fn every_float_comes_back() {
        for value in [0.0, -0.1, 1e300, f64::INFINITY, f64::NEG_INFINITY] {
            for may in [None, Some(value)] {
                let both = Both { must: value, may };
                let text = serde_json::to_string(&both).unwrap();
                assert_eq!(serde_json::from_str::<Both>(&text).unwrap(), both, "{text}");
            }
        }
        let text = serde_json::to_string(&Both { must: f64::NAN, may: Some(f64::NAN) }).unwrap();
        assert_eq!(text, r#"{"must":"nan","may":"nan"}"#);
        let back: Both = serde_json::from_str(&text).unwrap();
        assert!(back.must.is_nan() && back.may.unwrap().is_nan());
        assert!(serde_json::from_str::<Both>(r#"{"must": "many"}"#).is_err());
    }
}
