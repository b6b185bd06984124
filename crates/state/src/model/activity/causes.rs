//! Why a device had nothing to do: one cause for each gap between what it has done, of what is known of who ended it.
//!
//! Pure. Owns the order of causes and their words; what threads did meanwhile is [`super::threads`]' business.

use super::overheads::Overlap;

/// Between two kernels that were given in time a device needs so long by itself.
pub(crate) const PROMPT_NS: u64 = 5_000;
/// Where a thread is outside CUDA for less, its stack is not sampled.
const SAMPLED_FROM_NS: u64 = 1_000_000;

macro_rules! causes {
    ($($variant:ident $name:literal $words:literal),+ $(,)?) => {
        /// Why a device had nothing to do. In the order in which the first that holds is taken where two take as much of a gap.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Why { $(#[doc = $words] $variant),+ }

        impl Why {
            /// All, in order.
            pub const ALL: &'static [Why] = &[$(Why::$variant),+];

            /// The word in outputs.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Why::$variant => $name),+ }
            }

            /// Idle time of that cause, where there is no sentence around it.
            #[must_use]
            pub fn title(self) -> &'static str {
                match self { $(Why::$variant => concat!("GPU idle, ", $name)),+ }
            }

            /// What it says, for people.
            #[must_use]
            pub fn words(self) -> &'static str {
                match self { $(Why::$variant => $words),+ }
            }
        }
    };
}

causes! {
    Profiler "profiler" "CUPTI took the time for itself",
    SyncReturn "sync-return" "the host came back from a wait",
    Memory "memory" "the host took memory or gave it back",
    Code "code" "the host loaded or made code or graphs",
    Launch "launch" "the host launched: in that call, and until it had an effect",
    Call "cuda-call" "the host was in other CUDA calls",
    NoProcessor "no-processor" "the host could run, and had no processor",
    Blocked "blocked" "the host slept or waited outside CUDA",
    HostCode "host-code" "the host ran outside CUDA",
    Unsampled "host" "the host was outside CUDA, where it was not sampled",
    KernelWait "kernel-wait" "the device went from one to the next",
    Dependency "dependency" "the stream waited for another one",
    HostFunction "host-function" "the stream waited for a function of the host",
    Other "other" "not known",
}

impl Why {
    /// Whether it is what the host did that kept the device waiting.
    #[must_use]
    pub fn is_hosts(self) -> bool {
        !matches!(
            self,
            Why::Profiler | Why::KernelWait | Why::Dependency | Why::HostFunction | Why::Other
        )
    }

    /// The cause of that word.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Why> {
        Why::ALL.iter().copied().find(|why| why.name() == name)
    }
}

/// What a stream was told to wait for before it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waits {
    /// What another stream was given.
    Stream,
    /// A function of the program, which a thread of CUDA calls.
    HostFunction,
}

/// What is known of who had given the device what ended a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// Its call was not found.
    Unknown,
    /// It was given before the gap began, or its stream waited for something else for most of the gap.
    Before { waits: Option<Waits> },
    /// Its call had not returned then: the thread that made it did this meanwhile.
    During(Spent),
}

/// What a thread did during a gap, ns. They add up to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// In waits, and copies that wait.
    pub waiting: u64,
    pub memory: u64,
    pub code: u64,
    /// From when it entered the call that ended the gap.
    pub launching: u64,
    pub calls: u64,
    pub outside: Outside,
}

/// Time outside CUDA, and what is known of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outside {
    pub ns: u64,
    /// It could run and did not, by the kernel's account.
    pub(crate) unscheduled: u64,
    /// By samples: it had left its processor, and it was on it.
    pub(crate) asleep: u64,
    pub running: u64,
    /// By the kernel's account alone: the share of the time around it that it was on a processor, per mille.
    pub(crate) on_processor: Option<u64>,
}

impl Outside {
    fn why(&self) -> Why {
        let is_half = |ns: u64| ns > 0 && ns >= self.ns.div_ceil(2);
        if is_half(self.unscheduled) {
            return Why::NoProcessor;
        }
        if self.asleep.max(self.running) > 0 {
            return if self.asleep >= self.running {
                Why::Blocked
            } else {
                Why::HostCode
            };
        }
        match self.on_processor {
            _ if self.ns < SAMPLED_FROM_NS => Why::HostCode,
            Some(share) if share >= 500 => Why::HostCode,
            Some(_) => Why::Blocked,
            None => Why::Unsampled,
        }
    }
}

impl Spent {
    /// Whether most of it passed outside CUDA, or in a wait: code that others loaded meanwhile kept nobody waiting.
    fn is_known_apart(&self) -> bool {
        let all = [
            self.waiting,
            self.memory,
            self.code,
            self.launching,
            self.calls,
            self.outside.ns,
        ];
        let most = all.into_iter().max().unwrap_or(0);
        most > 0 && (most == self.waiting || most == self.outside.ns)
    }

    /// What took most of the time.
    fn why(&self) -> Why {
        let parts = [
            (self.waiting, Why::SyncReturn),
            (self.memory, Why::Memory),
            (self.code, Why::Code),
            (self.launching, Why::Launch),
            (self.calls, Why::Call),
            (self.outside.ns, self.outside.why()),
        ];
        let most = parts.iter().map(|(ns, _)| *ns).max().unwrap_or(0);
        parts
            .iter()
            .find(|(ns, _)| *ns == most)
            .map_or(Why::Other, |(_, why)| *why)
    }
}

/// The cause of a gap of `ns`, of which `overlap` was overhead.
#[must_use]
pub(crate) fn why(ns: u64, asked: &Asked, overlap: Overlap) -> Why {
    let is_half = |part: u64| part > 0 && part >= ns.div_ceil(2);
    if is_half(overlap.profiler) {
        return Why::Profiler;
    }
    match asked {
        Asked::During(spent) if is_half(overlap.code) && !spent.is_known_apart() => Why::Code,
        Asked::During(spent) => spent.why(),
        _ if ns < PROMPT_NS => Why::KernelWait,
        Asked::Before {
            waits: Some(Waits::Stream),
        } => Why::Dependency,
        Asked::Before {
            waits: Some(Waits::HostFunction),
        } => Why::HostFunction,
        Asked::Before { waits: None } | Asked::Unknown => Why::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn outside(ns: u64) -> Outside {
        Outside {
            ns,
            ..Outside::default()
        }
    }

    fn during(spent: Spent) -> Why {
        why(10 * MS, &Asked::During(spent), Overlap::default())
    }

    /// Without any overhead.
    fn alone(ns: u64, asked: &Asked) -> Why {
        why(ns, asked, Overlap::default())
    }

    #[test]
    fn what_took_most_of_a_gap_is_its_cause() {
        let slept = Spent {
            waiting: 20_000,
            launching: 5_000,
            outside: Outside {
                asleep: 9 * MS,
                ..outside(9 * MS)
            },
            ..Spent::default()
        };
        assert_eq!(during(slept), Why::Blocked);
        assert_eq!(
            during(Spent {
                waiting: 30 * MS,
                ..slept
            }),
            Why::SyncReturn
        );
        assert_eq!(
            during(Spent {
                memory: 9 * MS,
                ..slept
            }),
            Why::Memory,
            "of two the first"
        );
        assert_eq!(during(Spent { code: 10 * MS, ..slept }), Why::Code);
        assert_eq!(
            during(Spent {
                calls: 10 * MS,
                ..slept
            }),
            Why::Call
        );
        assert_eq!(
            during(Spent {
                launching: 10 * MS,
                ..slept
            }),
            Why::Launch
        );
    }

    #[test]
    fn time_outside_cuda_is_what_samples_say_and_the_kernel() {
        let of = |outside: Outside| {
            during(Spent {
                outside,
                ..Spent::default()
            })
        };
        let long = outside(8 * MS);
        assert_eq!(
            of(Outside {
                running: 3 * MS,
                asleep: MS,
                ..long
            }),
            Why::HostCode
        );
        assert_eq!(
            of(Outside {
                unscheduled: 4 * MS,
                asleep: 8 * MS,
                ..long
            }),
            Why::NoProcessor
        );
        assert_eq!(
            of(Outside {
                on_processor: Some(900),
                ..long
            }),
            Why::HostCode
        );
        assert_eq!(
            of(Outside {
                on_processor: Some(100),
                ..long
            }),
            Why::Blocked
        );
        assert_eq!(of(long), Why::Unsampled);
        assert_eq!(of(outside(900_000)), Why::HostCode, "too short to be sampled");
    }

    #[test]
    fn what_was_given_in_time_waits_for_the_device_or_for_what_its_stream_was_told() {
        let of = |ns: u64, waits: Option<Waits>| alone(ns, &Asked::Before { waits });
        assert_eq!(of(PROMPT_NS - 1, Some(Waits::Stream)), Why::KernelWait);
        assert_eq!(of(PROMPT_NS, Some(Waits::Stream)), Why::Dependency);
        assert_eq!(of(PROMPT_NS, Some(Waits::HostFunction)), Why::HostFunction);
        assert_eq!(of(PROMPT_NS, None), Why::Other);
        assert_eq!(
            (alone(4_999, &Asked::Unknown), alone(5_000, &Asked::Unknown)),
            (Why::KernelWait, Why::Other)
        );
    }

    #[test]
    fn overhead_is_the_cause_of_a_gap_that_it_takes_half_of() {
        let of = |profiler: u64, code: u64, asked: Asked| why(10 * MS, &asked, Overlap { profiler, code });
        let launching = Asked::During(Spent {
            launching: 10 * MS,
            ..Spent::default()
        });
        let away = Asked::During(Spent {
            outside: outside(10 * MS),
            ..Spent::default()
        });
        assert_eq!(of(5 * MS, 0, Asked::Unknown), Why::Profiler);
        assert_eq!(of(5 * MS - 1, 0, Asked::Unknown), Why::Other);
        assert_eq!(of(6 * MS, 10 * MS, launching), Why::Profiler);
        assert_eq!(
            of(0, 5 * MS, launching),
            Why::Code,
            "the launch loaded what it launches"
        );
        assert_eq!(of(0, 4 * MS, launching), Why::Launch);
        assert_eq!(of(0, 10 * MS, away), Why::Unsampled, "another thread loaded it");
    }

    #[test]
    fn each_cause_has_a_word_of_its_own() {
        let all = Why::ALL.iter();
        assert!(all.clone().all(|why| Why::from_name(why.name()) == Some(*why)));
        assert_eq!((Why::from_name(""), all.len()), (None, 14));
    }
}
