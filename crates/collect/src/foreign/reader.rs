//! Asks the process that touches what others control, for a limited time.
//!
//! Owns one such process for each thread that asks, and how much of that thread's time all questions together may take:
//! a moment each, and on the whole a quarter of it. A process that does not answer is given up, another is started, and
//! until the first is gone nothing is asked again about what it is stuck at.

use super::hands::HANDS;
use super::order::{Answer, Order};
use super::patience::longest_hold;
use super::stuck::{self, Standing, Subject};
use super::worker::Worker;
use std::cell::RefCell;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// One question takes a moment at most: this part of the time for which somebody is held at a probe.
const OF_A_HOLD: u32 = 2;
/// What did not answer before has this part of a moment.
const SECOND_CHANCE: u32 = 4;
/// Even when there is no time left: what is in memory takes less.
const LEAST: Duration = Duration::from_millis(20);
/// Moments for all questions that come one after the other.
const AT_ONCE: u32 = 4;
/// Of the time that passes, one part in so many may be spent waiting.
const SHARE: u32 = 4;
/// Answers that come sooner cost nothing.
const FREE: Duration = Duration::from_millis(2);

thread_local! {
    static READER: RefCell<Reader> = const { RefCell::new(Reader { worker: None, time: None }) };
}

/// Asks; what was read goes to `into`, all of it.
///
/// # Errors
/// What the system said, or that there was no answer in time.
pub(crate) fn ask(
    subject: &Subject,
    order: &Order,
    descriptor: Option<BorrowedFd<'_>>,
    into: Option<&mut [u8]>,
) -> io::Result<(Answer, Option<OwnedFd>)> {
    READER.with_borrow_mut(|reader| {
        reader.ask(subject, order, descriptor, |worker, answer| match (answer, into) {
            (Answer::Bytes(size), Some(into)) if *size == into.len() => {
                worker.channel().copy_out(into);
                Ok(())
            }
            (Answer::Bytes(_), Some(_)) => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        })
    })
}

/// Asks for a text of whatever length.
///
/// # Errors
/// What the system said, or that there was no answer in time.
pub(crate) fn ask_text(subject: &Subject, order: &Order) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    READER.with_borrow_mut(|reader| {
        reader.ask(subject, order, None, |worker, answer| {
            if let Answer::Bytes(size) = answer {
                text.resize((*size).min(super::worker::SHARED_BYTES), 0);
                worker.channel().copy_out(&mut text);
            }
            Ok(())
        })
    })?;
    Ok(text)
}

struct Reader {
    worker: Option<Worker>,
    time: Option<Time>,
}

impl Reader {
    fn ask(
        &mut self,
        subject: &Subject,
        order: &Order,
        descriptor: Option<BorrowedFd<'_>>,
        take: impl FnOnce(&Worker, &Answer) -> io::Result<()>,
    ) -> io::Result<(Answer, Option<OwnedFd>)> {
        let standing = stuck::check(subject)?;
        let worker = match self.worker.take() {
            Some(worker) => worker,
            None => Worker::start(HANDS)?,
        };
        let time = self.time.get_or_insert_with(|| Time::new(longest_hold() / OF_A_HOLD));
        let begun = Instant::now();
        let asked = worker.channel().send(order, descriptor);
        let patience = match standing {
            Standing::Good => time.patience(),
            Standing::Doubtful => time.patience().min(time.moment / SECOND_CHANCE),
        };
        let got = asked.and_then(|()| worker.channel().receive::<Answer>(Some(patience)));
        time.spend(begun.elapsed());
        if standing == Standing::Doubtful && got.is_ok() {
            stuck::answered(subject);
        }
        match got {
            Ok((Answer::Failed { code, why }, _)) => {
                self.worker = Some(worker);
                Err(code.map_or_else(|| io::Error::other(why), io::Error::from_raw_os_error))
            }
            Ok((answer, descriptor)) => {
                let taken = take(&worker, &answer);
                self.worker = Some(worker);
                taken.map(|()| (answer, descriptor))
            }
            Err(error) => {
                // whatever it is, the next question must not get the answer to this one
                let stays = worker.give_up();
                match error.kind() {
                    io::ErrorKind::TimedOut => stuck::note(subject, stays),
                    _ => return Err(io::Error::other("who reads for us has died")),
                }
                Err(stuck::no_answer())
            }
        }
    }
}

/// Time that may be spent waiting.
struct Time {
    moment: Duration,
    left: Duration,
    since: Instant,
}

impl Time {
    fn new(moment: Duration) -> Time {
        Time {
            moment,
            left: moment * AT_ONCE,
            since: Instant::now(),
        }
    }

    /// How long the next question may take.
    fn patience(&mut self) -> Duration {
        let passed = self.since.elapsed() / SHARE;
        self.since = Instant::now();
        self.left = (self.left + passed).min(self.moment * AT_ONCE);
        self.left.clamp(LEAST, self.moment)
    }

    fn spend(&mut self, took: Duration) {
        self.left = self.left.saturating_sub(took.saturating_sub(FREE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOMENT: Duration = Duration::from_secs(1);

    #[test]
    fn waiting_takes_a_limited_time_and_comes_back_with_time() {
        let mut time = Time::new(MOMENT);
        assert_eq!(time.patience(), MOMENT);
        for _ in 0..4 {
            time.spend(MOMENT);
        }
        assert!(time.patience() < Duration::from_millis(500));
        time.spend(Duration::from_secs(60));
        assert_eq!(time.patience(), LEAST);
        time.since -= Duration::from_secs(2);
        assert!(time.patience() >= Duration::from_millis(500));
        time.since -= Duration::from_secs(3600);
        time.patience();
        assert_eq!(time.left, 4 * MOMENT);
    }

    #[test]
    fn quick_answers_cost_nothing() {
        let mut time = Time::new(MOMENT);
        for _ in 0..10_000 {
            time.spend(FREE);
        }
        assert_eq!(time.patience(), MOMENT);
    }
}
