//! Whether a message fits its schema: what arrow-ipc would take on trust. Behind this it neither panics nor takes more
//! memory than [`LARGEST_BODY`] for a message.

use super::frame::LARGEST_BODY;
use arrow_ipc::RecordBatch;
use arrow_schema::{DataType, Schema};

/// Rows of a batch; gpuscope writes fewer.
const MOST_ROWS: i64 = 1 << 22;
/// What says how long a compressed buffer is unpacked.
const LENGTH: usize = 8;
/// Bytes that zstd can make of one: a block of 128 KiB that repeats a single byte takes four.
const TIGHTEST: usize = 32 << 10;

/// Whether all columns are of kinds that recordings have.
///
/// # Errors
/// Names the one that is not.
pub(super) fn schema(schema: &Schema) -> Result<(), String> {
    match schema
        .fields()
        .iter()
        .find(|field| buffers(field.data_type()).is_none())
    {
        None => Ok(()),
        Some(field) => Err(format!(
            "its column {:?} is of a kind that no recording has",
            field.name()
        )),
    }
}

/// Buffers of a column of that kind, by the bytes of their values: which rows have one, and the rest.
fn buffers(kind: &DataType) -> Option<&'static [usize]> {
    match kind {
        DataType::Utf8 => Some(&[1, 4, 1]),
        DataType::Boolean => Some(&[1, 1]),
        DataType::Dictionary(key, texts) if **key == DataType::Int32 && **texts == DataType::Utf8 => Some(&[1, 4]),
        DataType::Float64 => Some(&[1, 8]),
        kind if kind.is_integer() => match kind.primitive_width()? {
            1 => Some(&[1, 1]),
            2 => Some(&[1, 2]),
            4 => Some(&[1, 4]),
            _ => Some(&[1, 8]),
        },
        _ => None,
    }
}

/// Whether `batch` has rows of `schema` in `body`.
///
/// # Errors
/// What does not fit.
pub(super) fn rows(batch: RecordBatch<'_>, schema: &Schema, body: &[u8]) -> Result<(), String> {
    let kinds = schema.fields().iter().map(|field| field.data_type());
    columns(batch, kinds, body)
}

/// Whether `batch` has texts in `body`.
///
/// # Errors
/// What does not fit.
pub(super) fn texts(batch: RecordBatch<'_>, body: &[u8]) -> Result<(), String> {
    columns(batch, std::iter::once(&DataType::Utf8), body)
}

fn columns<'a>(
    batch: RecordBatch<'_>,
    kinds: impl Iterator<Item = &'a DataType> + Clone,
    body: &[u8],
) -> Result<(), String> {
    let rows = batch.length();
    if !(0..=MOST_ROWS).contains(&rows) {
        return Err(format!("a batch says that it has {rows} rows"));
    }
    let nodes = batch.nodes().ok_or("a batch has no columns")?;
    let places = batch.buffers().ok_or("a batch has no data")?;
    let widths = || kinds.clone().filter_map(buffers).flatten();
    if nodes.len() != kinds.clone().count() || places.len() != widths().count() {
        return Err(format!("a batch has {} columns", nodes.len()));
    }
    let lengths = |node: &arrow_ipc::FieldNode| node.length() == rows && (0..=rows).contains(&node.null_count());
    if !nodes.iter().all(lengths) {
        return Err("a column has another length than its batch".to_owned());
    }
    let compressed = batch.compression().is_some();
    let mut unpacked = 0_usize;
    for (place, width) in places.iter().zip(widths()) {
        let bytes = length(place, body, compressed)?;
        if bytes % width != 0 {
            return Err("a buffer ends within a value".to_owned());
        }
        unpacked = unpacked.saturating_add(bytes);
    }
    match unpacked <= LARGEST_BODY {
        true => Ok(()),
        false => Err(format!("a batch says that it has {unpacked} bytes")),
    }
}

/// Bytes of a buffer in use.
fn length(place: &arrow_ipc::Buffer, body: &[u8], compressed: bool) -> Result<usize, String> {
    let start = usize::try_from(place.offset()).ok();
    let length = usize::try_from(place.length()).ok();
    let bytes = start
        .zip(length)
        .and_then(|(start, length)| body.get(start..start.checked_add(length)?))
        .ok_or("a buffer lies beside its batch")?;
    if !compressed || bytes.is_empty() {
        return Ok(bytes.len());
    }
    let said = bytes.first_chunk::<LENGTH>().ok_or("a buffer has no length")?;
    let most = (bytes.len() - LENGTH).saturating_mul(TIGHTEST);
    match i64::from_le_bytes(*said) {
        -1 => Ok(bytes.len()),
        said => usize::try_from(said)
            .ok()
            .filter(|said| *said <= most)
            .ok_or_else(|| format!("a buffer says that it has {said} bytes")),
    }
}
