//! The rows of one batch, out of its columns.

use crate::catalog::{Class, CopyKind, HostMemory};
use crate::record::{Kind, Record};
use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Int32Type};
use arrow_array::{
    Array, BooleanArray, Int32Array, Int64Array, PrimitiveArray, RecordBatch, StringArray, UInt8Array, UInt32Array,
    UInt64Array,
};

/// The columns that are read; a file may have more.
pub(super) struct Columns<'a> {
    kind: Words<'a, Kind>,
    at: &'a Int64Array,
    ns: &'a UInt64Array,
    pid: &'a UInt32Array,
    tid: &'a UInt32Array,
    comm: Names<'a>,
    layer: Names<'a>,
    name: Names<'a>,
    class: Words<'a, Class>,
    depth: &'a UInt8Array,
    count: &'a UInt64Array,
    since_caller: &'a UInt64Array,
    result: &'a Int64Array,
    error: Names<'a>,
    failed: &'a BooleanArray,
    bytes: &'a UInt64Array,
    direction: Words<'a, CopyKind>,
    host: Words<'a, HostMemory>,
    blocking: &'a BooleanArray,
    stream: &'a UInt64Array,
    address: &'a UInt64Array,
    held: &'a UInt64Array,
    kernel: Names<'a>,
    stack: Names<'a>,
    args: &'a StringArray,
}

impl<'a> Columns<'a> {
    /// Those of `batch`.
    ///
    /// # Errors
    /// Names the one that is missing, or of another kind.
    pub(super) fn of(batch: &'a RecordBatch) -> Result<Columns<'a>, String> {
        Ok(Columns {
            kind: words(batch, "type", Kind::from_name)?,
            at: numbers(batch, "ts_ns")?,
            ns: numbers(batch, "dur_ns")?,
            pid: numbers(batch, "pid")?,
            tid: numbers(batch, "tid")?,
            comm: names(batch, "comm")?,
            layer: names(batch, "layer")?,
            name: names(batch, "name")?,
            class: words(batch, "class", Class::from_name)?,
            depth: numbers(batch, "depth")?,
            count: numbers(batch, "count")?,
            since_caller: numbers(batch, "since_caller_ns")?,
            result: numbers(batch, "ret")?,
            error: names(batch, "error")?,
            failed: truths(batch, "failed")?,
            bytes: numbers(batch, "size")?,
            direction: words(batch, "direction", direction)?,
            host: words(batch, "host_memory", HostMemory::from_name)?,
            blocking: truths(batch, "blocking")?,
            stream: numbers(batch, "stream")?,
            address: numbers(batch, "address")?,
            held: numbers(batch, "held")?,
            kernel: names(batch, "kernel")?,
            stack: names(batch, "stack")?,
            args: column(batch, "args")?.as_string_opt().ok_or_else(|| odd("args"))?,
        })
    }

    /// The row of that number, which must be there.
    ///
    /// # Errors
    /// It is of a type that this version does not know.
    pub(super) fn event(&self, row: usize) -> Result<Record<'a>, String> {
        let kind = self.kind.at(row).ok_or("a row is of an unknown type")?;
        Ok(Record {
            ns: value(self.ns, row),
            tid: self.tid.value(row),
            comm: self.comm.at(row).unwrap_or_default(),
            layer: self.layer.at(row).unwrap_or_default(),
            name: self.name.at(row).unwrap_or_default(),
            class: self.class.at(row).unwrap_or(Class::Other),
            depth: self.depth.value(row),
            count: self.count.value(row),
            since_caller: value(self.since_caller, row),
            result: value(self.result, row),
            error: self.error.at(row),
            failed: self.failed.value(row),
            bytes: value(self.bytes, row),
            direction: self.direction.at(row),
            host: self.host.at(row),
            blocking: self.blocking.value(row),
            stream: value(self.stream, row),
            address: value(self.address, row),
            held: value(self.held, row),
            kernel: self.kernel.at(row),
            stack: self.stack.at(row),
            args: self.args.is_valid(row).then(|| self.args.value(row)),
            ..Record::new(kind, self.at.value(row), self.pid.value(row))
        })
    }
}

/// What a dictionary stands for, and which of that a row has: each entry is looked at once.
struct Words<'a, T> {
    keys: &'a Int32Array,
    entries: Vec<Option<T>>,
}

type Names<'a> = Words<'a, &'a str>;

impl<T: Copy> Words<'_, T> {
    fn at(&self, row: usize) -> Option<T> {
        let key = usize::try_from(value(self.keys, row)?).ok()?;
        self.entries.get(key).copied().flatten()
    }
}

fn value<T: ArrowPrimitiveType>(column: &PrimitiveArray<T>, row: usize) -> Option<T::Native> {
    column.is_valid(row).then(|| column.value(row))
}

fn direction(name: &str) -> Option<CopyKind> {
    CopyKind::ALL.into_iter().find(|direction| direction.name() == name)
}

fn column<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a dyn Array, String> {
    let column = batch.column_by_name(name);
    column
        .map(AsRef::as_ref)
        .ok_or_else(|| format!("it has no column {name}"))
}

fn numbers<'a, T: ArrowPrimitiveType>(batch: &'a RecordBatch, name: &str) -> Result<&'a PrimitiveArray<T>, String> {
    column(batch, name)?.as_primitive_opt().ok_or_else(|| odd(name))
}

fn truths<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a BooleanArray, String> {
    column(batch, name)?.as_boolean_opt().ok_or_else(|| odd(name))
}

fn names<'a>(batch: &'a RecordBatch, name: &str) -> Result<Names<'a>, String> {
    words(batch, name, Some)
}

fn words<'a, T>(
    batch: &'a RecordBatch,
    name: &str,
    understand: impl Fn(&'a str) -> Option<T>,
) -> Result<Words<'a, T>, String> {
    let dictionary = column(batch, name)?
        .as_dictionary_opt::<Int32Type>()
        .ok_or_else(|| odd(name))?;
    let texts: &StringArray = dictionary.values().as_string_opt().ok_or_else(|| odd(name))?;
    Ok(Words {
        keys: dictionary.keys(),
        entries: texts.iter().map(|text| text.and_then(&understand)).collect(),
    })
}

fn odd(name: &str) -> String {
    format!("its column {name} is of another kind")
}
