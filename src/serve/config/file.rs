//! From the bytes of a file to settings; every mistake has its line and column.

use super::place::{Mistakes, Place, quoted};
use super::settings::{KEYS, Setting, Settings, Shape, Word, words};
use crate::catalog::hint;
use crate::text::quantity::escaped;
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

const TABLE: &str = "otlp";
const NO_TABLE: &str = "otlp: write a table, such as [otlp] with url = \"http://127.0.0.1:4318/v1/metrics\"";

/// Reads all that `bytes` say; what is wrong is added to `mistakes`.
pub(super) fn read(path: &Path, bytes: &[u8], settings: &mut Settings, mistakes: &mut Mistakes) {
    let path: Arc<Path> = Arc::from(path);
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let valid = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
            let place = Place::in_file(&path, &valid, valid.len()..valid.len());
            return mistakes.add(&place, "this is no text in UTF-8; hint: write the file in UTF-8");
        }
    };
    let reader = Reader { path, text };
    match DeTable::parse(text) {
        Ok(table) => reader.table("", table.get_ref(), settings, mistakes),
        Err(error) => {
            let place = reader.place(error.span().unwrap_or(0..0));
            mistakes.add(&place, sentence(error.message()));
        }
    }
}

/// What the parser says, on one line.
fn sentence(message: &str) -> String {
    let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{}; hint: a line is NAME = \"VALUE\"", escaped(&line))
}

struct Reader<'a> {
    path: Arc<Path>,
    text: &'a str,
}

impl Reader<'_> {
    fn place(&self, span: std::ops::Range<usize>) -> Place {
        Place::in_file(&self.path, self.text, span)
    }

    /// The keys of a table that all begin with `prefix`.
    fn table(&self, prefix: &str, table: &DeTable, settings: &mut Settings, mistakes: &mut Mistakes) {
        for (name, value) in table {
            let place = self.place(name.span());
            if (prefix, name.get_ref().as_ref()) == ("", TABLE) {
                match value.get_ref() {
                    DeValue::Table(inner) => self.table("otlp.", inner, settings, mistakes),
                    _ => mistakes.add(&self.place(value.span()), NO_TABLE),
                }
                continue;
            }
            let full = format!("{prefix}{}", name.get_ref());
            let Some((key, _, shape)) = KEYS.iter().find(|(key, _, _)| *key == full) else {
                mistakes.add(&place, unknown(prefix, name.get_ref()));
                continue;
            };
            match self.words(*shape, value) {
                Ok(words) => drop(settings.insert(key, Setting { words, place })),
                Err(what) => mistakes.add(&self.place(value.span()), format!("{key}: {what}")),
            }
        }
    }

    fn words(&self, shape: Shape, value: &Spanned<DeValue>) -> Result<Vec<Word>, &'static str> {
        let place = self.place(value.span());
        match (shape, value.get_ref()) {
            (Shape::Pairs, DeValue::Table(table)) => table
                .iter()
                .map(|(name, value)| {
                    let text = format!("{}={}", name.get_ref(), scalar(value).ok_or("its values are texts")?);
                    let place = self.place(name.span());
                    Ok(Word { text, place })
                })
                .collect(),
            (Shape::Pairs, _) => Err("write a table, such as { name = \"value\" }"),
            (Shape::Words | Shape::Texts, DeValue::Array(items)) => items
                .iter()
                .map(|item| {
                    let text = scalar(item)
                        .ok_or("write a list of texts, such as [\"a\", \"b\"]")?
                        .into_owned();
                    let place = self.place(item.span());
                    Ok(Word { text, place })
                })
                .collect(),
            (Shape::Words | Shape::Texts, _) => {
                let text = scalar(value).ok_or("write a list of texts, such as [\"a\", \"b\"]")?;
                Ok(words(shape, &text, &place))
            }
            (Shape::One, _) => {
                let text = scalar(value).ok_or("write one value, no list and no table")?;
                Ok(words(shape, &text, &place))
            }
        }
    }
}

/// A value that is neither list nor table, as text.
fn scalar<'a>(value: &'a Spanned<DeValue>) -> Option<Cow<'a, str>> {
    match value.get_ref() {
        DeValue::String(text) => Some(Cow::Borrowed(text)),
        DeValue::Integer(number) => Some(Cow::Owned(number.to_string())),
        DeValue::Float(number) => Some(Cow::Owned(number.to_string())),
        DeValue::Boolean(truth) => Some(Cow::Owned(truth.to_string())),
        DeValue::Datetime(time) => Some(Cow::Owned(time.to_string())),
        DeValue::Array(_) | DeValue::Table(_) => None,
    }
}

fn unknown(prefix: &str, name: &str) -> String {
    let known = KEYS.iter().filter_map(|(key, _, _)| key.strip_prefix(prefix));
    let own = known.filter(|key| !key.contains('.'));
    let tables = [TABLE].into_iter().filter(|_| prefix.is_empty());
    let name = name.replace('-', "_");
    let nearest = hint::nearest(&name, own.clone().chain(tables.clone()));
    let all: Vec<&str> = own.chain(tables).collect();
    match nearest {
        Some(near) => format!("unknown key {}; hint: did you mean {prefix}{near}?", quoted(&name)),
        None => format!("unknown key {}; hint: one of {}", quoted(&name), all.join(", ")),
    }
}
