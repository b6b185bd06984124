use super::*;

const HOOKS: &str = r#"
[[library]]
name = "mine"
match = "libmine.so"
[[function]]
library = "mine"
symbol = "f"
args = ["size: size", "delta: i32", "path: cstr"]
aggregate = "AGGREGATE"
"#;

fn catalog(aggregate: &str) -> Catalog {
    let mut catalog = Catalog::default();
    catalog
        .add_hooks("h.toml", &HOOKS.replace("AGGREGATE", aggregate))
        .unwrap();
    catalog
}

/// The report after these groups: process, group, bucket, and what they hold.
fn report(aggregate: &str, cells: &[(u32, u64, u32, wire::Aggregate)]) -> Report {
    let (catalog, mut tally) = (catalog(aggregate), Tally::default());
    for &(tgid, group, bucket, sums) in cells {
        let key = AggregateKey {
            tgid,
            row: 0,
            group,
            bucket,
            pad: 0,
        };
        tally.add(&catalog, &key, &sums, Some("app"));
    }
    let counters = [RowCounter {
        entered: 100,
        ..RowCounter::default()
    }];
    let texts = HashMap::from([(7, "/a".to_owned())]);
    tally.reports(&catalog, &counters, &texts).remove(0)
}

fn cell(count: u64, sum: i64, smallest: i64, largest: i64, signed: bool) -> wire::Aggregate {
    let flip = |number: i64| {
        if signed {
            number as u64 ^ wire::SIGN_BIT
        } else {
            number as u64
        }
    };
    wire::Aggregate {
        count,
        sum: sum as u64,
        largest: flip(largest),
        smallest: !flip(smallest),
    }
}

#[test]
fn processes_are_added_unless_they_are_asked_for_apart() {
    let cells = [(1, 0, 0, cell(2, 0, 0, 0, false)), (2, 0, 0, cell(3, 0, 0, 0, false))];
    let together = report("count", &cells);
    assert_eq!((together.passed, together.groups.len()), (5, 1));
    let apart = report("count by process", &cells);
    let name = |pid| GroupName::Process {
        pid,
        comm: Some("app".to_owned()),
    };
    let counts: Vec<_> = apart
        .groups
        .iter()
        .map(|group| (group.name.clone(), group.count))
        .collect();
    assert_eq!(counts, [(name(2), 3), (name(1), 2)], "most first");
}

#[test]
fn signed_numbers_keep_their_sign_in_sums_extremes_and_groups() {
    let stats = report(
        "stats(delta)",
        &[(1, 0, 0, cell(3, -5, -9, 4, true)), (2, 0, 0, cell(1, 2, 2, 2, true))],
    );
    let group = &stats.groups[0];
    assert_eq!((group.count, group.sum, group.extremes), (4, -3, Some((-9, 4))));
    let by = report(
        "count by delta",
        &[(1, -2i64 as u64 ^ wire::SIGN_BIT, 0, cell(1, 0, 0, 0, true))],
    );
    assert_eq!(by.groups[0].name, GroupName::Number(Kinded::Plain(-2)));
}

#[test]
fn a_histogram_is_in_order_and_its_bounds_are_powers_of_two() {
    let count = |count| cell(count, 0, 0, 0, true);
    let cells = [
        (1, 0, 3, count(5)),
        (1, 0, wire::BUCKET_BELOW, count(1)),
        (1, 0, 0, count(2)),
        (1, 0, 1, count(3)),
    ];
    let buckets = report("hist(delta)", &cells).groups.remove(0).buckets;
    let bounds: Vec<_> = buckets
        .iter()
        .map(|bucket| (bucket.from, bucket.to, bucket.count))
        .collect();
    assert_eq!(
        bounds,
        [
            (None, Some(0), 1),
            (Some(0), Some(1), 2),
            (Some(1), Some(2), 3),
            (Some(4), Some(8), 5)
        ]
    );
}

#[test]
fn what_could_not_be_read_is_in_no_group() {
    let cells = [
        (1, 7, 0, cell(2, 0, 0, 0, false)),
        (1, 0, wire::BUCKET_UNKNOWN, cell(4, 0, 0, 0, false)),
    ];
    let report = report("count by path", &cells);
    assert_eq!((report.passed, report.unknown, report.calls), (2, 4, 100));
    assert_eq!(report.groups[0].name, GroupName::Text("/a".to_owned()));
}
