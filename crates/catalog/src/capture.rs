//! From a row of the catalogue to what the kernel copies for it, and where each argument then lies.
//!
//! Owns the one mapping that both sides follow: the kernel program gets [`Plan::spec`], [`crate::decode`]
//! follows [`Plan::fields`]. Pure.

use crate::catalog::{Catalog, Class, Layer, Returns, Row};
use crate::wire;

mod direction;
mod field;
mod hook;
mod launch;
mod memory;
mod number;
mod work;

pub use direction::direction;
pub(crate) use field::kind_bytes;
pub use field::{Field, Show};

/// What is captured of one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub spec: wire::Spec,
    pub fields: Vec<Field>,
}

/// How a row is used in this run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Use {
    /// Send an event for each call.
    pub stream: bool,
    /// Put a probe at its return.
    pub returns: bool,
    /// Follow what it does to memory.
    pub memory: bool,
    /// And from where it is called, if it allocates.
    pub stacks: bool,
    /// Tell launches apart by kernel.
    pub kernels: bool,
    /// Follow what is put into streams.
    pub work: bool,
    /// And from where: of launches, of what waits.
    pub launch_stacks: bool,
    pub sync_stacks: bool,
}

impl Use {
    /// For nothing but counts and lines.
    pub fn counting(stream: bool, returns: bool) -> Use {
        Use {
            stream,
            returns,
            memory: false,
            stacks: false,
            kernels: false,
            work: false,
            launch_stacks: false,
            sync_stacks: false,
        }
    }
}

/// Plans the capture of `row`.
pub fn plan(catalog: &Catalog, row: &Row, used: Use) -> Plan {
    let mut planner = Planner {
        catalog,
        spec: wire::Spec::EMPTY,
        used,
    };
    planner.spec.flags = flags(catalog, row, used);
    planner.spec.ground = ground(catalog, row);
    planner.spec.keep_open = u8::from(used.returns && may_load(row));
    planner.spec.ok = row.ok.first().copied().unwrap_or(0);
    let library = catalog.library_with(row.library);
    planner.spec.ended = library.and_then(|library| library.ended).unwrap_or(0);
    planner.size(row);
    planner.direction(row);
    if let Some(effect) = row.memory.as_ref().filter(|_| used.memory) {
        planner.memory(row, effect);
    }
    if let Some(launch) = row.launch.as_ref().filter(|_| used.kernels) {
        planner.launch(row, launch);
    }
    if let Some(work) = row.work.as_ref().filter(|_| used.work && used.returns) {
        planner.work(row, work);
    }
    hook::plan(&mut planner, row);
    let fields = if row.raw {
        field::raw_fields()
    } else {
        row.args.iter().map(|arg| planner.field(arg)).collect()
    };
    planner.settle();
    Plan {
        spec: planner.spec,
        fields,
    }
}

fn flags(catalog: &Catalog, row: &Row, used: Use) -> u8 {
    let typed = catalog
        .library_with(row.library)
        .is_some_and(|library| library.errors.is_some());
    let fallible = typed && used.returns && row.returns == Returns::Error && row.class != Class::Error;
    u8::from(used.stream) * wire::SPEC_STREAM
        + u8::from(used.returns) * wire::SPEC_RETURN
        + u8::from(fallible) * wire::SPEC_FALLIBLE
        + u8::from(row.unloads && used.kernels) * wire::SPEC_UNLOAD
}

/// Whether calls may load libraries, while a thread of the program has to wait for their probes.
fn may_load(row: &Row) -> bool {
    let sets_up = matches!(row.class, Class::Context | Class::Module | Class::Alloc | Class::Memory);
    sets_up && !row.chatty && !row.site.is_in_kernel()
}

fn ground(catalog: &Catalog, row: &Row) -> u32 {
    let library = catalog.library_with(row.library);
    // what a user's file says of a function is the user's word
    let follows = library.is_some_and(|library| matches!(library.layer, Layer::Runtime | Layer::Driver));
    let any_task = row.in_kernel.as_ref().is_some_and(|row| row.any_task);
    u32::from(row.site.is_in_kernel()) * wire::GROUND_KERNEL
        + u32::from(any_task) * wire::GROUND_ANY_TASK
        + u32::from(follows) * wire::GROUND_FOLLOWED
}

struct Planner<'a> {
    catalog: &'a Catalog,
    spec: wire::Spec,
    used: Use,
}

impl Planner<'_> {
    fn settle(&mut self) {
        let spec = &mut self.spec;
        spec.size = if spec.block_qwords > 0 || spec.texts > 0 {
            wire::SIZE_LARGE
        } else if spec.stack_words > 0 || spec.values > 2 || spec.hook.flags & wire::HOOK_SITE != 0 {
            wire::SIZE_MEDIUM
        } else {
            wire::SIZE_SMALL
        };
    }
}

#[cfg(test)]
mod tests;
