//! Modules, libraries and the functions in them.
//!
//! Function handles point at memory laid out as the real driver's: a tag (1 for `CUfunction`,
//! 2 for `CUkernel`) at 0, the name at 8, the library at 0x10, the module at 0x20.

use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, CString, c_char};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use crate::error::{INVALID_HANDLE, NOT_FOUND};

pub const FUNCTION: u32 = 1;
pub const KERNEL: u32 = 2;

#[repr(C)]
pub struct Function {
    pub tag: u32,
    pub name: *const c_char,
    pub library: usize,
    unused: usize,
    pub module: usize,
    tail: [u64; 11],
}

#[derive(Default)]
struct Image {
    /// The source, when the image is text that lists what it defines.
    text: Option<Vec<u8>>,
    functions: HashMap<(u32, CString), usize>,
    globals: HashMap<CString, (u64, u64)>,
}

type Images = HashMap<usize, Image>;

fn images() -> MutexGuard<'static, Images> {
    static IMAGES: OnceLock<Mutex<Images>> = OnceLock::new();
    IMAGES
        .get_or_init(Mutex::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

fn known() -> &'static RwLock<HashSet<usize>> {
    static KNOWN: OnceLock<RwLock<HashSet<usize>>> = OnceLock::new();
    KNOWN.get_or_init(RwLock::default)
}

/// Loads an image. PTX text is searched for its entries; any other image has every name.
///
/// # Safety
/// `image` is null or points at eight bytes, and to a NUL-terminated string if they are text.
pub unsafe fn load(image: *const u8) -> usize {
    let mut text = None;
    if !image.is_null() {
        // SAFETY: by this function's contract.
        let start = unsafe { image.cast::<[u8; 8]>().read() };
        if matches!(start[0], b'.' | b'/' | b'\n') && !start.contains(&0) {
            // SAFETY: text, so terminated by this function's contract.
            text = Some(unsafe { CStr::from_ptr(image.cast()) }.to_bytes().to_vec());
        }
    }
    let handle = Box::leak(Box::new([0u64; 16])) as *const _ as usize;
    images().insert(
        handle,
        Image {
            text,
            ..Image::default()
        },
    );
    handle
}

pub fn unload(handle: usize) -> Result<(), u32> {
    let image = images().remove(&handle).ok_or(INVALID_HANDLE)?;
    let mut known = known().write().unwrap_or_else(PoisonError::into_inner);
    for function in image.functions.values() {
        known.remove(function);
    }
    Ok(())
}

pub fn is_loaded(handle: usize) -> bool {
    images().contains_key(&handle)
}

/// The function (or kernel) of a name; the same handle every time.
pub fn function(owner: usize, name: &CStr, tag: u32) -> Result<usize, u32> {
    let mut images = images();
    let image = images.get_mut(&owner).ok_or(INVALID_HANDLE)?;
    if name.is_empty() || !image.defines(name.to_bytes()) {
        return Err(NOT_FOUND);
    }
    let handle = *image.functions.entry((tag, name.to_owned())).or_insert_with(|| {
        let made = Function {
            tag,
            name: name.to_owned().into_raw(),
            library: if tag == KERNEL { owner } else { 0 },
            unused: 0,
            module: if tag == FUNCTION { owner } else { 0 },
            tail: [0; 11],
        };
        Box::leak(Box::new(made)) as *const Function as usize
    });
    known().write().unwrap_or_else(PoisonError::into_inner).insert(handle);
    Ok(handle)
}

/// What a function handle points at, if it is one.
pub fn look(handle: usize) -> Result<&'static Function, u32> {
    let known = known().read().unwrap_or_else(PoisonError::into_inner);
    if !known.contains(&handle) {
        return Err(INVALID_HANDLE);
    }
    // SAFETY: handles in `known` are leaked boxes of this type.
    Ok(unsafe { &*(handle as *const Function) })
}

/// The address and size of a global variable, which `make` allocates at its first use.
pub fn global(owner: usize, name: &CStr, make: impl FnOnce() -> Result<(u64, u64), u32>) -> Result<(u64, u64), u32> {
    let mut images = images();
    let image = images.get_mut(&owner).ok_or(INVALID_HANDLE)?;
    if let Some(found) = image.globals.get(name) {
        return Ok(*found);
    }
    let made = make()?;
    image.globals.insert(name.to_owned(), made);
    Ok(made)
}

impl Image {
    fn defines(&self, name: &[u8]) -> bool {
        let Some(text) = &self.text else { return true };
        text.windows(name.len() + 8).any(|w| {
            w.starts_with(b".entry ")
                && &w[7..7 + name.len()] == name
                && !matches!(w[7 + name.len()], b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'$')
        })
    }
}
