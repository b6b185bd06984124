//! What programs, users and machines do to gpuscope at their worst: nothing of it may harm a traced program.
//!
//! After each attack the program's output and status are what they are without gpuscope, no probe is left in the library,
//! no process of gpuscope is left, and it said what it could not do instead of panicking. `GPUSCOPE_TORTURE=brief`
//! (for emulated processors), `short`, `full` or `long` says how often; each test prints how much it tried. `scripts/torture.sh` runs all of it and adds up.

#![allow(clippy::expect_used, reason = "whatever fails here fails the test")]

mod beside;
mod bounds;
mod callbacks;
mod chroots;
mod disks;
mod effort;
mod files;
mod forged;
mod go;
mod groups;
mod kills;
mod programs;
mod rights;
mod starved;
mod subject;
#[path = "../support/mod.rs"]
mod support;
mod tracer;
mod waits;
