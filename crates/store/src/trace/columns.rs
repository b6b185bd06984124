//! The columns of one batch, as they are filled.

use super::schema::{ARGS, COLUMNS};
use crate::record::Record;
use arrow_array::builder::{
    BooleanBuilder, Int64Builder, StringBuilder, StringDictionaryBuilder, UInt8Builder, UInt32Builder, UInt64Builder,
};
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, SchemaRef};
use std::sync::Arc;

type Names = StringDictionaryBuilder<Int32Type>;

/// The columns of one batch. Each batch has dictionaries of its own, so that any of them can be read alone.
#[derive(Default)]
pub struct Columns {
    rows: usize,
    kind: Names,
    at: Int64Builder,
    ns: UInt64Builder,
    pid: UInt32Builder,
    tid: UInt32Builder,
    comm: Names,
    layer: Names,
    name: Names,
    class: Names,
    category: Names,
    depth: UInt8Builder,
    count: UInt64Builder,
    since_caller: UInt64Builder,
    result: Int64Builder,
    error: Names,
    failed: BooleanBuilder,
    bytes: UInt64Builder,
    direction: Names,
    host: Names,
    blocking: BooleanBuilder,
    stream: UInt64Builder,
    address: UInt64Builder,
    held: UInt64Builder,
    kernel: Names,
    stack: Names,
    args: StringBuilder,
}

impl Columns {
    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn push(&mut self, event: &Record<'_>) {
        self.rows += 1;
        self.kind.append_value(event.kind.name());
        self.at.append_value(event.at);
        self.ns.append_option(event.ns);
        self.pid.append_value(event.pid);
        self.tid.append_value(event.tid);
        self.comm.append_value(event.comm);
        self.layer.append_value(event.layer);
        self.name.append_value(event.name);
        self.class.append_value(event.class.name());
        self.category.append_value(event.class.category());
        self.depth.append_value(event.depth);
        self.count.append_value(event.count);
        self.since_caller.append_option(event.since_caller);
        self.result.append_option(event.result);
        self.error.append_option(event.error);
        self.failed.append_value(event.failed);
        self.bytes.append_option(event.bytes);
        self.direction
            .append_option(event.direction.map(|direction| direction.name()));
        self.host.append_option(event.host.map(|host| host.name()));
        self.blocking.append_value(event.blocking);
        self.stream.append_option(event.stream);
        self.address.append_option(event.address);
        self.held.append_option(event.held);
        self.kernel.append_option(event.kernel);
        self.stack.append_option(event.stack);
        self.args.append_option(event.args);
    }

    /// The rows so far; begins anew.
    pub fn finish(&mut self, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
        self.rows = 0;
        let columns: [ArrayRef; COLUMNS.len() + 1] = [
            Arc::new(self.kind.finish()),
            Arc::new(self.at.finish()),
            Arc::new(self.ns.finish()),
            Arc::new(self.pid.finish()),
            Arc::new(self.tid.finish()),
            Arc::new(self.comm.finish()),
            Arc::new(self.layer.finish()),
            Arc::new(self.name.finish()),
            Arc::new(self.class.finish()),
            Arc::new(self.category.finish()),
            Arc::new(self.depth.finish()),
            Arc::new(self.count.finish()),
            Arc::new(self.since_caller.finish()),
            Arc::new(self.result.finish()),
            Arc::new(self.error.finish()),
            Arc::new(self.failed.finish()),
            Arc::new(self.bytes.finish()),
            Arc::new(self.direction.finish()),
            Arc::new(self.host.finish()),
            Arc::new(self.blocking.finish()),
            Arc::new(self.stream.finish()),
            Arc::new(self.address.finish()),
            Arc::new(self.held.finish()),
            Arc::new(self.kernel.finish()),
            Arc::new(self.stack.finish()),
            Arc::new(self.args.finish()),
        ];
        debug_assert_eq!(schema.field(columns.len() - 1).name(), ARGS);
        RecordBatch::try_new(Arc::clone(schema), columns.to_vec())
    }
}
