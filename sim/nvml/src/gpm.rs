//! GPU performance monitoring: values by `gpm.METRIC` or, of a MIG device, `gpm.METRIC.INSTANCE`; `gpm 0` takes it
//! from a device.

use crate::device::at;
use crate::{INVALID_ARGUMENT, NOT_SUPPORTED, SUCCESS, mig, nvml, put, state};

const MOST: usize = 210;
/// In percent, or MiB/s.
const DEFAULT: f64 = 12.5;

/// Where a sample was taken; nothing before.
#[derive(Default)]
pub struct Sample {
    place: Option<(usize, Option<u32>)>,
}

/// `nvmlGpmSupport_t`.
#[repr(C)]
pub struct Support {
    version: u32,
    is_supported: u32,
}

/// `nvmlGpmMetric_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Metric {
    id: u32,
    code: u32,
    value: f64,
    names: [usize; 3],
}

/// `nvmlGpmMetricsGet_t`.
#[repr(C)]
pub struct Request {
    version: u32,
    count: u32,
    before: *const Sample,
    after: *const Sample,
    metrics: [Metric; MOST],
}

fn has(device: usize) -> bool {
    state::number(device, "gpm", 1) == Ok(1)
}

fn answer(metric: &mut Metric, device: usize, instance: Option<u32>) {
    let part = instance.map_or_else(String::new, |instance| format!(".{instance}"));
    match state::fraction(device, &format!("gpm.{}{part}", metric.id), DEFAULT) {
        Ok(value) => (metric.value, metric.code) = (value, SUCCESS),
        Err(code) => metric.code = code,
    }
}

unsafe fn take(sample: *mut Sample, device: usize, instance: Option<u32>) -> u32 {
    if !has(device) || mig::parts(device).is_some() != instance.is_some() {
        return NOT_SUPPORTED;
    }
    // SAFETY: null, or a sample that `nvmlGpmSampleAlloc` gave.
    match unsafe { sample.as_mut() } {
        Some(sample) => sample.place = Some((device, instance)),
        None => return INVALID_ARGUMENT,
    }
    SUCCESS
}

unsafe fn metrics(request: *mut Request) -> u32 {
    // SAFETY: null, or a request of the caller with two samples.
    unsafe {
        let Some(request) = request.as_mut() else {
            return INVALID_ARGUMENT;
        };
        let (Some(before), Some(after)) = (request.before.as_ref(), request.after.as_ref()) else {
            return INVALID_ARGUMENT;
        };
        let Some((device, instance)) = after.place.filter(|place| before.place == Some(*place)) else {
            return INVALID_ARGUMENT;
        };
        let count = (request.count as usize).min(MOST);
        request.metrics[..count]
            .iter_mut()
            .for_each(|metric| answer(metric, device, instance));
    }
    SUCCESS
}

nvml! {
    fn nvmlGpmSampleAlloc(place: *mut usize) { put(place, Box::into_raw(Box::<Sample>::default()) as usize) }
    fn nvmlGpmSampleFree(sample: *mut Sample) {
        if sample.is_null() { return INVALID_ARGUMENT; }
        drop(Box::from_raw(sample));
        SUCCESS
    }
    fn nvmlGpmQueryDeviceSupport(handle: usize, place: *mut Support) {
        let device = at!(handle);
        if place.is_null() { return INVALID_ARGUMENT; }
        put(place, Support { version: (*place).version, is_supported: u32::from(has(device)) })
    }
    fn nvmlGpmSampleGet(handle: usize, sample: *mut Sample) { let device = at!(handle); take(sample, device, None) }
    fn nvmlGpmMigSampleGet(handle: usize, instance: u32, sample: *mut Sample) { let device = at!(handle); take(sample, device, Some(instance)) }
    fn nvmlGpmMetricsGet(request: *mut Request) { metrics(request) }
}
