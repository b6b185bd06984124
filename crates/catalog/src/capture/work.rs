//! What the ring of work is told of a call.

use super::Planner;
use crate::catalog::{Row, Step, Work, WorkPart};
use crate::wire;

impl Planner<'_> {
    /// What the ring of work is told.
    pub(super) fn work(&mut self, row: &Row, work: &Work) {
        let parts: Option<Vec<wire::Read>> = work.parts.iter().map(|(_, place)| self.read(row, *place)).collect();
        let Some(parts) = parts.filter(|parts| parts.len() <= wire::WORK) else {
            return;
        };
        let Some(stream) = self.work_stream(row, work) else {
            return;
        };
        let mut spec = wire::Work {
            step: work_step(work.step),
            flags: self.work_flags(work),
            parts: parts.len() as u8,
            stride: self.stride(row, work),
            stream,
            ..wire::Work::NONE
        };
        spec.part[..parts.len()].copy_from_slice(&parts);
        self.spec.work = spec;
    }

    /// Where the stream of a call lies; a launch whose shape is read in one piece has read it already.
    fn work_stream(&mut self, row: &Row, work: &Work) -> Option<wire::Read> {
        match work.stream {
            None => Some(wire::Read::NONE),
            Some(_) if self.spec.launch.stream_in_block == 1 => Some(wire::Read {
                word: wire::WORD_STREAM,
                bytes: 8,
                offset: wire::READ_DIRECT,
            }),
            Some(place) => self.read(row, place),
        }
    }

    /// Bytes of an element of the arrays that describe a batch.
    fn stride(&self, row: &Row, work: &Work) -> u8 {
        let first = work.parts.first().filter(|_| work.step == Step::CopyBatch);
        let kind = first.and_then(|(_, place)| row.args.get(place.arg)).map(|arg| arg.kind);
        kind.and_then(|kind| kind.bytes(self.catalog))
            .map_or(0, |bytes| bytes as u8)
    }

    fn work_flags(&self, work: &Work) -> u8 {
        let blocks = work.step == Step::Copy && work.stream.is_none();
        let waits = blocks || matches!(work.step, Step::Sync | Step::Elapsed);
        let anchors = blocks || matches!(work.step, Step::Sync | Step::Query | Step::Record);
        let each = matches!(work.step, Step::GraphLaunch | Step::SubmitAnywhere)
            || work.step.submits() && self.used.launch_stacks;
        // a copy that is called asynchronous may wait, too
        let sites = (waits || work.step == Step::Copy) && self.used.sync_stacks
            || work.step.submits() && self.used.launch_stacks;
        let last = work.parts.last().map(|(part, _)| *part);
        let names_kernel = self.used.kernels && last == Some(WorkPart::Function);
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        flag(anchors, wire::WORK_ANCHOR)
            | flag(work.per_thread, wire::WORK_PER_THREAD)
            | flag(work.step == Step::CaptureBegin, wire::WORK_BEGINS_CAPTURE)
            | flag(work.step == Step::CaptureEnd, wire::WORK_ENDS_CAPTURE)
            | flag(each, wire::WORK_EACH)
            | flag(sites, wire::WORK_SITE)
            | flag(work.step == Step::StreamDestroy, wire::WORK_ENDS_LANE)
            | flag(names_kernel, wire::WORK_KERNEL)
    }
}

fn work_step(step: Step) -> u8 {
    match step {
        Step::Copy => wire::WORK_COPY,
        Step::CopyBatch => wire::WORK_BATCH,
        step if step.submits() => wire::WORK_SUBMIT,
        _ => wire::WORK_TELL,
    }
}
