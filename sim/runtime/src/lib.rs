//! A simulated `libcudart.so.13` on top of the simulated driver.
//!
//! It reaches the driver as the real runtime does: `dlopen("libcuda.so.1")` at the first call,
//! then every function through `cuGetProcAddress`. It is also linked into programs, where the
//! name string each entry point refers to identifies it even after stripping.

#![allow(non_snake_case, non_upper_case_globals)]
#![allow(clippy::missing_safety_doc, clippy::too_many_arguments)]

mod entry {
    /// Refers to the function's own name, from that function and from nowhere else, as the
    /// real runtime's entry points do for their tracing callbacks.
    macro_rules! own_name {
        ($name:ident) => {
            std::hint::black_box(concat!(stringify!($name), "\0").as_ptr())
        };
    }
    /// An exported function. `call` ones get the driver, ready for the calling thread; `plain`
    /// ones do without and do not touch the thread's last error. A `TWIN` after a slash is the
    /// same function on top of the driver's functions for the per-thread default stream.
    macro_rules! api {
        () => {};
        (call $d:ident fn $name:ident ($($args:tt)*) $body:block $($rest:tt)*) => {
            export! { ready, $d, $name, ($($args)*), $body }
            api! { $($rest)* }
        };
        (call $d:ident fn $name:ident / $twin:ident ($($args:tt)*) $body:block $($rest:tt)*) => {
            export! { ready, $d, $name, ($($args)*), $body }
            export! { ready_per_thread, $d, $twin, ($($args)*), $body }
            api! { $($rest)* }
        };
        ($(plain fn $name:ident($($arg:ident: $ty:ty),* $(,)?) -> $ret:ty $body:block)*) => { $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($arg: $ty),*) -> $ret {
                own_name!($name);
                crate::LEDGER.enter(crate::ids::id::$name);
                #[allow(unused_unsafe, reason = "some bodies need none")]
                // SAFETY: as for the other entry points.
                unsafe { $body }
            }
        )* };
    }
    macro_rules! export {
        ($ready:ident, $d:ident, $name:ident, ($($arg:ident: $ty:ty),* $(,)?), $body:block) => {
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($arg: $ty),*) -> u32 {
                const ID: usize = crate::ids::id::$name;
                own_name!($name);
                let asked = crate::LEDGER.enter(ID);
                #[allow(unused_unsafe, unused_variables, reason = "some bodies need neither")]
                let run = || -> Result<(), u32> {
                    let $d = crate::driver::$ready()?;
                    // SAFETY: the caller keeps the contract of the CUDA function of this name,
                    // which is the one the body relies on.
                    unsafe { $body }
                    #[allow(unreachable_code, reason = "some bodies return")]
                    Ok(())
                };
                let result = if asked != 0 { asked } else { run().err().unwrap_or(0) };
                crate::last_error::note(result);
                crate::LEDGER.leave(ID, result)
            }
        };
    }
    macro_rules! stub {
        ($name:ident) => {
            #[unsafe(no_mangle)]
            pub extern "C" fn $name() -> u32 {
                const ID: usize = id::$name;
                own_name!($name);
                let asked = crate::LEDGER.enter(ID);
                let code = if asked != 0 {
                    asked
                } else {
                    crate::last_error::NOT_SUPPORTED
                };
                crate::last_error::note(code);
                crate::LEDGER.leave(ID, code)
            }
        };
    }
    pub(crate) use {api, export, own_name, stub};
}

mod ids {
    #![allow(clashing_extern_declarations)]
    use crate::entry::{own_name, stub};
    include!(concat!(env!("OUT_DIR"), "/exports.rs"));
}

mod api_array;
mod api_copy;
mod api_device;
mod api_fill;
mod api_graph;
mod api_launch;
mod api_library;
mod api_memory;
mod api_peer;
mod api_pool;
mod api_shape;
mod api_stream;
mod driver;
mod last_error;
mod lifetime;
mod register;
mod shape;

pub(crate) static LEDGER: gpusim_common::Ledger<{ ids::COUNT }> = gpusim_common::Ledger::new("runtime", &ids::NAMES);

/// The addresses of all entry points: a program that asks for them keeps them all when it is
/// linked, as it would with the one object of the real static runtime.
pub fn entry_points() -> &'static [unsafe extern "C" fn()] {
    &ids::ADDRESSES
}
