use super::*;
use crate::model::work::sample::{any_raw, decoded, raw};
use crate::wire::WorkCall;
use proptest::prelude::*;

const KERNEL: u64 = 4096;
const GRAPH: (WorkPart, u64) = (WorkPart::Graph, 0x600);
const EXEC: u64 = 0x700;
const EVENT: (WorkPart, u64) = (WorkPart::Event, 0x800);
const MAIN: u64 = 0x5000;
const SIDE: u64 = 0x5001;

/// Calls of one process, one after the other.
struct World {
    graphs: Graphs,
    now: u64,
}

impl World {
    fn new(origin: Origin) -> World {
        World {
            graphs: Graphs::new(origin),
            now: 1000,
        }
    }

    /// Whether the call became part of a graph.
    fn call(&mut self, stream: u64, symbol: &str, parts: &[(WorkPart, u64)]) -> bool {
        self.now += 100;
        self.make(WorkCall {
            stream,
            context: 1,
            kernel: KERNEL,
            ..raw(symbol, parts)
        })
    }

    fn make(&mut self, raw: WorkCall) -> bool {
        let (entered, returned) = (self.now, self.now + 10);
        self.graphs.note(&decoded(&WorkCall {
            entered,
            returned,
            ..raw
        }))
    }

    fn kernel(&mut self, stream: u64) -> bool {
        self.call(stream, "cuLaunchKernel", &[])
    }

    fn begin(&mut self, stream: u64) {
        self.call(stream, "cuStreamBeginCapture_v2", &[]);
    }

    fn end(&mut self, stream: u64) {
        self.call(stream, "cuStreamEndCapture", &[GRAPH]);
    }

    fn instantiate(&mut self) {
        self.call(0, "cuGraphInstantiateWithFlags", &[(WorkPart::Key, EXEC), GRAPH]);
    }

    fn launch(&mut self) -> bool {
        self.call(MAIN, "cuGraphLaunch", &[(WorkPart::Graph, EXEC)])
    }

    /// Kernels, copies and memsets that a new launch runs; `None`: not known.
    fn runs(&mut self) -> Option<(u64, u64, u64)> {
        let before = self.graphs.report();
        self.launch();
        let after = self.graphs.report();
        assert_eq!(after.launches, before.launches + 1);
        (after.known_launches > before.known_launches).then(|| {
            let (kernels, copies) = (after.kernels - before.kernels, after.copies - before.copies);
            (kernels, copies, after.memsets - before.memsets)
        })
    }
}

#[test]
fn what_is_put_into_a_stream_that_captures_is_not_run_until_the_graph_is() {
    let mut world = World::new(Origin::Start);
    assert!(!world.kernel(MAIN));
    world.begin(MAIN);
    assert!(world.kernel(MAIN) && world.kernel(MAIN));
    assert!(world.call(MAIN, "cuMemcpyHtoDAsync_v2", &[]));
    assert!(world.call(MAIN, "cuMemsetD8Async", &[]));
    assert!(world.call(MAIN, "cuLaunchHostFunc", &[]));
    assert!(!world.kernel(SIDE), "another stream");
    world.end(MAIN);
    assert!(!world.kernel(MAIN));
    world.instantiate();
    assert!(!world.launch());
    assert_eq!(world.runs(), Some((2, 1, 1)));
    let report = world.graphs.report();
    assert_eq!((report.launches, report.known_launches, report.captured), (2, 2, 2));
    assert_eq!(world.graphs.captured_launches(), &HashMap::from([(KERNEL, 2)]));
    assert_eq!(world.graphs.kernel_runs(), HashMap::from([(KERNEL, 4)]));
}

#[test]
fn a_stream_joins_by_waiting_for_an_event_of_the_capture_and_leaves_at_its_end() {
    let mut world = World::new(Origin::Start);
    world.begin(MAIN);
    assert!(!world.call(SIDE, "cuStreamWaitEvent", &[EVENT]), "not recorded yet");
    assert!(world.call(MAIN, "cuEventRecord", &[EVENT]));
    assert!(world.call(SIDE, "cuStreamWaitEvent", &[EVENT]));
    assert!(world.kernel(SIDE));
    world.end(MAIN);
    assert!(!world.kernel(SIDE));
    assert!(!world.call(0x5002, "cuStreamWaitEvent", &[EVENT]));
    world.instantiate();
    assert_eq!(world.runs(), Some((1, 0, 0)));
}

#[test]
fn a_graph_captured_while_calls_are_left_unseen_is_not_known_and_one_from_before_is() {
    let mut world = World::new(Origin::Start);
    let capture = |world: &mut World, unseen: bool| {
        world.begin(MAIN);
        world.kernel(MAIN);
        if unseen {
            world.graphs.miss();
        }
        world.end(MAIN);
        world.instantiate();
    };
    capture(&mut world, false);
    world.graphs.miss();
    assert_eq!(world.runs(), Some((1, 0, 0)), "it was made before");
    capture(&mut world, true);
    assert_eq!(world.runs(), None, "there may be more in it");
    world.begin(MAIN);
    world.graphs.miss();
    world.graphs.forget_captures();
    assert!(!world.kernel(MAIN), "its end may have been missed");
    capture(&mut world, false);
    assert_eq!(world.runs(), Some((1, 0, 0)), "all is seen again");
}

#[test]
fn an_event_recorded_elsewhere_since_is_none_of_the_capture() {
    let mut world = World::new(Origin::Start);
    world.begin(MAIN);
    world.call(MAIN, "cuEventRecord", &[EVENT]);
    assert!(!world.call(SIDE, "cuEventRecord", &[EVENT]));
    assert!(!world.call(SIDE, "cuStreamWaitEvent", &[EVENT]));
}

#[test]
fn an_event_that_is_gone_is_none_of_the_capture() {
    let mut world = World::new(Origin::Start);
    world.begin(MAIN);
    world.call(MAIN, "cuEventRecord", &[EVENT]);
    world.call(0, "cuEventDestroy_v2", &[EVENT]);
    assert!(
        !world.call(SIDE, "cuStreamWaitEvent", &[EVENT]),
        "another one under its handle"
    );
}

#[test]
fn a_capture_whose_end_failed_is_over_once_something_forbidden_in_it_succeeds() {
    let forbidden: [(u64, &str); 4] = [
        (MAIN, "cuStreamSynchronize"),
        (MAIN, "cuStreamQuery"),
        (MAIN, "cuStreamDestroy_v2"),
        (0, "cuCtxSynchronize"),
    ];
    for (stream, symbol) in forbidden {
        let mut world = World::new(Origin::Start);
        world.begin(MAIN);
        assert!(world.kernel(MAIN));
        world.call(stream, symbol, &[]);
        assert!(!world.kernel(MAIN), "{symbol}");
    }
    let mut world = World::new(Origin::Start);
    world.begin(MAIN);
    world.call(SIDE, "cuStreamSynchronize", &[]);
    world.call(0, "cuEventSynchronize", &[EVENT]);
    assert!(world.kernel(MAIN));
}

#[test]
fn graphs_are_built_node_by_node_too() {
    let mut world = World::new(Origin::Start);
    world.call(0, "cuGraphAddKernelNode_v2", &[GRAPH]);
    world.call(0, "cuGraphAddMemcpyNode", &[GRAPH]);
    world.call(0, "cuGraphAddMemsetNode", &[GRAPH]);
    for kind in [0, 1, 2, 3, 6] {
        world.call(0, "cuGraphAddNode", &[GRAPH, (WorkPart::Type, kind)]);
    }
    world.instantiate();
    assert_eq!(world.runs(), Some((2, 2, 2)));
    world.call(0, "cuGraphAddNode", &[GRAPH, (WorkPart::Type, 13)]);
    assert_eq!(world.runs(), Some((2, 2, 2)), "it was made runnable before");
    world.instantiate();
    assert_eq!(world.runs(), None, "a condition decides what runs");
}

#[test]
fn a_graph_inside_another_runs_what_it_consisted_of_when_it_was_put_there() {
    let mut world = World::new(Origin::Start);
    let child = (WorkPart::Graph, 0x601);
    world.call(0, "cuGraphAddKernelNode_v2", &[child]);
    world.call(0, "cuGraphAddChildGraphNode", &[GRAPH, (WorkPart::Child, child.1)]);
    world.call(0, "cuGraphAddKernelNode_v2", &[child]);
    let node = [GRAPH, (WorkPart::Type, 4), (WorkPart::Child, child.1)];
    world.call(0, "cuGraphAddNode", &node);
    world.instantiate();
    assert_eq!(world.runs(), Some((3, 0, 0)));
}

#[test]
fn a_capture_into_a_graph_adds_to_it_and_another_makes_a_new_one() {
    let mut world = World::new(Origin::Start);
    world.call(0, "cuGraphAddMemsetNode", &[GRAPH]);
    world.call(MAIN, "cuStreamBeginCaptureToGraph", &[GRAPH]);
    world.kernel(MAIN);
    world.end(MAIN);
    world.instantiate();
    assert_eq!(world.runs(), Some((1, 0, 1)));
    world.begin(MAIN);
    world.end(MAIN);
    world.instantiate();
    assert_eq!(world.runs(), Some((0, 0, 0)));
}

#[test]
fn a_handle_that_could_not_be_read_stands_for_no_graph() {
    let mut world = World::new(Origin::Start);
    let unreadable = |symbol| WorkCall {
        unreadable: u32::MAX,
        ..raw(symbol, &[])
    };
    world.make(unreadable("cuGraphAddKernelNode_v2"));
    world.make(unreadable("cuGraphInstantiateWithFlags"));
    world.make(unreadable("cuGraphLaunch"));
    let report = world.graphs.report();
    assert_eq!((report.launches, report.known_launches), (1, 0));
}

#[test]
fn a_clone_and_an_update_are_like_their_graph() {
    let mut world = World::new(Origin::Start);
    world.call(0, "cuGraphAddKernelNode_v2", &[GRAPH]);
    world.instantiate();
    let clone = 0x601;
    world.call(0, "cuGraphClone", &[GRAPH, (WorkPart::Key, clone)]);
    world.call(0, "cuGraphAddMemcpyNode", &[(WorkPart::Graph, clone)]);
    let update = [(WorkPart::Key, EXEC), (WorkPart::Graph, clone)];
    assert_eq!(world.runs(), Some((1, 0, 0)));
    world.call(0, "cuGraphExecUpdate_v2", &update);
    assert_eq!(world.runs(), Some((1, 1, 0)));
    assert_eq!(world.graphs.kernel_runs(), HashMap::from([(KERNEL, 2)]));
}

#[test]
fn after_a_node_is_removed_graphs_are_not_known_but_runnable_ones_are() {
    let mut world = World::new(Origin::Start);
    world.call(0, "cuGraphAddKernelNode_v2", &[GRAPH]);
    world.instantiate();
    world.call(0, "cuGraphDestroyNode", &[]);
    assert_eq!(world.runs(), Some((1, 0, 0)));
    world.instantiate();
    assert_eq!(world.runs(), None);
    world.call(0, "cuGraphAddKernelNode_v2", &[GRAPH]);
    world.instantiate();
    assert_eq!(world.runs(), None, "what is added does not make up for it");
}

#[test]
fn once_a_node_was_changed_kernels_are_counted_without_their_names() {
    let mut world = World::new(Origin::Start);
    world.call(0, "cuGraphAddKernelNode_v2", &[GRAPH]);
    world.call(0, "cuGraphInstantiateWithFlags", &[(WorkPart::Key, EXEC), GRAPH]);
    world.call(0, "cuGraphLaunch", &[(WorkPart::Graph, EXEC)]);
    world.call(0, "cuGraphExecKernelNodeSetParams_v2", &[(WorkPart::Graph, EXEC)]);
    world.call(0, "cuGraphLaunch", &[(WorkPart::Graph, EXEC)]);
    assert_eq!(world.graphs.report().kernels, 2);
    assert_eq!(world.graphs.kernel_runs(), HashMap::from([(KERNEL, 1)]));
    world.call(0, "cuGraphNodeSetEnabled", &[(WorkPart::Graph, EXEC)]);
    world.call(0, "cuGraphLaunch", &[(WorkPart::Graph, EXEC)]);
    let report = world.graphs.report();
    assert_eq!((report.launches, report.known_launches, report.kernels), (3, 2, 2));
    world.call(0, "cuGraphKernelNodeSetParams_v2", &[]);
    world.call(0, "cuGraphInstantiateWithFlags", &[(WorkPart::Key, EXEC), GRAPH]);
    world.call(0, "cuGraphLaunch", &[(WorkPart::Graph, EXEC)]);
    assert_eq!(world.graphs.report().kernels, 3);
    assert_eq!(world.graphs.kernel_runs(), HashMap::from([(KERNEL, 1)]));
}

#[test]
fn handles_are_given_out_again() {
    let mut world = World::new(Origin::Start);
    world.call(0, "cuGraphAddKernelNode_v2", &[GRAPH]);
    world.instantiate();
    world.launch();
    world.call(0, "cuGraphExecDestroy", &[(WorkPart::Graph, EXEC)]);
    world.call(0, "cuGraphDestroy", &[GRAPH]);
    assert_eq!(world.runs(), None);
    world.call(0, "cuGraphAddMemsetNode", &[GRAPH]);
    world.instantiate();
    assert_eq!(world.runs(), Some((0, 0, 1)));
    assert_eq!(world.graphs.kernel_runs(), HashMap::from([(KERNEL, 1)]));
}

#[test]
fn an_end_told_of_late_is_not_that_of_a_graph_made_since() {
    let mut world = World::new(Origin::Start);
    world.call(0, "cuGraphAddKernelNode_v2", &[GRAPH]);
    world.instantiate();
    let began_earlier = world.now - 500;
    for raw in [
        raw("cuGraphDestroy", &[GRAPH]),
        raw("cuGraphExecDestroy", &[(WorkPart::Graph, EXEC)]),
    ] {
        let entered = began_earlier;
        world.graphs.note(&decoded(&WorkCall { entered, ..raw }));
    }
    assert_eq!(world.runs(), Some((1, 0, 0)));
}

#[test]
fn of_graphs_from_before_only_launches_are_known() {
    let mut world = World::new(Origin::Late);
    assert_eq!(world.runs(), None);
    world.call(0, "cuGraphAddKernelNode_v2", &[GRAPH]);
    world.instantiate();
    assert_eq!(world.runs(), None, "the graph may have had nodes");
    world.end(MAIN);
    world.instantiate();
    assert_eq!(world.runs(), None, "the capture had begun before");
    world.graphs.created(GRAPH.1, world.now);
    world.call(0, "cuGraphAddKernelNode_v2", &[GRAPH]);
    world.instantiate();
    assert_eq!(world.runs(), Some((1, 0, 0)));
}

#[test]
fn a_launch_in_a_capture_makes_the_graph_part_of_another() {
    let mut world = World::new(Origin::Start);
    world.call(0, "cuGraphAddKernelNode_v2", &[GRAPH]);
    world.instantiate();
    world.begin(MAIN);
    assert!(world.launch() && world.launch());
    world.end(MAIN);
    assert_eq!(world.graphs.report().launches, 0);
    assert_eq!(world.graphs.report().captured, 2);
    world.instantiate();
    assert_eq!(world.runs(), Some((2, 0, 0)));
}

#[test]
fn when_records_are_lost_nothing_is_known_of_graphs_and_all_work_counts_as_run() {
    let mut world = World::new(Origin::Start);
    world.call(0, "cuGraphAddKernelNode_v2", &[GRAPH]);
    world.instantiate();
    world.launch();
    world.begin(MAIN);
    world.graphs.doubt();
    assert!(!world.kernel(MAIN));
    assert_eq!(world.runs(), None);
    world.instantiate();
    assert_eq!(world.runs(), None);
    assert_eq!(
        world.graphs.kernel_runs(),
        HashMap::from([(KERNEL, 1)]),
        "what is known stays so"
    );
}

#[test]
fn graphs_inside_graphs_without_end_do_not_overflow() {
    let mut world = World::new(Origin::Start);
    world.call(0, "cuGraphAddKernelNode_v2", &[GRAPH]);
    for _ in 0..100 {
        world.call(0, "cuGraphAddChildGraphNode", &[GRAPH, (WorkPart::Child, GRAPH.1)]);
    }
    world.instantiate();
    assert_eq!(world.runs(), Some((u64::MAX, 0, 0)));
    world.launch();
    assert_eq!(world.graphs.kernel_runs(), HashMap::from([(KERNEL, u64::MAX)]));
}

proptest! {
    #[test]
    fn no_records_whatever_break_it(
        records in proptest::collection::vec((any_raw(), any::<u8>()), 0..120), late in any::<bool>()
    ) {
        let mut graphs = Graphs::new(if late { Origin::Late } else { Origin::Start });
        let mut launches = 0;
        for (raw, fate) in &records {
            let call = decoded(raw);
            let stream = StreamName::of(&call);
            let was_captured = graphs.is_captured(stream);
            let became_node = graphs.note(&call);
            if call.step.submits() {
                prop_assert_eq!(became_node, was_captured);
            }
            launches += u64::from(call.step == Step::GraphLaunch && !became_node);
            if *fate < 8 {
                graphs.doubt();
            }
        }
        let report = graphs.report();
        prop_assert_eq!(report.launches, launches);
        prop_assert!(report.known_launches <= launches);
        let named = graphs.kernel_runs().values().fold(0u64, |sum, runs| sum.saturating_add(*runs));
        prop_assert!(named <= report.kernels);
    }
}
