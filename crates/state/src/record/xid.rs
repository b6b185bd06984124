//! A fault that the driver reported, as the JSON that its line and the summary share.

use crate::driver::xid::Reporter;
use crate::driver::xid::words::title;
use crate::model::xid::Report;
use serde_json::{Map, Value, json};

/// The fields that a record and the summary share.
pub fn fields(report: &Report) -> Map<String, Value> {
    let xid = &report.xid;
    let known = xid.meaning();
    let word = |of: fn(&'static crate::driver::tables::XidMeaning) -> &'static str| known.map(of);
    let fields = json!({
        "name": title(xid),
        "code": xid.code,
        "reporter": match xid.reporter { Reporter::Gpu => "gpu", Reporter::Switch => "nvswitch" },
        "pci": xid.pci,
        "gpu_instance": xid.instance.map(|part| part.gpu),
        "compute_instance": xid.instance.and_then(|part| part.compute),
        "pid": xid.pid,
        "comm": xid.name,
        "traced": report.traced,
        "message": xid.message,
        "caused_by": xid.caused_by,
        "code_name": word(|known| known.name),
        "meaning": word(|known| known.meaning),
        "origin": word(|known| known.origin),
        "action": word(|known| known.action),
        "action_words": known.map(|known| known.action_words()),
        "then": word(|known| known.then),
        "source": report.source.name(),
    });
    let Value::Object(mut fields) = fields else {
        return Map::new();
    };
    fields.retain(|_, value| !value.is_null() && value.as_str() != Some(""));
    fields
}
