//! What an owner is called.

use crate::owner::Owner;
use crate::text::quantity::escaped;

/// Of the number of a container.
const SHORT_ID: usize = 12;

/// `python ns/pod/container`, or what else is known.
pub(crate) fn who(owner: &Owner) -> String {
    let get = |name| owner.get(name).filter(|value| !value.is_empty());
    let pod: Vec<&str> = ["namespace", "pod", "container"].into_iter().filter_map(get).collect();
    let mut parts: Vec<String> = get("comm").map(str::to_owned).into_iter().collect();
    match (pod.is_empty(), get("container_id"), get("unit")) {
        (false, _, _) => parts.push(pod.join("/")),
        (true, Some(id), _) => parts.push(id.chars().take(SHORT_ID).collect()),
        (true, None, unit) => parts.extend(unit.map(str::to_owned)),
    }
    const SAID: [&str; 6] = ["comm", "namespace", "pod", "container", "container_id", "unit"];
    let others = owner.labels.iter().filter(|(name, _)| !SAID.contains(&name.as_str()));
    parts.extend(others.map(|(name, value)| format!("{name}={value}")));
    match parts.is_empty() {
        true => "all processes".to_owned(),
        false => escaped(&parts.join(" ")),
    }
}
