//! Events as they came out of a ring: bytes, and where each lies.

/// Where one event lies in [`Inbox::bytes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// When the call was entered, CLOCK_MONOTONIC ns.
    pub entered: u64,
    pub start: u32,
    pub length: u32,
}

/// Events as they came, end to end.
#[derive(Debug, Default)]
pub struct Inbox {
    pub bytes: Vec<u8>,
    pub slots: Vec<Slot>,
    /// Records too short to be what they claim.
    pub malformed: u64,
}

impl Inbox {
    /// Adds the bytes of one event.
    pub fn push(&mut self, event: &[u8]) {
        match u32::try_from(self.bytes.len()) {
            Ok(start) if event.len() >= super::SMALL_BYTES => {
                self.slots.push(Slot {
                    entered: super::u64_at(event, 0),
                    start,
                    length: event.len() as u32,
                });
                self.bytes.extend_from_slice(event);
            }
            _ => self.malformed += 1,
        }
    }

    /// The bytes of one event.
    pub fn event(&self, slot: Slot) -> &[u8] {
        let start = slot.start as usize;
        self.bytes.get(start..start + slot.length as usize).unwrap_or_default()
    }

    /// Forgets them, and keeps the room.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.slots.clear();
    }
}
