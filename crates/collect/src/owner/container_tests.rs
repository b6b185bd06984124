use super::*;
use crate::owner::tree::Tree;

const ID: &str = "0f99ad5f45163ed14ab8eaf92ed34bb4a631d007f8755a7d79be614bcb0df0ef";
const UID: &str = "7fda01c4-0ece-403d-88b4-c371d66d132a";

fn names(namespace: &str, pod: &str, container: &str) -> Names {
    let [namespace, pod, container] = [namespace, pod, container].map(str::to_owned);
    Names {
        namespace,
        pod,
        container,
        ..Names::default()
    }
}

fn in_pod() -> Place {
    Place {
        pod_uid: Some(UID.to_owned()),
        ..alone()
    }
}

fn alone() -> Place {
    Place {
        container_id: Some(ID.to_owned()),
        ..Place::default()
    }
}

fn seconds(after: f64) -> Duration {
    Duration::from_secs_f64(after)
}

fn log(tree: &Tree, name: &str) {
    tree.file(&format!("var/log/containers/{name}.log"), b"");
}

const CONTAINERD: &str = r#"{"ociVersion":"1.2.0","process":{"args":["python"]},"hostname":"x","annotations":{
    "io.kubernetes.cri.container-name":"cuda","io.kubernetes.cri.container-type":"container",
    "io.kubernetes.cri.sandbox-id":"b","io.kubernetes.cri.sandbox-name":"train-0",
    "io.kubernetes.cri.sandbox-namespace":"ml","io.kubernetes.cri.sandbox-uid":"7fda01c4"},"linux":{}}"#;
const CRIO: &str = r#"{"annotations":{"io.kubernetes.container.name":"cuda","io.kubernetes.pod.name":"train-0",
    "io.kubernetes.pod.namespace":"ml","io.kubernetes.cri-o.ContainerType":"container"}}"#;
const DOCKER: &str = r#"{"StreamConfig":{},"ID":"0f99","Name":"/hopeful_curie","Config":{"Labels":null}}"#;
const DOCKERSHIM: &str = r#"{"Name":"/k8s_cuda_train-0_ml_7f_0","Config":{"Labels":{"io.kubernetes.container.name":"cuda",
    "io.kubernetes.pod.name":"train-0","io.kubernetes.pod.namespace":"ml","maintainer":"me"}}}"#;
const NERDCTL: &str = r#"{"annotations":{"nerdctl/name":"cuda","nerdctl/namespace":"default"}}"#;

#[test]
fn every_runtime_is_read_where_it_writes() {
    let task =
        |state: &str, namespace: &str| format!("{state}/io.containerd.runtime.v2.task/{namespace}/{ID}/config.json");
    let podman = format!(r#"[{{"id":"b","names":["a"]}},{{"id":"{ID}","names":["trainer","alias"]}}]"#);
    let pod = names("ml", "train-0", "cuda");
    let cases = [
        (task("run/containerd", "k8s.io"), CONTAINERD, pod.clone()),
        (task("run/k3s/containerd", "k8s.io"), CONTAINERD, pod.clone()),
        (task("run/k0s/containerd", "k8s.io"), CONTAINERD, pod.clone()),
        (
            task("var/snap/microk8s/common/run/containerd", "k8s.io"),
            CONTAINERD,
            pod.clone(),
        ),
        (task("run/containerd", "default"), NERDCTL, names("", "", "cuda")),
        (
            format!("run/containers/storage/overlay-containers/{ID}/userdata/config.json"),
            CRIO,
            pod.clone(),
        ),
        (
            format!("var/lib/docker/containers/{ID}/config.v2.json"),
            DOCKER,
            names("", "", "hopeful_curie"),
        ),
        (
            format!("var/snap/docker/common/var-lib-docker/containers/{ID}/config.v2.json"),
            DOCKERSHIM,
            pod.clone(),
        ),
        (
            "var/lib/containers/storage/overlay-containers/containers.json".to_owned(),
            podman.as_str(),
            names("", "", "trainer"),
        ),
        (format!("var/log/containers/train-0_ml_cuda-{ID}.log"), "", pod),
    ];
    for (path, text, expected) in cases {
        let tree = Tree::default();
        tree.file(&path, text.as_bytes());
        let answer = Containers::new(tree.root()).names(&in_pod(), Instant::now());
        assert_eq!(answer, Answer::Names(expected), "{path}");
    }
}

#[test]
fn a_container_without_any_file_has_no_names() {
    let tree = Tree::default();
    let mut containers = Containers::new(tree.root());
    let nothing = Answer::Names(Names::default());
    assert_eq!(containers.names(&alone(), Instant::now()), nothing);
    assert_eq!(containers.names(&in_pod(), Instant::now()), nothing);
    assert_eq!(containers.names(&Place::default(), Instant::now()), nothing);
}

#[test]
fn the_log_of_a_container_in_a_pod_is_waited_for() {
    let tree = Tree::default();
    log(&tree, &format!("other-1_ml_sidecar-{}", "b".repeat(64)));
    let (mut containers, start) = (Containers::new(tree.root()), Instant::now());
    assert_eq!(containers.names(&in_pod(), start), Answer::Later);
    log(&tree, &format!("train-0_ml_cuda-{ID}"));
    assert_eq!(
        containers.names(&in_pod(), start + seconds(0.5)),
        Answer::Later,
        "not each time"
    );
    let found = Answer::Names(names("ml", "train-0", "cuda"));
    assert_eq!(containers.names(&in_pod(), start + seconds(1.5)), found);
    std::fs::remove_dir_all(tree.root().join("var")).unwrap();
    assert_eq!(
        containers.names(&in_pod(), start + seconds(900.0)),
        found,
        "names do not change"
    );
}

#[test]
fn who_has_waited_long_enough_gets_what_the_logs_of_the_pod_tell() {
    let tree = Tree::default();
    log(&tree, "x");
    tree.file(&format!("var/log/pods/ml_train-0_{UID}/cuda/0.log"), b"");
    let (mut containers, start) = (Containers::new(tree.root()), Instant::now());
    assert_eq!(containers.names(&in_pod(), start), Answer::Later);
    assert_eq!(containers.names(&in_pod(), start + seconds(14.0)), Answer::Later);
    let of_pod = Answer::Names(names("ml", "train-0", ""));
    assert_eq!(containers.names(&in_pod(), start + seconds(16.0)), of_pod);
    assert_eq!(containers.names(&in_pod(), start + seconds(60.0)), of_pod);
    assert_eq!(
        containers.names(&in_pod(), start + seconds(90.0)),
        Answer::Later,
        "a process that begins later"
    );
}

#[test]
fn names_that_were_not_found_are_told_of() {
    let tree = Tree::default();
    let (mut containers, start) = (Containers::new(tree.root()), Instant::now());
    containers.names(&alone(), start);
    assert_eq!(containers.trouble(start + seconds(60.0)), None, "it has none");
    let other = Place {
        container_id: Some("b".repeat(64)),
        ..in_pod()
    };
    containers.names(&other, start);
    assert_eq!(containers.trouble(start + seconds(1.0)), None);
    let words = containers.trouble(start + seconds(16.0)).unwrap();
    assert!(
        words.starts_with("names of containers in pods were not found: of 1\nhint: "),
        "{words}"
    );
}

#[test]
fn a_container_outside_of_pods_is_not_waited_for() {
    let tree = Tree::default();
    log(&tree, "x");
    let mut containers = Containers::new(tree.root());
    assert_eq!(
        containers.names(&alone(), Instant::now()),
        Answer::Names(Names::default())
    );
}

#[test]
fn what_is_no_log_of_a_container_names_nothing() {
    for name in [
        ID.to_owned(),
        format!("-{ID}"),
        format!("a_b-{ID}"),
        format!("a_b_c_d-{ID}"),
        format!("a_b_c-{ID}.log"),
    ] {
        let tree = Tree::default();
        log(&tree, &name);
        assert_eq!(
            Containers::new(tree.root()).names(&alone(), Instant::now()),
            Answer::Names(Names::default()),
            "{name}"
        );
    }
}

#[test]
fn a_description_that_is_none_names_nothing() {
    let long = format!(r#"{{"annotations":{{"x":"{}"}}}}"#, "x".repeat(5 << 20));
    for text in [
        "",
        "{",
        "[]",
        "null",
        r#"{"annotations":null}"#,
        r#"{"annotations":{"nerdctl/name":7}}"#,
        &long,
    ] {
        let tree = Tree::default();
        for path in [
            "run/containerd/io.containerd.runtime.v2.task/k8s.io",
            "var/lib/docker/containers",
        ] {
            tree.file(&format!("{path}/{ID}/config.json"), text.as_bytes());
            tree.file(&format!("{path}/{ID}/config.v2.json"), text.as_bytes());
        }
        assert_eq!(
            Containers::new(tree.root()).names(&alone(), Instant::now()),
            Answer::Names(Names::default())
        );
    }
}

#[test]
fn hostile_names_are_bounded_and_clean() {
    let text = format!(
        r#"{{"annotations":{{"nerdctl/name":"a\n\"\u001b{}"}}}}"#,
        "x".repeat(4096)
    );
    let container = oci_names(text.as_bytes()).unwrap().container;
    assert!(
        container.starts_with("a\u{fffd}\"\u{fffd}x") && container.len() <= 128,
        "{container}"
    );
}

#[derive(Debug)]
struct Slow {
    answers_after: u32,
}

impl Pods for Slow {
    fn names(&mut self, _: &Place) -> Option<Names> {
        self.answers_after = self.answers_after.checked_sub(1)?;
        (self.answers_after == 0).then(|| names("ml", "train-0", "cuda"))
    }

    fn trouble(&self) -> Option<String> {
        Some("slow".to_owned())
    }
}

#[test]
fn what_no_file_tells_is_asked_of_the_kubelet_once_a_second() {
    let tree = Tree::default();
    let (mut containers, start) = (Containers::new(tree.root()), Instant::now());
    containers.ask_also(Some(Box::new(Slow { answers_after: 3 })));
    let mut ask = |after| containers.names(&in_pod(), start + seconds(after));
    for after in [0.0, 0.1, 0.9, 1.1, 2.0] {
        assert_eq!(ask(after), Answer::Later, "{after}");
    }
    assert_eq!(ask(2.2), Answer::Names(names("ml", "train-0", "cuda")));
    assert_eq!(containers.trouble(start).as_deref(), Some("slow"));
}

/// Knows what made a pod, from the second question on.
#[derive(Debug)]
struct Knowing {
    asked: u32,
    trouble: Option<String>,
}

impl Pods for Knowing {
    fn names(&mut self, _: &Place) -> Option<Names> {
        self.asked += 1;
        let known = Names {
            controller: "train".to_owned(),
            ..names("ml", "train-0", "cuda")
        };
        (self.asked > 1 && self.trouble.is_none()).then_some(known)
    }

    fn trouble(&self) -> Option<String> {
        self.trouble.clone()
    }
}

/// With names in a file, a kubelet, and somebody who wants what only the kubelet knows.
fn wanting_controllers(tree: &Tree, trouble: Option<String>) -> Containers {
    tree.file(&format!("var/log/containers/train-0_ml_cuda-{ID}.log"), b"");
    let mut containers = Containers::new(tree.root());
    containers.wants_controllers = true;
    containers.ask_also(Some(Box::new(Knowing { asked: 0, trouble })));
    containers
}

#[test]
fn what_made_a_pod_is_waited_for_though_a_file_has_the_names() {
    let (tree, start) = (Tree::default(), Instant::now());
    let mut containers = wanting_controllers(&tree, None);
    assert_eq!(containers.names(&in_pod(), start), Answer::Later);
    let Answer::Names(found) = containers.names(&in_pod(), start + seconds(1.1)) else {
        panic!("it is known now");
    };
    assert_eq!((found.controller.as_str(), found.pod.as_str()), ("train", "train-0"));
}

#[test]
fn a_kubelet_in_trouble_delays_no_names_that_a_file_has() {
    let (tree, start) = (Tree::default(), Instant::now());
    let mut containers = wanting_controllers(&tree, Some("away".to_owned()));
    let found = containers.names(&in_pod(), start);
    assert_eq!(found, Answer::Names(names("ml", "train-0", "cuda")));
}

#[test]
fn a_hundred_thousand_containers_take_bounded_memory() {
    let tree = Tree::default();
    let (mut containers, now) = (Containers::new(tree.root()), Instant::now());
    for number in 0..100_000 {
        let place = Place {
            container_id: Some(format!("{number:064x}")),
            ..Place::default()
        };
        containers.names(&place, now);
    }
    assert!(containers.known.len() <= MOST_CONTAINERS);
}
