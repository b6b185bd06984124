//! What the thread that gathers does, and since when: who looks after the process learns whether it stands still.
//!
//! That thread says what it begins; any other thread may ask. Neither waits for the other.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What the thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// Attaching to all that is there.
    Starting,
    /// Reading records, attaching to what is new, letting go of what is old.
    Following,
    Gathering,
    /// Reading the configuration again.
    Reloading,
    /// Writing to the terminal.
    Showing,
    Stopping,
}

impl Doing {
    fn words(self) -> &'static str {
        match self {
            Doing::Starting => "attaching to what is there",
            Doing::Following => "following programs and their libraries",
            Doing::Gathering => "gathering what is shown",
            Doing::Reloading => "reading the configuration again",
            Doing::Showing => "writing a page to the terminal",
            Doing::Stopping => "letting go of what was attached",
        }
    }

    /// How long it may take. A machine may have a thousand files to attach to at the start, and none later.
    fn patience(self) -> Duration {
        match self {
            Doing::Starting => Duration::from_secs(120),
            _ => Duration::from_secs(15),
        }
    }
}

/// What the thread that gathers does.
#[derive(Debug)]
pub struct Heartbeat(Mutex<(Doing, Instant)>);

/// That it stands still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stuck {
    pub doing: Doing,
    pub since: Duration,
}

impl Default for Heartbeat {
    fn default() -> Heartbeat {
        Heartbeat(Mutex::new((Doing::Starting, Instant::now())))
    }
}

impl Heartbeat {
    /// It begins something.
    pub fn beat(&self, doing: Doing) {
        self.set(doing, Instant::now());
    }

    /// `None`: it goes on, or has not taken too long yet.
    #[must_use]
    pub(crate) fn stuck(&self) -> Option<Stuck> {
        let (doing, began) = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let since = began.elapsed();
        (since >= doing.patience()).then_some(Stuck { doing, since })
    }

    fn set(&self, doing: Doing, began: Instant) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = (doing, began);
    }

    /// As [`Self::beat`], long ago.
    #[doc(hidden)]
    pub fn beat_before(&self, doing: Doing, ago: Duration) {
        if let Some(began) = Instant::now().checked_sub(ago) {
            self.set(doing, began);
        }
    }
}

impl fmt::Display for Stuck {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, doing) = (self.since.as_secs(), self.doing.words());
        write!(to, "the thread that gathers has stood still for {seconds} s, {doing}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(16);

    #[test]
    fn who_has_just_begun_does_not_stand_still() {
        let heart = Heartbeat::default();
        assert_eq!(heart.stuck(), None);
        heart.beat(Doing::Following);
        assert_eq!(heart.stuck(), None);
    }

    #[test]
    fn who_takes_too_long_is_told_of_with_what_it_does() {
        let heart = Heartbeat::default();
        heart.beat_before(Doing::Following, LONG);
        let said = heart.stuck().map(|stuck| stuck.to_string());
        let expected = "the thread that gathers has stood still for 16 s, following programs and their libraries";
        assert_eq!(said.as_deref(), Some(expected));
        heart.beat(Doing::Gathering);
        assert_eq!(heart.stuck(), None, "it goes on");
    }

    #[test]
    fn a_start_may_take_longer() {
        let heart = Heartbeat::default();
        heart.beat_before(Doing::Starting, LONG);
        assert_eq!(heart.stuck(), None);
        heart.beat_before(Doing::Starting, 8 * LONG);
        assert!(heart.stuck().is_some());
    }
}
