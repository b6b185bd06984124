//! `--NAME VALUE` pairs.

use std::collections::BTreeMap;

/// What was given on the command line.
pub struct Options(BTreeMap<String, String>);

impl Options {
    pub fn parse(args: &[String]) -> Option<Options> {
        let mut options = BTreeMap::new();
        let mut args = args.iter();
        while let Some(name) = args.next() {
            options.insert(name.strip_prefix("--")?.to_owned(), args.next()?.clone());
        }
        Some(Options(options))
    }

    pub fn number(&self, name: &str, default: u64) -> u64 {
        let given = self.0.get(name).and_then(|text| text.parse().ok());
        given.unwrap_or(default)
    }

    pub fn text(&self, name: &str, default: &str) -> String {
        self.0.get(name).cloned().unwrap_or_else(|| default.to_owned())
    }
}
