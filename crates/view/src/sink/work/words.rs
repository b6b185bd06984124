//! Words that the sections share.

use crate::catalog::{CopyKind, HostMemory};
use crate::model::work::{Certainty, HiddenKind, ProcessReport, StreamReport};
use crate::text::quantity::escaped;
use crate::wire::PER_THREAD;

/// Handles that CUDA gives to default streams; others are addresses.
const DEFAULT: [u64; 2] = [0, 1];

/// `python 1234`.
pub(crate) fn name(process: &ProcessReport) -> String {
    match process.comm.as_str() {
        "" => format!("process {}", process.pid),
        comm => format!("{} {}", escaped(comm), process.pid),
    }
}

/// `stream 0x7f10`.
pub(crate) fn stream(handle: u64) -> String {
    match handle {
        handle if DEFAULT.contains(&handle) => "default stream".to_owned(),
        PER_THREAD => "default stream of a thread".to_owned(),
        handle => format!("stream {handle:#x}"),
    }
}

/// The same of one whose thread is known.
pub(crate) fn titled(report: &StreamReport) -> String {
    match report.tid {
        Some(tid) => format!("default stream of thread {tid}"),
        None => stream(report.stream),
    }
}

/// From where to where.
pub(crate) fn direction(direction: Option<CopyKind>) -> &'static str {
    match direction {
        Some(CopyKind::HtoD) => "host → device",
        Some(CopyKind::DtoH) => "device → host",
        Some(CopyKind::DtoD) => "device → device",
        Some(CopyKind::HtoH) => "host → host",
        Some(CopyKind::PtoP) => "device → other device",
        None => "direction not known",
    }
}

/// What the host's end of a copy is.
pub(crate) fn host(host: HostMemory) -> &'static str {
    match host {
        HostMemory::Pinned => "pinned memory",
        HostMemory::Pageable => "pageable memory",
        HostMemory::Managed => "managed memory",
        HostMemory::Unknown => "host memory pinned or not",
    }
}

/// Why it waits.
pub(crate) fn hidden(kind: HiddenKind) -> &'static str {
    match kind {
        HiddenKind::Item => "small copy to the host, then a wait for it (.item())",
        HiddenKind::BlockingCopy => "copy that returns only when it is done",
        HiddenKind::PageableAsync => "asynchronous copy of pageable memory, which can wait all the same",
        HiddenKind::Free => "giving back memory, which waits for the device",
        HiddenKind::Alloc => "taking memory, which can wait for the device",
    }
}

/// `12.3 GB/s`, in powers of ten as bandwidths are.
pub(crate) fn bandwidth(bytes_per_second: f64, certainty: Certainty) -> String {
    let sign = match certainty {
        Certainty::Measured => "",
        Certainty::Bound => "≥ ",
        Certainty::Inferred => "~ ",
    };
    let units = [(1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s")];
    match units.iter().find(|(unit, _)| bytes_per_second >= *unit) {
        Some((unit, letters)) => format!("{sign}{:.1} {letters}", bytes_per_second / unit),
        None => format!("{sign}{bytes_per_second:.0} B/s"),
    }
}

/// The sizes in a bucket of powers of two: `1–2 MiB`.
pub(crate) fn sizes(bucket: usize) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    if bucket == 0 {
        return "0–1 B".to_owned();
    }
    let (power, unit) = (bucket % 10, UNITS[(bucket / 10).min(UNITS.len() - 1)]);
    format!("{}–{} {unit}", 1 << power, 2 << power)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::work::SIZE_BUCKETS;

    #[test]
    fn sizes_are_told_as_the_bucket_that_holds_them() {
        assert_eq!([0, 1, 9].map(sizes), ["0–1 B", "2–4 B", "512–1024 B"]);
        assert_eq!([10, 20, 39].map(sizes), ["1–2 KiB", "1–2 MiB", "512–1024 GiB"]);
        assert_eq!(sizes(SIZE_BUCKETS - 1), "128–256 TiB");
    }

    #[test]
    fn a_bandwidth_says_how_far_it_can_be_relied_on() {
        assert_eq!(bandwidth(12.34e9, Certainty::Measured), "12.3 GB/s");
        assert_eq!(bandwidth(3.1e6, Certainty::Bound), "≥ 3.1 MB/s");
        assert_eq!(bandwidth(999.0, Certainty::Inferred), "~ 999 B/s");
    }
}
