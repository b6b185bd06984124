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
    /// The main one, or all of one name.
    Thread,
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
    pub(crate) fn is_code(self) -> bool {
        matches!(self, Kind::Python | Kind::Native)
    }
}

/// One frame. All texts are escaped.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
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

/// Frames of call paths by number.
#[derive(Debug, Clone)]
pub(super) struct Frames {
    all: Vec<Frame>,
    bytes: usize,
    numbers: Map<Frame, Name>,
    /// Those of the kind, by what is asked for most often.
    leaves: Map<Box<str>, Name>,
}

impl Default for Frames {
    fn default() -> Frames {
        Frames {
            all: FIXED.iter().map(|(name, kind)| Frame::named(*kind, name)).collect(),
            bytes: 0,
            numbers: Map::default(),
            leaves: Map::default(),
        }
    }
}

impl Frames {
    /// Of a step of a call stack.
    pub(super) fn step(&mut self, step: &Step) -> Name {
        self.number(Frame::of(step))
    }

    /// Of a kernel, a direction of copies, or a call.
    pub(super) fn leaf(&mut self, text: &str) -> Name {
        if let Some(known) = self.leaves.get(text) {
            return *known;
        }
        let name = self.number(Frame::named(Kind::Leaf, text));
        if name != OTHER {
            self.leaves.insert(text.into(), name);
        }
        name
    }

    /// Of a process, which is named in the end.
    pub(super) fn process(&mut self, (pid, device): Process) -> Name {
        self.number(Frame::named(Kind::Process { pid, device }, ""))
    }

    /// Of all threads of that name: those that come and go do the same mostly.
    pub(super) fn threads(&mut self, is_main: bool, comm: &str) -> Name {
        let name = match (is_main, comm) {
            (true, _) => "main thread".to_owned(),
            (false, "") => "threads without a name".to_owned(),
            (false, _) => format!("threads named {comm}"),
        };
        self.number(Frame::named(Kind::Thread, &name))
    }

    /// Whether two frames have one function's name.
    pub(super) fn are_alike(&self, one: Name, other: Name) -> bool {
        let function = |name: Name| self.all.get(name as usize).map(|frame| &frame.function);
        function(one) == function(other)
    }

    fn number(&mut self, frame: Frame) -> Name {
        if let Some(known) = self.numbers.get(&frame) {
            return *known;
        }
        let bytes = self.bytes.saturating_add(2 * frame.bytes());
        if self.all.len() >= MOST || bytes > MOST_BYTES {
            return OTHER;
        }
        let name = self.all.len() as Name;
        self.bytes = bytes;
        self.all.push(frame.clone());
        self.numbers.insert(frame, name);
        name
    }

    /// All, with the names of processes, as far as `comm` knows them.
    pub(super) fn named(&self, comm: impl Fn(u32) -> Option<String>) -> Vec<Frame> {
        let with = |id: u32| comm(id).filter(|comm| !comm.is_empty());
        let named = self.all.iter().map(|frame| match frame.kind {
            Kind::Process { pid, device } => {
                let whose = with(pid).map_or_else(|| format!("process {pid}"), |comm| format!("{comm} {pid}"));
                let device = device.map_or_else(String::new, |device| format!(", device {device}"));
                Frame::named(frame.kind, &format!("{whose}{device}"))
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
        assert_eq!((frames.threads(true, ""), frames.process((7, None))), (OTHER, OTHER));
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
    fn processes_are_called_what_they_are_in_the_end_and_threads_of_one_name_are_one() {
        let mut frames = Frames::default();
        let names = [frames.process((7, Some(1))), frames.process((9, None))];
        let named = frames.named(|pid| (pid != 9).then(|| "py\u{1b}thon".to_owned()));
        let shown = names.map(|name| named[name as usize].shown.as_str());
        assert_eq!(shown, ["py\\u{1b}thon 7, device 1", "process 9"]);
        assert_eq!(frames.threads(false, "loader"), frames.threads(false, "loader"));
        assert_ne!(frames.threads(false, "loader"), frames.threads(true, "loader"));
    }
}
