//! The tables of the driver: calls, classes, methods, answers and Xids by number.
//!
//! `scripts/generate_nvidia.py` writes them; 141 KB of the binary. Each is parsed when it is first asked for: that of
//! the methods, 100 KB, takes some 0.2 ms, the others less. A line that cannot be read is left out, which the tests
//! rule out.

mod class_kind;
mod entry;
mod parse;

use std::sync::LazyLock;

use super::branch::Branch;
pub use class_kind::ClassKind;
pub use entry::XidMeaning;
pub(crate) use entry::{Class, Entry, Named, Unfit};
use parse::{class_of, entries, named_of, sorted, xid_of};

const ESCAPES: &str = include_str!("../../../catalog/nvidia/escapes.txt");
const UVM: &str = include_str!("../../../catalog/nvidia/uvm.txt");
const CLASSES: &str = include_str!("../../../catalog/nvidia/classes.txt");
const CONTROLS: &str = include_str!("../../../catalog/nvidia/controls.txt");
const STATUS: &str = include_str!("../../../catalog/nvidia/status.txt");
const XIDS: &str = include_str!("../../../catalog/nvidia/xid.txt");

static ESCAPE_TABLE: LazyLock<Vec<Entry>> = LazyLock::new(|| entries(ESCAPES));
static UVM_TABLE: LazyLock<Vec<Entry>> = LazyLock::new(|| entries(UVM));
static CLASS_TABLE: LazyLock<Vec<Class>> = LazyLock::new(|| sorted(CLASSES, class_of, |class| class.number));
static CONTROL_TABLE: LazyLock<Vec<Named>> = LazyLock::new(|| sorted(CONTROLS, named_of, |control| control.number));
static STATUS_TABLE: LazyLock<Vec<Named>> = LazyLock::new(|| sorted(STATUS, named_of, |status| status.number));
static XID_TABLE: LazyLock<Vec<XidMeaning>> = LazyLock::new(|| sorted(XIDS, xid_of, |xid| xid.code));

/// The front end's call of that number.
#[must_use]
pub(crate) fn escape(nr: u32) -> Option<&'static Entry> {
    find(&ESCAPE_TABLE, nr, |entry| entry.nr)
}

/// UVM's call of that number.
#[must_use]
pub(crate) fn uvm(nr: u32) -> Option<&'static Entry> {
    find(&UVM_TABLE, nr, |entry| entry.nr)
}

/// Every call of the front end, by number.
#[must_use]
pub(crate) fn escapes() -> &'static [Entry] {
    &ESCAPE_TABLE
}

/// Every call of UVM, by number.
#[must_use]
pub(crate) fn uvm_calls() -> &'static [Entry] {
    &UVM_TABLE
}

/// The class of that number.
#[must_use]
pub(crate) fn class(number: u32) -> Option<&'static Class> {
    find(&CLASS_TABLE, number, |class| class.number)
}

/// Every class, by number.
#[must_use]
pub(crate) fn classes() -> &'static [Class] {
    &CLASS_TABLE
}

/// Every method, by number.
#[cfg(test)]
#[must_use]
pub(crate) fn controls() -> &'static [Named] {
    &CONTROL_TABLE
}

/// The method of that number in that branch; else that of the branch nearest to it, to be told apart by
/// [`Named::first`] and [`Named::last`].
#[must_use]
pub(crate) fn control(cmd: u32, branch: Branch) -> Option<&'static Named> {
    named(&CONTROL_TABLE, cmd, branch)
}

/// The name of an NV_STATUS in that branch, or in that nearest to it.
#[must_use]
pub(crate) fn status(code: u32, branch: Branch) -> Option<&'static str> {
    named(&STATUS_TABLE, code, branch).map(|status| status.name)
}

fn named(table: &[Named], number: u32, branch: Branch) -> Option<&Named> {
    let from = table.partition_point(|named| named.number < number);
    let found = table[from..].iter().take_while(|named| named.number == number);
    found.min_by_key(|named| {
        let newer = named.first.number().saturating_sub(branch.number());
        newer.max(branch.number().saturating_sub(named.last.number()))
    })
}

/// What is known of an Xid.
#[must_use]
pub(crate) fn xid(code: u32) -> Option<&'static XidMeaning> {
    find(&XID_TABLE, code, |xid| xid.code)
}

fn find<T>(table: &[T], number: u32, key: impl Fn(&T) -> u32) -> Option<&T> {
    table.binary_search_by_key(&number, key).ok().map(|at| &table[at])
}
