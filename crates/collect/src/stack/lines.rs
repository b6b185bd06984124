//! From an instruction of a code object to its line: the two formats of `co_linetable`.
//!
//! Format and names follow CPython's `Objects/lnotab_notes.txt` (3.10) and `Objects/locations.md`,
//! `InternalDocs/code_objects.md` (3.11 and later).

/// The line of the instruction at byte `at` in a table of 3.10: pairs of bytes, by how much the address and the line
/// advance. `None`: it has no line, or the table ends before.
pub fn line_310(table: &[u8], first: i32, at: u64) -> Option<i32> {
    const NO_LINE: i8 = -128;
    let (mut line, mut end) = (first, 0_u64);
    for pair in table.chunks_exact(2) {
        let (start, advance) = (end, pair[1] as i8);
        end += u64::from(pair[0]);
        if advance != NO_LINE {
            line = line.checked_add(i32::from(advance))?;
        }
        if (start..end).contains(&at) {
            return (advance != NO_LINE).then_some(line);
        }
    }
    None
}

/// The line of code unit `at` (two bytes each) in a table of 3.11 and later. `None`: it has no line, or the table ends
/// before.
pub fn line_311(table: &[u8], first: i32, at: u64) -> Option<i32> {
    let (mut line, mut end, mut rest) = (first, 0_u64, table);
    while let Some((&head, tail)) = rest.split_first() {
        // the first byte of each entry has its highest bit set, no other byte has
        if head & 0x80 == 0 {
            return None;
        }
        let length = tail.iter().position(|byte| byte & 0x80 != 0).unwrap_or(tail.len());
        let (entry, following) = tail.split_at(length);
        rest = following;
        let start = end;
        end += u64::from(head & 7) + 1;
        let advance = advance(head >> 3 & 15, entry)?;
        line = line.checked_add(advance.unwrap_or(0))?;
        if (start..end).contains(&at) {
            return advance.map(|_| line);
        }
    }
    None
}

/// By how much the line advances; the inner `None`: this code has no line. The outer: the entry is cut off.
fn advance(kind: u8, entry: &[u8]) -> Option<Option<i32>> {
    match kind {
        15 => Some(None),
        13 | 14 => signed(entry).map(Some),
        10..=12 => Some(Some(i32::from(kind) - 10)),
        _ => Some(Some(0)),
    }
}

/// A number in pieces of six bits, lowest first, whose lowest bit is its sign.
fn signed(bytes: &[u8]) -> Option<i32> {
    let mut number = 0_u32;
    for (place, byte) in bytes.iter().take(6).enumerate() {
        number |= u32::from(byte & 63).checked_shl(place as u32 * 6)?;
        if byte & 64 == 0 {
            let magnitude = (number >> 1) as i32;
            return Some(if number & 1 == 0 { magnitude } else { -magnitude });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn long_ranges_long_jumps_and_ranges_without_a_line_are_put_together() {
        // 0-6 line 1, 6-50 line 2, 50-350 line 7, 350-360 none, 360-376 line 8, 376-380 line 208
        let table = [6, 0, 44, 1, 254, 5, 46, 0, 10, 128, 16, 1, 0, 127, 4, 73];
        let lines = [0, 6, 49, 50, 349, 350, 360, 376, 379, 380].map(|at| line_310(&table, 1, at));
        let expected = [1, 2, 2, 7, 7, 0, 8, 208, 208, 0].map(|line| (line > 0).then_some(line));
        assert_eq!(lines, expected);
    }

    #[test]
    fn each_kind_of_entry_advances_the_line_as_cpython_does() {
        let table = [
            0x80 | 15 << 3, // one unit without a line
            0x80 | 14 << 3 | 1,
            2 << 1,
            0,
            0,
            0, // two units two lines on, with columns
            0x80,
            0x11, // short: the same line
            0x80 | 11 << 3,
            1,
            2, // one line on
            0x80 | 13 << 3,
            1 | 1 << 1 | 64,
            1, // 33 lines back
        ];
        let lines = [0, 1, 2, 3, 4, 5, 6].map(|at| line_311(&table, 100, at));
        assert_eq!(
            lines,
            [None, Some(102), Some(102), Some(102), Some(103), Some(70), None]
        );
    }

    #[test]
    fn a_table_that_is_cut_off_gives_no_line() {
        assert_eq!(line_310(&[6], 1, 0), None);
        assert_eq!(line_311(&[0x80 | 13 << 3], 1, 0), None);
        assert_eq!(line_311(&[0x80 | 13 << 3, 64, 64, 64, 64, 64, 64, 1], 1, 0), None);
        assert_eq!(line_311(&[0x01, 0x80], 1, 0), None);
    }

    /// An entry of the newer format, written as CPython's assembler does.
    fn entry(units: u8, advance: Option<i32>) -> Vec<u8> {
        let Some(advance) = advance else {
            return vec![0x80 | 15 << 3 | (units - 1)];
        };
        let mut number = advance.unsigned_abs() << 1 | u32::from(advance < 0);
        let mut bytes = vec![0x80 | 13 << 3 | (units - 1)];
        while number >= 64 {
            bytes.push((number & 63) as u8 | 64);
            number >>= 6;
        }
        bytes.push(number as u8);
        bytes
    }

    proptest! {
        #[test]
        fn any_table_ends(table in proptest::collection::vec(any::<u8>(), 0..300), first in any::<i32>(), at in 0_u64..2000) {
            let _ = line_310(&table, first, at);
            let _ = line_311(&table, first, at);
        }

        #[test]
        fn what_was_written_is_read_back(
            entries in proptest::collection::vec((1_u8..=8, proptest::option::of(-5000_i32..5000)), 1..40),
        ) {
            let table: Vec<u8> = entries.iter().flat_map(|(units, advance)| entry(*units, *advance)).collect();
            let (mut line, mut unit) = (1, 0);
            for (units, advance) in entries {
                line += advance.unwrap_or(0);
                for _ in 0..units {
                    prop_assert_eq!(line_311(&table, 1, unit), advance.map(|_| line));
                    unit += 1;
                }
            }
            prop_assert_eq!(line_311(&table, 1, unit), None);
        }
    }
}
