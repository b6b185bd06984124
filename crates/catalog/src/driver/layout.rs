//! Where a call's argument keeps what: fields by offset, one layout for each run of branches. Read from a table's line.

use super::branch::Branch;

/// What a call does, as the tables say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Makes an object of a class.
    Alloc,
    Free,
    /// Calls a method of an object.
    Control,
    Duplicate,
    MapCpu,
    UnmapCpu,
    MapGpu,
    UnmapGpu,
    EventOpen,
    EventClose,
    /// Carries another request.
    Wrapper,
    RangeOpen,
    RangeClose,
    RangeMap,
    SpaceOpen,
    SpaceClose,
    /// A number that the headers define and no driver serves.
    Dead,
    /// Changes no object.
    Other,
}

impl Role {
    pub(super) fn of(word: &str) -> Option<Self> {
        Some(match word {
            "alloc" => Self::Alloc,
            "free" => Self::Free,
            "control" => Self::Control,
            "duplicate" => Self::Duplicate,
            "map_cpu" => Self::MapCpu,
            "unmap_cpu" => Self::UnmapCpu,
            "map_gpu" => Self::MapGpu,
            "unmap_gpu" => Self::UnmapGpu,
            "event_open" => Self::EventOpen,
            "event_close" => Self::EventClose,
            "wrapper" => Self::Wrapper,
            "range_open" => Self::RangeOpen,
            "range_close" => Self::RangeClose,
            "range_map" => Self::RangeMap,
            "space_open" => Self::SpaceOpen,
            "space_close" => Self::SpaceClose,
            "dead" => Self::Dead,
            "-" => Self::Other,
            _ => return None,
        })
    }
}

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FieldKind {
    Handle,
    Class,
    /// The number of a method, for `RM_CONTROL`.
    Command,
    /// A count of bytes.
    Bytes,
    /// The last byte's offset: one less than a count of bytes.
    Limit,
    Address,
    Flags,
    Number,
    /// A file descriptor.
    Descriptor,
    /// Of a processor.
    Uuid,
    Text,
    /// A number of `NV2080_ENGINE_TYPE`.
    Engine,
}

impl FieldKind {
    /// Whether it says what a call is about, so that calls are told apart by it.
    #[must_use]
    pub(crate) fn is_subject(self) -> bool {
        matches!(self, Self::Class | Self::Command)
    }
}

/// Who writes a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    In,
    Out,
    InOut,
}

/// One field of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    pub name: &'static str,
    /// Bytes from the beginning of the argument.
    pub offset: u16,
    /// Bytes.
    pub width: u16,
    pub kind: FieldKind,
    pub direction: Direction,
}

/// How many bytes a call's argument has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    Bytes(u32),
    /// An array of elements of so many bytes.
    Times(u32),
    /// The tables do not say.
    Unknown,
}

impl Size {
    /// Whether an argument of so many bytes is of this layout; a request without a size fits.
    #[must_use]
    pub fn fits(self, asked: Option<u32>) -> bool {
        match (self, asked) {
            (Self::Bytes(bytes), Some(asked)) => bytes == asked,
            (Self::Times(bytes), Some(asked)) => asked != 0 && asked.is_multiple_of(bytes),
            (Self::Unknown, _) | (_, None) => true,
        }
    }
}

/// The fields of a call's argument in some branches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    pub first: Branch,
    pub last: Branch,
    pub size: Size,
    /// Offset of the NV_STATUS that the driver answers with; `None` when it answers by the return value alone.
    pub status: Option<u16>,
    /// By offset.
    pub fields: Vec<Field>,
}

impl Layout {
    /// Reads `first-last size status field…`; `None` when a column is malformed.
    pub(super) fn parse<'a>(mut columns: impl Iterator<Item = &'static str> + 'a) -> Option<Self> {
        let (first, last) = span(columns.next()?)?;
        let size = size(columns.next()?)?;
        let status = match columns.next()? {
            "-" => None,
            offset => Some(offset.parse().ok()?),
        };
        let fields = columns.map(field).collect::<Option<_>>()?;
        Some(Self {
            first,
            last,
            size,
            status,
            fields,
        })
    }

    /// Whether it is the layout of that branch.
    #[must_use]
    pub(crate) fn is_of(&self, branch: Branch) -> bool {
        (self.first..=self.last).contains(&branch)
    }

    /// The field of that name.
    #[must_use]
    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

/// `535-580` as its two branches.
pub(super) fn span(column: &str) -> Option<(Branch, Branch)> {
    let (first, last) = column.split_once('-')?;
    let span = (Branch::of(first.parse().ok()?)?, Branch::of(last.parse().ok()?)?);
    (span.0 <= span.1).then_some(span)
}

fn size(column: &str) -> Option<Size> {
    if column == "-" {
        return Some(Size::Unknown);
    }
    match column.strip_suffix('*') {
        Some(bytes) => bytes.parse().ok().filter(|bytes| *bytes > 0).map(Size::Times),
        None => column.parse().ok().map(Size::Bytes),
    }
}

/// `hObjectNew:8:h4=` as the field it describes.
pub(super) fn field(column: &'static str) -> Option<Field> {
    let (name, rest) = column.split_once(':')?;
    let (offset, form) = rest.split_once(':')?;
    let (form, direction) = match (form.strip_suffix('<'), form.strip_suffix('=')) {
        (Some(form), _) => (form, Direction::Out),
        (_, Some(form)) => (form, Direction::InOut),
        _ => (form, Direction::In),
    };
    let mut letters = form.chars();
    let kind = kind(letters.next()?)?;
    Some(Field {
        name,
        offset: offset.parse().ok()?,
        width: letters.as_str().parse().ok()?,
        kind,
        direction,
    })
}

fn kind(letter: char) -> Option<FieldKind> {
    Some(match letter {
        'h' => FieldKind::Handle,
        'c' => FieldKind::Class,
        'm' => FieldKind::Command,
        'z' => FieldKind::Bytes,
        'l' => FieldKind::Limit,
        'a' => FieldKind::Address,
        'x' => FieldKind::Flags,
        'n' => FieldKind::Number,
        'i' => FieldKind::Descriptor,
        'g' => FieldKind::Uuid,
        't' => FieldKind::Text,
        'e' => FieldKind::Engine,
        _ => return None,
    })
}
