//! What `run` and `trace` have at work: a tracer that writes each call, as lines or as a recording.

use super::prepare::{self, Subject};
use super::record;
use crate::cli::{Format, Options};
use crate::clock::clock_now;
use crate::record::Meta;
use crate::refusal::Usage;
use crate::sink::NoLines;
use crate::tracer::Tracer;
use anyhow::{Result, bail};

/// Loads what takes calls, as `options` ask, for `subject`.
///
/// # Errors
/// A wrong option, file or pattern, or what the kernel refuses.
pub(crate) fn tracer(options: &Options, subject: &Subject) -> Result<Tracer> {
    let format = prepare::format(options)?;
    if options.phases && (format != Format::Jsonl || options.quiet) {
        let words =
            "--phases is for JSON lines: other formats have one record a call\nhint: -o FILE.jsonl, or --format jsonl";
        bail!(Usage(words.to_owned()));
    }
    match format {
        Format::Arrows => record::tracer_of_file(options, subject),
        _ => tracer_of_lines(options, subject, format),
    }
}

fn tracer_of_lines(options: &Options, subject: &Subject, format: Format) -> Result<Tracer> {
    let output = || prepare::destination(options.output.as_deref());
    let mut tracer = prepare::begin(options, subject, None, output)?;
    let words = prepare::words(subject.command());
    let meta = Meta::here(clock_now(), words, tracer.tier().to_owned());
    if !options.quiet {
        tracer.write_to(prepare::encoder(options, format, meta.clock)?, &meta);
        if !options.which.shows_some() {
            tracer.watch_ranges();
        }
    } else if tracer.looks_for_findings() {
        tracer.write_to(Box::new(NoLines), &meta);
    }
    Ok(tracer)
}
