//! What both sides say of one process, as figures by the same names, and whether they are the same.

use super::support::{Trace, assert_same, number, text};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Figures by family, device and name, without those that are 0. Family `*` is all that a device or the host holds.
pub type Figures = BTreeMap<(String, String, &'static str), u64>;

const COUNTS: [&str; 3] = ["outstanding", "allocations", "failed_allocations"];
const BYTES: [&str; 2] = ["held_bytes", "allocated_bytes"];
/// Kept beside families: what pools hold, and nodes of graphs.
const NO_FAMILIES: [&str; 2] = ["pool", "graph-node"];
/// Of these a call does not say the size.
const UNSIZED: [&str; 2] = ["ipc", "imported"];
const HOST_FAMILIES: [&str; 2] = ["pinned", "registered"];

/// The last report's processes, in order of their numbers and ends.
pub fn processes(trace: &Trace) -> Vec<&Value> {
    let last = trace.records.last();
    let report = last.unwrap_or_else(|| panic!("no report\n{}", trace.stderr));
    let processes = match report["type"].as_str() {
        Some("summary") => &report["memory"],
        _ => {
            assert_eq!(report["final"], true, "{}", trace.stderr);
            &report["processes"]
        }
    };
    processes.as_array().expect("processes").iter().collect()
}

/// The only process of the last report.
pub fn only(trace: &Trace) -> &Value {
    let all = processes(trace);
    assert_eq!(all.len(), 1, "{all:?}");
    all[0]
}

fn items<'a>(of: &'a Value, field: &str) -> &'a Vec<Value> {
    of[field].as_array().unwrap_or_else(|| panic!("no {field} in {of}"))
}

/// Count and bytes of what the program itself gave back.
fn freed(row: &Value) -> (u64, u64) {
    let ways = items(row, "ended_by").iter();
    let freed: Vec<&Value> = ways.filter(|ended| ended["how"] == "freed").collect();
    let sum = |name: &str| freed.iter().map(|ended| number(ended, name)).sum();
    (sum("count"), sum("bytes"))
}

/// Whether no call of a process took memory.
fn never_allocated(book: &Value) -> bool {
    items(book, "families")
        .iter()
        .all(|row| number(row, "allocations") == 0)
}

/// Family and device of a row as gpuscope names them; `None`: it has no such family.
fn place_of_book(row: &Value, contextless: bool) -> Option<(String, String)> {
    let family = text(row, "family");
    let device = match family.as_str() {
        name if NO_FAMILIES.contains(&name) => return None,
        name if HOST_FAMILIES.contains(&name) => "host".to_owned(),
        "physical" if row["device"] == -1 => "host".to_owned(),
        "device" if contextless => "-1".to_owned(),
        _ => row["device"].to_string(),
    };
    Some((family, device))
}

/// The same of all that a device holds.
fn total_place(row: &Value, contextless: bool) -> String {
    match (contextless, row["device"] == -1) {
        (true, _) => "-1".to_owned(),
        (_, true) => "host".to_owned(), // physical memory of the host
        _ => row["device"].to_string(),
    }
}

/// What the simulator says, as a tracer should tell it.
pub fn of_book(book: &Value) -> Figures {
    // a child that may not use CUDA has no context, and with it no device
    let contextless = never_allocated(book);
    let families = items(book, "families").iter();
    let mut rows: Vec<((String, String), &Value)> = families
        .filter_map(|row| Some((place_of_book(row, contextless)?, row)))
        .collect();
    let all = |device: String| ("*".to_owned(), device);
    for row in items(book, "devices") {
        rows.push((all(total_place(row, contextless)), row));
    }
    rows.push((all("host".to_owned()), &book["host"]));
    let mut figures = Figures::new();
    for ((family, device), row) in rows {
        let mut add = |name, value| *figures.entry((family.clone(), device.clone(), name)).or_default() += value;
        COUNTS.into_iter().for_each(|name| add(name, number(row, name)));
        add("frees", freed(row).0);
        if !UNSIZED.contains(&family.as_str()) {
            BYTES.into_iter().for_each(|name| add(name, number(row, name)));
            add("freed_bytes", freed(row).1);
        }
    }
    figures.retain(|_, value| *value > 0);
    figures
}

/// Family and device of each row of gpuscope's.
fn rows_of_report(process: &Value) -> impl Iterator<Item = (String, String, &Value)> {
    let families = items(process, "families").iter();
    let families = families.map(|row| (text(row, "family"), row));
    let devices = items(process, "devices").iter().map(|row| ("*".to_owned(), row));
    let rows = families.chain(devices).map(|(family, row)| match &row["device"] {
        Value::Null => (family, "host".to_owned(), row),
        device => (family, device.to_string(), row),
    });
    rows.chain([("*".to_owned(), "host".to_owned(), &process["host"])])
}

/// What gpuscope says.
pub fn of_report(process: &Value) -> Figures {
    let mut figures = Figures::new();
    for (family, device, row) in rows_of_report(process) {
        // the simulator counts memory of others at an address of ours as mapped
        let family = if family == "view" { "mapped".to_owned() } else { family };
        for name in COUNTS.into_iter().chain(BYTES).chain(["frees", "freed_bytes"]) {
            *figures.entry((family.clone(), device.clone(), name)).or_default() += number(row, name);
        }
    }
    figures.retain(|_, value| *value > 0);
    figures
}

/// The highest that was held; of families whose rows are the same on both sides.
fn peaks_of_book(book: &Value) -> Figures {
    let families = items(book, "families").iter();
    let families = families.filter(|row| {
        let name = text(row, "family");
        [&NO_FAMILIES, &UNSIZED, &HOST_FAMILIES]
            .iter()
            .all(|left_out| !left_out.contains(&name.as_str()))
    });
    let of = |family: String, row: &Value| {
        (
            (family, row["device"].to_string(), "peak_bytes"),
            number(row, "peak_bytes"),
        )
    };
    let mut peaks: Figures = families.map(|row| of(text(row, "family"), row)).collect();
    let devices = items(book, "devices").iter().filter(|row| row["device"] != -1);
    peaks.extend(devices.map(|row| of("*".to_owned(), row)));
    let host = ("*".to_owned(), "host".to_owned(), "peak_bytes");
    peaks.insert(host, number(&book["host"], "peak_bytes"));
    peaks.retain(|_, bytes| *bytes > 0);
    peaks
}

/// Fails unless a process with one thread held at most what its book says.
pub fn assert_peaks(what: &str, book: &Value, process: &Value) {
    let mut expected = peaks_of_book(book);
    let mut told: Figures = rows_of_report(process)
        .map(|(family, device, row)| ((family, device, "peak_bytes"), number(row, "peak_bytes")))
        .collect();
    // two families of ours are one of the simulator's; their peaks were not at the same time
    let viewed: Vec<String> = told
        .keys()
        .filter(|(family, ..)| family == "view")
        .map(|key| key.1.clone())
        .collect();
    let same = |(family, device, _): &(String, String, &str)| family != "mapped" || !viewed.contains(device);
    expected.retain(|key, _| same(key));
    told.retain(|key, bytes| *bytes > 0 && same(key) && key.0 != "view" && !HOST_FAMILIES.contains(&key.0.as_str()));
    assert_same(&format!("{what}: process {}", book["pid"]), &expected, &told);
}

/// Count and bytes of how allocations ended.
type Endings = BTreeMap<String, (u64, u64)>;

fn endings<'a>(rows: impl Iterator<Item = &'a Value>) -> Endings {
    let mut endings = Endings::new();
    for ended in rows {
        let sum = endings.entry(text(ended, "how")).or_default();
        *sum = (sum.0 + number(ended, "count"), sum.1 + number(ended, "bytes"));
    }
    endings
}

/// The simulator's, with what is left at the end of the process.
fn endings_of_book(book: &Value) -> Endings {
    let places: Vec<&Value> = items(book, "devices").iter().chain([&book["host"]]).collect();
    let left = places.iter().filter(|place| number(place, "outstanding") > 0);
    let last: Vec<Value> = left
        .map(|place| json!({"how": "process ended", "count": place["outstanding"], "bytes": place["held_bytes"]}))
        .collect();
    endings(places.iter().flat_map(|place| items(place, "ended_by")).chain(&last))
}

/// How many frees were refused: of freed memory, and otherwise.
pub fn refused_of_book(book: &Value) -> (u64, u64) {
    let double = number(book, "double_frees");
    (double, number(book, "failed_frees") - double)
}

/// The same as gpuscope tells it.
pub fn refused_of_report(process: &Value) -> (u64, u64) {
    let odd = &process["anomalies"];
    (number(odd, "double_frees"), number(odd, "failed_frees"))
}

/// Fails unless the figures of a process that has ended are those of its book, and are said to be exact.
pub fn assert_figures(what: &str, book: &Value, process: &Value) {
    let what = format!("{what}: process {}", book["pid"]);
    assert_same(&what, &of_book(book), &of_report(process));
    let ours = endings(items(process, "ended_by").iter());
    assert_same(&what, &endings_of_book(book), &ours);
    let odd = ["unknown_frees", "reused_pointers", "unreadable", "unsized_arrays"];
    assert_eq!(
        odd.map(|name| number(&process["anomalies"], name)),
        [0; 4],
        "{what}: {odd:?}"
    );
    let known = ["exact", "ended", "late"].map(|name| process[name] == true);
    assert_eq!(known, [true, true, false], "{what}");
}

/// Each image of each process with what gpuscope says of it; fails unless both have the same ones.
pub fn paired<'a>(what: &str, books: &'a [Value], trace: &'a Trace) -> Vec<(&'a Value, &'a Value)> {
    let told = processes(trace);
    let pids = |all: &[&Value]| all.iter().map(|one| number(one, "pid")).collect::<Vec<u64>>();
    let kept: Vec<&Value> = books.iter().collect();
    assert_eq!(pids(&kept), pids(&told), "{what}\n{}", trace.stderr);
    let inside = kept.iter().map(|book| number(book, "inside")).sum::<u64>();
    assert_eq!(inside, 0, "{what}: calls that never returned");
    kept.into_iter().zip(told).collect()
}

/// Fails unless every image of every process is told as its book tells it, and no other is.
pub fn assert_accounts(what: &str, books: &[Value], trace: &Trace) {
    for (book, process) in paired(what, books, trace) {
        assert_figures(what, book, process);
        assert_eq!(
            refused_of_book(book),
            refused_of_report(process),
            "{what}: refused frees"
        );
    }
}
