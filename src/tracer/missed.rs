//! What a run has missed, and how much of it, in words of its summary.
//!
//! Owns the words and their order. Each number is counted where it arises.

use super::Tracer;
use crate::catalog::Layer;
use crate::engine::Done;
use crate::engine::totals::Snapshot;
use crate::model::summary::Summary;

impl Tracer {
    pub(super) fn note_gaps(&self, snapshot: &Snapshot, summary: &mut Summary) {
        summary.unseen.extend(in_words(self.missed_around(snapshot)));
        summary
            .unseen
            .extend(self.attacher.missed_in_kernel(self.engine.as_ref()));
        let agents = self.engine.is_inside().unwrap_or_default();
        let strangers = self.engine.strangers();
        summary.unseen.extend(in_words(missed_by_agents(&agents)));
        summary.unseen.extend(in_words(self.missed_of_calls(summary)));
        summary.unseen.extend(strangers);
        let user_space = [Layer::Runtime, Layer::Driver, Layer::Custom];
        let looks_for_libraries = user_space.into_iter().any(|layer| self.rows.has_layer(layer));
        if summary.attached.is_empty() && looks_for_libraries {
            summary
                .unseen
                .push("no CUDA library was mapped by the traced processes; hint: gpuscope doctor -p PID".to_owned());
        }
    }

    /// Of processes and libraries, and of totals of calls.
    fn missed_around(&self, snapshot: &Snapshot) -> [(u64, &'static str); 7] {
        [
            (
                self.early_loads(snapshot.waits_expired),
                "loads of libraries did not wait until their probes were in place: first calls may be missing",
            ),
            (
                self.early.unread,
                "loads of libraries were not looked at before their process had ended: calls may be missing",
            ),
            (
                self.early.unnamed,
                "more processes may have run before their libraries were probed: calls may be missing",
            ),
            (
                snapshot.notices_lost,
                "notices of process life were lost: libraries may have been attached late",
            ),
            (
                snapshot.unattributed,
                "calls are counted without their process: its table was full",
            ),
            (
                snapshot.shapes_lost,
                "launches are not counted by shape: its table was full",
            ),
            (
                self.engine.counters().driver_lost,
                "calls of the kernel driver were only counted: what is held there is not exact",
            ),
        ]
    }

    /// Of what calls and ranges say.
    fn missed_of_calls(&self, summary: &Summary) -> [(u64, &'static str); 3] {
        [
            (
                self.engine.counters().ranges_lost,
                "ranges and marks (NVTX) have no record: more came at once, or were open, than there was room for",
            ),
            (
                summary.malformed,
                "records of calls, or of what was seen beside them, were malformed",
            ),
            (
                summary.functions.iter().map(|function| function.without_args).sum(),
                "calls were nested too deeply to keep their arguments, or these could not be read",
            ),
        ]
    }
}

/// Of programs that count their calls themselves.
fn missed_by_agents(agents: &Done) -> [(u64, &'static str); 5] {
    [
        (
            agents.dormant,
            "programs had no room in their addresses for what is shared with them: none of their calls is seen; hint: ulimit -v unlimited",
        ),
        (
            agents.unanswered,
            "programs went on before gpuscope had answered them: none of their calls is seen",
        ),
        (
            agents.refused,
            "functions of loaded libraries stay unhooked: their code is not that of their file, no memory near it is free, or they were loaded while nothing was traced and were not expected to be wanted",
        ),
        (
            agents.left,
            "times a program went on untraced, because gpuscope had stood still for a minute",
        ),
        (agents.unseen, "calls found nowhere to be counted: they are in no total"),
    ]
}

/// Those that are more than none, each with its number.
fn in_words<const N: usize>(missed: [(u64, &str); N]) -> impl Iterator<Item = String> {
    let some = missed.into_iter().filter(|(number, _)| *number > 0);
    some.map(|(number, what)| format!("{number} {what}"))
}
