//! Numbers out of few bytes, small ones and those at the ends of what a word holds.

/// Takes them from the bytes of an input; 0 where there are no more.
pub struct Numbers<'a>(pub &'a [u8]);

impl Numbers<'_> {
    pub fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((byte, rest)) => {
                self.0 = rest;
                *byte
            }
            None => 0,
        }
    }

    /// A small number, one of each magnitude, or one near the largest: the first byte says which, the second how much.
    pub fn number(&mut self) -> u64 {
        let (kind, value) = (self.byte(), u64::from(self.byte()));
        match kind {
            0..64 => value,
            64..128 => value << (kind - 64),
            128..192 => u64::MAX - (value << (kind - 128)),
            192..224 => (1 << 63) - 128 + value,
            _ => value * 1_000_003,
        }
    }

    /// One of these.
    pub fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::from(self.byte()) % all.len()]
    }

    /// One of these, or none.
    pub fn maybe<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        let choice = usize::from(self.byte()) % (all.len() + 1);
        all.get(choice).copied()
    }
}
