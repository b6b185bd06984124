//! The page that `--display-interval` asks for, on stdout.

use crate::command::screen;
use crate::serve::Scrape;
use crate::serve::display::Pace;
use crate::top::page::{View, page};
use anyhow::Result;
use std::io::{IsTerminal, Write};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// Owners on a page.
const TOP: usize = 20;

/// The page that `--display-interval` asks for, on stdout.
pub(super) struct Display {
    pace: Pace,
    interval: Duration,
    due: Instant,
}

impl Display {
    /// # Errors
    /// None.
    #[expect(clippy::unnecessary_wraps, reason = "a build without the screen refuses")]
    pub(super) fn new(interval: Duration) -> Result<Display> {
        Ok(Display {
            pace: Pace::new(Instant::now()),
            interval,
            due: Instant::now() + interval,
        })
    }

    /// Whether it is time for a page; the next one is an interval later.
    pub(super) fn is_due(&mut self) -> bool {
        let now = Instant::now();
        let due = now >= self.due;
        if due {
            self.due = (self.due + self.interval).max(now);
        }
        due
    }

    /// Writes a page. A reader that is gone is no reason to end.
    pub(super) fn show(&mut self, scrape: &Scrape) {
        let stdout = std::io::stdout();
        let size = stdout.is_terminal().then(|| screen::size(stdout.as_raw_fd()));
        let view = View {
            top: TOP,
            width: size.map(|(width, _)| width),
            height: size.map(|(_, height)| height),
            colour: stdout.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        };
        let text = page(&scrape.samples, &self.pace.rates(scrape), view);
        let mut stdout = stdout.lock();
        let _ = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
    }
}
