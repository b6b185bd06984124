//! What is written into files: the formats of `export`, what a file's name says is in it, and the refusal of what would be
//! something else.

use super::Format;
use crate::refusal::Usage;
use clap::ValueEnum;
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// JSON lines, one object for each row
    Jsonl,
    /// Chrome's trace events (JSON)
    Chrome,
    /// Perfetto's trace (protobuf)
    Perfetto,
    /// Apache Parquet
    Parquet,
    /// Comma-separated values with a header
    Csv,
}

impl ExportFormat {
    /// Whether people cannot read it.
    #[must_use]
    pub fn is_binary(self) -> bool {
        matches!(self, ExportFormat::Perfetto | ExportFormat::Parquet)
    }
}

/// What is written into a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    Text,
    Lines,
    Recording,
    Chrome,
    Perfetto,
    Parquet,
    Csv,
    Page,
}

/// Extensions, and what they say.
const EXTENSIONS: [(&str, Content); 10] = [
    ("jsonl", Content::Lines),
    ("ndjson", Content::Lines),
    ("arrows", Content::Recording),
    ("json", Content::Chrome),
    ("pftrace", Content::Perfetto),
    ("perfetto-trace", Content::Perfetto),
    ("parquet", Content::Parquet),
    ("csv", Content::Csv),
    ("html", Content::Page),
    ("txt", Content::Text),
];

impl Content {
    /// What the name of `path` says; `None`: nothing that we know.
    #[must_use]
    pub fn said_by(path: &Path) -> Option<Content> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        let found = EXTENSIONS.iter().find(|(known, _)| *known == extension);
        found.map(|(_, content)| *content)
    }

    fn words(self) -> &'static str {
        match self {
            Content::Text => "text",
            Content::Lines => "JSON lines",
            Content::Recording => "a recording",
            Content::Chrome => "a trace for Chrome",
            Content::Perfetto => "a trace for Perfetto",
            Content::Parquet => "Parquet",
            Content::Csv => "comma-separated values",
            Content::Page => "a page",
        }
    }

    /// Refuses `path` where its name says something else than this.
    ///
    /// # Errors
    /// Names both, and the cure.
    pub fn check(self, path: Option<&Path>, hint: &str) -> Result<(), Usage> {
        let Some(path) = path else { return Ok(()) };
        match Content::said_by(path) {
            Some(said) if said != self => Err(Usage(format!(
                "{}: the name says {}, and this writes {}\nhint: {hint}",
                path.display(),
                said.words(),
                self.words()
            ))),
            _ => Ok(()),
        }
    }
}

impl From<Format> for Content {
    fn from(format: Format) -> Content {
        match format {
            Format::Text => Content::Text,
            Format::Jsonl => Content::Lines,
            Format::Arrows => Content::Recording,
            Format::Chrome => Content::Chrome,
            Format::Perfetto => Content::Perfetto,
        }
    }
}

impl From<ExportFormat> for Content {
    fn from(format: ExportFormat) -> Content {
        match format {
            ExportFormat::Jsonl => Content::Lines,
            ExportFormat::Chrome => Content::Chrome,
            ExportFormat::Perfetto => Content::Perfetto,
            ExportFormat::Parquet => Content::Parquet,
            ExportFormat::Csv => Content::Csv,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(content: Content, name: &str) -> Option<String> {
        content.check(Some(Path::new(name)), "x").err().map(|usage| usage.0)
    }

    #[test]
    fn a_name_that_says_something_else_is_refused() {
        assert_eq!(
            said(Content::Recording, "t.jsonl").unwrap(),
            "t.jsonl: the name says JSON lines, and this writes a recording\nhint: x"
        );
        assert!(said(Content::Lines, "T.CSV").is_some() && said(Content::Text, "t.parquet").is_some());
    }

    #[test]
    fn a_name_that_says_the_same_or_nothing_is_not() {
        for (content, name) in [
            (Content::Recording, "t.arrows"),
            (Content::Csv, "t"),
            (Content::Text, "t.out"),
            (Content::Lines, "-"),
        ] {
            assert_eq!(said(content, name), None, "{name}");
        }
        assert!(Content::Csv.check(None, "x").is_ok());
    }
}
