//! The part of Perfetto's trace format that is written seldom, with the field numbers of its `perfetto_trace.proto`.
//!
//! Declared by hand: generated code for the whole format is 14 MB and takes minutes to compile.

use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Packet {
    #[prost(message, optional, tag = "6")]
    pub clock_snapshot: Option<ClockSnapshot>,
    #[prost(uint32, optional, tag = "10")]
    pub sequence: Option<u32>,
    #[prost(uint32, optional, tag = "13")]
    pub sequence_flags: Option<u32>,
    #[prost(message, optional, tag = "59")]
    pub defaults: Option<Defaults>,
    #[prost(message, optional, tag = "60")]
    pub track: Option<TrackDescriptor>,
}

/// [`Packet::sequence_flags`]: names and defaults begin anew.
pub(crate) const STATE_CLEARED: u32 = 1;
/// [`Packet::sequence_flags`]: it refers to names or defaults.
pub(crate) const NEEDS_STATE: u32 = 2;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Defaults {
    #[prost(uint32, optional, tag = "58")]
    pub clock: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ClockSnapshot {
    #[prost(message, repeated, tag = "1")]
    pub clocks: Vec<Clock>,
    #[prost(uint32, optional, tag = "2")]
    pub(crate) primary: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Clock {
    #[prost(uint32, optional, tag = "1")]
    pub id: Option<u32>,
    #[prost(uint64, optional, tag = "2")]
    pub timestamp: Option<u64>,
}

/// [`Clock::id`]
pub(crate) const REALTIME: u32 = 1;
/// [`Clock::id`]
pub(crate) const MONOTONIC: u32 = 3;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    pub uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    #[prost(message, optional, tag = "3")]
    pub process: Option<Process>,
    #[prost(message, optional, tag = "4")]
    pub thread: Option<Thread>,
    #[prost(uint64, optional, tag = "5")]
    pub parent: Option<u64>,
    #[prost(message, optional, tag = "8")]
    pub counter: Option<CounterDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Process {
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    #[prost(string, optional, tag = "6")]
    pub name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Thread {
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    #[prost(int64, optional, tag = "2")]
    pub tid: Option<i64>,
    #[prost(string, optional, tag = "5")]
    pub name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CounterDescriptor {
    #[prost(int32, optional, tag = "3")]
    pub unit: Option<i32>,
    #[prost(string, optional, tag = "6")]
    pub(crate) unit_name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Interned {
    #[prost(message, repeated, tag = "1")]
    pub categories: Vec<Name>,
    #[prost(message, repeated, tag = "2")]
    pub events: Vec<Name>,
    #[prost(message, repeated, tag = "3")]
    pub annotations: Vec<Name>,
    #[prost(message, repeated, tag = "29")]
    pub texts: Vec<Name>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Name {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) iid: Option<u64>,
    /// `bytes` in one of the messages that it stands for, which is written alike.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
}

/// Appends a packet of a trace, which is a message with one repeated field.
pub(crate) fn write(packet: &Packet, out: &mut Vec<u8>) {
    out.push(0x0a);
    // a Vec has always room
    let _ = packet.encode_length_delimited(out);
}
