//! Reads in a program's memory what its kernel program could not, because the page was not there: here the kernel
//! brings the page in.
//!
//! Such a read may take as long as the file behind the page likes: never in a thread that others wait for.

use crate::stack::memory::{Memory, ProcessMemory};
use crate::wire;

/// No string is read across a border of these, in one go.
const PAGE: u64 = 4096;
/// Where a handle of a kernel has the address of its name; its tag is at 0.
const NAME_OFFSET: u64 = 8;
const TAGS: [u32; 2] = [1, 2];

/// The name that a handle of a kernel leads to in process `pid`, and whether it goes on.
///
/// # Errors
/// Why it leads to none: a reason of `wire::KERNEL_…`.
pub fn kernel_name(pid: u32, handle: u64) -> Result<(Vec<u8>, bool), u64> {
    kernel_name_in(&ProcessMemory(pid), handle)
}

/// A string that cannot have changed since a call was given it: `None` where the program may write to its page, or
/// where it cannot be read. At most `limit` bytes.
#[must_use]
pub fn constant_text(pid: u32, address: u64, limit: usize) -> Option<Vec<u8>> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    let end = constant_until(&maps, address)?;
    let limit = limit.min(usize::try_from(end - address).unwrap_or(limit));
    text(&ProcessMemory(pid), address, limit)
}

fn kernel_name_in(memory: &dyn Memory, handle: u64) -> Result<(Vec<u8>, bool), u64> {
    let tag = memory.half(handle).ok_or(wire::KERNEL_UNREADABLE)?;
    if !TAGS.contains(&tag) {
        return Err(wire::KERNEL_FOREIGN);
    }
    let name = memory
        .word(handle.wrapping_add(NAME_OFFSET))
        .ok_or(wire::KERNEL_UNREADABLE)?;
    let text = text(memory, name, wire::KERNEL_NAME - 1).filter(|text| !text.is_empty());
    let text = text.ok_or(wire::KERNEL_NO_NAME)?;
    let cut = text.len() >= wire::KERNEL_NAME - 1;
    Ok((text, cut))
}

/// The bytes up to a NUL, or to `limit`.
fn text(memory: &dyn Memory, address: u64, limit: usize) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    while text.len() < limit {
        let at = address.checked_add(text.len() as u64)?;
        let piece = (PAGE - at % PAGE).min((limit - text.len()) as u64);
        let bytes = memory.bytes(at, piece, PAGE as usize)?;
        match bytes.iter().position(|byte| *byte == 0) {
            Some(end) => {
                text.extend_from_slice(&bytes[..end]);
                break;
            }
            None => text.extend_from_slice(&bytes),
        }
    }
    Some(text)
}

/// The end of the mapping that holds `address`, if the program cannot write to it.
fn constant_until(maps: &str, address: u64) -> Option<u64> {
    maps.lines().find_map(|line| {
        let mut fields = line.split(' ');
        let (start, end) = fields.next()?.split_once('-')?;
        let start = u64::from_str_radix(start, 16).ok()?;
        let end = u64::from_str_radix(end, 16).ok()?;
        let writable = fields.next()?.contains('w');
        ((start..end).contains(&address) && !writable).then_some(end)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes from address 0x1ff0 on.
    struct Some16(Vec<u8>);

    impl Memory for Some16 {
        fn read(&self, address: u64, into: &mut [u8]) -> Option<()> {
            let start = usize::try_from(address.checked_sub(0x1ff0)?).ok()?;
            into.copy_from_slice(self.0.get(start..start + into.len())?);
            Some(())
        }
    }

    #[test]
    fn a_name_is_read_up_to_its_end_where_the_next_page_cannot_be_read() {
        let mut bytes = b"gemm\0".to_vec();
        bytes.resize(16, 7);
        assert_eq!(text(&Some16(bytes.clone()), 0x1ff0, 4095), Some(b"gemm".to_vec()));
        bytes[4] = b'x';
        assert_eq!(text(&Some16(bytes), 0x1ff0, 4095), None, "it goes on where nothing is");
    }

    #[test]
    fn only_a_handle_of_a_known_kind_leads_to_a_name() {
        let with_tag = |tag: u32| {
            let mut bytes = tag.to_le_bytes().to_vec();
            bytes.resize(8, 0);
            bytes.extend(0x2000u64.to_le_bytes());
            bytes.extend(b"k\0");
            bytes.resize(16 + 4096, 0);
            kernel_name_in(&Some16(bytes), 0x1ff0)
        };
        assert_eq!(with_tag(2), Ok((b"k".to_vec(), false)));
        assert_eq!(with_tag(9), Err(wire::KERNEL_FOREIGN));
        assert_eq!(
            kernel_name_in(&Some16(Vec::new()), 0x1ff0),
            Err(wire::KERNEL_UNREADABLE)
        );
    }

    #[test]
    fn what_a_program_may_write_is_no_constant() {
        let maps = "1000-2000 r--p 00000000 00:00 1 /x\n2000-3000 rw-p 00000000 00:00 1 /x\n";
        assert_eq!(constant_until(maps, 0x1fff), Some(0x2000));
        assert_eq!(constant_until(maps, 0x2000), None);
        assert_eq!(constant_until(maps, 0x3000), None);
    }
}
