//! Where a program waits.

use super::run::{Run, watch};
use super::support::{number, text};
use super::told::list;
use serde_json::Value;

/// Whether a function of the program itself is on the stack.
fn names(wait: &Value, function: &str) -> bool {
    let frames = wait["stack"].as_array().into_iter().flatten();
    let mut own = frames.filter(|frame| frame["module"] == "gpusim");
    own.any(|frame| frame["function"].as_str().is_some_and(|name| name.ends_with(function)))
}

fn stall(how: &str, stacks: &[&str]) -> Run {
    watch(&format!("gpusim stall --steps 20 --sync {how}"), stacks, &[])
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn waits_say_which_function_of_the_program_waited() {
    for which in ["sync", "all"] {
        for how in ["device", "stream", "event"] {
            let run = stall(how, &["--stacks", which]);
            let waits = list(&run.report()["waits"]);
            let calls: u64 = waits.iter().map(|wait| number(wait, "count")).sum();
            // a wait that found its work done has no stack
            assert!(names(&waits[0], "::stall"), "{which} {how}: {}", waits[0]);
            assert_eq!(calls, 20, "{which} {how}");
        }
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn waits_that_nobody_asked_for_say_so_too() {
    for which in ["sync", "launch", "all"] {
        for host in ["pageable", "pinned"] {
            let text_of = format!("gpusim item --steps 50 --host {host}");
            let run = watch(&text_of, &["--stacks", which], &[]);
            let hidden = &list(&run.report()["hidden"])[0];
            assert_eq!(text(hidden, "kind"), "item", "{which} {host}");
            assert!(names(hidden, "::item"), "{which} {host}: {hidden}");
        }
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn no_stack_is_taken_that_was_not_asked_for() {
    for stacks in [&[][..], &["--stacks", "none"], &["--stacks", "launch"]] {
        let run = stall("stream", stacks);
        let waits = list(&run.report()["waits"]);
        assert!(
            waits.iter().all(|wait| wait.get("stack").is_none()),
            "{stacks:?}: {waits:?}"
        );
    }
}
