//! The iterations ("steps") of programs: how many, how long, what the slowest did otherwise. Plain data, complete: outputs need
//! nothing else. How they are found is [`crate::steps`]' business.

use crate::catalog::Class;

/// Characters of a name in a sentence.
const ROOM: usize = 40;

/// What says where a step begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A call that comes once in each.
    Call {
        /// Stands for it.
        key: u64,
        /// What it launches, or else the function.
        name: String,
        /// It counts only right behind a launch of that.
        after: Option<String>,
        /// A step ends with it; else it begins with it.
        waits: bool,
        launches: bool,
    },
    /// A range (NVTX) of the program's own, on one thread: a step is as long as one.
    Range {
        /// Stands for it.
        key: u64,
        /// With `*` for numbers.
        name: String,
    },
}

/// What the steps of one process are cut at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anchor {
    pub pid: u32,
    /// Steps are those of one thread; `None`: of all of them together.
    pub tid: Option<u32>,
    pub origin: Origin,
    /// A step has work that varies.
    pub varies: bool,
    /// Of a step, about.
    pub launches: u64,
    /// Launches that lie in steps of about the same work, and all of the process or thread.
    pub explained: u64,
    pub of: u64,
}

impl Anchor {
    fn range_words(&self) -> String {
        match &self.origin {
            Origin::Range { name, .. } => format!("by NVTX range '{}'", begin_of(name)),
            Origin::Call { .. } => String::new(),
        }
    }

    /// Long names are cut: `each ends with cuStreamSynchronize`, `each begins with a launch of gemm behind one of softmax`; not escaped.
    #[must_use]
    pub fn words(&self) -> String {
        let Origin::Call {
            name,
            after,
            waits,
            launches,
            ..
        } = &self.origin
        else {
            return self.range_words();
        };
        let verb = if *waits { "ends" } else { "begins" };
        let what = if *launches { "a launch of " } else { "" };
        let behind = after
            .as_ref()
            .map(|after| format!(" behind one of {}", begin_of(after)));
        format!(
            "each {verb} with {what}{}{}",
            begin_of(name),
            behind.unwrap_or_default()
        )
    }
}

/// As much of a name as a sentence has room for.
fn begin_of(name: &str) -> String {
    match name.char_indices().nth(ROOM) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

/// One iteration. Times are ns since the start of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// From 1.
    pub number: u64,
    pub at: i64,
    pub end: i64,
    pub launches: u64,
    /// It did about the work of the others.
    pub usual: bool,
}

impl Step {
    /// How long it took.
    #[must_use]
    pub fn ns(&self) -> u64 {
        u64::try_from(self.end.saturating_sub(self.at)).unwrap_or(0)
    }
}

/// The first steps, which others are not like.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WarmUp {
    pub steps: u64,
    pub ns: u64,
}

/// What there is to tell of the steps of a trace; neither: they were not looked for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Told {
    /// Those of the process that launches most first.
    pub found: Vec<Steps>,
    pub why_none: Option<String>,
}

/// A step that took long.
#[derive(Debug, Clone, PartialEq)]
pub struct Slow {
    pub step: Step,
    pub differences: Vec<Difference>,
    /// Allocated, and idle (measured as that of all steps), beyond what is usual.
    pub more_allocated_bytes: u64,
    pub more_idle_ns: u64,
    /// Calls may have been lost meanwhile: it may be several steps, and have done anything.
    pub lost: bool,
}

/// What there is to tell of the steps of a process.
#[derive(Debug, Clone, PartialEq)]
pub struct Steps {
    pub anchor: Anchor,
    /// All of them.
    pub count: u64,
    /// They are counted from then on, ns since the start of the trace: before, it was not known where they begin. `None`: from
    /// the first row on.
    pub since_ns: Option<i64>,
    /// From the first call of the process to the first step, ns.
    pub before_ns: u64,
    pub warm_up: WarmUp,
    /// Where the first step behind the warm-up begins, and where the last one ends. What follows is of these.
    pub from_ns: i64,
    pub to_ns: i64,
    /// That do about the work of the others: durations are theirs.
    pub usual: u64,
    pub usual_ns: u64,
    pub median_ns: u64,
    pub p99_ns: u64,
    pub min_ns: u64,
    pub max_ns: u64,
    /// Median and 99th percentile are of one of so many steps.
    pub one_of: u64,
    /// In the median, all threads were in no call for so long; `None`: there is no such step.
    pub outside_ns: Option<u64>,
    /// Slowest first.
    pub slowest: Vec<Slow>,
    /// Those that do something else, or more: how long all of them, and the longest.
    pub unusual: u64,
    pub unusual_ns: u64,
    pub longest_unusual: Vec<Step>,
    /// Nothing that the process had submitted can have been running, in all these steps; `idle_measured`: devices told of all that they
    /// did, else it is so long at least.
    pub idle_ns: u64,
    pub idle_measured: bool,
    /// Of the time from `from_ns` to `to_ns`, that in which calls were lost, or may have been.
    pub lost_ns: u64,
}

impl Steps {
    /// From the first step behind the warm-up to the end of the last.
    #[must_use]
    pub fn span_ns(&self) -> u64 {
        u64::try_from(self.to_ns.saturating_sub(self.from_ns)).unwrap_or(0)
    }
}

/// Where the host was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Where {
    Calls(Class),
    /// All threads in no call.
    Outside,
}

/// Where a step spent more time than others do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    pub place: Where,
    pub more_ns: u64,
    /// Calls that others do not make.
    pub more_calls: u64,
    /// The longest call there, and how long it took.
    pub longest: Option<(String, u64)>,
}
