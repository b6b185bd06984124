//! What has a line of its own.

use crate::catalog::Class;
use crate::record::{Kind, Record, json};

/// A line of the picture, in the order in which they are drawn.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lane {
    /// Iterations of a process.
    Steps {
        pid: u32,
    },
    /// Phases as the program calls them: those of a thread that are in no other.
    Range {
        pid: u32,
        tid: u32,
    },
    /// Calls of a thread in a layer: those that are in no other call of the layer.
    Layer {
        pid: u32,
        tid: u32,
        layer: Layer,
    },
    /// What was submitted to a stream.
    Stream {
        pid: u32,
        stream: u64,
    },
    /// What a device has done for a stream of a process, by CUPTI's number.
    Gpu {
        pid: u32,
        device: u32,
        stream: u64,
    },
    /// What CUPTI took for itself in a process.
    Overhead {
        pid: u32,
    },
    /// When nothing that a process submitted can have been running; of one device where it uses several.
    Idle {
        pid: u32,
        device: Option<u32>,
    },
    /// Calls without a row.
    Lost,
    Xid,
}

/// Layers from the program down.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layer {
    Custom(String),
    Runtime,
    Driver,
    Kernel,
}

impl Layer {
    fn of(label: &str) -> Layer {
        match label {
            "runtime" => Layer::Runtime,
            "driver" => Layer::Driver,
            "kernel" => Layer::Kernel,
            other => Layer::Custom(other.to_owned()),
        }
    }

    /// Its label.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Layer::Custom(label) => label,
            Layer::Runtime => "runtime",
            Layer::Driver => "driver",
            Layer::Kernel => "kernel",
        }
    }
}

impl Lane {
    /// Of a row; `None`: it has no place in the picture.
    #[must_use]
    pub(crate) fn of(event: &Record<'_>) -> Option<Lane> {
        let pid = event.pid;
        match event.kind {
            Kind::Call | Kind::Open | Kind::Kernel => Some(Lane::Layer {
                pid,
                tid: event.tid,
                layer: Layer::of(event.layer),
            }),
            Kind::Gpu => Some(Lane::Gpu {
                pid,
                device: event.args.and_then(json::device_of_activity).unwrap_or(0),
                stream: event.stream.unwrap_or(0),
            }),
            Kind::Range if event.depth == 0 => Some(Lane::Range { pid, tid: event.tid }),
            Kind::Step => Some(Lane::Steps { pid }),
            Kind::Overhead => Some(Lane::Overhead { pid }),
            Kind::Idle => Some(Lane::Idle { pid, device: None }),
            Kind::DeviceIdle => Some(Lane::Idle {
                pid,
                device: event.args.and_then(json::device_of_activity),
            }),
            Kind::Lost => Some(Lane::Lost),
            Kind::Xid => Some(Lane::Xid),
            _ => None,
        }
    }

    /// Of the stream that a call gave work to, as the driver sees it.
    #[must_use]
    pub(crate) fn of_stream(event: &Record<'_>) -> Option<Lane> {
        let gives = matches!(
            event.class,
            Class::Launch | Class::Copy | Class::Memset | Class::Prefetch
        );
        let stream = event.stream.filter(|_| gives && event.kind == Kind::Call)?;
        Some(Lane::Stream { pid: event.pid, stream })
    }

    /// Of the device whose gap this is of a process that used no other by then, and may have later.
    #[must_use]
    pub(crate) fn of_only_device(event: &Record<'_>) -> Option<Lane> {
        let device = event.args.filter(|_| event.kind == Kind::Idle);
        let device = Some(device.and_then(json::device_of_activity)?);
        Some(Lane::Idle { pid: event.pid, device })
    }

    /// 0: of no process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        match self {
            Lane::Range { pid, .. } | Lane::Layer { pid, .. } => *pid,
            Lane::Stream { pid, .. } | Lane::Gpu { pid, .. } => *pid,
            Lane::Overhead { pid } | Lane::Idle { pid, .. } | Lane::Steps { pid } => *pid,
            Lane::Lost | Lane::Xid => 0,
        }
    }
}
