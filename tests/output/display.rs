//! The page of `gpuscope serve --display-interval`.

use gpuscope::owner::Owner;
use gpuscope::serve::display::Pace;
use gpuscope::serve::exchange::{Scrape, Status};
use gpuscope::serve::metric::{Metric, Sample, Value};
use gpuscope::serve::metrics::{api, device, memory, own, work};
use gpuscope::top::page::{View, page};
use std::sync::Arc;
use std::time::{Duration, Instant};

const GIB: u64 = 1 << 30;
const TERMINAL: View = View {
    width: Some(80),
    height: Some(24),
    top: 50,
    colour: false,
};
pub const FILE: View = View {
    width: None,
    height: None,
    top: 20,
    colour: false,
};

fn owner(labels: &[(&str, &str)]) -> Arc<Owner> {
    let labels = labels
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Arc::new(Owner {
        labels: labels.collect(),
    })
}

fn integer(metric: &'static Metric, labels: &[&str], value: u64) -> Sample {
    let labels = labels.iter().map(|label| (*label).to_owned().into()).collect();
    Sample::new(metric, labels, Value::Integer(value))
}

fn number(metric: &'static Metric, labels: &[&str], value: f64) -> Sample {
    let labels = labels.iter().map(|label| (*label).to_owned().into()).collect();
    Sample::new(metric, labels, Value::Number(value))
}

/// A device under load, or one that does nothing.
fn device(gpu: &str, busy: bool) -> Vec<Sample> {
    let (used, watts, celsius) = if busy {
        (61 * GIB, 698.0, 83.0)
    } else {
        (GIB / 2, 71.4, 31.0)
    };
    let id = [gpu, "GPU-x", "00000000:01:00.0"];
    let with = |label: &'static str| [gpu, "GPU-x", "00000000:01:00.0", label];
    let mut samples = vec![
        integer(
            &device::GPU_INFO,
            &[gpu, "GPU-x", "00000000:01:00.0", "NVIDIA H100 80GB HBM3", "0", "550.1"],
            1,
        ),
        integer(&device::GPU_UP, &id, 1),
        number(&device::GPU_UTILIZATION_RATIO, &id, if busy { 0.97 } else { 0.0 }),
        integer(&device::GPU_MEMORY_TOTAL_BYTES, &id, 80 * GIB),
        integer(&device::GPU_MEMORY_USED_BYTES, &id, used),
        number(&device::GPU_TEMPERATURE_CELSIUS, &with("gpu"), celsius),
        number(&device::GPU_TEMPERATURE_CELSIUS, &with("memory"), celsius + 9.0),
        number(&device::GPU_POWER_WATTS, &id, watts),
        number(&device::GPU_POWER_LIMIT_WATTS, &id, 700.0),
        integer(&device::GPU_CLOCKS_LIMITED, &with("gpu_idle"), u64::from(!busy)),
        integer(&device::GPU_CLOCKS_LIMITED, &with("sw_power_cap"), u64::from(busy)),
    ];
    samples.insert(0, integer(&device::NVML_UP, &[], 1));
    samples
}

/// What a process has done `step` times.
fn busy(owner: &Arc<Owner>, step: u64) -> Vec<Sample> {
    let gpu = ["device", "0", "GPU-x", "00000000:01:00.0"];
    let mine = |sample: Sample| sample.of(owner);
    vec![
        mine(integer(&api::API_CALLS, &["driver", "launch"], 60_000 * step)),
        mine(integer(&api::API_CALLS, &["driver", "copy"], 2_000 * step)),
        mine(integer(&work::LAUNCHES, &[], 60_000 * step)),
        mine(integer(&work::COPY_BYTES, &["HtoD", "pinned"], 6 * GIB * step)),
        mine(integer(&work::COPY_BYTES, &["DtoH", "pageable"], 5 * 4096 * step)),
        mine(number(
            &work::SYNC_BLOCKED_SECONDS,
            &["cudaStreamSynchronize"],
            1.5 * step as f64,
        )),
        mine(number(&work::HIDDEN_WAIT_SECONDS, &["copy"], 0.65 * step as f64)),
        mine(integer(&memory::MEMORY_HELD_BYTES, &gpu, 60 * GIB)),
        mine(integer(&memory::MEMORY_UNATTRIBUTED_BYTES, &gpu[1..], 612 << 20)),
    ]
}

fn idle(owner: &Arc<Owner>) -> Vec<Sample> {
    let gpu = ["device", "1", "GPU-y", "00000000:02:00.0"];
    vec![
        integer(&api::API_CALLS, &["driver", "query"], 12).of(owner),
        integer(&memory::MEMORY_HELD_BYTES, &gpu, 3 << 20).of(owner),
    ]
}

fn itself(step: u64) -> Vec<Sample> {
    vec![
        integer(&own::TRACED_PROCESSES, &[], 3),
        number(&own::PROCESS_CPU_SECONDS, &[], 0.021 * step as f64),
        integer(&own::PROCESS_RESIDENT_MEMORY_BYTES, &[], 31 << 20),
        number(&own::PROBE_SECONDS, &[], 0.6 * step as f64),
    ]
}

pub fn scrape(at: Instant, parts: Vec<Vec<Sample>>) -> Scrape {
    Scrape {
        at,
        number: 1,
        samples: parts.concat(),
        status: Status::default(),
    }
}

/// The second of two pages, five seconds apart.
fn second(before: Vec<Vec<Sample>>, then: Vec<Vec<Sample>>, view: View) -> String {
    let start = Instant::now();
    let mut pace = Pace::new(start);
    pace.rates(&scrape(start + Duration::from_secs(5), before));
    let then = scrape(start + Duration::from_secs(10), then);
    page(&then.samples, &pace.rates(&then), view)
}

fn trainer() -> Arc<Owner> {
    owner(&[
        ("comm", "python"),
        ("namespace", "ml"),
        ("pod", "train-0"),
        ("container", "main"),
    ])
}

fn failures(owner: &Arc<Owner>, times: u64) -> Vec<Sample> {
    let error = |function, error, times| integer(&api::API_ERRORS, &["runtime", function, error], times).of(owner);
    vec![
        error("cudaMalloc", "cudaErrorMemoryAllocation", times),
        error("cudaEventQuery", "cudaErrorNotReady", 1200),
    ]
}

/// The rest has no name of its own.
fn kernels(owner: &Arc<Owner>, step: u64) -> Vec<Sample> {
    let launches = |kernel, each: u64| integer(&work::KERNEL_LAUNCHES, &[kernel], each * step).of(owner);
    vec![
        launches("softmax<float>", 10_000),
        launches("sgemm", 48_000),
        launches("other", 2_000),
    ]
}

#[test]
fn a_page_of_a_machine_at_work() {
    let (trainer, notebook) = (trainer(), owner(&[("comm", "ipykernel"), ("unit", "jupyter.service")]));
    let parts = |step| {
        let devices = [device("0", true), device("1", false)].concat();
        vec![
            devices,
            busy(&trainer, step),
            idle(&notebook),
            failures(&trainer, 2 + step),
            kernels(&trainer, step),
            itself(step),
        ]
    };
    let text = second(parts(1), parts(2), TERMINAL);
    assert!(
        text.lines().count() <= 24 && text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let documented = include_str!("../../docs/serve.md");
    assert!(
        documented.contains(&text),
        "docs/serve.md shows another page than\n{text}"
    );
    insta::assert_snapshot!(text);
}

#[test]
fn names_of_kernels_are_harmless_and_those_without_one_are_left_out() {
    let trainer = trainer();
    let launches = |kernel| vec![integer(&work::KERNEL_LAUNCHES, &[kernel], 7).of(&trainer)];
    let text = second(vec![launches("k\u{1b}[2J")], vec![launches("k\u{1b}[2J")], FILE);
    assert!(text.contains("k\\u{1b}[2J") && !text.contains('\u{1b}'), "{text}");
    let text = second(vec![launches("other")], vec![launches("other")], FILE);
    assert!(!text.contains("kernel"), "{text}");
}

#[test]
fn the_first_page_has_no_rates() {
    let start = Instant::now();
    let first = scrape(start, vec![device("0", true), busy(&trainer(), 1), itself(1)]);
    let text = page(&first.samples, &Pace::new(start).rates(&first), FILE);
    insta::assert_snapshot!(text);
}

#[test]
fn what_has_no_room_is_added_up() {
    let owners: Vec<Arc<Owner>> = (0..100)
        .map(|job| owner(&[("comm", "app"), ("slurm_job", &job.to_string())]))
        .collect();
    let parts = |step| owners.iter().map(|owner| busy(owner, step)).collect::<Vec<_>>();
    let text = second(parts(1), parts(2), TERMINAL);
    assert_eq!(text.lines().count(), 24, "{text}");
    insta::assert_snapshot!(text.lines().rev().take(3).collect::<Vec<_>>().join("\n"));
}

#[test]
fn what_is_not_seen_is_said() {
    let odd = owner(&[("comm", "a\u{1b}[2J\nb")]);
    let parts = |step| {
        vec![
            vec![integer(&device::NVML_UP, &[], 0)],
            idle(&odd),
            vec![
                integer(&device::GPU_XID_ERRORS, &["0", "GPU-x", "00000000:01:00.0", "79"], step),
                integer(&own::LOST_RECORDS, &["memory ring"], 1200 * step),
                integer(&own::COVERAGE_GAPS, &["machine"], 1),
                integer(&own::OWNERS_MERGED, &[], 3),
                integer(&own::SERIES_DROPPED, &["gpuscope_kernel_launches_total"], 12_000),
            ],
        ]
    };
    let text = second(parts(1), parts(2), FILE);
    assert!(!text.contains('\u{1b}'), "{text:?}");
    insta::assert_snapshot!(text);
}

#[test]
fn nothing_at_all_is_a_page_too() {
    insta::assert_snapshot!(second(Vec::new(), Vec::new(), FILE));
}

#[test]
fn only_a_terminal_gets_colours() {
    let (trainer, view) = (
        trainer(),
        View {
            colour: true,
            ..TERMINAL
        },
    );
    let parts = |times| vec![busy(&trainer, 1), failures(&trainer, times)];
    let text = second(parts(1), parts(2), view);
    assert!(
        text.lines()
            .next()
            .is_some_and(|line| line.starts_with("\u{1b}[1m") && line.ends_with("\u{1b}[0m"))
    );
    let wrong = text
        .lines()
        .find(|line| line.contains("cudaMalloc"))
        .expect("the error");
    assert!(wrong.starts_with("\u{1b}[31m"), "{wrong:?}");
    let plain = text
        .replace("\u{1b}[1m", "")
        .replace("\u{1b}[31m", "")
        .replace("\u{1b}[0m", "");
    assert_eq!(plain, second(parts(1), parts(2), TERMINAL));
}

#[test]
fn a_counter_that_begins_anew_counts_from_nothing() {
    let trainer = trainer();
    let parts = |calls| {
        vec![vec![
            integer(&api::API_CALLS, &["driver", "launch"], calls).of(&trainer),
        ]]
    };
    let text = second(parts(1000), parts(50), FILE);
    assert!(text.lines().any(|line| line.contains(" 10.0 ")), "{text}");
}
