//! Expressions over arguments: how many bytes a call moves and in which direction.

use super::Catalog;
use super::arg::{Arg, Pass};
use super::kind::Kind;

/// A number held by an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    /// Index into the row's arguments.
    pub arg: usize,
    /// Offset and size in bytes of a field of the argument's struct: behind the
    /// pointer, or in the argument itself when it is passed by value. `None`:
    /// the argument's value, or what its pointer points to.
    pub field: Option<(u16, u8)>,
}

/// One factor of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Factor {
    /// A fixed number.
    Constant(u64),
    /// A number of the call. Where the argument [is an out one](Arg::is_out),
    /// it is known at return only.
    Path {
        /// Index into the row's arguments.
        arg: usize,
        /// As in [`Place::field`].
        field: Option<(u16, u8)>,
    },
}

/// A copy's fixed direction. Arrays count as device memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CopyKind {
    /// Host to host.
    HtoH,
    /// Host to device.
    HtoD,
    /// Device to host.
    DtoH,
    /// Within one device.
    DtoD,
    /// Between devices.
    PtoP,
}

impl CopyKind {
    /// Every direction.
    pub const ALL: [Self; 5] = [Self::HtoH, Self::HtoD, Self::DtoH, Self::DtoD, Self::PtoP];

    /// `HtoD` and so on.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::HtoH => "HtoH",
            Self::HtoD => "HtoD",
            Self::DtoH => "DtoH",
            Self::DtoD => "DtoD",
            Self::PtoP => "PtoP",
        }
    }
}

/// How a row says where a copy goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Always the same.
    Constant(CopyKind),
    /// A `cudaMemcpyKind` (0 HtoH, 1 HtoD, 2 DtoH, 3 DtoD, 4 by address).
    MemcpyKind(Place),
    /// Two `CUmemorytype` (1 host, 2 device, 3 array, 4 unified).
    MemoryTypes {
        /// Of the source.
        from: Place,
        /// Of the target.
        to: Place,
    },
}

/// Finds `arg`, `arg.field.path`, or `arg@8`: eight bytes at an offset behind a pointer.
pub(super) fn place(text: &str, args: &[Arg], catalog: &Catalog) -> Result<Place, String> {
    if let Some((name, offset)) = text.split_once('@') {
        return at_offset(name, offset, args);
    }
    let (name, path) = text
        .split_once('.')
        .map_or((text, None), |(name, path)| (name, Some(path)));
    let found = args
        .iter()
        .position(|arg| arg.name == name)
        .and_then(|at| Some((at, args.get(at)?)));
    let Some((at, arg)) = found else {
        return Err(super::hint::undefined(
            "argument",
            name,
            args.iter().map(|arg| arg.name.as_str()),
        ));
    };
    let Some(path) = path else {
        let aggregate = matches!(arg.kind, Kind::Dim3 | Kind::Struct(_) | Kind::Bytes(_) | Kind::Chars(_));
        let in_vector_register = arg.kind == Kind::F32 && arg.pass == Pass::Value;
        if aggregate || in_vector_register || matches!(arg.kind, Kind::F64 | Kind::Text) {
            return Err(format!("`{name}` is no number; name a field of it"));
        }
        return Ok(Place { arg: at, field: None });
    };
    let dimension = ["x", "y", "z"].iter().zip([0, 4, 8]).find(|(name, _)| **name == path);
    let field = match arg.kind {
        Kind::Dim3 => dimension
            .map(|(_, offset)| (offset, 4))
            .ok_or_else(|| super::hint::undefined("field", path, ["x", "y", "z"]))?,
        Kind::Struct(id) => {
            let table = catalog.structs.get(usize::from(id.0));
            let field = table.and_then(|table| table.field(path)).ok_or_else(|| {
                let names = table.iter().flat_map(|t| &t.fields).map(|field| field.path.as_str());
                super::hint::undefined("field", path, names)
            })?;
            let bytes = u8::try_from(field.bytes)
                .ok()
                .filter(|bytes| matches!(bytes, 1 | 2 | 4 | 8));
            (field.offset, bytes.ok_or_else(|| format!("`{text}` is no number"))?)
        }
        _ => {
            return Err(format!("`{name}` is no struct, so it has no field `{path}`"));
        }
    };
    Ok(Place {
        arg: at,
        field: Some(field),
    })
}

fn at_offset(name: &str, offset: &str, args: &[Arg]) -> Result<Place, String> {
    let arg = args.iter().position(|arg| arg.name == name && arg.pass != Pass::Value);
    let arg = arg.ok_or_else(|| format!("`{name}` is no pointer argument"))?;
    let offset = offset.parse().ok().filter(|offset| *offset <= 4096);
    let offset = offset.ok_or_else(|| format!("`{name}@…` needs an offset of at most 4096 bytes"))?;
    Ok(Place {
        arg,
        field: Some((offset, 8)),
    })
}

/// Reads a product: `width*height`, `N*4`.
pub(super) fn product(text: &str, args: &[Arg], catalog: &Catalog) -> Result<Vec<Factor>, String> {
    text.split('*')
        .map(str::trim)
        .map(|part| match part.parse() {
            Ok(number) => Ok(Factor::Constant(number)),
            Err(_) => place(part, args, catalog).map(|Place { arg, field }| Factor::Path { arg, field }),
        })
        .collect()
}

/// Reads a direction: a constant, an argument path, or `from>to`.
pub(super) fn direction(text: &str, args: &[Arg], catalog: &Catalog) -> Result<Direction, String> {
    if let Some(kind) = CopyKind::ALL.into_iter().find(|kind| kind.name() == text) {
        return Ok(Direction::Constant(kind));
    }
    if let Some((from, to)) = text.split_once('>') {
        let from = place(from.trim(), args, catalog)?;
        return Ok(Direction::MemoryTypes {
            from,
            to: place(to.trim(), args, catalog)?,
        });
    }
    place(text, args, catalog)
        .map(Direction::MemcpyKind)
        .map_err(|why| format!("{why}; a direction is HtoD, DtoH, DtoD, HtoH, PtoP or an argument"))
}
