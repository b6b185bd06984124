//! Frames for tests: of samples as the exporter has them, two looks a second apart.

use super::{
    Allocations, Closeup, Count, Findings, Frame, Function, InProgress, Known, OpenCall, frame, history::History,
};
use crate::model::snapshot::Snapshot;
use crate::owner::Owner;
use crate::serve::display::Pace;
use crate::serve::metric::{Metric, Sample, Value};
use crate::serve::{Scrape, Status, metrics};
use crate::top::origins::{Origin, Origins};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

const GIB: f64 = 1024.0 * 1024.0 * 1024.0;

/// Samples of one time, as they are added.
#[derive(Default)]
struct Samples(Vec<Sample>);

impl Samples {
    fn add(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.put(None, name, labels, value);
    }

    fn of(&mut self, owner: &Arc<Owner>, name: &str, labels: &[(&str, &str)], value: f64) {
        self.put(Some(owner), name, labels, value);
    }

    fn put(&mut self, owner: Option<&Arc<Owner>>, name: &str, labels: &[(&str, &str)], value: f64) {
        let metric: &'static Metric = metrics::all().find(|metric| metric.name == name).expect(name);
        let value_of = |label: &&str| {
            labels
                .iter()
                .find(|(known, _)| known == label)
                .map_or("", |(_, value)| value)
        };
        let values = metric.labels.iter().map(|label| value_of(label).to_owned().into());
        let sample = Sample::new(metric, values.collect(), Value::Number(value));
        self.0.push(match owner {
            Some(owner) => sample.of(owner),
            None => sample,
        });
    }
}

fn owner(pid: u32, comm: &str, command: &str, more: &[(&str, &str)]) -> Arc<Owner> {
    let pid = pid.to_string();
    let first = [("pid", pid.as_str()), ("comm", comm), ("cmdline", command)];
    let labels = first
        .iter()
        .chain(more)
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Arc::new(Owner {
        labels: labels.collect(),
    })
}

fn devices(samples: &mut Samples) {
    for gpu in ["0", "1"] {
        let about = [
            ("gpu", gpu),
            ("uuid", "GPU-0"),
            ("name", "NVIDIA H200"),
            ("pci_bus_id", "0000:17:00.0"),
        ];
        samples.add("gpuscope_gpu_info", &about, 1.0);
        samples.add("gpuscope_gpu_memory_total_bytes", &about, 141.0 * GIB);
        samples.add("gpuscope_gpu_power_limit_watts", &about, 700.0);
    }
    let first = [("gpu", "0")];
    samples.add("gpuscope_gpu_up", &first, 1.0);
    samples.add("gpuscope_gpu_up", &[("gpu", "1")], 0.0);
    samples.add("gpuscope_gpu_utilization_ratio", &first, 1.0);
    samples.add("gpuscope_gpu_memory_used_bytes", &first, 61.5 * GIB);
    samples.add("gpuscope_gpu_power_watts", &first, 345.0);
    samples.add(
        "gpuscope_gpu_temperature_celsius",
        &[("gpu", "0"), ("sensor", "gpu")],
        61.0,
    );
    samples.add(
        "gpuscope_gpu_temperature_celsius",
        &[("gpu", "0"), ("sensor", "memory")],
        83.0,
    );
    samples.add("gpuscope_gpu_clock_hertz", &[("gpu", "0"), ("clock", "sm")], 1.41e9);
    samples.add(
        "gpuscope_gpu_clocks_limited",
        &[("gpu", "0"), ("reason", "sw_power_cap")],
        1.0,
    );
    samples.add(
        "gpuscope_gpu_clocks_limited",
        &[("gpu", "0"), ("reason", "hw_slowdown")],
        0.0,
    );
    samples.add(
        "gpuscope_gpu_pcie_bytes_per_second",
        &[("gpu", "0"), ("direction", "sent")],
        2e6,
    );
    samples.add(
        "gpuscope_gpu_pcie_bytes_per_second",
        &[("gpu", "0"), ("direction", "received")],
        3e9,
    );
    samples.add("gpuscope_gpu_sm_activity_ratio", &first, 0.31);
    samples.add("gpuscope_gpu_xid_errors_total", &[("gpu", "0"), ("xid", "31")], 2.0);
    samples.add(
        "gpuscope_gpu_mig_info",
        &[
            ("gpu", "1"),
            ("mig_uuid", "MIG-1"),
            ("gpu_instance", "7"),
            ("profile", "1g.18gb"),
        ],
        1.0,
    );
    let instance = [("gpu", "1"), ("gpu_instance", "7")];
    samples.add("gpuscope_gpu_sm_activity_ratio", &instance, 0.25);
}

/// A training loop after `second` seconds.
fn training(samples: &mut Samples, second: f64) {
    let train = owner(
        4711,
        "python",
        "python train.py --lr 3e-4",
        &[("pod", "train-0"), ("env_rank", "0")],
    );
    let call = [("layer", "driver"), ("class", "launch")];
    samples.of(&train, "gpuscope_api_calls_total", &call, 5000.0 * second);
    samples.of(&train, "gpuscope_launches_total", &[], 1234.0 * second);
    samples.of(
        &train,
        "gpuscope_kernel_launches_total",
        &[("kernel", "sgemm")],
        1000.0 * second,
    );
    samples.of(
        &train,
        "gpuscope_kernel_launches_total",
        &[("kernel", "softmax")],
        234.0 * second,
    );
    let pinned = [("direction", "HtoD"), ("host_memory", "pinned")];
    samples.of(&train, "gpuscope_copy_bytes_total", &pinned, 1e9 * second);
    let pageable = [("direction", "DtoH"), ("host_memory", "pageable")];
    samples.of(&train, "gpuscope_copy_bytes_total", &pageable, 4096.0 * second);
    let wait = [("function", "cuStreamSynchronize")];
    samples.of(&train, "gpuscope_sync_waits_total", &wait, 10.0 * second);
    samples.of(&train, "gpuscope_sync_blocked_seconds_total", &wait, 0.4 * second);
    samples.of(&train, "gpuscope_hidden_waits_total", &[("kind", "item")], 5.0 * second);
    samples.of(
        &train,
        "gpuscope_hidden_wait_seconds_total",
        &[("kind", "item")],
        0.1 * second,
    );
    for (wait, site, share) in [("item", "train.py:31 step", 0.08), ("item", "eval.py:7 top1", 0.02)] {
        let labels = [("wait", wait), ("site", site)];
        samples.of(&train, "gpuscope_wait_site_seconds_total", &labels, share * second);
    }
    samples.of(&train, "gpuscope_gpu_idle_at_least_seconds_total", &[], 0.57 * second);
    samples.of(&train, "gpuscope_gpu_busy_at_most_seconds_total", &[], 0.43 * second);
    for (reason, share) in [("host-bound", 0.5), ("memory", 0.07)] {
        let labels = [("reason", reason), ("certainty", "bound"), ("gpu", "0")];
        samples.of(&train, "gpuscope_waste_gpu_seconds_total", &labels, share * second);
    }
    let on_first = [("family", "device"), ("gpu", "0"), ("uuid", "GPU-0")];
    samples.of(&train, "gpuscope_memory_held_bytes", &on_first, (50.0 + second) * GIB);
    samples.of(&train, "gpuscope_memory_held_bytes", &[("family", "pinned")], GIB);
    samples.of(&train, "gpuscope_memory_unattributed_bytes", &[("gpu", "0")], GIB / 2.0);
    samples.of(&train, "gpuscope_gpu_process_memory_bytes", &[("gpu", "0")], 52.0 * GIB);
    samples.of(
        &train,
        "gpuscope_gpu_process_sm_utilization_ratio",
        &[("gpu", "0")],
        0.97,
    );
}

/// What else runs: one that fails, one that is not traced, one with a name that no terminal should obey.
fn others(samples: &mut Samples, second: f64) {
    let worker = owner(4720, "worker", "python -m worker", &[("unit", "jobs.service")]);
    let call = [("layer", "runtime"), ("class", "memory")];
    samples.of(&worker, "gpuscope_api_calls_total", &call, 20.0 * second);
    let failure = [
        ("layer", "runtime"),
        ("function", "cudaMalloc"),
        ("error", "cudaErrorMemoryAllocation"),
    ];
    samples.of(&worker, "gpuscope_api_errors_total", &failure, 3.0 * second);
    let game = owner(900, "game", "/opt/game/bin/game", &[]);
    let part = [("gpu", "1"), ("mig_uuid", "MIG-1")];
    samples.of(&game, "gpuscope_gpu_process_memory_bytes", &part, 3.0 * GIB);
    for (engine, share) in [("memory", 0.12), ("encoder", 0.5), ("decoder", 0.0)] {
        let of = [("gpu", "1"), ("engine", engine)];
        samples.of(&game, "gpuscope_gpu_process_engine_utilization_ratio", &of, share);
    }
    let hostile = owner(5000, "ü訓練", "ü訓練\u{1b}[31m e\u{301}vil\nname", &[]);
    samples.of(&hostile, "gpuscope_api_calls_total", &call, 1.0);
    samples.of(
        &hostile,
        "gpuscope_kernel_launches_total",
        &[("kernel", "k\u{1b}]0;x\u{7}訓練<float>")],
        1.0,
    );
}

fn scrape(started: Instant, second: u64) -> Scrape {
    let mut samples = Samples::default();
    // in the order of the exporter: what is traced goes first
    training(&mut samples, second as f64);
    others(&mut samples, second as f64);
    devices(&mut samples);
    samples.add("gpuscope_probe_seconds_total", &[], 0.006 * second as f64);
    samples.add("gpuscope_lost_records_total", &[("reason", "memory_ring")], 7.0);
    samples.add("process_cpu_seconds_total", &[], 0.01 * second as f64);
    samples.add("process_resident_memory_bytes", &[], 40.0 * 1024.0 * 1024.0);
    Scrape {
        at: started + Duration::from_secs(second),
        number: second,
        samples: samples.0,
        status: Status {
            missing: vec!["2 of the running processes may not be looked at; hint: run as root of the host".to_owned()],
            ..Status::default()
        },
    }
}

fn origins() -> Origins {
    let mut origins = Origins::default();
    origins.tell(4711, Origin::of("ada", &[4000, 1]));
    origins.tell(4720, Origin::of("ada", &[4711, 4000, 1]));
    origins.tell(900, Origin::of("root", &[1]));
    origins.tell(5000, Origin::of("eve\u{1b}[2J", &[1]));
    origins
}

fn closeup() -> Closeup {
    let function = |name: &str, calls: f64, errors, seconds| Function {
        layer: "driver".to_owned(),
        name: name.to_owned(),
        calls: Count {
            total: calls,
            per_second: Some(calls / 10.0),
        },
        errors,
        seconds,
    };
    Closeup {
        pid: 4711,
        functions: vec![
            function("cuStreamSynchronize", 20.0, 0, Some(0.8)),
            function("cuLaunchKernel", 2468.0, 1, Some(0.02)),
            function("cuEventQuery", 7.0, 0, None),
        ],
        in_progress: vec![InProgress {
            tid: 4712,
            thread: "python".to_owned(),
            functions: vec!["cudaDeviceSynchronize".to_owned(), "cuCtxSynchronize".to_owned()],
            seconds: 3.25,
        }],
        in_progress_unseen: None,
        single: None,
        single_left_out: 0,
        allocations: vec![Allocations {
            place: Some("train.py:9 load".to_owned()),
            function: "cuMemAlloc_v2".to_owned(),
            family: "device".to_owned(),
            device: Some(0),
            bytes: 52 << 30,
            count: 12,
            oldest_seconds: 61.5,
            newest_seconds: 0.5,
        }],
    }
}

/// What a summary says of the training loop.
fn findings() -> Findings {
    let stack = |function: &str, line: u32| serde_json::json!([{"function": function, "file": "train.py", "line": line, "language": "python"}]);
    let summary = serde_json::json!({
        "findings": [
            {"rule": "sync-stall", "title": "The host waits for the GPU 10 times a second, with nothing else given to it",
             "what": "20 waits in cuStreamSynchronize took 0.86 s in all", "cost_ns": 860_000_000u64, "share": 0.43, "certainty": "bound", "where": "train.py:17 step",
             "do": "read the loss every hundredth step, or keep it on the device and read it at the end"},
            {"rule": "sticky-error", "title": "A kernel failed\u{1b}[2J and every call after it", "grave": true, "what": "718 was returned by 9 calls",
             "certainty": "measured", "do": "look at the first error"},
        ],
        "work": [{"pid": 4711, "comm": "python",
            "waits": [{"function": "cuStreamSynchronize", "count": 20, "total_us": 860_000.0, "stack": stack("step", 17)},
                {"function": "cuStreamSynchronize", "count": 1, "total_us": 2_000.0, "stack": []}],
            "hidden": [{"kind": "free", "count": 3, "total_us": 90_000.0, "certainty": "inferred", "stack": stack("drop\u{1b}[2J", 31)}]}],
        "gpu": {"devices": [{"pid": 4711, "device": 0, "busy_us": 860_000.0, "idle_us": 1_140_000.0, "certainty": "measured",
            "idle_causes": [
                {"cause": "sync-return", "idle_us": 900_000.0, "gaps": 20, "longest_us": 50_000.0, "where": "train.py:17 step"},
                {"cause": "other", "idle_us": 240_000.0, "gaps": 2, "longest_us": 200_000.0}]}]},
    });
    Findings::of(&Snapshot::read(&summary).unwrap(), 4711, 2.0)
}

/// The second look, with what was remembered of both.
pub(crate) fn second_look() -> (Frame, History) {
    let started = Instant::now();
    let mut pace = Pace::new(started);
    let (mut history, mut last) = (History::default(), Frame::default());
    for second in [1, 2] {
        let scrape = scrape(started, second);
        let rates = pace.rates(&scrape);
        last = frame(Known {
            scrape: &scrape,
            rates: &rates,
            origins: &origins(),
            at: 1_790_000_000.0 + second as f64,
            traces_all: false,
            traces: &[],
            closeup: Some(closeup()),
            open: HashMap::from([(
                4711,
                OpenCall {
                    function: "cudaDeviceSynchronize".to_owned(),
                    seconds: 3.25,
                },
            )]),
        });
        history.take(&mut last);
        last.findings = Some(findings());
    }
    (last, history)
}
