//! Rows of one process: loose ones, as they come, and packed ones, as they will stand in a file.

use crate::record::Record;
use crate::trace::columns::Columns;
use crate::trace::recorder::compressed;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, SchemaRef};
use std::time::Instant;

/// Of a row beside its texts: columns grow by doubling.
const ROW_BYTES: usize = 300;
/// Of columns without rows.
const COLUMNS_BYTES: usize = 8 << 10;

/// Rows with the texts that they refer to: to be read after the columns are known, and after any other block.
pub(super) struct Block {
    pub since: Instant,
    pub until: Instant,
    /// When the last of its rows had come, CLOCK_MONOTONIC ns.
    pub until_ns: u64,
    pub rows: u64,
    pub bytes: Vec<u8>,
}

impl Block {
    /// What it takes in memory.
    pub(super) fn size(&self) -> usize {
        size_of::<Block>() + self.bytes.len()
    }
}

/// Rows that are not packed yet.
pub(super) struct Loose {
    columns: Columns,
    since: Option<Instant>,
    bytes: usize,
}

impl Loose {
    /// None, with room for none: new columns have some for a thousand rows, more than most processes ever fill.
    pub(super) fn new(schema: &SchemaRef) -> Loose {
        let mut columns = Columns::default();
        // of no rows, and of this schema
        let emptied = columns.finish(schema);
        debug_assert!(emptied.is_ok(), "{emptied:?}");
        Loose {
            columns,
            since: None,
            bytes: 0,
        }
    }

    pub(super) fn push(&mut self, record: &Record<'_>) {
        self.since.get_or_insert_with(Instant::now);
        self.bytes += size(record);
        self.columns.push(record);
    }

    /// What they take, at most but for what the allocator adds.
    pub(super) fn bytes(&self) -> usize {
        COLUMNS_BYTES + self.bytes
    }

    /// The same; none where there are no rows.
    pub(super) fn kept(&self) -> usize {
        self.since.map_or(0, |_| self.bytes())
    }

    /// All of them as a block. `None`: there are none.
    pub(super) fn pack(&mut self, schema: &SchemaRef) -> Option<Block> {
        let since = self.since.take()?;
        self.bytes = 0;
        let rows = self.columns.rows() as u64;
        // into memory and with columns of this schema
        let packed = packed(&mut self.columns, schema);
        debug_assert!(packed.is_ok(), "{packed:?}");
        Some(Block {
            since,
            until: Instant::now(),
            until_ns: crate::clock::monotonic_ns(),
            rows,
            bytes: packed.ok()?,
        })
    }
}

/// Without what describes the columns, which stands once in each file.
fn packed(columns: &mut Columns, schema: &SchemaRef) -> Result<Vec<u8>, ArrowError> {
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), schema, compressed()?)?;
    writer.get_mut().clear();
    writer.write(&columns.finish(schema)?)?;
    let mut bytes = std::mem::take(writer.get_mut());
    bytes.shrink_to_fit();
    Ok(bytes)
}

fn size(record: &Record<'_>) -> usize {
    let optional = [record.args, record.kernel, record.error, record.stack];
    let optional = optional.into_iter().flatten().map(str::len).sum::<usize>();
    ROW_BYTES + 2 * (optional + record.name.len() + record.comm.len() + record.layer.len())
}
