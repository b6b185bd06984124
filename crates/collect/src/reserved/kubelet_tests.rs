use super::*;
use crate::reserved::listing::tests::pod;
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;

/// A frame of HTTP/2 on the only stream.
fn frame(kind: u8, flags: u8, content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags, 0, 0, 0, 1], content].concat()
}

fn answer_of(message: &[u8]) -> Vec<u8> {
    let body = [&[0], (message.len() as u32).to_be_bytes().as_slice(), message].concat();
    [frame(1, 4, b"\x88"), frame(0, 0, &body), frame(1, 5, b"")].concat()
}

/// A kubelet that answers each call with the next of `answers`, then is gone.
fn kubelet(answers: Vec<Vec<u8>>) -> (tempfile::TempDir, KubeletSocket) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubelet.sock");
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.write_all(&answer);
            let _ = stream.read_to_end(&mut Vec::new());
        }
    });
    let asked = KubeletSocket::start_every(&path, Duration::from_millis(5));
    (folder, asked)
}

fn wait_for(kubelet: &KubeletSocket, holds: impl Fn(&Answer, Option<&str>) -> bool) {
    while !holds(&kubelet.answer(), kubelet.trouble().as_deref()) {
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn what_the_kubelet_lists_is_known() {
    let listed = pod("a", "main", "nvidia.com/gpu", &["GPU-1"]);
    let (_folder, kubelet) = kubelet(vec![answer_of(&listed)]);
    let expected = Answer::Known(listing::reservations(&listed).unwrap());
    wait_for(&kubelet, |answer, _| *answer == expected);
}

#[test]
fn what_it_said_last_stands_while_it_fails_and_the_failure_is_told() {
    let listed = pod("a", "main", "nvidia.com/gpu", &["GPU-1"]);
    let (_folder, kubelet) = kubelet(vec![answer_of(&listed), b"HTTP/1.1 400 Bad Request\r\n".to_vec()]);
    let expected = Answer::Known(listing::reservations(&listed).unwrap());
    wait_for(&kubelet, |answer, trouble| *answer == expected && trouble.is_some());
    let words = kubelet.trouble().unwrap();
    assert!(
        words.starts_with("failed to ask the kubelet at ") && words.contains("\nhint: "),
        "{words}"
    );
}

#[test]
fn trouble_is_over_when_it_answers() {
    let (_folder, kubelet) = kubelet(vec![answer_of(b"\x0a\x09"), answer_of(b"")]);
    wait_for(&kubelet, |answer, trouble| {
        *answer == Answer::Known(Vec::new()) && trouble.is_none()
    });
}

#[test]
fn a_socket_that_was_named_and_is_missing_is_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let kubelet = KubeletSocket::start(&folder.path().join("none.sock"));
    wait_for(&kubelet, |_, trouble| trouble.is_some());
    assert_eq!(kubelet.answer(), Answer::Unknown);
}
