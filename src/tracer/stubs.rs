//! Names for functions of the host that launch kernels, looked for in their files by a thread of its own.
//!
//! Owns what is asked and not answered yet. How a file says which kernel is whose is [`crate::elf`]'s business.

use crate::elf::{ElfFile, KernelStubs};
use crate::model::launches::Launches;
use crate::stack::Located;
use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Files that are kept open with what they register.
const MOST_FILES: usize = 64;
/// For so long after the last question: a file system with an open file cannot be unmounted.
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

/// See the module.
#[derive(Default)]
pub(super) struct StubPlane {
    thread: Option<(Sender<Question>, Receiver<Answer>)>,
    unanswered: usize,
}

impl StubPlane {
    /// A function launches a kernel for the first time.
    pub(super) fn ask(&mut self, tgid: u32, id: u64, stub: Located, launches: &mut Launches) {
        let thread = self.thread.get_or_insert_with(start);
        let place = stub.shown();
        if thread.0.send(Question { tgid, id, stub }).is_ok() {
            self.unanswered += 1;
        } else {
            launches.place(tgid, id, &place);
        }
    }

    /// Whether names are being looked for.
    pub(super) fn is_busy(&self) -> bool {
        self.unanswered > 0
    }

    /// Takes in what was found.
    pub(super) fn follow(&mut self, launches: &mut Launches) {
        while let Some(answer) = self.thread.as_ref().and_then(|(_, answers)| answers.try_recv().ok()) {
            self.apply(answer, launches);
        }
    }

    /// Waits for what is being looked for.
    pub(super) fn finish(&mut self, launches: &mut Launches) {
        let end = Instant::now() + PATIENCE;
        while self.is_busy() {
            let left = end.saturating_duration_since(Instant::now());
            let answer = self.thread.as_ref().map(|(_, answers)| answers.recv_timeout(left));
            let Some(Ok(answer)) = answer else { return };
            self.apply(answer, launches);
        }
    }

    fn apply(&mut self, answer: Answer, launches: &mut Launches) {
        self.unanswered = self.unanswered.saturating_sub(1);
        match answer.name {
            Ok(name) => launches.name_stub(answer.tgid, answer.id, name.as_bytes()),
            Err(place) => launches.place(answer.tgid, answer.id, &place),
        }
    }
}

fn start() -> (Sender<Question>, Receiver<Answer>) {
    let ((ask, questions), (answer, answers)) = (channel(), channel());
    let named = std::thread::Builder::new().name("stubs".to_owned());
    // without a thread nobody listens: each stub is told by its place
    drop(named.spawn(move || work(&questions, &answer)));
    (ask, answers)
}

/// A file with the kernels that its code registers; `None`: it cannot be read.
type Looked = Option<(ElfFile, KernelStubs)>;

fn work(questions: &Receiver<Question>, answers: &Sender<Answer>) {
    let mut files: HashMap<u32, Looked> = HashMap::new();
    loop {
        let first = match questions.recv_timeout(KEPT) {
            Ok(first) => first,
            Err(RecvTimeoutError::Timeout) => {
                files.clear();
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let mut of_file: HashMap<Option<u32>, Vec<Question>> = HashMap::new();
        for question in [first].into_iter().chain(questions.try_iter()) {
            of_file.entry(question.stub.number).or_default().push(question);
        }
        for (number, questions) in of_file {
            if files.len() >= MOST_FILES {
                files.clear();
            }
            let looked = match number {
                Some(number) => files.entry(number).or_insert_with(|| look(&questions)).as_ref(),
                None => None,
            };
            for answer in answer(looked, questions) {
                if answers.send(answer).is_err() {
                    return;
                }
            }
        }
    }
}

fn look(questions: &[Question]) -> Looked {
    let file = questions.iter().find_map(|question| question.stub.file.as_ref())?;
    let elf = file.elf().ok()?;
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
