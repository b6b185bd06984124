//! Records of every ring and map, as the bytes say: read, or refused; and what is made of their texts.

use gpuscope::driver::xid::Xid;
use gpuscope::model::kernel_name::KernelName;
use gpuscope::model::range::Range;
use gpuscope::wire::{
    CallHeader, DriverCall, Flow, KernelEvent, MEMORY_KERNEL, MemoryCall, Notice, WorkCall, XidEvent, cgroups, text_of,
};

pub fn run(bytes: &[u8]) {
    std::hint::black_box((
        CallHeader::parse(bytes),
        DriverCall::parse(bytes),
        Flow::parse(bytes),
        MemoryCall::parse(bytes),
        WorkCall::parse(bytes),
    ));
    if let Some(range) = Range::parse(bytes) {
        assert!(range.begin <= range.end && range.domain.len() <= 3 * bytes.len());
    }
    let _ = Notice::parse(bytes).map(|notice| text_of(&notice.comm));
    if let Some(event) = XidEvent::parse(bytes) {
        let (device, message) = (text_of(&event.device), text_of(&event.message));
        let xid = Xid::of_tracepoint(&device, event.code, &message);
        let _ = xid.meaning().map(|meaning| meaning.action_words());
    }
    if bytes.len() >= 8
        && let Some(hierarchies) = cgroups(bytes)
    {
        let names = hierarchies.iter().flatten();
        assert!(names.map(|name| name.len()).sum::<usize>() <= bytes.len());
    }
    kernel(&[&MEMORY_KERNEL.to_le_bytes(), bytes].concat());
}

fn kernel(record: &[u8]) {
    if let Some(event) = KernelEvent::parse(record) {
        assert!(event.name.len() <= record.len());
        let _ = KernelName::read(event.name, event.cut);
    }
}
