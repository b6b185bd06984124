//! `/proc/PID/cgroup`.

use gpuscope::owner::cgroup::parse;

fn is_bounded(value: &Option<String>) -> bool {
    let fits = |value: &String| (1..=128).contains(&value.len()) && !value.contains(char::is_control);
    value.as_ref().is_none_or(fits)
}

pub fn run(text: &[u8]) {
    let place = parse(text);
    let id = place.container_id.as_ref();
    assert!(id.is_none_or(|id| id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit())));
    for value in [
        &place.pod_uid,
        &place.unit,
        &place.slurm_job,
        &place.slurm_step,
        &place.job,
    ] {
        assert!(is_bounded(value), "{place:?}");
    }
}
