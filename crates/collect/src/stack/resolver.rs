//! Turns what the kernel programs collected into named stacks.

use super::code::Code;
use super::interpreter::{Finder, Found, Interpreter};
use super::memory::ProcessMemory;
use super::merge;
use super::names::nameless;
use super::native::{MOST_KNOWN, Natives, Place};
use super::regions::{FileId, Region, region_at, regions};
use super::wire::{self, Python, PythonFrame, SiteEvent};
use crate::foreign::ForeignFile;
use crate::frame::{Frame, Language};
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// The address space of a process may have changed when it was read longer ago than this.
const FRESH: Duration = Duration::from_millis(100);
/// The same, where a stack leads to what was data then.
const DOUBTED: Duration = Duration::from_millis(10);
/// Functions that only the C library calls: a stack that has one is whole.
const OUTERMOST: [&str; 8] = [
    "_start",
    "main",
    "__libc_start_main",
    "__libc_start_call_main",
    "start_thread",
    "clone",
    "clone3",
    "__clone",
];
const ANY_LOSS: u32 = wire::NATIVE_CUT
    | wire::NATIVE_FULL
    | wire::NATIVE_NONE
    | wire::PYTHON_FULL
    | wire::PYTHON_BROKEN
    | wire::THREADS_FULL;

/// Where a call came from, innermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stack {
    pub frames: Vec<Frame>,
    /// There are frames that could not be followed.
    pub truncated: bool,
}

/// A stack that no longer needs its process: addresses in files, Python functions by name.
#[derive(Clone, Debug)]
pub struct Kept {
    native: Vec<Place>,
    python: Vec<merge::Python>,
    flags: u32,
}

impl Kept {
    /// Whether it has no frame.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.native.is_empty() && self.python.is_empty()
    }
}

/// A function in a file.
#[derive(Debug)]
pub struct Located {
    /// The same for the same file; `None`: it lies in no file.
    pub number: Option<u32>,
    pub module: Option<String>,
    /// In the file; of what lies in none, the address.
    pub offset: u64,
    /// `None`: it could not be opened.
    pub file: Option<ForeignFile>,
}

impl Located {
    /// `libx.so+0x1234`
    #[must_use]
    pub fn shown(&self) -> String {
        match &self.module {
            Some(module) => format!("{module}+{:#x}", self.offset),
            None => format!("{:#x}", self.offset),
        }
    }
}

/// Names stacks. What it has learned of a process outlives it.
#[derive(Default)]
pub struct Resolver {
    natives: Natives,
    finder: Finder,
    processes: HashMap<u32, Process>,
    interpreters: Vec<(u32, Python)>,
    notes: BTreeSet<String>,
    told: BTreeSet<String>,
}

#[derive(Default)]
struct Process {
    regions: Vec<Region>,
    read: Option<Instant>,
    interpreter: Option<Box<Interpreter>>,
    codes: HashMap<u64, KnownCode>,
}

/// A Python function and the places of it that were seen, by instruction.
struct KnownCode {
    code: Code,
    frames: HashMap<u64, Rc<Frame>>,
}

impl Resolver {
    /// Looks at what process `pid` maps: to be called when it has loaded a program or a library.
    pub fn learn(&mut self, pid: u32) {
        // it may have ended: then what was learned before has to do
        let mapped = regions(pid).unwrap_or_default();
        if mapped.is_empty() {
            return;
        }
        self.natives.keep_files(pid, &mapped);
        let process = self.processes.entry(pid).or_default();
        process.regions = mapped;
        process.read = Some(Instant::now());
        if process.interpreter.is_some() {
            return;
        }
        let Ok(program) = std::fs::read_link(format!("/proc/{pid}/exe")) else {
            return;
        };
        match self.finder.find(&ProcessMemory(pid), pid, &program, &process.regions) {
            Found::Nothing => {}
            Found::Unusable(why) => drop(self.notes.insert(why)),
            Found::Interpreter(found) => {
                self.interpreters.push((pid, found.wire()));
                process.interpreter = Some(found);
            }
        }
    }

    /// Whether process `pid` was looked at.
    pub fn knows(&self, pid: u32) -> bool {
        self.processes.contains_key(&pid)
    }

    /// What the kernel programs are to be told about interpreters found since the last time, by process.
    pub fn take_interpreters(&mut self) -> Vec<(u32, Python)> {
        std::mem::take(&mut self.interpreters)
    }

    /// Forgets process `pid`, which has ended or runs another program now.
    pub fn forget(&mut self, pid: u32) {
        self.processes.remove(&pid);
    }

    /// Whether files are kept open to be named.
    pub fn keeps_files(&self) -> bool {
        self.natives.keeps_files()
    }

    /// Lets go of files that no process maps. What was kept of stacks in them is not named any more.
    pub fn keep_only(&mut self, mapped: &HashSet<FileId>) {
        self.natives.keep_only(mapped);
    }

    /// What cannot be seen, said once each.
    pub fn take_notes(&mut self) -> Vec<String> {
        let mut notes = std::mem::take(&mut self.notes);
        notes.append(&mut self.natives.take_notes());
        notes
            .into_iter()
            .filter(|note| self.told.insert(note.clone()))
            .collect()
    }

    /// Where in which file a function of process `pid` lies.
    pub fn locate(&mut self, pid: u32, address: u64) -> Located {
        let known = |process: &Process| region_at(&process.regions, address).is_some();
        if !self.processes.get(&pid).is_some_and(known) {
            self.learn(pid);
        }
        let regions = self.processes.get(&pid).map_or(&[][..], |process| &process.regions);
        let place = self.natives.place(pid, regions, address);
        let mapped = self.natives.file_of(place);
        Located {
            number: place.file.filter(|_| mapped.is_some()),
            module: mapped.map(|mapped| mapped.module.clone()),
            offset: place.offset,
            file: mapped.and_then(|mapped| mapped.file.clone()),
        }
    }

    /// Reads what the process takes with it when it ends; to be called at once.
    pub fn keep(&mut self, site: &SiteEvent) -> Kept {
        if !self.knows(site.tgid) {
            self.learn(site.tgid);
        }
        // what ends soonest comes first
        let python = site
            .frames
            .iter()
            .map(|frame| (self.python(site.tgid, *frame), frame.is_entry()));
        let python = python.collect();
        let current = self.refresh(site);
        let regions = self
            .processes
            .get(&site.tgid)
            .map_or(&[][..], |process| &process.regions);
        let whole = code_of(&site.native, regions, current);
        let calls = call_addresses(site, whole, regions);
        // what follows 0 is nothing
        let is_cut = site.native.get(whole.len()).is_some_and(|address| *address != 0);
        Kept {
            native: calls
                .map(|address| self.natives.place(site.tgid, regions, address))
                .collect(),
            python,
            flags: site.flags | if is_cut { wire::NATIVE_CUT } else { 0 },
        }
    }

    /// What is known of a stack without looking into files: its Python functions, or else where in which files it was.
    pub fn bare(&self, kept: &Kept) -> Vec<Frame> {
        if !kept.python.is_empty() {
            return kept.python.iter().map(|(frame, _)| Frame::clone(frame)).collect();
        }
        let module = |place: Place| self.natives.file_of(place).map(|mapped| mapped.module.as_str());
        let natives = kept.native.iter();
        natives.map(|place| nameless(module(*place), place.offset)).collect()
    }

    /// Names a stack that was kept. Of many, [`Resolver::name_all`] takes less time.
    pub fn name(&mut self, kept: &Kept) -> Stack {
        self.natives.learn(&kept.native);
        self.merge(kept)
    }

    /// Names stacks, in their order. Each file is looked through once for all addresses whose names are not known yet.
    pub fn name_all<'a>(&mut self, kept: impl IntoIterator<Item = &'a Kept>) -> Vec<Stack> {
        let (mut stacks, mut some, mut places) = (Vec::new(), Vec::new(), Vec::new());
        let mut kept = kept.into_iter().peekable();
        while let Some(next) = kept.next() {
            places.extend(&next.native);
            some.push(next);
            let room = |next: &&Kept| places.len() + next.native.len() <= MOST_KNOWN;
            if kept.peek().is_some_and(room) {
                continue;
            }
            self.natives.learn(&places);
            stacks.extend(some.drain(..).map(|kept| self.merge(kept)));
            places.clear();
        }
        stacks
    }

    /// As [`Resolver::name_all`], of stacks that were taken anywhere: what the kernel hides of some is of no importance.
    pub fn name_sampled<'a>(&mut self, kept: impl IntoIterator<Item = &'a Kept>) -> Vec<Stack> {
        let notes = self.notes.clone();
        let stacks = self.name_all(kept);
        self.notes = notes;
        stacks
    }

    fn merge(&mut self, kept: &Kept) -> Stack {
        let native: Vec<merge::Native> = kept.native.iter().map(|place| self.natives.name(*place)).collect();
        if native
            .iter()
            .flat_map(|(_, frames)| frames)
            .any(|frame| frame.function == UPROBES)
        {
            self.notes.insert(format!(
                "{UPROBES} in a stack stands for the caller of a function whose return is probed, maybe by another tracer: it is hidden"
            ));
        }
        let whole = is_whole(&native);
        let (frames, complete) = merge::merge(native, &kept.python);
        Stack {
            frames,
            truncated: !whole || !complete || kept.flags & ANY_LOSS != 0,
        }
    }

    /// Reads the address space again unless that was done just now and explains all addresses.
    /// Whether what is known of its address space is of now.
    fn refresh(&mut self, site: &SiteEvent) -> bool {
        let read = |known: &Resolver| known.processes.get(&site.tgid).and_then(|process| process.read);
        let before = read(self);
        let fresh = self.processes.get(&site.tgid).is_some_and(|process| {
            let region = |address: &u64| region_at(&process.regions, *address);
            let known = |within: Duration| process.read.is_some_and(|read| read.elapsed() < within);
            let is_code = |address: &u64| region(address).is_some_and(|region| region.executable);
            let mapped = site.native.iter().all(|address| region(address).is_some());
            // what was data may have become code since
            mapped && (known(DOUBTED) || known(FRESH) && site.native.iter().all(is_code))
        });
        if !fresh {
            self.learn(site.tgid);
        }
        fresh || read(self) != before
    }

    fn python(&mut self, pid: u32, frame: PythonFrame) -> Rc<Frame> {
        let process = self.processes.get_mut(&pid);
        let named = process.and_then(|process| process.python(pid, frame));
        named.unwrap_or_else(|| {
            let function = format!("[Python function at {:#x}]", frame.code_address());
            Rc::new(python_frame(function, None, None))
        })
    }
}

impl Process {
    fn python(&mut self, pid: u32, frame: PythonFrame) -> Option<Rc<Frame>> {
        let (memory, layout) = (ProcessMemory(pid), &self.interpreter.as_ref()?.layout);
        let address = frame.code_address();
        if self
            .codes
            .get(&address)
            .is_some_and(|known| known.code.is_replaced(&memory, layout))
        {
            self.codes.remove(&address);
        }
        let KnownCode { code, frames } = match self.codes.entry(address) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(KnownCode {
                code: Code::read(&memory, layout, address)?,
                frames: HashMap::new(),
            }),
        };
        let named = frames.entry(frame.instruction).or_insert_with(|| {
            let line = code.line(&memory, layout, frame);
            Rc::new(python_frame(code.function.clone(), Some(code.file.clone()), line))
        });
        Some(Rc::clone(named))
    }
}

/// The kernel's name for the page that return probes go through.
const UPROBES: &str = "[uprobes]";

/// Below it nothing can be mapped (vm.mmap_min_addr).
const LOWEST: u64 = 1 << 16;

/// The part of a stack up to what is no code: where a function keeps no frame, what was taken for one may be anything.
/// `current`: the regions are all that there are; code that was unmapped since is no reason to leave out what called it.
fn code_of<'a>(native: &'a [u64], regions: &[Region], current: bool) -> &'a [u64] {
    let is_code = |address: u64| region_at(regions, address).is_some_and(|region| region.executable);
    // a call that never returns may be the last instruction there is
    let is_call = |address: &u64| is_code(*address) || is_code(address.wrapping_sub(1));
    let is_data = |address: u64| region_at(regions, address).is_some();
    let is_none = |(place, address): (usize, &u64)| {
        let followed = || native.iter().skip(place + 1).any(is_call);
        let known = current && !is_call(address);
        *address < LOWEST || known && (is_data(*address) || !followed())
    };
    let end = native.iter().enumerate().position(is_none);
    native.get(..end.unwrap_or(native.len())).unwrap_or(native)
}

/// The addresses of the calls of a stack, of which `native` is the part that is one.
fn call_addresses(site: &SiteEvent, native: &[u64], regions: &[Region]) -> impl Iterator<Item = u64> {
    let twice = site.flags & wire::AT_ENTRY != 0 && native.first() == native.get(1);
    let exact = site.flags & wire::AT_PLACE != 0;
    let addresses = native.iter().enumerate().skip(usize::from(twice));
    // no call lies before the first address of a region, as that of the page of return probes
    let begins = |address: u64| region_at(regions, address).is_some_and(|region| region.start == address);
    // a call lies before the address that it returns to, which may be of the next line or function
    addresses.map(move |(place, &address)| {
        let is_call = (exact && place == 0) || begins(address);
        address.wrapping_sub(u64::from(!is_call))
    })
}

/// Whether a stack goes back to where its thread began: that is in the C library, whose own names are mostly stripped.
fn is_whole(native: &[merge::Native]) -> bool {
    let mut frames = native.iter().flat_map(|(_, frames)| frames);
    let last = frames.clone().next_back().and_then(|frame| frame.module.as_deref());
    last.is_some_and(|module| module.starts_with("libc.so"))
        || frames.any(|frame| OUTERMOST.contains(&frame.function.as_str()))
}

fn python_frame(function: String, file: Option<String>, line: Option<u32>) -> Frame {
    Frame {
        function,
        module: None,
        offset: None,
        file,
        line,
        language: Language::Python,
        inlined: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_ends_before_what_is_no_code() {
        let regions = super::super::regions::parse(
            b"400000-500000 r-xp 00000000 08:01 7 /bin/train\n7f0000000000-7f0000010000 rw-p 00000000 00:00 0 \n",
        );
        let (code, data, nowhere) = (0x40_0010, 0x7f00_0000_0008, 0x1_0000_0000);
        let of = |native: &[u64], current| code_of(native, &regions, current).len();
        assert_eq!(of(&[code, code], true), 2);
        assert_eq!(of(&[0, code], false), 0, "nothing is mapped there");
        assert_eq!(of(&[code, data, code], true), 1, "it is data");
        assert_eq!(of(&[code, data, code], false), 3, "it may be code by now");
        assert_eq!(of(&[code, nowhere], true), 1);
        assert_eq!(of(&[code, nowhere], false), 2, "it may be mapped by now");
        assert_eq!(of(&[code, nowhere, code], true), 3, "it may have been code");
        assert_eq!(of(&[code, 0x50_0000], true), 2, "behind the last instruction");
    }
}
