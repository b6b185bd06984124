//! A row as steps see it: of fixed size, so that the first ones can be kept until it is known what steps are cut at.

use super::said::{Range, of_any_number};
use super::work::{Role, Work, mixed};
use crate::catalog::{Class, CopyKind};
use crate::findings::interner::{Id, Interner};
use crate::findings::table::hash;
use crate::model::range::Shape;
use crate::record::{Counting, Kind, Record, json};

/// A row. Times are ns since the start of the trace.
#[derive(Debug, Clone, Copy)]
pub struct Piece {
    pub(super) pid: u32,
    pub(super) tid: u32,
    pub(super) at: i64,
    pub(super) end: i64,
    pub(super) what: What,
}

/// What it tells.
#[derive(Debug, Clone, Copy)]
pub(super) enum What {
    Call(Call),
    Idle,
    /// It is over.
    Range(Range),
}

/// A call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    /// What it is to a step; `None`: nothing.
    pub role: Option<Role>,
    pub class: Class,
    /// It is in no other.
    pub(crate) outermost: bool,
    /// It is at the layer where work is counted.
    pub counts: bool,
    /// What is launched, or else the function, and what stands for it.
    pub name: Id,
    pub symbol: u64,
    pub function: Id,
    /// That it has allocated.
    pub allocated_bytes: u64,
}

impl Piece {
    pub(super) fn ns(&self) -> u64 {
        self.end.abs_diff(self.at)
    }

    /// It gives a device work, as a launch that counts.
    pub(super) fn launches(&self) -> bool {
        self.work().is_some_and(|work| work.role == Role::Launch)
    }

    /// A call that steps may be cut at, or do work with.
    pub(super) fn work(&self) -> Option<Work> {
        let What::Call(call) = self.what else { return None };
        let role = call.role.filter(|_| call.counts)?;
        Some(Work {
            role,
            name: call.name,
            symbol: call.symbol,
            at: self.at,
            end: self.end,
        })
    }
}

/// Makes them of all rows of a trace, and knows their names.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    counting: Counting,
    pub names: Interner,
    /// Of ranges, apart: a program may have any number of them.
    pub ranges: Interner,
}

impl Pieces {
    /// `None`: the row is nothing to steps.
    pub(super) fn of(&mut self, event: &Record<'_>) -> Option<Piece> {
        let what = match event.kind {
            Kind::Call => What::Call(self.call(event)),
            Kind::Idle => What::Idle,
            Kind::Range if !is_of_no_thread(event) => What::Range(self.range(event)),
            _ => return None,
        };
        Some(Piece {
            pid: event.pid,
            tid: event.tid,
            at: event.at,
            end: event.end(),
            what,
        })
    }

    fn range(&mut self, event: &Record<'_>) -> Range {
        let name = of_any_number(event.name);
        Range {
            name: self.ranges.name_id(&name),
            symbol: hash(&name),
            outermost: event.depth == 0,
        }
    }

    fn call(&mut self, event: &Record<'_>) -> Call {
        let counts = self.counting.counts(event);
        let role = Role::of(event).filter(|_| counts);
        let function = if counts { self.names.name_id(event.name) } else { 0 };
        let (name, symbol) = match (role, event.kernel) {
            (None, _) => (0, 0),
            (Some(_), None) => (function, symbol(event, event.name)),
            (Some(_), Some(kernel)) => (self.names.name_id(kernel), symbol(event, kernel)),
        };
        let allocates = event.class == Class::Alloc && !event.failed;
        Call {
            role,
            class: event.class,
            outermost: event.depth == 0,
            counts,
            name,
            symbol,
            function,
            allocated_bytes: event.bytes.filter(|_| allocates).unwrap_or(0),
        }
    }
}

/// It may end on another thread than it began.
fn is_of_no_thread(event: &Record<'_>) -> bool {
    match event.range {
        Some(range) => range.shape == Shape::Started,
        None => json::is_of_range(event.args, "started"),
    }
}

fn symbol(event: &Record<'_>, name: &str) -> u64 {
    let direction = event.direction.map_or(0, |direction| direction as u64 + 1);
    mixed(hash(name), direction)
}

impl Role {
    /// Of a call that has a part in steps.
    fn of(event: &Record<'_>) -> Option<Role> {
        Some(match event.class {
            _ if event.failed => return None,
            Class::Launch => Role::Launch,
            Class::Sync => Role::Wait,
            Class::Copy if event.blocking && event.direction == Some(CopyKind::DtoH) => Role::Wait,
            Class::Copy | Class::Memset | Class::Prefetch => Role::Move,
            Class::Event => Role::Mark,
            _ => return None,
        })
    }
}
