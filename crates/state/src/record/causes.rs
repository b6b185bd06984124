//! Which of the calls that have passed an activity names: their numbers, whatever numbers are for who takes records.
//!
//! Owns calls that may still be named, the newest; an activity names its call by thread and time, which hold in any file.

use super::{Kind, Record, json};
use crate::catalog::Class;
use std::collections::{HashMap, VecDeque};

/// Calls that are known. What a device does comes soon after its call: it is given so much ahead at most.
const MOST: usize = 1 << 18;

/// Which of the calls that have passed an activity names.
#[derive(Debug, Default)]
pub struct Causes {
    numbers: HashMap<(u32, i64), u64>,
    order: VecDeque<(u32, i64)>,
}

impl Causes {
    /// A call has that number.
    pub fn note(&mut self, call: &Record<'_>, number: u64) {
        let gives = matches!(call.class, Class::Launch | Class::Copy | Class::Memset);
        if gives && call.kind == Kind::Call {
            self.keep((call.tid, call.at), number);
        }
    }

    /// The call around it has that number, too.
    pub fn note_around(&mut self, call: &Record<'_>, number: u64) {
        if let Some(since) = call.since_caller {
            self.keep((call.tid, call.at.saturating_sub_unsigned(since)), number);
        }
    }

    fn keep(&mut self, key: (u32, i64), number: u64) {
        if self.order.len() == MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.numbers.remove(&oldest);
        }
        if self.numbers.insert(key, number).is_none() {
            self.order.push_back(key);
        }
    }

    /// That of the call that has caused an activity; `None`: it has none, or no line here.
    pub fn of(&self, activity: &Record<'_>) -> Option<u64> {
        let call = json::call_of_activity(activity.args?)?;
        self.numbers.get(&call).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(at: i64) -> Record<'static> {
        Record {
            class: Class::Launch,
            ..Record::new(Kind::Call, at, 7)
        }
    }

    fn ran(args: &'static str) -> Record<'static> {
        Record {
            args: Some(args),
            ..Record::new(Kind::Gpu, 9_000, 7)
        }
    }

    #[test]
    fn an_activity_finds_its_call_by_thread_and_time() {
        let mut causes = Causes::default();
        causes.note(&launch(-50), 3);
        causes.note(&launch(20), 4);
        let of = |args| causes.of(&ran(args));
        assert_eq!(of(r#"{"call_tid":7,"call_ts_ns":-50,"match":"ordered"}"#), Some(3));
        assert_eq!(
            of(r#"{"call_tid": 7,"call_ts_ns":20}"#),
            None,
            "that is not how it is written"
        );
        assert_eq!(of(r#"{"call_tid":8,"call_ts_ns":20}"#), None, "another thread's");
        assert_eq!(of(r#"{"match":"none"}"#), None);
    }

    #[test]
    fn only_the_newest_are_kept() {
        let mut causes = Causes::default();
        (0..=MOST as i64).for_each(|at| causes.note(&launch(at), at as u64));
        assert_eq!((causes.numbers.len(), causes.order.len()), (MOST, MOST));
        assert_eq!(causes.of(&ran(r#"{"call_tid":7,"call_ts_ns":0}"#)), None);
        assert_eq!(causes.of(&ran(r#"{"call_tid":7,"call_ts_ns":1}"#)), Some(1));
    }
}
