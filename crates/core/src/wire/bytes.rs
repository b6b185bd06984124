//! Numbers, texts and whole structures in the bytes of a record.

const _: () = assert!(cfg!(target_endian = "little"), "what crosses is little endian");

/// A structure that crosses.
///
/// # Safety
/// It is made of integers alone, in C's order and without padding: any bytes are one, and all its bytes are known.
pub unsafe trait Plain: Copy {}

// SAFETY: an integer
unsafe impl Plain for u32 {}
// SAFETY: an integer
unsafe impl Plain for u64 {}

/// Says that a structure is [`Plain`], and asserts that its size and the offsets of its fields are those of C.
#[macro_export]
macro_rules! wire_layout {
    ($of:ident, $size:literal: $($field:ident: $offset:literal),+ $(,)?) => {
        const _: () = {
            assert!(size_of::<$of>() == $size, concat!(stringify!($of), " has another size in C"));
            $(assert!(
                std::mem::offset_of!($of, $field) == $offset,
                concat!(stringify!($of), ".", stringify!($field), " lies elsewhere in C")
            );)+
        };
        // SAFETY: `scripts/wire.py` takes integers, arrays and structures of these, and no padding
        unsafe impl $crate::wire::Plain for $of {}
    };
}
pub use wire_layout as layout;

/// The structure that `bytes` begin with; `None` when there are too few.
pub fn read<T: Plain>(bytes: &[u8]) -> Option<T> {
    let bytes = bytes.get(..size_of::<T>())?;
    // SAFETY: there are as many bytes as it has, and any bytes are one
    Some(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

/// The bytes of a structure.
pub fn bytes_of<T: Plain>(value: &T) -> &[u8] {
    // SAFETY: it has no padding, so all its bytes are known
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

/// A structure that is all zero.
pub const fn zero<T: Plain>() -> T {
    // SAFETY: any bytes are one
    unsafe { std::mem::zeroed() }
}

/// Little-endian reader of a byte slice with known bounds; out of range reads yield 0.
pub fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    bytes.get(offset..).and_then(read).unwrap_or(0)
}

/// See [`u64_at`].
pub fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    bytes.get(offset..).and_then(read).unwrap_or(0)
}

/// A C array of characters up to its first NUL.
pub fn text_of(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::OpenCall;

    #[test]
    fn a_structure_is_read_where_it_fits_and_gives_its_bytes_back() {
        let bytes: Vec<u8> = (1..=20).collect();
        let call = read::<OpenCall>(&bytes[1..17]).expect("as many bytes as it has");
        assert_eq!((call.entered, call.row), (0x0908_0706_0504_0302, 0x0d0c_0b0a));
        assert_eq!(bytes_of(&call), &bytes[1..17]);
        assert_eq!(read::<OpenCall>(&bytes[..15]), None);
        assert_eq!(zero::<OpenCall>(), OpenCall::default());
    }

    #[test]
    fn a_number_beyond_the_end_is_0() {
        assert_eq!((u64_at(&[1; 9], 1), u64_at(&[1; 9], 2)), (0x0101_0101_0101_0101, 0));
        assert_eq!((u32_at(&[1; 4], 0), u32_at(&[1; 4], 5)), (0x0101_0101, 0));
    }
}
