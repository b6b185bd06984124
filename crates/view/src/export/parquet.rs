//! Parquet: the columns of a recording, and `time` and `host` beside them, so that files of many machines can be
//! read as one.

use crate::record::{Encoder, Ending, Meta, Record};
use crate::text::quantity::date;
use crate::trace::columns::Columns;
use crate::trace::schema;
use ::parquet::arrow::ArrowWriter;
use ::parquet::basic::Compression;
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::WriterProperties;
use arrow_array::builder::{StringDictionaryBuilder, TimestampNanosecondBuilder};
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rows that become columns at once.
const BATCH_ROWS: usize = 1 << 16;
/// Rows that a reader can skip at once by their smallest and largest values.
const GROUP_ROWS: usize = 1 << 20;
const UTC: &str = "UTC";
const DAY_NS: i128 = 86_400_000_000_000;
/// A trace that spans more is one whose clock was wrong.
const MOST_DAYS: usize = 400;

/// Writes one file.
#[derive(Default)]
pub struct Parquet {
    file: Option<FileRows>,
    last: i64,
    failure: Option<String>,
}

impl Encoder for Parquet {
    fn start(&mut self, meta: &Meta, _out: &mut Vec<u8>) {
        self.file = self.checked(FileRows::new(meta, true));
    }

    fn take(&mut self, event: &Record<'_>, out: &mut Vec<u8>) {
        self.last = self.last.max(event.end());
        let taken = self.file.as_mut().map_or(Ok(()), |file| file.take(event, out));
        self.checked(taken);
    }

    fn finish(&mut self, ending: &Ending<'_>, out: &mut Vec<u8>) {
        if let Some(totals) = ending.totals(self.last) {
            self.take(&totals, out);
        }
        let ended = self.file.take().map_or(Ok(()), |file| file.end(ending, out));
        self.checked(ended);
    }

    fn failure(&self) -> Option<String> {
        self.failure.clone()
    }
}

impl Parquet {
    fn checked<T>(&mut self, what: Result<T, ParquetError>) -> Option<T> {
        what.map_err(|error| self.failure.get_or_insert(error.to_string()).len())
            .ok()
    }
}

/// Writes the files of a folder, one for each day: `host=NAME/date=YYYY-MM-DD/trace_START.parquet`.
pub struct Days {
    meta: Meta,
    files: BTreeMap<i64, (FileRows, Vec<u8>)>,
    last: i64,
    failure: Option<String>,
}

impl Days {
    /// Of the trace that `meta` describes.
    #[must_use]
    pub fn new(meta: &Meta) -> Days {
        Days {
            meta: meta.clone(),
            files: BTreeMap::new(),
            last: 0,
            failure: None,
        }
    }

    /// Takes a row. Gives the path of a file within the folder to `write`, and what belongs to its end.
    pub fn take(&mut self, event: &Record<'_>, write: &mut dyn FnMut(&str, &[u8])) {
        self.last = self.last.max(event.end());
        let taken = self.try_take(event, write);
        if let Err(why) = taken {
            self.failure.get_or_insert(why);
        }
    }

    fn try_take(&mut self, event: &Record<'_>, write: &mut dyn FnMut(&str, &[u8])) -> Result<(), String> {
        let day = i64::try_from(unix_ns(&self.meta, event.at).div_euclid(DAY_NS)).unwrap_or(0);
        if !self.files.contains_key(&day) {
            if self.files.len() >= MOST_DAYS {
                return Err(format!("its times span more than {MOST_DAYS} days"));
            }
            let rows = FileRows::new(&self.meta, false).map_err(|error| error.to_string())?;
            self.files.insert(day, (rows, Vec::new()));
        }
        if let Some((rows, bytes)) = self.files.get_mut(&day) {
            rows.take(event, bytes).map_err(|error| error.to_string())?;
            if !bytes.is_empty() {
                write(&path(&self.meta, day), bytes);
                bytes.clear();
            }
        }
        Ok(())
    }

    /// Ends all files.
    ///
    /// # Errors
    /// What went wrong.
    pub fn end(mut self, ending: &Ending<'_>, write: &mut dyn FnMut(&str, &[u8])) -> Result<(), String> {
        if let Some(totals) = ending.totals(self.last) {
            self.take(&totals, write);
        }
        for (day, (rows, mut bytes)) in std::mem::take(&mut self.files) {
            rows.end(ending, &mut bytes).map_err(|error| error.to_string())?;
            write(&path(&self.meta, day), &bytes);
        }
        self.failure.map_or(Ok(()), Err)
    }
}

/// Rows of one file.
struct FileRows {
    columns: Columns,
    times: TimestampNanosecondBuilder,
    recorded: SchemaRef,
    schema: SchemaRef,
    meta: Meta,
    writer: ArrowWriter<Vec<u8>>,
    /// Whether the host is a column: a folder has it in its name.
    host: bool,
}

impl FileRows {
    fn new(meta: &Meta, host: bool) -> Result<FileRows, ParquetError> {
        let recorded = schema::schema(meta);
        let schema = Arc::new(with_more(&recorded, host));
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(Default::default()))
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .build();
        Ok(FileRows {
            columns: Columns::default(),
            times: times(),
            writer: ArrowWriter::try_new(Vec::new(), Arc::clone(&schema), Some(properties))?,
            recorded: Arc::new(recorded),
            schema,
            meta: meta.clone(),
            host,
        })
    }

    fn take(&mut self, event: &Record<'_>, out: &mut Vec<u8>) -> Result<(), ParquetError> {
        self.columns.push(event);
        let time = unix_ns(&self.meta, event.at);
        self.times.append_value(i64::try_from(time).unwrap_or(i64::MAX));
        match self.columns.rows() >= BATCH_ROWS {
            true => self.write(out),
            false => Ok(()),
        }
    }

    fn write(&mut self, out: &mut Vec<u8>) -> Result<(), ParquetError> {
        let rows = self.columns.rows();
        let batch = self.columns.finish(&self.recorded)?;
        let mut columns = batch.columns().to_vec();
        columns.push(Arc::new(self.times.finish()));
        if self.host {
            columns.push(hosts(&self.meta.host, rows));
        }
        self.writer
            .write(&RecordBatch::try_new(Arc::clone(&self.schema), columns)?)?;
        out.append(self.writer.inner_mut());
        Ok(())
    }

    fn end(mut self, ending: &Ending<'_>, out: &mut Vec<u8>) -> Result<(), ParquetError> {
        self.write(out)?;
        if let Some(why) = ending.cut {
            let cut = KeyValue::new("gpuscope.cut".to_owned(), why.to_owned());
            self.writer.append_key_value_metadata(cut);
        }
        self.writer.finish()?;
        out.append(self.writer.inner_mut());
        Ok(())
    }
}

fn with_more(recorded: &Schema, host: bool) -> Schema {
    let time = DataType::Timestamp(TimeUnit::Nanosecond, Some(UTC.into()));
    let words = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let mut fields: Vec<Field> = recorded.fields().iter().map(|field| field.as_ref().clone()).collect();
    fields.push(Field::new("time", time, false));
    if host {
        fields.push(Field::new("host", words, false));
    }
    Schema::new_with_metadata(fields, recorded.metadata().clone())
}

fn times() -> TimestampNanosecondBuilder {
    TimestampNanosecondBuilder::new().with_timezone(UTC)
}

fn hosts(host: &str, rows: usize) -> ArrayRef {
    let mut hosts = StringDictionaryBuilder::<Int32Type>::new();
    hosts.append_values(host, rows);
    Arc::new(hosts.finish())
}

fn unix_ns(meta: &Meta, at: i64) -> i128 {
    i128::from(meta.clock.start_unix_ns) + i128::from(at)
}

/// Within the folder; the name of a host may hold anything.
fn path(meta: &Meta, day: i64) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let mut host = String::new();
    for (index, byte) in meta.host.bytes().enumerate() {
        match plain(byte) || byte == b'.' && index > 0 {
            true => host.push(byte as char),
            false => host.push_str(&format!("%{byte:02X}")),
        }
    }
    let host = if host.is_empty() { "unknown" } else { &host };
    let start = meta.clock.start_unix_ns;
    format!("host={host}/date={}/trace_{start}.parquet", date(day))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::sample;
    use crate::record::Kind;
    use ::parquet::file::reader::{FileReader, SerializedFileReader};
    use std::io::Write;

    fn rows_of(bytes: Vec<u8>) -> Vec<String> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let rows = reader.get_row_iter(None).unwrap();
        rows.map(|row| row.unwrap().to_string()).collect()
    }

    #[test]
    fn parquet_rows() {
        insta::assert_snapshot!(rows_of(sample::bytes(&mut Parquet::default())).join("\n"));
    }

    #[test]
    fn each_day_has_its_file() {
        let meta = sample::meta();
        let mut files = BTreeMap::<String, Vec<u8>>::new();
        let mut write = |path: &str, bytes: &[u8]| files.entry(path.to_owned()).or_default().extend_from_slice(bytes);
        let mut days = Days::new(&meta);
        for hours in [0, 1, 2, 30] {
            days.take(&Record::new(Kind::Idle, hours * 3_600_000_000_000, 7), &mut write);
        }
        days.end(&Ending::default(), &mut write).unwrap();
        let seen: Vec<(String, usize)> = files
            .into_iter()
            .map(|(path, bytes)| (path, rows_of(bytes).len()))
            .collect();
        let file = |date| format!("host=node-7/date={date}/trace_1700000000000000000.parquet");
        assert_eq!(
            seen,
            [
                (file("2023-11-14"), 2),
                (file("2023-11-15"), 1),
                (file("2023-11-16"), 1)
            ]
        );
    }

    #[test]
    fn the_name_of_a_host_leads_nowhere_else() {
        let meta = Meta {
            host: "../a b".to_owned(),
            ..sample::meta()
        };
        assert!(path(&meta, 0).starts_with("host=%2E.%2Fa%20b/date=1970-01-01/"));
    }
}
