//! A program that waits long before its first call.

use crate::catalog::Class;
use crate::findings::evidence::End;
use crate::findings::scene::Seen;
use crate::findings::{Rule, Wants};
use crate::model::finding::Finding;
use crate::model::work::Certainty;
use crate::record::Kind;
use crate::text::quantity::duration;

/// ns.
const LONG: u64 = 60_000_000_000;

/// See the module.
#[derive(Debug, Default)]
pub struct QuietStart {
    first: Option<i64>,
}

impl Rule for QuietStart {
    fn name(&self) -> &'static str {
        "quiet-start"
    }

    fn wants(&self, kind: Kind, _: Class) -> Wants {
        match kind {
            Kind::Call => Wants::All,
            _ => Wants::Nothing,
        }
    }

    fn take(&mut self, seen: &Seen<'_>) {
        self.first.get_or_insert(seen.event.at);
    }

    fn conclude(&self, end: &End<'_>) -> Option<Finding> {
        let ns = u64::try_from(self.first?).ok().filter(|ns| *ns > LONG)?;
        Some(Finding {
            rule: self.name(),
            title: "The program waited before its first call".to_owned(),
            what: format!("for {}", duration(ns)),
            cost_ns: ns,
            grave: false,
            certainty: Certainty::Measured,
            count: 1,
            moments: Vec::new(),
            site: None,
            places: Vec::new(),
            cure: "look at what it loads first".to_owned(),
            thresholds: format!("longer than {}", duration(LONG)),
            weakened: end.weakness(&[]),
        })
    }
}
