//! The columns of a recording: each is declared here, once, and is then in the schema, in what is written and in what is read.
//! docs/trace-format.md says in words what they mean.
//!
//! A new column goes to the end, before `args`, and may be missing in older files; one that changes its meaning raises
//! [`super::schema::VERSION`].

use super::held::{Held, Maybe, Name, Number, Text, Truth, Word};
use crate::catalog::{Class, CopyKind, HostMemory};
use crate::record::{Kind, Record};
use arrow_array::types::{Int64Type, UInt8Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{ArrowError, Field, SchemaRef};
use std::sync::Arc;

type I64 = Number<Int64Type>;
type U64 = Number<UInt64Type>;
type U32 = Number<UInt32Type>;
type U8 = Number<UInt8Type>;

/// `field: what it holds, name of the column`, and where it is no field of a record as it stands: `from` a record,
/// `into` a record.
macro_rules! columns {
    ($($field:ident: $held:ty, $name:literal $(, from $from:expr)? $(, into $into:tt)?;)+) => {
        /// The columns of one batch, as they are filled. Each batch has dictionaries of its own, so that any of them can
        /// be read alone.
        #[derive(Default)]
        pub struct Columns {
            rows: usize,
            $($field: <$held as Held>::Builder,)+
        }

        impl Columns {
            pub fn push(&mut self, record: &Record<'_>) {
                self.rows += 1;
                $(<$held>::append(&mut self.$field, given!(record, $field $(, $from)?));)+
            }

            /// The rows so far; begins anew.
            ///
            /// # Errors
            /// `schema` has other columns.
            pub fn finish(&mut self, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
                self.rows = 0;
                let columns = vec![$(<$held>::finish(&mut self.$field)),+];
                RecordBatch::try_new(Arc::clone(schema), columns)
            }
        }

        /// The rows of one batch, out of its columns. A file may have more columns.
        pub(super) struct Rows<'a> {
            $($field: seen!('a, $held $(, $into)?),)+
        }

        impl<'a> Rows<'a> {
            /// Those of `batch`.
            ///
            /// # Errors
            /// Names the column that is missing, or of another kind.
            pub(super) fn of(batch: &'a RecordBatch) -> Result<Rows<'a>, String> {
                Ok(Rows {
                    $($field: view!(batch, $held, $name $(, $into)?),)+
                })
            }

            /// The row of that number, which must be there.
            ///
            /// # Errors
            /// It is of a type that this version does not know.
            pub(super) fn record(&self, row: usize) -> Result<Record<'a>, String> {
                let mut record = Record::new(Kind::Call, 0, 0);
                $(put!(record, $field, self, $held, row $(, $into)?);)+
                Ok(record)
            }
        }

        pub(super) fn fields() -> Vec<Field> {
            vec![$(Field::new($name, <$held>::data_type(), <$held>::NULLABLE)),+]
        }
    };
}

macro_rules! given {
    ($record:ident, $field:ident) => {
        $record.$field
    };
    ($record:ident, $field:ident, $from:expr) => {
        $from($record)
    };
}

/// What is `into none` is not read.
macro_rules! seen {
    ($life:lifetime, $held:ty, none) => { () };
    ($life:lifetime, $held:ty $(, $into:tt)?) => { <$held as Held>::View<$life> };
}

macro_rules! view {
    ($batch:ident, $held:ty, $name:literal, none) => {
        ()
    };
    ($batch:ident, $held:ty, $name:literal $(, $into:tt)?) => {
        view::<$held>($batch, $name)?
    };
}

macro_rules! put {
    ($record:ident, $field:ident, $rows:ident, $held:ty, $row:ident) => {
        $record.$field = <$held>::found(&$rows.$field, $row)
    };
    ($record:ident, $field:ident, $rows:ident, $held:ty, $row:ident, none) => {
        let () = $rows.$field;
    };
    ($record:ident, $field:ident, $rows:ident, $held:ty, $row:ident, $into:tt) => {
        $record.$field = $into(<$held>::found(&$rows.$field, $row))?
    };
}

columns! {
    kind: Word<Kind>, "type", into known;
    at: I64, "ts_ns";
    ns: Maybe<U64>, "dur_ns";
    pid: U32, "pid";
    tid: U32, "tid";
    comm: Name, "comm";
    layer: Name, "layer";
    name: Name, "name";
    class: Word<Class>, "class", into class;
    category: Name, "category", from category, into none;
    depth: U8, "depth";
    count: U64, "count";
    since_caller: Maybe<U64>, "since_caller_ns";
    result: Maybe<I64>, "ret";
    error: Maybe<Name>, "error";
    failed: Truth, "failed";
    bytes: Maybe<U64>, "size";
    direction: Maybe<Word<CopyKind>>, "direction";
    host: Maybe<Word<HostMemory>>, "host_memory";
    blocking: Truth, "blocking";
    stream: Maybe<U64>, "stream";
    address: Maybe<U64>, "address";
    held: Maybe<U64>, "held";
    kernel: Maybe<Name>, "kernel";
    stack: Maybe<Name>, "stack";
    args: Maybe<Text>, "args";
}

impl Columns {
    pub fn rows(&self) -> usize {
        self.rows
    }
}

fn known(kind: Option<Kind>) -> Result<Kind, String> {
    kind.ok_or_else(|| "a row is of an unknown type".to_owned())
}

/// Of a newer catalogue.
fn class(class: Option<Class>) -> Result<Class, String> {
    Ok(class.unwrap_or(Class::Other))
}

fn category(record: &Record<'_>) -> &'static str {
    record.class.category()
}

fn view<'a, H: Held>(batch: &'a RecordBatch, name: &str) -> Result<H::View<'a>, String> {
    let column = batch
        .column_by_name(name)
        .ok_or_else(|| format!("it has no column {name}"))?;
    H::view(column.as_ref() as &dyn Array).ok_or_else(|| format!("its column {name} is of another kind"))
}
