//! What can be allocated, how it is freed, and what each is in the account.

use super::Account;
use super::random::Random;
use crate::driver_api::Driver;
use crate::{cuda, cuda_memory};

pub const PAGE: u64 = 2 << 20;

/// Something allocated, with what freeing it needs.
pub enum Thing {
    Device(u64),
    Managed(u64),
    Async(u64),
    Pinned(u64),
    Registered(Vec<u8>),
    Array(u64),
    Mipmapped(u64),
    Space(Space),
    Graph(Graph),
    /// Memory of a graph that is no more.
    Orphan(u64),
    External {
        external: u64,
        view: Option<u64>,
        view_bytes: u64,
    },
    Imported(u64),
}

/// Addresses, and the physical memory behind them as far as there is any.
pub struct Space {
    pub address: u64,
    pub handle: Option<u64>,
    pub mapped: bool,
}

pub struct Graph {
    pub graph: u64,
    pub runnable: u64,
    pub address: u64,
    pub live: bool,
}

pub struct Live {
    pub thing: Thing,
    pub device: i32,
    pub bytes: u64,
}

/// Whether a context takes it along when it ends; `reset` is that of the primary one.
pub fn ends_with_context(thing: &Thing, reset: bool) -> bool {
    match thing {
        Thing::Space(_) | Thing::Imported(_) => false,
        Thing::Async(_) | Thing::Graph(_) | Thing::Orphan(_) => reset,
        _ => true,
    }
}

/// One of the ways to get memory in the current context.
pub fn make_owned(random: &mut Random, driver: &Driver, device: i32, account: &mut Account) -> Option<Live> {
    let bytes = [256, 4096, 4096, 65_536, 1 << 20, 3 << 20][random.below(6) as usize];
    let live = |thing, bytes| Some(Live { thing, device, bytes });
    match random.below(9) {
        0..=2 => {
            let made = match random.below(3) {
                0 => driver.alloc(bytes as usize),
                _ => cuda::malloc(bytes as usize),
            };
            let address = account.made("device", device, bytes, made)?;
            live(Thing::Device(address), bytes)
        }
        3 => {
            let made = cuda_memory::malloc_pitch(1000, 1 + random.below(64) as usize);
            let bytes = made.map_or(0, |(_, bytes)| bytes);
            let address = account.made("device", device, bytes, made.map(|(address, _)| address))?;
            live(Thing::Device(address), bytes)
        }
        4 => {
            let address = account.made("managed", device, bytes, cuda::malloc_managed(bytes as usize))?;
            live(Thing::Managed(address), bytes)
        }
        5 => {
            let made = match random.below(3) {
                0 => driver.alloc_host(bytes as usize),
                1 => cuda_memory::host_alloc(bytes as usize),
                _ => cuda::malloc_host(bytes as usize),
            };
            let address = account.made("pinned", device, bytes, made)?;
            live(Thing::Pinned(address), bytes)
        }
        6 => {
            let memory = vec![0u8; bytes as usize];
            let start = memory.as_ptr() as u64;
            let result = cuda_memory::register(start, memory.len()).map(|()| start);
            account.made("registered", device, bytes, result)?;
            live(Thing::Registered(memory), bytes)
        }
        7 => {
            let (w, h, d) = (1 + random.below(256), random.below(64), random.below(4));
            let bytes = w * h.max(1) * d.max(1) * 4;
            let (w, h, d) = (w as usize, h as usize, d as usize);
            let made = if d == 0 {
                cuda_memory::malloc_array(w, h)
            } else {
                cuda_memory::malloc_volume(w, h, d)
            };
            let array = account.made("array", device, bytes, made)?;
            live(Thing::Array(array), bytes)
        }
        _ => {
            let bytes = (256 * 64 + 128 * 32 + 64 * 16) * 4;
            let array = account.made("mipmapped", device, bytes, cuda_memory::malloc_levels(256, 64, 3))?;
            live(Thing::Mipmapped(array), bytes)
        }
    }
}

/// One of the ways to get memory that belongs to no context.
pub fn make_shared(random: &mut Random, driver: &Driver, device: i32, account: &mut Account) -> Option<Live> {
    let bytes = [512, 4096, 100_000, 5 << 20][random.below(4) as usize];
    match random.below(6) {
        0..=2 => {
            let address = account.made("async", device, bytes, cuda::malloc_async(bytes as usize, 0))?;
            Some(Live {
                thing: Thing::Async(address),
                device,
                bytes,
            })
        }
        3 => make_space(driver, device, PAGE * (1 + random.below(3)), account),
        4 => make_graph(device, bytes, account),
        _ if random.one_in(2) => make_import(driver, device, account),
        _ => make_external(device, bytes, account),
    }
}

/// Addresses with memory behind them; its handle may be released while it is mapped.
pub fn make_space(driver: &Driver, device: i32, bytes: u64, account: &mut Account) -> Option<Live> {
    let address = account.made("reserved", -1, bytes, driver.reserve(bytes))?;
    let handle = account.made("physical", device, bytes, driver.create_on(device, bytes));
    let mut space = Space {
        address,
        handle,
        mapped: false,
    };
    if let Some(handle) = handle {
        let mapped = driver.map(address, bytes, handle).map(|()| address);
        space.mapped = account.made("mapped", device, bytes, mapped).is_some();
        let _ = driver.set_access_of(device, address, bytes);
    }
    Some(Live {
        thing: Thing::Space(space),
        device,
        bytes,
    })
}

/// A launched graph with an allocation node and nothing that frees.
fn make_graph(device: i32, bytes: u64, account: &mut Account) -> Option<Live> {
    let graph = cuda_memory::graph().ok()?;
    let added = cuda_memory::graph_alloc(graph, device, bytes);
    let Some(address) = account.made("graph-node", device, bytes, added) else {
        let _ = cuda::graph_destroy(graph);
        return None;
    };
    let runnable = cuda::graph_instantiate(graph).ok()?;
    let live = cuda::graph_launch(runnable, 0, 0).is_ok();
    if live {
        account.add("graph", device, bytes);
    }
    let thing = Thing::Graph(Graph {
        graph,
        runnable,
        address,
        live,
    });
    Some(Live { thing, device, bytes })
}

/// Physical memory of which only an imported handle is kept.
fn make_import(driver: &Driver, device: i32, account: &mut Account) -> Option<Live> {
    let handle = account.made("physical", device, PAGE, driver.create_on(device, PAGE))?;
    let file = driver.export(handle);
    account.freed("physical", device, PAGE, driver.release(handle));
    let file = file.ok()?;
    let imported = account.made("imported", device, PAGE, driver.import(file));
    // SAFETY: the file the driver made for us.
    unsafe { libc::close(file) };
    Some(Live {
        thing: Thing::Imported(imported?),
        device,
        bytes: PAGE,
    })
}

fn make_external(device: i32, bytes: u64, account: &mut Account) -> Option<Live> {
    // SAFETY: a C string.
    let file = unsafe { libc::memfd_create(c"external".as_ptr(), libc::MFD_CLOEXEC) };
    let external = account.made("external", device, bytes, cuda_memory::import_external(file, bytes))?;
    let view_bytes = bytes / 2;
    let view = cuda_memory::map_external(external, 0, view_bytes);
    let view = account.made("mapped", device, view_bytes, view);
    Some(Live {
        thing: Thing::External {
            external,
            view,
            view_bytes,
        },
        device,
        bytes,
    })
}
