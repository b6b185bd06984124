//! Records that are read as they are.

use super::bytes::read;
use super::generated::*;

/// Bytes of the record of a system call on one of the driver's devices.
pub const DRIVER_BYTES: usize = size_of::<DriverEvent>();

impl DriverCall {
    /// Reads what follows the header; `None` when `record` is too short.
    pub fn parse(record: &[u8]) -> Option<DriverCall> {
        read::<DriverEvent>(record).map(|event| event.call)
    }
}

impl MemoryCall {
    /// Reads a record; `None` when `bytes` is too short or of another kind.
    pub fn parse(bytes: &[u8]) -> Option<MemoryCall> {
        read(bytes).filter(|call: &MemoryCall| call.kind == MEMORY_CALL)
    }
}

impl WorkCall {
    /// Reads a record; `None` when `bytes` is too short or of another kind.
    pub fn parse(bytes: &[u8]) -> Option<WorkCall> {
        read(bytes).filter(|call: &WorkCall| call.kind == WORK_CALL)
    }
}

impl Flow {
    /// Reads an entry; `None` when `bytes` is too short.
    pub fn parse(bytes: &[u8]) -> Option<Flow> {
        read(bytes)
    }
}

impl Notice {
    /// Reads a notice; `None` when `bytes` is too short.
    pub fn parse(bytes: &[u8]) -> Option<Notice> {
        read(bytes)
    }
}

impl XidEvent {
    /// Reads an event; `None` when `bytes` is too short.
    pub fn parse(bytes: &[u8]) -> Option<XidEvent> {
        read(bytes)
    }
}
