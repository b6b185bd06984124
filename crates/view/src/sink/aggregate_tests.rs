use super::*;

fn report(fold: Fold, unit: Unit, groups: Vec<GroupSums>) -> Report {
    Report {
        layer: "mine".to_owned(),
        function: "f".to_owned(),
        aggregate: Some("what".to_owned()),
        fold,
        unit,
        filter: "size > 1KiB".to_owned(),
        calls: 1000,
        passed: 12,
        unknown: 3,
        groups,
    }
}

fn group(name: GroupName, sum: i128) -> GroupSums {
    GroupSums {
        name,
        count: 12,
        sum,
        extremes: Some((-5, 4096)),
        buckets: vec![
            Bucket {
                from: Some(1024),
                to: Some(2048),
                count: 3,
            },
            Bucket {
                from: Some(2048),
                to: Some(4096),
                count: 9,
            },
        ],
    }
}

#[test]
fn a_histogram_has_exact_bounds_and_a_bar_for_each_bucket() {
    let text = to_text(
        &[report(Fold::Hist, Unit::Bytes, vec![group(GroupName::All, 0)])],
        &Stacks::new(),
    );
    assert!(
        text.contains("mine f: what of 12 of 1,000 calls with size > 1KiB\n"),
        "{text}"
    );
    assert!(text.contains("3 calls not in it"), "{text}");
    assert!(text.contains("1 KiB to < 2 KiB            3 |@@@@@@@@@@@@@ "), "{text}");
    assert!(
        text.contains(&format!("2 KiB to < 4 KiB            9 |{}|", "@".repeat(40))),
        "{text}"
    );
}

#[test]
fn names_of_the_traced_program_do_not_drive_the_terminal() {
    let name = GroupName::Text("\u{1b}[31m".to_owned());
    let text = to_text(&[report(Fold::Sum, Unit::Plain, vec![group(name, -7)])], &Stacks::new());
    assert!(
        !text.contains('\u{1b}') && text.contains("-7  in 12 calls  \"\\u{1b}[31m\""),
        "{text}"
    );
}

#[test]
fn json_has_numbers_and_their_groups() {
    let by = GroupName::Thread { pid: 1, tid: 2 };
    let value = to_json(
        &[report(
            Fold::Stats,
            Unit::Plain,
            vec![group(by, i128::from(u64::MAX) + 1)],
        )],
        &Stacks::new(),
    );
    let first = &value[0]["groups"][0];
    assert_eq!(first["by"], json!({"pid": 1, "tid": 2}));
    assert_eq!(
        (&first["min"], &first["sum"]),
        (&json!(-5), &json!("18446744073709551616"))
    );
    assert_eq!((&value[0]["passed"], &value[0]["calls"]), (&json!(12), &json!(1000)));
}

#[test]
fn a_stack_that_was_not_taken_says_why() {
    let groups = vec![group(GroupName::Stack(1), 0), group(GroupName::Stack(2), 0)];
    let text = to_text(&[report(Fold::Count, Unit::Plain, groups)], &Stacks::new());
    assert!(
        text.contains("beyond the budget") && text.contains("could not be kept"),
        "{text}"
    );
}
