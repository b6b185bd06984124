//! Made of `crates/collect/src/bpf/wire.h` and `site.h` by `scripts/wire.py`: change these, and run this.

use super::types;
use crate::stack::wire as site;
use crate::wire;

mirrored! {
    spec_read => wire::Read {
        word bytes offset
    }
    spec_factor => wire::Factor {
        word bytes
    }
    spec_launch => wire::Launch {
        kernel name role shape_block shape_word null_stream shape_offset stream_in_block stream pad
    }
    spec_work => wire::Work {
        step flags parts stride stream part
    }
    spec_operand => wire::Operand {
        word bytes is_signed pad
    }
    spec_test => wire::Test {
        value of kind negate pad
    }
    spec_hook => wire::Hook {
        flags tests group pad of by pad2 test
    }
    aggregate_key => wire::AggregateKey {
        tgid row group bucket pad
    }
    aggregate => wire::Aggregate {
        count sum largest smallest
    }
    aggregate_text => wire::AggregateText {
        text
    }
    spec => wire::Spec {
        flags size stack_words values texts factors block_word block_qwords block_offset text_word variant
        factor value ok ground scale part parts context_move keep_open pad ended launch work pad2 hook
    }
    place => wire::Place {
        offset kind base index scale bytes is_signed pad
    }
    probe_site => wire::ProbeSite {
        places pad place
    }
    kernel_place => wire::KernelPlace {
        base bytes steps flags shift mask offset
    }
    kernel_site => wire::KernelSite {
        places only only_bytes pad only_value only_text place
    }
    call_header => wire::CallHeader {
        entered duration caller result tgid tid row depth flags size unreadable
    }
    call_event => wire::CallEvent {
        head regs near_values stack far_values block text
    }
    memory_call => wire::MemoryCall {
        kind row entered returned context site bytes tgid tid result unreadable pad part
    }
    memory_loss => wire::MemoryLoss {
        allocations bytes others
    }
    lane_key => wire::LaneKey {
        image context stream tgid tid
    }
    lane => wire::Lane {
        submitted generation since
    }
    flow => wire::Flow {
        generation captures lost open
    }
    work_call => wire::WorkCall {
        kind row entered returned context stream site bytes submitted generation generation_now lost kernel
        variant tgid tid unreadable copies part
    }
    work_loss => wire::WorkLoss {
        copies bytes others
    }
    kernel_event => wire::KernelRecord {
        kind tgid id handle tag length name
    }
    kernel_key => wire::KernelKey {
        image handle
    }
    known_kernel => wire::KnownKernel {
        name unloads id launches shape_state stream streams tgid number
    }
    named_handle => wire::NamedHandle {
        id tgid pad
    }
    shape_key => wire::ShapeKey {
        kernel tgid number
    }
    total_key => wire::TotalKey {
        tgid row variant
    }
    total => wire::Total {
        untimed errors total_ns max_ns bytes bucket
    }
    failure_key => wire::FailureKey {
        tgid row code pad
    }
    row_counter => wire::RowCounter {
        entered lost no_frame stepped nop5 before
    }
    piece => wire::Piece {
        offset length
    }
    ioctl_key => wire::IoctlKey {
        nr size
    }
    ioctl_plan => wire::IoctlPlan {
        before after status subject pointer pad row pad2
    }
    driver_call => wire::DriverCall {
        file argument word nr bytes minor family step wrapped seen pad behind before after
    }
    driver_event => wire::DriverEvent {
        head call
    }
    share_key => wire::ShareKey {
        tgid row
    }
    driver_share => wire::DriverShare {
        calls ns
    }
    open_call => wire::OpenCall {
        entered row pad
    }
    notice => wire::Notice {
        kind tgid tid parent at sequence place waits pad comm open
    }
    cgroup_path => wire::CgroupPath {
        length cut text
    }
    xid_event => wire::XidEvent {
        at code pad device message
    }
    python_frame => site::PythonFrame {
        code instruction
    }
    site_event => site::SiteRecord {
        kind tgid tid native_count python_count python flags id native frames
    }
    python => site::Python {
        runtime code_mask interpreters_head interpreter_next threads_head thread_next thread_id thread_frame
        cframe_frame frame_bytes frame_previous frame_code frame_instruction instruction_bytes frame_owner
        frame_entry entry first_no_function
    }
    site_counters => site::SiteCounters {
        second asked taken stride sent lost full unsampled no_memory
    }
}
