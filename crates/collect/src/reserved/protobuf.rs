//! Fields of a message of protobuf, one after the other. Total: what is no message is an error, and nothing is copied.

/// Why bytes are no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("failed to read a message of protobuf at its byte {0}")]
pub(super) struct Malformed(usize);

/// The fields of a message that are messages or texts themselves; all others are stepped over.
pub(super) struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// Number and content of each.
pub(super) fn fields(bytes: &[u8]) -> Fields<'_> {
    Fields { bytes, at: 0 }
}

impl<'a> Fields<'a> {
    fn field(&mut self) -> Result<Option<(u64, &'a [u8])>, Malformed> {
        let tag = self.varint()?;
        let content = match tag & 7 {
            0 => return self.varint().map(|_| None),
            1 => return self.take(8).map(|_| None),
            2 => {
                let length = self.varint()?;
                self.take(usize::try_from(length).unwrap_or(usize::MAX))?
            }
            5 => return self.take(4).map(|_| None),
            _ => return Err(Malformed(self.at)),
        };
        Ok(Some((tag >> 3, content)))
    }

    fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0;
        for shift in (0..70).step_by(7) {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or_default();
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Malformed(self.at))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let end = self.at.checked_add(length);
        let taken = end.and_then(|end| self.bytes.get(self.at..end));
        self.at += taken.map_or(0, <[u8]>::len);
        taken.ok_or(Malformed(self.at))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, &'a [u8]), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.at < self.bytes.len() {
            match self.field() {
                Ok(None) => {}
                Ok(Some(field)) => return Some(Ok(field)),
                Err(malformed) => {
                    self.at = self.bytes.len();
                    return Some(Err(malformed));
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8]) -> Result<Vec<(u64, &[u8])>, Malformed> {
        fields(bytes).collect()
    }

    #[test]
    fn numbers_are_stepped_over_and_contents_are_given() {
        // 1: varint 300, 2: "ab", 3: fixed64, 16: "", 4: fixed32
        let bytes = b"\x08\xac\x02\x12\x02ab\x19\0\0\0\0\0\0\0\0\x82\x01\0\x25\0\0\0\0";
        assert_eq!(all(bytes), Ok(vec![(2, b"ab".as_slice()), (16, b"")]));
        assert_eq!(all(b""), Ok(Vec::new()));
    }

    #[test]
    fn what_is_cut_or_of_no_known_kind_is_an_error() {
        for bytes in [
            b"\x08".as_slice(),
            b"\x12\x02a",
            b"\x19\0",
            b"\x0b",
            b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            &[0xff; 11],
        ] {
            assert!(all(bytes).is_err(), "{bytes:?}");
        }
    }
}
