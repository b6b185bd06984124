//! What a terminal makes of a text.

/// Fails where a terminal would obey something in it, or show it in another order.
pub fn is_harmless(text: &str) {
    let turns =
        |sign: char| matches!(sign, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let drives = |sign: char| sign != '\n' && (sign.is_control() || turns(sign));
    assert!(!text.contains(drives), "{text:?}");
}
