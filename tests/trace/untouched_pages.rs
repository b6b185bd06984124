//! Names and texts in pages that the program has never touched, which a kernel program cannot read, are read later.

use crate::support::{Gpuscope, Trace, compile, is_inside, number};
use serde_json::Value;

const PAGE: usize = 4096;

fn traced() -> Trace {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let text = |name: &str| path.join(name).to_str().expect("UTF-8").to_owned();
    let library = include_str!("../support/untouched.c");
    compile(
        path,
        "libcuda.so.1",
        library,
        &["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1"],
    );
    let flags = [&text("libcuda.so.1"), "-Wl,-rpath,$ORIGIN", "-O1"];
    compile(path, "user", include_str!("../support/untouched_user.c"), &flags);
    let mut pages = vec![0; 3 * PAGE];
    for (page, name) in pages
        .chunks_mut(PAGE)
        .zip([&b"untouched_kernel"[..], b"fixed.cubin", b"writable.cubin"])
    {
        page[..name.len()].copy_from_slice(name);
    }
    std::fs::write(path.join("pages"), pages).expect("a file");
    // not the simulated driver, which the tests' library path leads to
    Gpuscope::run(&[], &[&text("user"), &text("pages")])
        .env("LD_LIBRARY_PATH", path)
        .finish()
        .ok()
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn what_lies_in_pages_that_were_never_touched_is_read_all_the_same() {
    let trace = traced();
    let launches: Vec<&Value> = trace.calls_of("cuLaunchKernel").collect();
    assert_eq!(launches.len(), 4);
    assert!(
        launches[..3]
            .iter()
            .all(|launch| launch["kernel"] == "untouched_kernel"),
        "{launches:#?}"
    );
    let kernels = trace.summary()["kernels"].as_array().expect("kernels");
    let named: Vec<(&Value, u64)> = kernels
        .iter()
        .map(|kernel| (&kernel["kernel"], number(kernel, "launches")))
        .collect();
    assert_eq!(named, [(&Value::from("untouched_kernel"), 3), (&Value::Null, 1)]);
    assert_eq!(kernels[1]["reason"], "the name could not be read");
    let files: Vec<&Value> = trace
        .calls_of("cuModuleLoad")
        .map(|call| &call["args"]["fname"])
        .collect();
    // what the program may write to may have changed since the call; who reads during the call has it
    let writable = if is_inside() {
        "writable.cubin".into()
    } else {
        Value::Null
    };
    assert_eq!(files, [&Value::from("fixed.cubin"), &writable]);
}
