//! Functions of CUDA that call the program back, and that the program leaves by another way than their return.

use crate::effort::{rounds, tried};
use crate::programs::traced_in_every_way;

/// An exception cannot pass a return probe, and a stack that is left with one on it is not taken up again.
#[test]
#[ignore = "needs root and BPF"]
fn callbacks_may_throw_jump_and_switch_stacks() {
    let mut runs = 0;
    for _ in 0..rounds(1, 1, 10, 200) {
        for name in ["throwing", "fibers", "jumping"] {
            runs += traced_in_every_way(name, &[]);
        }
    }
    tried(
        runs,
        "programs that leave callbacks by exceptions, longjmp and other stacks",
    );
}
