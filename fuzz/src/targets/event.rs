//! The bytes of an event, as they come out of the ring: one line of each format, or nothing.

use crate::World;
use gpuscope::clock::Clock;
use gpuscope::decode::Call;
use gpuscope::model::order::Numbered;
use gpuscope::record::{Encoder, Facts, Maker, Traced};
use gpuscope::sink::{json::Json, text::Text};
use gpuscope::wire::Notice;

pub fn run(bytes: &[u8]) {
    let _ = Notice::parse(bytes);
    let Some(call) = Call::decode(bytes, &World::shared().catalog, &World::shared().plans) else {
        return;
    };
    let number = Numbered { id: 1, caller: Some(2) };
    let traced = Traced {
        call: &call,
        number,
        comm: "x",
        layer: "driver",
        kernel: call.kernel().map(|_| "kernel"),
        asked: None,
        stack: None,
        facts: Facts::default(),
    };
    let clock = Clock {
        start_monotonic_ns: 1,
        start_unix_ns: 1,
    };
    let (mut text, mut json) = (Vec::new(), Vec::new());
    let mut maker = Maker::new(clock);
    let record = maker.call(&traced, true);
    Text::new(clock, 3600, false).take(&record, &mut text);
    Json::default().take(&record, &mut json);
    let text = String::from_utf8(text).expect("UTF-8");
    assert!(text.ends_with('\n') && !text[..text.len() - 1].contains(char::is_control));
    let json = String::from_utf8(json).expect("UTF-8");
    assert!(json.ends_with("}\n") && !json[..json.len() - 1].contains(char::is_control));
}
