//! Xids in words: of a line, of the summary, of `doctor`.

use crate::driver::xid::words::{meaning, place, process, title};
use crate::model::xid::{Faults, Report};
use crate::record::xid::fields;
use crate::text::quantity::{count, escaped};
use serde_json::{Value, json};
use std::fmt::Write;

/// Kinds that the summary shows; JSON has all.
const SHOWN: usize = 25;

/// `Xid 31 of GPU 0000:17:00: MESSAGE (MEANING)`.
pub(crate) fn line(report: &Report) -> String {
    let xid = &report.xid;
    let mut line = format!("{} of {}", title(xid), place(xid));
    if !xid.message.is_empty() {
        let _ = write!(line, ": {}", escaped(&xid.message));
    }
    let _ = write!(line, " ({})", meaning(xid));
    line
}

/// The summary's list.
pub(crate) fn to_json(faults: &[Faults]) -> Vec<Value> {
    let one = |faults: &Faults| {
        let mut fields = fields(&faults.last);
        fields.insert("count".to_owned(), json!(faults.count));
        Value::Object(fields)
    };
    faults.iter().map(one).collect()
}

/// The summary's section; empty: there were none.
pub(crate) fn to_text(faults: &[Faults], more: u64) -> String {
    let mut out = String::new();
    if faults.is_empty() {
        return out;
    }
    out.push_str("\nfaults that the driver reported (Xid)\n");
    for faults in faults.iter().take(SHOWN) {
        fault_text(faults, &mut out);
    }
    let unshown = faults.iter().skip(SHOWN).map(|faults| faults.count).sum::<u64>() + more;
    if unshown > 0 {
        let _ = writeln!(out, "{:>12} of other kinds (--summary json has more)", count(unshown));
    }
    out
}

fn fault_text(faults: &Faults, out: &mut String) {
    let xid = &faults.last.xid;
    let who = match (process(xid), faults.last.traced) {
        (Some(process), true) => format!(", {process}"),
        (Some(process), false) => format!(", {process} (not traced)"),
        (None, _) => String::new(),
    };
    let _ = writeln!(
        out,
        "{:>12}  {} of {}{who}: {}",
        count(faults.count),
        title(xid),
        place(xid),
        meaning(xid)
    );
    if !xid.message.is_empty() {
        let last = if faults.count > 1 { "last: " } else { "" };
        let _ = writeln!(out, "{:>12}  {last}{}", "", escaped(&xid.message));
    }
}
