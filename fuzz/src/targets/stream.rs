//! A valid Arrow stream that calls itself a recording: columns of other kinds, with other values, missing, twice and in
//! another order, other dictionaries and other metadata; then words of it replaced.

use crate::Numbers;
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int8Array, Int32Array, Int64Array, NullArray,
    RecordBatch, RecordBatchOptions, StringArray, UInt8Array, UInt32Array, UInt64Array, new_null_array,
};
use arrow_ipc::CompressionType;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Field, Schema};
use gpuscope::record::{Record, Taker};
use gpuscope::trace::Reader;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

/// Counts rows, and looks at all of each.
struct Rows(u64);

impl Taker for Rows {
    fn take(&mut self, event: &Record<'_>) {
        self.0 += 1;
        std::hint::black_box(format!("{event:?}"));
    }
}

/// The first batch of a recording that is one.
static WHOLE: LazyLock<RecordBatch> = LazyLock::new(|| {
    let bytes = super::recording::whole();
    let mut reader = StreamReader::try_new(bytes, None).expect("an Arrow stream");
    reader.next().expect("a batch").expect("a batch")
});

const WORDS: [&str; 13] = [
    "userspace",
    "kernel",
    "process",
    "snapshot",
    "summary",
    "sample",
    "driver",
    "alloc",
    "HtoD",
    "pinned",
    "",
    "{}",
    "\u{1b}",
];
const KEYS: [&str; 6] = [
    "gpuscope.format",
    "gpuscope.piece",
    "gpuscope.covers_from_ns",
    "gpuscope.start_monotonic_ns",
    "gpuscope.command",
    "gpuscope.host",
];
const VALUES: [&str; 8] = [
    "1",
    "0",
    "part",
    "dump",
    "-9223372036854775808",
    "18446744073709551615",
    "[\"a\"]",
    "",
];

/// What is written.
struct Draft {
    columns: Vec<(Field, ArrayRef)>,
    metadata: HashMap<String, String>,
}

impl Draft {
    fn of(batch: &RecordBatch) -> Draft {
        let schema = batch.schema();
        let fields = schema.fields().iter().map(|field| field.as_ref().clone());
        Draft {
            columns: fields.zip(batch.columns().iter().cloned()).collect(),
            metadata: schema.metadata().clone().into(),
        }
    }

    fn change(&mut self, from: &mut Numbers<'_>) {
        let (what, column) = (from.byte(), usize::from(from.byte()) % self.columns.len().max(1));
        match what % 8 {
            _ if self.columns.is_empty() => {}
            0 => drop(self.columns.remove(column)),
            1 => self.columns.push(self.columns[column].clone()),
            2 => {
                let other = usize::from(from.byte()) % self.columns.len();
                self.columns.swap(column, other);
            }
            3 => drop(
                self.metadata
                    .insert(from.of(&KEYS).to_owned(), from.of(&VALUES).to_owned()),
            ),
            4 => drop(self.metadata.remove(from.of(&KEYS))),
            _ => self.replace(column, from),
        }
    }

    /// Other values, of the column's own kind or of another.
    fn replace(&mut self, column: usize, from: &mut Numbers<'_>) {
        let (field, array) = &mut self.columns[column];
        let kind = from.byte();
        let kind = if kind < 128 { of_type(field.data_type()) } else { kind };
        *array = array_of(kind, array.len(), from);
        let has_none = array.null_count() > 0;
        *field = Field::new(field.name(), array.data_type().clone(), has_none || kind & 1 == 0);
    }

    fn written(self, compressed: bool) -> Option<Vec<u8>> {
        let rows = self.columns.first().map_or(0, |(_, array)| array.len());
        let (fields, columns): (Vec<Field>, Vec<ArrayRef>) = self.columns.into_iter().unzip();
        let schema = Arc::new(Schema::new_with_metadata(fields, self.metadata));
        let how = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), columns, &how).ok()?;
        let packed = compressed.then_some(CompressionType::ZSTD);
        let options = IpcWriteOptions::default().try_with_compression(packed).ok()?;
        let mut writer = StreamWriter::try_new_with_options(Vec::new(), &schema, options).ok()?;
        writer.write(&batch).ok()?;
        writer.finish().ok()?;
        writer.into_inner().ok()
    }
}

/// Which of [`array_of`] makes a column of that type.
fn of_type(kind: &DataType) -> u8 {
    match kind {
        DataType::Dictionary(..) => 0,
        DataType::Int64 => 1,
        DataType::UInt64 => 2,
        DataType::UInt32 => 3,
        DataType::UInt8 => 4,
        DataType::Boolean => 5,
        _ => 6,
    }
}

fn array_of(kind: u8, rows: usize, from: &mut Numbers<'_>) -> ArrayRef {
    let none = from.byte();
    let mut numbers = || -> Vec<Option<u64>> {
        let mut next = |row: usize| Some(from.number()).filter(|_| none < 128 || row % 3 > 0);
        (0..rows).map(&mut next).collect()
    };
    match kind % 14 {
        0 => {
            let keys = Int32Array::from_iter(numbers().into_iter().map(|key| Some(key? as i32 & 15)));
            let texts: Vec<&str> = (0..16).map(|word| WORDS[word % WORDS.len()]).collect();
            let texts: ArrayRef = Arc::new(StringArray::from(texts));
            Arc::new(DictionaryArray::<Int32Type>::try_new(keys, texts).expect("keys that there are"))
        }
        1 => Arc::new(Int64Array::from_iter(
            numbers().into_iter().map(|value| value.map(u64::cast_signed)),
        )),
        2 => Arc::new(UInt64Array::from_iter(numbers())),
        3 => Arc::new(UInt32Array::from_iter(
            numbers().into_iter().map(|value| value.map(|value| value as u32)),
        )),
        4 => Arc::new(UInt8Array::from_iter(
            numbers().into_iter().map(|value| value.map(|value| value as u8)),
        )),
        5 => Arc::new(BooleanArray::from_iter(
            numbers().into_iter().map(|value| value.map(|value| value & 1 != 0)),
        )),
        6 | 7 => Arc::new(StringArray::from_iter(
            numbers()
                .into_iter()
                .map(|value| Some(WORDS[value? as usize % WORDS.len()])),
        )),
        8 => Arc::new(Int8Array::from_iter(
            numbers().into_iter().map(|value| value.map(|value| value as i8)),
        )),
        9 => Arc::new(Float64Array::from_iter(
            numbers().into_iter().map(|value| value.map(f64::from_bits)),
        )),
        10 => Arc::new(NullArray::new(rows)),
        kind => new_null_array(&nested(kind), rows),
    }
}

fn nested(kind: u8) -> DataType {
    let item = |kind| Arc::new(Field::new("item", kind, true));
    match kind {
        11 => DataType::List(item(DataType::Utf8)),
        12 => DataType::FixedSizeBinary(3),
        _ => DataType::Struct(vec![item(DataType::Int64)].into()),
    }
}

fn patch(bytes: &mut [u8], from: &mut Numbers<'_>) {
    while from.0.len() >= 6 {
        let at = usize::from(u16::from_le_bytes([from.byte(), from.byte()])) * 4;
        let value = (from.number() as u32).to_le_bytes();
        if let Some(word) = bytes.get_mut(at..at + 4) {
            word.copy_from_slice(&value);
        }
    }
}

pub fn run(input: &[u8]) {
    let Some((&[how, changes], rest)) = input.split_first_chunk() else {
        return;
    };
    let mut from = Numbers(rest);
    let mut draft = Draft::of(&WHOLE);
    (0..changes % 8).for_each(|_| draft.change(&mut from));
    let Some(mut bytes) = draft.written(how & 1 != 0) else {
        return;
    };
    if how & 2 != 0 {
        patch(&mut bytes, &mut from);
    }
    let mut rows = Rows(0);
    let Ok(reader) = Reader::new(&bytes[..]) else { return };
    let end = reader.read(&mut rows);
    assert_eq!(end.rows, rows.0);
    assert!(end.all_rows <= WHOLE.num_rows() as u64);
}
