//! Copies by direction, memory and manner: how many, of how many bytes, and how fast at most.

use super::log::{Log, Operation};
use super::run::{Run, watch, watch_by};
use super::seed::seed;
use super::support::{assert_same, groups, number, text};
use super::told::{assert_complete, handle, list};
use serde_json::Value;
use std::collections::BTreeMap;

/// Direction, host memory (empty: none), and whether the call blocks.
pub type Class = (String, String, bool);

#[derive(Debug, Default, PartialEq, Eq, Clone)]
struct Tally {
    count: u64,
    bytes: u64,
    unsized_count: u64,
    /// Copies by the power of two that is their least size.
    sizes: BTreeMap<u64, u64>,
}

impl Tally {
    fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
        let power = if bytes < 2 { 0 } else { 1 << bytes.ilog2() };
        *self.sizes.entry(power).or_default() += 1;
    }
}

/// What a function says by its name; arrays are a device's.
fn stated(api: &str) -> Option<String> {
    let name = api.strip_prefix("cuMemcpy").expect("a copy");
    if name.contains("Peer") {
        return Some("PtoP".to_owned());
    }
    let way: String = name.chars().take(4).collect::<String>().replace('A', "D");
    ["HtoD", "DtoH", "DtoD"].contains(&way.as_str()).then_some(way)
}

/// Managed memory is a device's.
fn side(memory: &str) -> char {
    if ["pinned", "pageable"].contains(&memory) {
        'H'
    } else {
        'D'
    }
}

fn ends(copy: &Operation) -> [&str; 2] {
    [&copy.from, &copy.to].map(|end| end.as_deref().expect("a copy's end"))
}

fn is_managed(copy: &Operation) -> bool {
    ends(copy).contains(&"managed")
}

/// A structure that describes an end can call managed memory the host's, which the log does not tell. Those of a batch
/// have addresses alone.
fn has_unknown_way(copy: &Operation) -> bool {
    let is_described = copy.api.starts_with("cuMemcpy2D") || copy.api.starts_with("cuMemcpy3D");
    is_managed(copy) && is_described && stated(&copy.api).is_none() && !copy.api.contains("Batch")
}

fn host_memory(copy: &Operation, way: &str) -> String {
    let [from, to] = ends(copy);
    let host = match way {
        _ if is_managed(copy) => "managed",
        "HtoD" => from,
        "DtoH" => to,
        "HtoH" if [from, to].contains(&"pageable") => "pageable",
        "HtoH" => "pinned",
        _ => "",
    };
    host.to_owned()
}

/// What gpuscope should call a copy.
fn class(copy: &Operation) -> Class {
    let [from, to] = ends(copy).map(side);
    let way = stated(&copy.api).unwrap_or_else(|| format!("{from}to{to}"));
    let blocks = !copy.api.contains("Async") && !["DtoD", "PtoP"].contains(&way.as_str());
    let host = host_memory(copy, &way);
    (way, host, blocks)
}

/// The copies of a log for which `keep` holds, as gpuscope should tell of them.
fn of_log(log: &Log, keep: impl Fn(&Operation) -> bool) -> BTreeMap<Class, Tally> {
    let mut tallies = BTreeMap::<Class, Tally>::new();
    for copy in log.copies().filter(|copy| keep(copy)) {
        tallies.entry(class(copy)).or_default().add(copy.bytes);
    }
    tallies
}

fn class_told(copies: &Value) -> Class {
    let word = |field: &str| copies[field].as_str().unwrap_or_default().to_owned();
    (word("direction"), word("host"), copies["blocking"] == true)
}

fn of_report(report: &Value) -> BTreeMap<Class, Tally> {
    let tally = |copies: &Value| Tally {
        count: number(copies, "count"),
        bytes: number(copies, "bytes"),
        unsized_count: number(copies, "unsized"),
        sizes: list(&copies["sizes"])
            .iter()
            .map(|pair| (pair[0].as_u64().expect("bytes"), pair[1].as_u64().expect("a count")))
            .collect(),
    };
    let copies = list(&report["copies"]).iter();
    copies.map(|copies| (class_told(copies), tally(copies))).collect()
}

/// Count and bytes.
pub fn classes_told(report: &Value) -> BTreeMap<Class, (u64, u64)> {
    let tallies = of_report(report).into_iter();
    tallies
        .map(|(class, tally)| (class, (tally.count, tally.bytes)))
        .collect()
}

fn is_of_managed(class: &Class) -> bool {
    class.1 == "managed"
}

/// Those of managed memory whose way is known are all there; with the others they add up.
fn assert_managed(name: &str, log: &Log, told: &BTreeMap<Class, Tally>) {
    let least = of_log(log, |copy| is_managed(copy) && !has_unknown_way(copy));
    for (class, tally) in &least {
        let told = told.get(class).cloned().unwrap_or_default();
        assert!(
            told.count >= tally.count && told.bytes >= tally.bytes,
            "{name}: {class:?}"
        );
    }
    let all = of_log(log, is_managed);
    let sum = |tallies: &BTreeMap<Class, Tally>| {
        let managed = tallies.iter().filter(|(class, _)| is_of_managed(class));
        managed.fold((0, 0), |(count, bytes), (_, tally)| {
            (count + tally.count, bytes + tally.bytes)
        })
    };
    assert_eq!(sum(&all), sum(told), "{name}: of managed memory");
}

fn assert_copies(run: &Run) {
    assert_complete(&run.name, run.report());
    let mut told = of_report(run.report());
    assert_managed(&run.name, &run.log, &told);
    told.retain(|class, _| !is_of_managed(class));
    let expected = of_log(&run.log, |copy| !is_managed(copy));
    assert_same(&run.name, &expected, &told);
}

/// Bytes that were put into each stream.
fn assert_streams(run: &Run) {
    let mut expected = BTreeMap::<(u64, u64), u64>::new();
    for copy in run.log.copies() {
        *expected.entry((copy.stream, copy.context)).or_default() += copy.bytes;
    }
    let mut told = BTreeMap::<(u64, u64), u64>::new();
    for stream in list(&run.report()["streams"]) {
        let copied = stream["copied"].as_object().expect("bytes by direction").values();
        let bytes: u64 = copied.map(|bytes| bytes.as_u64().expect("bytes")).sum();
        *told
            .entry((handle(stream, "stream"), handle(stream, "context")))
            .or_default() += bytes;
    }
    told.retain(|_, bytes| *bytes > 0);
    assert_same(&run.name, &expected, &told);
}

/// No rate is higher than the true one: a call, or the time until its stream was seen drained, is longer than its
/// copy took. A call that copies from pageable memory may return when the bytes are staged.
fn assert_rates(run: &Run) {
    let mut truth = BTreeMap::<Class, (u64, u64)>::new();
    for copy in run.log.copies().filter(|copy| !is_managed(copy)) {
        let (bytes, ns) = truth.entry(class(copy)).or_default();
        *bytes += copy.bytes;
        *ns += copy.end_ns - copy.start_ns;
    }
    for copies in list(&run.report()["copies"]) {
        let class = class_told(copies);
        let Some((bytes, ns)) = truth.get(&class) else { continue };
        let rate = copies["bytes_per_second"].as_f64().expect("a rate");
        let is_staged = class == ("HtoD".to_owned(), "pageable".to_owned(), true);
        let most = *bytes as f64 * 1e9 / *ns as f64 * (1.0 + 1e-9);
        assert!(
            rate > 0.0 && (is_staged || rate <= most),
            "{}: {copies}, truly {most}",
            run.name
        );
        let words = if class.2 {
            ("measured", None)
        } else {
            ("bound", Some("at_least"))
        };
        let told = (text(copies, "certainty"), copies["bound"].as_str());
        assert_eq!((told.0.as_str(), told.1), words, "{}: {copies}", run.name);
    }
}

fn copies_of(program: &str, arguments: &str, devices: &str) -> Run {
    watch(
        &format!("{program} copies {arguments}"),
        &[],
        &[("GPUSIM_DEVICES", devices)],
    )
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn every_copy_is_where_the_log_says_and_of_its_size() {
    for devices in ["1", "2"] {
        for seed in [1, 7, seed(), seed()] {
            let run = copies_of("gpusim", &format!("--seed {seed}"), devices);
            assert_copies(&run);
            assert_streams(&run);
        }
    }
}

/// Single links detach so slowly that not all functions that work follows from can be hooked by them here.
#[test]
#[ignore = "needs the simulated CUDA"]
fn so_it_is_in_whatever_way_functions_are_hooked() {
    for way in groups() {
        let text = format!("gpusim copies --seed {}", seed());
        let run = watch_by(way, &text);
        assert_eq!(run.trace.summary()["attach"], way);
        assert_copies(&run);
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_runtime_inside_the_program_changes_nothing() {
    for program in ["gpusim-static", "gpusim-static-stripped"] {
        assert_copies(&copies_of(program, &format!("--seed {}", seed()), "2"));
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn no_copy_is_said_to_be_faster_than_it_was() {
    for bytes in [4096, 65536, 4 << 20] {
        let run = copies_of("gpusim", &format!("--seed {} --bytes {bytes}", seed()), "2");
        assert_copies(&run);
        assert_rates(&run);
    }
}
