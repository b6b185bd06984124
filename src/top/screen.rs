//! The terminal: raw, on its other screen, with the mouse; and as it was before, however we end.
//!
//! Owns what is changed of the terminal, and stderr as long as it is: what is said meanwhile is said afterwards.

mod hangup;

use crate::output::say;
use crate::top::state::Theme;
use anyhow::{Context, Result, bail};
use crossterm::cursor::{Hide, Show};
use crossterm::event::{self, DisableMouseCapture, EnableMouseCapture, Event};
use crossterm::execute;
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::fs::File;
use std::io::{IsTerminal, Read, Seek, SeekFrom, Stdout, Write, stderr, stdin, stdout};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

/// Of what was said while the screen was open.
const MOST_SAID: u64 = 1 << 16;

/// Some thread has: nothing is drawn any more.
static PANICKED: AtomicBool = AtomicBool::new(false);
/// The terminal is ours, and is to be given back once.
static TAKEN: AtomicBool = AtomicBool::new(false);
/// Whoever panics takes it, too.
static ASIDE: Mutex<Option<Aside>> = Mutex::new(None);

/// The terminal: raw, on its other screen, with the mouse.
pub(crate) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

/// Whether a thread has panicked while there was a screen.
pub(crate) fn has_panicked() -> bool {
    PANICKED.load(Ordering::Acquire)
}

/// Why there can be no screen here; `None`: there can.
pub(crate) fn refused() -> Option<&'static str> {
    let name = std::env::var_os("TERM").unwrap_or_default();
    match stdout().is_terminal() && stdin().is_terminal() {
        false => Some("stdin and stdout are no terminal"),
        true if name.is_empty() => Some("TERM is not set: it is not known what this terminal can do"),
        true if name == "dumb" => Some("TERM=dumb: this terminal cannot be drawn on"),
        true => None,
    }
}

/// Without an option; as <https://no-color.org> has it.
pub(crate) fn usual_theme() -> Theme {
    match std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) {
        true => Theme::Dark,
        false => Theme::Mono,
    }
}

impl Screen {
    /// Takes the terminal, and stderr with what was made for it.
    ///
    /// # Errors
    /// It refuses.
    pub(crate) fn open(stderr: Option<Aside>) -> Result<Screen> {
        restore_on_panic();
        if let Some(stderr) = &stderr {
            stderr.take();
        }
        *aside() = stderr;
        enter().context("failed to take the terminal")?;
        let terminal = Terminal::new(CrosstermBackend::new(stdout())).context("failed to take the terminal")?;
        hangup::watch(stdin().as_raw_fd());
        Ok(Screen { terminal })
    }

    /// Draws what `paint` draws.
    ///
    /// # Errors
    /// The terminal is gone, or has been given back because a thread has panicked.
    pub(crate) fn draw(&mut self, paint: impl FnOnce(Rect, &mut Buffer)) -> Result<()> {
        if has_panicked() {
            bail!("a thread has panicked");
        }
        let drawn = self.terminal.draw(|frame| paint(frame.area(), frame.buffer_mut()));
        drawn.map(drop).context("failed to write to the terminal")
    }

    /// Its size now.
    pub(crate) fn area(&self) -> Rect {
        let size = self.terminal.size().unwrap_or_default();
        Rect::new(0, 0, size.width, size.height)
    }

    /// What the user has done, in order.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(crate) fn events(&self) -> Result<Vec<Event>> {
        let mut events = Vec::new();
        while let Some(event) = self.event()? {
            events.push(event);
        }
        Ok(events)
    }

    /// Some may have been read already, whether the terminal has more or not: who asks it where the cursor is takes what comes.
    fn event(&self) -> Result<Option<Event>> {
        // who reads from a terminal that is gone reads nothing, and would do so for ever
        if is_gone(self.bell()) {
            bail!("the terminal is gone");
        }
        let there = event::poll(Duration::ZERO).context("failed to read from the terminal")?;
        let event = there.then(event::read).transpose();
        event.context("failed to read from the terminal")
    }

    /// Draws everything anew with the next picture.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(crate) fn forget(&mut self) -> Result<()> {
        execute!(stdout(), Clear(ClearType::All)).context("failed to write to the terminal")?;
        self.terminal = Terminal::new(CrosstermBackend::new(stdout())).context("failed to take the terminal")?;
        Ok(())
    }

    /// Gives the terminal back and stops, until the shell lets us go on.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(crate) fn suspend(&mut self) -> Result<()> {
        leave();
        signal_hook::low_level::emulate_default_handler(libc::SIGTSTP).context("failed to stop")?;
        self.resume()
    }

    /// Takes the terminal again, after a shell has had it.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(crate) fn resume(&mut self) -> Result<()> {
        enter().context("failed to take the terminal")?;
        self.forget()
    }

    /// A file that is readable when a key was pressed.
    pub(crate) fn bell(&self) -> RawFd {
        stdin().as_raw_fd()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
        give_back_stderr();
    }
}

fn aside() -> MutexGuard<'static, Option<Aside>> {
    ASIDE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn give_back_stderr() {
    let taken = aside().take();
    if let Some(aside) = taken {
        aside.give_back();
    }
}

/// There is nobody at the other end any more.
fn is_gone(fd: RawFd) -> bool {
    let mut asked = libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: reads and fills one structure of ours
    unsafe { libc::poll(&raw mut asked, 1, 0) };
    asked.revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0
}

fn enter() -> std::io::Result<()> {
    enable_raw_mode()?;
    TAKEN.store(true, Ordering::Release);
    execute!(stdout(), EnterAlternateScreen, EnableMouseCapture, Hide)
}

/// As often as one likes: done twice, it would put the cursor onto what was said since. A terminal that is gone needs nothing.
fn leave() {
    if !TAKEN.swap(false, Ordering::AcqRel) {
        return;
    }
    let _ = execute!(stdout(), DisableMouseCapture, LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
}

/// Whoever panics says so on the usual screen.
fn restore_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            PANICKED.store(true, Ordering::Release);
            leave();
            give_back_stderr();
            usual(info);
        }));
    });
}

/// Where stderr goes while the screen is open, if it would go onto it.
pub(crate) struct Aside {
    said: File,
    usual: OwnedFd,
}

impl Aside {
    /// Makes what is needed, before rights are given up. `None`: what is said comes onto no screen.
    ///
    /// # Errors
    /// There are no descriptors left.
    pub(crate) fn make() -> Result<Option<Aside>> {
        if !stderr().is_terminal() {
            return Ok(None);
        }
        // SAFETY: makes descriptors that nobody else owns; the name ends in a zero
        let (said, usual) = unsafe {
            let said = libc::memfd_create(c"gpuscope-stderr".as_ptr(), libc::MFD_CLOEXEC);
            (said, libc::fcntl(stderr().as_raw_fd(), libc::F_DUPFD_CLOEXEC, 3))
        };
        if said < 0 || usual < 0 {
            return Err(std::io::Error::last_os_error()).context("failed to put stderr aside");
        }
        // SAFETY: just made
        Ok(Some(unsafe {
            Aside {
                said: File::from_raw_fd(said),
                usual: OwnedFd::from_raw_fd(usual),
            }
        }))
    }

    fn take(&self) {
        // SAFETY: both are open
        unsafe { libc::dup2(self.said.as_raw_fd(), stderr().as_raw_fd()) };
    }

    /// And says what was said.
    fn give_back(mut self) {
        // SAFETY: both are open
        unsafe { libc::dup2(self.usual.as_raw_fd(), stderr().as_raw_fd()) };
        let mut text = String::new();
        let read = self.said.seek(SeekFrom::Start(0));
        let _ = read.and_then(|_| (&self.said).take(MOST_SAID).read_to_string(&mut text));
        let text = text.trim_end();
        if !text.is_empty() {
            say(text);
        }
        let _ = stdout().flush();
    }
}

#[cfg(test)]
mod tests;
