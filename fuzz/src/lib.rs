//! What the fuzz targets share: a catalogue with its capture plans, and ELF files around the bytes under test.

mod elf;
pub mod memory;

pub use elf::{Part, library};

use gpuscope::capture::{Plan, Use, plan};
use gpuscope::catalog::Catalog;

/// The built-in catalogue and a plan for each of its rows.
pub struct World {
    pub catalog: Catalog,
    pub plans: Vec<Plan>,
}

impl Default for World {
    fn default() -> World {
        let catalog = Catalog::builtin().expect("the built-in tables");
        let used = Use {
            stream: true,
            returns: true,
            memory: true,
            stacks: true,
            kernels: true,
            work: true,
            launch_stacks: true,
            sync_stacks: true,
        };
        let plans = catalog.rows.iter().map(|row| plan(&catalog, row, used)).collect();
        World { catalog, plans }
    }
}
