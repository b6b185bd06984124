use super::*;
use crate::serve::fixture::{of_every_metric, owner};
use crate::serve::metrics::{device, work};
use proptest::prelude::*;
use std::time::SystemTime;

const RETAIN: Duration = Duration::from_secs(3600);

fn launches(comm: &str, count: u64) -> Sample {
    Sample::new(&work::LAUNCHES, Vec::new(), Value::Integer(count)).of(&owner(&[("comm", comm)]))
}

fn shown(samples: &[Sample]) -> Vec<(String, Value)> {
    let of = |sample: &Sample| {
        let owner = sample.owner.as_ref().and_then(|owner| owner.get("comm"));
        (owner.unwrap_or_default().to_owned(), sample.value.clone())
    };
    let mut shown: Vec<_> = samples.iter().map(of).collect();
    shown.sort_by(|one, other| one.0.cmp(&other.0));
    shown
}

fn after(carry: &mut Carry, mut samples: Vec<Sample>, passed: Duration) -> Vec<(String, Value)> {
    let since = carry.since.unwrap();
    carry.add_to(&mut samples, RETAIN, since + passed);
    shown(&samples)
}

fn count(comm: &str, count: u64) -> (String, Value) {
    (comm.to_owned(), Value::Integer(count))
}

#[test]
fn counters_go_on_and_what_is_not_counted_again_stays_for_a_while() {
    let mut carry = Carry::from(vec![launches("train", 7), launches("gone", 3)]);
    let now = Duration::from_secs(1);
    assert_eq!(
        after(&mut carry, vec![launches("train", 1)], now),
        [count("gone", 3), count("train", 8)]
    );
    assert_eq!(
        after(&mut carry, vec![launches("train", 5)], RETAIN * 2),
        [count("train", 12)]
    );
}

#[test]
fn a_series_that_ends_does_not_come_again_with_less() {
    let mut carry = Carry::from(vec![launches("train", 7)]);
    let now = Duration::from_secs(1);
    after(&mut carry, vec![launches("train", 1)], now);
    assert_eq!(after(&mut carry, Vec::new(), now), []);
    assert_eq!(
        after(&mut carry, vec![launches("train", 2)], now),
        [count("train", 2)],
        "another one of that name"
    );
}

#[test]
fn what_one_wrote_the_next_reads_once() {
    let folder = tempfile::tempdir().unwrap();
    let samples = of_every_metric();
    write(folder.path(), &samples, SystemTime::UNIX_EPOCH).unwrap();
    let left = take(folder.path(), RETAIN).unwrap();
    let expected: Vec<Sample> = samples.into_iter().filter(|sample| goes_on(sample.metric)).collect();
    assert!(
        expected.len() > 40
            && expected
                .iter()
                .any(|sample| matches!(sample.value, Value::Histogram(_)))
    );
    assert_eq!(
        (left.samples, left.since, left.not_understood),
        (expected, Some(SystemTime::UNIX_EPOCH), 0)
    );
    assert!(
        take(folder.path(), RETAIN).unwrap().samples.is_empty(),
        "after a crash there is none"
    );
}

#[test]
fn what_drivers_count_goes_on_by_itself() {
    assert!(!goes_on(&device::GPU_INFO) && goes_on(&work::LAUNCHES));
    assert!(!device::ALL.iter().any(|metric| goes_on(metric)));
}

#[test]
fn what_a_stranger_wrote_is_refused_or_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("counters.json");
    let of = |text: &str| {
        std::fs::write(&path, text).unwrap();
        take(folder.path(), RETAIN).map(|left| (left.samples.len(), left.not_understood))
    };
    let written = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let with = |version: u32, series: &str| {
        format!(
            r#"{{"version":{version},"since":0,"written":{written},"owners":[[["comm","a"]]],"series":[{series}]}}"#
        )
    };
    let kept = |metric: &str, values: &str, owner: u32, value: &str| {
        format!(r#"{{"metric":"{metric}","values":{values},"owner":{owner},"value":{value}}}"#)
    };
    let launches = "gpuscope_launches_total";
    assert_eq!(
        of(&with(1, &kept(launches, "[]", 0, r#"{"Integer":1}"#))).unwrap(),
        (1, 0)
    );
    for wrong in [
        kept("gpuscope_no_total", "[]", 0, r#"{"Integer":1}"#),
        kept("gpuscope_gpu_info", "[]", 0, r#"{"Integer":1}"#),
        kept(launches, r#"["x"]"#, 0, r#"{"Integer":1}"#),
        kept(launches, "[]", 1, r#"{"Integer":1}"#),
        kept(launches, "[]", 0, r#"{"Real":-1.0}"#),
        kept(launches, "[]", 0, r#"{"Histogram":{"sum":1.0,"count":1,"buckets":[]}}"#),
    ] {
        assert_eq!(of(&with(1, &wrong)).unwrap(), (0, 1), "{wrong}");
    }
    for refused in ["", "{}", &with(2, ""), "[1,2]"] {
        assert!(of(refused).is_err(), "{refused}");
        assert!(!path.exists(), "it is not read again");
    }
    assert_eq!(
        of(&with(1, "").replace(&format!("{written}"), "5")).unwrap(),
        (0, 0),
        "it is old"
    );
}

proptest! {
    #[test]
    fn any_file_is_refused_or_read(text in prop_oneof!["\\PC{0,60}", "\\{\"version\":1,\"since\":[0-9]{1,20},\"written\":[0-9]{1,20},\"owners\":\\[\\],\"series\":\\[\\]\\}"]) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("counters.json"), text).unwrap();
        let left = take(folder.path(), RETAIN).unwrap_or_default();
        prop_assert!(left.samples.is_empty());
    }

    #[test]
    fn no_counter_falls_over_a_restart(before in 0u64..1000, counted in prop::collection::vec(0u64..100, 1..8)) {
        let mut carry = Carry::from(vec![launches("train", before)]);
        let (mut own, mut last) = (0, before);
        for more in counted {
            own += more;
            let samples = after(&mut carry, vec![launches("train", own)], Duration::ZERO);
            prop_assert_eq!(&samples, &[count("train", before + own)]);
            prop_assert!(before + own >= last);
            last = before + own;
        }
    }
}
