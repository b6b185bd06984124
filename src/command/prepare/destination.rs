//! Where a trace is written, in which form and in which colours.
//!
//! Owns the choice. What a line looks like is a sink's business.

use crate::cli::{Colour, Format, Options, SummaryFormat};
use crate::model::summary::Summary;
use crate::output::{Output, say};
use crate::refusal::Usage;
use crate::sink::{Clock, Sink, json::Json, summary, text};
use crate::trace::Meta;
use anyhow::{Result, bail};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::Path;

/// Where `-o` leads, else stdout.
///
/// # Errors
/// The file cannot be made.
pub fn destination(path: Option<&Path>) -> Result<Output> {
    match path {
        None => Ok(Output::stdout()),
        Some(path) if path == Path::new("-") => Ok(Output::stdout()),
        Some(path) => Output::create(path),
    }
}

pub(super) fn format(options: &Options) -> Format {
    if let Some(format) = options.format {
        return format;
    }
    let path = options.output.as_deref().unwrap_or(Path::new("-"));
    let extension = path
        .extension()
        .and_then(|extension| extension.to_str())
        .unwrap_or_default();
    match extension {
        "jsonl" => Format::Jsonl,
        "arrows" => Format::Arrows,
        "json" => Format::Chrome,
        "pftrace" => Format::Perfetto,
        _ => Format::Text,
    }
}

pub(super) fn sink(
    options: &Options,
    format: Format,
    command: &[OsString],
    tier: &str,
    clock: Clock,
) -> Result<Box<dyn Sink>> {
    let to_terminal = options.output.is_none() && std::io::stdout().is_terminal();
    Ok(match format {
        Format::Jsonl => Box::new(Json::new(clock, words(command), tier.to_owned())),
        Format::Perfetto if to_terminal => {
            bail!(Usage(
                "this format is not for a terminal\nhint: -o FILE.pftrace".to_owned()
            ))
        }
        Format::Chrome | Format::Perfetto => drawn(format, Meta::here(clock, words(command), tier.to_owned()))?,
        Format::Text | Format::Arrows => {
            let colour = coloured(options.paint.color, to_terminal);
            Box::new(text::Text::new(clock, text::local_zone(), colour))
        }
    })
}

#[cfg(feature = "record")]
fn drawn(format: Format, meta: Meta) -> Result<Box<dyn Sink>> {
    use crate::export::{Live, chrome, perfetto};
    Ok(match format {
        Format::Chrome => Box::new(Live::new(Box::new(chrome::form()), meta)),
        _ => Box::new(Live::new(Box::new(perfetto::form()), meta)),
    })
}

#[cfg(not(feature = "record"))]
fn drawn(_: Format, _: Meta) -> Result<Box<dyn Sink>> {
    let words = "this build writes no traces for Chrome and Perfetto\n\
                 hint: cargo build with the feature record, which is on by default";
    bail!(Usage(words.to_owned()))
}

/// A command line as text.
pub fn words(command: &[OsString]) -> Vec<String> {
    command.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Whether to write in colours; `to_terminal`: that is where it goes.
pub fn coloured(colour: Colour, to_terminal: bool) -> bool {
    match colour {
        Colour::Always => true,
        Colour::Never => false,
        Colour::Auto => to_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
    }
}

/// Writes the summary to stderr as asked.
pub fn print_summary(format: SummaryFormat, summary: &Summary) {
    match format {
        SummaryFormat::Text => say(summary::to_text(summary).trim_end_matches('\n')),
        SummaryFormat::Json => say(summary::to_json_line(summary)),
        SummaryFormat::None => {}
    }
}
