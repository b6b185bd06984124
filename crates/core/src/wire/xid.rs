//! Xids, as the driver's tracepoint tells of them.

use super::bytes::{u32_at, u64_at};

/// Bytes kept of the message of an Xid, NUL included.
pub(crate) const XID_TEXT: usize = 472;

/// One Xid, from the driver's tracepoint.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XidEvent {
    pub at: u64,
    pub code: u32,
    pub pad: u32,
    pub device: [u8; 24],
    pub message: [u8; XID_TEXT],
}

impl XidEvent {
    /// Reads an event; `None` when `bytes` is too short.
    pub fn parse(bytes: &[u8]) -> Option<XidEvent> {
        if bytes.len() < size_of::<XidEvent>() {
            return None;
        }
        let mut event = XidEvent {
            at: u64_at(bytes, 0),
            code: u32_at(bytes, 8),
            pad: 0,
            device: [0; 24],
            message: [0; XID_TEXT],
        };
        event.device.copy_from_slice(&bytes[16..40]);
        event.message.copy_from_slice(&bytes[40..40 + XID_TEXT]);
        Some(event)
    }
}
