//! Totals, as tables.

use super::super::waits::elsewhere;
use super::super::{Kernel, Layer, Report, Slow, site, sum, words};
use super::table::{self, Cell, bar, code, markup, number, optional, text};
use super::written::Text;
use crate::sink::outside;
use crate::text::quantity::{bytes, count, duration, plural};
use std::fmt::Write;

/// Characters of arguments shown.
const ARGS: usize = 240;

pub(super) fn write(report: &Report, page: &mut String) {
    functions(report, page);
    slowest(report, page);
    kernels(report, page);
    copies(report, page);
    waits(report, page);
    idle(report, page);
    outside(report, page);
    memory(report, page);
    failures(report, page);
    processes(report, page);
    xids(report, page);
}

fn section(id: &str, title: &str, page: &mut String, body: impl FnOnce(&mut String)) {
    let _ = writeln!(page, "<section id=\"{id}\">\n<h2>{}</h2>", Text(title));
    body(page);
    page.push_str("</section>\n");
}

fn functions(report: &Report, page: &mut String) {
    if report.layers.is_empty() {
        return;
    }
    section("functions", "Functions", page, |page| {
        if let Some(driver) = &report.driver {
            let share = driver.in_calls_ns as f64 / driver.cuda_ns.max(1) as f64;
            let _ = writeln!(
                page,
                "<p>The kernel driver took {} of the time in CUDA calls, in {}.</p>",
                words::percent(share.min(1.0)),
                plural(driver.calls, "call")
            );
        }
        report.layers.iter().for_each(|layer| layer_table(layer, page));
    });
}

fn layer_table(layer: &Layer, page: &mut String) {
    let _ = writeln!(
        page,
        "<h3>{} layer <small>{}, {} failed, {}</small></h3>",
        Text(&layer.layer),
        plural(layer.calls, "call"),
        count(layer.errors),
        duration(layer.total_ns)
    );
    let most = layer
        .functions
        .first()
        .and_then(|function| function.total_ns)
        .unwrap_or(0) as f64;
    let rows: Vec<Vec<Cell>> = layer
        .functions
        .iter()
        .map(|function| {
            let total = function.total_ns.map_or_else(|| "–".to_owned(), duration);
            vec![
                code(&function.name),
                text(function.category),
                number(function.calls as f64, &count(function.calls)),
                optional(function.errors, count),
                bar(function.total_ns.unwrap_or(0) as f64, most, &total),
                optional(function.mean_ns(), duration),
                optional(function.p50_ns, duration),
                optional(function.p99_ns, duration),
                optional(function.max_ns, duration),
                optional(Some(function.bytes).filter(|bytes| *bytes > 0), bytes),
            ]
        })
        .collect();
    let heads = [
        "function", "class", "calls", "errors", "total", "mean", "~p50", "~p99", "max", "bytes",
    ];
    table::write(&heads, &rows, page);
}

fn slowest(report: &Report, page: &mut String) {
    if report.slowest.is_empty() {
        return;
    }
    section("slowest", "Slowest calls", page, |page| {
        let rows: Vec<Vec<Cell>> = report.slowest.iter().map(slow).collect();
        table::write(&["took", "at", "call", "result", "thread", "from"], &rows, page);
    });
}

fn slow(slow: &Slow) -> Vec<Cell> {
    let args = slow.args.as_deref().unwrap_or_default();
    let short: String = args.chars().take(ARGS).collect();
    let cut = if short.len() < args.len() { "…" } else { "" };
    let call = format!(
        "<code>{}</code><small class=\"args\">{}{cut}</small>",
        Text(&slow.name),
        Text(&short)
    );
    let class = if slow.failed { " class=\"bad\"" } else { "" };
    let result = format!("<span{class}>{}</span>", Text(slow.result.as_deref().unwrap_or("–")));
    vec![
        number(slow.ns as f64, &duration(slow.ns)),
        markup(format!(
            "<button type=\"button\" data-at=\"{}\">{}</button>",
            slow.at_ns,
            words::at(slow.at_ns)
        )),
        markup(call),
        markup(result),
        text(&format!("{} {}/{}", slow.comm, slow.pid, slow.tid)),
        markup(from(slow.site.as_deref(), slow.stack.as_deref())),
    ]
}

/// The line of the program, with the whole stack behind it.
fn from(place: Option<&str>, stack: Option<&str>) -> String {
    let Some(place) = place else { return "–".to_owned() };
    let mut html = format!(
        "<details class=\"site\"><summary><code>{}</code></summary><ol>",
        Text(place)
    );
    for line in stack.map(site::lines).unwrap_or_default() {
        let _ = write!(html, "<li><code>{}</code></li>", Text(&line));
    }
    html + "</ol></details>"
}

fn kernels(report: &Report, page: &mut String) {
    if report.kernels.is_empty() {
        return;
    }
    section("kernels", "Kernels", page, |page| {
        page.push_str("<p>Times are those of the launching call: the CPU's, not the GPU's.</p>\n");
        for line in words::graphs(report) {
            let _ = writeln!(page, "<p>{}.</p>", Text(&line));
        }
        let all = sum(report.kernels.iter().map(Kernel::runs));
        let most = report.kernels.iter().map(|kernel| kernel.launches).max().unwrap_or(0) as f64;
        let rows: Vec<Vec<Cell>> = report
            .kernels
            .iter()
            .map(|kernel| {
                vec![
                    code(&kernel.name),
                    bar(kernel.launches as f64, most, &count(kernel.launches)),
                    optional(kernel.in_graphs, count),
                    optional(kernel.captured, count),
                    number(
                        kernel.runs() as f64,
                        &words::percent(kernel.runs() as f64 / all.max(1) as f64),
                    ),
                    number(kernel.failed as f64, &count(kernel.failed)),
                    text(kernel.shape.as_deref().unwrap_or("–")),
                    optional(kernel.p50_ns, duration),
                    optional(kernel.p99_ns, duration),
                    optional(kernel.max_ns, duration),
                ]
            })
            .collect();
        table::write(
            &[
                "kernel",
                "launches",
                "in graphs",
                "captured",
                "share",
                "failed",
                "mostly as",
                "~p50",
                "~p99",
                "max",
            ],
            &rows,
            page,
        );
    });
}

fn copies(report: &Report, page: &mut String) {
    if report.copies.is_empty() {
        return;
    }
    section("copies", "Copies", page, |page| {
        let most = report.copies.first().map_or(0, |copies| copies.bytes) as f64;
        let rows: Vec<Vec<Cell>> = report
            .copies
            .iter()
            .map(|copies| {
                vec![
                    text(&words::copies(copies)),
                    number(copies.count as f64, &count(copies.count)),
                    bar(copies.bytes as f64, most, &bytes(copies.bytes)),
                    number(copies.bytes_per_second.unwrap_or(-1.0), &words::speed(copies)),
                    number(copies.call_ns as f64, &duration(copies.call_ns)),
                ]
            })
            .collect();
        table::write(&["copies", "count", "bytes", "bandwidth", "in calls"], &rows, page);
    });
}

fn waits(report: &Report, page: &mut String) {
    if report.waits.is_empty() && report.hidden.is_empty() {
        return;
    }
    section("waits", "Waiting for the GPU", page, |page| {
        let _ = writeln!(page, "<p>{}.</p>", Text(&words::waiting(report)));
        let most = report.waits.first().map_or(0, |wait| wait.total_ns) as f64;
        let mut rows = Vec::new();
        for wait in &report.waits {
            for site in &wait.sites {
                rows.push(wait_row(&wait.name, &site.site, site.calls, site.total_ns, most));
            }
            if let Some((calls, ns)) = elsewhere(wait.calls, wait.total_ns, &wait.sites) {
                rows.push(wait_row(&wait.name, "–", calls, ns, most));
            }
        }
        table::write(&["call", "from", "calls", "total", "mean"], &rows, page);
        unasked(report, page);
    });
}

fn unasked(report: &Report, page: &mut String) {
    if report.hidden.is_empty() {
        return;
    }
    let _ = writeln!(
        page,
        "<h3>Waits that nobody asked for <small>some may be among those above; ≤: inferred, not all of that time \
         need be waiting</small></h3>"
    );
    let mut rows = Vec::new();
    let most = report.hidden.first().map_or(0, |wait| wait.total_ns) as f64;
    for wait in &report.hidden {
        let row = |place: &str, calls: u64, ns: u64| {
            let sign = if wait.at_most { "≤ " } else { "" };
            let total = format!("{sign}{}", duration(ns));
            vec![
                text(&words::hidden(wait)),
                code(place),
                number(calls as f64, &count(calls)),
                bar(ns as f64, most, &total),
            ]
        };
        let sites = wait.sites.iter();
        rows.extend(sites.map(|site| row(&site.site, site.calls, site.total_ns)));
        if let Some((calls, ns)) = elsewhere(wait.calls, wait.total_ns, &wait.sites) {
            rows.push(row("–", calls, ns));
        }
    }
    table::write(&["why it waits", "from", "calls", "total"], &rows, page);
}

fn wait_row(name: &str, place: &str, calls: u64, ns: u64, most: f64) -> Vec<Cell> {
    vec![
        code(name),
        code(place),
        number(calls as f64, &count(calls)),
        bar(ns as f64, most, &duration(ns)),
        optional(ns.checked_div(calls), duration),
    ]
}

fn idle(report: &Report, page: &mut String) {
    if report.idle.is_empty() {
        return;
    }
    section("idle", "GPU idle, and what the host did meanwhile", page, |page| {
        for idle in &report.idle {
            let word = if idle.inferred { "inferred:" } else { "at least" };
            let _ = writeln!(
                page,
                "<h3>process {} <small>{word} {} in {}, the longest {}</small></h3>",
                idle.pid,
                idle.words(),
                plural(idle.gaps, "gap"),
                duration(idle.longest_ns)
            );
            let most = idle.meanwhile.first().map_or(0, |one| one.ns) as f64;
            let row = |one: &super::super::Meanwhile| {
                let name = if one.name.is_empty() {
                    text("in no CUDA call")
                } else {
                    code(&one.name)
                };
                vec![name, bar(one.ns as f64, most, &duration(one.ns))]
            };
            let rows: Vec<Vec<Cell>> = idle.meanwhile.iter().filter(|one| one.ns > 0).map(row).collect();
            table::write(&["meanwhile", "time, all threads together"], &rows, page);
        }
    });
}

fn outside(report: &Report, page: &mut String) {
    let lines = outside::lines(&report.outside);
    if lines.is_empty() {
        return;
    }
    section("outside", "Where the host was outside CUDA (sampled)", page, |page| {
        for line in &lines {
            let _ = writeln!(page, "<p>{}</p>", Text(line));
        }
    });
}

fn memory(report: &Report, page: &mut String) {
    let memory = &report.memory;
    if memory.processes.is_empty() && memory.allocations == 0 {
        return;
    }
    section("memory", "Memory", page, |page| {
        let _ = writeln!(
            page,
            "<p>{} of {} in {}; {} in {}.</p>",
            plural(memory.allocations, "allocation"),
            bytes(memory.allocated_bytes),
            duration(memory.allocation_ns),
            plural(memory.frees, "free"),
            duration(memory.free_ns)
        );
        let row = |held: &super::super::Held| {
            vec![
                text(&held.pid.to_string()),
                number(held.peak_bytes as f64, &bytes(held.peak_bytes)),
                markup(format!(
                    "<button type=\"button\" data-at=\"{}\">{}</button>",
                    held.peak_at_ns,
                    words::at(held.peak_at_ns)
                )),
                number(held.last_bytes as f64, &bytes(held.last_bytes)),
            ]
        };
        let rows: Vec<Vec<Cell>> = memory.processes.iter().map(row).collect();
        table::write(&["process", "peak", "at", "held last"], &rows, page);
        if !memory.sites.is_empty() {
            let most = memory.sites.first().map_or(0, |site| site.bytes) as f64;
            let row = |site: &super::super::MemorySite| {
                vec![
                    code(&site.site),
                    number(site.allocations as f64, &count(site.allocations)),
                    bar(site.bytes as f64, most, &bytes(site.bytes)),
                ]
            };
            let rows: Vec<Vec<Cell>> = memory.sites.iter().map(row).collect();
            table::write(&["asked for at", "allocations", "bytes in all"], &rows, page);
        }
    });
}

fn failures(report: &Report, page: &mut String) {
    if report.failures.is_empty() {
        return;
    }
    section("failures", "Failed calls", page, |page| {
        let row = |failure: &super::super::Failure| {
            let first = failure.first_ns.map_or_else(
                || "–".to_owned(),
                |at| format!("<button type=\"button\" data-at=\"{at}\">{}</button>", words::at(at)),
            );
            vec![
                code(&failure.error),
                code(&failure.name),
                number(failure.count as f64, &count(failure.count)),
                markup(first),
                code(failure.site.as_deref().unwrap_or("–")),
            ]
        };
        let rows: Vec<Vec<Cell>> = report.failures.iter().map(row).collect();
        table::write(&["error", "call", "count", "first", "from"], &rows, page);
    });
}

fn processes(report: &Report, page: &mut String) {
    if report.processes.is_empty() {
        return;
    }
    section("processes", "Processes and threads", page, |page| {
        let mut rows = Vec::new();
        for process in &report.processes {
            for thread in &process.threads {
                rows.push(vec![
                    text(&format!("{} {}", process.comm, process.pid)),
                    text(&format!("{} {}", thread.comm, thread.tid)),
                    number(thread.calls as f64, &count(thread.calls)),
                    number(thread.in_calls_ns as f64, &duration(thread.in_calls_ns)),
                    optional(thread.cpu_ns, duration),
                    optional(thread.runnable_ns, duration),
                ]);
            }
        }
        table::write(
            &[
                "process",
                "thread",
                "calls",
                "in calls",
                "on a CPU",
                "waiting for a CPU",
            ],
            &rows,
            page,
        );
    });
}

fn xids(report: &Report, page: &mut String) {
    if report.xids.is_empty() {
        return;
    }
    section("xids", "Faults that the driver reported", page, |page| {
        let row = |xid: &super::super::Xid| {
            let word = |key: &str| xid.fields.get(key).and_then(|value| value.as_str()).unwrap_or("–");
            let at = format!(
                "<button type=\"button\" data-at=\"{0}\">{1}</button>",
                xid.at_ns,
                words::at(xid.at_ns)
            );
            vec![
                markup(at),
                text(word("name")),
                text(word("pci")),
                text(word("comm")),
                text(word("meaning")),
                text(word("action_words")),
            ]
        };
        let rows: Vec<Vec<Cell>> = report.xids.iter().map(row).collect();
        table::write(&["at", "fault", "device", "process", "meaning", "do"], &rows, page);
    });
}
