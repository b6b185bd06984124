use super::*;
use crate::export::sample;
use proptest::prelude::*;
use prost::{Message, Oneof};

#[derive(Clone, PartialEq, Message)]
struct Trace {
    #[prost(message, repeated, tag = "1")]
    packets: Vec<Packet>,
}

#[derive(Clone, PartialEq, Message)]
struct Packet {
    #[prost(message, optional, tag = "6")]
    clock_snapshot: Option<proto::ClockSnapshot>,
    #[prost(uint64, optional, tag = "8")]
    timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    sequence: Option<u32>,
    #[prost(message, optional, tag = "11")]
    event: Option<TrackEvent>,
    #[prost(message, optional, tag = "12")]
    interned: Option<proto::Interned>,
    #[prost(uint32, optional, tag = "13")]
    sequence_flags: Option<u32>,
    #[prost(message, optional, tag = "59")]
    defaults: Option<proto::Defaults>,
    #[prost(message, optional, tag = "60")]
    track: Option<proto::TrackDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
struct TrackEvent {
    #[prost(uint64, repeated, packed = "false", tag = "3")]
    categories: Vec<u64>,
    #[prost(message, repeated, tag = "4")]
    annotations: Vec<Annotation>,
    #[prost(uint64, optional, tag = "9")]
    kind: Option<u64>,
    #[prost(uint64, optional, tag = "10")]
    name_iid: Option<u64>,
    #[prost(uint64, optional, tag = "11")]
    track: Option<u64>,
    #[prost(string, optional, tag = "23")]
    name: Option<String>,
    #[prost(int64, optional, tag = "30")]
    counter: Option<i64>,
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    flows: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct Annotation {
    #[prost(uint64, optional, tag = "1")]
    name_iid: Option<u64>,
    #[prost(oneof = "Said", tags = "3, 6, 7, 9, 17")]
    value: Option<Said>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Said {
    #[prost(uint64, tag = "3")]
    Number(u64),
    #[prost(string, tag = "6")]
    Text(String),
    #[prost(uint64, tag = "7")]
    Address(u64),
    #[prost(string, tag = "9")]
    Json(String),
    #[prost(uint64, tag = "17")]
    TextIid(u64),
}

fn decoded() -> Vec<Packet> {
    let bytes = sample::bytes(&mut encoder());
    Trace::decode(&bytes[..]).unwrap().packets
}

#[test]
fn perfetto_packets() {
    let packets = decoded();
    let lines: Vec<String> = packets.iter().map(|packet| format!("{packet:?}")).collect();
    // what is not set says nothing
    let short = lines.join("\n").replace("Some(", "(");
    let words: Vec<String> = short.lines().map(without_absent).collect();
    insta::assert_snapshot!(words.join("\n"));
}

fn without_absent(line: &str) -> String {
    let mut line = line.to_owned();
    while let Some(at) = line.find(": None") {
        let from = line[..at].rfind([' ', '{']).map_or(0, |from| from + 1);
        let to = at + ": None".len();
        let to = if line[to..].starts_with(", ") { to + 2 } else { to };
        line.replace_range(from..to, "");
    }
    line
}

#[test]
fn every_beginning_has_its_end() {
    let count = |kind| {
        let events = decoded();
        events
            .iter()
            .filter(|packet| packet.event.as_ref().is_some_and(|event| event.kind == Some(kind)))
            .count()
    };
    assert!(count(BEGIN) > 0);
    assert_eq!(count(BEGIN), count(END));
}

fn any_said() -> impl Strategy<Value = Said> {
    prop_oneof![
        any::<u64>().prop_map(Said::Number),
        any::<u64>().prop_map(Said::Address),
        any::<u64>().prop_map(Said::TextIid),
        any::<String>().prop_map(Said::Text),
        ".{0,300}".prop_map(Said::Json),
    ]
}

fn any_event() -> impl Strategy<Value = TrackEvent> {
    let numbers = || proptest::collection::vec(any::<u64>(), 0..3);
    let annotation = (any::<u64>(), any_said()).prop_map(|(key, said)| Annotation {
        name_iid: Some(key),
        value: Some(said),
    });
    let annotations = proptest::collection::vec(annotation, 0..4);
    let number = || proptest::option::of(any::<u64>());
    let name = proptest::option::of(any::<String>());
    let parts = (numbers(), annotations, number(), number(), number(), name, number());
    (parts, numbers()).prop_map(|(parts, flows)| TrackEvent {
        categories: parts.0,
        annotations: parts.1,
        kind: parts.2,
        name_iid: parts.3,
        track: parts.4,
        name: parts.5,
        counter: parts.6.map(|value| value as i64),
        flows,
    })
}

fn encoded(of: &TrackEvent) -> Event {
    let mut event = Event::default();
    of.categories.iter().for_each(|iid| event.category(*iid));
    for note in &of.annotations {
        let value = match note.value.as_ref().unwrap() {
            Said::Number(value) => Value::Number(*value),
            Said::Text(value) => Value::Text(value),
            Said::Address(value) => Value::Address(*value),
            Said::Json(value) => Value::Json(value),
            Said::TextIid(value) => Value::TextIid(*value),
        };
        event.note(note.name_iid.unwrap(), value);
    }
    of.kind.into_iter().for_each(|kind| event.kind(kind));
    of.name_iid.into_iter().for_each(|iid| event.name_iid(iid));
    of.track.into_iter().for_each(|uuid| event.track(uuid));
    of.name.iter().for_each(|name| event.name(name));
    of.counter.into_iter().for_each(|value| event.count(value as u64));
    of.flows.iter().for_each(|id| event.flow(*id));
    event
}

proptest! {
    #[test]
    fn events_are_encoded_as_by_protobuf(of in any_event(), at: u64, fresh in proptest::option::of(any::<String>())) {
        let interned = fresh.map(|name| proto::Interned {
            texts: vec![proto::Name { iid: Some(1), name: Some(name) }],
            ..proto::Interned::default()
        });
        let mut out = Vec::new();
        event::write(at, &encoded(&of), interned.as_ref(), &mut out);
        let packet = Packet {
            timestamp: Some(at),
            sequence: Some(SEQUENCE),
            event: Some(of),
            interned,
            sequence_flags: Some(proto::NEEDS_STATE),
            ..Packet::default()
        };
        prop_assert_eq!(out, Trace { packets: vec![packet] }.encode_to_vec());
    }
}
