//! Memory reports against the simulator's own book, to the byte: what a program holds, held at most, was refused and
//! gave back, whatever it does and however it ends.
//!
//! Not in here: a process whose driver cannot be hooked while its runtime can. The simulated runtime always calls the
//! simulated driver.

mod account;
mod book;
mod devices;
mod late;
mod loss;
mod pause;
mod processes;
mod programs;
mod random;
mod scale;
mod tensors;

use crate::support;
