//! Counters of memory: what came, what went, what is held, and the most that ever was.

/// Who holds what, as counters. Totals never go below zero: only what was added can be taken away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Account {
    pub held_bytes: u64,
    pub outstanding: u64,
    pub peak_bytes: u64,
    /// CLOCK_MONOTONIC ns of the peak.
    pub peak_at: u64,
    pub allocations: u64,
    pub allocated_bytes: u64,
    /// Given back by the program itself.
    pub frees: u64,
    pub freed_bytes: u64,
    pub failed_allocations: u64,
}

impl Account {
    /// Whether anything was allocated, or tried to be.
    #[must_use]
    pub fn is_used(&self) -> bool {
        self.allocations + self.failed_allocations > 0
    }

    /// `bytes` more are held since `at`.
    pub fn add(&mut self, bytes: u64, at: u64) {
        self.allocations += 1;
        self.allocated_bytes = self.allocated_bytes.saturating_add(bytes);
        self.outstanding += 1;
        self.held_bytes = self.held_bytes.saturating_add(bytes);
        if self.held_bytes > self.peak_bytes {
            self.peak_bytes = self.held_bytes;
            self.peak_at = at;
        }
    }

    /// `bytes` that were added are no longer held.
    pub fn remove(&mut self, bytes: u64) {
        self.outstanding = self.outstanding.saturating_sub(1);
        self.held_bytes = self.held_bytes.saturating_sub(bytes);
    }

    /// The program gave `bytes` back.
    pub(crate) fn note_free(&mut self, bytes: u64) {
        self.frees += 1;
        self.freed_bytes = self.freed_bytes.saturating_add(bytes);
    }
}

macro_rules! endings {
    ($($variant:ident $name:literal),+ $(,)?) => {
        /// How an allocation ended.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Ending { $($variant),+ }

        impl Ending {
            /// The words for it in outputs.
            pub fn name(self) -> &'static str {
                match self { $(Ending::$variant => $name),+ }
            }
        }
    };
}

endings! {
    Freed "freed",
    ContextDestroyed "context destroyed",
    ContextReset "context reset",
    PointerReused "pointer reused",
    ProcessEnded "process ended",
}

/// Number and bytes of what ended in one way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ended {
    pub count: u64,
    pub bytes: u64,
}

impl Ended {
    /// One more, of `bytes`.
    pub fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// What should not happen, and did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Anomalies {
    /// Frees of what had been freed before.
    pub double_frees: u64,
    /// Frees of what was never seen allocated.
    pub unknown_frees: u64,
    /// Frees that the driver refused for another reason.
    pub failed_frees: u64,
    /// Addresses handed out again although no free of them was seen.
    pub reused_pointers: u64,
    /// Allocations whose address or size could not be read.
    pub unreadable: u64,
    /// Allocations beyond as many as are followed one by one: they are in no sum.
    pub unfollowed: u64,
    /// Arrays of a format whose size is not known: counted with no bytes.
    pub unsized_arrays: u64,
}
