//! A store of metrics that says the same to everybody who asks it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

/// Answers all requests alike, as long as the test lives; what it was asked comes out of the other end.
pub fn asked_store(status: &'static str, body: &'static str) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let (to, asked) = channel();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = to.send(request(&mut stream));
            let length = body.len();
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
            );
        }
    });
    (url, asked)
}

/// Up to the last of its parameters.
fn request(stream: &mut TcpStream) -> String {
    let mut request = Vec::new();
    let mut part = [0; 4096];
    while !String::from_utf8_lossy(&request).contains("&time=") {
        match stream.read(&mut part) {
            Ok(count) if count > 0 => request.extend_from_slice(&part[..count]),
            _ => break,
        }
    }
    String::from_utf8_lossy(&request).into_owned()
}
