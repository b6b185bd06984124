//! Which call was made by which: calls of a thread come by time of entry, a caller that took long comes after its
//! callees.

use super::Map;
use crate::record::{Kind, Record};

/// An arrow from a call to one that it made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    pub id: u64,
    /// Entry of the callee.
    pub at: i64,
    /// Of the callee.
    layer: u32,
}

/// A call that is over.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Over<T> {
    pub at: i64,
    pub end: i64,
    /// What was held of it.
    pub held: T,
    /// To those callees that an arrow leads to.
    pub flows: Vec<Flow>,
    /// Whether its callees, or theirs, put work into a stream.
    pub submitted_within: bool,
}

/// A call of which is not known yet whether it is over. Without `held`, only its callees have come.
struct Open<T> {
    at: i64,
    end: i64,
    depth: u8,
    held: Option<T>,
    layer: u32,
    submits: bool,
    submitted_within: bool,
    flows: Vec<Flow>,
}

/// Open calls of all threads: as many as are nested, whatever the length of the trace.
pub(super) struct Nest<T> {
    threads: Map<(u32, u32), Vec<Open<T>>>,
    layers: Vec<String>,
    next_flow: u64,
}

impl<T> Nest<T> {
    pub(super) fn new() -> Nest<T> {
        Nest {
            threads: Map::default(),
            layers: Vec::new(),
            next_flow: 1,
        }
    }

    /// Takes a call in. `submits`: it put work into a stream. `hold` makes what is kept of it, out of the id of the arrow that leads to it; `over` gets those
    /// that are over by now, callees before callers.
    pub(super) fn enter(
        &mut self,
        event: &Record<'_>,
        submits: bool,
        hold: impl FnOnce(Option<u64>) -> T,
        mut over: impl FnMut(Over<T>),
    ) {
        let layer = self.layer(event.layer);
        let open = self.threads.entry((event.pid, event.tid)).or_default();
        let depth = event.depth;
        let comes_late = |top: &Open<T>| top.held.is_none() && top.at == event.at && top.depth == depth;
        while let Some(top) = open.last().filter(|top| top.depth >= depth && !comes_late(top)) {
            // a call that comes late has begun before its callees: it cannot bound them
            let bound = if event.at >= top.at { event.at } else { i64::MAX };
            close(open, bound, &mut over);
        }
        let late = open.last().is_some_and(comes_late);
        let caller_at = event.since_caller.map(|since| event.at.saturating_sub_unsigned(since));
        let caller = caller_at.and_then(|at| caller(open, at, depth, late));
        let (mut end, mut flow) = (event.end(), None);
        if let Some(caller) = caller {
            end = end.min(caller.end);
            if event.kind == Kind::Call && (caller.held.is_none() || caller.layer != layer) {
                flow = Some(self.next_flow);
                caller.flows.push(Flow {
                    id: self.next_flow,
                    at: event.at,
                    layer,
                });
                self.next_flow += 1;
            }
        }
        let held = Some(hold(flow));
        match open.last_mut().filter(|_| late) {
            Some(top) => (top.held, top.end, top.layer, top.submits) = (held, end, layer, submits),
            None => open.push(Open {
                end,
                held,
                layer,
                submits,
                ..Open::unknown(event.at, depth)
            }),
        }
    }

    /// The rest, of a process or of all.
    pub(super) fn leave(&mut self, pid: Option<u32>, mut over: impl FnMut(Over<T>)) {
        let mut gone: Vec<(u32, u32)> = self.threads.keys().copied().collect();
        gone.retain(|(of, _)| pid.is_none_or(|pid| pid == *of));
        gone.sort_unstable();
        for thread in gone {
            let mut open = self.threads.remove(&thread).unwrap_or_default();
            while !open.is_empty() {
                close(&mut open, i64::MAX, &mut over);
            }
        }
    }

    fn layer(&mut self, name: &str) -> u32 {
        let known = self.layers.iter().position(|layer| layer == name);
        known.unwrap_or_else(|| {
            self.layers.push(name.to_owned());
            self.layers.len() - 1
        }) as u32
    }
}

impl<T> Open<T> {
    fn unknown(at: i64, depth: u8) -> Open<T> {
        Open {
            at,
            end: i64::MAX,
            depth,
            held: None,
            layer: u32::MAX,
            submits: false,
            submitted_within: false,
            flows: Vec::new(),
        }
    }
}

/// The call at nesting `depth` was made by the one that was entered at `at`.
fn caller<T>(open: &mut Vec<Open<T>>, at: i64, depth: u8, late: bool) -> Option<&mut Open<T>> {
    let below = open.len().checked_sub(1 + usize::from(late));
    let known = below.is_some_and(|below| open[below].at == at);
    match (known, late) {
        (true, _) => open.get_mut(below?),
        (false, true) => None,
        (false, false) => {
            open.push(Open::unknown(at, depth.saturating_sub(1)));
            open.last_mut()
        }
    }
}

fn close<T>(open: &mut Vec<Open<T>>, bound: i64, over: &mut impl FnMut(Over<T>)) {
    let Some(mut top) = open.pop() else { return };
    if let Some(below) = open.last_mut() {
        below.submitted_within |= top.submitted_within || top.submits;
    }
    let Some(held) = top.held else { return };
    top.flows.retain(|flow| flow.layer != top.layer);
    over(Over {
        at: top.at,
        end: top.end.min(bound),
        held,
        flows: top.flows,
        submitted_within: top.submitted_within,
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(at: i64, ns: u64, depth: u8, since_caller: Option<u64>, layer: &'static str) -> Record<'static> {
        Record {
            ns: Some(ns),
            depth,
            since_caller,
            layer,
            ..Record::new(Kind::Call, at, 7)
        }
    }

    /// Entry, end and arrows of each call, as they come.
    fn followed(events: &[Record<'_>]) -> Vec<(i64, i64, usize)> {
        let (mut nest, mut seen) = (Nest::new(), Vec::new());
        let mut see = |over: Over<()>| seen.push((over.at, over.end, over.flows.len()));
        events
            .iter()
            .for_each(|event| nest.enter(event, false, |_| (), &mut see));
        nest.leave(None, &mut see);
        seen
    }

    #[test]
    fn a_caller_has_an_arrow_to_each_callee_of_another_layer() {
        let calls = [
            call(0, 100, 0, None, "runtime"),
            call(10, 20, 1, Some(10), "driver"),
            call(40, 20, 1, Some(40), "driver"),
            call(70, 20, 1, Some(70), "runtime"),
            call(200, 5, 0, None, "runtime"),
        ];
        let expected = [(10, 30, 0), (40, 60, 0), (70, 90, 0), (0, 100, 2), (200, 205, 0)];
        assert_eq!(followed(&calls), expected);
    }

    #[test]
    fn a_caller_that_comes_late_gets_its_arrows() {
        let calls = [
            call(10, 20, 1, Some(10), "driver"),
            call(40, 20, 1, Some(40), "driver"),
            call(0, 300, 0, None, "runtime"),
            call(400, 5, 0, None, "runtime"),
        ];
        assert_eq!(followed(&calls), [(10, 30, 0), (40, 60, 0), (0, 300, 2), (400, 405, 0)]);
    }

    #[test]
    fn a_caller_that_never_comes_is_not_made_up() {
        let calls = [
            call(10, 20, 1, Some(10), "driver"),
            call(500, 20, 1, Some(10), "driver"),
            call(700, 5, 0, None, "runtime"),
        ];
        assert_eq!(followed(&calls), [(10, 30, 0), (500, 520, 0), (700, 705, 0)]);
    }

    #[test]
    fn no_call_outlasts_its_caller_or_runs_into_the_next() {
        let calls = [
            call(0, 100, 0, None, "runtime"),
            call(10, 500, 1, Some(10), "driver"),
            call(150, 100, 0, None, "runtime"),
            call(200, 100, 0, None, "runtime"),
        ];
        assert_eq!(
            followed(&calls),
            [(10, 100, 1), (0, 100, 1), (150, 200, 0), (200, 300, 0)].map(|(at, end, flows)| (
                at,
                end,
                if at == 0 { flows } else { 0 }
            ))
        );
    }
}
