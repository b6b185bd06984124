//! Modules, libraries and the functions in them.
//!
//! Function handles point at memory laid out as the real driver's: a tag (1 for `CUfunction`,
//! 2 for `CUkernel`) at 0, the name at 8, the library at 0x10, the module at 0x20. What was unloaded is given
//! out again soon, memory of the name included, as an allocator would. With `GPUSIM_HANDLES=opaque` they are of a
//! driver that nobody knows: neither tag nor name can be read.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::{CStr, CString, c_char};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use crate::error::{INVALID_HANDLE, NOT_FOUND};

pub const FUNCTION: u32 = 1;
pub const KERNEL: u32 = 2;

/// Bytes of a name that another one may follow into the same memory.
const NAME_ROOM: usize = 128;

#[repr(C)]
pub struct Function {
    tag: AtomicU32,
    name: AtomicPtr<c_char>,
    library: AtomicUsize,
    unused: usize,
    module: AtomicUsize,
    launches: AtomicU64,
    tail: [u64; 10],
}

impl Function {
    pub fn name(&self) -> *const c_char {
        concealed(self.name.load(Relaxed))
    }

    pub fn library(&self) -> usize {
        self.library.load(Relaxed)
    }

    pub fn module(&self) -> usize {
        self.module.load(Relaxed)
    }

    pub fn count_launch(&self) {
        self.launches.fetch_add(1, Relaxed);
    }

    pub fn text(&self) -> CString {
        // SAFETY: names are leaked and NUL-terminated, and rewritten only under the lock of the images
        unsafe { CStr::from_ptr(self.name()) }.to_owned()
    }

    fn become_one(&self, tag: u32, name: &CStr, owner: usize) {
        let bytes = name.to_bytes_with_nul();
        let old = concealed(self.name.load(Relaxed));
        if bytes.len() <= NAME_ROOM && !old.is_null() {
            // SAFETY: a leaked block of that many bytes, see `room_for`
            unsafe { old.cast::<u8>().copy_from(bytes.as_ptr(), bytes.len()) };
        } else {
            self.name.store(concealed(room_for(bytes)), Relaxed);
        }
        self.tag.store(if is_opaque() { 0x5100 + tag } else { tag }, Relaxed);
        self.library.store(if tag == KERNEL { owner } else { 0 }, Relaxed);
        self.module.store(if tag == FUNCTION { owner } else { 0 }, Relaxed);
    }
}

fn is_opaque() -> bool {
    static OPAQUE: OnceLock<bool> = OnceLock::new();
    *OPAQUE.get_or_init(|| std::env::var("GPUSIM_HANDLES").is_ok_and(|handles| handles == "opaque"))
}

/// What an address is stored as, and the address of what is stored.
fn concealed(name: *mut c_char) -> *mut c_char {
    if is_opaque() && !name.is_null() {
        name.map_addr(|address| !address)
    } else {
        name
    }
}

fn room_for(name: &[u8]) -> *mut c_char {
    let mut room = vec![0u8; name.len().max(NAME_ROOM)];
    room[..name.len()].copy_from_slice(name);
    room.leak().as_mut_ptr().cast()
}

/// Handles of unloaded functions, and how often they were launched by name.
#[derive(Default)]
struct Retired {
    handles: Vec<usize>,
    launches: BTreeMap<CString, u64>,
}

static RETIRED: Mutex<Retired> = Mutex::new(Retired {
    handles: Vec::new(),
    launches: BTreeMap::new(),
});

fn retired() -> MutexGuard<'static, Retired> {
    RETIRED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn function_at(handle: usize) -> &'static Function {
    // SAFETY: only called for handles that `make` has leaked
    unsafe { &*(handle as *const Function) }
}

fn make(tag: u32, name: &CStr, owner: usize) -> usize {
    let handle = retired().handles.pop().unwrap_or_else(|| {
        let made = Function {
            tag: AtomicU32::new(0),
            name: AtomicPtr::default(),
            library: AtomicUsize::new(0),
            unused: 0,
            module: AtomicUsize::new(0),
            launches: AtomicU64::new(0),
            tail: [0; 10],
        };
        Box::leak(Box::new(made)) as *const Function as usize
    });
    function_at(handle).become_one(tag, name, owner);
    handle
}

/// A forked child starts its own account.
pub fn forked() {
    // a lock that another thread held while forking never opens in the child
    let Some(images) = IMAGES.get().and_then(|images| images.try_lock().ok()) else {
        return;
    };
    for handle in images.values().flat_map(|image| image.functions.values()) {
        function_at(*handle).launches.store(0, Relaxed);
    }
    if let Ok(mut retired) = RETIRED.try_lock() {
        retired.launches.clear();
    }
}

/// Launches by name since the last time, of all functions that ever were.
pub fn take_launches() -> BTreeMap<CString, u64> {
    let images = images();
    let mut launches = std::mem::take(&mut retired().launches);
    for handle in images.values().flat_map(|image| image.functions.values()) {
        let count = function_at(*handle).launches.swap(0, Relaxed);
        if count > 0 {
            *launches.entry(function_at(*handle).text()).or_default() += count;
        }
    }
    launches
}

#[derive(Default)]
struct Image {
    /// The source, when the image is text that lists what it defines.
    text: Option<Vec<u8>>,
    functions: HashMap<(u32, CString), usize>,
    globals: HashMap<CString, (u64, u64)>,
}

type Images = HashMap<usize, Image>;

static IMAGES: OnceLock<Mutex<Images>> = OnceLock::new();

fn images() -> MutexGuard<'static, Images> {
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
    let mut images = images();
    let image = images.remove(&handle).ok_or(INVALID_HANDLE)?;
    let mut known = known().write().unwrap_or_else(PoisonError::into_inner);
    let mut retired = retired();
    for handle in image.functions.values() {
        known.remove(handle);
        let count = function_at(*handle).launches.swap(0, Relaxed);
        *retired.launches.entry(function_at(*handle).text()).or_default() += count;
        retired.handles.push(*handle);
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
    let made = || make(tag, name, owner);
    let handle = *image.functions.entry((tag, name.to_owned())).or_insert_with(made);
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
