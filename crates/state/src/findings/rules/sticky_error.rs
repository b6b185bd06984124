//! An error that the context does not recover from: a kernel has gone wrong, and every later call fails with it.

use crate::catalog::Class;
use crate::findings::cases::Cases;
use crate::findings::evidence::End;
use crate::findings::seen::Seen;
use crate::findings::{Rule, Wants};
use crate::model::finding::Finding;
use crate::record::Kind;
use crate::text::quantity::plural;

/// CUDA says of each: "the process must be terminated and relaunched", or that the device is lost to it.
const STICKY: [i64; 15] = [
    214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911,
];
/// Of these the device itself is at fault.
const HARDWARE: [i64; 2] = [214, 220];

#[derive(Debug, Default)]
struct First {
    code: i64,
    error: String,
    function: String,
}

/// The first such error of each process.
#[derive(Debug, Default)]
pub(crate) struct StickyError(Cases<Option<First>>);

/// Whether nothing works after a failure of that code.
pub fn is_sticky(code: Option<i64>) -> bool {
    code.is_some_and(|code| STICKY.contains(&code))
}

impl Rule for StickyError {
    fn name(&self) -> &'static str {
        "sticky-error"
    }

    fn wants(&self, kind: Kind, _: Class) -> Wants {
        match kind {
            Kind::Call => Wants::All,
            _ => Wants::Nothing,
        }
    }

    fn take(&mut self, seen: &Seen<'_>) {
        let event = seen.event;
        // inner calls fail with it, too: the program has seen the outermost
        if !event.failed || event.depth > 0 || !is_sticky(event.result) {
            return;
        }
        let Some((evidence, first)) = self.0.of(seen) else {
            return;
        };
        first.get_or_insert_with(|| First {
            code: event.result.unwrap_or(0),
            error: event.error.unwrap_or("?").to_owned(),
            function: event.name.to_owned(),
        });
        evidence.add(seen, 0);
    }

    fn conclude(&self, end: &End<'_>) -> Option<Finding> {
        let (evidence, first) = self.0.worst(|evidence, _| evidence.count)?;
        let first = first.as_ref()?;
        let cure = match HARDWARE.contains(&first.code) {
            true => "the device is at fault: see its Xids (gpuscope doctor, nvidia-smi -q -d ECC), take it out of use",
            false => {
                "the kernel launched before it went wrong: compute-sanitizer CMD names it, and the line; \
                 CUDA_LAUNCH_BLOCKING=1 has the failing launch itself return the error"
            }
        };
        Some(Finding {
            grave: true,
            title: format!("Nothing works any more behind {}", first.error),
            what: format!(
                "{} ({}) came first from {}; {} failed so: nothing works in this process any more",
                first.error,
                first.code,
                first.function,
                plural(evidence.count, "call")
            ),
            cure: cure.to_owned(),
            thresholds: "one call that fails with an error that its context keeps".to_owned(),
            weakened: end.run.weakness(|_| true),
            ..evidence.finding(self.name(), end)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::{Fixture, US};

    fn fail(fixture: &mut Fixture, name: &'static str, code: i64) {
        fixture.call(Class::Sync, 5 * US, |event| {
            (event.name, event.failed, event.result) = (name, true, Some(code));
            event.error = Some("CUDA_ERROR_ILLEGAL_ADDRESS");
        });
    }

    #[test]
    fn the_first_call_that_failed_is_named_and_shown_first() {
        let mut fixture = Fixture::of(StickyError::default());
        for name in [
            "cuStreamSynchronize",
            "cuMemcpyDtoHAsync_v2",
            "cuMemFree_v2",
            "cuMemFree_v2",
        ] {
            fail(&mut fixture, name, 700);
        }
        let finding = fixture.finding();
        assert_eq!((finding.count, finding.grave), (4, true));
        assert!(
            finding.what.contains("(700) came first from cuStreamSynchronize"),
            "{}",
            finding.what
        );
        assert_eq!(finding.moments[0].name, "cuStreamSynchronize");
    }

    #[test]
    fn an_error_of_one_call_is_none() {
        let mut fixture = Fixture::of(StickyError::default());
        fail(&mut fixture, "cuMemAlloc_v2", 2);
        assert_eq!(fixture.findings(), []);
    }
}
