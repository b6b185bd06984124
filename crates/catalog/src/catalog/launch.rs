//! What a row has to do with kernels: which of its arguments names the one that it launches, and which say in what shape
//! it runs; or which argument gets the handle of a kernel that another one names.

use super::Catalog;
use super::arg::Arg;
use super::kind::Kind;
use super::path::{Place, place};

/// Numbers of a shape: grid x y z, block x y z, bytes of dynamic shared memory.
pub(crate) const SHAPE: usize = 7;

/// What a row does with `kernel`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Launches it.
    Launch,
    /// Launches what this function of the host stands for.
    Stub,
    /// Has given that handle to the kernel of this name, a C string.
    Name(Place),
    /// Has given that handle to what this other handle stands for.
    Same(Place),
}

/// A row's `kernel` and `shape`, its `stub`, or its `names`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    pub role: Role,
    /// A `CUfunction` or `CUkernel`, or a function of the host.
    pub kernel: Place,
    /// `None`: the call does not say.
    pub shape: Option<[Place; SHAPE]>,
}

/// Reads `kernel = "f"` and `shape = "gridDimX gridDimY …"`.
///
/// # Errors
/// Says what was found and what was expected.
pub(super) fn parse(kernel: &str, shape: Option<&str>, args: &[Arg], catalog: &Catalog) -> Result<Launch, String> {
    let shape = shape.map(|text| shape_of(text, args, catalog)).transpose()?;
    Ok(Launch {
        role: Role::Launch,
        kernel: place(kernel, args, catalog)?,
        shape,
    })
}

/// Reads `stub = "func"`.
///
/// # Errors
/// As [`parse`].
pub(super) fn parse_stub(stub: &str, args: &[Arg], catalog: &Catalog) -> Result<Launch, String> {
    Ok(Launch {
        role: Role::Stub,
        kernel: place(stub, args, catalog)?,
        shape: None,
    })
}

/// Reads `names = "hfunc name"` and `names = "pFunc from=kernel"`.
///
/// # Errors
/// As [`parse`].
pub(super) fn parse_names(text: &str, args: &[Arg], catalog: &Catalog) -> Result<Launch, String> {
    let form = || format!("names \"{text}\" is not of the form \"HANDLE NAME\" or \"HANDLE from=HANDLE\"");
    let (handle, source) = text.split_once(' ').ok_or_else(form)?;
    let role = match source.trim().strip_prefix("from=") {
        Some(other) => Role::Same(place(other, args, catalog)?),
        None => Role::Name(text_at(source.trim(), args, catalog)?),
    };
    Ok(Launch {
        role,
        kernel: place(handle, args, catalog)?,
        shape: None,
    })
}

fn text_at(name: &str, args: &[Arg], catalog: &Catalog) -> Result<Place, String> {
    let place = place(name, args, catalog)?;
    let is_text = args.get(place.arg).is_some_and(|arg| arg.kind == Kind::CStr);
    is_text.then_some(place).ok_or_else(|| format!("`{name}` is no cstr"))
}

fn shape_of(text: &str, args: &[Arg], catalog: &Catalog) -> Result<[Place; SHAPE], String> {
    let places = text.split_whitespace().map(|path| place(path, args, catalog));
    let places = places.collect::<Result<Vec<_>, _>>()?;
    let form = || format!("shape \"{text}\" needs {SHAPE} arguments: grid x y z, block x y z, bytes of shared memory");
    places.try_into().map_err(|_| form())
}
