//! What a thread does at a moment, as the kernel tells whoever may look at its process.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    /// It is on a CPU, or about to be.
    Runs,
    /// It waits in the kernel, having come from there.
    Waits { pc: u64, sp: u64 },
    /// We may not look at it, or it is gone.
    Unknown,
}

/// What is asked of one thread again and again.
pub(super) struct Thread {
    syscall: Option<File>,
    turns: Option<File>,
}

impl Thread {
    pub(super) fn open(tgid: u32, tid: u32) -> Thread {
        let open = |name: &str| File::open(format!("/proc/{tgid}/task/{tid}/{name}")).ok();
        Thread {
            syscall: open("syscall"),
            turns: open("schedstat"),
        }
    }

    pub(super) fn doing(&self) -> Doing {
        self.syscall
            .as_ref()
            .and_then(read)
            .map_or(Doing::Unknown, |text| parse(&text))
    }

    /// How long it has run, and how often it was given a CPU: while this stays, it has not run. `None`: this kernel does
    /// not tell.
    pub(super) fn turns(&self) -> Option<String> {
        self.turns.as_ref().and_then(read)
    }
}

fn read(file: &File) -> Option<String> {
    let mut bytes = [0; 256];
    let count = file.read_at(&mut bytes, 0).ok().filter(|count| *count > 0)?;
    String::from_utf8(bytes[..count].to_vec()).ok()
}

/// `running`; or a system call's number and arguments, then the stack pointer and the instruction; or `-1` and these.
fn parse(text: &str) -> Doing {
    if text.trim() == "running" {
        return Doing::Runs;
    }
    let mut words = text.split_whitespace().rev();
    let mut word = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    match (word(), word()) {
        (Some(pc), Some(sp)) => Doing::Waits { pc, sp },
        _ => Doing::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words_are_understood() {
        assert_eq!(parse("running\n"), Doing::Runs);
        let waits = Doing::Waits {
            pc: 0x7f12_0000_1234,
            sp: 0x7ffc_0000_0010,
        };
        assert_eq!(
            parse("35 0x7ffc0 0x0 0x1 0x2 0x3 0x4 0x7ffc00000010 0x7f1200001234\n"),
            waits
        );
        assert_eq!(parse("-1 0x7ffc00000010 0x7f1200001234"), waits);
        for other in ["", "-1", "35 1 2", "x"] {
            assert_eq!(parse(other), Doing::Unknown, "{other}");
        }
    }

    #[test]
    fn a_thread_that_sleeps_waits_and_has_not_run_meanwhile() {
        let (send, told) = std::sync::mpsc::channel();
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let sleeper = std::thread::spawn(move || {
            // SAFETY: asks the kernel, and cannot fail
            send.send(unsafe { libc::gettid() } as u32).expect("somebody listens");
            let _ = stopped.recv();
        });
        let thread = Thread::open(std::process::id(), told.recv().expect("a thread"));
        let waits = || matches!(thread.doing(), Doing::Waits { .. });
        let stays = || {
            let turns = thread.turns();
            waits() && thread.turns() == turns
        };
        while !stays() {
            std::thread::yield_now();
        }
        drop(stop);
        sleeper.join().expect("it ends");
        // who is joined is about to leave the kernel
        while thread.doing() != Doing::Unknown {
            std::thread::yield_now();
        }
    }
}
