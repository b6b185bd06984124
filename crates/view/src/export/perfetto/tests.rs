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

/// What a slice is called by number, or by its own name.
fn text_of(packets: &[Packet], texts: impl Fn(&proto::Interned) -> &[proto::Name], iid: u64) -> Option<String> {
    let named = packets
        .iter()
        .filter_map(|packet| packet.interned.as_ref())
        .flat_map(texts);
    named
        .filter(|name| name.iid == Some(iid))
        .find_map(|name| name.name.clone())
}

#[test]
fn a_measured_gap_lies_on_its_devices_track_and_has_its_cause_and_place() {
    let packets = decoded();
    let tracks = packets.iter().filter_map(|packet| packet.track.as_ref());
    let mut idle = tracks.filter(|track| track.name.as_deref() == Some("GPU 1 idle (measured), by cause"));
    let uuid = idle.next().expect("a track").uuid;
    let events = packets
        .iter()
        .filter_map(|packet| Some((packet.timestamp?, packet.event.as_ref()?)));
    let of_track: Vec<(u64, &TrackEvent)> = events.filter(|(_, event)| event.track == uuid).collect();
    let times: Vec<u64> = of_track.iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [1_000_024_000, 1_000_045_000, 1_000_075_000, 1_000_145_000]);
    let begun = of_track[0].1;
    let name = begun
        .name
        .clone()
        .or_else(|| text_of(&packets, |texts| &texts.events, begun.name_iid?));
    assert_eq!(name.as_deref(), Some("memory"));
    let said: Vec<Said> = begun.annotations.iter().filter_map(|note| note.value.clone()).collect();
    let args = r#"{"cause":"the host took memory or gave it back","place":"cudaMalloc"}"#;
    assert_eq!(said, [Said::Json(args.to_owned())]);
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
