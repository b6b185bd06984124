//! Says on stderr that the main thread stands still, once, and with what the kernel knows of where.

use crate::output::say;
use crate::serve::{Exchange, Stuck};
use std::sync::Arc;

/// Says on stderr that the main thread stands still, once.
pub(super) struct Standstill {
    exchange: Arc<Exchange>,
    /// The kernel's number of the thread that gathers.
    thread: i32,
    reported: bool,
}

impl Standstill {
    /// Of the thread that calls this.
    pub(super) fn of_this_thread(exchange: Arc<Exchange>) -> Standstill {
        Standstill {
            exchange,
            // SAFETY: asks for a number
            thread: unsafe { libc::syscall(libc::SYS_gettid) } as i32,
            reported: false,
        }
    }

    /// Tells of a change.
    pub(super) fn look(&mut self) {
        let stuck = self.exchange.heart.stuck();
        if stuck.is_some() == self.reported {
            return;
        }
        self.reported = stuck.is_some();
        match stuck {
            Some(stuck) => say(format_args!("gpuscope: {}; /healthz says so", self.sentence(stuck))),
            None => say("gpuscope: the thread that gathers goes on"),
        }
    }

    /// Why the thread does not do what it is asked to.
    pub(super) fn words(&self) -> String {
        let stuck = self.exchange.heart.stuck();
        stuck.map_or_else(
            || format!("the thread that gathers does not answer{}", self.place()),
            |stuck| self.sentence(stuck),
        )
    }

    fn sentence(&self, stuck: Stuck) -> String {
        format!("{stuck}{}", self.place())
    }

    /// The system call that it sleeps in, with the file of its first argument, where that is one.
    fn place(&self) -> String {
        let text = std::fs::read_to_string(format!("/proc/self/task/{}/syscall", self.thread));
        text.ok().and_then(|text| place(&text, file_of)).unwrap_or_default()
    }
}

/// Looks at the name alone: the file itself may be what does not answer.
fn file_of(descriptor: u64) -> Option<String> {
    let path = std::fs::read_link(format!("/proc/self/fd/{descriptor}")).ok()?;
    Some(crate::text::quantity::escaped(&path.display().to_string()))
}

/// From a line of `/proc/PID/syscall`: number, arguments, stack pointer, program counter.
fn place(line: &str, file_of: impl Fn(u64) -> Option<String>) -> Option<String> {
    let mut words = line.split_whitespace();
    let number: i64 = words.next()?.parse().ok().filter(|number| *number >= 0)?;
    let first = u64::from_str_radix(words.next()?.trim_start_matches("0x"), 16).ok()?;
    let reads = [libc::SYS_read, libc::SYS_pread64, libc::SYS_fstat, libc::SYS_close];
    let file = file_of(first).filter(|_| reads.contains(&number));
    Some(match file {
        Some(file) => format!(" (in system call {number} on {file})"),
        None => format!(" (in system call {number})"),
    })
}

#[cfg(test)]
mod tests {
    use super::place;

    #[test]
    fn a_thread_that_reads_is_told_with_its_file() {
        let file = |descriptor| (descriptor == 7).then(|| "/mnt/hung/lib.so".to_owned());
        let said = |line: &str| place(line, file);
        let pread = "17 0x7 0x7f00 0x1000 0x0 0x0 0x0 0x7ffe 0x7f11";
        let expected = format!(" (in system call {} on /mnt/hung/lib.so)", libc::SYS_pread64);
        #[cfg(target_arch = "x86_64")]
        assert_eq!(said(pread), Some(expected));
        assert_eq!(
            said("202 0x7 0x0 0x0 0x0 0x0 0x0 0x7ffe 0x7f11").as_deref(),
            Some(" (in system call 202)")
        );
        assert_eq!(said("running"), None);
        assert_eq!(said("-1 0x7ffe 0x7f11"), None);
        assert_eq!(said(""), None);
    }
}
