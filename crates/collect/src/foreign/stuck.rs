//! What does not answer: not asked again for a while, and shortly then.
//!
//! A process that waits for it may be past killing until it answers, or die at once: neither tells whether the next
//! question is answered.

use super::worker;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// That do not answer at a time. With more than that, nothing of others is read any more.
const MOST: usize = 32;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(32);
/// What nobody asks about any more is forgotten.
const FORGOTTEN: Duration = Duration::from_secs(120);

#[derive(Debug)]
struct Stuck {
    subject: Subject,
    /// The process that waits, until it is gone.
    pid: Option<libc::pid_t>,
    pause: Duration,
    /// When it may be asked again.
    until: Instant,
}

static STUCK: Mutex<Vec<Stuck>> = Mutex::new(Vec::new());

/// What is to be thought of a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    Good,
    /// It did not answer before.
    Doubtful,
}

fn known() -> MutexGuard<'static, Vec<Stuck>> {
    let mut known = STUCK.lock().unwrap_or_else(PoisonError::into_inner);
    known.retain_mut(|stuck| {
        stuck.pid = stuck.pid.filter(|pid| !worker::is_gone(*pid));
        stuck.pid.is_some() || stuck.until.elapsed() < FORGOTTEN
    });
    known
}

/// Refuses what does not answer.
pub(super) fn check(subject: &Subject) -> io::Result<Standing> {
    let known = known();
    match known.iter().find(|stuck| stuck.subject == *subject) {
        Some(stuck) if stuck.pid.is_some() || Instant::now() < stuck.until => Err(no_answer()),
        Some(_) => Ok(Standing::Doubtful),
        None if known.len() >= MOST => Err(no_answer()),
        None => Ok(Standing::Good),
    }
}

/// There was no answer. `pid`: who waits for it and cannot be ended.
pub(super) fn note(subject: &Subject, pid: Option<libc::pid_t>) {
    let mut known = known();
    let place = known.iter().position(|stuck| stuck.subject == *subject);
    let before = place.map(|place| known.swap_remove(place));
    let pause = before.map_or(FIRST_PAUSE, |stuck| (stuck.pause * 2).min(LONGEST_PAUSE));
    known.push(Stuck {
        subject: subject.clone(),
        pid,
        pause,
        until: Instant::now() + pause,
    });
}

/// There was an answer.
pub(super) fn answered(subject: &Subject) {
    known().retain(|stuck| stuck.subject != *subject);
}

/// Whether an error says that there was no answer in time.
#[must_use]
pub(crate) fn is_no_answer(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::TimedOut
}

pub(super) fn no_answer() -> io::Error {
    io::Error::new(
        io::ErrorKind::TimedOut,
        "it does not answer: a file system that hangs, or a machine that is very busy",
    )
}

/// What does not answer now, in words.
#[must_use]
pub fn stuck() -> Vec<String> {
    let words = |stuck: &Stuck| match &stuck.subject {
        Subject::Device(device) => format!("a file on device {device} does not answer (a file system that hangs?)"),
        Subject::Process(pid) => format!("the memory of process {pid} does not answer (a mapped file that hangs?)"),
        Subject::Path(path) => format!("{} does not answer (a file system that hangs?)", path.display()),
    };
    let mut words: Vec<String> = known().iter().map(words).collect();
    words.sort_unstable();
    words.dedup();
    words
}

/// What may not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Subject {
    /// A file system, by the number that maps have for it.
    Device(String),
    Process(u32),
    Path(PathBuf),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_answer_is_left_alone_for_ever_longer_until_it_does() {
        let subject = Subject::Path("/a path of this test alone".into());
        assert_eq!(check(&subject).unwrap(), Standing::Good);
        note(&subject, None);
        assert!(is_no_answer(&check(&subject).unwrap_err()));
        assert!(stuck().iter().any(|words| words.contains("of this test alone")));
        let wait = |at: Duration| {
            let mut known = known();
            let stuck = known.iter_mut().find(|stuck| stuck.subject == subject).unwrap();
            stuck.until -= at;
        };
        wait(FIRST_PAUSE);
        assert_eq!(check(&subject).unwrap(), Standing::Doubtful);
        note(&subject, None);
        wait(FIRST_PAUSE);
        assert!(check(&subject).is_err(), "twice as long");
        answered(&subject);
        assert_eq!(check(&subject).unwrap(), Standing::Good);
    }
}
