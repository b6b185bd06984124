//! Records of the ring of work: whatever they say, something can be reported.

use crate::World;
use gpuscope::model::memory::Origin;
use gpuscope::model::work::{Call, Work};
use gpuscope::wire::{WORK_CALL, WorkCall};

pub fn run(bytes: &[u8]) {
    let _ = WorkCall::parse(bytes);
    let mut work = Work::default();
    work.introduce(1, Origin::Start, 1);
    for piece in bytes.chunks_exact(size_of::<WorkCall>()) {
        let mut record = piece.to_vec();
        record[..4].copy_from_slice(&WORK_CALL.to_le_bytes());
        let Some(mut call) = WorkCall::parse(&record) else {
            continue;
        };
        call.tgid = 1;
        call.row %= World::shared().catalog.rows.len() as u32;
        if let Some(call) = Call::decode(&call, &World::shared().catalog) {
            work.apply(&call);
        }
    }
    work.end(1, u64::MAX);
    assert_eq!(work.report(1).len(), 1);
}
