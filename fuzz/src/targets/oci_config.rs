//! Descriptions of containers: OCI's `config.json`, Docker's `config.v2.json`.

use gpuscope::owner::container::{Names, docker_names, oci_names};

pub fn run(text: &[u8]) {
    for names in [oci_names(text), docker_names(text)].into_iter().flatten() {
        assert_ne!(names, Names::default());
        for name in [names.namespace, names.pod, names.container] {
            assert!(name.len() <= 128 && !name.contains(char::is_control), "{name:?}");
        }
    }
}
