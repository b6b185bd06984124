//! What an ELF file on disk says about the functions inside it.
//!
//! Owns: refusing files that are not usable, symbol tables, the functions that hold given bytes, static probes, named
//! data, debug sections, which kernels a file's code registers, the byte at which a function is best probed, and the
//! entry points of a CUDA runtime which was linked statically. It knows nothing of processes, of memory maps, of the kernel's attach calls or of what a CUDA
//! function's arguments mean.
//!
//! Every offset is a file offset in bytes, which is what the kernel wants for a uprobe. Memory stays bounded: no file is
//! ever read whole, and a section that is larger than its limit is refused with the limit in the message.

mod aarch64;
mod beginning;
mod bytes;
mod data;
mod debug;
mod dynamic;
mod error;
mod extent;
mod file;
mod foreign;
mod function;
#[cfg(any(test, fuzzing))]
pub mod hostile;
mod instruction;
mod kernel_stubs;
mod layout;
mod loads_aarch64;
mod name_strings;
mod operand;
mod site;
mod source;
mod static_probe;
mod static_runtime;
mod symbol;
mod symbol_names;
mod unwind;

#[cfg(test)]
mod bad_input_tests;
#[cfg(test)]
mod elf_builder;
#[cfg(test)]
mod site_tests;
#[cfg(test)]
mod static_probe_tests;

pub(crate) use beginning::Beginning;
pub use debug::DebugFile;
pub(crate) use debug::DebugSections;
pub use error::ElfError;
pub use file::{ElfFile, Unread};
pub use kernel_stubs::{KernelStubs, kernel_of_stub};
pub(crate) use operand::{Location, Operand};
pub use site::{Cost, Site, SiteRefusal, decide, probe_site};
pub(crate) use site::{PlaceSite, place_site};
pub(crate) use source::FileIdentity;
pub use source::ReadAt;
pub use static_probe::{Semaphore, StaticProbe};
pub(crate) use static_runtime::StaticRuntime;
pub use static_runtime::{Method, find_by_name_strings, find_runtime, is_trampoline};
pub use symbol::{Symbol, SymbolTable, by_offset};
