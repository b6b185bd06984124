//! A valid shared library whose sections have any content.

const HEADER: usize = 64;
const SEGMENT: usize = 56;
/// Where the first section begins; addresses equal file offsets.
const START: usize = 0x1000;

/// One section: name, type, flags and content.
pub struct Part<'a> {
    pub name: &'static str,
    pub kind: u32,
    pub flags: u64,
    pub bytes: &'a [u8],
}

/// A library with these sections, mapped by one executable segment. Gives the offset of each section, too.
pub fn library(parts: &[Part<'_>]) -> (Vec<u8>, Vec<u64>) {
    let mut file = vec![0; START];
    let (mut names, mut records, mut offsets) = (vec![0], vec![section(0, 0, 0, 0, 0)], Vec::new());
    for part in parts {
        let offset = file.len() as u64;
        offsets.push(offset);
        records.push(section(
            names.len() as u32,
            part.kind,
            part.flags,
            offset,
            part.bytes.len() as u64,
        ));
        names.extend(part.name.as_bytes());
        names.push(0);
        file.extend(part.bytes);
    }
    let end = file.len() as u64;
    records.push(section(names.len() as u32, 3, 0, end, names.len() as u64 + 10));
    names.extend(b".shstrtab\0");
    file.extend(&names);
    let table = file.len() as u64;
    file.extend(records.concat());
    file[..HEADER].copy_from_slice(&header(table, records.len() as u16));
    file[HEADER..HEADER + SEGMENT].copy_from_slice(&segment(end));
    (file, offsets)
}

fn header(sections_at: u64, sections: u16) -> Vec<u8> {
    let mut out = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    out.extend([3u16, 62].iter().flat_map(|half| half.to_le_bytes()));
    out.extend(1u32.to_le_bytes());
    out.extend(
        [0, HEADER as u64, sections_at]
            .iter()
            .flat_map(|long| long.to_le_bytes()),
    );
    out.extend(0u32.to_le_bytes());
    let halves = [HEADER as u16, SEGMENT as u16, 1, 64, sections, sections - 1];
    out.extend(halves.iter().flat_map(|half| half.to_le_bytes()));
    out
}

fn segment(end: u64) -> Vec<u8> {
    let mut out = [1u32, 5]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect::<Vec<u8>>();
    out.extend(
        [0, 0, 0, end, end, 0x1000]
            .iter()
            .flat_map(|long: &u64| long.to_le_bytes()),
    );
    out
}

fn section(name: u32, kind: u32, flags: u64, offset: u64, size: u64) -> Vec<u8> {
    let mut out = [name, kind]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect::<Vec<u8>>();
    out.extend([flags, offset, offset, size].iter().flat_map(|long| long.to_le_bytes()));
    out.extend([0u32; 2].iter().flat_map(|word| word.to_le_bytes()));
    out.extend([1u64, 0].iter().flat_map(|long| long.to_le_bytes()));
    out
}
