//! A call that was just traced, with what the models know of it.

use crate::catalog::{Class, CopyKind, HostMemory};
use crate::decode::Call;
use crate::driver::{self, Device, Dialect, Ioctl};
use crate::frame::Shown;
use crate::model::order::Numbered;

/// A call with everything that is known of it.
#[derive(Debug, Clone, Copy)]
pub struct Traced<'a> {
    pub call: &'a Call<'a>,
    pub number: Numbered,
    /// Thread name, `?` when unknown.
    pub comm: &'a str,
    /// Label of the layer.
    pub layer: &'a str,
    /// The name of the kernel that it launches, where that is known.
    pub kernel: Option<&'a str>,
    /// What was asked, of calls to the kernel driver.
    pub asked: Option<&'a Asked>,
    /// Where it was called from, innermost first; `None`: not asked for, or not taken.
    pub stack: Option<&'a Shown>,
    /// What the models know of it.
    pub facts: Facts,
}

/// What a call was about, as the models of memory and of work have followed it. `None`: not about such things, or not
/// known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Facts {
    /// Of a copy, by its addresses where the call does not say.
    pub direction: Option<CopyKind>,
    pub host: Option<HostMemory>,
    /// It waits for a device by its nature.
    pub blocking: bool,
    /// The driver's call within it does.
    pub around_blocking: bool,
    /// Handle; 0: the default stream of a context.
    pub stream: Option<u64>,
    /// Of memory that was allocated or freed.
    pub address: Option<u64>,
    /// Bytes of device memory that the process holds after the call.
    pub held: Option<u64>,
    /// Bytes that the call has given back.
    pub freed: Option<u64>,
    /// Of the call's time, ns: its thread stood still while probes were put into what it had loaded.
    pub standstill_ns: Option<u64>,
}

impl Traced<'_> {
    /// What was called; of the kernel driver, decoded.
    #[must_use]
    pub fn name(&self) -> &str {
        self.asked.map_or(&self.call.row.symbol, |asked| &asked.ioctl.name)
    }

    /// Bytes a second of a copy that is as long as its call; `None`: it is not, or has failed.
    #[must_use]
    pub fn bandwidth(&self) -> Option<f64> {
        let (call, ns) = (self.call, self.call.header.duration);
        let timed = (self.facts.blocking || self.facts.around_blocking)
            && call.row.class == Class::Copy
            && call.returned()
            && !call.refused();
        let bytes = call.size().filter(|bytes| timed && ns > 0 && *bytes > 0)?;
        Some(bytes as f64 * 1e9 / ns as f64)
    }

    /// Whether its result or the driver's answer says that it failed.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.asked
            .map_or_else(|| self.call.failed(), |asked| asked.ioctl.failed())
    }
}

/// What a call has asked of the kernel driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// `None`: one that could not be opened.
    pub device: Option<Device>,
    pub ioctl: Ioctl,
    /// What it has answered, where that is an error or a status.
    pub error: Option<String>,
}

impl Asked {
    /// As the driver of `dialect` understands it.
    #[must_use]
    pub fn of(record: &driver::Record, dialect: Dialect) -> Asked {
        Asked::new(record.device, record.decode(dialect))
    }

    /// That `ioctl` was asked of `device`.
    #[must_use]
    pub fn new(device: Option<Device>, ioctl: Ioctl) -> Asked {
        let has_status = ioctl.result < 0 || ioctl.status.is_some();
        Asked {
            device,
            error: has_status.then(|| ioctl.answer()),
            ioctl,
        }
    }
}

impl PartialEq for Traced<'_> {
    /// Whether it is the same call.
    fn eq(&self, other: &Traced<'_>) -> bool {
        std::ptr::eq(self.call, other.call)
    }
}
