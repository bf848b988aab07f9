//! A trainer's settings file in any of its formats: JSON, JSON with comments, YAML, TOML.
//!
//! Invariant: the file name's extension decides the format, as in readers; a change affects one value. Must not know
//! which keys matter.

use super::flat_edit::{Flat, Form};
use super::json_edit::{Member, Object};
use crate::base::Diagnostic;
use serde_json::Value;

/// The outermost mapping of a file.
#[derive(Clone, Debug)]
pub(super) enum SettingsFile<'a> {
    Json(Object<'a>),
    Flat(Flat<'a>),
}

impl<'a> SettingsFile<'a> {
    /// Reads a file. Errors: what keeps it from being read, with its place; a file of environment variables.
    pub(crate) fn parse(name: &'a str, bytes: &'a [u8]) -> Result<SettingsFile<'a>, Diagnostic> {
        let file = name.rsplit(['/', '\\']).next().unwrap_or(name).to_lowercase();
        let ends = |all: &[&str]| all.iter().any(|end| file.ends_with(end));
        Ok(if ends(&[".yaml", ".yml"]) {
            SettingsFile::Flat(Flat::parse(name, bytes, Form::Yaml)?)
        } else if ends(&[".toml"]) {
            SettingsFile::Flat(Flat::parse(name, bytes, Form::Toml)?)
        } else if ends(&[".env", ".sh", ".bash", ".bat", ".ps1"]) {
            let message = format!("{name} sets variables or starts a program, so it is not changed");
            let lines = "a mask needs two lines there: export PYTHONPATH=EXPORT/sidecar:$PYTHONPATH and export MASKLOOM_SIDECAR=EXPORT; \
                         a setting is a flag of the command, such as --attention_mechanism=diffusers or --attn_implementation=sdpa";
            return Err(Diagnostic::error("config-script", message).hint(lines));
        } else {
            SettingsFile::Json(Object::parse(name, bytes)?)
        })
    }

    /// The whole text.
    pub(crate) fn text(&self) -> &'a str {
        match self {
            SettingsFile::Json(object) => object.text(),
            SettingsFile::Flat(flat) => flat.text(),
        }
    }

    /// In text order.
    pub(crate) fn members(&self) -> &[Member] {
        match self {
            SettingsFile::Json(object) => &object.members,
            SettingsFile::Flat(flat) => &flat.members,
        }
    }

    /// The last member with one of these keys: the one that counts.
    pub(crate) fn find(&self, keys: &[&str]) -> Option<&Member> {
        self.members().iter().rev().find(|m| keys.contains(&m.key.as_str()))
    }

    /// A member's value as it is written.
    pub(crate) fn written(&self, member: &Member) -> &'a str {
        match self {
            SettingsFile::Json(object) => object.written(member),
            SettingsFile::Flat(flat) => flat.written(member),
        }
    }

    /// A member's value; null if it cannot be read alone.
    pub(crate) fn value(&self, member: &Member) -> Value {
        match self {
            SettingsFile::Json(object) => serde_json::from_str(object.written(member)).unwrap_or(Value::Null),
            SettingsFile::Flat(flat) => flat.value(member),
        }
    }

    /// A member's value if it is a string.
    pub(crate) fn string(&self, member: &Member) -> Option<String> {
        self.value(member).as_str().map(String::from)
    }

    /// A string as the file writes it.
    pub(crate) fn quoted(&self, value: &str) -> String {
        match self {
            SettingsFile::Json(_) => format!("\"{value}\""),
            SettingsFile::Flat(flat) => flat.quoted(value),
        }
    }

    /// The text with another value for a member.
    pub(crate) fn replaced(&self, member: &Member, value: &str) -> Result<String, Diagnostic> {
        match self {
            SettingsFile::Json(object) => Ok(object.replaced(member, value)),
            SettingsFile::Flat(flat) => flat.replaced(member, value),
        }
    }

    /// The text with a member more.
    pub(crate) fn inserted(&self, key: &str, value: &str) -> String {
        match self {
            SettingsFile::Json(object) => object.inserted(key, value),
            SettingsFile::Flat(flat) => flat.inserted(key, value),
        }
    }
}
