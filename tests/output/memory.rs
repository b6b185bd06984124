//! Reports of who holds memory, as text, as JSON, as a live table and in the summary.

use gpuscope::catalog::Family;
use gpuscope::frame::{Frame, Language};
use gpuscope::model::memory::{
    Account, Allocation, AllocationMap, Anomalies, DeviceReport, Ended, Ending, FamilyReport, FreedBy, HOST, Origin,
    PeakReport, PoolReport, ProcessReport, Report, SiteReport, Sum, TensorReport, UNKNOWN_DEVICE,
};
use gpuscope::model::summary::Summary;
use gpuscope::sink::memory::{Pace, Rates, View, line, page, table};
use gpuscope::sink::summary::{to_json, to_text};
use gpuscope::wire::MemoryLoss;

const MIB: u64 = 1 << 20;
const SECOND: u64 = 1_000_000_000;
const START: u64 = 100 * SECOND;
const PLAIN: View = View { top: 10, colour: false };

fn seconds(seconds: f64) -> u64 {
    START + (seconds * 1e9) as u64
}

/// `kept` of `made` allocations of a MiB each are still there.
fn account(made: u64, kept: u64) -> Account {
    Account {
        held_bytes: kept * MIB,
        outstanding: kept,
        peak_bytes: (kept + 1).min(made) * MIB,
        peak_at: seconds(8.2),
        allocations: made,
        allocated_bytes: made * MIB,
        frees: made - kept,
        freed_bytes: (made - kept) * MIB,
        failed_allocations: 0,
    }
}

fn device(number: i16, account: Account) -> DeviceReport {
    DeviceReport {
        device: number,
        account,
        ..DeviceReport::default()
    }
}

fn with_driver(device: DeviceReport, bytes: u64) -> DeviceReport {
    DeviceReport {
        uuid: Some("GPU-3a9b".to_owned()),
        name: Some("NVIDIA H200".to_owned()),
        driver_bytes: Some(bytes),
        unattributed_bytes: bytes.checked_sub(device.account.held_bytes),
        driver_at: Some(seconds(9.75)),
        ..device
    }
}

fn family(family: Family, device: i16, account: Account) -> FamilyReport {
    FamilyReport {
        family,
        device,
        account,
    }
}

fn site(site: u64, family: Family, device: i16, account: Account) -> SiteReport {
    SiteReport {
        row: 7,
        function: "cuMemAlloc_v2".to_owned(),
        site,
        family,
        device,
        account,
        peak_bytes: account.held_bytes,
        peak_count: account.outstanding,
        oldest_ns: 9_100_000_000,
        newest_ns: 200_000_000,
    }
}

fn process(pid: u32, comm: &str) -> ProcessReport {
    ProcessReport {
        pid,
        comm: comm.to_owned(),
        origin: Origin::Start,
        first_at: seconds(0.5),
        ended_at: None,
        at: seconds(12.3),
        devices: Vec::new(),
        host: Account::default(),
        families: Vec::new(),
        sites: Vec::new(),
        map: None,
        pools: Vec::new(),
        tensors: None,
        peaks: Vec::new(),
        freed_by: Vec::new(),
        endings: Vec::new(),
        anomalies: Anomalies::default(),
        lost: MemoryLoss::default(),
    }
}

fn report(processes: Vec<ProcessReport>) -> Report {
    Report {
        at: seconds(12.3),
        started_at: START,
        last: true,
        processes,
        ..Report::default()
    }
}

fn native(function: &str, module: &str) -> Frame {
    Frame {
        function: function.to_owned(),
        module: Some(module.to_owned()),
        offset: Some(0x1234),
        file: None,
        line: None,
        language: Language::Native,
        inlined: false,
    }
}

fn python(function: &str, file: &str, line: u32) -> Frame {
    Frame {
        function: function.to_owned(),
        module: None,
        offset: None,
        file: Some(file.to_owned()),
        line: Some(line),
        language: Language::Python,
        inlined: false,
    }
}

/// A training script that keeps its activations, seen from its start.
fn leaking() -> Report {
    let mut python_process = process(1234, "python");
    python_process.ended_at = Some(seconds(12.1));
    python_process.devices = vec![with_driver(device(0, account(1234, 1024)), 1536 * MIB)];
    python_process.host = account(2, 1);
    python_process.families = vec![
        family(Family::Device, 0, account(1234, 1024)),
        family(Family::Pinned, HOST, account(2, 1)),
    ];
    python_process.sites = vec![
        site(1, Family::Device, 0, account(1000, 1000)),
        site(2, Family::Device, 0, account(200, 23)),
        site(3, Family::Device, 0, account(1, 1)),
        site(4, Family::Pinned, HOST, account(2, 1)),
        site(5, Family::Device, 0, account(33, 0)),
    ];
    python_process.freed_by = vec![FreedBy {
        row: 9,
        function: "cuMemFree_v2".to_owned(),
        ended: ended(210),
    }];
    python_process.endings = vec![
        (Ending::Freed, ended(211)),
        (Ending::ContextDestroyed, ended(0)),
        (Ending::ProcessEnded, ended(1025)),
    ];
    let mut report = report(vec![python_process]);
    let torch = [
        native("cuMemAlloc_v2", "libcuda.so.1"),
        native("cudaMalloc", "libcudart.so.12"),
        native(
            "c10::cuda::CUDACachingAllocator::Native::malloc(unsigned long)",
            "libc10_cuda.so",
        ),
        native("at::native::empty_cuda", "libtorch_cuda.so"),
        python(
            "forward",
            "/usr/lib/python3.12/site-packages/torch/nn/modules/linear.py",
            125,
        ),
    ];
    let script = [
        python("forward", "/home/me/train.py", 42),
        python("<module>", "/home/me/train.py", 80),
    ];
    report.stacks.insert(1, [torch.as_slice(), script.as_slice()].concat());
    let plain = [native("cuMemAlloc_v2", "libcuda.so.1"), native("0x7f001234", "app")];
    report.stacks.insert(2, plain.to_vec());
    report
}

#[test]
fn single_allocations_are_told_with_the_line_that_asked_for_them() {
    let mut report = leaking();
    let one = |address, bytes, age_ns, site| Allocation {
        bytes,
        age_ns,
        address,
        family: Family::Device,
        device: 0,
        row: 7,
        function: "cuMemAlloc_v2".to_owned(),
        site,
    };
    report.processes[0].map = Some(AllocationMap {
        shown: vec![
            one(Some(0x7f2a_4000_0000), 512 * MIB, 9_100_000_000, 1),
            one(None, MIB, 200_000_000, 3),
        ],
        left_out: 3,
        left_out_bytes: 3 * MIB,
    });
    let text = page(&report, &Rates::default(), PLAIN, None);
    let from = text.find("  single allocations").expect("a list of them");
    let list: Vec<&str> = text[from..].lines().take(4).collect();
    insta::assert_snapshot!(list.join("\n"));
    let value: serde_json::Value = serde_json::from_str(&line(&report, &Rates::default())).expect("JSON");
    let process = &value["processes"][0];
    assert_eq!(process["allocations"][0]["address"], "0x7f2a40000000");
    assert_eq!(process["allocations"][1]["address"], serde_json::Value::Null);
    assert_eq!(process["allocations_left_out"], 3);
}

/// A framework that keeps 100 MiB of which tensors use 60.
fn caching() -> Report {
    let mut script = process(8, "python");
    script.devices = vec![device(0, account(5, 5))];
    script.families = vec![
        family(Family::Device, 0, account(5, 5)),
        family(Family::Tensor, 0, account(90, 60)),
    ];
    script.sites = vec![
        site(1, Family::Tensor, 0, account(90, 60)),
        site(0, Family::Device, 0, account(5, 5)),
    ];
    script.tensors = Some(TensorReport {
        segments: 5,
        segment_bytes: 100 * MIB,
        peak_segment_bytes: 120 * MIB,
        tensors: 60,
        tensor_bytes: 60 * MIB,
        stray_bytes: 3 * MIB,
    });
    let mut report = report(vec![script]);
    report.stacks.insert(1, vec![python("keep", "/home/me/train.py", 7)]);
    report
}

fn ended(count: u64) -> Ended {
    Ended {
        count,
        bytes: count * MIB,
    }
}

/// Attached late, on two devices and one that is not known; a guess which the second is.
fn late() -> Report {
    let mut server = process(77, "server");
    server.origin = Origin::Late;
    let guess = DeviceReport {
        inferred: true,
        notes: vec!["the driver counts other processes with it".to_owned()],
        driver_at: Some(seconds(12.0)),
        ..with_driver(device(1, account(5, 5)), 900 * MIB)
    };
    server.devices = vec![device(UNKNOWN_DEVICE, account(3, 2)), device(0, account(10, 0)), guess];
    server.families = vec![
        family(Family::Device, UNKNOWN_DEVICE, account(3, 2)),
        family(Family::Device, 0, account(10, 0)),
        family(Family::Managed, 1, account(5, 5)),
    ];
    server.sites = vec![
        site(0, Family::Managed, 1, account(5, 5)),
        site(0, Family::Device, UNKNOWN_DEVICE, account(3, 2)),
    ];
    server.endings = vec![(Ending::Freed, ended(11))];
    server.anomalies.unknown_frees = 17;
    Report {
        last: false,
        notes: vec!["NVML: no such library: what the driver says is not known".to_owned()],
        ..report(vec![server])
    }
}

/// Virtual memory, pools and what is shown apart.
fn mapped() -> Report {
    let mut app = process(5, "app");
    app.devices = vec![device(0, account(40, 20))];
    app.families = vec![
        family(Family::Physical, 0, account(30, 15)),
        family(Family::Async, 0, account(10, 5)),
        family(Family::Reserved, 0, account(1, 1)),
        family(Family::Mapped, 0, account(15, 15)),
        family(Family::Ipc, 0, account(1, 1)),
    ];
    app.sites = vec![
        site(0, Family::Physical, 0, account(30, 15)),
        site(0, Family::Reserved, 0, account(1, 1)),
        site(0, Family::Async, 0, account(10, 5)),
    ];
    app.pools = vec![
        PoolReport {
            handle: 0x7f10,
            device: 0,
            made: true,
            used_bytes: 5 * MIB,
            peak_used_bytes: 6 * MIB,
            reserved: Some((32 * MIB, seconds(10.3))),
        },
        PoolReport {
            handle: 0x7f20,
            device: 0,
            made: false,
            used_bytes: 0,
            peak_used_bytes: 0,
            reserved: None,
        },
    ];
    report(vec![app])
}

/// Everything that can go wrong, told by a process whose names drive terminals.
fn hostile() -> Report {
    let mut evil = process(9, "ev\u{1b}[2Jil\u{9b}");
    let failed = Account {
        failed_allocations: 4,
        ..account(2, 1)
    };
    evil.devices = vec![DeviceReport {
        name: Some("GPU\u{1b}]0;x\u{7}".to_owned()),
        ..device(0, failed)
    }];
    evil.families = vec![family(Family::Device, 0, failed)];
    evil.sites = vec![site(1, Family::Device, 0, account(2, 1))];
    evil.anomalies = Anomalies {
        double_frees: 1,
        unknown_frees: 2,
        failed_frees: 3,
        reused_pointers: 4,
        unreadable: 5,
        unfollowed: 7,
        unsized_arrays: 6,
    };
    evil.lost = MemoryLoss {
        allocations: 7,
        bytes: 7 * MIB,
        others: 8,
    };
    let mut report = report(vec![evil]);
    let frames = [python("f\u{1b}[31m\n", "/x\u{202e}.py", 1), native("g\r", "m\u{1b}c")];
    report.stacks.insert(1, frames.to_vec());
    report.forgotten = 2;
    report.notes = vec!["odd\u{1b}[2J".to_owned()];
    report
}

/// It gave back everything.
fn clean() -> Report {
    let mut app = process(6, "app");
    app.ended_at = Some(seconds(3.25));
    app.devices = vec![device(0, account(7, 0))];
    app.families = vec![family(Family::Device, 0, account(7, 0))];
    app.sites = vec![site(0, Family::Device, 0, account(7, 0))];
    app.endings = vec![(Ending::Freed, ended(7))];
    report(vec![app])
}

fn text(report: &Report) -> String {
    page(report, &Rates::of_all(report), PLAIN, None)
}

#[test]
fn a_leaking_python_process() {
    insta::assert_snapshot!(text(&leaking()));
}

#[test]
fn attached_late_on_several_devices_without_nvml() {
    insta::assert_snapshot!(text(&late()));
}

#[test]
fn a_framework_with_an_allocator_of_its_own() {
    insta::assert_snapshot!(text(&caching()));
}

#[test]
fn virtual_memory_pools_and_what_is_apart() {
    insta::assert_snapshot!(text(&mapped()));
}

#[test]
fn anomalies_losses_and_hostile_names() {
    insta::assert_snapshot!(text(&hostile()));
}

#[test]
fn nothing_outstanding() {
    insta::assert_snapshot!(text(&clean()));
}

#[test]
fn nobody_used_memory() {
    insta::assert_snapshot!(text(&report(Vec::new())));
}

#[test]
fn memory_as_json() {
    let json: serde_json::Value = serde_json::from_str(&line(&leaking(), &Rates::of_all(&leaking()))).expect("JSON");
    insta::assert_snapshot!(serde_json::to_string_pretty(&json).expect("JSON"));
}

#[test]
fn memory_as_json_of_what_is_not_known() {
    let all: Vec<serde_json::Value> = [late(), mapped(), caching(), hostile()]
        .iter()
        .map(|report| serde_json::from_str(&line(report, &Rates::of_all(report))).expect("JSON"))
        .collect();
    insta::assert_snapshot!(serde_json::to_string_pretty(&all).expect("JSON"));
}

#[test]
fn a_report_is_one_line_of_json_that_drives_no_terminal() {
    let line = line(&hostile(), &Rates::of_all(&hostile()));
    assert!(line.ends_with('\n') && !line.trim_end_matches('\n').contains(char::is_control));
}

#[test]
fn nothing_in_a_report_drives_a_terminal() {
    let (hostile, rates) = (hostile(), Rates::of_all(&hostile()));
    let live = table(&hostile, &rates, 50).join("\n");
    for text in [text(&hostile), live, to_text(&in_summary(hostile))] {
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text}");
    }
}

#[test]
fn a_long_list_of_call_sites_is_cut_and_adds_up_the_rest() {
    let leaking = leaking();
    let view = View { top: 1, ..PLAIN };
    let shown = page(&leaking, &Rates::of_all(&leaking), view, None);
    assert!(
        shown.contains("\n    25.0 MiB from 3 more call sites (--top 4 shows them)\n"),
        "{shown}"
    );
}

#[test]
fn many_processes_are_cut_and_add_up_the_rest() {
    let many = (0..30).map(|pid| ProcessReport {
        devices: vec![device(0, account(1, 1))],
        families: vec![family(Family::Device, 0, account(1, 1))],
        ..process(pid, "worker")
    });
    let shown = text(&report(many.collect()));
    assert!(
        shown.ends_with("\n    11.0 MiB  11 more processes (--json has all)\n"),
        "{shown}"
    );
    assert_eq!(shown.matches("     1.0 MiB  worker ").count(), 16, "{shown}");
    assert!(shown.lines().count() < 60, "{shown}");
}

#[test]
fn the_live_table() {
    let mut all = leaking();
    all.processes.extend(late().processes);
    let lines = table(&all, &Pace::default().rates(&all), 40);
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn the_live_table_fits_into_any_height() {
    let mut all = leaking();
    all.processes.extend((0..50).map(|pid| ProcessReport {
        devices: vec![device(0, account(1, 1))],
        families: vec![family(Family::Device, 0, account(1, 1))],
        ..process(pid, "worker")
    }));
    let rates = Pace::default().rates(&all);
    for height in 1..80 {
        let lines = table(&all, &rates, height);
        assert!(lines.len() <= height, "{height}: {}", lines.len());
    }
    assert!(table(&all, &rates, 20).iter().any(|line| line.ends_with("more lines")));
}

fn in_summary(memory: Report) -> Summary {
    Summary {
        memory,
        ..Summary::default()
    }
}

#[test]
fn memory_in_the_summary() {
    let mut all = leaking();
    all.processes.extend(late().processes);
    insta::assert_snapshot!(to_text(&in_summary(all)));
}

#[test]
fn the_summary_has_the_same_objects_as_a_report() {
    let line = line(&leaking(), &Rates::of_all(&leaking()));
    let memory = to_json(&in_summary(leaking()))["memory"].to_string();
    assert!(
        memory.starts_with("[{") && line.contains(&format!("\"processes\":{memory}")),
        "{line}"
    );
}

/// A program that has freed most of what it held at its height.
fn after_its_height() -> Report {
    let mut report = at_its_end();
    report.stacks.insert(2, vec![native("forward", "app")]);
    report.truncated.insert(2);
    report
}

fn at_its_end() -> Report {
    let mut process = process(77, "python");
    process.ended_at = Some(seconds(12.0));
    let mut weights = site(1, Family::Device, 0, account(100, 100));
    weights.peak_count = 1;
    let mut activations = site(2, Family::Device, 0, Account::default());
    activations.account.allocations = 5;
    (activations.peak_bytes, activations.peak_count) = (900 << 20, 5);
    process.devices = vec![device(0, account(100, 100))];
    process.families = vec![family(Family::Device, 0, account(100, 100))];
    process.sites = vec![weights, activations];
    process.peaks = vec![PeakReport {
        sum: Sum::Memory,
        bytes: 1000 << 20,
        at: seconds(4.5),
        highest_bytes: 1004 << 20,
    }];
    report(vec![process])
}

#[test]
fn who_held_what_when_most_was_held() {
    insta::assert_snapshot!(text(&after_its_height()));
}
