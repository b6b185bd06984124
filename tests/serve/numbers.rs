//! Prometheus answers with the numbers of the simulated CUDA's own ledger: all of them, and for ever.

use super::exporter::{Exporter, OPENMETRICS, PLAIN};
use super::kubelet::Kubelet;
use super::prometheus::{Prometheus, tool};
use super::queries;
use super::reserved::FIRST_GPU;
use super::support::{Ended, Ledger, eventually, number, sim};
use super::workload::Workloads;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

/// The jobs that scrape the same exporter in two formats.
const JOBS: [&str; 2] = ["gpuscope", "gpuscope-plain"];
const CHURNED: usize = 40;
const AT_A_TIME: usize = 4;

type Table = BTreeMap<Vec<String>, u64>;
/// What a program's ledger adds to a table.
type Rows = dyn Fn(&str, &Ledger) -> Vec<(Vec<String>, u64)>;

struct Scene {
    exporter: Exporter,
    prometheus: Prometheus,
    workloads: Workloads,
}

#[test]
#[ignore = "needs root and BPF"]
fn prometheus_answers_with_the_ledgers_numbers() {
    let everything = "api,getters,buckets,errors,memory,launches,copies,sync,sites,driver,nvml,reserved,xid,self";
    let kubelet = Kubelet::start(&[("ml", "q-idle", "main", FIRST_GPU)]);
    let socket = kubelet.socket();
    let socket = socket.to_str().expect("UTF-8");
    let exporter = Exporter::start(&[
        "--collect",
        everything,
        "--retain",
        "10min",
        "--pod-resources",
        socket,
        "--budget",
        "100%",
    ]);
    let workloads = Workloads::of(&exporter);
    workloads.until_seen_whole(&exporter);
    let prometheus = Prometheus::of(&exporter);
    let scene = Scene {
        exporter,
        prometheus,
        workloads,
    };
    let ended: Vec<(&str, Ended)> = [
        ("w-train", "train 20"),
        ("w-errors", "errors 5"),
        ("w-copies", "copies --seed 7"),
    ]
    .map(|(name, arguments)| (name, scene.workloads.run(name, arguments)))
    .into();
    let ledgers: BTreeMap<&str, &Ledger> = ended.iter().map(|(name, ended)| (*name, &ended.ledger)).collect();
    scene.numbers_of_ended_programs(&ledgers);
    scene.memory_that_is_held();
    scene.churn();
    scene.numbers_of_ended_programs(&ledgers);
    scene.nothing_ever_fell();
    scene.formats_are_as_their_readers_want_them();
    queries::every_query_gives_data(&scene.prometheus, &scene.exporter, &scene.workloads);
    scene.nothing_ever_fell();
}

impl Scene {
    /// The same of both jobs.
    fn until(&self, what: &str, expression: &str, labels: &[&str], expected: &Table) {
        assert!(!expected.is_empty(), "{what}: nothing is expected");
        for job in JOBS {
            let expression = expression.replace("JOB", &format!("job=\"{job}\""));
            self.prometheus
                .until(&format!("{what}, {job}"), &expression, labels, expected);
        }
    }

    fn numbers_of_ended_programs(&self, ledgers: &BTreeMap<&str, &Ledger>) {
        let of_all = |rows: &Rows| -> Table {
            let rows = ledgers.iter().flat_map(|(name, ledger)| rows(name, ledger));
            let mut table = Table::new();
            for (key, count) in rows.filter(|(_, count)| *count > 0) {
                *table.entry(key).or_default() += count;
            }
            table
        };
        let calls = of_all(&|name, ledger| {
            let calls = ledger.visible().into_iter();
            calls
                .map(|((layer, _), count)| (vec![name.to_owned(), layer], count))
                .collect()
        });
        self.until(
            "calls",
            "sum by (comm, layer) (gpuscope_api_calls_total{JOB,comm=~\"w-.*\"})",
            &["comm", "layer"],
            &calls,
        );
        let errors = of_all(&|name, ledger| {
            let errors = ledger.errors.iter();
            errors
                .map(|((function, _), count)| (vec![name.to_owned(), function.clone()], *count))
                .collect()
        });
        self.until(
            "errors",
            "sum by (comm, function) (gpuscope_api_errors_total{JOB,comm=~\"w-.*\"})",
            &["comm", "function"],
            &errors,
        );
        self.named_errors(ledgers["w-errors"]);
        let copied = of_all(&|name, ledger| {
            let kinds = ["htod", "dtoh", "dtod", "htoh"]
                .iter()
                .filter_map(|kind| ledger.bytes.get(*kind));
            vec![(vec![name.to_owned()], kinds.sum())]
        });
        self.until(
            "bytes copied",
            "sum by (comm) (gpuscope_copy_bytes_total{JOB,comm=~\"w-.*\"})",
            &["comm"],
            &copied,
        );
        self.directions(ledgers["w-train"]);
        self.kernels(ledgers["w-train"]);
    }

    /// By their names, as CUDA's headers have them for these codes.
    fn named_errors(&self, ledger: &Ledger) {
        let names = BTreeMap::from([
            (2, "CUDA_ERROR_OUT_OF_MEMORY"),
            (101, "CUDA_ERROR_INVALID_DEVICE"),
            (713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED"),
        ]);
        let mut expected = Table::new();
        for ((function, code), count) in &ledger.errors {
            if let (true, Some(name)) = (
                function.starts_with("cu") && !function.starts_with("cuda"),
                names.get(code),
            ) {
                *expected.entry(vec![(*name).to_owned()]).or_default() += count;
            }
        }
        let of: Vec<&str> = names.values().copied().collect();
        let expression = format!(
            "sum by (error) (gpuscope_api_errors_total{{JOB,comm=\"w-errors\",error=~\"{}\"}})",
            of.join("|")
        );
        self.until("errors by name", &expression, &["error"], &expected);
    }

    /// A training loop copies from and to pinned memory alone.
    fn directions(&self, ledger: &Ledger) {
        let row = |direction: &str, of: &str| (vec![direction.to_owned(), "pinned".to_owned()], ledger.bytes[of]);
        let expected = Table::from([row("HtoD", "htod"), row("DtoH", "dtoh")]);
        self.until(
            "bytes by direction",
            "gpuscope_copy_bytes_total{JOB,comm=\"w-train\"}",
            &["direction", "host_memory"],
            &expected,
        );
    }

    fn kernels(&self, ledger: &Ledger) {
        let named = ledger
            .kernels
            .iter()
            .map(|(symbol, count)| (vec![short_name(symbol)], *count));
        self.until(
            "launches by kernel",
            "gpuscope_kernel_launches_total{JOB,comm=\"w-train\"}",
            &["kernel"],
            &named.collect(),
        );
        let all = Table::from([(vec!["w-train".to_owned()], ledger.kernels.values().sum())]);
        self.until(
            "launches",
            "gpuscope_launches_total{JOB,comm=\"w-train\"}",
            &["comm"],
            &all,
        );
    }

    /// What a program holds, by the driver's own book; nothing of it after its end, but what was allocated.
    fn memory_that_is_held(&self) {
        let book = self.workloads.file("book");
        let mut command = self.workloads.command("m-hold", "hold --count 1000 --size 4096");
        let mut child = command
            .env("GPUSIM_BOOK", &book)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("gpusim starts");
        eventually("the program holds its memory", || held(&book) == Some(1000 * 4096));
        let device = |bytes: u64| Table::from([(vec!["device".to_owned(), "0".to_owned()], bytes)]);
        let expression = "gpuscope_memory_held_bytes{JOB,comm=\"m-hold\"}";
        self.until(
            "bytes held",
            expression,
            &["family", "gpu"],
            &device(held(&book).expect("a book")),
        );
        self.until(
            "allocations",
            "gpuscope_memory_allocations{JOB,comm=\"m-hold\"}",
            &["family", "gpu"],
            &device(1000),
        );
        self.until(
            "bytes by age",
            "sum by (comm) (gpuscope_memory_age_bytes{JOB,comm=\"m-hold\"})",
            &["comm"],
            &only("m-hold", 1000 * 4096),
        );
        let driver = "1 + max(abs(gpuscope_memory_driver_bytes{JOB,comm=\"m-hold\"} - ignoring (family) \
                      gpuscope_memory_held_bytes{JOB,comm=\"m-hold\"} - gpuscope_memory_unattributed_bytes{JOB,comm=\"m-hold\"}))";
        self.until(
            "the driver's bytes less those held and unattributed, plus one",
            driver,
            &[],
            &Table::from([(vec![], 1)]),
        );
        drop(child.stdin.take());
        assert!(child.wait().expect("a child").success());
        for job in JOBS {
            let expression = expression.replace("JOB", &format!("job=\"{job}\""));
            self.prometheus
                .until("nothing is held any more", &expression, &["family"], &Table::new());
        }
        self.until(
            "bytes that were allocated",
            "sum by (comm) (gpuscope_memory_allocated_bytes_total{JOB,comm=\"m-hold\"})",
            &["comm"],
            &only("m-hold", 1000 * 4096),
        );
        self.until(
            "bytes not given back",
            "gpuscope_memory_unreturned_bytes_total{JOB,comm=\"m-hold\"}",
            &["comm"],
            &only("m-hold", 1000 * 4096),
        );
    }

    /// Many short programs of one name: one sum.
    fn churn(&self) {
        let mut expected = Ledger::default();
        for _ in 0..CHURNED / AT_A_TIME {
            let running = [(); AT_A_TIME].map(|()| self.workloads.start("m-churn", "train 1"));
            for program in running {
                let ledger = program.finish().ledger;
                for (key, count) in ledger.visible() {
                    *expected.calls.entry(key).or_default() += count;
                }
                for (kernel, count) in ledger.kernels {
                    *expected.kernels.entry(kernel).or_default() += count;
                }
            }
        }
        let calls = expected.calls.values().sum();
        self.until(
            "calls of many",
            "sum by (comm) (gpuscope_api_calls_total{JOB,comm=\"m-churn\"})",
            &["comm"],
            &only("m-churn", calls),
        );
        let launches = expected.kernels.values().sum();
        self.until(
            "launches of many",
            "gpuscope_launches_total{JOB,comm=\"m-churn\"}",
            &["comm"],
            &only("m-churn", launches),
        );
    }

    fn nothing_ever_fell(&self) {
        const COUNTERS: &str = "{__name__=~\"gpuscope_.*_(total|count|sum|bucket)|process_cpu_seconds_total\"}";
        let counters = self.prometheus.query(&format!("count({COUNTERS})"));
        assert!(counters[0].1 > 200.0, "{counters:?}");
        let names = self.prometheus.query(&format!("group by (__name__) ({COUNTERS})"));
        assert!(names.len() > 25, "{names:?}");
        for (labels, _) in names {
            let fallen = self
                .prometheus
                .query(&format!("resets({}[1h]) > 0", labels["__name__"]));
            assert!(fallen.is_empty(), "{}: {fallen:?}", labels["__name__"]);
        }
        let lost = self
            .prometheus
            .query("sum by (reason) (gpuscope_lost_records_total) > 0");
        assert!(lost.is_empty(), "{lost:?}");
    }

    fn formats_are_as_their_readers_want_them(&self) {
        let mut promtool = Command::new(tool("promtool"));
        promtool
            .args(["check", "metrics"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = promtool.spawn().expect("promtool starts");
        let text = self.exporter.scrape(PLAIN);
        child
            .stdin
            .take()
            .expect("a pipe")
            .write_all(text.as_bytes())
            .expect("promtool reads");
        let output = child.wait_with_output().expect("promtool ends");
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{said}");
        assert!(self.exporter.scrape(OPENMETRICS).ends_with("# EOF\n"));
        let targets = self.prometheus.ask("targets", &[]);
        let targets = targets["activeTargets"].as_array().expect("targets");
        assert_eq!(targets.len(), JOBS.len());
        assert!(
            targets
                .iter()
                .all(|target| target["health"] == "up" && target["lastError"] == ""),
            "{targets:?}"
        );
        let log = self.prometheus.log();
        assert!(!log.contains("level=warn") && !log.contains("level=error"), "{log}");
    }
}

fn only(name: &str, value: u64) -> Table {
    Table::from([(vec![name.to_owned()], value)])
}

/// Bytes of device memory that the driver has in its book; `None`: it has none yet.
fn held(book: &std::path::Path) -> Option<u64> {
    let output = Command::new(sim("gpusim")).arg("book").arg(book).output().ok()?;
    let book: Value = serde_json::from_slice(&output.stdout).ok()?;
    let families = book["families"].as_array()?.iter();
    let device = families.clone().find(|family| family["family"] == "device")?;
    Some(number(device, "held_bytes"))
}

/// The name of a kernel without its arguments and name spaces, as metrics have it.
fn short_name(symbol: &str) -> String {
    let symbol = cpp_demangle::Symbol::new(symbol).expect("a mangled name");
    let demangled = symbol.demangle().expect("a name");
    let plain = demangled.split_once('(').map_or(demangled.as_str(), |(name, _)| name);
    let plain = plain.strip_prefix("void ").unwrap_or(plain);
    plain.rsplit("::").next().unwrap_or(plain).to_owned()
}
