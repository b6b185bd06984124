//! The shape of a table file, as deserialized.

use serde::Deserialize;
use toml::Spanned;

/// A string that knows where in the file it stands.
pub(super) type Text = Spanned<String>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    #[serde(default)]
    pub library: Vec<RawLibrary>,
    #[serde(default)]
    pub function: Vec<RawFunction>,
    #[serde(default, rename = "enum")]
    pub enums: Vec<RawEnum>,
    #[serde(default, rename = "struct")]
    pub structs: Vec<RawStruct>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawLibrary {
    pub name: Text,
    #[serde(rename = "match")]
    pub pattern: Text,
    pub errors: Option<Text>,
    pub ended: Option<i32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFunction {
    pub library: Option<Text>,
    pub symbol: Option<Text>,
    pub probe: Option<Text>,
    pub kprobe: Option<Text>,
    pub tracepoint: Option<Text>,
    pub name: Option<Text>,
    pub process: Option<bool>,
    pub only: Option<Text>,
    pub class: Option<Text>,
    pub args: Option<Vec<Text>>,
    pub bytes: Option<Text>,
    pub direction: Option<Text>,
    pub memory: Option<Text>,
    pub work: Option<Text>,
    pub kernel: Option<Text>,
    pub shape: Option<Text>,
    pub stub: Option<Text>,
    pub names: Option<Text>,
    pub api: Option<Text>,
    #[serde(default)]
    pub(crate) unloads: bool,
    #[serde(default)]
    pub chatty: bool,
    #[serde(default)]
    pub trivial: bool,
    #[serde(default)]
    pub entry_only: bool,
    pub majors: Option<Text>,
    pub forwards: Option<String>,
    pub returns: Option<Text>,
    #[serde(default)]
    pub ok: Vec<i32>,
    #[serde(default)]
    pub raw: bool,
    pub offset: Option<Spanned<u64>>,
    #[serde(rename = "return")]
    pub(crate) at_return: Option<bool>,
    pub filter: Option<Text>,
    pub aggregate: Option<Text>,
    #[serde(default)]
    pub stack: bool,
    pub stream: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawEnum {
    pub name: Text,
    pub values: Vec<Text>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawStruct {
    pub name: Text,
    pub size: u16,
    pub majors: Option<Text>,
    pub fields: Vec<Text>,
}
