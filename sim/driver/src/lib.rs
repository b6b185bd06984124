//! A simulated `libcuda.so.1`: the real names and calling conventions, no GPU.
//!
//! As in the real library no exported function calls another one, so one call of a program is
//! one hit of a probe: the exports are thin, and everything they share is in the other modules.

#![allow(non_snake_case, non_upper_case_globals)]
#![allow(clippy::missing_safety_doc, clippy::too_many_arguments)]

/// One exported function: counts the call, fails it when asked to, runs the body (which may
/// use `?` on a `Result<_, u32>`), and notes the result. A `TWIN` after a slash is the same
/// function for programs whose stream 0 is the per-thread default stream.
#[macro_use]
mod entry {
    macro_rules! api {
        () => {};
        (fn $name:ident ($($args:tt)*) $body:block $($rest:tt)*) => {
            export! { $name, false, ($($args)*), $body }
            api! { $($rest)* }
        };
        (fn $name:ident / $twin:ident ($($args:tt)*) $body:block $($rest:tt)*) => {
            export! { $name, false, ($($args)*), $body }
            export! { $twin, true, ($($args)*), $body }
            api! { $($rest)* }
        };
    }
    macro_rules! export {
        ($name:ident, $per_thread:literal, ($($arg:ident: $ty:ty),* $(,)?), $body:block) => {
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($arg: $ty),*) -> u32 {
                const ID: usize = crate::ids::id::$name;
                const ROLE: crate::book::Role = crate::book::role(stringify!($name));
                let asked = crate::LEDGER.enter(ID);
                crate::book::enter(ROLE);
                if asked != 0 {
                    crate::book::leave(ROLE, asked);
                    return crate::LEDGER.leave(ID, asked);
                }
                let outer = crate::call::enter(stringify!($name), $per_thread);
                #[allow(unused_unsafe, reason = "some bodies need none")]
                // SAFETY: the caller keeps the contract of the CUDA function of this name,
                // which is the one the body relies on.
                let run = || -> Result<(), u32> { unsafe { $body } #[allow(unreachable_code, reason = "some bodies return")] Ok(()) };
                let result = match run() { Ok(()) => 0, Err(code) => code };
                crate::call::leave(outer);
                crate::book::leave(ROLE, result);
                crate::LEDGER.leave(ID, result)
            }
        };
    }
    macro_rules! stub {
        ($name:ident) => {
            #[unsafe(no_mangle)]
            pub extern "C" fn $name() -> u32 {
                const ID: usize = id::$name;
                let asked = crate::LEDGER.enter(ID);
                let code = if asked != 0 {
                    asked
                } else {
                    crate::error::NOT_SUPPORTED
                };
                crate::LEDGER.leave(ID, code)
            }
        };
    }
}

mod ids {
    #![allow(clashing_extern_declarations)]
    include!(concat!(env!("OUT_DIR"), "/exports.rs"));
}

mod activity;
mod api_array;
mod api_capture;
mod api_code;
mod api_context;
mod api_copy;
mod api_device;
mod api_event;
mod api_fill;
mod api_graph;
mod api_launch;
mod api_launch_old;
mod api_memory;
mod api_peer;
mod api_pool;
mod api_shape;
mod api_stream;
mod api_vmm;
mod block;
mod book;
mod call;
mod capture;
mod code;
mod context;
mod copy;
mod data;
mod error;
mod event;
mod fill;
mod graph;
mod heap;
mod injection;
mod lifetime;
mod lookup;
mod machine;
mod memory;
mod operation;
mod place;
mod pool;
mod stream;
mod timeline;
mod vmm;
mod work;

pub(crate) static LEDGER: gpusim_common::Ledger<{ ids::COUNT }> = gpusim_common::Ledger::new("driver", &ids::NAMES);
