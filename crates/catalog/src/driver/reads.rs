//! Which words of a call's argument are to be copied, at enter and at exit: at most 64 bytes each, in two pieces.
//!
//! The kernel side is driven by [`table`] and [`classes`], so that it knows no layout. The pieces follow each other in
//! what is handed to [`super::decode()`]; when one of them cannot be read, nothing of that time is handed over. What
//! the driver writes is copied at exit alone. What the program wrote is copied at both, since the page may not be
//! resident at enter, where the kernel's reading cannot fetch it; at exit the driver has just touched it.

use super::branch::Dialect;
use super::layout::{Direction, FieldKind, Layout, Role, Size};
use super::request::Request;
use super::tables::{self, Entry};

/// The most bytes that are copied at one time.
pub const MOST: u16 = 64;

/// A piece of an argument; empty when `length` is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Piece {
    /// Bytes from the beginning of the argument.
    pub offset: u16,
    /// Bytes.
    pub length: u16,
}

impl Piece {
    fn end(self) -> u16 {
        self.offset.saturating_add(self.length)
    }
}

/// What is copied of an argument at one time: two pieces, by offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pieces(pub [Piece; 2]);

impl Pieces {
    /// The two pieces that cover these, parted at the widest gap; one piece when all fit into [`MOST`] bytes.
    fn cover(mut wanted: Vec<Piece>) -> Self {
        wanted.sort_by_key(|piece| piece.offset);
        let (Some(first), Some(end)) = (wanted.first(), wanted.iter().map(|piece| piece.end()).max()) else {
            return Self::default();
        };
        let (offset, length) = (first.offset, end - first.offset);
        if length <= MOST {
            return Self([Piece { offset, length }, Piece::default()]);
        }
        let gaps = wanted
            .windows(2)
            .map(|pair| (pair[1].offset.saturating_sub(pair[0].end()), pair[1].offset));
        let at = gaps.max().map_or(end, |(_, at)| at);
        let head = wanted
            .iter()
            .filter(|piece| piece.offset < at)
            .map(|piece| piece.end())
            .max()
            .unwrap_or(offset);
        Self([
            Piece {
                offset,
                length: head - offset,
            },
            Piece {
                offset: at,
                length: end - at,
            },
        ])
    }

    /// Bytes of both.
    #[must_use]
    pub fn length(self) -> u16 {
        self.0[0].length + self.0[1].length
    }

    /// The bytes of `length` at `offset` of the argument, in what was copied; `None` when they are not there.
    #[must_use]
    pub fn bytes<'a>(&self, copied: &'a [u8], offset: u16, length: u16) -> Option<&'a [u8]> {
        let mut before = 0;
        for piece in self.0 {
            if piece.offset <= offset && offset.saturating_add(length) <= piece.end() {
                let from = before + usize::from(offset - piece.offset);
                return copied.get(from..from + usize::from(length));
            }
            before += usize::from(piece.length);
        }
        None
    }
}

/// What is copied for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reads {
    pub enter: Pieces,
    pub exit: Pieces,
    /// Whether what lies behind `pAllocParms` is worth a read, by the class.
    pub behind: Option<Behind>,
}

/// Where an argument says what lies behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Behind {
    /// Offset of the class, to be looked up among [`classes`].
    pub class: u16,
    /// Offset of the address that the class's piece is counted from.
    pub pointer: u16,
}

impl Reads {
    fn of(entry: &Entry, layout: &Layout) -> Self {
        let piece = |offset, length| Piece { offset, length };
        let all = layout.fields.iter().map(|field| piece(field.offset, field.width));
        let status = layout.status.map(|offset| piece(offset, 4));
        let asked = layout.fields.iter().filter(|field| field.direction != Direction::Out);
        Self {
            enter: Pieces::cover(asked.map(|field| piece(field.offset, field.width)).collect()),
            exit: Pieces::cover(all.chain(status).collect()),
            behind: (entry.role == Role::Alloc).then(|| behind(layout)).flatten(),
        }
    }
}

fn behind(layout: &Layout) -> Option<Behind> {
    let class = layout.fields.iter().find(|field| field.kind == FieldKind::Class)?;
    Some(Behind {
        class: class.offset,
        pointer: layout.field("pAllocParms")?.offset,
    })
}

/// The entry of the tables for a request.
pub(super) fn entry(request: &Request) -> Option<&'static Entry> {
    match request.device {
        device if device.is_front() => tables::escape(request.nr),
        device if device.is_uvm() => tables::uvm(request.nr),
        _ => None,
    }
}

/// What to copy for a request; nothing when the tables do not know it or its size.
#[must_use]
pub fn reads(request: &Request, dialect: Dialect) -> Reads {
    let Some(entry) = entry(request) else {
        return Reads::default();
    };
    entry
        .layout(dialect, request.size)
        .map_or_else(|_| Reads::default(), |layout| Reads::of(entry, layout))
}

/// One row of the plan: a call, and what is copied for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Whether `nr` is UVM's or the front end's.
    pub uvm: bool,
    pub nr: u32,
    pub size: Size,
    pub reads: Reads,
}

/// The plan for a driver: every call of which something is copied. Calls of one number differ in size.
#[must_use]
pub(crate) fn table(dialect: Dialect) -> Vec<Row> {
    let rows = |entries: &'static [Entry], uvm: bool| {
        entries.iter().flat_map(move |entry| {
            let chosen = move |layout: &&Layout| {
                let size = if uvm { None } else { asked(layout.size) };
                entry
                    .layout(dialect, size)
                    .is_ok_and(|chosen| std::ptr::eq(chosen, *layout))
            };
            let row = move |layout: &Layout| Row {
                uvm,
                nr: entry.nr,
                size: layout.size,
                reads: Reads::of(entry, layout),
            };
            entry.layouts.iter().filter(chosen).map(row)
        })
    };
    let all = rows(tables::escapes(), false).chain(rows(tables::uvm_calls(), true));
    all.filter(|row| row.reads.exit.length() > 0).collect()
}

/// A size that a request of this layout may say.
fn asked(size: Size) -> Option<u32> {
    match size {
        Size::Bytes(bytes) | Size::Times(bytes) => Some(bytes),
        Size::Unknown => None,
    }
}

/// What is copied behind `pAllocParms`, by class: at most 8 bytes, at exit.
#[must_use]
pub(crate) fn classes() -> Vec<(u32, Piece)> {
    let piece = |class: &tables::Class| {
        class.behind.map(|field| Piece {
            offset: field.offset,
            length: field.width,
        })
    };
    tables::classes()
        .iter()
        .filter_map(|class| Some((class.number, piece(class)?)))
        .collect()
}
