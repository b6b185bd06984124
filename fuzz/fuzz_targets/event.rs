//! The bytes of an event, as they come out of the ring: one line of each format, or nothing.
#![no_main]

use gpuscope::clock::Clock;
use gpuscope::decode::Call;
use gpuscope::model::order::Numbered;
use gpuscope::sink::{Entry, Sink, json::Json, text::Text};
use gpuscope::wire::Notice;
use gpuscope_fuzz::World;
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static WORLD: LazyLock<World> = LazyLock::new(World::default);

fuzz_target!(|bytes: &[u8]| {
    let _ = Notice::parse(bytes);
    let Some(call) = Call::decode(bytes, &WORLD.catalog, &WORLD.plans) else {
        return;
    };
    let number = Numbered { id: 1, caller: Some(2) };
    let entry = Entry {
        call: &call,
        number,
        comm: "x",
        layer: "driver",
        kernel: call.kernel().map(|_| "kernel"),
        asked: None,
        stack: None,
        facts: gpuscope::sink::Facts::default(),
    };
    let clock = Clock {
        start_monotonic_ns: 1,
        start_unix_ns: 1,
    };
    let (mut text, mut json) = (Vec::new(), Vec::new());
    Text::new(clock, 3600, false).call(&entry, &mut text);
    Json::new(clock, Vec::new(), String::new()).call(&entry, &mut json);
    let text = String::from_utf8(text).expect("UTF-8");
    assert!(text.ends_with('\n') && !text[..text.len() - 1].contains(char::is_control));
    let json = String::from_utf8(json).expect("UTF-8");
    assert!(json.ends_with("}\n") && !json[..json.len() - 1].contains(char::is_control));
});
