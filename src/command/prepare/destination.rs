//! Where a trace is written, in which form and in which colours.
//!
//! Owns the choice. What a line looks like is an encoder's business.

use crate::cli::{Colour, Content, Format, Options, SummaryFormat};
use crate::clock::Clock;
use crate::command::screen;
use crate::model::summary::Summary;
use crate::output::{Output, say};
use crate::record::Encoder;
use crate::refusal::Usage;
use crate::secret;
use crate::sink::{json::Json, sizes::Sizes, summary, text};
use anyhow::{Result, bail};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::Path;

/// Where `-o` leads, else stdout.
///
/// # Errors
/// The file cannot be made.
pub(crate) fn destination(path: Option<&Path>) -> Result<Output> {
    match path {
        None => Ok(Output::stdout()),
        Some(path) if path == Path::new("-") => Ok(Output::stdout()),
        Some(path) => Output::create(path),
    }
}

/// As `--format` or the name of the file says.
pub(crate) fn format(options: &Options) -> Result<Format> {
    let path = options.output.as_deref();
    let implied = match path.and_then(Content::said_by) {
        Some(Content::Lines) => Format::Jsonl,
        Some(Content::Recording) => Format::Arrows,
        Some(Content::Chrome) => Format::Chrome,
        Some(Content::Perfetto) => Format::Perfetto,
        _ => Format::Text,
    };
    let format = options.format.unwrap_or(implied);
    Content::from(format).check(
        path,
        "-o FILE.jsonl, .arrows, .json or .pftrace; gpuscope export makes others of a recording",
    )?;
    Ok(format)
}

/// How calls are written. `clock`: where times begin.
pub(crate) fn encoder(options: &Options, format: Format, clock: Clock) -> Result<Box<dyn Encoder>> {
    let to_terminal = options.output.is_none() && std::io::stdout().is_terminal();
    Ok(match format {
        Format::Jsonl if options.phases => Box::new(Json::default().with_phases()),
        Format::Jsonl => Box::new(Json::default()),
        Format::Perfetto if to_terminal => {
            bail!(Usage(
                "this format is not for a terminal\nhint: -o FILE.pftrace".to_owned()
            ))
        }
        Format::Chrome | Format::Perfetto => drawn(format)?,
        Format::Text | Format::Arrows => {
            let colour = coloured(options.paint.color, to_terminal);
            let sizes = match options.bytes {
                true => Sizes::Exact,
                false => Sizes::Rounded,
            };
            Box::new(text::Text::new(clock, text::local_zone(), colour).with_sizes(sizes))
        }
    })
}

#[cfg(feature = "record")]
fn drawn(format: Format) -> Result<Box<dyn Encoder>> {
    use crate::export::{chrome, perfetto};
    Ok(match format {
        Format::Chrome => Box::new(chrome::encoder()),
        _ => Box::new(perfetto::encoder()),
    })
}

#[cfg(not(feature = "record"))]
fn drawn(_: Format) -> Result<Box<dyn Encoder>> {
    let words = "this build writes no traces for Chrome and Perfetto\n\
                 hint: cargo build with the feature record, which is on by default";
    bail!(Usage(words.to_owned()))
}

/// A command line as text, as far as it may be passed on.
pub(crate) fn words(command: &[OsString]) -> Vec<String> {
    let words: Vec<String> = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    secret::masked(&words)
}

/// Whether to write in colours; `to_terminal`: that is where it goes.
pub(crate) fn coloured(colour: Colour, to_terminal: bool) -> bool {
    match colour {
        Colour::Always => true,
        Colour::Never => false,
        Colour::Auto => to_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
    }
}

/// Writes the summary to stderr as asked.
pub(crate) fn print_summary(format: SummaryFormat, summary: &Summary) {
    match format {
        SummaryFormat::Text => {
            let columns = screen::columns(&std::io::stderr());
            say(summary::to_text_within(summary, columns).trim_end_matches('\n'));
        }
        SummaryFormat::Json => say(summary::to_json_line(summary)),
        SummaryFormat::None => {}
    }
}
