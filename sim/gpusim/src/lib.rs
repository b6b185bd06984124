//! A program that uses the CUDA runtime in ways a tracer must get right, and says what it did.

mod calls;
mod cli;
mod counts;
mod cuda;
mod cuda_memory;
mod cuda_work;
mod driver_api;
mod driver_raw;
mod pace;
mod programs;
mod scenarios;

pub use cli::main;
