//! Further data of the open capture: the texts of its tokens, and its tensors.
//!
//! Invariant: the data belong to one call of one file, which it names; texts are shown only on a document with that
//! call's lengths. Must not know how captures are read.

use super::canvas::Texts;
use super::view::FileInputs;
use crate::base::{DType, Layout, Lengths};
use crate::document::model::Settings;
use crate::quality::capture::{Call, Capture};
use crate::quality::profile::Grid;
use std::path::{Path, PathBuf};

/// Texts of tokens: the index of the first, and one for each.
type Owned = Option<(usize, Vec<String>)>;

/// A call of the open capture.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Captured {
    pub path: PathBuf,
    /// The call's key.
    pub call: String,
    lengths: [usize; 2],
    grid: Option<Grid>,
    /// For queries and for keys.
    texts: [Owned; 2],
    /// All tensors of the file: name, element type, shape.
    pub tensors: Vec<(String, DType, Vec<usize>)>,
}

impl Captured {
    /// A capture's data of a call.
    pub(crate) fn new(path: &Path, capture: &Capture, call: &Call) -> Captured {
        let texts = capture.tokens(call).map(|texts| texts.map(|(start, text)| (start, text.to_vec())));
        let lengths = [call.info.q_len, call.info.kv_len];
        let grid = capture.grid();
        Captured { path: path.into(), call: call.key.clone(), lengths, grid, texts, tensors: capture.tensors() }
    }

    /// The texts of the queries and keys of a document with these lengths.
    pub(crate) fn texts(&self, lengths: Lengths) -> [Option<Texts<'_>>; 2] {
        let fits = self.lengths == [lengths.q_len, lengths.kv_len];
        let [q, kv] = &self.texts;
        [q, kv].map(|texts| {
            let (start, text) = texts.as_ref().filter(|_| fits)?;
            Some(Texts { start: *start, text })
        })
    }

    /// The grid of the keys of a document with these lengths.
    pub(crate) fn grid(&self, lengths: Lengths) -> Option<Grid> {
        self.grid.filter(|grid| self.lengths == [lengths.q_len, lengths.kv_len] && grid.tokens().end <= lengths.kv_len)
    }

    /// The call's q, k and v as inputs of runs of a document of these sizes, if the file has all three. A capture may hold some of the
    /// heads alone.
    pub(crate) fn inputs(&self, settings: &Settings, lengths: Lengths) -> Option<FileInputs> {
        let names = ["q", "k", "v"].map(|which| format!("{}.{which}", self.call));
        let of_keys = [settings.kv_heads, lengths.kv_len];
        let wanted = [
            ([settings.heads, lengths.q_len], settings.head_dim),
            (of_keys, settings.head_dim),
            (of_keys, settings.head_dim_v.unwrap_or(settings.head_dim)),
        ];
        let has = |name: &String, ([heads, len], dim): ([usize; 2], usize)| {
            let shape = [settings.batch, heads, len, dim];
            self.tensors.iter().any(|(known, _, there)| known == name && there[..] == shape)
        };
        let fits = names.iter().zip(wanted).all(|(name, shape)| has(name, shape));
        let path = self.path.to_str()?.to_string();
        fits.then_some(FileInputs { path, names, layout: Layout::Bhsd, used: true })
    }

    /// Tensors that an argument of a document may be: of the shape that it has now, or every extent one of the document's.
    pub(crate) fn fitting<'a>(
        &'a self,
        now: Option<&[usize]>,
        settings: &Settings,
        lengths: Lengths,
    ) -> Vec<&'a (String, DType, Vec<usize>)> {
        let extents = [
            1,
            settings.batch,
            settings.heads,
            settings.kv_heads,
            lengths.q_len,
            lengths.kv_len,
            settings.head_dim,
            lengths.q_len.div_ceil(settings.block_size.q),
            lengths.kv_len.div_ceil(settings.block_size.kv),
        ];
        let fits = |(_, _, shape): &&(String, DType, Vec<usize>)| {
            now == Some(&shape[..]) || !shape.is_empty() && shape.iter().all(|n| extents.contains(n))
        };
        self.tensors.iter().filter(fits).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_64_tokens(tensors: Vec<(String, DType, Vec<usize>)>) -> Captured {
        let (path, call) = ("f".into(), "a".into());
        Captured { path, call, lengths: [64, 64], grid: None, texts: [None, None], tensors }
    }

    #[test]
    fn tensors_of_the_document_s_extents_or_of_the_argument_s_shape_fit() {
        let tensor = |name: &str, shape: &[usize]| (name.to_string(), DType::F32, shape.to_vec());
        let tensors =
            vec![tensor("bias", &[4, 64, 64]), tensor("ids", &[64]), tensor("odd", &[4, 7]), tensor("x", &[])];
        let captured = of_64_tokens(tensors);
        let lengths = Lengths { q_len: 64, kv_len: 64 };
        let names = |now: Option<&[usize]>| -> Vec<String> {
            captured.fitting(now, &Settings::new(4, 16), lengths).into_iter().map(|t| t.0.clone()).collect()
        };
        assert_eq!(names(None), ["bias", "ids"]);
        assert_eq!(names(Some(&[4, 7])), ["bias", "ids", "odd"]);
    }

    #[test]
    fn a_capture_of_some_heads_is_no_input_of_a_document_of_all() {
        let tensor = |name: &str| (format!("a.{name}"), DType::F32, vec![1, 2, 64, 16]);
        let captured = of_64_tokens(["q", "k", "v"].map(tensor).to_vec());
        let lengths = Lengths { q_len: 64, kv_len: 64 };
        assert!(captured.inputs(&Settings::new(2, 16), lengths).is_some());
        assert!(captured.inputs(&Settings::new(4, 16), lengths).is_none());
        assert!(captured.inputs(&Settings::new(2, 32), lengths).is_none());
    }

    #[test]
    fn texts_belong_to_documents_of_the_call_s_lengths() {
        let texts = [Some((1, vec!["a".to_string(), "\u{120}cat".into()])), None];
        let captured =
            Captured { path: "f".into(), call: "a".into(), lengths: [8, 8], grid: None, texts, tensors: Vec::new() };
        let [q, kv] = captured.texts(Lengths { q_len: 8, kv_len: 8 });
        let q = q.expect("of this length");
        assert_eq!((q.at(0), q.at(1).as_deref(), q.at(2).as_deref(), q.at(3)), (None, Some("a"), Some("cat"), None));
        assert!(kv.is_none() && captured.texts(Lengths { q_len: 8, kv_len: 9 })[0].is_none());
    }
}
