//! `gpuscope timeline`: a recording as a picture in the terminal.

use super::reading::{self, Asked};
use super::screen;
use super::{prepare, rights};
use crate::cli::TimelineArgs;
use crate::filter::Filter;
use crate::output::{Output, say};
use crate::part::Part;
use crate::record::Taker;
use crate::refusal::Usage;
use crate::steps::Numbered;
use crate::text::quantity::escaped;
use crate::timeline::{Bins, Lane, Look, Survey, Window, draw};
use crate::trace::{End, Files};
use anyhow::{Result, bail};
use std::io::{self, IsTerminal};
use std::os::fd::AsRawFd;
use std::process::ExitCode;
use std::time::Duration;

const USUAL_WIDTH: usize = 80;

/// Draws it.
///
/// # Errors
/// What cannot be read, and why.
pub(crate) fn run(args: &TimelineArgs) -> Result<ExitCode> {
    let filter = Filter::parse(&args.filter, &[]).map_err(|error| Usage(error.to_string()))?;
    let limits = limits(args)?;
    let files = Files::open(&args.file)?;
    rights::for_reading();
    let asked = Asked {
        range: args.range.as_deref(),
        step: args.step,
    };
    let (mut part, mut steps) = reading::locate(&files, asked)?.unzip();
    // what began before it and is under way within is shown, too
    let limits = match part.take_if(|part| matches!(part, Part::Steps(_))) {
        Some(Part::Steps(part)) => window(&part),
        _ => limits,
    };
    let part = part.unwrap_or_default();
    let look = look(args);
    let mut survey = Survey::new(&filter, limits);
    let end = read(&files, &part, "reading", &mut steps, &mut survey)?;
    end.refuse_nothing(&args.file)?;
    let has_calls = survey.lanes.keys().any(|lane| matches!(lane, Lane::Layer { .. }));
    let Some(window) = survey.window().filter(|_| has_calls) else {
        bail!(nothing(args, survey.calls, limits, end.all_rows));
    };
    let lanes = survey.busiest(args.lanes.into());
    let mut bins = Bins::new(&filter, window, look.columns(), &lanes);
    read(&files, &part, "drawing", &mut steps, &mut bins)?;
    let picture = draw::draw(&args.file.display().to_string(), &survey, &bins, look);
    let mut output = Output::stdout();
    output.write(picture.as_bytes());
    if let Some(why) = &end.cut {
        say(format_args!(
            "gpuscope: warning: {} was cut off: {}; what is before is shown",
            args.file.display(),
            escaped(why)
        ));
    }
    output.check()?;
    Ok(ExitCode::SUCCESS)
}

/// Hands rows of a part to `taker`, and steps, which have their numbers in the whole: where they are not known yet, they are
/// looked for on the way.
fn read(
    files: &Files,
    part: &Part,
    doing: &str,
    steps: &mut Option<Vec<Numbered>>,
    taker: &mut dyn Taker,
) -> Result<End> {
    let recording = files.recording()?;
    let Some(steps) = steps else {
        let (end, followed) = reading::read_with_steps(recording, files, doing, taker)?;
        let found = steps.insert(followed.numbered());
        found.iter().for_each(|steps| steps.hand(taker));
        return Ok(end);
    };
    Ok(part.through(taker, |to| {
        let end = reading::read(recording, files, doing, to);
        steps.iter().for_each(|steps| steps.hand(to));
        end
    }))
}

fn window(part: &crate::steps::Part) -> Window {
    Window {
        from: part.from,
        to: part.to,
    }
}

/// Why nothing is shown.
fn nothing(args: &TimelineArgs, calls: Option<Window>, limits: Window, rows: u64) -> String {
    let seconds = |ns: i64| format!("{:.1}", ns as f64 / 1e9);
    let Some(calls) = calls else {
        return format!(
            "{} has no call that would be shown\nhint: --filter leaves out all of its {rows} rows, or there are none",
            args.file.display()
        );
    };
    let where_to_look = match (limits.from, limits.to) {
        (i64::MIN, to) => format!("before {} s", seconds(to)),
        (from, i64::MAX) => format!("after {} s", seconds(from)),
        (from, to) => format!("between {} and {} s", seconds(from), seconds(to)),
    };
    format!(
        "no calls {where_to_look}; they lie in {}–{} s",
        seconds(calls.from),
        seconds(calls.to)
    )
}

fn limits(args: &TimelineArgs) -> Result<Window> {
    let ns = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
    let limits = Window {
        from: args.from.map_or(i64::MIN, ns),
        to: args.to.map_or(i64::MAX, ns),
    };
    if limits.from >= limits.to {
        bail!(Usage("--from is not before --to".to_owned()));
    }
    Ok(limits)
}

fn look(args: &TimelineArgs) -> Look {
    let stdout = io::stdout();
    let terminal = stdout.is_terminal();
    let width = match args.width {
        Some(width) => width.into(),
        None if terminal => screen::size(stdout.as_raw_fd()).0,
        None => USUAL_WIDTH,
    };
    Look {
        width,
        colour: prepare::coloured(args.color, terminal),
    }
}
