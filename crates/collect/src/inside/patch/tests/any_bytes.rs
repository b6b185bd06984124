use proptest::prelude::*;

use super::{JUMP, assert_same};
use crate::inside::patch::plan;

/// What is nearer to a function is in reach of a copy, too.
const FAR: u64 = 1 << 30;

/// What functions begin with, and anything.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let known: [&[u8]; 16] = [
        &[0x55],
        &[0x48, 0x89, 0xe5],
        &[0xf3, 0x0f, 0x1e, 0xfa],
        &[0x48, 0x83, 0xec, 0x18],
        &[0x31, 0xc0],
        &[0x74, 0x10],
        &[0xeb, 0x03],
        &[0xe8, 0x00, 0x10, 0x00, 0x00],
        &[0x0f, 0x85, 0x00, 0x10, 0x00, 0x00],
        &[0x48, 0x8b, 0x05, 0x00, 0x20, 0x00, 0x00],
        &[0x81, 0x3d, 0x11, 0x22, 0x33, 0x00, 0x00, 0xba, 0x1c, 0x32],
        &[0xff, 0x25, 0x00, 0x20, 0x00, 0x00],
        &[0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
        &[0x48, 0x89, 0x5c, 0x24, 0xd8],
        &[0xc3],
        &[0xcc],
    ];
    prop_oneof![
        4 => proptest::sample::select(known.map(<[u8]>::to_vec).to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 1..8),
    ]
}

proptest! {
    #[test]
    fn any_bytes_get_an_answer(
        pieces in proptest::collection::vec(piece(), 0..24),
        size in 0_usize..200,
        entry in any::<u64>(),
    ) {
        let function = pieces.concat();
        let Ok(patch) = plan(&function, size.min(function.len()), entry) else {
            return Ok(());
        };
        let covered = usize::from(patch.covered);
        prop_assert!(covered <= 32 && covered >= usize::from(patch.kept) + JUMP);
        for fixup in &patch.fixups {
            prop_assert!(fixup.at + 4 <= fixup.next && usize::from(fixup.next) <= patch.copy.len());
        }
        prop_assert!(patch.fixups.is_sorted_by(|one, next| one.next <= next.at));
        let is_near = |target: u64| target.wrapping_sub(entry).cast_signed().unsigned_abs() < FAR;
        prop_assume!(patch.fixups.iter().all(|fixup| is_near(fixup.target)));
        assert_same(&function, entry, &patch);
    }

    #[test]
    fn random_bytes_get_an_answer(function in proptest::collection::vec(any::<u8>(), 0..1000), size in 0_usize..1200) {
        let _ = plan(&function, size, u64::MAX - 100);
    }
}
