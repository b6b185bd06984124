//! The cgroups of processes, as their names cross.

use super::bytes::u32_at;
use super::generated::CgroupPath;
use std::mem::offset_of;

/// The names of the cgroups that a process lies in, in each hierarchy that is looked at: the unified one and up to
/// three of cgroup v1. The innermost first; `None`: they were not all written, or are too long to be known.
pub fn cgroups(bytes: &[u8]) -> Option<Vec<Vec<&[u8]>>> {
    const TEXT: usize = offset_of!(CgroupPath, text);
    let (length, cut) = (offset_of!(CgroupPath, length), offset_of!(CgroupPath, cut));
    let (length, cut) = (u32_at(bytes, length) as usize, u32_at(bytes, cut));
    let text = bytes
        .get(TEXT..TEXT + length)
        .filter(|text| !text.is_empty() && cut == 0)?;
    let (mut hierarchies, mut names) = (Vec::new(), Vec::new());
    for name in text.strip_suffix(&[0])?.split(|byte| *byte == 0) {
        match name {
            [] => hierarchies.push(std::mem::take(&mut names)),
            name => names.push(name),
        }
    }
    Some(hierarchies)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn path(text: &[u8]) -> Vec<u8> {
        [&(text.len() as u32).to_le_bytes(), [0; 4].as_slice(), text, &[7; 32]].concat()
    }

    #[test]
    fn names_of_each_hierarchy_end_where_the_next_one_begins() {
        let bytes = path(b"step_0\0job_42\0\0\0a\0\0\0");
        let expected: Vec<Vec<&[u8]>> = vec![vec![b"step_0", b"job_42"], vec![], vec![b"a"], vec![]];
        assert_eq!(cgroups(&bytes), Some(expected));
        assert_eq!(cgroups(&path(b"\0\0\0\0")), Some(vec![vec![]; 4]), "at the root of all");
    }

    #[test]
    fn what_is_being_written_or_was_too_long_is_not_known() {
        assert_eq!(cgroups(&path(b"")), None);
        let mut cut = path(b"a\0\0\0\0\0");
        cut[4] = 1;
        assert_eq!(cgroups(&cut), None);
        assert_eq!(cgroups(&path(b"a\0\0\0\0\0")[..10]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(bytes in proptest::collection::vec(any::<u8>(), 0..80), length in 0u8..90) {
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut() {
                *first = length;
            }
            let _ = cgroups(&bytes);
        }
    }
}
