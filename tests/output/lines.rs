//! The text and JSON line formats.

use crate::event::{Event, World};
use gpuscope::clock::{Clock, WallClock};
use gpuscope::frame::{Frame, Language, Shown};
use gpuscope::model::beside::Happening;
use gpuscope::model::order::Numbers;
use gpuscope::model::summary::Summary;
use gpuscope::record::{Encoder, Ending, Facts, Maker, Meta, Traced};
use gpuscope::sink::summary::to_json_line;
use gpuscope::sink::{json::Json, text::Text};
use gpuscope::wire;

/// 2026-03-01 17:35:41 UTC stands at 1 s of the monotonic clock.
const CLOCK: Clock = Clock {
    start_monotonic_ns: 1_000_000_000,
    start_unix_ns: 1_772_386_541_000_000_000,
};
const CUDA_ERROR_MEMORY_ALLOCATION: u64 = 2;
const HOST_TO_DEVICE: u64 = 1;

/// Calls of every shape that a line can have, by name.
fn events(world: &World) -> Vec<Event> {
    let entered = 1_000_000_000;
    let mut inner = world
        .event("driver", "cuMemAlloc_v2")
        .with("dptr", 0x7f2a_4000_0000)
        .with("bytesize", 1 << 30)
        .at(5, 1);
    inner.header.caller = entered;
    let allocation = |world: &World| world.event("runtime", "cudaMalloc").with("size", 1 << 30);
    vec![
        allocation(world).with("devPtr", 0x7f2a_4000_0000),
        inner,
        allocation(world)
            .with("devPtr", 0x1234)
            .at(500, 0)
            .returning(CUDA_ERROR_MEMORY_ALLOCATION),
        allocation(world).with_unreadable("devPtr").at(600, 0),
        world
            .event("runtime", "cudaMemcpy")
            .with("dst", 0x7f2a_4000_0000)
            .with("src", 0x55d0_0000_1000)
            .with("count", 4096)
            .with("kind", HOST_TO_DEVICE)
            .at(700, 0),
        world
            .event("runtime", "cudaLaunchKernel")
            .with("func", 0x55d0_0000_2000)
            .with_dim3("gridDim", [128, 2, 1])
            .with_dim3("blockDim", [256, 1, 1])
            .with("sharedMem", 49152)
            .at(800, 0),
        world
            .event("driver", "cuGetProcAddress_v2")
            .with_text("symbol", b"evil\x1b[2J\"\n\\\xff")
            .at(900, 0),
        world
            .event("driver", "cuLaunchKernelEx")
            .with_block("config", &[2 << 32 | 128, 256 << 32 | 1, 1 << 32 | 1, 0, 0x55aa, 0, 0])
            .at(1000, 0),
        world
            .event("mylib", "my_raw")
            .with("arg0", 7)
            .at(1100, 0)
            .flagged(wire::EVENT_NO_RETURN),
        allocation(world).at(1200, 9).flagged(wire::EVENT_NO_ARGS),
        world
            .event("runtime", "cudaGetErrorString")
            .with("error", 2)
            .returning(0x7f00_1000)
            .at(1300, 0),
        world.event("runtime", "cudaMalloc").returning(987_654).at(1400, 0),
    ]
}

fn meta() -> Meta {
    Meta {
        clock: CLOCK,
        command: vec!["./a b".to_owned(), "\u{1b}[2J".to_owned()],
        tier: "uprobe.session".to_owned(),
        host: "node-7".to_owned(),
        tool: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

fn written(encoder: &mut dyn Encoder) -> String {
    let mut maker = Maker::new(CLOCK);
    let world = World::new();
    let mut numbers = Numbers::default();
    let mut out = Vec::new();
    encoder.start(&meta(), &mut out);
    let forked = Happening::Forked { parent: 1234 };
    encoder.take(&maker.process(1240, 1_000_000_000, "py\u{1b}[2J", forked), &mut out);
    encoder.take(
        &maker.process(1240, 1_000_500_000, "train", Happening::Executed),
        &mut out,
    );
    let stack = Shown::new(
        ["forward", "main\u{1b}[31m"]
            .map(|function| Frame {
                function: function.to_owned(),
                module: None,
                offset: None,
                file: Some("/srv/train.py".to_owned()),
                line: Some(42),
                language: Language::Python,
                inlined: false,
            })
            .to_vec(),
    );
    for (index, event) in events(&world).iter().enumerate() {
        let bytes = event.bytes();
        let call = world.decode(&bytes);
        let header = &call.header;
        let number = numbers.number(header.tid, header.depth, header.entered, header.caller);
        let library = world.catalog.library_with(call.row.library).expect("its library");
        let traced = Traced {
            call: &call,
            number,
            comm: if index == 2 {
                "a\u{1b}]0;x\u{7}\nb\u{202e}"
            } else {
                "python"
            },
            layer: &library.name,
            kernel: call.kernel().map(|_| "gemm<float,\u{1b}[2J>"),
            asked: None,
            stack: (index == 0).then_some(&stack),
            facts: Facts::default(),
        };
        encoder.take(&maker.call(&traced, true), &mut out);
    }
    encoder.take(
        &maker.lost("cuLaunchKernel", 17, 1_001_000_000, 2_001_000_000),
        &mut out,
    );
    for report in crate::summary::reports() {
        encoder.take(&maker.xid(&report), &mut out);
    }
    encoder.take(
        &maker.process(1240, 2_500_000_000, "train", Happening::Exited),
        &mut out,
    );
    let summary = to_json_line(&Summary::default()).to_string();
    let ending = Ending {
        summary: Some(&summary),
        cut: None,
    };
    encoder.finish(&ending, &mut out);
    String::from_utf8(out).expect("UTF-8 whatever was traced")
}

#[test]
fn text() {
    insta::assert_snapshot!(written(&mut Text::new(CLOCK, 3600, false)));
}

/// The machine slept, or somebody set its clock: lines say what time it is now.
#[test]
fn text_has_the_time_of_day_that_is_now() {
    let hour_ahead = || Clock {
        start_unix_ns: CLOCK.start_unix_ns + 3_600_000_000_000,
        ..CLOCK
    };
    let mut text = Text::by(WallClock::read_by(CLOCK, hour_ahead), 0, false);
    assert_eq!(written(&mut text), written(&mut Text::new(CLOCK, 0, false)));
    text.tick(&mut Vec::new());
    assert_eq!(written(&mut text), written(&mut Text::new(CLOCK, 3600, false)));
}

#[test]
fn text_in_colour() {
    let text = written(&mut Text::new(CLOCK, 3600, true));
    insta::assert_snapshot!(text.replace('\x1b', "␛"));
}

#[test]
fn plain_text_holds_no_control_character_but_newlines() {
    let text = written(&mut Text::new(CLOCK, 0, false));
    assert!(!text.contains(|c: char| c.is_control() && c != '\n'));
    assert!(!text.contains('\u{202e}'));
}

#[test]
fn colour_changes_nothing_but_escape_sequences() {
    let coloured = written(&mut Text::new(CLOCK, 0, true));
    let plain = anstream::adapter::strip_str(&coloured).to_string();
    assert_eq!(plain, written(&mut Text::new(CLOCK, 0, false)));
}

#[test]
fn json_lines() {
    let text = written(&mut Json::default());
    insta::assert_snapshot!(text.replace(env!("CARGO_PKG_VERSION"), "VERSION"));
}

#[test]
fn every_json_line_is_an_object_of_a_known_type() {
    let text = written(&mut Json::default());
    let kinds: Vec<String> = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"))
        .map(|record| record["type"].as_str().expect("a type").to_owned())
        .collect();
    assert_eq!(kinds.first().map(String::as_str), Some("meta"));
    assert_eq!(kinds.last().map(String::as_str), Some("summary"));
    let known = ["meta", "process", "userspace", "lost", "xid", "summary"];
    assert!(kinds.iter().all(|kind| known.contains(&kind.as_str())), "{kinds:?}");
}

#[test]
fn the_document_explains_every_field() {
    let document = include_str!("../../docs/output.md");
    let text = written(&mut Json::default());
    for line in text.lines() {
        let record: serde_json::Value = serde_json::from_str(line).expect("JSON");
        for key in record.as_object().expect("an object").keys() {
            assert!(document.contains(&format!("`{key}`")), "docs/output.md lacks `{key}`");
        }
    }
}
