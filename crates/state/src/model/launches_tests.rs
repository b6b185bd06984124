use super::*;

fn total(calls: u64, errors: u64, threads: u64) -> Total {
    let mut total = Total {
        untimed: 0,
        errors,
        total_ns: calls * 1000,
        max_ns: 1000,
        bytes: threads,
        bucket: [0; wire::BUCKETS],
    };
    total.bucket[20] = calls;
    total
}

fn key(tgid: u32, variant: u64) -> TotalKey {
    TotalKey { tgid, row: 0, variant }
}

fn shape(tgid: u32, kernel: u64, grid_x: u32) -> ShapeKey {
    ShapeKey {
        kernel,
        tgid,
        number: [grid_x, 1, 1, 256, 1, 1, 0],
    }
}

fn named(launches: &mut Launches, tgid: u32, id: u64, name: &[u8]) {
    launches.learn(&KernelEvent {
        tgid,
        id,
        handle: id,
        tag: 1,
        name,
        cut: false,
    });
}

#[test]
fn a_kernel_of_several_processes_is_one() {
    let mut launches = Launches::default();
    named(&mut launches, 1, 5000, b"_Z4gemmIfLi128EEvPKT_");
    named(&mut launches, 2, 6000, b"_Z4gemmIfLi128EEvPKT_");
    launches.add(&key(1, 5000), &total(7, 1, 700));
    launches.add(&key(2, 6000), &total(3, 0, 300));
    let report = launches.report();
    assert_eq!(report.len(), 1);
    let kernel = &report[0];
    assert_eq!(kernel.shown(false), "gemm<float,128>");
    assert_eq!(
        (kernel.launches, kernel.failed, kernel.threads, kernel.processes),
        (9, 1, 1000, 2)
    );
}

#[test]
fn kernels_that_are_shortened_to_one_name_are_told_apart_everywhere() {
    let mut launches = Launches::default();
    named(&mut launches, 1, 5000, b"_ZN1a4copyEPf");
    named(&mut launches, 1, 6000, b"_ZN1b4copyEPf");
    named(&mut launches, 2, 7000, b"_ZN1b4copyEPf");
    for (tgid, id) in [(1, 5000), (1, 6000), (2, 7000)] {
        launches.add(&key(tgid, id), &total(1, 0, 32));
    }
    let report = launches.report();
    let shown: HashSet<&str> = report.iter().map(|kernel| kernel.shown(false)).collect();
    assert_eq!((report.len(), shown.len()), (2, 2), "{shown:?}");
    assert_ne!(launches.label(5000), launches.label(6000));
    assert_eq!(launches.label(6000), launches.label(7000));
}

#[test]
fn a_name_that_could_not_be_read_says_so() {
    let mut launches = Launches::default();
    launches.give_up(1, 5000, wire::KERNEL_NO_NAME);
    launches.add(&key(1, 5000), &total(1, 0, 32));
    assert_eq!(launches.report()[0].reason, Some(why(wire::KERNEL_NO_NAME)));
}

#[test]
fn shapes_are_the_most_frequent_first() {
    let mut launches = Launches::default();
    named(&mut launches, 1, 5000, b"k");
    launches.add(&key(1, 5000), &total(10, 0, 0));
    for (grid, count) in [(1, 1), (2, 4), (3, 2), (4, 3)] {
        launches.add_shape(&shape(1, 5000, grid), count);
    }
    let kernel = &launches.report()[0];
    let grids: Vec<(u32, u64)> = kernel
        .shapes
        .iter()
        .map(|(shape, count)| (shape.grid[0], *count))
        .collect();
    assert_eq!(grids, [(2, 4), (4, 3), (3, 2)]);
    assert_eq!(kernel.shape_count, 4);
}

#[test]
fn what_has_no_name_says_why() {
    let mut launches = Launches::default();
    named(&mut launches, 1, 7000, b"\x1b[2J");
    for (variant, calls) in [(wire::KERNEL_UNREADABLE, 3), (7000, 2), (8000, 1)] {
        launches.add(&key(1, variant), &total(calls, 0, 0));
    }
    let report = launches.report();
    let told: Vec<(&str, u64)> = report
        .iter()
        .map(|kernel| (kernel.reason.unwrap(), kernel.launches))
        .collect();
    assert_eq!(told[0], (why(wire::KERNEL_UNREADABLE), 3));
    assert_eq!(told[1], (why(wire::KERNEL_FOREIGN), 2));
    assert_eq!(told[2], (why(LOST), 1));
    assert!(report.iter().all(|kernel| kernel.shown(false) == "?"));
}

#[test]
fn an_ended_process_leaves_its_totals_and_no_ids() {
    let mut launches = Launches::default();
    named(&mut launches, 1, 5000, b"first");
    launches.add(&key(1, 5000), &total(1, 0, 0));
    launches.forget(&|tgid| tgid == 1);
    assert!(launches.name(5000).is_none() && !launches.knows_any(&|_| true));
    named(&mut launches, 1, 5001, b"second");
    launches.add(&key(1, 5001), &total(2, 0, 0));
    let names: Vec<String> = launches
        .report()
        .iter()
        .map(|kernel| kernel.shown(false).to_owned())
        .collect();
    assert_eq!(names, ["second", "first"]);
}
