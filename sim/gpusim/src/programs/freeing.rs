//! How things are freed: rightly, with the context they are in, and wrongly.

use super::Account;
use super::random::Random;
use super::things::{Graph, Live, Space, Thing};
use crate::driver_api::Driver;
use crate::{cuda, cuda_memory};

impl Live {
    /// Takes off what a context takes along.
    pub fn ended(&self, account: &mut Account) {
        let family = match &self.thing {
            Thing::Device(_) => "device",
            Thing::Managed(_) => "managed",
            Thing::Async(_) => "async",
            Thing::Pinned(_) => "pinned",
            Thing::Registered(_) => "registered",
            Thing::Array(_) => "array",
            Thing::Mipmapped(_) => "mipmapped",
            Thing::Orphan(_) => "graph",
            Thing::Graph(graph) if graph.live => "graph",
            Thing::External { view, view_bytes, .. } => {
                if view.is_some() {
                    account.end("mapped", self.device, *view_bytes);
                }
                "external"
            }
            Thing::Graph(_) | Thing::Space(_) | Thing::Imported(_) => return,
        };
        account.end(family, self.device, self.bytes);
    }

    /// Frees it; what could not be freed comes back.
    pub fn free(self, driver: &Driver, account: &mut Account) -> Option<Live> {
        let Live { thing, device, bytes } = self;
        let mut simple = |family, result: Result<(), u32>| account.freed(family, device, bytes, result);
        let gone = match &thing {
            Thing::Device(address) if bytes == 4096 => simple("device", driver.free(*address)),
            Thing::Device(address) => simple("device", cuda::free(*address)),
            Thing::Managed(address) => simple("managed", cuda::free(*address)),
            Thing::Async(address) => simple("async", cuda::free_async(*address, 0)),
            Thing::Pinned(address) => simple("pinned", cuda::free_host(*address)),
            Thing::Registered(memory) => simple("registered", cuda::host_unregister(memory.as_ptr() as u64)),
            Thing::Array(array) => simple("array", cuda_memory::free_array(*array)),
            Thing::Mipmapped(array) => simple("mipmapped", cuda_memory::free_levels(*array)),
            Thing::Orphan(address) => simple("graph", cuda::free(*address)),
            Thing::Imported(handle) => simple("imported", driver.release(*handle)),
            Thing::Space(_) | Thing::Graph(_) | Thing::External { .. } => {
                return free_parts(thing, device, bytes, driver, account);
            }
        };
        (!gone).then_some(Live { thing, device, bytes })
    }
}

fn free_parts(thing: Thing, device: i32, bytes: u64, driver: &Driver, account: &mut Account) -> Option<Live> {
    let thing = match thing {
        Thing::Space(space) => free_space(space, device, bytes, driver, account).map(Thing::Space),
        Thing::Graph(graph) => free_graph(graph, device, bytes, account),
        Thing::External {
            external,
            view,
            view_bytes,
        } => {
            let view = view.filter(|view| !account.freed("mapped", device, view_bytes, cuda::free(*view)));
            let gone =
                view.is_none() && account.freed("external", device, bytes, cuda_memory::destroy_external(external));
            (!gone).then_some(Thing::External {
                external,
                view,
                view_bytes,
            })
        }
        other => Some(other),
    };
    thing.map(|thing| Live { thing, device, bytes })
}

/// Releases before unmapping: the memory goes with the mapping.
fn free_space(mut space: Space, device: i32, bytes: u64, driver: &Driver, account: &mut Account) -> Option<Space> {
    let had_memory = space.handle.is_some() || space.mapped;
    space.handle = space.handle.filter(|handle| !account.done(driver.release(*handle)));
    if space.mapped && account.freed("mapped", device, bytes, driver.unmap(space.address, bytes)) {
        space.mapped = false;
    }
    if space.handle.is_some() || space.mapped {
        return Some(space);
    }
    if had_memory {
        account.end("physical", device, bytes);
    }
    let gone = account.freed("reserved", -1, bytes, driver.free_addresses(space.address, bytes));
    (!gone).then_some(space)
}

/// Ends the graph; its memory may outlive it.
fn free_graph(graph: Graph, device: i32, bytes: u64, account: &mut Account) -> Option<Thing> {
    let first = graph.live && graph.address.is_multiple_of(1024);
    let freed = first && account.freed("graph", device, bytes, cuda::free_async(graph.address, 0));
    let ended = cuda::graph_exec_destroy(graph.runnable).and_then(|()| cuda::graph_destroy(graph.graph));
    if ended.is_ok() {
        account.end("graph-node", device, bytes);
    }
    (graph.live && !freed).then_some(Thing::Orphan(graph.address))
}

/// Frees that must fail.
pub fn free_wrongly(random: &mut Random, driver: &Driver, thread: u64, device: i32, account: &mut Account) {
    const BOGUS: u64 = 0xdead_0000;
    match random.below(7) {
        0 => account.unknown_free(cuda::free(BOGUS)),
        1 => account.unknown_free(cuda::free_host(BOGUS)),
        2 => account.unknown_free(cuda_memory::free_array(BOGUS)),
        3 => account.unknown_free(cuda::free_async(BOGUS, 0)),
        4 => account.unknown_free(driver.release(BOGUS)),
        5 => account.failed_as("device", device, cuda::malloc(1 << 50)),
        _ => {
            // A size of its own, so that no other thread is given the address in between.
            let bytes = (1 << 20) + 512 * (1 + thread);
            let made = cuda::malloc(bytes as usize);
            if let Some(address) = account.made("device", device, bytes, made) {
                if account.freed("device", device, bytes, cuda::free(address)) {
                    account.double_free(cuda::free(address));
                } else {
                    let _ = account.freed("device", device, bytes, cuda::free(address));
                }
            }
        }
    }
}
