//! The arguments of a call as a JSON object.
//!
//! Written by hand: this is the hot path of the event plane, several times faster than a generic serializer.

use super::{Asked, Traced};
use crate::decode::Value;
use crate::driver;
use crate::model::activity::{Activity, Waited, What};
use crate::model::range::{Range, Shape};
use crate::text::json::{hex, string};
use serde_json::json;
use std::io::Write;

/// The arguments of a call; of a call of the kernel driver, all that it was asked and has answered.
pub(crate) fn args_of(traced: &Traced<'_>, out: &mut Vec<u8>) {
    match traced.asked {
        Some(asked) => {
            let start = out.len();
            fields_json(asked, out);
            out[start] = b'{';
            out.push(b'}');
        }
        None => Values(itoa::Buffer::new()).object(traced.call.args(), out),
    }
}

/// What is known of an activity beyond its name, its times and its bytes. `call`: thread and time of what has caused it.
pub(crate) fn args_of_activity(activity: &Activity, call: Option<(u32, i64)>, out: &mut Vec<u8>) {
    let kind = match activity.what {
        What::Kernel { .. } => "kernel",
        What::Copy { .. } => "copy",
        What::Memset { .. } => "memset",
        What::Graph => "graph",
    };
    let (device, context) = (activity.device, activity.context);
    let _ = write!(
        out,
        "{{\"activity\":\"{kind}\",\"device\":{device},\"context\":{context}"
    );
    if let What::Kernel {
        grid: [gx, gy, gz],
        block: [bx, by, bz],
        registers,
        shared_bytes,
        ..
    } = activity.what
    {
        let _ = write!(
            out,
            ",\"grid\":[{gx},{gy},{gz}],\"block\":[{bx},{by},{bz}],\"registers\":{registers},\"shared_bytes\":{shared_bytes}"
        );
    }
    if let Some((graph, _)) = activity.graph {
        let _ = write!(out, ",\"graph\":{graph}");
    }
    let _ = match call {
        Some((tid, at)) => write!(out, ",\"call_tid\":{tid},\"call_ts_ns\":{at},\"match\":\"ordered\""),
        None => write!(out, ",\"match\":\"none\""),
    };
    out.push(b'}');
}

/// What is known of a range beyond its name, its times and its nesting.
pub(crate) fn args_of_range(range: &Range, category: Option<&str>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"domain\":");
    string(&range.domain, out);
    if range.category != 0 {
        let _ = write!(out, ",\"nvtx_category\":{}", range.category);
    }
    if let Some(category) = category {
        out.extend_from_slice(b",\"nvtx_category_name\":");
        string(category, out);
    }
    if let Some(color) = range.color {
        let _ = write!(out, ",\"color\":\"#{color:08x}\"");
    }
    if range.shape == Shape::Started {
        out.extend_from_slice(b",\"started\":true");
    }
    if range.end_tid != range.tid {
        let _ = write!(out, ",\"end_tid\":{}", range.end_tid);
    }
    for (flag, is_so) in [("open", range.open), ("name_unread", range.unread)] {
        if is_so {
            let _ = write!(out, ",\"{flag}\":true");
        }
    }
    out.push(b'}');
}

/// Which devices had nothing to do; nothing where it follows from calls.
pub(crate) fn args_of_idle(devices: Waited, out: &mut Vec<u8>) {
    let _ = match devices {
        Waited::Any => Ok(()),
        Waited::Only(device) | Waited::One(device) => write!(out, "{{\"device\":{device}}}"),
        Waited::All(number) => write!(out, "{{\"devices\":{number}}}"),
    };
}

/// How many devices had nothing to do, where they were several: of what [`args_of_idle`] has written.
#[must_use]
pub fn devices_of_idle(args: &str) -> Option<u32> {
    number_in(args, "\"devices\":")
}

/// The domain of a range, of what [`args_of_range`] has written.
#[must_use]
pub fn domain_of_range(args: &str) -> Option<String> {
    let fields: serde_json::Value = serde_json::from_str(args).ok()?;
    Some(fields.get("domain")?.as_str()?.to_owned())
}

/// Whether it says so.
#[must_use]
pub fn is_of_range(args: Option<&str>, flag: &str) -> bool {
    args.is_some_and(|args| args.contains(&format!(",\"{flag}\":true")))
}

/// Thread and time of the call that has caused an activity, of what [`args_of_activity`] has written.
#[must_use]
pub fn call_of_activity(args: &str) -> Option<(u32, i64)> {
    Some((number_in(args, "\"call_tid\":")?, number_in(args, "\"call_ts_ns\":")?))
}

/// What it is: `kernel`, `copy`, `memset` or `graph`.
#[must_use]
pub fn kind_of_activity(args: &str) -> Option<&str> {
    let (_, behind) = args.split_once("\"activity\":\"")?;
    Some(behind.split_once('"')?.0)
}

/// The graph that it is a part of.
#[must_use]
pub fn graph_of_activity(args: &str) -> Option<u64> {
    number_in(args, "\"graph\":")
}

/// Its device, as the process counts them.
#[must_use]
pub fn device_of_activity(args: &str) -> Option<u32> {
    number_in(args, "\"device\":")
}

/// How many blocks a kernel has along each axis.
#[must_use]
pub(crate) fn grid_of_activity(args: &str) -> Option<[u32; 3]> {
    let (_, behind) = args.split_once("\"grid\":[")?;
    let (axes, _) = behind.split_once(']')?;
    let mut axes = axes.split(',').map(|axis| axis.trim().parse().ok());
    Some([axes.next()??, axes.next()??, axes.next()??])
}

/// The name of the measure that says how many multiprocessors a device has.
#[must_use]
pub fn multiprocessors_name(device: u32) -> String {
    format!("cupti.{device}.multiprocessors")
}

/// The device of such a name.
#[must_use]
pub(crate) fn multiprocessors_of(name: &str) -> Option<u32> {
    name.strip_prefix("cupti.")?
        .strip_suffix(".multiprocessors")?
        .parse()
        .ok()
}

fn number_in<T: std::str::FromStr>(args: &str, key: &str) -> Option<T> {
    let (_, behind) = args.split_once(key)?;
    let length = behind.find([',', '}', ' ']).unwrap_or(behind.len());
    behind[..length].parse().ok()
}

/// What is known of a call beyond what all calls have, each field after a comma. Of arguments, sizes and numbers are
/// numbers, all else is text.
fn fields_json(asked: &Asked, out: &mut Vec<u8>) {
    let ioctl = &asked.ioctl;
    let args = ioctl.args.iter();
    let args = args.map(|(name, value)| ((*name).to_owned(), json_of(value)));
    let fields = [
        ("device", asked.device.map(|device| json!(device.to_string()))),
        ("args", Some(serde_json::Value::Object(args.collect()))),
        ("size", ioctl.size.map(|size| json!(size))),
        ("ret", Some(json!(ioctl.result))),
        ("error", asked.error.as_deref().map(|name| json!(name))),
        ("notes", (!ioctl.notes.is_empty()).then(|| json!(ioctl.notes))),
    ];
    for (name, value) in fields {
        if let Some(value) = value {
            let _ = write!(
                out,
                ",\"{name}\":{}",
                crate::text::quantity::harmless(&value.to_string())
            );
        }
    }
}

fn json_of(value: &driver::Value) -> serde_json::Value {
    match value {
        driver::Value::Bytes(number) | driver::Value::Number(number) => json!(number),
        driver::Value::Descriptor(number) => json!(number),
        driver::Value::Text(text) => json!(text),
        _ => json!(value.to_string()),
    }
}

/// Writes numbers and arguments.
struct Values(itoa::Buffer);

impl Values {
    fn number(&mut self, number: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(self.0.format(number).as_bytes());
    }

    fn signed(&mut self, number: i64, out: &mut Vec<u8>) {
        out.extend_from_slice(self.0.format(number).as_bytes());
    }

    fn object<'a>(&mut self, fields: impl Iterator<Item = (&'a str, Value<'a>)>, out: &mut Vec<u8>) {
        out.push(b'{');
        for (index, (name, value)) in fields.enumerate() {
            if index > 0 {
                out.push(b',');
            }
            string(name, out);
            out.push(b':');
            self.value(&value, out);
        }
        out.push(b'}');
    }

    fn value(&mut self, value: &Value<'_>, out: &mut Vec<u8>) {
        match value {
            Value::Unsigned(number) | Value::Size(number) => self.number(*number, out),
            Value::Signed(number) => self.signed(*number, out),
            Value::Bool(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
            Value::Address(address) => hex(*address, out),
            Value::Name(name) => string(name, out),
            Value::Text { text, .. } => string(text, out),
            Value::Dim3(axes) => self.axes(axes, out),
            Value::Opaque | Value::Unreadable | Value::Unset => out.extend_from_slice(b"null"),
            Value::Struct(structure) => self.object(structure.fields(), out),
        }
    }

    fn axes(&mut self, axes: &[u32; 3], out: &mut Vec<u8>) {
        for (index, axis) in axes.iter().enumerate() {
            out.push(if index == 0 { b'[' } else { b',' });
            self.number(u64::from(*axis), out);
        }
        out.push(b']');
    }
}
