//! Single totals of a run, as text and as JSON.

use crate::model::totals::{Spent, Switches, Taken, Totals};
use crate::text::quantity::{bytes, count, duration, plural};
use serde_json::{Value, json};

/// The object `totals` of a summary.
#[must_use]
pub(crate) fn to_json(totals: &Totals) -> Value {
    json!({
        "ioctls": totals.ioctls.map(|spent| json!({"calls": spent.calls, "total_us": spent.ns as f64 / 1e3})),
        "device_memory": totals.device_memory.map(|taken| json!({
            "allocations": taken.allocations, "allocated_bytes": taken.allocated_bytes,
            "frees": taken.frees, "freed_bytes": taken.freed_bytes,
        })),
        "context_switches": totals.switches.map(|switches| json!({
            "threads": switches.threads, "voluntary": switches.voluntary, "involuntary": switches.involuntary,
            "unknown_threads": switches.unknown_threads,
        })),
    })
}

/// The lines of a summary; empty where nothing was followed.
#[must_use]
pub(crate) fn to_text(totals: &Totals) -> String {
    let parts = [
        totals.ioctls.map(|spent| ioctls(&spent)),
        totals
            .device_memory
            .filter(|taken| *taken != Taken::default())
            .map(|taken| memory(&taken)),
        totals.switches.map(|switches| self::switches(&switches)),
    ];
    let lines: Vec<String> = parts.into_iter().flatten().map(|part| format!("  {part}\n")).collect();
    match lines.is_empty() {
        true => String::new(),
        false => format!("\nin all\n{}", lines.concat()),
    }
}

fn ioctls(spent: &Spent) -> String {
    let calls = plural(spent.calls, "ioctl");
    format!("{} in {calls} of the kernel driver", duration(spent.ns))
}

fn memory(taken: &Taken) -> String {
    format!(
        "{} on devices, {}; {} given back, {}",
        plural(taken.allocations, "allocation"),
        bytes(taken.allocated_bytes),
        count(taken.frees),
        bytes(taken.freed_bytes)
    )
}

fn switches(switches: &Switches) -> String {
    let unknown = match switches.unknown_threads {
        0 => String::new(),
        threads => format!("; not known, or not all, of {}", plural(threads, "thread")),
    };
    format!(
        "{} of {} that called: {} to wait, {} because others had their turn{unknown}",
        plural(switches.voluntary + switches.involuntary, "context switch"),
        plural(switches.threads, "thread"),
        count(switches.voluntary),
        count(switches.involuntary)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_total_is_a_line() {
        let totals = Totals {
            ioctls: Some(Spent {
                calls: 1_204,
                ns: 12_300_000,
            }),
            device_memory: Some(Taken {
                allocations: 45,
                allocated_bytes: 3 << 30,
                frees: 40,
                freed_bytes: 1 << 30,
            }),
            switches: Some(Switches {
                threads: 3,
                voluntary: 990,
                involuntary: 10,
                unknown_threads: 0,
            }),
        };
        let text = to_text(&totals);
        assert_eq!(
            text,
            "\nin all\n  12.3 ms in 1,204 ioctls of the kernel driver\n  45 allocations on devices, 3.0 GiB; 40 given \
             back, 1.0 GiB\n  1,000 context switches of 3 threads that called: 990 to wait, 10 because others had their \
             turn\n"
        );
        assert_eq!(to_text(&Totals::default()), "");
        assert_eq!(to_json(&totals)["ioctls"]["total_us"], 12_300.0);
    }
}
