//! The generated skeleton of `crates/collect/src/bpf/calls.bpf.c`, and the proof that its structures are those of user space.
#![allow(clippy::all, clippy::unwrap_used, clippy::expect_used, missing_docs)]

include!(concat!(env!("OUT_DIR"), "/calls.skel.rs"));

/// Asserts that structures of the BPF object, whose layout the compiler has written into it, have the size of those of
/// user space, and each field at the same place.
macro_rules! mirrored {
    ($($kernel:ident => $module:ident::$user:ident { $($field:ident)+ })+) => {
        const _: () = {
            $(
                assert!(size_of::<types::$kernel>() == size_of::<$module::$user>(), stringify!($kernel));
                $(assert!(
                    std::mem::offset_of!(types::$kernel, $field) == std::mem::offset_of!($module::$user, $field),
                    concat!(stringify!($kernel), ".", stringify!($field))
                );)+
            )+
        };
    };
}
mod mirrored;
