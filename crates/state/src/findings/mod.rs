//! Diagnoses: what is wrong, how much it costs, where in the program, what to do.
//!
//! One rule per file of `rules`. A rule takes rows as they come and concludes at the end; it keeps sums and its worst
//! moments, so that a trace of any length takes no more memory. What a call is, and whose fault an idle gap is, is
//! decided once for all rules, by `scene`. Without evidence a rule stays silent. The rules, their thresholds and where
//! these come from are listed in docs/findings.md.

mod blocks;
mod cases;
mod course;
mod devices;
mod evidence;
mod examiner;
pub(crate) mod finding;
#[cfg(test)]
mod fixture;
mod held;
pub(crate) mod interner;
mod load;
mod pace;
mod part;
mod past;
mod places;
mod rules;
mod scene;
mod seen;
pub(crate) mod table;
mod unexplained;

pub use examiner::Examiner;
pub(crate) use rules::NAMES;
pub use rules::is_sticky;
pub use seen::OUT_OF_MEMORY;

use crate::catalog::Class;
use crate::model::finding::Finding;
use crate::record::Kind;
use evidence::End;
use seen::Seen;

/// Rows that a rule wants to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wants {
    Nothing,
    /// Calls of the layer where work is counted.
    Work,
    /// Whatever layer they are of.
    All,
}

/// One diagnosis.
pub trait Rule {
    /// The word of the rule: `alloc-churn`.
    fn name(&self) -> &'static str;
    /// Which rows it takes; asked once.
    fn wants(&self, kind: Kind, class: Class) -> Wants;
    /// One row.
    fn take(&mut self, seen: &Seen<'_>);
    /// What is wrong, if anything is. May be asked while rows still come.
    fn conclude(&self, end: &End<'_>) -> Option<Finding>;
}
