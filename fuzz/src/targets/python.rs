//! An interpreter's memory: what it publishes, a code object with its names, and both forms of line tables.

use gpuscope::stack::code::Code;
use gpuscope::stack::layout::{Layout, PUBLISHED_BYTES};
use gpuscope::stack::lines::{line_310, line_311};
use gpuscope::stack::memory::Memory;
use gpuscope::stack::text;
use gpuscope::stack::wire::PythonFrame;

/// All addresses are readable; the bytes repeat.
struct Endless<'a>(&'a [u8]);

impl Memory for Endless<'_> {
    fn read(&self, address: u64, into: &mut [u8]) -> Option<()> {
        let length = self.0.len() as u64;
        for (place, byte) in (0_u64..).zip(into.iter_mut()) {
            *byte = self.0[(address.wrapping_add(place) % length) as usize];
        }
        Some(())
    }
}

pub fn run(input: &[u8]) {
    let Some((&[at, minor], bytes)) = input.split_first_chunk::<2>() else {
        return;
    };
    if bytes.is_empty() {
        return;
    }
    let _ = line_310(bytes, 1, u64::from(at));
    let _ = line_311(bytes, 1, u64::from(at));
    let memory = Endless(bytes);
    let mut published = b"xdebugpy\xf0\0\0\x03\0\0\0\0".to_vec();
    published[10] = minor;
    published.extend(
        memory
            .bytes(16, (PUBLISHED_BYTES - 16) as u64, PUBLISHED_BYTES)
            .unwrap_or_default(),
    );
    let published = Layout::published(&published);
    for layout in published
        .into_iter()
        .chain((10..13).filter_map(|minor| Layout::of((3, minor))))
    {
        let address = u64::from_le_bytes([at; 8]);
        if let Some(text) = text::read(&memory, &layout.text, address) {
            assert!(text.chars().count() as u64 <= 10 * (text::LONGEST + 1));
            assert!(!text.chars().any(char::is_control));
        }
        if let Some(code) = Code::read(&memory, &layout, address) {
            let frame = PythonFrame {
                code: address,
                instruction: address.rotate_left(9),
            };
            let _ = code.line(&memory, &layout, frame);
            assert!(!code.is_replaced(&memory, &layout));
        }
    }
}
