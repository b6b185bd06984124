//! From the copied words of an ioctl to its name, arguments, answer and effect. Total: any bytes, any request.

use super::act::{Act, act};
use super::branch::Dialect;
use super::layout::{Direction, Field, FieldKind, Layout, Role};
use super::notes;
use super::reads::{self, Reads};
use super::request::Request;
use super::rows::errno_name;
use super::tables::{self, Class, Entry};
use super::value::{NvStatus, Value};

/// What was seen of an ioctl. The bytes are those that [`reads::reads`] asks for, one piece after the other; fewer
/// where the program's memory could not be read.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// The inner one, when it came wrapped: see [`Request::wrapped`].
    pub request: Request,
    pub enter: &'a [u8],
    pub exit: &'a [u8],
    /// What lay behind `pAllocParms` at exit: the piece of [`reads::classes`] for the class.
    pub behind: &'a [u8],
    /// What ioctl(2) returned in the kernel: 0, or a negative errno.
    pub result: i64,
}

/// An ioctl, decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ioctl {
    pub request: Request,
    /// `RM_ALLOC HOPPER_COMPUTE_A`, `RM_CONTROL NVA06C_CTRL_CMD_GPFIFO_SCHEDULE`, `UVM_FREE`, `CARD_INFO`.
    pub name: String,
    /// In the order of the argument; without those that could not be read.
    pub args: Vec<(&'static str, Value)>,
    /// Bytes that the call is about: as the driver took them for an allocation, else as asked.
    pub size: Option<u64>,
    /// `None` when the call has none, or did not come so far that the driver wrote it.
    pub status: Option<NvStatus>,
    pub result: i64,
    pub act: Act,
    /// What could not be decoded, and why.
    pub notes: Vec<String>,
}

impl Ioctl {
    /// Whether the call failed, by its return value or by the driver's answer in its argument.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.result < 0 || self.status.is_some_and(NvStatus::failed)
    }

    /// What it answered: the driver's status, else the system call's.
    #[must_use]
    pub fn answer(&self) -> String {
        let result = self.result;
        match self.status {
            Some(status) => status.to_string(),
            None if result < 0 => errno_name(-result).map_or_else(|| format!("errno {}", -result), str::to_owned),
            None if result > i64::from(i32::MAX) => format!("{result:#x}"),
            None => result.to_string(),
        }
    }
}

/// Decodes an ioctl.
#[must_use]
pub fn decode(seen: &Seen, dialect: Dialect) -> Ioctl {
    let Some(entry) = reads::entry(&seen.request) else {
        return unknown(seen);
    };
    let mut ioctl = empty(seen, entry.name.to_owned());
    if entry.role == Role::Dead {
        ioctl.notes.push(format!(
            "{} is in NVIDIA's headers, but no driver serves it",
            entry.name
        ));
    }
    match entry.layout(dialect, seen.request.size) {
        Ok(layout) => fill(&mut ioctl, seen, dialect, entry, layout),
        Err(unfit) => ioctl
            .notes
            .push(notes::unfit(entry, &unfit, seen.request.size, dialect.branch)),
    }
    ioctl
}

fn empty(seen: &Seen, name: String) -> Ioctl {
    Ioctl {
        request: seen.request,
        name,
        args: Vec::new(),
        size: None,
        status: None,
        result: seen.result,
        act: Act::Nothing,
        notes: Vec::new(),
    }
}

fn unknown(seen: &Seen) -> Ioctl {
    let Request { device, nr, .. } = seen.request;
    let family = match device {
        device if device.is_front() => "nvidia".to_owned(),
        device => device.to_string(),
    };
    let mut ioctl = empty(seen, format!("{family} ioctl {nr:#x}"));
    ioctl.notes.push(notes::unknown(&seen.request));
    ioctl
}

fn fill(ioctl: &mut Ioctl, seen: &Seen, dialect: Dialect, entry: &Entry, layout: &Layout) {
    let reads = reads::reads(&seen.request, dialect);
    let copy = Copy { seen, reads };
    ioctl.args = layout
        .fields
        .iter()
        .filter_map(|field| Some((field.name, copy.value(field, dialect)?)))
        .collect();
    ioctl.status = layout.status.and_then(|offset| copy.status(offset, dialect));
    if seen.enter.is_empty() && seen.exit.is_empty() && reads.exit.length() > 0 {
        ioctl.notes.push("its argument could not be read".to_owned());
    }
    if !layout.is_of(dialect.branch) {
        let why = seen
            .request
            .size
            .map_or("which has this call", |_| "whose argument has this size");
        ioctl.notes.push(format!("decoded as in branch {}, {why}", layout.last));
    }
    let taken = subject(ioctl, seen, dialect);
    ioctl.size = taken.or_else(|| asked_size(layout, &ioctl.args));
    ioctl.act = act(entry.role, &ioctl.args, taken);
}

/// Names what the call is about: the class of an object, the method. Returns bytes that were taken for the object.
fn subject(ioctl: &mut Ioctl, seen: &Seen, dialect: Dialect) -> Option<u64> {
    let found = ioctl
        .args
        .iter()
        .find(|(_, value)| matches!(value, Value::Class(..) | Value::Command(..)));
    let (_, value) = found?;
    ioctl.name = format!("{} {value}", ioctl.name);
    match *value {
        Value::Command(cmd, _) => ioctl.notes.extend(notes::method(cmd, dialect.branch)),
        Value::Class(number, None) => ioctl.notes.push(format!("class {number:#x} is in no table")),
        Value::Class(number, _) => return tables::class(number).and_then(|class| behind(ioctl, seen, dialect, class)),
        _ => {}
    }
    None
}

/// Adds the field that lies behind `pAllocParms`; returns it when it counts bytes.
fn behind(ioctl: &mut Ioctl, seen: &Seen, dialect: Dialect, class: &Class) -> Option<u64> {
    reads::reads(&seen.request, dialect).behind?;
    let field = class.behind?;
    let bytes = seen.behind.get(..usize::from(field.width))?;
    let value = Value::of(field.kind, bytes, dialect.branch);
    let taken = match value {
        Value::Bytes(bytes) => Some(bytes),
        _ => None,
    };
    ioctl.args.push((field.name, value));
    taken
}

/// The first field of the argument that asks for bytes.
fn asked_size(layout: &Layout, args: &[(&'static str, Value)]) -> Option<u64> {
    let counts = |field: &&Field| matches!(field.kind, FieldKind::Bytes | FieldKind::Limit);
    let field = layout
        .fields
        .iter()
        .filter(counts)
        .find(|field| field.direction != Direction::Out)?;
    args.iter().find_map(|(name, value)| match value {
        Value::Bytes(bytes) if *name == field.name => Some(*bytes),
        _ => None,
    })
}

/// The words that were copied, by offset of the argument.
struct Copy<'a> {
    seen: &'a Seen<'a>,
    reads: Reads,
}

impl<'a> Copy<'a> {
    fn value(&self, field: &Field, dialect: Dialect) -> Option<Value> {
        Some(Value::of(field.kind, self.bytes(field)?, dialect.branch))
    }

    /// What the program wrote as it was at enter, what the driver wrote as it was at exit. A call that the driver
    /// refused wrote nothing.
    fn bytes(&self, field: &Field) -> Option<&'a [u8]> {
        let Seen {
            enter, exit, result, ..
        } = *self.seen;
        let before = self.reads.enter.bytes(enter, field.offset, field.width);
        let after = self.reads.exit.bytes(exit, field.offset, field.width);
        match field.direction {
            Direction::In => before.or(after),
            Direction::InOut => after.filter(|_| result >= 0).or(before),
            Direction::Out => after.filter(|_| result >= 0),
        }
    }

    fn status(&self, offset: u16, dialect: Dialect) -> Option<NvStatus> {
        let bytes = self.reads.exit.bytes(self.seen.exit, offset, 4)?.first_chunk()?;
        (self.seen.result >= 0).then(|| NvStatus::of(u32::from_le_bytes(*bytes), dialect.branch))
    }
}
