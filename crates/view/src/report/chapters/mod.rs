//! What a report says below its findings: one chapter for each subject, the same in every form.

mod by_line;
mod calls;
mod executed;
mod idle;
mod kernels;
mod memory;
mod processes;
mod ranges;
mod steps;
mod waited;
mod waits;

use super::Report;
use crate::section::{Chapter, Section};
use crate::sink::outside;

/// All that have something to say.
pub(super) fn of(report: &Report) -> Vec<Chapter> {
    let all = [
        steps::steps(report),
        calls::unreturned(report),
        calls::functions(report),
        calls::slowest(report),
        executed::executed(report),
        waited::waited(report),
        by_line::by_line(report),
        ranges::ranges(report),
        kernels::kernels(report),
        kernels::copies(report),
        waits::waits(report),
        idle::idle(report),
        sampled(report),
        memory::memory(report),
        calls::failures(report),
        processes::processes(report),
        processes::xids(report),
    ];
    let mut chapters = Vec::from(all);
    for chapter in &mut chapters {
        chapter.sections.retain(Section::says);
    }
    chapters.retain(|chapter| !chapter.sections.is_empty());
    chapters
}

fn sampled(report: &Report) -> Chapter {
    let section = Section {
        about: outside::TITLE.to_owned(),
        lines: outside::lines(&report.outside),
        ..Section::default()
    };
    Chapter::of("outside", "Outside", "Outside CUDA", section)
}
