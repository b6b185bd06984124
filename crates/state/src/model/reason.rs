//! Why devices had nothing to do, as far as calls alone tell. Pure.
//!
//! Where the device itself tells what it did there are more causes, and better ones: [`crate::model::activity`]'s.

/// Idle time beyond this, in one piece, is no pause of a program that works.
pub(crate) const FORGOTTEN_NS: u64 = 600_000_000_000;

/// What comes of curing one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gain {
    /// The program is done sooner.
    Sooner,
    /// Somebody else has the device.
    Freed,
    /// More is known.
    Known,
}

impl Gain {
    /// The word in outputs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Gain::Sooner => "sooner",
            Gain::Freed => "freed",
            Gain::Known => "known",
        }
    }
}

macro_rules! reasons {
    ($($variant:ident $name:literal $words:literal $cure:literal $gain:ident),+ $(,)?) => {
        /// Why devices had nothing to do.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Reason { $(#[doc = $words] $variant),+ }

        impl Reason {
            /// All.
            pub(crate) const ALL: &'static [Reason] = &[$(Reason::$variant),+];

            /// The word in outputs.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Reason::$variant => $name),+ }
            }

            /// What it says, for people.
            #[must_use]
            pub fn words(self) -> &'static str {
                match self { $(Reason::$variant => $words),+ }
            }

            /// What to do about it.
            #[must_use]
            pub fn cure(self) -> &'static str {
                match self { $(Reason::$variant => $cure),+ }
            }

            /// What comes of doing so.
            #[must_use]
            pub fn gain(self) -> Gain {
                match self { $(Reason::$variant => Gain::$gain),+ }
            }

            /// Whether it is of the time in which a process used the device.
            #[must_use]
            pub fn is_in_use(self) -> bool {
                self != Reason::ReservedUnused
            }

            /// By the word in outputs; `None`: a newer version's.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Reason> {
                Reason::ALL.iter().copied().find(|reason| reason.name() == name)
            }
        }
    };
}

reasons! {
    Memory "memory" "a thread took memory or gave it back"
        "keep buffers instead of allocating and freeing in the loop" Sooner,
    HostBound "host-bound" "the program was done with the device, and gave it nothing more"
        "load data beside the work (more workers, prefetch), wait less often for results; gpuscope record -p PID, then report, says at which line" Sooner,
    Forgotten "forgotten" "in one piece, beyond ten minutes"
        "end it when nobody uses it: a notebook that was left, a job that hangs; let the scheduler limit idle time" Freed,
    Unknown "unknown" "records were lost before it was seen what ended it"
        "larger rings on that node: records were lost" Known,
    // of no piece of a process's idle time: nobody was there
    ReservedUnused "reserved-unused" "a scheduler had given it away, and nobody used it"
        "ask for fewer devices, or for them when they are needed; end what holds them" Freed,
}

/// Idle time by reason, ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reasons([u64; Reason::ALL.len()]);

impl Reasons {
    /// Of a piece of idle time, in which threads took memory or gave it back for `memory_ns`.
    pub(super) fn of_piece(ns: u64, memory_ns: u64, rest: Reason) -> Reasons {
        let pause = ns.min(FORGOTTEN_NS);
        let memory = memory_ns.min(pause);
        let mut reasons = Reasons::default();
        reasons.add(Reason::Memory, memory);
        reasons.add(rest, pause - memory);
        reasons.add(Reason::Forgotten, ns - pause);
        reasons
    }

    /// Idle time of that reason, ns.
    #[must_use]
    pub fn get(&self, reason: Reason) -> u64 {
        self.0[reason as usize]
    }

    /// Adds idle time of that reason, ns.
    pub fn add(&mut self, reason: Reason, ns: u64) {
        let sum = &mut self.0[reason as usize];
        *sum = sum.saturating_add(ns);
    }

    /// Adds another piece.
    pub fn join(&mut self, other: &Reasons) {
        Reason::ALL
            .iter()
            .for_each(|reason| self.add(*reason, other.get(*reason)));
    }

    /// All of it.
    #[must_use]
    pub(crate) fn total_ns(&self) -> u64 {
        self.0.iter().fold(0, |sum, ns| sum.saturating_add(*ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_the_hosts_or_memorys_and_what_is_longer_is_forgotten() {
        let of = |ns, memory_ns| {
            let reasons = Reasons::of_piece(ns, memory_ns, Reason::HostBound);
            [Reason::Memory, Reason::HostBound, Reason::Forgotten].map(|reason| reasons.get(reason))
        };
        assert_eq!(of(10, 4), [4, 6, 0]);
        assert_eq!(
            of(10, 40),
            [10, 0, 0],
            "calls that began before it, or went on after it"
        );
        assert_eq!(of(FORGOTTEN_NS + 7, 4), [4, FORGOTTEN_NS - 4, 7]);
    }
}
