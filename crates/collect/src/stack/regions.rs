//! The address space of a process, kept after the process has ended.

use crate::discover::{self, Mapping, map_files_name, unescape};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// A file, wherever it is mapped: device and inode.
pub type FileId = (String, u64);

/// One mapping of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    pub start: u64,
    pub end: u64,
    /// Of its first byte in the file.
    pub offset: u64,
    pub executable: bool,
    pub device: String,
    /// 0: no file.
    pub inode: u64,
    /// A path, or the kernel's name for what is no file, such as `[vdso]`.
    pub name: Vec<u8>,
    pub deleted: bool,
    range: String,
}

impl Region {
    /// The file that it maps.
    pub fn file(&self) -> Option<FileId> {
        (self.inode != 0).then(|| (self.device.clone(), self.inode))
    }

    /// The same as `discover` sees it, to be opened.
    pub fn mapping(&self) -> Mapping {
        Mapping {
            offset: self.offset,
            path: PathBuf::from(OsStr::from_bytes(&self.name)),
            device: self.device.clone(),
            inode: self.inode,
            deleted: self.deleted,
            range: self.range.clone(),
        }
    }

    /// The last part of its path; of a file that is gone, with a word about that.
    pub fn module(&self) -> String {
        let name = self.name.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let deleted = if self.deleted { " (deleted)" } else { "" };
        format!("{}{deleted}", String::from_utf8_lossy(name))
    }

    /// Where an address of it lies in the file.
    pub fn file_offset(&self, address: u64) -> u64 {
        address.wrapping_sub(self.start).wrapping_add(self.offset)
    }
}

/// What process `pid` maps, in address order.
///
/// # Errors
/// The process is gone, or may not be looked at (CAP_SYS_PTRACE).
pub(crate) fn regions(pid: u32) -> io::Result<Vec<Region>> {
    Ok(parse(&discover::maps(pid)?))
}

/// The text of a `maps` file; lines that are none are left out.
pub fn parse(text: &[u8]) -> Vec<Region> {
    text.split(|byte| *byte == b'\n').filter_map(parse_line).collect()
}

fn parse_line(line: &[u8]) -> Option<Region> {
    let mut fields = line.splitn(6, |byte| *byte == b' ');
    let mut field = || fields.next().and_then(|field| std::str::from_utf8(field).ok());
    let (range, permissions, offset) = (field()?, field()?, field()?);
    let (device, inode) = (field()?, field()?);
    let (start, end) = range.split_once('-')?;
    let name = fields.next().unwrap_or_default().trim_ascii_start();
    let (name, deleted) = name
        .strip_suffix(b" (deleted)")
        .map_or((name, false), |name| (name, true));
    Some(Region {
        start: u64::from_str_radix(start, 16).ok()?,
        end: u64::from_str_radix(end, 16).ok()?,
        offset: u64::from_str_radix(offset, 16).ok()?,
        executable: permissions.as_bytes().get(2) == Some(&b'x'),
        device: device.to_owned(),
        inode: inode.parse().ok()?,
        name: unescape(name),
        deleted,
        range: map_files_name(range)?,
    })
}

/// The region that holds `address`, among those of one process.
pub fn region_at(regions: &[Region], address: u64) -> Option<&Region> {
    let after = regions.partition_point(|region| region.start <= address);
    regions[..after].last().filter(|region| address < region.end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MAPS: &[u8] = b"00400000-00401000 r--p 00000000 fe:00 7      /tmp/a b (deleted)\n\
        00401000-00402000 r-xp 00001000 fe:00 7      /tmp/a b (deleted)\n\
        7ffff000-7ffff800 r-xp 00000000 00:00 0      [vdso]\n";

    #[test]
    fn an_address_is_found_in_its_region_and_file() {
        let regions = parse(MAPS);
        let region = region_at(&regions, 0x40_1010).unwrap();
        assert_eq!(
            (region.module().as_str(), region.file_offset(0x40_1010)),
            ("a b (deleted)", 0x1010)
        );
        assert_eq!(region.file(), Some(("fe:00".to_owned(), 7)));
        assert!(region_at(&regions, 0x40_2000).is_none() && region_at(&regions, 0).is_none());
        assert_eq!(region_at(&regions, 0x7fff_f000).unwrap().module(), "[vdso]");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_left_out(text in proptest::collection::vec(any::<u8>(), 0..200), address in any::<u64>()) {
            let regions = parse(&text);
            let _ = region_at(&regions, address).map(|region| region.file_offset(address));
        }
    }
}
