//! A catalogue with its capture plans.

use gpuscope::capture::{Plan, Use, plan};
use gpuscope::catalog::Catalog;
use std::sync::LazyLock;

/// The built-in catalogue and a plan for each of its rows.
pub struct World {
    pub catalog: Catalog,
    pub plans: Vec<Plan>,
}

/// All that can be captured.
pub const EVERYTHING: Use = Use {
    stream: true,
    returns: true,
    memory: true,
    stacks: true,
    kernels: true,
    work: true,
    launch_stacks: true,
    sync_stacks: true,
};

static WORLD: LazyLock<World> = LazyLock::new(World::default);

impl World {
    /// The one that all inputs share.
    pub fn shared() -> &'static World {
        &WORLD
    }
}

impl Default for World {
    fn default() -> World {
        let catalog = Catalog::builtin().expect("the built-in tables");
        let plans = catalog.rows.iter().map(|row| plan(&catalog, row, EVERYTHING)).collect();
        World { catalog, plans }
    }
}
