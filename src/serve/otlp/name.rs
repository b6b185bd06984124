//! What a metric and its labels are called in OpenTelemetry: by its semantic conventions where they have a name for the
//! very same thing, otherwise `gpuscope.*`.

use crate::serve::metric::{Kind, Metric};
use crate::serve::metrics::{api, device, memory, own, work};
use std::borrow::Cow;

/// A metric's name in OpenTelemetry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name {
    pub name: Cow<'static, str>,
    /// UCUM.
    pub unit: &'static str,
    pub instrument: Instrument,
    /// Attributes that tell it from other metrics of this name.
    pub attributes: &'static [(&'static str, &'static str)],
}

/// How OpenTelemetry sees the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Instrument {
    /// Since gpuscope was started.
    Counter,
    /// Since a time that nobody knows: it was counting before.
    OlderCounter,
    UpDownCounter,
    Gauge,
    Histogram,
}

/// One line of the table.
struct Row(
    &'static Metric,
    &'static str,
    &'static str,
    Instrument,
    &'static [(&'static str, &'static str)],
);

const GPU: (&str, &str) = ("hw.type", "gpu");

/// All that are not named by the rule; see [`derived`].
static ROWS: &[Row] = {
    use Instrument::{Counter, Gauge, OlderCounter, UpDownCounter};
    &[
        Row(
            &device::GPU_UTILIZATION_RATIO,
            "hw.gpu.utilization",
            "1",
            Gauge,
            &[GPU, ("hw.gpu.task", "general")],
        ),
        Row(
            &device::GPU_ENCODER_UTILIZATION_RATIO,
            "hw.gpu.utilization",
            "1",
            Gauge,
            &[GPU, ("hw.gpu.task", "encoder")],
        ),
        Row(
            &device::GPU_DECODER_UTILIZATION_RATIO,
            "hw.gpu.utilization",
            "1",
            Gauge,
            &[GPU, ("hw.gpu.task", "decoder")],
        ),
        Row(
            &device::GPU_MEMORY_TOTAL_BYTES,
            "hw.gpu.memory.limit",
            "By",
            UpDownCounter,
            &[GPU],
        ),
        Row(
            &device::GPU_MEMORY_USED_BYTES,
            "hw.gpu.memory.usage",
            "By",
            UpDownCounter,
            &[GPU],
        ),
        Row(&device::GPU_TEMPERATURE_CELSIUS, "hw.temperature", "Cel", Gauge, &[GPU]),
        Row(&device::GPU_POWER_WATTS, "hw.power", "W", Gauge, &[GPU]),
        Row(&device::GPU_ENERGY_JOULES, "hw.energy", "J", OlderCounter, &[GPU]),
        Row(&device::GPU_ECC_ERRORS, "hw.errors", "{error}", OlderCounter, &[GPU]),
        Row(
            &device::GPU_PCIE_REPLAYS,
            "gpuscope.gpu.pcie_replays",
            "{packet}",
            OlderCounter,
            &[],
        ),
        Row(
            &device::GPU_NVLINK_BYTES,
            "gpuscope.gpu.nvlink.io",
            "By",
            OlderCounter,
            &[],
        ),
        Row(
            &device::GPU_NVLINK_ERRORS,
            "gpuscope.gpu.nvlink.errors",
            "{error}",
            OlderCounter,
            &[],
        ),
        Row(
            &device::GPU_PCIE_BYTES_PER_SECOND,
            "gpuscope.gpu.pcie_throughput",
            "By/s",
            Gauge,
            &[],
        ),
        Row(
            &memory::MEMORY_ALLOCATED,
            "gpuscope.memory.allocated.count",
            "{allocation}",
            Counter,
            &[],
        ),
        Row(
            &memory::MEMORY_FREED,
            "gpuscope.memory.freed.count",
            "{allocation}",
            Counter,
            &[],
        ),
        Row(&api::API_SECONDS, "gpuscope.api.time", "s", Counter, &[]),
        Row(&memory::MEMORY_AGE_BYTES, "gpuscope.memory.age.held", "By", Gauge, &[]),
        Row(
            &memory::MEMORY_AGE_ALLOCATIONS,
            "gpuscope.memory.age.allocations",
            "{allocation}",
            Gauge,
            &[],
        ),
        Row(
            &work::LAUNCH_CALL_SECONDS,
            "gpuscope.launch.call.time",
            "s",
            Counter,
            &[],
        ),
        Row(&work::COPIES, "gpuscope.copy.count", "{copy}", Counter, &[]),
        Row(&work::COPY_BYTES, "gpuscope.copy.io", "By", Counter, &[]),
        Row(&work::COPY_CALL_SECONDS, "gpuscope.copy.call.time", "s", Counter, &[]),
        Row(&work::COPY_TIMED_BYTES, "gpuscope.copy.timed.io", "By", Counter, &[]),
        Row(&work::COPY_TIMED_SECONDS, "gpuscope.copy.timed.time", "s", Counter, &[]),
        Row(
            &work::SYNC_BLOCKED_SECONDS,
            "gpuscope.sync.blocked.time",
            "s",
            Counter,
            &[],
        ),
        Row(
            &work::HIDDEN_WAIT_SECONDS,
            "gpuscope.hidden.wait.time",
            "s",
            Counter,
            &[],
        ),
        Row(&own::PROBE_SECONDS, "gpuscope.probe.time", "s", Counter, &[]),
        Row(&own::PROCESS_CPU_SECONDS, "process.cpu.time", "s", Counter, &[]),
        Row(
            &own::PROCESS_RESIDENT_MEMORY_BYTES,
            "process.memory.usage",
            "By",
            UpDownCounter,
            &[],
        ),
        Row(
            &own::PROCESS_OPEN_FDS,
            "process.unix.file_descriptor.count",
            "{file_descriptor}",
            UpDownCounter,
            &[],
        ),
    ]
};

/// The name of `metric` in OpenTelemetry.
#[must_use]
pub(crate) fn name_of(metric: &Metric) -> Name {
    let row = ROWS.iter().find(|row| row.0.name == metric.name);
    row.map_or_else(
        || derived(metric),
        |Row(_, name, unit, instrument, attributes)| Name {
            name: Cow::Borrowed(name),
            unit,
            instrument: *instrument,
            attributes,
        },
    )
}

/// `gpuscope.` and the name without prefix, unit and suffix; its first word is a namespace.
fn derived(metric: &Metric) -> Name {
    let name = metric.name.strip_prefix("gpuscope_").unwrap_or(metric.name);
    let name = name.strip_suffix("_total").unwrap_or(name);
    let unit = metric.unit();
    let name = name.strip_suffix(unit).map_or(name, |rest| rest.trim_end_matches('_'));
    Name {
        name: Cow::Owned(format!("gpuscope.{}", name.replacen('_', ".", 1))),
        unit: ucum(unit),
        instrument: match metric.kind {
            Kind::Counter => Instrument::Counter,
            Kind::Histogram => Instrument::Histogram,
            Kind::Gauge | Kind::Info => Instrument::Gauge,
        },
        attributes: &[],
    }
}

fn ucum(unit: &str) -> &'static str {
    match unit {
        "bytes" => "By",
        "bytes_per_second" => "By/s",
        "seconds" => "s",
        "celsius" => "Cel",
        "watts" => "W",
        "joules" => "J",
        "hertz" => "Hz",
        // shares and numbers of things
        _ => "1",
    }
}

/// The attribute that a label of `metric` is; a label of an owner's likewise.
#[must_use]
pub(crate) fn attribute<'a>(metric: &Metric, label: &'a str) -> &'a str {
    let own = metric.labels.contains(&label);
    match label {
        "uuid" if own => "hw.id",
        "sensor" if own => "hw.sensor_location",
        "type" if own && metric.name == device::GPU_ECC_ERRORS.name => "error.type",
        "name" if own && metric.name == device::GPU_INFO.name => "hw.model",
        "driver" if own && metric.name == device::GPU_INFO.name => "hw.driver_version",
        "exe" if !own => "process.executable.path",
        "cmdline" if !own => "process.command_line",
        "pid" if !own => "process.pid",
        "namespace" if !own => "k8s.namespace.name",
        "pod" if !own => "k8s.pod.name",
        "container" if !own => "k8s.container.name",
        "container_id" if !own => "container.id",
        _ => label,
    }
}
