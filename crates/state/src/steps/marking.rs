//! Steps as rows among others, for who shows what happened when.

use super::anchor::Anchor;
use super::cutter::{Cutter, Step};
use crate::record::{Kind, Meta, Record, Taker};

/// Hands all rows on, and behind its last one each step.
pub struct Marking<'a> {
    cutters: Vec<Cutter>,
    to: &'a mut dyn Taker,
}

impl<'a> Marking<'a> {
    /// Steps are those of these.
    pub fn new(anchors: Vec<Anchor>, to: &'a mut dyn Taker) -> Marking<'a> {
        Marking {
            cutters: anchors.into_iter().map(Cutter::new).collect(),
            to,
        }
    }

    /// After the last row.
    pub fn finish(self) {
        let Marking { cutters, to } = self;
        for mut cutter in cutters {
            let pid = cutter.anchor().pid;
            if let Some(step) = cutter.finish() {
                mark(&step, pid, to);
            }
        }
    }
}

impl Taker for Marking<'_> {
    fn start(&mut self, meta: &Meta) {
        self.to.start(meta);
    }

    fn take(&mut self, record: &Record<'_>) {
        self.to.take(record);
        for cutter in &mut self.cutters {
            if let Some(step) = cutter.take(record).step {
                mark(&step, cutter.anchor().pid, self.to);
            }
        }
    }

    fn totals(&mut self, at: i64, totals: &str) {
        self.to.totals(at, totals);
    }
}

fn mark(step: &Step, pid: u32, to: &mut dyn Taker) {
    let name = format!("step {}", step.number);
    let args = format!("{{\"launches\":{},\"usual\":{}}}", step.launches, step.usual);
    to.take(&Record {
        name: &name,
        args: Some(&args),
        count: step.number,
        ns: Some(step.ns()),
        ..Record::new(Kind::Step, step.at, pid)
    });
}
