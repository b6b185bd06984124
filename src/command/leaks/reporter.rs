//! When a report is made of who holds memory, in which form, and where it goes.

use crate::cli::{Content, LeaksArgs};
use crate::command::prepare;
use crate::command::screen::{self, Screen};
use crate::model::memory::{Report, Wanted};
use crate::model::summary::Summary;
use crate::output::Output;
use crate::sink::cost;
use crate::sink::memory::{Pace, View, last_line, line, page, table};
use crate::text::fit::fit;
use crate::tracer::Tracer;
use anyhow::Result;
use std::io::{IsTerminal, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::{Duration, Instant};

/// Single allocations of a process that are told.
const MOST_OF_TEXT: usize = 500;
const MOST_OF_JSON: usize = 1_000_000;
/// How often the live table changes.
const LIVE: Duration = Duration::from_secs(1);

/// When a report is made of who holds memory, in which form.
pub(crate) struct Reporter {
    output: Output,
    json: bool,
    view: View,
    /// Of the terminal, if that is where the text goes.
    columns: Option<usize>,
    pace: Pace,
    interval: Option<Every>,
    live: Option<Live>,
}

/// A moment that comes again.
struct Every {
    period: Duration,
    due: Instant,
}

struct Live {
    screen: Screen,
    pace: Pace,
    every: Every,
}

/// Where the text goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Goes {
    Stdout,
    Stderr,
    File,
}

/// Whether reports can be written as asked, to where they are to go.
///
/// # Errors
/// The file's name says another format.
pub(crate) fn check(args: &LeaksArgs) -> Result<()> {
    let path = args.output.as_deref();
    let content = match (is_json(args), path.and_then(Content::said_by)) {
        // a report is a JSON object, and a file of one is JSON
        (true, Some(Content::Chrome)) => Content::Chrome,
        (true, _) => Content::Lines,
        (false, _) => Content::Text,
    };
    content.check(path, "-o FILE.jsonl for JSON lines, FILE.txt for text")?;
    Ok(())
}

/// Which allocations a report tells one by one.
pub(crate) fn wanted(args: &LeaksArgs) -> Option<Wanted> {
    let older = args.older_than.unwrap_or_default();
    args.lists().then_some(Wanted {
        older_ns: u64::try_from(older.as_nanos()).unwrap_or(u64::MAX),
        most: if is_json(args) { MOST_OF_JSON } else { MOST_OF_TEXT },
    })
}

fn is_json(args: &LeaksArgs) -> bool {
    args.json || names_json(args.output.as_deref())
}

impl Reporter {
    /// As `args` ask.
    ///
    /// # Errors
    /// The output file cannot be made.
    pub(crate) fn new(args: &LeaksArgs) -> Result<Reporter> {
        let json = is_json(args);
        let goes = goes(args, json);
        let to_terminal = match goes {
            Goes::Stdout => std::io::stdout().is_terminal(),
            Goes::Stderr => std::io::stderr().is_terminal(),
            Goes::File => false,
        };
        // a command writes on the same terminal, where nothing could be drawn in place
        let live = goes == Goes::Stdout && to_terminal && args.command.is_empty();
        let live = live && !json && !args.quiet && args.interval.is_none() && screen::can_redraw();
        Ok(Reporter {
            output: match goes {
                Goes::Stderr => Output::stderr(),
                _ => prepare::destination(args.output.as_deref())?,
            },
            json,
            view: View {
                top: args.top,
                colour: prepare::coloured(args.paint.color, to_terminal),
            },
            columns: match goes {
                Goes::Stdout => screen::columns(&std::io::stdout()),
                Goes::Stderr => screen::columns(&std::io::stderr()),
                Goes::File => None,
            },
            pace: Pace::default(),
            interval: args.interval.map(Every::new),
            live: live.then(|| Live {
                screen: Screen::default(),
                pace: Pace::default(),
                every: Every::new(LIVE),
            }),
        })
    }

    /// To be called often: writes what is due.
    pub(crate) fn follow(&mut self, tracer: &mut Tracer) {
        if self.interval.as_mut().is_some_and(Every::is_due) {
            let report = tracer.memory_report(false);
            self.write(&report);
        }
        let Some(live) = self.live.as_mut() else { return };
        if live.every.is_due() {
            live.draw(&tracer.memory_report(false));
        }
    }

    /// Writes the last report, with what it has cost.
    ///
    /// # Errors
    /// The output is full or broken, now or before.
    pub(crate) fn finish(mut self, report: &Report, summary: &Summary) -> Result<()> {
        if let Some(live) = self.live.as_mut() {
            let erase = live.screen.erase();
            put(&erase);
        }
        let rates = self.pace.rates(report);
        let text = match self.json {
            true => last_line(report, &rates, cost::to_json(&summary.cost, summary.seconds)),
            false => {
                let page = page(report, &rates, self.view, self.columns);
                page + "\n" + &fit(&cost::to_text(summary), self.columns)
            }
        };
        self.output.write(text.as_bytes());
        self.check()
    }

    /// The first failure to write.
    ///
    /// # Errors
    /// It.
    pub(crate) fn check(&self) -> Result<()> {
        self.output.check()
    }

    /// Whether nobody reads what is written.
    pub(crate) fn is_closed(&self) -> bool {
        self.output.closed()
    }

    fn write(&mut self, report: &Report) {
        let rates = self.pace.rates(report);
        let text = match self.json {
            true => line(report, &rates),
            false => page(report, &rates, self.view, self.columns),
        };
        self.output.write(text.as_bytes());
    }
}

impl Every {
    fn new(period: Duration) -> Every {
        Every {
            period,
            due: Instant::now() + period,
        }
    }

    /// Whether the moment has come; if so, the next one is a period later.
    fn is_due(&mut self) -> bool {
        let now = Instant::now();
        if now < self.due {
            return false;
        }
        self.due = (self.due + self.period).max(now);
        true
    }
}

impl Live {
    fn draw(&mut self, report: &Report) {
        let (width, height) = screen::size(std::io::stdout().as_raw_fd());
        let lines = table(report, &self.pace.rates(report), height - 1);
        put(&self.screen.draw(&lines, width));
    }
}

/// A terminal that is gone ends nothing by itself.
fn put(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

fn names_json(path: Option<&Path>) -> bool {
    let extension = path.and_then(Path::extension).and_then(|extension| extension.to_str());
    matches!(extension, Some("json" | "jsonl"))
}

/// With a command stdout is the command's, unless it is asked for.
fn goes(args: &LeaksArgs, json: bool) -> Goes {
    match args.output.as_deref() {
        Some(path) if path == Path::new("-") => Goes::Stdout,
        Some(_) => Goes::File,
        None if !args.command.is_empty() && !json => Goes::Stderr,
        None => Goes::Stdout,
    }
}
