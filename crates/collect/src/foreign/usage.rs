//! What the processes cost that read for us: their time is ours.

use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Default)]
struct Children {
    alive: Vec<libc::pid_t>,
    /// Of those that have ended.
    seconds: f64,
}

static CHILDREN: Mutex<Children> = Mutex::new(Children {
    alive: Vec::new(),
    seconds: 0.0,
});

fn children() -> MutexGuard<'static, Children> {
    CHILDREN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One was started.
pub(super) fn started(pid: libc::pid_t) {
    children().alive.push(pid);
}

/// One has ended.
fn ended(pid: libc::pid_t, usage: &libc::rusage) {
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    let mut children = children();
    children.alive.retain(|alive| *alive != pid);
    children.seconds += seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Whether one has ended; it is reaped then.
pub(super) fn reap(pid: libc::pid_t) -> bool {
    // SAFETY: a child of ours that nobody else waits for; the call only fills the structure
    let (waited, usage) = unsafe {
        let mut usage = std::mem::zeroed::<libc::rusage>();
        let waited = libc::wait4(pid, std::ptr::null_mut(), libc::WNOHANG, &raw mut usage);
        (waited, usage)
    };
    if waited == pid {
        ended(pid, &usage);
    }
    waited != 0
}

/// CPU seconds of all of them so far, and resident bytes that are theirs alone.
#[must_use]
pub fn usage() -> (f64, u64) {
    let children = children();
    let each = children.alive.iter().map(|pid| of_living(*pid).unwrap_or_default());
    each.fold((children.seconds, 0), |(seconds, bytes), (more_seconds, more_bytes)| {
        (seconds + more_seconds, bytes + more_bytes)
    })
}

fn of_living(pid: libc::pid_t) -> Option<(f64, u64)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    // SAFETY: asks for a constant
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
    Some((ticks_in(&stat)? as f64 / ticks, own_bytes_in(&status)?))
}

/// User and system time: the twelfth and thirteenth field after the name.
fn ticks_in(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(") ")?.1.split_ascii_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

fn own_bytes_in(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    let kib: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_memory_are_read_whatever_a_process_is_called() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 0 0 0 30 12 0 0 20 0 1 0 99 1000 50";
        assert_eq!(ticks_in(stat), Some(42));
        assert_eq!(own_bytes_in("Name:\tx\nRssAnon:\t     300 kB\n"), Some(300 << 10));
        assert_eq!((ticks_in("7 (a"), own_bytes_in("")), (None, None));
        let this = of_living(std::process::id() as libc::pid_t);
        assert!(this.is_some_and(|(seconds, bytes)| seconds >= 0.0 && bytes > 0));
    }
}
