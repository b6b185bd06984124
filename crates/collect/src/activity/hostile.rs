//! What a program has written where the library should have: any bytes, anywhere. Reading them neither fails nor takes long.

use super::process::{Process, Wish};
use super::shared::{MOST_RECORDS, SHARED_NAMES, SHARED_RING, SHARED_TAKEN, SHARED_TEXTS};

/// Bytes of one piece; two more say where it lies.
const PIECE: usize = 30;
const PLACES: [u64; 6] = [0, 32, SHARED_TAKEN, SHARED_NAMES, SHARED_TEXTS, SHARED_RING];

/// Reads a process whose memory holds `bytes`, in pieces: each begins with where it lies. False: there is no memory.
///
/// # Panics
/// More comes out than there is room for.
pub fn read(bytes: &[u8]) -> bool {
    let Ok(mut process) = Process::make(1, Wish::default()) else {
        return false;
    };
    for piece in bytes.chunks(PIECE + 2) {
        let &[place, distance, ref rest @ ..] = piece else {
            continue;
        };
        let at = PLACES[usize::from(place) % PLACES.len()];
        process.put(at + u64::from(distance) * 8, rest);
    }
    let mut came = 0;
    for _ in 0..2 {
        process.drain(&mut |source, record| {
            came += 1;
            std::hint::black_box((source.name(record), record.end - record.begin));
        });
    }
    assert!(came <= 2 * MOST_RECORDS, "{came} records");
    std::hint::black_box(process.report());
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_bytes_are_read(bytes in vec(any::<u8>(), 0..400)) {
            prop_assert!(read(&bytes));
        }
    }
}
