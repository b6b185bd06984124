//! Process life as the kernel tells of it, in the order in which it came.
//!
//! Owns who is told of a birth, a new program, an end. What is attached then is [`super::targets`]' business.

use super::{Scope, Tracer};
use crate::activity;
use crate::discover;
use crate::engine::Arrival;
use crate::model::beside::Happening;
use crate::model::window::Happened;
use crate::wire::{self, Notice};
use std::time::{Duration, Instant};

/// How long notices are handled before something else has its turn.
const NOTICES_FOR: Duration = Duration::from_millis(100);

impl Tracer {
    pub(super) fn handle_notices(&mut self) {
        self.arrivals.silence();
        let begun = Instant::now();
        while let Some(arrival) = self.arrivals.next_arrival() {
            self.handle(arrival);
            // a storm of processes must not keep the rings, signals and questions waiting
            if self.fleet.is_some() && begun.elapsed() > NOTICES_FOR {
                self.arrivals.ring();
                break;
            }
        }
        self.malformed += self.arrivals.take_malformed();
    }

    fn handle(&mut self, arrival: Arrival) {
        let notice = &arrival.notice;
        let comm = wire::text_of(&notice.comm);
        self.note_life(notice, &comm);
        match notice.kind {
            // what a probe costs is measured by calls of our own
            wire::NOTICE_THREAD if notice.tgid == std::process::id() => {}
            // it is ours: CUPTI calls the driver in it
            wire::NOTICE_THREAD if comm == activity::THREAD => self.leave_out(notice.tid),
            wire::NOTICE_THREAD => {
                self.callers.insert(notice.tgid);
                self.burden.meet(notice.tgid);
                self.open.meet(notice.tgid, notice.tid);
                self.begin_clock(notice.tid);
                if let Some(measures) = self.measures.as_mut() {
                    measures.meet(notice.tgid, notice.tid);
                }
                if self.rows.names_processes() {
                    let of_process = || discover::comm(notice.tgid, notice.tgid).unwrap_or_else(|| comm.clone());
                    self.comms.entry(notice.tgid).or_insert_with(of_process);
                }
                if self.encoder.is_some() {
                    self.comms.insert(notice.tid, comm);
                    self.threads.met(notice.tgid, notice.tid);
                }
            }
            wire::NOTICE_FORK => {
                self.name_program(notice.tgid, &comm);
                self.memory.born(notice.tgid, notice.at);
                self.happened(notice, &comm, Happening::Forked { parent: notice.parent });
            }
            wire::NOTICE_EXEC => {
                self.open.exited(notice.tgid, notice.at);
                self.comms.remove(&notice.tgid);
                self.name_program(notice.tgid, &comm);
                self.memory.executed(notice);
                self.work.ended(notice);
                self.leave_driver(notice);
                self.fold_image(notice.tgid);
                self.family.executes(notice.tgid);
                self.happened(notice, &comm, Happening::Executed);
                self.note_width(notice.tgid, &comm);
                self.prepare_for(arrival);
            }
            wire::NOTICE_EXIT => {
                self.look_at_last_calls(&arrival);
                self.open.exited(notice.tgid, notice.at);
                self.memory.exited(notice);
                self.work.ended(notice);
                self.leave_driver(notice);
                let what = match notice.parent {
                    0 => Happening::Exited,
                    signal => Happening::Killed { signal },
                };
                self.happened(notice, &comm, what);
                self.ended.insert(notice.tgid);
            }
            wire::NOTICE_LIBRARY => self.prepare_for(arrival),
            _ => self.malformed += 1,
        }
    }

    fn leave_driver(&mut self, notice: &Notice) {
        if let Some(driver) = self.driver.as_mut() {
            driver.ended(notice);
        }
    }

    fn happened(&mut self, notice: &Notice, comm: &str, what: Happening) {
        let gone = matches!(what, Happening::Exited | Happening::Killed { .. });
        self.settle_process(notice.tgid, gone);
        if matches!(self.scope, Scope::Processes(_)) {
            if gone {
                self.descendants.remove(&notice.tgid);
            } else {
                self.descendants.insert(notice.tgid, comm.to_owned());
            }
            self.window.happen(Happened {
                at: notice.at,
                tgid: notice.tgid,
                comm: comm.to_owned(),
                what,
            });
        }
    }
}
