//! The generated skeleton of `src/bpf/calls.bpf.c`, and the proof that `src/wire.rs` mirrors it.
#![allow(clippy::all, clippy::unwrap_used, clippy::expect_used, missing_docs)]

include!(concat!(env!("OUT_DIR"), "/calls.skel.rs"));

use crate::stack::wire as site;
use crate::wire;
use std::mem::{offset_of, size_of};

const _: () = {
    assert!(size_of::<types::spec>() == size_of::<wire::Spec>());
    assert!(offset_of!(types::spec, scale) == offset_of!(wire::Spec, scale));
    assert!(offset_of!(types::spec, value) == offset_of!(wire::Spec, value));
    assert!(offset_of!(types::spec, ok) == offset_of!(wire::Spec, ok));
    assert!(offset_of!(types::spec, part) == offset_of!(wire::Spec, part));
    assert!(offset_of!(types::spec, context_move) == offset_of!(wire::Spec, context_move));
    assert!(size_of::<types::spec_launch>() == size_of::<wire::Launch>());
    assert!(offset_of!(types::spec, launch) == offset_of!(wire::Spec, launch));
    assert!(size_of::<types::spec_work>() == size_of::<wire::Work>());
    assert!(offset_of!(types::spec, work) == offset_of!(wire::Spec, work));
    assert!(size_of::<types::work_call>() == size_of::<wire::WorkCall>());
    assert!(offset_of!(types::work_call, variant) == offset_of!(wire::WorkCall, variant));
    assert!(offset_of!(types::work_call, part) == offset_of!(wire::WorkCall, part));
    assert!(size_of::<types::work_loss>() == size_of::<wire::WorkLoss>());
    assert!(size_of::<types::lane_key>() == size_of::<wire::LaneKey>());
    assert!(offset_of!(types::lane_key, tid) == offset_of!(wire::LaneKey, tid));
    assert!(size_of::<types::lane>() == size_of::<wire::Lane>());
    assert!(size_of::<types::kernel_key>() == size_of::<wire::KernelKey>());
    assert!(size_of::<types::known_kernel>() == size_of::<wire::KnownKernel>());
    assert!(offset_of!(types::known_kernel, launches) == offset_of!(wire::KnownKernel, launches));
    assert!(offset_of!(types::known_kernel, number) == offset_of!(wire::KnownKernel, number));
    assert!(size_of::<types::shape_key>() == size_of::<wire::ShapeKey>());
    assert!(size_of::<types::named_handle>() == size_of::<wire::NamedHandle>());
    assert!(size_of::<types::kernel_event>() == 32 + wire::KERNEL_NAME);
    assert!(offset_of!(types::kernel_event, length) == 28);
    assert!(size_of::<types::memory_call>() == size_of::<wire::MemoryCall>());
    assert!(offset_of!(types::memory_call, unreadable) == offset_of!(wire::MemoryCall, unreadable));
    assert!(offset_of!(types::memory_call, part) == offset_of!(wire::MemoryCall, part));
    assert!(size_of::<types::memory_loss>() == size_of::<wire::MemoryLoss>());
    assert!(offset_of!(types::spec, factor) == offset_of!(wire::Spec, factor));
    assert!(size_of::<types::probe_site>() == size_of::<wire::ProbeSite>());
    assert!(offset_of!(types::probe_site, place) == offset_of!(wire::ProbeSite, place));
    assert!(offset_of!(types::place, is_signed) == offset_of!(wire::Place, is_signed));
    assert!(size_of::<types::total_key>() == size_of::<wire::TotalKey>());
    assert!(size_of::<types::total>() == size_of::<wire::Total>());
    assert!(offset_of!(types::total, bucket) == offset_of!(wire::Total, bucket));
    assert!(size_of::<types::failure_key>() == size_of::<wire::FailureKey>());
    assert!(size_of::<types::row_counter>() == size_of::<wire::RowCounter>());
    assert!(size_of::<types::control>() == 8 * (wire::WAITS + 12));
    assert!(size_of::<types::notice>() == size_of::<wire::Notice>());
    assert!(offset_of!(types::notice, comm) == offset_of!(wire::Notice, comm));
    assert!(size_of::<types::call_event>() == wire::LARGE_BYTES);
    assert!(offset_of!(types::call_event, regs) == wire::HEADER_BYTES);
    assert!(offset_of!(types::call_event, stack) == wire::SMALL_BYTES);
    assert!(offset_of!(types::call_event, block) == wire::MEDIUM_BYTES);
    assert!(offset_of!(types::call_event, flags) == offset_of!(wire::CallHeader, flags));
    assert!(offset_of!(types::call_event, row) == offset_of!(wire::CallHeader, row));
    assert!(size_of::<types::site_event>() == site::SITE_BYTES);
    assert!(offset_of!(types::site_event, native) == site::HEADER_BYTES);
    assert!(offset_of!(types::site_event, python_count) == 14);
    assert!(offset_of!(types::site_event, python) == 16);
    assert!(offset_of!(types::site_event, id) == 24);
    assert!(size_of::<types::python_frame>() == size_of::<site::PythonFrame>());
    assert!(size_of::<types::python>() == size_of::<site::Python>());
    assert!(offset_of!(types::python, frame_bytes) == offset_of!(site::Python, frame_bytes));
    assert!(offset_of!(types::python, entry) == offset_of!(site::Python, entry));
    assert!(size_of::<types::site_counters>() == size_of::<site::SiteCounters>());
    assert!(offset_of!(types::site_counters, unsampled) == offset_of!(site::SiteCounters, unsampled));
};
