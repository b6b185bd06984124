//! A framework that hands out memory itself, seen without being asked for.

use super::account::only;
use super::support::{Gpuscope, Trace, compile_as, number};
use serde_json::Value;
use std::path::Path;
use tempfile::TempDir;

const SEGMENT: u64 = 1 << 30;

/// A program with a library that is named and marked as PyTorch's.
fn user(folder: &Path) -> String {
    let header = include_str!("../../support/static_probe.h");
    std::fs::write(folder.join("static_probe.h"), header).expect("a file");
    let flags = ["-shared", "-fPIC", "-lstdc++"];
    let library = compile_as(
        "c++",
        folder,
        "libc10_cuda.so",
        include_str!("../../support/tensors.cpp"),
        &flags,
    );
    let library = library.to_str().expect("UTF-8");
    let flags = [library, "-Wl,-rpath,$ORIGIN", "-lstdc++", "-ldl"];
    let user = compile_as(
        "c++",
        folder,
        "tensor_user",
        include_str!("../../support/tensor_user.cpp"),
        &flags,
    );
    user.to_str().expect("UTF-8").to_owned()
}

/// The trace, and what the program says itself.
fn watch(arguments: &[&str]) -> (Trace, Value) {
    let folder = TempDir::new().expect("a folder");
    let user = user(folder.path());
    let gpuscope = Gpuscope::leaks(&[], &[&[user.as_str()], arguments].concat());
    let trace = gpuscope.finish().ok();
    let book = trace.stdout.parse().expect("the program's book");
    (trace, book)
}

fn figures(trace: &Trace) -> [u64; 6] {
    let tensors = &only(trace)["tensors"];
    [
        "segments",
        "segment_bytes",
        "tensors",
        "tensor_bytes",
        "unused_bytes",
        "stray_bytes",
    ]
    .map(|name| number(tensors, name))
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn tensors_and_what_their_segment_holds_beyond_them_are_told() {
    let (trace, book) = watch(&["segment"]);
    let (count, bytes) = (
        number(&book, "handed_out") - number(&book, "freed"),
        number(&book, "held_bytes"),
    );
    assert_eq!(figures(&trace), [1, SEGMENT, count, bytes, SEGMENT - bytes, 0]);
    assert_eq!(
        number(only(&trace), "held_bytes"),
        SEGMENT,
        "tensors are in the segment, not beside it"
    );
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn tensors_outside_of_anything_known_are_strays_and_hold_nothing_of_a_device() {
    let (trace, book) = watch(&[]);
    let (count, bytes) = (
        number(&book, "handed_out") - number(&book, "freed"),
        number(&book, "held_bytes"),
    );
    assert_eq!(figures(&trace), [0, 0, count, bytes, 0, number(&book, "bytes")]);
    assert_eq!(number(only(&trace), "held_bytes"), 0);
}
