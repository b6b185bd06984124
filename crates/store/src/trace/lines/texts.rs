//! Texts of a row as its line has them, and which members of the line are its arguments.

use crate::catalog::{CopyKind, HostMemory};
use crate::record::Kind;
use crate::trace::line::Line;
use std::borrow::Cow;

/// Texts of a row, which may have been escaped.
pub(super) struct Texts<'a> {
    pub(super) comm: Cow<'a, str>,
    pub(super) layer: Cow<'a, str>,
    pub(super) name: Cow<'a, str>,
    pub(super) error: Option<Cow<'a, str>>,
    pub(super) kernel: Option<Cow<'a, str>>,
    pub(super) args: Option<Cow<'a, str>>,
    pub(super) stack: Option<&'a str>,
    pub(super) direction: Option<Cow<'a, str>>,
    pub(super) host: Option<Cow<'a, str>>,
}

impl<'a> Texts<'a> {
    pub(super) fn of(line: &Line<'a>, kind: Kind) -> Texts<'a> {
        let text = |name| line.text(name).unwrap_or_default();
        let name = match kind {
            Kind::Lost => "function",
            Kind::Idle | Kind::DeviceIdle => "cause",
            _ => "name",
        };
        Texts {
            comm: if kind == Kind::Xid {
                Cow::Borrowed("")
            } else {
                text("comm")
            },
            layer: text("layer"),
            name: if kind == Kind::Xid {
                Cow::Borrowed("Xid")
            } else {
                text(name)
            },
            error: line.text("error"),
            kernel: line.text("kernel"),
            args: args(line, kind),
            stack: line.json("stack"),
            direction: line.text("direction"),
            host: line.text("host"),
        }
    }

    pub(super) fn direction(&self) -> Option<CopyKind> {
        let name = self.direction.as_deref()?;
        CopyKind::ALL.into_iter().find(|direction| direction.name() == name)
    }

    pub(super) fn host(&self) -> Option<HostMemory> {
        HostMemory::from_name(self.host.as_deref()?)
    }
}

/// What stands in the line of a call of the kernel driver beside what it was asked.
const OF_EVERY_CALL: [&str; 22] = [
    "event_id",
    "ts",
    "type",
    "layer",
    "name",
    "api",
    "phase",
    "duration_us",
    "pid",
    "tid",
    "comm",
    "depth",
    "parent_id",
    "category",
    "class",
    "failed",
    "blocking",
    "host",
    "stream",
    "address",
    "held",
    "stack",
];

/// What a row of what a device has done has in columns of its own; the number of a call holds in its file alone.
const OF_EVERY_ACTIVITY: [&str; 10] = [
    "ts",
    "type",
    "name",
    "pid",
    "comm",
    "duration_us",
    "bytes",
    "host",
    "stream",
    "call_id",
];

/// The same of what a program calls a phase of its own.
const OF_EVERY_RANGE: [&str; 8] = ["ts", "type", "name", "pid", "tid", "comm", "duration_us", "depth"];

/// The same of times in which devices had nothing to do.
const OF_EVERY_IDLE: [&str; 7] = ["ts", "type", "cause", "pid", "tid", "comm", "idle_us"];

/// The arguments of a call of a library; of other rows all that stands in the line beside what each has.
fn args<'a>(line: &Line<'a>, kind: Kind) -> Option<Cow<'a, str>> {
    let is_own = |name: &str| match kind {
        Kind::Kernel => !OF_EVERY_CALL.contains(&name),
        Kind::Xid => !["ts", "type", "layer"].contains(&name),
        Kind::Gpu => !OF_EVERY_ACTIVITY.contains(&name),
        Kind::Range | Kind::Mark => !OF_EVERY_RANGE.contains(&name),
        Kind::Idle | Kind::DeviceIdle => !OF_EVERY_IDLE.contains(&name),
        _ => !["ts", "type", "name", "pid", "tid", "comm", "stack"].contains(&name),
    };
    if matches!(kind, Kind::Call | Kind::Open) {
        return Some(Cow::Borrowed(line.json("args").unwrap_or("{}")));
    }
    let has_own = matches!(
        kind,
        Kind::Kernel | Kind::Xid | Kind::Process | Kind::Gpu | Kind::Idle | Kind::DeviceIdle | Kind::Range | Kind::Mark
    );
    if !has_own {
        return None;
    }
    let own = line.members().iter().filter(|(name, _)| is_own(name));
    let members: Vec<String> = own.map(|(name, value)| format!("\"{name}\":{value}")).collect();
    (!members.is_empty()).then(|| Cow::Owned(format!("{{{}}}", members.join(","))))
}
