//! What events mean, added up. Pure: no I/O, no kernel.

pub mod activity;
pub mod aggregate;
pub mod beside;
pub mod budget;
pub mod cost;
pub mod driver;
pub mod finding;
pub mod fleet;
pub mod kernel_name;
mod kind;
pub mod launches;
pub mod memory;
pub mod open;
pub mod order;
pub mod outside;
mod quantile;
pub mod range;
mod reason;
pub mod reserved;
pub mod snapshot;
pub mod step;
pub mod summary;
pub mod totals;
pub mod waiting;
pub mod window;
pub mod work;
pub mod xid;
