//! Clients that mean no good, or speak something else.

use super::support::{Answer, World};
use std::io::Write;

#[test]
fn headers_beyond_the_limit_are_431_and_the_answer_arrives() {
    let world = World::gathering(0);
    for size in [17 << 10, 100 << 10, 800 << 10] {
        let answer = world.ask(&format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "a".repeat(size)));
        assert_eq!(answer.code, 431, "{size}");
    }
    let lines = "X-Y: z\r\n".repeat(200);
    assert_eq!(world.get("/healthz", &lines).code, 431);
    let path = "a".repeat(100 << 10);
    assert!(matches!(world.get(&format!("/{path}"), "").code, 414 | 431));
    assert_eq!(world.get("/healthz", "").code, 200);
}

#[test]
fn what_is_no_http_is_refused_and_nothing_else_suffers() {
    let world = World::gathering(0);
    let hello = "\u{16}\u{3}\u{1}\u{0}\u{5}hello";
    for garbage in [
        "\0\0\0\0\r\n\r\n",
        hello,
        "GET\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "GET / HTTP/1.1\r\n: x\r\n\r\n",
    ] {
        assert_eq!(world.ask(garbage).code, 400, "{garbage:?}");
    }
    // it is counted after the answer has gone out
    while world.requests() != [(400, 5)] {
        std::thread::yield_now();
    }
    assert_eq!(world.get("/healthz", "").code, 200);
}

#[test]
fn random_bytes_never_end_the_server() {
    let world = World::gathering(0);
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for _ in 0..300 {
        let mut bytes: Vec<u8> = (0..random() % 300).map(|_| (random() & 0xff) as u8).collect();
        bytes.extend_from_slice(b"\r\n\r\n");
        let mut stream = world.connect();
        // it may have been refused by now
        let _ = stream.write_all(&bytes);
    }
    assert_eq!(world.get("/healthz", "").code, 200);
}

#[test]
fn a_body_that_nobody_reads_does_no_harm() {
    let world = World::gathering(0);
    let mut stream = world.connect();
    stream
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000000\r\n\r\n")
        .unwrap();
    let _ = stream.write_all(&vec![b'x'; 1 << 16]);
    let mut start = [0; 12];
    std::io::Read::read_exact(&mut stream, &mut start).unwrap();
    assert_eq!(&start, b"HTTP/1.1 200");
    assert_eq!(world.get("/healthz", "").code, 200);
}

#[test]
fn two_lengths_are_refused() {
    let world = World::gathering(0);
    let smuggled = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef";
    assert_eq!(world.ask(smuggled).code, 400);
}

#[test]
fn hangers_on_who_leave_are_forgotten() {
    let world = World::gathering(0);
    for _ in 0..1000 {
        world.connect().write_all(b"GET /metr").unwrap();
    }
    let mut stream = world.connect();
    stream.write_all(b"GET /healthz HTTP/1.0\r\n\r\n").unwrap();
    assert_eq!(Answer::read(&mut stream).code, 200);
}
