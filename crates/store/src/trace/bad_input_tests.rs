//! Files that were cut off, damaged, or never were recordings: whatever is in them, reading ends with a reason.

use super::tests::{full, meta, recorded};
use super::*;
use crate::record::{Kind, Record, Taker};
use proptest::prelude::*;

/// Rows of a recording and the reason why there are no more.
struct Rows(Vec<(Kind, String)>);

impl Taker for Rows {
    fn take(&mut self, event: &Record<'_>) {
        self.0.push((event.kind, event.name.to_owned()));
    }
}

fn read(bytes: &[u8]) -> (Vec<(Kind, String)>, Result<End, String>) {
    let mut rows = Rows(Vec::new());
    let end = Reader::new(bytes).map(|reader| reader.read(&mut rows));
    (rows.0, end.map_err(|error| crate::refusal::message(&error)))
}

/// Three batches of ten rows, and the end.
fn sample() -> Vec<u8> {
    let mut recorder = Recorder::new(&meta()).unwrap();
    let mut bytes = Vec::new();
    for batch in 0..3 {
        for row in 0..10 {
            let at = batch * 100 + row;
            recorder.push(&Record { at, ..full() }, &mut bytes);
        }
        recorder.flush(&mut bytes);
    }
    recorder.end(&mut bytes);
    bytes
}

#[test]
fn a_file_without_totals_says_so() {
    let (rows, end) = read(&sample());
    assert_eq!(rows.len(), 30);
    assert!(end.unwrap().cut.unwrap().contains("no totals"));
}

#[test]
fn what_is_behind_the_end_is_not_read() {
    let mut bytes = recorded(&[full(), totals()]);
    bytes.extend_from_slice(&sample());
    let (rows, end) = read(&bytes);
    assert_eq!((rows.len(), end.unwrap().cut), (1, None));
}

fn totals() -> Record<'static> {
    Record {
        args: Some("{}"),
        ..Record::new(Kind::Summary, 9, 0)
    }
}

#[test]
fn a_newer_version_names_itself_and_the_cure() {
    let text = b"gpuscope.format";
    let mut bytes = sample();
    let key = bytes.windows(text.len()).position(|window| window == text).unwrap();
    // in a flatbuffer a value stands before or behind its key; it is the only text "5" here
    let one = b"\x01\0\0\x005\0";
    let at = bytes[..key + 400]
        .windows(one.len())
        .rposition(|window| window == one)
        .unwrap();
    bytes[at + 4] = b'9';
    let said = read(&bytes).1.unwrap_err();
    assert!(
        said.contains("it has format \"9\"") && said.contains("hint: "),
        "{said}"
    );
}

#[test]
fn another_arrow_stream_is_no_recording() {
    let schema = arrow_schema::Schema::new(vec![arrow_schema::Field::new("a", arrow_schema::DataType::Int8, true)]);
    let mut writer = arrow_ipc::writer::StreamWriter::try_new(Vec::new(), &schema).unwrap();
    writer.finish().unwrap();
    let said = read(writer.get_ref()).1.unwrap_err();
    assert!(said.contains("no recording of gpuscope"), "{said}");
}

#[test]
fn lengths_that_nobody_can_mean_take_no_memory() {
    let whole = sample();
    let first = whole.windows(4).skip(8).position(|window| window == [0xff; 4]).unwrap() + 8;
    for length in [u32::MAX, 0x7fff_fff8, 1 << 25] {
        let mut bytes = whole.clone();
        bytes[first + 4..first + 8].copy_from_slice(&length.to_le_bytes());
        let (rows, end) = read(&bytes);
        assert!(rows.is_empty());
        assert!(end.unwrap().cut.unwrap().contains("damaged"));
    }
}

#[test]
fn a_packed_buffer_that_says_it_is_longer_than_any_can_be_is_not_unpacked() {
    // the length of a buffer stands before zstd's mark
    let zstd = [0x28, 0xb5, 0x2f, 0xfd];
    let mut bytes = sample();
    let first = bytes.windows(4).position(|window| window == zstd).unwrap();
    bytes[first - 8..first].copy_from_slice(&(100_i64 << 20).to_le_bytes());
    let said = read(&bytes).1.unwrap().cut.unwrap();
    assert!(said.contains("a buffer says that it has 104857600 bytes"), "{said}");
}

proptest! {
    #[test]
    fn changed_bytes_never_make_more_of_it(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let mut bytes = sample();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let (rows, end) = read(&bytes);
        prop_assert!(rows.len() <= 30);
        if let Ok(end) = end {
            prop_assert!(end.rows as usize == rows.len() && end.cut.is_some());
        }
    }

    #[test]
    fn a_number_in_the_head_of_a_message_is_not_believed(at in any::<prop::sample::Index>(), value in any::<u64>()) {
        let mut bytes = sample();
        let at = at.index(bytes.len() / 8 - 1) * 8;
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        let (rows, _) = read(&bytes);
        prop_assert!(rows.len() <= 30);
    }

    #[test]
    fn whatever_the_bytes_are_it_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..4096)) {
        let _ = read(&bytes);
    }

    #[test]
    fn cut_anywhere_it_has_its_first_batches(at in any::<prop::sample::Index>()) {
        let whole = sample();
        let (rows, end) = read(&whole[..at.index(whole.len())]);
        prop_assert!(rows.len() % 10 == 0 && rows.len() < 31);
        prop_assert!(end.map_or(rows.is_empty(), |end| end.cut.is_some()));
    }
}
