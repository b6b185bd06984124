//! Devices that schedulers have given away: to whom, for how long, and how much of that nobody used.

use super::exporter::{Exporter, PLAIN, sum_in};
use super::kubelet::Kubelet;
use super::slurm::Job;
use super::support::{Program, eventually};
use super::workload::Workloads;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const RESERVED: &str = "gpuscope_reserved";
const RESERVED_SECONDS: &str = "gpuscope_reserved_gpu_seconds_total";
const BOUND_SECONDS: &str = "gpuscope_reserved_bound_gpu_seconds_total";
const WASTE_SECONDS: &str = "gpuscope_waste_gpu_seconds_total";
/// As the simulated driver calls the first one.
pub const FIRST_GPU: &str = "GPU-47505553-434f-5045-2d53-494d00000001";
/// Rounding of the sums of one scrape.
const ROUNDING: f64 = 1e-6;

/// Does nothing until it is dropped.
struct Waiting(Child);

impl Waiting {
    fn start(command: &mut Command) -> Waiting {
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Waiting(quiet.spawn().expect("a process"))
    }

    fn end(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.end();
    }
}

/// Reserved, bound and unused, of one scrape.
fn seconds(exporter: &Exporter, owner: &str) -> [f64; 3] {
    let text = exporter.scrape(PLAIN);
    let of = |metric: &str, label: &str| sum_in(&text, metric, &[owner, label]).unwrap_or(0.0);
    [
        of(RESERVED_SECONDS, ""),
        of(BOUND_SECONDS, ""),
        of(WASTE_SECONDS, "reason=\"reserved-unused\""),
    ]
}

/// They add up at each moment.
fn until(exporter: &Exporter, what: &str, owner: &str, holds: impl Fn([f64; 3]) -> bool) {
    eventually(what, || {
        let [reserved, bound, unused] = seconds(exporter, owner);
        assert!(
            (reserved - bound - unused).abs() < ROUNDING,
            "{reserved} = {bound} + {unused}"
        );
        holds([reserved, bound, unused])
    });
}

#[test]
#[ignore = "needs root and BPF"]
fn a_gpu_that_a_pod_has_and_does_not_use_is_waste_of_that_pod() {
    let kubelet = Kubelet::start(&[
        ("ml", "a", "main", FIRST_GPU),
        ("ml", "b", "main", "GPU-of-another-machine"),
    ]);
    let socket = kubelet.socket();
    let socket = socket.to_str().expect("a path");
    let exporter = Exporter::start(&["--collect", "nvml,reserved,self", "--pod-resources", socket]);
    let given = ["namespace=\"ml\"", "pod=\"a\"", "container=\"main\"", "gpu=\"0\""];
    eventually("it is reserved", || exporter.sum(RESERVED, &given) == Some(1.0));
    assert_eq!(
        exporter.sum(RESERVED, &[]),
        Some(1.0),
        "no device here is the other one"
    );
    assert_eq!(exporter.sum("gpuscope_reserved_unknown_devices", &[]), Some(1.0));
    assert_eq!(exporter.sum("gpuscope_pod_resources_up", &[]), Some(1.0));
    until(
        &exporter,
        "three seconds without a process",
        "pod=\"a\"",
        |[_, bound, unused]| bound == 0.0 && unused > 3.0,
    );
    kubelet.gives(&[]);
    eventually("it is nobody's", || exporter.sum(RESERVED, &[]).is_none());
    let at_the_end = seconds(&exporter, "pod=\"a\"");
    assert!(at_the_end[2] > 3.0);
    kubelet.talks_nonsense();
    eventually("that is said", || {
        exporter.sum("gpuscope_pod_resources_up", &[]) == Some(0.0)
    });
    assert_eq!(seconds(&exporter, "pod=\"a\""), at_the_end, "what was counted stays");
}

#[test]
#[ignore = "needs root and BPF"]
fn time_of_a_job_of_slurm_is_bound_while_it_has_a_process_on_the_gpu() {
    let exporter = Exporter::start(&["--collect", "nvml,reserved,self", "--pod-resources", "off"]);
    let workloads = Workloads::of(&exporter);
    let job = Job::where_devices_are(4811);
    let owner = "slurm_job=\"4811\"";
    let mut waits = job.command(Path::new("sleep"));
    let mut waits = Waiting::start(waits.arg("600").env("SLURM_JOB_GPUS", "0"));
    until(
        &exporter,
        "it has a GPU and no process there",
        owner,
        |[_, bound, unused]| bound == 0.0 && unused > 1.0,
    );
    let file = workloads.file("r-works");
    workloads.command("r-works", "");
    let mut works = job.command(&file);
    works
        .args("stall --steps 1 --host-ns 600000000000".split(' '))
        .env("GPUSIM_STATE", exporter.state())
        .env("SLURM_JOB_GPUS", "0")
        .stdin(Stdio::null());
    let works = Program::start(&mut works);
    until(&exporter, "it has one", owner, |[_, bound, _]| bound > 1.0);
    let [_, _, unused] = seconds(&exporter, owner);
    until(&exporter, "it has one all the time", owner, |[_, bound, _]| bound > 3.0);
    assert_eq!(seconds(&exporter, owner)[2], unused);
    drop(works);
    until(&exporter, "it has none any more", owner, |[_, _, now]| {
        now > unused + 1.0
    });
    waits.end();
    assert_eq!(
        exporter.sum(RESERVED, &[owner]),
        Some(1.0),
        "a job without processes has its GPU"
    );
    drop(job);
    eventually("the job is over", || exporter.sum(RESERVED, &[owner]).is_none());
}
