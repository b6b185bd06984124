//! Questions that take long are answered by a thread of its own, which begins with the first one.
//!
//! Owns what is asked and not answered yet. What is asked, and what an answer means, is its owner's business.

use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::{Duration, Instant};

/// Answers questions until nobody asks any more, or listens.
pub(super) type Work<Question, Answer> = fn(&Receiver<Question>, &Sender<Answer>);

/// Questions that take long are answered by a thread of its own, which begins with the first one.
pub(super) struct Aside<Question, Answer> {
    name: &'static str,
    work: Work<Question, Answer>,
    thread: Option<(Sender<Question>, Receiver<Answer>)>,
    unanswered: usize,
}

impl<Question: Send + 'static, Answer: Send + 'static> Aside<Question, Answer> {
    /// Nobody has asked yet. `name`: that of the thread.
    pub(crate) fn new(name: &'static str, work: Work<Question, Answer>) -> Self {
        Aside {
            name,
            work,
            thread: None,
            unanswered: 0,
        }
    }

    /// Whether it will be answered: not where the system has no thread for us.
    pub(crate) fn ask(&mut self, question: Question) -> bool {
        let (name, work) = (self.name, self.work);
        let thread = self.thread.get_or_insert_with(|| start(name, work));
        let sent = thread.0.send(question).is_ok();
        self.unanswered += usize::from(sent);
        sent
    }

    /// Questions that are not answered yet.
    pub(crate) fn unanswered(&self) -> usize {
        self.unanswered
    }

    /// An answer that has come.
    pub(crate) fn take(&mut self) -> Option<Answer> {
        match self.thread.as_ref()?.1.try_recv() {
            Ok(answer) => {
                self.unanswered = self.unanswered.saturating_sub(1);
                Some(answer)
            }
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                // whoever answers has ended: what was asked stays so
                self.unanswered = 0;
                None
            }
        }
    }

    /// An answer, which is waited for until `end`; `None`: none comes by then.
    pub(crate) fn wait(&mut self, end: Instant) -> Option<Answer> {
        if self.unanswered == 0 {
            return None;
        }
        let left: Duration = end.saturating_duration_since(Instant::now());
        let answer = self.thread.as_ref()?.1.recv_timeout(left).ok()?;
        self.unanswered -= 1;
        Some(answer)
    }
}

fn start<Question: Send + 'static, Answer: Send + 'static>(
    name: &str,
    work: Work<Question, Answer>,
) -> (Sender<Question>, Receiver<Answer>) {
    let ((ask, questions), (answer, answers)) = (channel(), channel());
    let named = std::thread::Builder::new().name(name.to_owned());
    // without a thread nobody listens, and who asks is told so
    drop(named.spawn(move || work(&questions, &answer)));
    (ask, answers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn double(questions: &Receiver<u32>, answers: &Sender<u32>) {
        questions.iter().take_while(|number| *number > 0).for_each(|number| {
            let _ = answers.send(2 * number);
        });
    }

    #[test]
    fn what_is_asked_is_answered_in_turn() {
        let mut aside = Aside::new("doubling", double);
        assert_eq!((aside.take(), aside.unanswered()), (None, 0));
        assert!(aside.ask(1) && aside.ask(2));
        let end = Instant::now() + Duration::from_secs(60);
        assert_eq!((aside.wait(end), aside.wait(end)), (Some(2), Some(4)));
        assert_eq!(
            (aside.wait(end), aside.unanswered()),
            (None, 0),
            "nothing is waited for"
        );
    }

    #[test]
    fn where_nobody_answers_nobody_waits() {
        let mut aside = Aside::new("doubling", double);
        aside.ask(0); // ends the thread
        let end = Instant::now() + Duration::from_secs(60);
        assert_eq!(aside.wait(end), None);
        assert!(!aside.ask(1));
    }
}
