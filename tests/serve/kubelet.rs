//! A kubelet that answers who has which devices, on a socket, as far as one call of gRPC goes.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

/// Namespace, pod, container, device.
pub type Given<'a> = (&'a str, &'a str, &'a str, &'a str);

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const STREAM: u32 = 1;
/// `:status: 200` of HPACK's static table.
const OK: &[u8] = b"\x88";

/// Listens until the test has ended.
pub struct Kubelet {
    folder: TempDir,
    answer: Arc<Mutex<Vec<u8>>>,
}

impl Kubelet {
    pub fn start(given: &[Given]) -> Kubelet {
        let folder = tempfile::tempdir().expect("a folder");
        let listener = UnixListener::bind(folder.path().join("kubelet.sock")).expect("a socket");
        let answer = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&answer);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let bytes = shared.lock().expect("a lock").clone();
                serve(client, &bytes);
            }
        });
        let kubelet = Kubelet { folder, answer };
        kubelet.gives(given);
        kubelet
    }

    pub fn gives(&self, given: &[Given]) {
        *self.answer.lock().expect("a lock") = answer(&listing(given));
    }

    /// Answers what nobody understands.
    pub fn talks_nonsense(&self) {
        *self.answer.lock().expect("a lock") = b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec();
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("kubelet.sock")
    }
}

fn serve(mut client: UnixStream, bytes: &[u8]) {
    // it waits until the client has what it asked for
    let _ = client
        .write_all(bytes)
        .and_then(|()| client.read_to_end(&mut Vec::new()));
}

fn frame(kind: u8, flags: u8, stream: u32, content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), content].concat()
}

fn answer(message: &[u8]) -> Vec<u8> {
    let length = (message.len() as u32).to_be_bytes();
    [
        frame(SETTINGS, 0, 0, b""),
        frame(HEADERS, END_HEADERS, STREAM, OK),
        frame(DATA, 0, STREAM, &[&[0], length.as_slice(), message].concat()),
        frame(HEADERS, END_HEADERS | END_STREAM, STREAM, OK),
    ]
    .concat()
}

/// A field of protobuf that has a length.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2];
    let mut length = content.len();
    while length > 0x7f {
        bytes.push(0x80 | (length & 0x7f) as u8);
        length >>= 7;
    }
    bytes.push(length as u8);
    [&bytes, content].concat()
}

/// `v1.ListPodResourcesResponse`.
fn listing(given: &[Given]) -> Vec<u8> {
    let pod = |(namespace, pod, container, device): &Given| {
        let devices = [field(1, b"nvidia.com/gpu"), field(2, device.as_bytes())].concat();
        let container = [field(1, container.as_bytes()), field(2, &devices)].concat();
        let parts = [
            field(1, pod.as_bytes()),
            field(2, namespace.as_bytes()),
            field(3, &container),
        ];
        field(1, &parts.concat())
    };
    given.iter().flat_map(pod).collect()
}
