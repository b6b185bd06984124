//! Traces for tests: calls of one process, one after the other.

use super::{Examiner, Finding, Rule};
use crate::catalog::{Class, CopyKind, HostMemory};
use crate::model::activity::Why;
use crate::record::{Kind, Record, Taker};

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const US: u64 = 1_000;
const PID: u32 = 7;

/// A process at work; `at` is now, in ns since the start of the trace.
pub(crate) struct Fixture {
    examiner: Examiner,
    pub at: i64,
    pub tid: u32,
}

impl Fixture {
    pub(crate) fn new(rules: Vec<Box<dyn Rule>>) -> Fixture {
        Fixture {
            examiner: Examiner::of(rules),
            at: 0,
            tid: PID,
        }
    }

    /// With one rule alone.
    pub(crate) fn of(rule: impl Rule + 'static) -> Fixture {
        Fixture::new(vec![Box::new(rule)])
    }

    pub(crate) fn findings(&self) -> Vec<Finding> {
        self.examiner.findings()
    }

    /// The only finding.
    pub(crate) fn finding(&self) -> Finding {
        let [finding] = <[Finding; 1]>::try_from(self.findings()).unwrap();
        finding
    }

    pub(crate) fn tracing_took(&mut self, ns: u64) {
        self.examiner.tracing_took(ns);
    }

    /// As it is.
    pub(crate) fn row(&mut self, event: &Record<'_>) {
        self.examiner.take(event);
    }

    /// A call of the driver that takes `ns`, as `with` changes it.
    pub(crate) fn call<'a>(&mut self, class: Class, ns: u64, with: impl FnOnce(&mut Record<'a>)) {
        let mut event: Record<'a> = Record {
            ns: Some(ns),
            tid: self.tid,
            layer: "driver",
            name: class.name(),
            class,
            result: Some(0),
            ..Record::new(Kind::Call, self.at, PID)
        };
        with(&mut event);
        self.examiner.take(&event);
        self.at = self.at.saturating_add_unsigned(ns);
    }

    /// Nothing is called for `ns`.
    pub(crate) fn pass(&mut self, ns: u64) {
        self.at = self.at.saturating_add_unsigned(ns);
    }

    /// Nothing is called for `ns`; a sample of all of it has that stack.
    pub(crate) fn outside(&mut self, ns: u64, stack: &'static str) {
        self.row(&Record {
            ns: Some(ns),
            tid: self.tid,
            name: crate::model::outside::SAMPLE,
            stack: Some(stack),
            ..Record::new(Kind::Sample, self.at, PID)
        });
        self.pass(ns);
    }

    /// A look at the thread now, `ns` after its last call, has that stack.
    pub(crate) fn look(&mut self, ns: u64, stack: &'static str) {
        self.row(&Record {
            ns: Some(ns),
            tid: self.tid,
            name: crate::model::outside::BETWEEN,
            stack: Some(stack),
            ..Record::new(Kind::Sample, self.at.saturating_sub_unsigned(ns), PID)
        });
    }

    /// Nothing is called for `ns`, and no device can have worked.
    pub(crate) fn idle(&mut self, ns: u64) {
        let since = self.at;
        self.pass(ns);
        self.idle_since(since);
    }

    /// No device can have worked from `since` to now.
    pub(crate) fn idle_since(&mut self, since: i64) {
        let ns = Some(self.at.abs_diff(since));
        self.row(&Record {
            ns,
            tid: self.tid,
            ..Record::new(Kind::Idle, since, PID)
        });
    }

    /// The device has told that it did nothing from `since` until now, and why.
    pub(crate) fn ran_dry(&mut self, since: i64, why: Why) {
        self.row(&Record::new(Kind::Gpu, since - 1, PID));
        self.idle_because(since, why);
    }

    /// The same without anything that it did before.
    pub(crate) fn idle_because(&mut self, since: i64, why: Why) {
        self.row(&Record {
            ns: Some(self.at.abs_diff(since)),
            tid: self.tid,
            name: why.name(),
            ..Record::new(Kind::Idle, since, PID)
        });
    }

    /// The device has told of something that it did for so long, from now on.
    pub(crate) fn ran(&mut self, ns: u64) {
        self.row(&Record {
            ns: Some(ns),
            ..Record::new(Kind::Gpu, self.at, PID)
        });
    }

    /// Of what devices told some is missing.
    pub(crate) fn doubt_records(&mut self) {
        self.examiner.doubt_records();
    }

    pub(crate) fn exit(&mut self) {
        self.row(&Record {
            name: "exit",
            ..Record::new(Kind::Process, self.at, PID)
        });
    }

    pub(crate) fn launch(&mut self) {
        self.call(Class::Launch, 4 * US, |event| event.stream = Some(1));
    }

    pub(crate) fn sync(&mut self, ns: u64) {
        self.call(Class::Sync, ns, |event| event.blocking = true);
    }

    pub(crate) fn alloc(&mut self, bytes: u64, address: u64, ns: u64) {
        self.call(Class::Alloc, ns, |event| {
            (event.bytes, event.address) = (Some(bytes), Some(address));
        });
    }

    pub(crate) fn free(&mut self, address: u64, ns: u64) {
        self.call(Class::Free, ns, |event| event.address = Some(address));
    }

    /// A copy of pinned memory that nobody waits for.
    pub(crate) fn copy(&mut self, direction: CopyKind, bytes: u64, stream: u64) {
        self.call(Class::Copy, 5 * US, |event| {
            (event.direction, event.bytes, event.stream) = (Some(direction), Some(bytes), Some(stream));
            event.host = Some(HostMemory::Pinned);
        });
    }

    /// Steps of 10 ms as they should be: the host is a step ahead, copies have a stream of their own.
    pub(crate) fn healthy(&mut self, steps: u64) {
        for _ in 0..steps {
            self.copy(CopyKind::HtoD, 4 << 20, 2);
            for _ in 0..20 {
                self.launch();
            }
            self.pass(400 * US);
            self.sync(9 * MS);
        }
    }

    /// A measure of a thread.
    pub(crate) fn sample(&mut self, name: &'static str, value: u64) {
        let event = Record {
            tid: self.tid,
            name,
            bytes: Some(value),
            ..Record::new(Kind::Sample, self.at, PID)
        };
        self.row(&event);
    }

    /// Calls that have no rows.
    pub(crate) fn count(&mut self, class: Class, count: u64, ns: Option<u64>) {
        let event = Record {
            layer: "runtime",
            name: "getter",
            class,
            count,
            ns,
            ..Record::new(Kind::Count, self.at, PID)
        };
        self.row(&event);
    }
}
