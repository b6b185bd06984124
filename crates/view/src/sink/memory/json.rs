//! The report as one JSON object, by the contract in docs/output.md.

use super::Rates;
use crate::frame::json::frame_json;
use crate::model::memory::{
    Account, DeviceReport, HOST, Origin, PeakReport, PoolReport, ProcessReport, Report, SiteReport, TensorReport,
};
use crate::text::quantity::harmless;
use serde_json::{Map, Value, json};

/// One object of type `memory`, as a line.
pub fn line(report: &Report, rates: &Rates) -> String {
    written(&object(report, rates))
}

/// The same of the last report, with what watching has cost.
pub fn last_line(report: &Report, rates: &Rates, cost: Value) -> String {
    let mut object = object(report, rates);
    object["cost"] = cost;
    written(&object)
}

fn written(object: &Value) -> String {
    harmless(&object.to_string()) + "\n"
}

fn object(report: &Report, rates: &Rates) -> Value {
    json!({
        "type": "memory",
        "final": report.last,
        "ts": seconds(report, report.at),
        "seconds": report.seconds(),
        "over_seconds": rates.over_seconds,
        "processes": processes(report, rates),
        "forgotten_processes": report.forgotten,
        "notes": report.notes,
    })
}

/// What each process holds, as objects.
pub(crate) fn processes(report: &Report, rates: &Rates) -> Vec<Value> {
    let all = report.processes.iter();
    all.map(|process| of_process(report, process, rates)).collect()
}

fn seconds(report: &Report, at: u64) -> f64 {
    (i128::from(at) - i128::from(report.started_at)) as f64 / 1e9
}

fn of_process(report: &Report, process: &ProcessReport, rates: &Rates) -> Value {
    let devices = process.devices.iter();
    let devices: Vec<Value> = devices
        .map(|device| of_device(report, process, device, rates))
        .collect();
    let sites = process.sites.iter().map(|site| of_site(report, site));
    let families = process.families.iter().map(|family| {
        let mut object = counters(report, &family.account);
        object.insert("family".to_owned(), json!(family.family.name()));
        object.insert("device".to_owned(), device(family.device));
        Value::Object(object)
    });
    let mut object = json!({
        "pid": process.pid,
        "comm": process.comm,
        "ended": process.ended_at.is_some(),
        "ended_ts": process.ended_at.map(|at| seconds(report, at)),
        "late": process.origin == Origin::Late,
        "exact": process.is_exact(),
        "held_bytes": process.held_bytes(),
        "devices": devices,
        "host": with_rates(report, process, HOST, &process.host, rates),
        "families": families.collect::<Vec<_>>(),
        "sites": sites.collect::<Vec<_>>(),
        "peaks": process.peaks.iter().map(|peak| of_peak(report, peak)).collect::<Vec<_>>(),
        "pools": process.pools.iter().map(|pool| of_pool(report, pool)).collect::<Vec<_>>(),
        "tensors": process.tensors.as_ref().map(of_tensors),
        "ended_by": process.endings.iter().map(|(how, ended)| {
            json!({"how": how.name(), "count": ended.count, "bytes": ended.bytes})
        }).collect::<Vec<_>>(),
        "freed_by": process.freed_by.iter().map(|by| {
            json!({"function": by.function, "count": by.ended.count, "bytes": by.ended.bytes})
        }).collect::<Vec<_>>(),
        "anomalies": {
            "double_frees": process.anomalies.double_frees,
            "unknown_frees": process.anomalies.unknown_frees,
            "failed_frees": process.anomalies.failed_frees,
            "reused_pointers": process.anomalies.reused_pointers,
            "unreadable": process.anomalies.unreadable,
            "unfollowed": process.anomalies.unfollowed,
            "unsized_arrays": process.anomalies.unsized_arrays,
        },
        "lost": {
            "allocations": process.lost.allocations,
            "allocation_bytes": process.lost.bytes,
            "others": process.lost.others,
        },
    });
    if let Some(map) = &process.map {
        object["allocations"] = super::map::to_json(report, map);
        object["allocations_left_out"] = json!(map.left_out);
    }
    object
}

/// The host has none, and -1 is one that is not known.
fn device(device: i16) -> Value {
    match device {
        HOST => Value::Null,
        number => json!(number),
    }
}

fn of_device(report: &Report, process: &ProcessReport, of: &DeviceReport, rates: &Rates) -> Value {
    let mut object = with_rates(report, process, of.device, &of.account, rates);
    object.insert("device".to_owned(), device(of.device));
    object.insert("uuid".to_owned(), json!(of.uuid));
    object.insert("name".to_owned(), json!(of.name));
    object.insert("inferred".to_owned(), json!(of.inferred));
    object.insert("driver_bytes".to_owned(), json!(of.driver_bytes));
    object.insert("unattributed_bytes".to_owned(), json!(of.unattributed_bytes));
    let driver_ts = of.driver_at.map(|at| seconds(report, at));
    object.insert("driver_ts".to_owned(), json!(driver_ts));
    object.insert("notes".to_owned(), json!(of.notes));
    Value::Object(object)
}

fn with_rates(
    report: &Report,
    process: &ProcessReport,
    device: i16,
    account: &Account,
    rates: &Rates,
) -> Map<String, Value> {
    let rate = rates.of(process, device);
    let mut object = counters(report, account);
    object.insert("allocations_per_second".to_owned(), json!(rounded(rate.allocations)));
    object.insert("frees_per_second".to_owned(), json!(rounded(rate.frees)));
    object
}

/// To three decimals: no rate is known better.
fn rounded(rate: f64) -> f64 {
    (rate * 1e3).round() / 1e3
}

fn counters(report: &Report, account: &Account) -> Map<String, Value> {
    let peak_ts = (account.peak_bytes > 0).then(|| seconds(report, account.peak_at));
    let pairs = [
        ("held_bytes", json!(account.held_bytes)),
        ("outstanding", json!(account.outstanding)),
        ("peak_bytes", json!(account.peak_bytes)),
        ("peak_ts", json!(peak_ts)),
        ("allocations", json!(account.allocations)),
        ("allocated_bytes", json!(account.allocated_bytes)),
        ("frees", json!(account.frees)),
        ("freed_bytes", json!(account.freed_bytes)),
        ("failed_allocations", json!(account.failed_allocations)),
    ];
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn of_site(report: &Report, site: &SiteReport) -> Value {
    let stack = report.stacks.get(&site.site);
    let outstanding = site.account.outstanding > 0;
    let age = |ns: u64| outstanding.then_some(ns as f64 / 1e9);
    json!({
        "family": site.family.name(),
        "device": device(site.device),
        "function": site.function,
        "outstanding": site.account.outstanding,
        "held_bytes": site.account.held_bytes,
        "oldest_seconds": age(site.oldest_ns),
        "newest_seconds": age(site.newest_ns),
        "allocations": site.account.allocations,
        "allocated_bytes": site.account.allocated_bytes,
        "bytes_at_peak": site.peak_bytes,
        "outstanding_at_peak": site.peak_count,
        "truncated": report.truncated.contains(&site.site),
        "stack": stack.map(|frames| frames.iter().map(frame_json).collect::<Vec<_>>()),
    })
}

fn of_peak(report: &Report, peak: &PeakReport) -> Value {
    json!({
        "of": peak.sum.name(),
        "bytes": peak.bytes,
        "ts": seconds(report, peak.at),
        "highest_bytes": peak.highest_bytes,
    })
}

fn of_tensors(tensors: &TensorReport) -> Value {
    json!({
        "segments": tensors.segments,
        "segment_bytes": tensors.segment_bytes,
        "peak_segment_bytes": tensors.peak_segment_bytes,
        "tensors": tensors.tensors,
        "tensor_bytes": tensors.tensor_bytes,
        "unused_bytes": tensors.unused_bytes(),
        "stray_bytes": tensors.stray_bytes,
    })
}

fn of_pool(report: &Report, pool: &PoolReport) -> Value {
    json!({
        "pool": format!("{:#x}", pool.handle),
        "device": device(pool.device),
        "made": pool.made,
        "used_bytes": pool.used_bytes,
        "peak_used_bytes": pool.peak_used_bytes,
        "reserved_bytes": pool.reserved.map(|(bytes, _)| bytes),
        "reserved_ts": pool.reserved.map(|(_, at)| seconds(report, at)),
    })
}
