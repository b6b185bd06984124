//! What a row launches: which of its arguments names the kernel, and which say in what shape it runs.

use super::Catalog;
use super::arg::Arg;
use super::path::{Place, place};

/// Numbers of a shape: grid x y z, block x y z, bytes of dynamic shared memory.
pub const SHAPE: usize = 7;

/// A row's `kernel` and `shape`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// A `CUfunction` or `CUkernel`.
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
        kernel: place(kernel, args, catalog)?,
        shape,
    })
}

fn shape_of(text: &str, args: &[Arg], catalog: &Catalog) -> Result<[Place; SHAPE], String> {
    let places = text.split_whitespace().map(|path| place(path, args, catalog));
    let places = places.collect::<Result<Vec<_>, _>>()?;
    let form = || format!("shape \"{text}\" needs {SHAPE} arguments: grid x y z, block x y z, bytes of shared memory");
    places.try_into().map_err(|_| form())
}
