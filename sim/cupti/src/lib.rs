//! A simulated `libcupti.so.13`: the activity records of what the simulated driver runs, with the layout of the real ones.
//!
//! `GPUSIM_CUPTI` has faults: see `faults`.

#![allow(non_snake_case)]
#![allow(clippy::missing_safety_doc)]

mod api;
mod driver;
mod faults;
mod record;
mod store;
