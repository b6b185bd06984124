//! Who calls a function of a library: the kernel programs at that function alone, and names for what they send.

use gpuscope::elf::ElfFile;
use gpuscope::frame::{Frame, Language};

use gpuscope::engine::{Engine, Hooks, Point, Records, Stream};
use gpuscope::probe::{Session, Setup, Sites, Tier};
use gpuscope::stack::wire::{SiteCounters, SiteEvent};
use gpuscope::stack::{Kept, Resolver, Stack};
use gpuscope::wire::{MemoryCall, SPEC_FALLIBLE, SPEC_MEMORY, SPEC_RETURN, SPEC_SITE, Spec};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Probes at one function that allocates.
pub struct Callers {
    engine: Box<dyn Engine>,
    hooks: Hooks,
    calls: Records,
    resolver: Resolver,
}

/// What became of one program's calls.
pub struct Seen {
    /// One for each stack that was sent, in that order.
    pub stacks: Vec<Stack>,
    pub events: Vec<SiteEvent>,
    /// The site of each call.
    pub sites: Vec<u64>,
    /// The thread of each.
    pub threads: Vec<u32>,
    pub notes: Vec<String>,
    pub counters: SiteCounters,
}

impl Callers {
    /// Probes `function` of `library`, at its return or (`returns` false) its entry.
    pub fn of(library: &Path, function: &str, tier: Option<Tier>, returns: bool, sites: Sites) -> Callers {
        let flags = SPEC_FALLIBLE | SPEC_MEMORY | SPEC_SITE | if returns { SPEC_RETURN } else { 0 };
        let spec = Spec { flags, ..Spec::EMPTY };
        let setup = Setup {
            specs: vec![spec],
            ring_bytes: 4096,
            memory_ring_bytes: 8 << 20,
            only_targets: true,
            follow_forks: true,
            tier,
            sites,
            ..Setup::default()
        };
        let engine: Box<dyn Engine> = Box::new(Session::load(&setup).expect("the kernel programs"));
        let elf = ElfFile::open(library).expect("the library");
        let symbols = elf.symbols_where(&|name| name == function).expect("its symbols");
        let offset = symbols.first().expect("the function").file_offset;
        let point = Point::entry(offset, 0, returns);
        let mut hooks = engine.attach(library, &[point]).expect("a probe");
        hooks.extend(engine.attach_lifecycle().expect("tracepoints"));
        let calls = Records::open(engine.as_ref(), Stream::Memory).expect("the ring");
        Callers {
            engine,
            hooks,
            calls,
            resolver: Resolver::default(),
        }
    }

    /// Runs a program that says "ready", calls, and says "done"; names its stacks when it has ended.
    pub fn follow(mut self, command: &mut Command, before_calls: impl FnOnce()) -> Seen {
        let mut program = Stepping::start(command);
        program.until("ready");
        let pid = program.child.id();
        self.engine.add_target(pid).expect("a process");
        self.resolver.learn(pid);
        for (pid, python) in self.resolver.take_interpreters() {
            self.engine.set_python(pid, &python).expect("room for an interpreter");
        }
        before_calls();
        program.go();
        program.until("done");
        let (events, kept, calls) = self.take();
        program.go();
        assert!(program.child.wait().expect("a child").success());
        let stacks = kept.iter().map(|kept| self.resolver.name(kept)).collect();
        drop(self.hooks);
        let (notes, counters) = (self.resolver.take_notes(), self.engine.site_counters());
        Seen {
            stacks,
            events,
            sites: calls.iter().map(|call| call.site).collect(),
            threads: calls.iter().map(|call| call.tid).collect(),
            notes,
            counters,
        }
    }

    fn take(&mut self) -> (Vec<SiteEvent>, Vec<Kept>, Vec<MemoryCall>) {
        let (mut events, mut kept, mut calls) = (Vec::new(), Vec::new(), Vec::new());
        for record in self.calls.drain().borrow().records() {
            if let Some(event) = SiteEvent::parse(record) {
                kept.push(self.resolver.keep(&event));
                events.push(event);
            } else {
                calls.push(MemoryCall::parse(record).expect("a memory call"));
            }
        }
        (events, kept, calls)
    }
}

/// A program that waits for a line between its steps.
struct Stepping {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Stepping {
    fn start(command: &mut Command) -> Stepping {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a program");
        let (input, output) = (
            child.stdin.take().expect("a pipe"),
            child.stdout.take().expect("a pipe"),
        );
        Stepping {
            child,
            input,
            output: BufReader::new(output),
        }
    }

    fn until(&mut self, word: &str) {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        assert_eq!(line.trim_end(), word);
    }

    fn go(&mut self) {
        self.input.write_all(b"\n").expect("a program that reads");
    }
}

impl Drop for Stepping {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `function file:line` of each frame, without folders.
pub fn told(stack: &Stack) -> Vec<String> {
    stack.frames.iter().map(tell).collect()
}

fn tell(frame: &Frame) -> String {
    let file = frame
        .file
        .as_deref()
        .map(|file| file.rsplit('/').next().unwrap_or(file));
    match (file, frame.line) {
        (Some(file), Some(line)) => format!("{} {file}:{line}", frame.function),
        _ => frame.function.clone(),
    }
}

/// The Python frames in allocate.py of each stack.
pub fn python_callers(seen: &Seen) -> BTreeSet<Vec<String>> {
    let is_python = |frame: &&Frame| frame.language == Language::Python;
    let ours = |stack: &Stack| {
        let frames = stack.frames.iter().filter(is_python).map(tell);
        frames.filter(|frame| !frame.contains("threading.py:")).collect()
    };
    seen.stacks.iter().map(ours).collect()
}

/// What `allocate.py` does, by a Python that tells qualified names (3.11 and later) or not.
pub fn expected_python(qualified: bool) -> BTreeSet<Vec<String>> {
    let stacks: [&[&str]; 5] = [
        &["Layer.forward:24", "<module>:65"],
        &["Layer.forward:24", "generate:35", "work:50"],
        &[
            "Layer.forward:24",
            "recurse.<locals>.<lambda>:41",
            "recurse:41",
            "recurse:40",
            "recurse:40",
            "recurse:40",
            "work:51",
        ],
        &["Layer.forward:24", "größe:45", "work:52"],
        &["Layer.forward:24", "work.<locals>.<lambda>:53", "work:53"],
    ];
    let frame = |place: &&str| {
        let (function, line) = place.rsplit_once(':').expect("a place");
        let short = function.rsplit('.').next().unwrap_or(function);
        format!("{} allocate.py:{line}", if qualified { function } else { short })
    };
    stacks.iter().map(|stack| stack.iter().map(frame).collect()).collect()
}
