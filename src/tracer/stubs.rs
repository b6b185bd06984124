//! Names for functions of the host that launch kernels, looked for in their files aside.
//!
//! Owns what is asked, and for how long files stay open for it. How a file says which kernel is whose is [`crate::elf`]'s business.

use super::aside::Aside;
use crate::elf::{ElfFile, KernelStubs};
use crate::model::launches::Launches;
use crate::stack::Located;
use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// Files that are kept open with what they register.
const MOST_FILES: usize = 64;
/// A file that nobody asks about for so long is closed: a file system with an open file cannot be unmounted.
const KEPT: Duration = Duration::from_secs(10);
/// A run ends without names that take longer.
const PATIENCE: Duration = Duration::from_secs(20);

struct Question {
    tgid: u32,
    id: u64,
    stub: Located,
}

struct Answer {
    tgid: u32,
    id: u64,
    /// `Err`: where it lies.
    name: Result<String, String>,
}

/// Names for functions of the host that launch kernels, looked for in their files aside.
pub(super) struct StubPlane(Aside<Question, Answer>);

impl Default for StubPlane {
    fn default() -> StubPlane {
        StubPlane(Aside::new("stubs", work))
    }
}

impl StubPlane {
    /// A function launches a kernel for the first time.
    pub(super) fn ask(&mut self, tgid: u32, id: u64, stub: Located, launches: &mut Launches) {
        let place = stub.shown();
        if !self.0.ask(Question { tgid, id, stub }) {
            launches.place(tgid, id, &place);
        }
    }

    /// Whether names are being looked for.
    pub(super) fn is_busy(&self) -> bool {
        self.0.unanswered() > 0
    }

    /// Takes in what was found.
    pub(super) fn follow(&mut self, launches: &mut Launches) {
        while let Some(answer) = self.0.take() {
            apply(answer, launches);
        }
    }

    /// Waits for what is being looked for.
    pub(super) fn finish(&mut self, launches: &mut Launches) {
        let end = Instant::now() + PATIENCE;
        while let Some(answer) = self.0.wait(end) {
            apply(answer, launches);
        }
    }
}

fn apply(answer: Answer, launches: &mut Launches) {
    match answer.name {
        Ok(name) => launches.name_stub(answer.tgid, answer.id, name.as_bytes()),
        Err(place) => launches.place(answer.tgid, answer.id, &place),
    }
}

/// A file with the kernels that its code registers; `None`: it cannot be read.
type Looked = Option<(ElfFile, KernelStubs)>;

/// By number, with when each was asked about last.
type Files = HashMap<u32, (Looked, Instant)>;

fn work(questions: &Receiver<Question>, answers: &Sender<Answer>) {
    let mut files = Files::new();
    loop {
        let first = match questions.recv_timeout(KEPT) {
            Ok(first) => Some(first),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        files.retain(|_, (_, asked)| asked.elapsed() < KEPT);
        let mut of_file: HashMap<Option<u32>, Vec<Question>> = HashMap::new();
        for question in first.into_iter().chain(questions.try_iter()) {
            of_file.entry(question.stub.number).or_default().push(question);
        }
        for (number, questions) in of_file {
            let looked = number.and_then(|number| known(&mut files, number, &questions));
            for answer in answer(looked, questions) {
                if answers.send(answer).is_err() {
                    return;
                }
            }
        }
    }
}

fn known<'a>(files: &'a mut Files, number: u32, questions: &[Question]) -> Option<&'a (ElfFile, KernelStubs)> {
    if files.len() >= MOST_FILES && !files.contains_key(&number) {
        files.clear();
    }
    let now = Instant::now();
    let (looked, asked) = files.entry(number).or_insert_with(|| (look(questions), now));
    *asked = now;
    looked.as_ref()
}

fn look(questions: &[Question]) -> Looked {
    let file = questions.iter().find_map(|question| question.stub.file.as_ref())?;
    let elf = ElfFile::of_foreign(file).ok()?;
    let stubs = elf.kernel_stubs().unwrap_or_default();
    Some((elf, stubs))
}

fn answer(looked: Option<&(ElfFile, KernelStubs)>, questions: Vec<Question>) -> Vec<Answer> {
    let registered = |offset: u64| looked.and_then(|(elf, stubs)| stubs.name(elf, offset));
    let mut names: HashMap<u64, String> = questions
        .iter()
        .filter_map(|question| Some((question.stub.offset, registered(question.stub.offset)?)))
        .collect();
    let offsets = questions.iter().map(|question| question.stub.offset);
    let missing: Vec<u64> = offsets.filter(|offset| !names.contains_key(offset)).collect();
    if let (Some((elf, _)), false) = (looked, missing.is_empty()) {
        names.extend(elf.kernels_by_symbol(&missing));
    }
    let answer = |question: Question| Answer {
        tgid: question.tgid,
        id: question.id,
        name: names
            .get(&question.stub.offset)
            .cloned()
            .ok_or_else(|| question.stub.shown()),
    };
    questions.into_iter().map(answer).collect()
}
