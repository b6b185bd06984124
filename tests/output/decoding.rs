//! Any bytes and any plan yield a call or nothing, never a panic; what was captured is what is shown.

use crate::event::{Event, World};
use gpuscope::capture::{Field, Plan, Show};
use gpuscope::catalog::{Kind, Pass, StructId};
use gpuscope::clock::Clock;
use gpuscope::decode::{Call, Value};
use gpuscope::model::order::Numbered;
use gpuscope::record::{Encoder, Facts, Maker, Traced};
use gpuscope::sink::{json::Json, text::Text};
use gpuscope::wire;
use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::LazyLock;

static WORLD: LazyLock<World> = LazyLock::new(World::new);

/// Everything that is done with a call, in both formats.
fn use_up(call: &Call<'_>) {
    let traced = Traced {
        call,
        number: Numbered { id: 1, caller: None },
        comm: "x",
        layer: "driver",
        kernel: None,
        asked: None,
        stack: None,
        facts: Facts::default(),
    };
    let clock = Clock {
        start_monotonic_ns: 0,
        start_unix_ns: 0,
    };
    let (mut text, mut json) = (Vec::new(), Vec::new());
    let mut maker = Maker::new(clock);
    let record = maker.call(&traced, true);
    Text::new(clock, 0, false).take(&record, &mut text);
    Json::default().take(&record, &mut json);
    assert_eq!(text.iter().filter(|byte| **byte == b'\n').count(), 1);
    serde_json::from_slice::<serde_json::Value>(&json).expect("a JSON object");
}

fn any_event() -> impl Strategy<Value = Vec<u8>> {
    let row = 0..WORLD.catalog.rows.len() as u32 + 2;
    (row, 0..=3u8, vec(any::<u8>(), wire::LARGE_BYTES)).prop_map(|(row, size, mut bytes)| {
        bytes[40..44].copy_from_slice(&row.to_le_bytes());
        bytes[46] = size;
        bytes
    })
}

fn any_kind() -> impl Strategy<Value = Kind> {
    let structs = WORLD.catalog.structs.len() as u16;
    prop_oneof![
        Just(Kind::U8),
        Just(Kind::I64),
        Just(Kind::Bool),
        Just(Kind::F64),
        Just(Kind::CStr),
        Just(Kind::Text),
        Just(Kind::Dim3),
        any::<u16>().prop_map(Kind::Bytes),
        any::<u16>().prop_map(Kind::Chars),
        (0..structs + 2).prop_map(|id| Kind::Struct(StructId(id))),
    ]
}

fn any_show() -> impl Strategy<Value = Show> {
    // mostly indices that exist
    let byte = || prop_oneof![4 => 0..wire::WORD_VALUES + wire::VALUES as u8, 1 => any::<u8>(), 1 => Just(255)];
    prop_oneof![
        (byte(), byte()).prop_map(|(word, bytes)| Show::Word { word, bytes }),
        byte().prop_map(|word| Show::Words { word }),
        (byte(), byte(), byte()).prop_map(|(pointer, value, bytes)| Show::Pointee { pointer, value, bytes }),
        (byte(), byte()).prop_map(|(pointer, text)| Show::Text { pointer, text }),
        byte().prop_map(|pointer| Show::Block { pointer }),
        Just(Show::Unreadable),
    ]
}

fn any_field() -> impl Strategy<Value = Field> {
    (any_kind(), any_show(), any::<bool>()).prop_map(|(kind, show, out)| Field {
        name: "x".to_owned(),
        kind,
        show,
        out,
    })
}

fn any_plan() -> impl Strategy<Value = Plan> {
    let factor = || (any::<u8>(), any::<u8>()).prop_map(|(word, bytes)| wire::Factor { word, bytes });
    let numbers = (any::<[u8; 5]>(), any::<u64>());
    let words = ([factor(), factor(), factor(), factor()], [factor(), factor()]);
    (numbers, words, vec(any_field(), 0..4)).prop_map(|((numbers, scale), (factor, variant), fields)| {
        let [flags, factors, texts, block_word, block_qwords] = numbers;
        let spec = wire::Spec {
            flags,
            factors,
            texts,
            block_word,
            block_qwords,
            scale,
            factor,
            variant,
            ..wire::Spec::EMPTY
        };
        Plan { spec, fields }
    })
}

/// What an argument of a call shows when `value` was captured for it, if it is a number or address.
fn expected(kind: Kind, value: u64) -> Option<u64> {
    Some(match kind {
        Kind::U8 => value & 0xff,
        Kind::U16 => value & 0xffff,
        Kind::U32 => value & 0xffff_ffff,
        Kind::U64 | Kind::Size | Kind::DevPtr | Kind::Ptr | Kind::Handle | Kind::Fn => value,
        Kind::I8 => i64::from(value as i8) as u64,
        Kind::I16 => i64::from(value as i16) as u64,
        Kind::I32 => i64::from(value as i32) as u64,
        Kind::I64 => value,
        Kind::Bool => u64::from(value & 0xff != 0),
        _ => return None,
    })
}

fn shown(value: &Value<'_>) -> Option<u64> {
    match value {
        Value::Unsigned(number) | Value::Size(number) | Value::Address(number) => Some(*number),
        Value::Signed(number) => Some(*number as u64),
        Value::Bool(value) => Some(u64::from(*value)),
        _ => None,
    }
}

proptest! {
    #[test]
    fn any_bytes_are_a_call_or_none(bytes in vec(any::<u8>(), 0..700)) {
        if let Some(call) = Call::decode(&bytes, &WORLD.catalog, &WORLD.plans) {
            use_up(&call);
        }
    }

    #[test]
    fn any_event_of_a_known_row_becomes_one_line(bytes in any_event()) {
        if let Some(call) = Call::decode(&bytes, &WORLD.catalog, &WORLD.plans) {
            use_up(&call);
        }
    }

    #[test]
    fn any_plan_becomes_one_line(plan in any_plan(), bytes in vec(any::<u8>(), wire::LARGE_BYTES), size in 0..=2u8) {
        let mut bytes = bytes;
        bytes[40..44].fill(0);
        bytes[46] = size;
        let plans = [plan];
        use_up(&Call::decode(&bytes, &WORLD.catalog, &plans).expect("row 0 exists"));
    }

    #[test]
    fn an_event_shorter_than_it_claims_is_refused(bytes in any_event(), keep in any::<prop::sample::Index>()) {
        let claimed = match bytes[46] {
            wire::SIZE_SMALL => wire::SMALL_BYTES,
            wire::SIZE_MEDIUM => wire::MEDIUM_BYTES,
            _ => wire::LARGE_BYTES,
        };
        let short = &bytes[..keep.index(claimed)];
        prop_assert!(Call::decode(short, &WORLD.catalog, &WORLD.plans).is_none());
    }

    #[test]
    fn each_argument_shows_what_was_captured(row in any::<prop::sample::Index>(), values in vec(any::<u64>(), 30)) {
        let row = row.index(WORLD.catalog.rows.len());
        let plan = &WORLD.plans[row];
        let mut event = Event::of(row as u32, plan.clone());
        let wanted: Vec<(&Field, u64)> = plan.fields.iter().zip(values).collect();
        for (field, value) in &wanted {
            if matches!(field.show, Show::Word { .. } | Show::Pointee { .. }) {
                event = event.with(&field.name, *value);
            }
        }
        let bytes = event.bytes();
        let call = WORLD.decode(&bytes);
        for ((field, value), (name, decoded)) in wanted.iter().zip(call.args()) {
            prop_assert_eq!(&field.name, name);
            let address_only = field.out && matches!(field.show, Show::Word { .. });
            let number = match field.show {
                Show::Word { .. } if address_only || by_pointer(row, name) => Some(*value),
                Show::Word { .. } | Show::Pointee { .. } => expected(field.kind, *value),
                _ => None,
            };
            if let Some(number) = number {
                prop_assert_eq!(shown(&decoded), Some(number), "{} of {}", name, &call.row.symbol);
            }
        }
    }
}

fn by_pointer(row: usize, name: &str) -> bool {
    let arg = WORLD.catalog.rows[row].args.iter().find(|arg| arg.name == name);
    arg.is_some_and(|arg| arg.pass != Pass::Value)
}
