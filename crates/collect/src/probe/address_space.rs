//! What kinds of memory for a device a process has mapped, as far as its list of mappings tells.
//!
//! For processes that ran before they were watched. As found with driver 580 (docs/verified.md): pinned host memory is
//! a shared mapping of `/dev/zero` or `/dev/nvidiactl`, managed memory one of `/dev/nvidia-uvm`, and device memory lies
//! in unnamed reservations of whole 2 MiB pages that nobody may touch. Host memory that the program has registered looks
//! like any other.

use crate::catalog::MemoryKind;
use std::io;

const LARGE_PAGE: u64 = 2 << 20;

/// Ranges of process `pid`, by address.
///
/// # Errors
/// The process is gone or may not be looked at.
pub fn device_ranges(pid: u32) -> io::Result<Vec<(u64, u64, MemoryKind)>> {
    Ok(parse(&std::fs::read(format!("/proc/{pid}/maps"))?))
}

/// The same from the text of a `maps` file.
#[must_use]
pub fn parse(text: &[u8]) -> Vec<(u64, u64, MemoryKind)> {
    text.split(|byte| *byte == b'\n').filter_map(range).collect()
}

fn range(line: &[u8]) -> Option<(u64, u64, MemoryKind)> {
    let line = std::str::from_utf8(line).ok()?;
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    let permissions = fields.next()?;
    let name = fields.nth(3);
    let is_shared = permissions.starts_with("rw") && permissions.ends_with('s');
    let is_whole = start % LARGE_PAGE == 0 && end % LARGE_PAGE == 0;
    let kind = match name {
        Some("/dev/zero" | "/dev/nvidiactl") if is_shared => MemoryKind::Pinned,
        Some("/dev/nvidia-uvm") if is_shared => MemoryKind::Managed,
        None if permissions == "---p" && is_whole => MemoryKind::Device,
        _ => return None,
    };
    Some((start, end, kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn mappings_of_a_cuda_process_are_told_apart() {
        let maps = b"302000000-48ea000000 ---p 00000000 00:00 0 \n\
            55d000000000-55d000021000 rw-p 00000000 00:00 0                          [heap]\n\
            7f2a00000000-7f2a00200000 rw-s 00000000 00:01 2051                       /dev/zero (deleted)\n\
            7f2a00400000-7f2a00600000 rw-s 00000000 00:06 441                        /dev/nvidiactl\n\
            7f2a10021000-7f2a14000000 ---p 00000000 00:00 0 \n\
            7f2a20000000-7f2a20400000 rw-s 7f2a20000000 00:06 442                    /dev/nvidia-uvm\n\
            7f2a30000000-7f2a30001000 r--s 00000000 00:06 441                        /dev/nvidiactl\n";
        let expected = [
            (0x3_0200_0000, 0x48_ea00_0000, MemoryKind::Device),
            (0x7f2a_0000_0000, 0x7f2a_0020_0000, MemoryKind::Pinned),
            (0x7f2a_0040_0000, 0x7f2a_0060_0000, MemoryKind::Pinned),
            (0x7f2a_2000_0000, 0x7f2a_2040_0000, MemoryKind::Managed),
        ];
        assert_eq!(parse(maps), expected);
    }

    #[test]
    fn what_malloc_keeps_for_a_thread_is_no_device_memory() {
        let arena =
            b"7f2a10000000-7f2a10021000 rw-p 00000000 00:00 0 \n7f2a10021000-7f2a14000000 ---p 00000000 00:00 0 \n";
        assert!(parse(arena).is_empty());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_left_out(text in proptest::collection::vec(any::<u8>(), 0..300)) {
            drop(parse(&text));
        }
    }
}
