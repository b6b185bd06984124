//! NVML's field values: NVLink, and the temperature of the memory.
//!
//! Each link is asked for by itself: drivers of branch 580 write over memory of the program when they are asked for
//! the sum over all links (scope `UINT_MAX`).

use super::answer::Answers;
use super::gpu::LinkError;
use crate::device::ask::Gpu;
use nvml_wrapper::error::{NvmlError, nvml_sym, nvml_try};
use nvml_wrapper_sys::bindings::{field_id, nvmlFieldValue_t};

const KIB: u64 = 1024;
/// More than any GPU has.
const MOST_LINKS: u64 = 64;
const ERRORS: [(u32, &str); 3] = [
    (field_id::NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY, "replay"),
    (field_id::NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY, "recovery"),
    (field_id::NVML_FI_DEV_NVLINK_ERROR_DL_CRC, "crc"),
];

/// (field, link or 0).
type Field = (u32, u32);

/// Payload sent and received over all links; without links none.
pub(super) fn traffic(gpu: &Gpu, answers: &mut Answers) -> (Option<u64>, Option<u64>) {
    let links = links(gpu, answers);
    if links == 0 {
        return (None, None);
    }
    let mut total = |in_kib: u32, in_bytes: u32| {
        let kib = sum(gpu, answers, in_kib, links).map(|kib| kib.saturating_mul(KIB));
        kib.or_else(|| sum(gpu, answers, in_bytes, links))
    };
    let sent = total(
        field_id::NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX,
        field_id::NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES,
    );
    let received = total(
        field_id::NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX,
        field_id::NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES,
    );
    (sent, received)
}

fn links(gpu: &Gpu, answers: &mut Answers) -> u32 {
    let links = one(gpu, answers, (field_id::NVML_FI_DEV_NVLINK_LINK_COUNT, 0));
    links.unwrap_or(0).min(MOST_LINKS) as u32
}

pub(super) fn memory_celsius(gpu: &Gpu, answers: &mut Answers) -> Option<u32> {
    let told = one(gpu, answers, (field_id::NVML_FI_DEV_MEMORY_TEMP, 0))?;
    u32::try_from(told).ok()
}

fn sum(gpu: &Gpu, answers: &mut Answers, field: u32, links: u32) -> Option<u64> {
    let fields: Vec<Field> = (0..links).map(|link| (field, link)).collect();
    let told = answers.told("NVLink", values(gpu, &fields))?;
    let told: Vec<u64> = told.into_iter().flatten().collect();
    (!told.is_empty()).then(|| told.iter().fold(0, |sum: u64, one| sum.saturating_add(*one)))
}

/// Of each link; without links none.
pub(super) fn errors(gpu: &Gpu, answers: &mut Answers) -> Vec<LinkError> {
    let links = links(gpu, answers);
    if links == 0 {
        return Vec::new();
    }
    let counters: Vec<(u32, u32, &'static str)> = (0..links)
        .flat_map(|link| ERRORS.map(|(field, kind)| (field, link, kind)))
        .collect();
    let fields: Vec<Field> = counters.iter().map(|(field, link, _)| (*field, *link)).collect();
    let told = answers.told("NVLink errors", values(gpu, &fields)).unwrap_or_default();
    let error = |((_, link, kind), count): (&(u32, u32, &'static str), Option<u64>)| {
        Some(LinkError {
            link: *link,
            kind,
            count: count?,
        })
    };
    counters.iter().zip(told).filter_map(error).collect()
}

fn one(gpu: &Gpu, answers: &mut Answers, field: Field) -> Option<u64> {
    let told = answers.told("field values", values(gpu, &[field]))?;
    told.into_iter().next().flatten()
}

/// The wrapper asks without the number of a link. A field that has no value has none here.
fn values(gpu: &Gpu, fields: &[Field]) -> Result<Vec<Option<u64>>, NvmlError> {
    let ask = nvml_sym(gpu.nvml().lib().nvmlDeviceGetFieldValues.as_ref())?;
    let blank = |(field, scope): &Field| {
        // SAFETY: a structure of numbers, for which zeros are valid
        let mut value: nvmlFieldValue_t = unsafe { std::mem::zeroed() };
        (value.fieldId, value.scopeId) = (*field, *scope);
        value
    };
    let mut values: Vec<nvmlFieldValue_t> = fields.iter().map(blank).collect();
    let count = i32::try_from(values.len()).unwrap_or(i32::MAX);
    // SAFETY: the handle is this device's, and the call fills as many structures as there are
    nvml_try(unsafe { ask(gpu.handle(), count, values.as_mut_ptr()) })?;
    Ok(values.iter().map(whole).collect())
}

fn whole(value: &nvmlFieldValue_t) -> Option<u64> {
    const DOUBLE: u32 = 0;
    const UNSIGNED: u32 = 1;
    const LONG: u32 = 2;
    const LONG_LONG: u32 = 3;
    const SIGNED_LONG_LONG: u32 = 4;
    const SIGNED: u32 = 5;
    const SHORT: u32 = 6;
    if value.nvmlReturn != 0 {
        return None;
    }
    // SAFETY: the tag says which of the numbers was written; all bytes were zero before
    unsafe {
        match value.valueType {
            DOUBLE => (value.value.dVal >= 0.0).then_some(value.value.dVal as u64),
            UNSIGNED => Some(u64::from(value.value.uiVal)),
            LONG | LONG_LONG => Some(value.value.ullVal),
            SIGNED_LONG_LONG => u64::try_from(value.value.sllVal).ok(),
            SIGNED => u64::try_from(value.value.siVal).ok(),
            SHORT => Some(u64::from(value.value.usVal)),
            _ => None,
        }
    }
}
