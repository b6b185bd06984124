//! Frames of call paths by number, each kept once.

use super::Map;
use crate::frame::Language;
use crate::frame::path::Step;
use crate::text::quantity::escaped;

/// Frames that are told apart, and bytes of their names; what is beyond is [`OTHER`].
const MOST: usize = 1 << 16;
const MOST_BYTES: usize = 16 << 20;

/// Stands for a frame.
pub(super) type Name = u32;
/// A process, and the device that it is about.
pub(super) type Process = (u32, Option<u32>);
/// What found no room.
pub(super) const OTHER: Name = 0;
/// Time whose call is not known, or has no call stack.
pub(super) const NO_PATH: Name = 1;
/// Time that only totals know.
pub(super) const NO_ROW: Name = 2;
/// Outer frames of a stack that is too deep.
pub(super) const OUTER: Name = 3;
const FIXED: [(&str, Kind); 4] = [
    ("(other)", Kind::Aside),
    ("(no call path)", Kind::Aside),
    ("(without rows)", Kind::Aside),
    ("(outer frames)", Kind::Native),
];

/// What a frame stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `device`: as the process counts them, where it is time of one.
    Process {
        pid: u32,
        device: Option<u32>,
    },
    Thread {
        tid: u32,
    },
    Python,
    Native,
    /// What a device did, or the call that waited.
    Leaf,
    /// No frame: `(no call path)` and the like.
    Aside,
}

impl Kind {
    /// Whether it is a frame of a call stack.
    #[must_use]
    pub fn is_code(self) -> bool {
        matches!(self, Kind::Python | Kind::Native)
    }
}

/// One frame. All texts are escaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub kind: Kind,
    /// As a line of text has it: `train.py:42 forward`.
    pub shown: String,
    /// Without its place.
    pub function: String,
    /// Source file, or the one that holds the code.
    pub file: Option<String>,
    pub line: Option<u32>,
}

impl Frame {
    pub(super) fn root() -> Frame {
        Frame::named(Kind::Aside, "all")
    }

    fn named(kind: Kind, name: &str) -> Frame {
        let name = escaped(if name.is_empty() { "?" } else { name });
        Frame {
            kind,
            shown: name.clone(),
            function: name,
            file: None,
            line: None,
        }
    }

    fn of(step: &Step) -> Frame {
        Frame {
            kind: match step.language {
                Language::Python => Kind::Python,
                Language::Native => Kind::Native,
            },
            shown: step.shown.clone(),
            function: escaped(&step.function),
            file: step.file.as_deref().map(escaped),
            line: step.line,
        }
    }

    fn bytes(&self) -> usize {
        self.shown.len() + self.function.len() + self.file.as_ref().map_or(0, String::len)
    }
}

/// See the module.
#[derive(Debug, Clone)]
pub(super) struct Frames {
    all: Vec<Frame>,
    bytes: usize,
    steps: Map<Step, Name>,
    leaves: Map<Box<str>, Name>,
    others: Map<Kind, Name>,
}

impl Default for Frames {
    fn default() -> Frames {
        Frames {
            all: FIXED.iter().map(|(name, kind)| Frame::named(*kind, name)).collect(),
            bytes: 0,
            steps: Map::default(),
            leaves: Map::default(),
            others: Map::default(),
        }
    }
}

impl Frames {
    /// Of a step of a call stack.
    pub(super) fn step(&mut self, step: Step) -> Name {
        if let Some(known) = self.steps.get(&step) {
            return *known;
        }
        let Some(name) = self.push(Frame::of(&step)) else {
            return OTHER;
        };
        self.steps.insert(step, name);
        name
    }

    /// Of a kernel, a direction of copies, or a call.
    pub(super) fn leaf(&mut self, text: &str) -> Name {
        if let Some(known) = self.leaves.get(text) {
            return *known;
        }
        let Some(name) = self.push(Frame::named(Kind::Leaf, text)) else {
            return OTHER;
        };
        self.leaves.insert(text.into(), name);
        name
    }

    /// Of a process, which is named in the end.
    pub(super) fn process(&mut self, (pid, device): Process) -> Name {
        self.of(Kind::Process { pid, device })
    }

    /// The same of a thread.
    pub(super) fn thread(&mut self, tid: u32) -> Name {
        self.of(Kind::Thread { tid })
    }

    fn of(&mut self, kind: Kind) -> Name {
        if let Some(known) = self.others.get(&kind) {
            return *known;
        }
        let Some(name) = self.push(Frame::named(kind, "")) else {
            return OTHER;
        };
        self.others.insert(kind, name);
        name
    }

    fn push(&mut self, frame: Frame) -> Option<Name> {
        let bytes = self.bytes.saturating_add(2 * frame.bytes());
        if self.all.len() >= MOST || bytes > MOST_BYTES {
            return None;
        }
        self.bytes = bytes;
        self.all.push(frame);
        Some(self.all.len() as Name - 1)
    }

    /// All, with the names of processes and threads, as far as `comm` knows them.
    pub(super) fn named(&self, comm: impl Fn(u32) -> Option<String>) -> Vec<Frame> {
        let with = |id: u32| comm(id).filter(|comm| !comm.is_empty());
        let named = self.all.iter().map(|frame| match frame.kind {
            Kind::Process { pid, device } => {
                let whose = with(pid).map_or_else(|| format!("process {pid}"), |comm| format!("{comm} {pid}"));
                let device = device.map_or_else(String::new, |device| format!(", device {device}"));
                Frame::named(frame.kind, &format!("{whose}{device}"))
            }
            Kind::Thread { tid } => {
                let comm = with(tid).map_or_else(String::new, |comm| format!(" {comm}"));
                Frame::named(frame.kind, &format!("thread {tid}{comm}"))
            }
            _ => frame.clone(),
        });
        named.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_has_one_number_and_too_many_are_other() {
        let mut frames = Frames::default();
        assert_eq!(frames.leaf("gemm"), frames.leaf("gemm"));
        assert_ne!(frames.leaf("gemm"), frames.leaf("HtoD"));
        for number in 0..MOST {
            frames.leaf(&number.to_string());
        }
        assert_eq!(frames.leaf("one more"), OTHER);
        assert_eq!(frames.of(Kind::Thread { tid: 7 }), OTHER);
        assert!(frames.all.len() <= MOST);
    }

    #[test]
    fn long_names_end_before_memory_does() {
        let mut frames = Frames::default();
        let long = "x".repeat(MOST_BYTES / 8);
        let names: Vec<Name> = (0..9).map(|number| frames.leaf(&format!("{long}{number}"))).collect();
        assert!(names[0] != OTHER && names[8] == OTHER);
    }

    #[test]
    fn processes_and_threads_are_called_what_they_are_in_the_end() {
        let mut frames = Frames::default();
        let process = Kind::Process {
            pid: 7,
            device: Some(1),
        };
        let names = [process, Kind::Thread { tid: 8 }, Kind::Thread { tid: 9 }].map(|kind| frames.of(kind));
        let named = frames.named(|id| (id != 9).then(|| "py\u{1b}thon".to_owned()));
        let shown = names.map(|name| named[name as usize].shown.as_str());
        assert_eq!(
            shown,
            ["py\\u{1b}thon 7, device 1", "thread 8 py\\u{1b}thon", "thread 9"]
        );
    }
}
