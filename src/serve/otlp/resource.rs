//! Who sends: gpuscope on this host.

use super::convert::text;
use opentelemetry_proto::tonic::resource::v1::Resource;
use std::path::Path;

/// What is known of gpuscope and its host; `root` is `/`, other than in tests. What cannot be read is left out.
#[must_use]
pub fn resource(root: &Path) -> Resource {
    let read = |path: &str| {
        let text = std::fs::read_to_string(root.join(path)).ok()?;
        let line = text.trim();
        (!line.is_empty()).then(|| line.to_owned())
    };
    let host_name = read("proc/sys/kernel/hostname");
    let host_id = read("etc/machine-id").or_else(|| read("var/lib/dbus/machine-id"));
    let service = [
        text("service.name", "gpuscope"),
        text("service.version", env!("CARGO_PKG_VERSION")),
    ];
    let host = [("host.name", host_name), ("host.id", host_id)];
    let host = host.into_iter().filter_map(|(key, value)| Some(text(key, &value?)));
    Resource {
        attributes: service.into_iter().chain(host).collect(),
        ..Resource::default()
    }
}
