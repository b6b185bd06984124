//! A fault in words: of a line, of the summary, of `doctor`.

use super::{Reporter, Xid};
use crate::text::quantity::escaped;

/// `Xid 31` or `SXid 12028`.
#[must_use]
pub fn title(xid: &Xid) -> String {
    match xid.reporter {
        Reporter::Gpu => format!("Xid {}", xid.code),
        Reporter::Switch => format!("SXid {}", xid.code),
    }
}

/// `GPU 0000:17:00`, `GPU 0000:01:00 instance 5/0`, `NVSwitch 0000:c1:00`.
pub fn place(xid: &Xid) -> String {
    let device = match xid.reporter {
        Reporter::Gpu => "GPU",
        Reporter::Switch => "NVSwitch",
    };
    let pci = if xid.pci.is_empty() { "?" } else { &xid.pci };
    let part = xid.instance.map(|part| match part.compute {
        Some(compute) => format!(" instance {}/{compute}", part.gpu),
        None => format!(" instance {}", part.gpu),
    });
    format!("{device} {}{}", escaped(pci), part.unwrap_or_default())
}

/// `python 1234`, `process 1234`; `None`: it names none.
pub fn process(xid: &Xid) -> Option<String> {
    let pid = xid.pid?;
    Some(match &xid.name {
        Some(name) => format!("{} {pid}", escaped(name)),
        None => format!("process {pid}"),
    })
}

/// What the code means, who is mostly at fault, and what to do.
pub fn meaning(xid: &Xid) -> String {
    let Some(known) = xid.meaning() else {
        return match xid.reporter {
            Reporter::Gpu => "a code that this version does not know".to_owned(),
            Reporter::Switch => "codes of NVSwitches are in NVIDIA's fabric manager guide".to_owned(),
        };
    };
    let origin = match known.origin {
        "" => String::new(),
        origin => format!("origin: {origin}"),
    };
    let action = match known.action_words() {
        "" => String::new(),
        words => format!("action: {words}"),
    };
    let parts = [known.meaning, &origin, &action];
    let told: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    told.join("; ")
}
