//! The simulated driver, as far as it tells what it runs.

use std::ffi::{CStr, c_void};

/// As the driver's `activity::Told`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Told {
    pub kind: u32,
    pub device: u32,
    pub context: u32,
    pub stream: u32,
    pub start_ns: u64,
    pub end_ns: u64,
    pub bytes: u64,
    pub node: u64,
    pub graph: u32,
    pub copy_kind: u32,
    pub from: u32,
    pub to: u32,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared: u32,
    pub pad: u32,
    /// An address; 0: none.
    pub name: usize,
}

pub type Watcher = extern "C" fn(*const Told);
pub type StreamWatcher = extern "C" fn(usize, usize);
type Watch = extern "C" fn(Option<Watcher>, Option<StreamWatcher>) -> bool;
/// What hears of nodes that are put into graphs by hand, and what says whether a graph with such copies fails.
type NodeWatchers = (extern "C" fn(u32, *const usize), extern "C" fn() -> bool);
type WatchNodes = extern "C" fn(extern "C" fn(u32, *const usize), extern "C" fn() -> bool);
type Numbers = unsafe extern "C" fn(usize, usize, *mut [u32; 2]) -> u32;

fn symbol(name: &CStr) -> *mut c_void {
    // SAFETY: names; the driver is never unloaded.
    unsafe {
        let driver = libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD);
        if driver.is_null() {
            return driver;
        }
        libc::dlsym(driver, name.as_ptr())
    }
}

/// Has the driver tell what runs; false: another library has done so. `None`: there is no driver.
pub fn watch(watcher: Option<Watcher>, streams: Option<StreamWatcher>, nodes: NodeWatchers) -> Option<bool> {
    let entry = symbol(c"gpusim_driver_watch");
    if entry.is_null() {
        return None;
    }
    // SAFETY: the driver's entry of this name is such a function.
    let entry: Watch = unsafe { std::mem::transmute(entry) };
    let is_alone = entry(watcher, streams);
    let entry = symbol(c"gpusim_driver_watch_nodes");
    if is_alone && !entry.is_null() {
        // SAFETY: as above.
        let entry: WatchNodes = unsafe { std::mem::transmute(entry) };
        entry(nodes.0, nodes.1);
    }
    Some(is_alone)
}

/// The numbers of a context and of a stream.
pub fn numbers(context: usize, stream: usize) -> Option<[u32; 2]> {
    let entry = symbol(c"gpusim_driver_numbers");
    if entry.is_null() {
        return None;
    }
    // SAFETY: as above.
    let entry: Numbers = unsafe { std::mem::transmute(entry) };
    let mut found = [0; 2];
    // SAFETY: room for two.
    (unsafe { entry(context, stream, &raw mut found) } == 0).then_some(found)
}
