//! Who sends: gpuscope on this host, unless the environment says it otherwise, as OpenTelemetry's SDKs have it.

use super::convert::text;
use opentelemetry_proto::tonic::resource::v1::Resource;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The variables that say more of who sends; what is said there goes before what is found.
const ATTRIBUTES: &str = "OTEL_RESOURCE_ATTRIBUTES";
const SERVICE: &str = "OTEL_SERVICE_NAME";

/// What is known of gpuscope and its host, and what of the environment could not be read. `root` is `/`, other than in
/// tests. What cannot be found is left out.
#[must_use]
pub(crate) fn resource(root: &Path, variable: &dyn Fn(&str) -> Option<String>) -> (Resource, Option<String>) {
    let mut attributes = BTreeMap::from([
        ("service.name".to_owned(), "gpuscope".to_owned()),
        ("service.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
    ]);
    attributes.extend(host(root));
    let said = pairs(&variable(ATTRIBUTES).unwrap_or_default());
    // one that cannot be read counts as if it were not there
    let wrong = said.as_ref().err().map(|what| {
        format!("{ATTRIBUTES} is not used: {what}\nhint: key=value, separated by commas; %2C stands for a comma")
    });
    attributes.extend(said.unwrap_or_default());
    let service = variable(SERVICE).filter(|name| !name.is_empty());
    attributes.extend(service.map(|name| ("service.name".to_owned(), name)));
    let attributes = attributes.iter().map(|(key, value)| text(key, value)).collect();
    let resource = Resource {
        attributes,
        ..Resource::default()
    };
    (resource, wrong)
}

fn host(root: &Path) -> BTreeMap<String, String> {
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(path).ok()?;
        let line = text.trim();
        (!line.is_empty()).then(|| line.to_owned())
    };
    let (name, files) = match is_another_hosts_name(root) {
        // that of a container names its pod
        true => (root.join("proc/1/root/etc/hostname"), root.join("proc/1/root")),
        false => (root.join("proc/sys/kernel/hostname"), root.to_owned()),
    };
    let id = read(files.join("etc/machine-id")).or_else(|| read(files.join("var/lib/dbus/machine-id")));
    let host = [("host.name", read(name)), ("host.id", id)];
    let found = host
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?)));
    found.collect()
}

/// Whether our name is one of our own, and the first process, which we see, has another.
fn is_another_hosts_name(root: &Path) -> bool {
    let names = |of: &str| std::fs::read_link(root.join("proc").join(of).join("ns/uts")).ok();
    names("1").zip(names("self")).is_some_and(|(host, own)| host != own)
}

/// `key=value,key=value`, with octets as `%2C`.
fn pairs(text: &str) -> Result<Vec<(String, String)>, String> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let pair = |part: &str| {
        let (key, value) = part.split_once('=').ok_or_else(|| format!("{part:?} has no ="))?;
        let key = key.trim();
        if key.is_empty() {
            return Err(format!("{part:?} has no key"));
        }
        let value = decoded(value.trim()).ok_or_else(|| format!("{part:?} is not encoded as it should be"))?;
        Ok((key.to_owned(), value))
    };
    parts.map(pair).collect()
}

/// `None`: a `%` without two digits behind it, or what is no UTF-8.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let (byte, after) = match first {
            b'%' => {
                let digits = std::str::from_utf8(after.get(..2)?).ok()?;
                (u8::from_str_radix(digits, 16).ok()?, &after[2..])
            }
            byte => (*byte, after),
        };
        bytes.push(byte);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use opentelemetry_proto::tonic::common::v1::any_value::Value;
    use std::os::unix::fs::symlink;

    fn root(files: &[(&str, &str)], links: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a folder");
        let place = |path: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            path
        };
        for (path, text) in files {
            std::fs::write(place(path), text).expect("a file");
        }
        for (path, to) in links {
            symlink(to, place(path)).expect("a link");
        }
        root
    }

    fn said(root: &Path, variables: &[(&str, &str)]) -> (BTreeMap<String, String>, Option<String>) {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let (resource, wrong) = resource(root, &variable);
        let value = |value: Option<Value>| match value {
            Some(Value::StringValue(text)) => text,
            other => panic!("{other:?}"),
        };
        let pairs = resource.attributes.into_iter();
        let pairs = pairs.map(|pair| (pair.key, value(pair.value.and_then(|value| value.value))));
        (pairs.collect(), wrong)
    }

    fn of_both(own: &str, host: &str) -> tempfile::TempDir {
        root(
            &[
                ("proc/sys/kernel/hostname", "gpuscope-x7k2p\n"),
                ("etc/machine-id", "c0\n"),
                ("proc/1/root/etc/hostname", "node-7\n"),
                ("proc/1/root/etc/machine-id", "0123\n"),
            ],
            &[("proc/self/ns/uts", own), ("proc/1/ns/uts", host)],
        )
    }

    #[test]
    fn a_container_sends_for_its_host() {
        let root = of_both("uts:[2]", "uts:[1]");
        let (attributes, _) = said(root.path(), &[]);
        assert_eq!((&*attributes["host.name"], &*attributes["host.id"]), ("node-7", "0123"));
        let root = of_both("uts:[1]", "uts:[1]");
        let (attributes, _) = said(root.path(), &[]);
        assert_eq!(
            (&*attributes["host.name"], &*attributes["host.id"]),
            ("gpuscope-x7k2p", "c0")
        );
    }

    #[test]
    fn a_host_that_does_not_tell_its_name_has_none() {
        let root = of_both("uts:[2]", "uts:[1]");
        std::fs::remove_dir_all(root.path().join("proc/1/root")).expect("a folder");
        let (attributes, _) = said(root.path(), &[]);
        assert!(
            !attributes.contains_key("host.name") && !attributes.contains_key("host.id"),
            "{attributes:?}"
        );
    }

    #[test]
    fn the_environment_goes_before_what_is_found() {
        let root = of_both("uts:[1]", "uts:[1]");
        let variables = [
            (
                ATTRIBUTES,
                "host.name=node-9, deployment.environment=a%2Cb%20ü ,service.name=x",
            ),
            (SERVICE, "gpus"),
        ];
        let (attributes, wrong) = said(root.path(), &variables);
        for (key, value) in [
            ("host.name", "node-9"),
            ("deployment.environment", "a,b ü"),
            ("service.name", "gpus"),
            ("host.id", "c0"),
        ] {
            assert_eq!(attributes.get(key).map(String::as_str), Some(value), "{key}");
        }
        assert_eq!(wrong, None);
    }

    #[test]
    fn what_cannot_be_read_is_not_used_at_all_and_said() {
        let root = of_both("uts:[1]", "uts:[1]");
        for wrong in ["a", "a=b,=c", "a=%2", "a=%zz", "a=%ff"] {
            let (attributes, told) = said(root.path(), &[(ATTRIBUTES, wrong)]);
            assert!(!attributes.contains_key("a"), "{wrong}");
            assert!(told.expect("words").contains("\nhint: "), "{wrong}");
        }
    }
}
