//! Records of the ring of memory: whatever they say, something can be reported.

use crate::{Numbers, World};
use gpuscope::model::memory::{Call, Ledgers, Origin};
use gpuscope::wire::{MEMORY_CALL, MemoryCall, MemoryLoss, PARTS};
use std::sync::LazyLock;

/// Rows that do something to memory.
static ROWS: LazyLock<Vec<u32>> = LazyLock::new(|| {
    let rows = World::shared().catalog.rows.iter().enumerate();
    rows.filter(|(_, row)| row.memory.is_some())
        .map(|(row, _)| row as u32)
        .collect()
});

/// A record whose fields are few of those that there can be, so that calls meet.
fn call(from: &mut Numbers<'_>) -> MemoryCall {
    let flags = from.byte();
    let entered = from.number();
    MemoryCall {
        kind: MEMORY_CALL,
        row: ROWS[(usize::from(from.byte()) | usize::from(flags & 7) << 8) % ROWS.len()],
        entered,
        returned: entered.wrapping_add(from.number()),
        context: u64::from(flags >> 3 & 3),
        site: from.number(),
        bytes: from.number(),
        tgid: u32::from(flags >> 5 & 1),
        tid: u32::from(flags >> 6),
        result: if flags & 128 == 0 { 0 } else { i32::from(from.byte()) },
        unreadable: from.byte() & from.byte(),
        pad: [0; 3],
        part: [0; PARTS].map(|_| from.number()),
    }
}

pub fn run(bytes: &[u8]) {
    let _ = MemoryCall::parse(bytes);
    let mut ledgers = Ledgers::default();
    ledgers.introduce(0, Origin::Start, 1);
    ledgers.introduce(1, Origin::Late, 1);
    let mut from = Numbers(bytes);
    while !from.0.is_empty() {
        let raw = call(&mut from);
        if let Some(call) = Call::decode(&raw, &World::shared().catalog) {
            ledgers.apply(&call);
        }
        if raw.site == 3 {
            ledgers.settle(raw.entered);
        }
    }
    let number = u64::from(bytes.first().copied().unwrap_or(0)) << 56;
    ledgers.set_loss(
        0,
        MemoryLoss {
            allocations: number,
            bytes: number,
            others: number,
        },
    );
    let _ = (ledgers.held(0), ledgers.uuids(0));
    ledgers.end(0, number);
    assert_eq!(ledgers.report(1).len(), 2);
}
