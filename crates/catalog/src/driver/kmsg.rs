//! Records of the kernel's log, as `/dev/kmsg` gives them: `priority,sequence,microseconds,flags;text`. Lines that begin
//! with a blank are properties of the record before them.
//!
//! Who wrote a record is told by its facility, which is the priority's upper part: 0 is the kernel alone. What a program
//! writes to `/dev/kmsg` has another one, whatever it asks for (the kernel makes 0 a 1), so nobody passes for the kernel.

/// The facility of what the kernel itself says.
const KERNEL: u32 = 0;

/// One record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// 0: the kernel; others: programs.
    pub facility: u32,
    /// Rises by one with each record.
    pub sequence: u64,
    /// Microseconds by the log's clock, which begins with the boot and stands still in suspend.
    pub at_us: u64,
    /// May hold control characters: those that the log escapes are what they were again.
    pub text: String,
}

impl Record {
    /// Reads a line, with or without its end; `None`: it is no record, or properties of one.
    #[must_use]
    pub fn parse(line: &[u8]) -> Option<Record> {
        let end = line.iter().position(|byte| *byte == b';')?;
        let mut head = std::str::from_utf8(&line[..end]).ok()?.split(',');
        let priority: u32 = head.next()?.parse().ok()?;
        let sequence = head.next()?.parse().ok()?;
        let at_us = head.next()?.parse().ok()?;
        let text = line[end + 1..].strip_suffix(b"\n").unwrap_or(&line[end + 1..]);
        Some(Record {
            facility: priority >> 3,
            sequence,
            at_us,
            text: String::from_utf8_lossy(&unescaped(text)).into_owned(),
        })
    }

    /// Whether the kernel wrote it.
    #[must_use]
    pub fn is_of_kernel(&self) -> bool {
        self.facility == KERNEL
    }
}

/// The log writes bytes that are no printable ASCII, and backslashes, as `\xNN`.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let digits = after.strip_prefix(b"x").and_then(|digits| digits.get(..2));
        let byte = digits.filter(|_| *first == b'\\').and_then(hexadecimal);
        out.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &rest[4..] } else { after };
    }
    out
}

fn hexadecimal(digits: &[u8]) -> Option<u8> {
    let both = digits.iter().all(u8::is_ascii_hexdigit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| both)?;
    u8::from_str_radix(digits, 16).ok()
}
