//! The bytes of arrays, which their calls describe by shape.

use crate::catalog::Part;

/// Bytes of the array that a call makes which says `part`; `None`: its format is of unknown size.
pub(super) fn bytes(part: impl Fn(Part) -> Option<u64>) -> Option<u64> {
    let number = |of| part(of).unwrap_or(0);
    let element = element_bits(&part)?;
    let shape = [Part::Width, Part::Height, Part::Depth].map(|part| number(part).max(1));
    let levels = number(Part::Levels).clamp(1, 32);
    let elements = (0..levels).fold(0u64, |sum, level| {
        let at_level = shape
            .iter()
            .fold(1u64, |product, side| product.saturating_mul((side >> level).max(1)));
        sum.saturating_add(at_level)
    });
    Some(elements.saturating_mul(element) / 8)
}

fn element_bits(part: impl Fn(Part) -> Option<u64>) -> Option<u64> {
    let number = |of| part(of).unwrap_or(0);
    match part(Part::Format) {
        Some(format) => Some(channel_bits(format)?.saturating_mul(number(Part::Channels).max(1))),
        None => Some(
            [Part::X, Part::Y, Part::Z, Part::W]
                .map(number)
                .into_iter()
                .fold(0, u64::saturating_add),
        ),
    }
}

/// Of `CUarray_format`, where every channel has the same size.
fn channel_bits(format: u64) -> Option<u64> {
    match format {
        0x01 | 0x08 | 0xc0..=0xc2 | 0xc6..=0xc8 => Some(8),
        0x02 | 0x09 | 0x10 | 0xc3..=0xc5 | 0xc9..=0xcb => Some(16),
        0x03 | 0x0a | 0x20 => Some(32),
        _ => None,
    }
}
