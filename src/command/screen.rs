//! A few lines on a terminal that are drawn again in place.
//!
//! Nothing of the terminal's state is kept changed between two drawings, so that there is nothing to restore
//! however gpuscope ends.

use std::io::IsTerminal;
use std::os::fd::{AsRawFd, RawFd};

const SMALLEST: (usize, usize) = (20, 4);
const USUAL: (usize, usize) = (80, 24);

/// What is on the screen.
#[derive(Debug, Default)]
pub(crate) struct Screen {
    drawn: usize,
}

impl Screen {
    /// The bytes that replace what was drawn by `lines`, each cut to `width` columns.
    pub(crate) fn draw(&mut self, lines: &[String], width: usize) -> String {
        let mut out = self.erase();
        // a wide character may make a line longer than it seems: it must not begin another one
        out.push_str("\x1b[?7l");
        for line in lines {
            out.extend(line.chars().take(width));
            out.push('\n');
        }
        out.push_str("\x1b[?7h");
        self.drawn = lines.len();
        out
    }

    /// The bytes that take away what was drawn.
    pub(crate) fn erase(&mut self) -> String {
        match std::mem::take(&mut self.drawn) {
            0 => String::new(),
            lines => format!("\r\x1b[{lines}A\x1b[J"),
        }
    }
}

/// How wide lines may be at `stream`; `None`: as they are, it is no terminal, or one that does not say.
pub(crate) fn columns(stream: &(impl IsTerminal + AsRawFd)) -> Option<usize> {
    let columns = usize::from(asked(stream.as_raw_fd()).ws_col);
    (stream.is_terminal() && columns > 0).then_some(columns.max(SMALLEST.0))
}

fn asked(fd: RawFd) -> libc::winsize {
    // SAFETY: the call only fills the structure that it is given
    unsafe {
        let mut size = std::mem::zeroed::<libc::winsize>();
        libc::ioctl(fd, libc::TIOCGWINSZ, &raw mut size);
        size
    }
}

/// Columns and lines of the terminal at `fd`.
pub(crate) fn size(fd: RawFd) -> (usize, usize) {
    let size = asked(fd);
    let or = |number: u16, usual: usize, least: usize| match number {
        0 => usual,
        number => usize::from(number).max(least),
    };
    (
        or(size.ws_col, USUAL.0, SMALLEST.0),
        or(size.ws_row, USUAL.1, SMALLEST.1),
    )
}

/// Whether the terminal understands how to go back.
pub(crate) fn can_redraw() -> bool {
    std::env::var_os("TERM").is_some_and(|name| !name.is_empty() && name != "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawing_takes_the_place_of_the_one_before() {
        let mut screen = Screen::default();
        let lines = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
        assert_eq!(screen.draw(&lines(&["one", "two"]), 80), "\x1b[?7lone\ntwo\n\x1b[?7h");
        assert_eq!(
            screen.draw(&lines(&["three"]), 80),
            "\r\x1b[2A\x1b[J\x1b[?7lthree\n\x1b[?7h"
        );
        assert_eq!(
            (screen.erase(), screen.erase()),
            ("\r\x1b[1A\x1b[J".to_owned(), String::new())
        );
    }

    #[test]
    fn a_line_is_no_wider_than_the_terminal() {
        let drawn = Screen::default().draw(&["ä".repeat(100)], 20);
        assert_eq!(drawn.matches('ä').count(), 20);
    }
}
