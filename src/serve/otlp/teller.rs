//! Tells on stderr that metrics are not pushed, and that they are again: once each, and a reminder now and then.

use super::Notice;
use std::time::{Duration, Instant};

/// Between two words of trouble that lasts.
const REMIND: Duration = Duration::from_secs(600);

/// Tells on stderr that metrics are not pushed.
pub(super) struct Teller {
    notice: Box<Notice>,
    endpoint: String,
    trouble: Option<Trouble>,
}

struct Trouble {
    since: Instant,
    reported: Instant,
}

impl Teller {
    pub(super) fn new(notice: Box<Notice>, endpoint: &str) -> Teller {
        Teller {
            notice,
            endpoint: endpoint.to_owned(),
            trouble: None,
        }
    }

    /// An attempt did not succeed; returns it in words.
    pub(super) fn failed(&mut self, why: &str) -> String {
        let words = format!("failed to push metrics to {}: {why}", self.endpoint);
        let now = Instant::now();
        let since = self.trouble.as_ref().map_or(now, |trouble| trouble.since);
        let quiet = self
            .trouble
            .as_ref()
            .is_some_and(|trouble| now - trouble.reported < REMIND);
        if !quiet {
            (self.notice)(&match since == now {
                true => format!("{words}; tried again, /metrics counts what fails"),
                false => format!("{words}; so it has been for {} min", (now - since).as_secs() / 60),
            });
            self.trouble = Some(Trouble { since, reported: now });
        }
        words
    }

    /// A push was taken.
    pub(super) fn succeeded(&mut self) {
        if let Some(trouble) = self.trouble.take() {
            let seconds = trouble.since.elapsed().as_secs();
            (self.notice)(&format!("metrics are pushed again, after {seconds} s"));
        }
    }

    pub(super) fn say(&self, words: &str) {
        (self.notice)(words);
    }
}
