//! What the kernel programs could not read, because its page was not there, is read aside.
//!
//! Owns what is asked, and what an answer means. How it is read is [`crate::probe::late_read`]'s business.

use super::Tracer;
use super::aside::Aside;
use crate::decode::Call;
use crate::model::launches::Launches;
use crate::probe::late_read::{constant_text, kernel_name};
use crate::wire::{self, CallHeader, KernelEvent};
use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

/// A run ends without what takes longer.
const PATIENCE: Duration = Duration::from_secs(2);
/// So long lines wait for a kernel or a text that is being read: within each second, as nothing comes out of rings meanwhile.
const LINE_PATIENCE: Duration = Duration::from_millis(100);
const LINES_WAIT_EVERY: Duration = Duration::from_secs(1);
/// Beyond that nothing more is asked.
const MOST_UNANSWERED: usize = 1024;

/// A text of one call: thread, time of entry, number.
type TextKey = (u32, u64, usize);

struct Question {
    pid: u32,
    address: u64,
    about: About,
}

#[derive(Clone, Copy)]
enum About {
    /// The handle of a kernel with that id.
    Kernel(u64),
    Text(TextKey),
}

struct Answer {
    pid: u32,
    about: About,
    /// With it, whether it goes on; else a reason of `wire::KERNEL_…`.
    text: Result<(Vec<u8>, bool), u64>,
}

/// Reads aside what the kernel programs could not read, because its page was not there.
pub(super) struct LatePlane {
    reads: Aside<Question, Answer>,
    texts: HashMap<TextKey, Vec<u8>>,
    /// How long lines have waited, since when.
    waited: (Duration, Instant),
}

impl Default for LatePlane {
    fn default() -> LatePlane {
        LatePlane {
            reads: Aside::new("late-reads", work),
            texts: HashMap::new(),
            waited: (Duration::ZERO, Instant::now()),
        }
    }
}

impl LatePlane {
    /// A handle leads to a page that is not there.
    pub(super) fn ask_kernel(&mut self, event: &KernelEvent<'_>, launches: &mut Launches) {
        let question = Question {
            pid: event.tgid,
            address: event.handle,
            about: About::Kernel(event.id),
        };
        if !self.ask(question) {
            launches.give_up(event.tgid, event.id, wire::KERNEL_NO_NAME);
        }
    }

    fn ask(&mut self, question: Question) -> bool {
        self.reads.unanswered() < MOST_UNANSWERED && self.reads.ask(question)
    }

    /// Whether answers are still to come.
    pub(super) fn is_busy(&self) -> bool {
        self.reads.unanswered() > 0
    }

    /// Takes in what was read.
    pub(super) fn follow(&mut self, launches: &mut Launches) {
        while let Some(answer) = self.reads.take() {
            self.apply(answer, launches);
        }
    }

    /// Waits for what is being read at the end.
    pub(super) fn finish(&mut self, launches: &mut Launches) {
        self.wait(launches, PATIENCE);
    }

    /// Waits a moment for what is being read, before lines go out that may need it.
    pub(super) fn settle(&mut self, launches: &mut Launches) {
        if !self.is_busy() {
            return;
        }
        let begun = Instant::now();
        if begun.duration_since(self.waited.1) >= LINES_WAIT_EVERY {
            self.waited = (Duration::ZERO, begun);
        }
        self.wait(launches, LINE_PATIENCE.saturating_sub(self.waited.0));
        self.waited.0 += begun.elapsed();
    }

    fn wait(&mut self, launches: &mut Launches, patience: Duration) {
        let end = Instant::now() + patience;
        while let Some(answer) = self.reads.wait(end) {
            self.apply(answer, launches);
        }
    }

    fn apply(&mut self, answer: Answer, launches: &mut Launches) {
        match (answer.about, answer.text) {
            (About::Kernel(id), Ok((name, cut))) => launches.learn(&KernelEvent {
                tgid: answer.pid,
                id,
                handle: 0,
                tag: wire::KERNEL_UNREAD,
                name: &name,
                cut,
            }),
            (About::Kernel(id), Err(why)) => launches.give_up(answer.pid, id, why),
            (About::Text(key), Ok((text, _))) if self.texts.len() < MOST_UNANSWERED => {
                self.texts.insert(key, text);
            }
            (About::Text(_), _) => {}
        }
    }

    /// The event with the texts that were read since; `None`: there are none.
    pub(super) fn completed(&mut self, event: &[u8]) -> Option<Vec<u8>> {
        if self.texts.is_empty() {
            return None;
        }
        let header = CallHeader::parse(event)?;
        let mut completed = None;
        for index in missing_texts(event) {
            if let Some(text) = self.texts.remove(&(header.tid, header.entered, index)) {
                wire::put_text(completed.get_or_insert_with(|| event.to_vec()), index, &text);
            }
        }
        completed
    }
}

/// Texts of an event that could not be read.
fn missing_texts(event: &[u8]) -> impl Iterator<Item = usize> + use<> {
    let (size, unreadable) = (event.get(46).copied(), event.get(47).copied().unwrap_or(0));
    let is_missing =
        move |index: &usize| size == Some(wire::SIZE_LARGE) && unreadable & wire::UNREADABLE_TEXT[*index] != 0;
    (0..wire::TEXTS).filter(is_missing)
}

impl Tracer {
    /// Asks for the texts of new events that could not be read.
    pub(super) fn ask_for_texts(&mut self) {
        let inbox = self.events.inbox();
        let inbox = inbox.borrow();
        for slot in &inbox.slots {
            let event = inbox.event(*slot);
            for index in missing_texts(event) {
                let call = Call::decode(event, &self.rows.catalog, &self.rows.plans);
                let Some((call, address)) = call.and_then(|call| Some((call, call.text_address(index)?))) else {
                    continue;
                };
                self.memory.late.ask(Question {
                    pid: call.header.tgid,
                    address,
                    about: About::Text((call.header.tid, call.header.entered, index)),
                });
            }
        }
    }
}

fn work(questions: &Receiver<Question>, answers: &Sender<Answer>) {
    for question in questions {
        let text = match question.about {
            About::Kernel(_) => kernel_name(question.pid, question.address),
            About::Text(_) => constant_text(question.pid, question.address, wire::TEXT - 1)
                .map(|text| (text, false))
                .ok_or(wire::KERNEL_NO_NAME),
        };
        let answer = Answer {
            pid: question.pid,
            about: question.about,
            text,
        };
        if answers.send(answer).is_err() {
            return;
        }
    }
}
