//! What calls give back, how fast copies are, and sizes to the byte, beside calls as they happen.

use crate::support::{Gpuscope, number, sim_text, text};
use serde_json::Value;
use std::collections::BTreeMap;

fn succeeded(call: &&Value) -> bool {
    call["ret"] == 0
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_free_says_how_much_it_gave_back_in_both_layers() {
    let trace = Gpuscope::run(&[], &[&sim_text("gpusim"), "churn", "5"]).finish().ok();
    let mut sizes: BTreeMap<String, u64> = BTreeMap::new();
    let mut frees = 0;
    for call in trace.calls().filter(succeeded) {
        match text(call, "name").as_str() {
            "cuMemAlloc_v2" => drop(sizes.insert(text(&call["args"], "dptr"), number(call, "size"))),
            "cuMemFree_v2" => {
                let address = text(&call["args"], "dptr");
                assert_eq!(
                    number(call, "size"),
                    sizes.remove(&address).expect("allocated before"),
                    "{call:#}"
                );
                frees += 1;
            }
            _ => {}
        }
    }
    assert!(frees > 0);
    let given_back = |name: &str| -> u64 {
        trace
            .calls_of(name)
            .filter(succeeded)
            .map(|call| number(call, "size"))
            .sum()
    };
    assert_eq!(given_back("cudaFree"), given_back("cuMemFree_v2"));
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn text_says_what_was_given_back_and_how_fast_a_copy_was() {
    let sim = sim_text("gpusim");
    let lines = |options: &[&str], program: &[&str]| {
        let words = [&["run"], options, &["--", sim.as_str()], program].concat();
        Gpuscope::new(words).finish().ok().stdout
    };
    let churn = lines(&["--bytes"], &["churn", "3"]);
    let free = churn
        .lines()
        .find(|line| line.contains("cuMemFree_v2"))
        .expect("a free");
    assert!(free.contains(" B given back>"), "{free}");
    let alloc = churn
        .lines()
        .find(|line| line.contains("cuMemAlloc_v2"))
        .expect("an allocation");
    let size = alloc
        .split("bytesize=")
        .nth(1)
        .and_then(|rest| rest.split(" B)").next())
        .expect("a size");
    assert!(size.parse::<u64>().is_ok(), "{alloc}");
    let copies = lines(&[], &["copies", "--seed", "7"]);
    for blocking in ["cudaMemcpy(", "cuMemcpyHtoD_v2("] {
        let mut of = copies
            .lines()
            .filter(|line| line.contains(blocking) && !line.contains("0 B"));
        assert!(of.any(|line| line.contains("B/s")), "{blocking} {copies}");
    }
    // pinned memory, so that no call waits for its copy
    let asynchronous = lines(&[], &["train", "2"]);
    assert!(
        asynchronous.contains("cuMemcpyHtoDAsync_v2(") && !asynchronous.contains("B/s"),
        "{asynchronous}"
    );
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn the_totals_are_the_sums_of_the_lines() {
    let trace = Gpuscope::run(&[], &[&sim_text("gpusim"), "train", "5"]).finish().ok();
    let sum = |name: &str| {
        let calls: Vec<u64> = trace
            .calls_of(name)
            .filter(succeeded)
            .map(|call| number(call, "size"))
            .collect();
        (calls.len() as u64, calls.iter().sum::<u64>())
    };
    let totals = &trace.summary()["totals"];
    let memory = &totals["device_memory"];
    assert_eq!(
        (number(memory, "allocations"), number(memory, "allocated_bytes")),
        sum("cuMemAlloc_v2")
    );
    assert_eq!(
        (number(memory, "frees"), number(memory, "freed_bytes")),
        sum("cuMemFree_v2")
    );
    assert!(totals["ioctls"].is_null(), "the kernel driver was not followed");
}
