//! Why devices waited: what threads did is noted as it passes on its way to lines, and gaps are told once nothing can come that
//! fills them.
//!
//! Owns for how long records of the GPU are waited for. What a gap's cause is, is `model::activity`'s business.

use super::Tracer;
use super::gpu::GpuPlane;
use crate::catalog::{Class, Layer};
use crate::model::activity::{Called, Coverage, Does, Idle, Seen, Stay};
use crate::model::beside::{Measure, Measured};
use crate::record::Facts;
use crate::wire::CallHeader;
use std::rc::Rc;

/// Records come so much later than what they tell of, mostly.
const RECORDS_LATE_NS: u64 = 2_000_000_000;
/// What a call has asked for is waited for so long.
const PATIENCE_NS: u64 = 10_000_000_000;

/// What a call is to a device that has nothing to do.
fn does(class: Class, facts: &Facts) -> Does {
    match class {
        Class::Sync => Does::Waits,
        Class::Copy if facts.blocking || facts.around_blocking => Does::Waits,
        Class::Alloc | Class::Free => Does::Memory,
        Class::Module | Class::Graph => Does::Code,
        _ => Does::Else,
    }
}

impl GpuPlane {
    /// A call passes that has returned.
    pub(super) fn note_call(
        &mut self,
        layer: Layer,
        header: &CallHeader,
        class: Class,
        facts: &Facts,
        site: Option<u64>,
    ) {
        if !matches!(layer, Layer::Runtime | Layer::Driver) {
            return;
        }
        let called = Called {
            entered: header.entered,
            returned: header.entered.saturating_add(header.duration),
            does: does(class, facts),
            site,
        };
        self.waiting.call((header.tgid, header.tid), called);
    }

    /// What was measured beside calls passes.
    pub(super) fn note_measure(&mut self, measure: &Measure) {
        let thread = (measure.pid, measure.tid);
        match &measure.what {
            Measured::Outside { ns, running, stack } => self.waiting.stay(
                thread,
                Stay {
                    from: measure.at,
                    until: measure.at.saturating_add(*ns),
                    running: *running,
                    stack: Rc::clone(stack),
                },
            ),
            Measured::Between { ns, stack } => {
                let at = measure.at.saturating_add(*ns);
                self.waiting.look(thread, at, stack);
            }
            Measured::Value { name, value } if name == "thread.cpu_ns" => {
                self.waiting.account(thread, measure.at, Some(*value), None);
            }
            Measured::Value { name, value } if name == "thread.runnable_ns" => {
                self.waiting.account(thread, measure.at, None, Some(*value));
            }
            _ => {}
        }
    }

    /// Which processes have records, and whether some of them are missing.
    fn expect(&mut self) {
        for told in self.reports() {
            let coverage = Coverage::of(&told);
            if coverage.seen == Seen::Yes {
                self.waiting.expect(told.pid);
            }
            if let Some(since) = coverage.no_copies_ns {
                self.matcher.leave_copies(told.pid, since);
                self.waiting.lose_since(told.pid, since);
            }
            // the last ones of a process that was ended leave no gap
            if coverage.missing() > u64::from(coverage.broken_off) {
                self.waiting.lose(told.pid);
            }
        }
    }

    /// Up to when nothing can come any more of a process: all that was asked for before has been told of.
    fn horizon(&self, pid: u32, now: u64) -> u64 {
        let outstanding = self.matcher.outstanding(pid).unwrap_or(u64::MAX);
        let waited = outstanding.max(now.saturating_sub(PATIENCE_NS));
        waited.min(now.saturating_sub(RECORDS_LATE_NS))
    }
}

impl Tracer {
    /// Times in which processes had nothing running, measured where that was; `bounds`: as calls prove them. `last`: nothing comes
    /// any more.
    pub(super) fn idle_times(&mut self, now: u64, last: bool, bounds: Vec<(u32, Idle)>) -> Vec<(u32, Idle)> {
        let Some(gpu) = &mut self.gpu else { return bounds };
        gpu.expect();
        for (pid, bound) in bounds {
            gpu.waiting.bound(pid, bound);
        }
        let mut waiting = std::mem::take(&mut gpu.waiting);
        waiting.settle(now, |pid| if last { u64::MAX } else { gpu.horizon(pid, now) });
        let told = waiting.take();
        gpu.waiting = waiting;
        told
    }
}
