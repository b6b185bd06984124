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
    /// Time by call path, for speedscope
    Speedscope,
    /// Time by call path, for pprof
    Pprof,
    /// Time by call path as collapsed stacks, a line each
    Collapsed,
}

impl ExportFormat {
    /// Whether people cannot read it.
    #[must_use]
    pub(crate) fn is_binary(self) -> bool {
        matches!(
            self,
            ExportFormat::Perfetto | ExportFormat::Parquet | ExportFormat::Pprof
        )
    }

    /// Whether it has time by call path instead of rows.
    #[must_use]
    pub(crate) fn is_by_path(self) -> bool {
        matches!(
            self,
            ExportFormat::Speedscope | ExportFormat::Pprof | ExportFormat::Collapsed
        )
    }
}

/// What is written into a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Text,
    Lines,
    Recording,
    Chrome,
    Perfetto,
    Parquet,
    Csv,
    Speedscope,
    Pprof,
    Collapsed,
    Page,
}

/// How names end, and what that says; where two fit, the first.
const ENDINGS: [(&str, Content); 16] = [
    ("speedscope.json", Content::Speedscope),
    ("pb.gz", Content::Pprof),
    ("pprof", Content::Pprof),
    ("collapsed", Content::Collapsed),
    ("folded", Content::Collapsed),
    ("collapsed.txt", Content::Collapsed),
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
    pub(crate) fn said_by(path: &Path) -> Option<Content> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let ends = |ending: &str| {
            name.strip_suffix(ending)
                .is_some_and(|stem| stem.len() > 1 && stem.ends_with('.'))
        };
        let found = ENDINGS.iter().find(|(known, _)| ends(known));
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
            Content::Speedscope => "a profile for speedscope",
            Content::Pprof => "a profile for pprof",
            Content::Collapsed => "collapsed stacks",
            Content::Page => "a page",
        }
    }

    /// Refuses `path` where its name says something else than this.
    ///
    /// # Errors
    /// Names both, and the cure.
    pub(crate) fn check(self, path: Option<&Path>, hint: &str) -> Result<(), Usage> {
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
            ExportFormat::Speedscope => Content::Speedscope,
            ExportFormat::Pprof => Content::Pprof,
            ExportFormat::Collapsed => Content::Collapsed,
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
        assert!(said(Content::Speedscope, "t.json").is_some() && said(Content::Chrome, "t.speedscope.json").is_some());
        assert!(said(Content::Lines, "T.CSV").is_some() && said(Content::Text, "t.parquet").is_some());
    }

    #[test]
    fn a_name_that_says_the_same_or_nothing_is_not() {
        for (content, name) in [
            (Content::Recording, "t.arrows"),
            (Content::Csv, "t"),
            (Content::Speedscope, "t.speedscope.json"),
            (Content::Pprof, "t.pb.gz"),
            (Content::Lines, ".jsonl"),
            (Content::Text, "t.out"),
            (Content::Lines, "-"),
        ] {
            assert_eq!(said(content, name), None, "{name}");
        }
        assert!(Content::Csv.check(None, "x").is_ok());
    }
}
