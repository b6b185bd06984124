//! Xids, the faults that the driver reports of a GPU, and SXids, those of an NVSwitch: from the kernel log or the
//! tracepoint `nvidia:nvidia_dev_xid`.
//!
//! Forms that drivers print, oldest first; a prefix of the log (priority, time, `kernel:`) may stand before each:
//!
//! ```text
//! NVRM: Xid (0000:02:00): 13, 0003 00000000 …
//! NVRM: Xid (PCI:0000:02:00): 31, Ch 00000008, …
//! NVRM: Xid (PCI:0000:17:00): 79, pid=1234, name=python, GPU has fallen off the bus.
//! NVRM: Xid (PCI:0000:17:00): 62, pid='<unknown>', name=<unknown>, …
//! NVRM: Xid (PCI:0000:01:00 GPU-I:05 GPU-CI:00): 31, pid=…
//! NVRM: Xid (PCI:0000:17:00): 45, pid=…, name=…, Ch 00000010 caused by previous Xid 31
//! nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32 egress …
//! ```

pub mod words;

use super::tables::{self, XidMeaning};

/// What reported the fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reporter {
    Gpu,
    /// SXids have numbers of their own.
    Switch,
}

/// A part of a GPU that MIG divides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Instance {
    pub gpu: u32,
    pub compute: Option<u32>,
}

/// One reported fault. Text in it comes from the log and may hold what a program chose: its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Xid {
    pub reporter: Reporter,
    /// Domain, bus and device, as `0000:17:00`; without the function.
    pub pci: String,
    pub instance: Option<Instance>,
    pub code: u32,
    /// The process that the driver names; not the one that ran when it was reported.
    pub pid: Option<u32>,
    pub name: Option<String>,
    /// What the driver says of it, without pid and name.
    pub message: String,
    /// The Xid that this one follows from, as the message says.
    pub caused_by: Option<u32>,
}

impl Xid {
    /// Reads a line of the kernel log; `None` when it reports no Xid.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let (reporter, rest) = report(line)?;
        let (place, rest) = rest.split_once("): ")?;
        let (pci, instance) = place_of(place)?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let code = rest[..digits].parse().ok()?;
        let rest = rest[digits..].trim_start_matches([',', ' ']);
        let (pid, rest) = pid(rest);
        let (name, rest) = name(rest);
        let message = rest.trim_end().to_owned();
        Some(Self {
            reporter,
            pci,
            instance,
            code,
            pid,
            name,
            caused_by: caused_by(&message),
            message,
        })
    }

    /// Reads the text of a record that the kernel itself has written. The report has to begin it: further on it may be
    /// what a program chose, such as its name in the kernel's words on its crash. A name is at most 15 bytes long, too
    /// short for a report.
    #[must_use]
    pub fn of_record(text: &str) -> Option<Self> {
        let switch = text.strip_prefix("nvidia-nvswitch");
        let switch = switch.map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
        let begins = text.starts_with("NVRM: Xid (") || switch.is_some_and(|rest| rest.starts_with(": SXid ("));
        if begins { Self::parse(text) } else { None }
    }

    /// From the fields of the tracepoint, which names no process.
    #[must_use]
    pub fn of_tracepoint(device: &str, code: u32, message: &str) -> Self {
        let message = message.trim_end().to_owned();
        Self {
            reporter: Reporter::Gpu,
            pci: without_function(device),
            instance: None,
            code,
            pid: None,
            name: None,
            caused_by: caused_by(&message),
            message,
        }
    }

    /// What is known of the code; `None` for an SXid, and for a code newer than the table.
    #[must_use]
    pub fn meaning(&self) -> Option<&'static XidMeaning> {
        match self.reporter {
            Reporter::Gpu => tables::xid(self.code),
            Reporter::Switch => None,
        }
    }
}

impl XidMeaning {
    /// NVIDIA's bucket of what to do at once, in words; empty when it gives none.
    #[must_use]
    pub fn action_words(&self) -> &'static str {
        match self.action {
            "CONTACT_SUPPORT" => "contact NVIDIA's support",
            "RESTART_APP" => "restart the application",
            "IGNORE" => "nothing to do",
            "RESET_GPU" => "reset the GPU",
            "RESTART_VM" => "restart the virtual machine",
            "RESTART_BM" => "restart the machine",
            "UPDATE_SWFW" => "update driver and firmware",
            "CHECK_MECHANICALS" => "check seating, power and cooling of the card",
            "CHECK_UVM" => "look for errors of unified memory beside it",
            "XID_154" => "do what the message names",
            workflow if workflow.starts_with("WORKFLOW_") => "follow NVIDIA's workflow for this Xid",
            _ => "",
        }
    }
}

/// What stands after `Xid (`, and who reports. A program's name may look like a report: the first one counts.
fn report(line: &str) -> Option<(Reporter, &str)> {
    let gpu = line.find("NVRM: Xid (").map(|at| (at, Reporter::Gpu, "NVRM: Xid ("));
    let switch = line.find("SXid (").filter(|_| line.contains("nvswitch"));
    let switch = switch.map(|at| (at, Reporter::Switch, "SXid ("));
    let (at, reporter, head) = gpu.into_iter().chain(switch).min_by_key(|found| found.0)?;
    Some((reporter, &line[at + head.len()..]))
}

/// `PCI:0000:01:00 GPU-I:05 GPU-CI:00`: the device, and its part under MIG. The numbers of parts are hexadecimal.
fn place_of(place: &str) -> Option<(String, Option<Instance>)> {
    let mut words = place.split_ascii_whitespace();
    let pci = words.next()?;
    let pci = without_function(pci.strip_prefix("PCI:").unwrap_or(pci));
    let number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !pci.split(':').all(number) {
        return None;
    }
    let part = |word: Option<&str>, head| u32::from_str_radix(word?.strip_prefix(head)?, 16).ok();
    let gpu = part(words.next(), "GPU-I:");
    let compute = part(words.next(), "GPU-CI:");
    Some((pci, gpu.map(|gpu| Instance { gpu, compute })))
}

fn without_function(pci: &str) -> String {
    pci.split('.').next().unwrap_or_default().to_ascii_lowercase()
}

/// The leading `pid=…, `; a pid that the driver did not know is none.
fn pid(text: &str) -> (Option<u32>, &str) {
    let Some(rest) = text.strip_prefix("pid=") else {
        return (None, text);
    };
    let (pid, rest) = rest.split_once(',').unwrap_or((rest, ""));
    (pid.trim().parse().ok(), rest.trim_start())
}

/// The leading `name=…, `.
fn name(text: &str) -> (Option<String>, &str) {
    let Some(rest) = text.strip_prefix("name=") else {
        return (None, text);
    };
    let (name, rest) = rest.split_once(", ").unwrap_or((rest, ""));
    let known = !name.is_empty() && name != "<unknown>";
    (known.then(|| name.trim_end_matches(',').to_owned()), rest)
}

fn caused_by(message: &str) -> Option<u32> {
    let (_, code) = message.rsplit_once("caused by previous Xid ")?;
    let digits = code.find(|c: char| !c.is_ascii_digit()).unwrap_or(code.len());
    code[..digits].parse().ok()
}
