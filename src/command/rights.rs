//! What commands give up once they need it no more, started as root or not. The exporter's is its own.

use crate::confine::{self, Capability, Keep};
use crate::tracer::Tracer;

/// To attach to what comes and look into it; to write where the user may; to hand signals on to a command of another user,
/// and to do for a user what is that user's. And where a probe is a perf event of its own: kernels that restrict these want
/// the last but one, old ones the last.
const SINGLE_EVENTS: &[Capability] = &[
    Capability::Bpf,
    Capability::Perfmon,
    Capability::SysPtrace,
    Capability::DacReadSearch,
    Capability::Lease,
    Capability::CheckpointRestore,
    Capability::DacOverride,
    Capability::Chown,
    Capability::Fowner,
    Capability::Kill,
    Capability::SetUid,
    Capability::SetGid,
    Capability::SysAdmin,
    Capability::SysResource,
];
const TRACING: &[Capability] = SINGLE_EVENTS.split_at(SINGLE_EVENTS.len() - 2).0;
/// To make files for whoever asks.
#[cfg(any(feature = "record", feature = "serve"))]
const FILES: &[Capability] = &[
    Capability::DacReadSearch,
    Capability::DacOverride,
    Capability::Chown,
    Capability::Fowner,
    Capability::SetUid,
    Capability::SetGid,
];

/// Once everything is attached that is there, and the command, if there is one, is started: it keeps what it had.
///
/// Without CAP_SYS_PTRACE the kernel shows only programs that have no capability beyond ours. What root starts in a container
/// has all those of the container.
pub(super) fn after_attaching(tracer: &Tracer) {
    confine::this_thread(match (Capability::SysPtrace.is_held(), tracer.makes_single_events()) {
        (false, _) => Keep::All,
        (true, true) => Keep::Capabilities(SINGLE_EVENTS),
        (true, false) => Keep::Capabilities(TRACING),
    });
}

/// Once all is open that will be read: of files that anybody may have written. What is made of them
/// goes to descriptors that are there, and to who makes files.
pub(super) fn for_reading() {
    confine::this_thread(Keep::DescriptorsAlone);
}

/// Of the process that makes files of what others read.
#[cfg(any(feature = "record", feature = "serve"))]
pub(super) fn for_files() {
    confine::this_thread(Keep::Capabilities(FILES));
}
