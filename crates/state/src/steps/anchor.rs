//! What steps are cut at.

use super::candidate::Label;
use super::sketch::Sketch;
use super::work::Role;
use crate::findings::interner::Interner;

/// Characters of a name in a sentence.
const ROOM: usize = 40;

/// What says where a step begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A call that comes once in each.
    Call {
        /// Stands for it.
        key: u64,
        /// What it launches, or else the function.
        name: String,
        /// It counts only right behind a launch of that.
        after: Option<String>,
        /// A step ends with it; else it begins with it.
        waits: bool,
        launches: bool,
    },
}

/// How sure that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Evidence {
    /// The work of a step; `None`: it varies.
    pub sketch: Option<Sketch>,
    pub launches: u64,
    pub explained: u64,
    pub of: u64,
}

/// What the steps of one process are cut at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anchor {
    pub pid: u32,
    /// Steps are those of one thread; `None`: of all of them together.
    pub tid: Option<u32>,
    pub origin: Origin,
    pub(super) sketch: Option<Sketch>,
    /// Of a step, about.
    pub launches: u64,
    /// Launches that lie in steps of about the same work, and all of the process or thread.
    pub explained: u64,
    pub of: u64,
}

impl Anchor {
    pub(super) fn of_call(key: u64, label: &Label, evidence: Evidence, interner: &Interner) -> Anchor {
        let after = Some(interner.name(label.after)).filter(|_| label.after != 0);
        Anchor {
            pid: 0,
            tid: None,
            origin: Origin::Call {
                key,
                name: interner.name(label.name).to_owned(),
                after: after.map(str::to_owned),
                waits: label.role == Role::Wait,
                launches: label.role == Role::Launch,
            },
            sketch: evidence.sketch,
            launches: evidence.launches,
            explained: evidence.explained,
            of: evidence.of,
        }
    }

    /// Whether a step has work that varies.
    #[must_use]
    pub fn varies(&self) -> bool {
        self.sketch.is_none()
    }

    /// Long names are cut: `each ends with cuStreamSynchronize`, `each begins with a launch of gemm behind one of softmax`; not escaped.
    #[must_use]
    pub fn words(&self) -> String {
        let Origin::Call {
            name,
            after,
            waits,
            launches,
            ..
        } = &self.origin;
        let verb = if *waits { "ends" } else { "begins" };
        let what = if *launches { "a launch of " } else { "" };
        let behind = after
            .as_ref()
            .map(|after| format!(" behind one of {}", begin_of(after)));
        format!(
            "each {verb} with {what}{}{}",
            begin_of(name),
            behind.unwrap_or_default()
        )
    }
}

/// As much of a name as a sentence has room for.
fn begin_of(name: &str) -> String {
    match name.char_indices().nth(ROOM) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}
