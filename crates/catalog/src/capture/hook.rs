//! What a user's row computes in the kernel: from its conditions and sums to the words that they need.

use super::Planner;
use crate::catalog::{Aggregate, Comparison, Condition, Fold, Group, Kind, Number, Operand, Row};
use crate::wire;

/// Plans the conditions and sums of `row`; to be done before its values are used up.
pub(super) fn plan(planner: &mut Planner<'_>, row: &Row) {
    let hook = &row.hook;
    let mut spec = wire::Hook::NONE;
    for (test, condition) in spec.test.iter_mut().zip(&hook.filter) {
        *test = planner.test(row, condition);
        spec.tests += 1;
        spec.flags |= wire::HOOK_TESTS | words(test.of);
    }
    if let Some(sums) = &hook.aggregate {
        planner.sums(row, sums, &mut spec);
    }
    if hook.filter.is_empty() || hook.aggregate.is_some() {
        planner.finish_hook(row, spec);
        return;
    }
    // how many calls have passed is told, too
    spec.flags |= wire::HOOK_AGGREGATE;
    planner.finish_hook(row, spec);
}

/// Whether an operand is a captured word.
fn words(of: wire::Operand) -> u8 {
    u8::from(of.word <= wire::WORD_BYTES) * wire::HOOK_WORDS
}

/// A comparison, whether it has to be the other way.
fn test_kind(comparison: Comparison) -> (u8, u8) {
    match comparison {
        Comparison::Less => (wire::TEST_LESS, 0),
        Comparison::AtMost => (wire::TEST_GREATER, 1),
        Comparison::Greater => (wire::TEST_GREATER, 0),
        Comparison::AtLeast => (wire::TEST_LESS, 1),
        Comparison::Equal => (wire::TEST_EQUAL, 0),
        Comparison::Different => (wire::TEST_EQUAL, 1),
        Comparison::AnyBit => (wire::TEST_BITS, 0),
    }
}

impl Planner<'_> {
    fn finish_hook(&mut self, row: &Row, mut spec: wire::Hook) {
        if row.hook.takes_stacks() {
            spec.flags |= wire::HOOK_SITE | if row.hook.stack { wire::HOOK_WORDS } else { 0 };
        }
        self.spec.hook = spec;
    }

    fn test(&mut self, row: &Row, condition: &Condition) -> wire::Test {
        let (kind, negate) = test_kind(condition.comparison);
        let of = self.operand(row, condition.number);
        let sign = if of.is_signed == 1 { wire::SIGN_BIT } else { 0 };
        wire::Test {
            value: condition.value ^ sign,
            of,
            kind,
            negate,
            pad: 0,
        }
    }

    fn sums(&mut self, row: &Row, sums: &Aggregate, spec: &mut wire::Hook) {
        spec.flags |= wire::HOOK_AGGREGATE | fold_flags(sums.fold);
        if let Some(number) = sums.of {
            spec.of = self.operand(row, number);
            spec.flags |= words(spec.of);
        }
        spec.group = match sums.by {
            Group::All | Group::Process => wire::GROUP_NONE,
            Group::Thread => wire::GROUP_THREAD,
            Group::Comm => {
                spec.flags |= wire::HOOK_WORDS; // passes through memory of the thread
                wire::GROUP_COMM
            }
            Group::Stack => wire::GROUP_SITE,
            Group::Number(number) => {
                spec.by = self.operand(row, number);
                spec.flags |= words(spec.by);
                let text = number.kind == Kind::CStr && number.operand != Operand::Result;
                if text { wire::GROUP_TEXT } else { wire::GROUP_OPERAND }
            }
        };
    }

    fn operand(&mut self, row: &Row, number: Number) -> wire::Operand {
        let signed = number.is_signed();
        let width = number.kind.bytes(self.catalog).unwrap_or(8).clamp(1, 8) as u8;
        match number.operand {
            Operand::Argument(place) => match self.number(row, place) {
                Some(word) => wire::Operand::of(word.word, word.bytes.clamp(1, 8).min(width), signed),
                None => UNKNOWN,
            },
            Operand::Bytes => wire::Operand::of(wire::WORD_BYTES, 8, false),
            Operand::Result | Operand::Duration if !self.used.returns => UNKNOWN,
            Operand::Result => wire::Operand::of(wire::WORD_RESULT, width, signed),
            Operand::Duration => wire::Operand::of(wire::WORD_DURATION, 8, false),
        }
    }
}

const UNKNOWN: wire::Operand = wire::Operand::of(wire::WORD_UNKNOWN, 8, false);

fn fold_flags(fold: Fold) -> u8 {
    match fold {
        Fold::Count => 0,
        Fold::Sum => wire::HOOK_SUM,
        Fold::Min | Fold::Max | Fold::Stats => wire::HOOK_SUM | wire::HOOK_EXTREMES,
        Fold::Hist => wire::HOOK_SUM | wire::HOOK_POWERS,
    }
}
