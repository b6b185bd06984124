//! A process at rest: stopped where no call of it is inside the driver, so that its book is what a tracer has been told.

use super::book::Books;
use super::support::{eventually, number};
use serde_json::Value;

/// A stopped process, with its book.
pub struct Resting {
    pid: u32,
    pub book: Value,
}

fn send(pid: u32, signal: i32) {
    // SAFETY: plain numbers; nobody has waited for the process, so its id is its own
    assert_eq!(unsafe { libc::kill(pid as i32, signal) }, 0, "process {pid}");
}

/// Where each thread is; `None`: one of them has not stopped yet.
fn places(pid: u32) -> Option<Vec<u64>> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"))
        .expect("a process")
        .flatten();
    tasks
        .map(|task| {
            let stat = std::fs::read_to_string(task.path().join("stat")).ok()?;
            let stopped = stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'));
            let call = std::fs::read_to_string(task.path().join("syscall")).ok()?;
            let at = call.split_whitespace().last()?.strip_prefix("0x")?;
            u64::from_str_radix(at, 16).ok().filter(|_| stopped)
        })
        .collect()
}

/// Whether a place lies in the driver, or on the way back out of it: in what the kernel or an agent has put there, or where an agent
/// asks for the time before it notes the return.
fn is_driver(maps: &str, place: u64) -> bool {
    maps.lines().any(|line| {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        let (start, end) = range.expect("a range");
        let hex = |digits| u64::from_str_radix(digits, 16).expect("a number");
        let anonymous = line.contains(" r-xp 00000000 00:00 0 ") && line.trim_end().ends_with(" 0");
        let driver = ["libcuda.so", "[uprobes]", "libgpuscope_agent.so", "[vdso]"]
            .iter()
            .any(|name| line.contains(name));
        (driver || anonymous) && (hex(start)..hex(end)).contains(&place)
    })
}

impl Resting {
    /// Stops the only process that keeps a book there.
    pub fn of(books: &Books) -> Resting {
        let pid = number(&books.only(), "pid") as u32;
        let mut found = None;
        eventually("no call is under way", || {
            send(pid, libc::SIGSTOP);
            eventually("it stops", || places(pid).is_some());
            let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("a process");
            let (places, book) = (places(pid).expect("stopped"), books.only());
            if number(&book, "inside") == 0 && !places.iter().any(|place| is_driver(&maps, *place)) {
                found = Some(book);
                return true;
            }
            send(pid, libc::SIGCONT);
            false
        });
        Resting {
            pid,
            book: found.expect("at rest"),
        }
    }

    pub fn resume(self) {
        send(self.pid, libc::SIGCONT);
    }

    pub fn kill(self) -> Value {
        send(self.pid, libc::SIGKILL);
        self.book
    }
}
