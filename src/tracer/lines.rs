//! From events to lines: held back for a moment to be sorted, then written.
//!
//! Owns the buffer before the output, and what of events was lost. What a line looks like is an encoder's business.

use super::Tracer;
use super::gpu::GivenTo;
use crate::catalog::{Catalog, Layer};
use crate::decode::Call;
use crate::model::beside::Measure;
use crate::model::window::{Due, Happened};
use crate::model::xid::Report;
use crate::record::{Asked, Encoder, Facts, Record, Taker, Traced};
use crate::stack::wire::SITE_FIRST_ID;
use crate::{discover, driver};
use anyhow::Result;

/// Events younger than this are held back to be sorted.
const WINDOW_NS: u64 = 100_000_000;
/// Events to be held back beyond this go out unsorted rather than take memory.
const HELD_BYTES: usize = 8 << 20;

impl Tracer {
    /// Moves new events to those held back.
    pub(super) fn hold(&mut self) {
        if self.encoder.is_some() {
            self.ask_for_texts();
        }
        self.malformed += self.window.take_in(&mut self.events.inbox().borrow_mut());
    }

    /// What is older goes out now, CLOCK_MONOTONIC ns. All calls were taken out that had returned at `drained`.
    pub(super) fn horizon(&self, drained: u64) -> u64 {
        let settled = drained.saturating_sub(WINDOW_NS);
        let is_full = self.window.held_bytes() > HELD_BYTES && self.window.held_bytes_from(settled) > HELD_BYTES;
        if is_full { u64::MAX } else { settled }
    }

    /// Writes what was held back from before `horizon`, in order; totals behind what they are of.
    pub(super) fn emit(&mut self, horizon: u64) {
        if let Some(ready) = self.snapshots.take_ready(horizon) {
            self.release(ready.at);
            let made = self.maker.totals(ready.at, &ready.totals);
            if let Some(encoder) = self.encoder.as_mut() {
                encoder.take(&made, &mut self.buffer);
            }
        }
        self.release(horizon);
        let horizon = i64::try_from(horizon).map_or(i64::MAX, |_| self.maker.since(horizon));
        if let Some(encoder) = self.encoder.as_mut() {
            encoder.passed(horizon, &mut self.buffer);
        }
    }

    fn release(&mut self, horizon: u64) {
        let mut window = std::mem::take(&mut self.window);
        window.release(horizon, |due| match due {
            Due::Call(bytes) => self.write_event(bytes),
            Due::Process(happened) => self.write_happened(happened),
            Due::Xid(report) => self.write_xid(report),
            Due::Measure(measure) => self.write_measure(measure),
            Due::Activity(activity) => self.write_activity(activity),
            Due::Range(range) => self.write_range(range),
        });
        self.window = window;
    }

    fn write_happened(&mut self, happened: &Happened) {
        let made = self
            .maker
            .process(happened.tgid, happened.at, &happened.comm, happened.what);
        hand(&made, &mut self.findings, &mut self.encoder, &mut self.buffer);
    }

    fn write_xid(&mut self, report: &Report) {
        if let Some(encoder) = self.encoder.as_mut() {
            encoder.take(&self.maker.xid(report), &mut self.buffer);
        }
    }

    fn write_measure(&mut self, measure: &Measure) {
        if let Some(gpu) = &mut self.gpu {
            gpu.note_measure(measure);
        }
        let made = self.maker.measure(measure);
        hand(&made, &mut self.findings, &mut self.encoder, &mut self.buffer);
    }

    fn write_event(&mut self, bytes: &[u8]) {
        let Some(encoder) = self.encoder.as_ref() else { return };
        let keeps = encoder.keeps();
        let completed = self.memory.late.completed(bytes);
        let bytes = completed.as_deref().unwrap_or(bytes);
        let Some(call) = Call::decode(bytes, &self.rows.catalog, &self.rows.plans) else {
            self.malformed += 1;
            return;
        };
        let header = &call.header;
        if call.returned() {
            self.open.returned((header.tid, header.entered));
        }
        let number = self
            .numbers
            .number(header.tid, header.depth, header.entered, header.caller);
        let comm = self
            .comms
            .entry(header.tid)
            .or_insert_with(|| discover::comm(header.tgid, header.tid).unwrap_or_else(|| "?".to_owned()));
        let layer = layer_of(&self.rows.catalog, &call);
        let rows = self.rows.catalog.driver.filter(|rows| rows.contains(header.row));
        let asked = rows.and_then(|rows| Some(Asked::of(&driver::Record::parse(bytes)?, rows.dialect)));
        let full = self.full_names;
        let kernel = call.kernel().and_then(|id| self.launches.name(id));
        let launched = kernel;
        let kernel = kernel.map(|name| if full { name.full.as_str() } else { name.short.as_str() });
        let sites = &mut self.memory.sites;
        let site = call.site().or_else(|| sites.recent(header.tid, header.entered));
        let stack = site.and_then(|site| sites.frames(site));
        let facts = self.work.facts.take(header, call.row.class);
        if let Some(gpu) = &mut self.gpu {
            let known = self.rows.catalog.library_with(call.row.library);
            let given = GivenTo {
                stream: facts.stream.or_else(|| call.stream()).unwrap_or(0),
                kernel: launched,
                site: site.filter(|site| *site >= SITE_FIRST_ID),
            };
            let layer = known.map_or(Layer::Custom, |library| library.layer);
            gpu.follow(layer, &call, &given);
            if call.returned() {
                gpu.note_call(layer, header, call.row.class, &facts, given.site);
            }
        }
        let standstill_ns = self.burden.of_call(header.tid, header.entered);
        let traced = Traced {
            call: &call,
            number,
            comm,
            layer,
            kernel,
            asked: asked.as_ref(),
            stack: stack.as_deref(),
            facts: Facts {
                stream: facts.stream.or_else(|| call.stream()),
                standstill_ns,
                ..facts
            },
        };
        let made = self.maker.call(&traced, keeps);
        hand(&made, &mut self.findings, &mut self.encoder, &mut self.buffer);
        self.shown = true;
        self.write_if_full();
    }

    pub(super) fn write_if_full(&mut self) {
        if self.buffer.len() >= 1 << 18 {
            self.output.write(&self.buffer);
            self.buffer.clear();
        }
    }

    pub(super) fn report_lost(&mut self, now: u64) {
        let lost = self.engine.counters().events_lost;
        if std::mem::replace(&mut self.lost_in_all, lost) == lost {
            self.lost_since = now;
            return;
        }
        let Ok(counters) = self.engine.row_counters(self.rows.plans.len()) else {
            return;
        };
        for (row, counter) in counters.iter().enumerate() {
            let before = std::mem::replace(&mut self.lost[row], counter.lost);
            if self.encoder.is_some() && counter.lost > before {
                let name = self.rows.catalog.rows.get(row).map_or("?", |row| row.symbol.as_str());
                let made = self.maker.lost(name, counter.lost - before, self.lost_since, now);
                hand(&made, &mut self.findings, &mut self.encoder, &mut self.buffer);
            }
        }
        self.lost_since = now;
    }

    /// Hands what is buffered to the output.
    ///
    /// # Errors
    /// The output is full or broken; a closed pipe is no error.
    pub fn flush(&mut self) -> Result<()> {
        if !self.buffer.is_empty() {
            self.output.write(&self.buffer);
            self.buffer.clear();
        }
        self.output.check()
    }

    /// Whether nobody reads the output any more.
    pub(crate) fn output_closed(&self) -> bool {
        self.output.closed()
    }
}

/// Hands a record to whoever takes records.
fn hand(
    made: &Record<'_>,
    findings: &mut super::findings::Plane,
    encoder: &mut Option<Box<dyn Encoder>>,
    out: &mut Vec<u8>,
) {
    if let Ok(findings) = findings {
        Taker::take(findings.as_mut(), made);
    }
    if let Some(encoder) = encoder {
        encoder.take(made, out);
    }
}

pub(super) fn layer_of<'a>(catalog: &'a Catalog, call: &Call<'_>) -> &'a str {
    catalog
        .library_with(call.row.library)
        .map_or("?", |library| library.name.as_str())
}
