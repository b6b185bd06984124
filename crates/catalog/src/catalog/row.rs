//! The types of a catalog: ids, libraries, functions.

use super::arg::Arg;
use super::class::{Class, Traffic};
use super::hook::Hook;
use super::id::{EnumId, LibraryId};
use super::in_kernel::InKernel;
use super::kind::Kind;
use super::launch::Launch;
use super::memory::Effect;
use super::path::{Direction, Factor};
use super::pattern::{Majors, glob_matches};
use super::returns::Returns;
use super::site::SiteKind;
use super::work::{Step, Work};

/// Which interface a library is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layer {
    /// `libcudart`.
    Runtime,
    /// `libcuda`.
    Driver,
    /// NVIDIA's kernel driver, by system calls on its devices.
    Kernel,
    /// A library of the user's hook file.
    Custom,
}

/// A library whose functions are traced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Library {
    /// Short name, also the label of its calls.
    pub name: String,
    /// Glob for the base name of its file, or an absolute path.
    pub pattern: String,
    /// Enum of its return codes, 0 meaning success.
    pub errors: Option<EnumId>,
    /// What calls return once the library has been shut down, as the process ends: no failure either.
    pub ended: Option<i32>,
    /// Which interface it is.
    pub layer: Layer,
}

impl Library {
    /// Whether the file at `path` is this library.
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        let subject = if self.pattern.starts_with('/') { path } else { name };
        glob_matches(&self.pattern, subject)
    }
}

/// A function that can be traced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Library that exports it.
    pub library: LibraryId,
    /// Exported symbol, `PROVIDER:NAME` of a static probe, a function of the kernel, or `GROUP:NAME` of a tracepoint; in
    /// a user's file also a glob (`*`, `?`).
    pub symbol: String,
    /// What of that name is hooked.
    pub site: SiteKind,
    /// What a row of the kernel says beyond others.
    pub in_kernel: Option<InKernel>,
    /// Documented name (`cuMemAlloc` of the symbol `cuMemAlloc_v2`).
    pub api: String,
    /// What it does.
    pub class: Class,
    /// Arguments in C order.
    pub args: Vec<Arg>,
    /// Bytes it allocates, moves or fills: the product of these.
    pub bytes: Option<Vec<Factor>>,
    /// Where a copy goes from and to.
    pub direction: Option<Direction>,
    /// What it does to memory.
    pub memory: Option<Effect>,
    /// What it has to do with the work of a device.
    pub work: Option<Work>,
    /// The kernel that it launches.
    pub launch: Option<Launch>,
    /// Kernels may be gone after it, and their handles stand for others.
    pub unloads: bool,
    /// Called so often that it is counted and streamed only on request.
    pub chatty: bool,
    /// Returns a value at hand: counted at its entry, without time and result, unless it is asked for.
    pub trivial: bool,
    /// Never hooked at its return: an exception may pass through it.
    pub entry_only: bool,
    /// Sonames whose function has this signature.
    pub majors: Majors,
    /// Symbol that this one jumps into; never probe both.
    pub forwards: Option<String>,
    /// What it returns.
    pub returns: Returns,
    /// Return codes besides 0 that are no failure.
    pub ok: Vec<i32>,
    /// No prototype is known; `args` is empty.
    pub raw: bool,
    /// What only a user's file asks for.
    pub hook: Hook,
}

impl Row {
    /// A function of which the name alone is known.
    #[must_use]
    pub fn unknown(library: LibraryId, symbol: &str) -> Self {
        Self {
            library,
            symbol: symbol.to_owned(),
            site: SiteKind::Function,
            in_kernel: None,
            api: symbol.to_owned(),
            class: Class::Other,
            args: Vec::new(),
            bytes: None,
            direction: None,
            memory: None,
            work: None,
            launch: None,
            unloads: false,
            chatty: false,
            trivial: false,
            entry_only: false,
            majors: Majors::ANY,
            forwards: None,
            returns: Returns::Void,
            ok: Vec::new(),
            raw: true,
            hook: Hook::default(),
        }
    }

    /// Of what traffic its calls are; `None`: they are always seen.
    #[must_use]
    pub fn traffic(&self) -> Option<Traffic> {
        self.class.traffic().filter(|_| self.memory.is_none())
    }

    /// Whether it may call a function of the program before it returns: exceptions, `longjmp` and other stacks may then
    /// pass through it, so that its return is not hooked.
    #[must_use]
    pub(crate) fn calls_back(&self) -> bool {
        self.args.iter().any(|arg| arg.kind == Kind::Fn)
    }

    /// Whether it has a stream call a function of the program, and go on when that has returned.
    #[must_use]
    pub fn holds_up_its_stream(&self) -> bool {
        let is_work = self.work.as_ref().is_some_and(|work| work.step == Step::Submit);
        is_work && self.class == Class::Stream && self.calls_back()
    }

    /// Whether its return may be hooked where a user's file does not say otherwise.
    #[must_use]
    pub fn may_return(&self) -> bool {
        !self.raw && !self.entry_only && !self.calls_back()
    }

    /// Whether `symbol` is a pattern instead of a name.
    #[must_use]
    pub fn is_glob(&self) -> bool {
        self.symbol.contains(['*', '?'])
    }
}
