//! Names of functions and kernels, as linkers have them: what they mean in C++ and Rust, in bounded length.

use gpuscope::model::kernel_name::KernelName;
use gpuscope::stack::demangle::demangle;

/// What a name may grow to.
const LONGEST: usize = 64 << 10;

fn read(name: &str) {
    assert!(demangle(name).len() <= LONGEST.max(name.len()));
    for cut in [false, true] {
        if let Some(known) = KernelName::read(name.as_bytes(), cut) {
            assert!(known.full.len() <= LONGEST.max(name.len() + 3));
            assert!(known.short.chars().count() <= 128, "{}", known.short);
            for taken in [false, true] {
                assert_ne!(known.clone().told_apart(|_| taken).short, "");
            }
        }
    }
}

pub fn run(name: &str) {
    read(name);
    read(&format!("_Z{name}"));
    read(&format!("_R{name}"));
}
