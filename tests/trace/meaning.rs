//! What a call's record says: fields by the contract, nesting, order, arguments, sizes, directions, errors.

use crate::support::{self, Gpuscope, Trace, number, sim_text, text};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::process::Command;
use std::sync::OnceLock;

/// One trace that all tests read.
fn trace() -> &'static Trace {
    static TRACE: OnceLock<Trace> = OnceLock::new();
    TRACE.get_or_init(|| {
        let gpusim = sim_text("gpusim");
        let script = format!("for what in 'train 2' kinds 'errors 1' vmm; do '{gpusim}' $what; done");
        let trace = Gpuscope::script(&["--chatty", "--ring-size", "64MiB"], &script)
            .finish()
            .ok();
        assert_eq!(trace.summary()["lost_events"], 0);
        trace
    })
}

/// The calls of the scenario of that name, by the program's own last line.
fn scenario(name: &str) -> impl Iterator<Item = &'static Value> {
    let stdout = trace().stdout.lines();
    let said = stdout.filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("GPUSIM ")?).ok());
    let pid = said
        .filter(|said| said["scenario"] == name)
        .map(|said| number(&said, "pid"))
        .next();
    trace().calls().filter(move |call| Some(number(call, "pid")) == pid)
}

fn of(scenario_name: &str, function: &str) -> Vec<&'static Value> {
    scenario(scenario_name)
        .filter(|call| call["name"] == function)
        .collect()
}

fn end_us(call: &Value) -> f64 {
    call["ts"].as_f64().expect("a time") * 1e6 + call["duration_us"].as_f64().expect("a duration")
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn the_first_record_is_meta_and_the_last_is_the_summary() {
    let records = &trace().records;
    assert_eq!(records[0]["type"], "meta");
    assert!(records[0]["start_monotonic_ns"].is_u64());
    assert_eq!(records.last().expect("records")["type"], "summary");
    let others: BTreeSet<&str> = records.iter().filter_map(|record| record["type"].as_str()).collect();
    let calls = BTreeSet::from(["meta", "process", "summary", "userspace"]);
    // "open": a call that takes longer than a second, as any may on a busy machine
    let measured = BTreeSet::from(["count", "idle", "open", "sample"]);
    assert!(calls.is_subset(&others), "{others:?}");
    assert!(
        others.difference(&calls).all(|kind| measured.contains(kind)),
        "{others:?}"
    );
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn every_call_has_the_fields_of_the_contract() {
    let categories = [
        "memory", "copy", "launch", "sync", "stream", "event", "graph", "module", "context", "query", "error", "other",
    ];
    for call in trace().calls() {
        let whole = ["event_id", "pid", "tid", "depth"];
        assert!(whole.iter().all(|field| call[field].is_u64()), "{call}");
        let texts = ["layer", "name", "api", "comm"];
        assert!(texts.iter().all(|field| call[field].is_string()), "{call}");
        assert!(
            call["ts"].is_f64() && call["args"].is_object() && call["phase"] == "X",
            "{call}"
        );
        assert!(categories.contains(&text(call, "category").as_str()), "{call}");
        assert_eq!(
            call["ret"].is_i64(),
            call["duration_us"].is_number() && !call["ret"].is_null(),
            "{call}"
        );
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn calls_are_in_order_of_entry_but_for_long_ones_and_have_ids_of_their_own() {
    let mut ids = BTreeSet::new();
    let mut latest_us = 0.0f64;
    for call in trace().calls() {
        let entered_us = call["ts"].as_f64().expect("a time") * 1e6;
        // 1 ms: the times of lines are rounded, and so is the sum
        let is_long = end_us(call) >= latest_us + 99_000.0;
        assert!(entered_us >= latest_us || is_long, "not in order of time: {call}");
        latest_us = latest_us.max(entered_us);
        assert!(ids.insert(number(call, "event_id")), "an id is there twice: {call}");
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_child_lies_in_its_parent() {
    let by_id: HashMap<u64, &Value> = trace().calls().map(|call| (number(call, "event_id"), call)).collect();
    let mut children = 0;
    for call in trace().calls() {
        let depth = number(call, "depth");
        assert_eq!(depth > 0, call["parent_id"].is_u64(), "{call}");
        let Some(parent) = call["parent_id"].as_u64() else {
            continue;
        };
        let parent = by_id.get(&parent).unwrap_or_else(|| panic!("no parent of {call}"));
        assert_eq!(
            (number(parent, "depth") + 1, &parent["tid"]),
            (depth, &call["tid"]),
            "{parent} {call}"
        );
        assert!(
            parent["ts"].as_f64() <= call["ts"].as_f64() && end_us(call) <= end_us(parent) + 0.002,
            "{parent} {call}"
        );
        children += 1;
    }
    assert!(children > 100);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_driver_call_is_a_child_of_the_runtime_call_that_made_it() {
    let launches = of("train", "cuLaunchKernel");
    let parents: BTreeSet<u64> = launches.iter().map(|launch| number(launch, "parent_id")).collect();
    let runtime: BTreeSet<u64> = of("train", "cudaLaunchKernel")
        .iter()
        .map(|call| number(call, "event_id"))
        .collect();
    assert_eq!((launches.len(), parents), (40, runtime));
    assert!(
        of("vmm", "cuLaunchKernelEx").iter().all(|call| call["depth"] == 0),
        "it calls the driver itself"
    );
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn allocations_have_their_sizes_and_addresses() {
    let sizes = |name| {
        of("train", name)
            .into_iter()
            .map(|call| number(call, "size"))
            .collect::<Vec<_>>()
    };
    assert_eq!(sizes("cudaMalloc"), [64 << 20, 64 << 20, 1 << 20, 4]);
    assert_eq!(sizes("cuMemAlloc_v2"), [64 << 20, 64 << 20, 1 << 20, 4]);
    assert_eq!(sizes("cudaMallocHost"), [1 << 20, 4096]);
    let addresses = |name| {
        of("train", name)
            .into_iter()
            .map(|call| text(&call["args"], "devPtr"))
            .collect::<Vec<_>>()
    };
    let allocated = addresses("cudaMalloc");
    assert_eq!(addresses("cudaFree"), allocated, "read at return and at entry");
    assert!(
        allocated
            .iter()
            .all(|address| address.starts_with("0x") && address.len() > 8),
        "{allocated:?}"
    );
    let category = |name| of("train", name)[0]["category"].clone();
    assert_eq!(
        (category("cudaMalloc"), category("cudaFree")),
        (json!("memory"), json!("memory"))
    );
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn copies_have_their_directions_and_sizes() {
    let copies = |scenario, name| {
        let calls = of(scenario, name).into_iter();
        calls
            .map(|call| (text(call, "direction"), number(call, "size")))
            .collect::<Vec<_>>()
    };
    let there_and_back = [("HtoD".to_owned(), 1 << 20), ("DtoH".to_owned(), 4)];
    assert_eq!(
        copies("train", "cudaMemcpyAsync"),
        [there_and_back.clone(), there_and_back].concat()
    );
    let three = ["HtoD", "DtoD", "DtoH"].map(|direction| (direction.to_owned(), 1 << 16));
    assert_eq!(copies("kinds", "cudaMemcpy"), three);
    assert_eq!(copies("kinds", "cuMemcpyDtoD_v2"), [("DtoD".to_owned(), 1 << 16)]);
    assert_eq!(copies("kinds", "cudaMemcpy2D"), [("HtoD".to_owned(), 16_000)]);
    assert_eq!(
        of("train", "cudaMemcpyAsync")[0]["args"]["kind"],
        "cudaMemcpyHostToDevice"
    );
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn launches_have_their_shape() {
    let shape = |call: &Value| (call["args"]["gridDim"].clone(), call["args"]["blockDim"].clone());
    let expected: Vec<_> = (0..40)
        .map(|launch| (json!([128 + launch % 20, 1, 1]), json!([256, 1, 1])))
        .collect();
    let launches = of("train", "cudaLaunchKernel");
    assert_eq!(launches.into_iter().map(shape).collect::<Vec<_>>(), expected);
    let driver = &of("train", "cuLaunchKernel")[1]["args"];
    let fields = ["gridDimX", "gridDimY", "blockDimX", "blockDimZ", "sharedMemBytes"];
    assert_eq!(
        fields.map(|field| number(driver, field)),
        [129, 1, 256, 1, 0],
        "some of them lie on the stack"
    );
    assert_eq!(driver["hStream"], of("train", "cudaLaunchKernel")[1]["args"]["stream"]);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn structures_and_texts_behind_pointers_are_read() {
    let config = &of("vmm", "cuLaunchKernelEx")[0]["args"]["config"];
    assert_eq!(
        (&config["gridDimX"], &config["blockDimX"], &config["numAttrs"]),
        (&json!(4), &json!(128), &json!(0))
    );
    assert_eq!(
        of("vmm", "cuModuleGetFunction")[0]["args"]["name"],
        "triton_per_fused_add_0"
    );
    let properties = &of("vmm", "cuMemCreate")[0]["args"]["prop"];
    assert_eq!(properties["type"], "CU_MEM_ALLOCATION_TYPE_PINNED");
    assert_eq!(properties["location.type"], "CU_MEM_LOCATION_TYPE_DEVICE");
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn errors_have_their_names() {
    let mut failed: BTreeMap<(String, String, i64), usize> = BTreeMap::new();
    let runtime = scenario("errors").filter(|call| call["layer"] == "runtime");
    for call in runtime.filter(|call| call["name"] != "cudaGetLastError") {
        let code = call["ret"].as_i64().filter(|code| ![0, 600].contains(code));
        if let Some(code) = code.filter(|_| call["error"].is_string()) {
            *failed
                .entry((text(call, "name"), text(call, "error"), code))
                .or_default() += 1;
        }
    }
    let expected = [
        ("cudaEventElapsedTime", "cudaErrorInvalidResourceHandle", 400, 1),
        ("cudaFree", "cudaErrorInvalidValue", 1, 2),
        ("cudaFuncSetAttribute", "cudaErrorInvalidDeviceFunction", 98, 1),
        ("cudaGraphicsMapResources", "cudaErrorNotSupported", 801, 1),
        ("cudaHostUnregister", "cudaErrorHostMemoryNotRegistered", 713, 1),
        ("cudaLaunchKernel", "cudaErrorInvalidConfiguration", 9, 1),
        ("cudaMalloc", "cudaErrorMemoryAllocation", 2, 1),
        ("cudaMemcpy", "cudaErrorInvalidMemcpyDirection", 21, 1),
        ("cudaMemcpy", "cudaErrorInvalidValue", 1, 1),
        ("cudaSetDevice", "cudaErrorInvalidDevice", 101, 1),
        ("cudaStreamSynchronize", "cudaErrorInvalidResourceHandle", 400, 1),
    ];
    let expected = expected.map(|(name, error, code, count)| ((name.to_owned(), error.to_owned(), code), count));
    support::assert_same("failed calls", &BTreeMap::from(expected), &failed);
    let refused = of("errors", "cuMemAlloc_v2");
    assert!(
        refused
            .iter()
            .any(|call| call["error"] == "CUDA_ERROR_OUT_OF_MEMORY" && call["ret"] == 2)
    );
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn not_ready_is_an_answer_and_no_failure() {
    let asked = of("errors", "cudaStreamQuery");
    assert!(
        asked
            .iter()
            .all(|call| ["cudaSuccess", "cudaErrorNotReady"].contains(&text(call, "error").as_str()))
    );
    assert!(!trace().failures().keys().any(|(_, code)| *code == 600));
}

/// Runs jq as a user would.
fn jq(script: &str) -> String {
    let done = Command::new("sh")
        .args(["-c", script])
        .current_dir(trace().folder())
        .output()
        .expect("sh runs");
    assert!(
        done.status.success(),
        "{script}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    String::from_utf8(done.stdout).expect("UTF-8")
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn the_one_liners_of_the_contract_work() {
    let names = jq(r#"jq -r 'select(.type=="userspace") | .name' lines.jsonl | sort | uniq -c"#);
    let lines = names
        .lines()
        .map(|line| line.trim().split_once(' ').expect("count and name"));
    let counted: BTreeMap<&str, u64> = lines
        .map(|(count, name)| (name, count.parse().expect("a count")))
        .collect();
    let totals = trace().totals("calls");
    assert_eq!(
        counted,
        totals
            .iter()
            .map(|((_, name), count)| (name.as_str(), *count))
            .collect()
    );

    let slowest = "jq 'select(.duration_us) | {name, duration_us}' lines.jsonl | jq -s 'sort_by(.duration_us) | reverse | .[0:10]'";
    let slowest: Vec<Value> = serde_json::from_str(&jq(slowest)).expect("JSON");
    let times: Vec<f64> = slowest
        .iter()
        .map(|call| call["duration_us"].as_f64().expect("a time"))
        .collect();
    let longest = trace()
        .calls()
        .filter_map(|call| call["duration_us"].as_f64())
        .fold(0.0, f64::max);
    assert!(
        times.len() == 10 && times.is_sorted_by(|a, b| a >= b) && times[0] == longest,
        "{times:?}"
    );

    let sizes = jq(r#"jq 'select(.category=="memory" and .size) | .size' lines.jsonl | jq -s add"#);
    let memory = trace().calls().filter(|call| call["category"] == "memory");
    let expected: u64 = memory.filter_map(|call| call["size"].as_u64()).sum();
    assert_eq!(sizes.trim().parse(), Ok(expected));

    let bytes = jq(&documented("add"));
    let memory = trace()
        .calls()
        .filter(|call| call["category"] == "memory" && call["layer"] == "driver");
    let expected: u64 = memory.filter_map(|call| call["size"].as_u64()).sum();
    assert_eq!(bytes.trim().parse(), Ok(expected));

    let pauses = r#"jq 'select(.category=="launch") | .ts' lines.jsonl | jq -s '[.[1:], .[:-1]] | transpose | map(.[0]-.[1]) | add/length'"#;
    let mean: f64 = jq(pauses).trim().parse().expect("a number");
    let mean_of = |layers: &[&str]| {
        let launches: Vec<f64> = trace()
            .calls()
            .filter(|call| call["category"] == "launch")
            .filter(|call| layers.iter().any(|layer| call["layer"] == *layer))
            .filter_map(|call| call["ts"].as_f64())
            .collect();
        (launches[launches.len() - 1] - launches[0]) / (launches.len() - 1) as f64
    };
    let expected = mean_of(&["runtime", "driver"]);
    assert!((mean - expected).abs() < 1e-9 && mean > 0.0, "{mean} {expected}");
    let of_driver: f64 = jq(&documented("transpose")).trim().parse().expect("a number");
    let expected = mean_of(&["driver"]);
    assert!(
        (of_driver - expected).abs() < 1e-9 && of_driver > mean,
        "{of_driver} {expected}"
    );
}

/// The recipe of docs/output.md whose last step has that word.
fn documented(word: &str) -> String {
    let page = include_str!("../../docs/output.md");
    let is_wanted =
        |line: &&str| line.starts_with("jq ") && line.split("| jq -s").nth(1).is_some_and(|end| end.contains(word));
    let recipe = page.lines().find(is_wanted).expect("a recipe");
    recipe.replace("t.jsonl", "lines.jsonl")
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn text_is_one_line_a_call_with_children_indented() {
    let gpusim = sim_text("gpusim");
    let arguments = ["run", "--color", "never", "--", gpusim.as_str(), "churn", "2"];
    let trace = Gpuscope::new(arguments).finish().ok();
    let calls: Vec<&str> = trace.stdout.lines().filter(|line| line.contains(" = ")).collect();
    let column = |name: &str| {
        let line = calls.iter().find(|line| line.contains(&format!(" {name}(")));
        let line = line.unwrap_or_else(|| panic!("no {name} in {}", trace.stdout));
        (line.find(name).expect("its column"), *line)
    };
    let ((parent, runtime), (child, driver)) = (column("cudaMalloc"), column("cuMemAlloc_v2"));
    assert_eq!(child, parent + 2, "{runtime}\n{driver}");
    assert!(runtime.contains("size=1.0 GiB) = cudaSuccess <"), "{runtime}");
    assert!(driver.contains("bytesize=1.0 GiB) = CUDA_SUCCESS <"), "{driver}");
    assert!(!trace.stdout.contains('\u{1b}'));
    assert!(
        trace.stderr.contains("counted but not listed as lines: "),
        "{}",
        trace.stderr
    );
}
