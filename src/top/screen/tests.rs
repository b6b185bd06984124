//! What is left of a screen where a thread panics: this program again, in a terminal of its own.

use super::*;
use std::process::{Command, Stdio};

/// Says to the program which thread is to panic.
const WHO: &str = "GPUSCOPE_TEST_PANICS";

/// The end of a terminal that a person would sit at, and the one that programs have.
pub(super) struct Terminals {
    pub(super) person: File,
    pub(super) program: OwnedFd,
}

impl Terminals {
    pub(super) fn open() -> Terminals {
        let (mut person, mut program) = (-1, -1);
        let size = libc::winsize {
            ws_row: 24,
            ws_col: 80,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let (name, settings) = (std::ptr::null_mut(), std::ptr::null());
        // SAFETY: both numbers are written to; nobody else owns what they name
        unsafe {
            let opened = libc::openpty(&raw mut person, &raw mut program, name, settings, &raw const size);
            assert_eq!(opened, 0, "{}", std::io::Error::last_os_error());
            Terminals {
                person: File::from_raw_fd(person),
                program: OwnedFd::from_raw_fd(program),
            }
        }
    }

    /// What the terminal does with what is typed and written.
    fn settings(&self) -> [u32; 4] {
        // SAFETY: plain numbers, for which zero is a value
        let mut settings: libc::termios = unsafe { std::mem::zeroed() };
        // SAFETY: fills one structure of ours
        assert_eq!(
            unsafe { libc::tcgetattr(self.program.as_raw_fd(), &raw mut settings) },
            0
        );
        [settings.c_iflag, settings.c_oflag, settings.c_cflag, settings.c_lflag]
    }

    /// Runs the test below in it: what it has written.
    fn run(&self, who: &str) -> String {
        let end = || Stdio::from(self.program.try_clone().unwrap());
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "top::screen::tests::a_screen_on_which_a_thread_panics"])
            .args(["--nocapture", "--test-threads", "1"])
            .envs([(WHO, who), ("TERM", "xterm")])
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        let mut written = Vec::new();
        let mut person = self.person.try_clone().unwrap();
        let mut part = [0; 4096];
        while has_something(&person) || child.try_wait().unwrap().is_none() {
            if has_something(&person) {
                let length = person.read(&mut part).unwrap();
                written.extend_from_slice(&part[..length]);
            }
        }
        String::from_utf8_lossy(&written).into_owned()
    }
}

fn has_something(person: &File) -> bool {
    let mut asked = libc::pollfd {
        fd: person.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: reads and fills one structure of ours
    unsafe { libc::poll(&raw mut asked, 1, 0) };
    asked.revents & libc::POLLIN != 0 && !is_gone(person.as_raw_fd())
}

/// Does nothing unless it is started by the tests below.
#[test]
fn a_screen_on_which_a_thread_panics() {
    let Some(who) = std::env::var_os(WHO) else { return };
    let mut screen = Screen::open(Aside::make().unwrap()).unwrap();
    let words = |area: Rect, buffer: &mut Buffer| {
        buffer.set_stringn(0, 0, "drawn", area.width.into(), ratatui::style::Style::new());
    };
    screen.draw(words).unwrap();
    eprintln!("said meanwhile");
    if who == "who draws" {
        panic!("for a test");
    }
    let other = std::thread::spawn(|| panic!("for a test"));
    assert!(other.join().is_err());
    let drawn = screen.draw(words);
    assert!(
        drawn.is_err() && has_panicked(),
        "nobody draws on a screen that was given back"
    );
}

#[test]
fn after_a_panic_of_any_thread_the_terminal_is_as_it_was_and_says_what_happened() {
    for who in ["who draws", "another"] {
        let terminals = Terminals::open();
        let before = terminals.settings();
        let written = terminals.run(who);
        assert_eq!(before, terminals.settings(), "{who}: {written:?}");
        let place = |what: &str| {
            written
                .find(what)
                .unwrap_or_else(|| panic!("{who}: no {what:?}: {written:?}"))
        };
        let left = place("\u{1b}[?1049l");
        assert!(
            place("\u{1b}[?1049h") < place("drawn") && place("drawn") < left,
            "{written:?}"
        );
        assert!(place("\u{1b}[?1000l") < left, "no mouse: {written:?}");
        assert!(
            left < place("said meanwhile") && left < place("for a test"),
            "{written:?}"
        );
        assert!(
            written.rfind("\u{1b}[?25h") > written.rfind("\u{1b}[?25l"),
            "a cursor: {written:?}"
        );
        assert_eq!(written.matches("\u{1b}[?1049l").count(), 1, "{written:?}");
    }
}
