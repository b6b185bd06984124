//! The end of whoever has no terminal any more and does not notice: who reads from one that is gone while it is asked for keys reads
//! nothing, for ever, and takes a processor for it.
//!
//! Owns that last way out alone; whoever notices ends by itself before.

use std::os::fd::RawFd;
use std::time::Duration;

/// Whoever has noticed has ended by then, also where it waited for recordings that it has begun.
const NOTICED: Duration = Duration::from_secs(20);

/// Ends this process a while after the terminal behind `fd` has gone.
pub(super) fn watch(fd: RawFd) {
    let watching = std::thread::Builder::new().name("hangup".to_owned());
    // without it the terminal's end is noticed all the same, mostly
    let _ = watching.spawn(move || {
        if wait_for_end(fd) {
            std::thread::sleep(NOTICED);
            std::process::exit(1);
        }
    });
}

/// Until there is nobody at the other end; false: that cannot be waited for.
fn wait_for_end(fd: RawFd) -> bool {
    let mut asked = libc::pollfd {
        fd,
        events: 0,
        revents: 0,
    };
    loop {
        // SAFETY: reads and fills one structure of ours
        let ready = unsafe { libc::poll(&raw mut asked, 1, -1) };
        match ready {
            1 => return asked.revents & libc::POLLNVAL == 0,
            _ if std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::screen::tests::Terminals;
    use std::io::Write;
    use std::os::fd::AsRawFd;

    #[test]
    fn the_end_of_a_terminal_is_waited_for_and_keys_are_none() {
        let Terminals { mut person, program } = Terminals::open();
        let fd = program.as_raw_fd();
        let waiting = std::thread::spawn(move || wait_for_end(fd));
        person.write_all(b"keys\n").unwrap();
        std::thread::sleep(Duration::from_millis(100));
        assert!(!waiting.is_finished());
        drop(person);
        assert!(waiting.join().unwrap());
        drop(program);
        assert!(!wait_for_end(fd.max(1 << 20)), "there is no such file");
    }
}
