use super::*;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

const PODS: &str = r#"{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[
    {"metadata":{"name":"train-0","namespace":"ml","uid":"7f","labels":{"a":"b","pod-template-hash":"5d8f"},
      "ownerReferences":[{"kind":"Other","name":"no"},{"kind":"ReplicaSet","name":"train-5d8f","controller":true}]},"spec":{"containers":[]},
     "status":{"phase":"Running",
      "initContainerStatuses":[{"name":"fetch","containerID":"containerd://aa"}],
      "containerStatuses":[{"name":"cuda","containerID":"containerd://bb","state":{}},{"name":"waits","state":{"waiting":{}}}],
      "ephemeralContainerStatuses":[{"name":"debug","containerID":"cri-o://cc"}]}},
    {"metadata":{"name":"pending","namespace":"ml"},"status":{"phase":"Pending"}}]}"#;

fn names(container: &str) -> Names {
    Names {
        namespace: "ml".to_owned(),
        pod: "train-0".to_owned(),
        container: container.to_owned(),
        controller: "train".to_owned(),
    }
}

fn place(id: &str) -> Place {
    Place {
        container_id: Some(id.to_owned()),
        ..Place::default()
    }
}

/// A server that answers each request with the next of `answers`, then ends; tells the requests.
fn server(answers: Vec<String>) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, requests) = channel();
    std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            drop(sender.send(request(&mut stream)));
            drop(stream.write_all(answer.as_bytes()));
        }
    });
    (url, requests)
}

fn request(stream: &mut TcpStream) -> String {
    let (mut text, mut byte) = (Vec::new(), [0]);
    while !text.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
        text.push(byte[0]);
    }
    String::from_utf8(text).unwrap()
}

fn answer(status: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// Asks until there is an answer or trouble.
fn wait_for(kubelet: &mut Kubelet, id: &str) -> (Option<Names>, Option<String>) {
    loop {
        let found = kubelet.names(&place(id));
        let trouble = kubelet.trouble();
        if found.is_some() || trouble.is_some() {
            return (found, trouble);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_pod_that_its_node_keeps_or_nobody_has_no_controller() {
    let of = |metadata: &str| {
        let text = format!(
            r#"{{"items":[{{"metadata":{metadata},"status":{{"containerStatuses":[{{"name":"c","containerID":"x://aa"}}]}}}}]}}"#
        );
        names_in(text.as_bytes()).unwrap()["aa"].controller.clone()
    };
    let owned = |owner: &str| format!(r#"{{"name":"p","ownerReferences":[{owner}]}}"#);
    assert_eq!(of(r#"{"name":"p"}"#), "");
    assert_eq!(of(&owned(r#"{"kind":"Node","name":"n1","controller":true}"#)), "");
    assert_eq!(
        of(&owned(r#"{"kind":"Job","name":"train-7","controller":true}"#)),
        "train-7"
    );
}

#[test]
fn every_container_of_every_pod_is_named() {
    let found = names_in(PODS.as_bytes()).unwrap();
    let expected = [("aa", "fetch"), ("bb", "cuda"), ("cc", "debug")];
    assert_eq!(
        found,
        expected.map(|(id, container)| (id.to_owned(), names(container))).into()
    );
}

#[test]
fn a_node_without_pods_has_no_names() {
    for text in ["{}", r#"{"items":null}"#, r#"{"items":[]}"#] {
        assert_eq!(names_in(text.as_bytes()), Ok(HashMap::new()));
    }
    assert!(
        names_in(b"Unauthorized".as_slice())
            .unwrap_err()
            .starts_with("no list of pods")
    );
}

#[test]
fn the_kubelet_is_asked_when_something_is_not_known() {
    let (url, requests) = server(vec![answer("200 OK", PODS)]);
    let mut kubelet = Kubelet::start(&format!("{url}/")).unwrap();
    assert_eq!(wait_for(&mut kubelet, "bb"), (Some(names("cuda")), None));
    assert!(requests.recv().unwrap().starts_with("GET /pods HTTP/1.1\r\n"));
    assert_eq!(kubelet.names(&place("aa")), Some(names("fetch")));
}

#[test]
fn a_container_that_began_later_is_found_by_asking_again() {
    let (url, _requests) = server(vec![answer("200 OK", "{}"), answer("200 OK", PODS)]);
    let mut kubelet = Kubelet::start_every(&url, Duration::ZERO).unwrap();
    assert_eq!(wait_for(&mut kubelet, "bb"), (Some(names("cuda")), None));
}

#[test]
fn a_kubelet_that_refuses_is_told_of() {
    let redirect = "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n".to_owned();
    let wrong = [
        answer("401 Unauthorized", ""),
        answer("200 OK", "<html>"),
        redirect,
        "nonsense".to_owned(),
    ];
    for answer in wrong {
        let (url, _requests) = server(vec![answer]);
        let (found, trouble) = wait_for(&mut Kubelet::start(&url).unwrap(), "bb");
        let trouble = trouble.unwrap();
        assert!(
            found.is_none() && trouble.starts_with(&format!("failed to ask the kubelet at {url}/pods: ")),
            "{trouble}"
        );
    }
}

#[test]
fn trouble_is_over_when_it_answers() {
    let (url, _requests) = server(vec![answer("503 Busy", ""), answer("200 OK", PODS)]);
    let mut kubelet = Kubelet::start_every(&url, Duration::ZERO).unwrap();
    while kubelet.names(&place("bb")).is_none() {
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(kubelet.trouble(), None);
}

#[test]
fn what_is_no_url_of_it_is_refused() {
    for url in [
        "",
        "10255",
        "127.0.0.1:10255",
        "https://127.0.0.1:10250",
        "http://",
        "unix:///run/kubelet.sock",
    ] {
        let words = Kubelet::start(url).unwrap_err().to_string();
        assert!(
            words.contains(&format!("{url:?}")) && words.contains("http://127.0.0.1:10255\nhint: "),
            "{words}"
        );
    }
}

#[test]
fn asking_never_waits_for_a_kubelet_that_hangs() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut kubelet = Kubelet::start(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    // as if it accepted and said nothing: the answers come though no request is ever answered
    for _ in 0..1000 {
        assert_eq!(kubelet.names(&place("bb")), None);
    }
    drop(kubelet);
}
