//! What events mean, added up. Pure: no I/O, no kernel.

pub mod aggregate;
pub mod driver;
pub mod fleet;
pub mod frame;
pub mod kernel_name;
pub mod launches;
pub mod memory;
pub mod order;
pub mod summary;
pub mod window;
pub mod work;
pub mod xid;
