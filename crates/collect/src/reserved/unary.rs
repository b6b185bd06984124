//! One call of gRPC over a socket: HTTP/2 with one stream, one message asked, one answered.
//!
//! Headers of the answer are never decoded: a call that was refused answers no message, and that is told. So neither HPACK
//! nor flow control is needed beyond windows that are as large as what is taken. Bounded in bytes and in time.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Of an answer.
pub(super) const MOST_BYTES: usize = 16 << 20;
/// What HTTP/2 allows where nobody asks for more; we do not.
const FRAME_BYTES: usize = 16 << 10;
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const STREAM: u32 = 1;
const PREFIX_BYTES: usize = 5;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;

const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;

/// Asks `method`, such as `/v1.PodResourcesLister/List`, with an empty message; the message of the answer.
///
/// # Errors
/// In words: what went wrong, or that it took longer than `limit`.
pub(super) fn call(socket: UnixStream, method: &str, limit: Duration) -> Result<Vec<u8>, String> {
    let mut timed = Timed {
        socket,
        deadline: Instant::now() + limit,
    };
    timed.write_all(&request(method)).map_err(|error| error.to_string())?;
    message(answered(timed)?)
}

/// The message that a server would have answered with `frames`; where it goes on, that is an error.
///
/// # Errors
/// In words: what is wrong with them.
pub fn body_of(frames: &[u8]) -> Result<Vec<u8>, String> {
    struct Taken<'a>(&'a [u8]);
    impl Read for Taken<'_> {
        fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
            self.0.read(to)
        }
    }
    impl Write for Taken<'_> {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    message(answered(Taken(frames))?)
}

/// A socket whose reads and writes end at one time.
struct Timed {
    socket: UnixStream,
    deadline: Instant,
}

impl Timed {
    fn left(&self) -> std::io::Result<Option<Duration>> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        match left.is_zero() {
            true => Err(std::io::ErrorKind::TimedOut.into()),
            false => Ok(Some(left)),
        }
    }
}

impl Read for Timed {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        self.socket.set_read_timeout(self.left()?)?;
        self.socket.read(to)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.socket.set_write_timeout(self.left()?)?;
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn frame(kind: u8, flags: u8, stream: u32, content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u32).to_be_bytes();
    let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
    [head.as_slice(), content].concat()
}

fn request(method: &str) -> Vec<u8> {
    let window = MOST_BYTES as u32 + FRAME_BYTES as u32;
    // no table of headers, nothing pushed, and room for the answer
    let settings = [(1u16, 0u32), (2, 0), (4, window)];
    let settings: Vec<u8> = settings
        .iter()
        .flat_map(|(name, value)| [name.to_be_bytes().as_slice(), &value.to_be_bytes()].concat())
        .collect();
    [
        PREFACE.to_vec(),
        frame(SETTINGS, 0, 0, &settings),
        frame(WINDOW_UPDATE, 0, 0, &window.to_be_bytes()),
        frame(HEADERS, END_HEADERS, STREAM, &headers(method)),
        frame(DATA, END_STREAM, STREAM, &[0; PREFIX_BYTES]),
    ]
    .concat()
}

/// In HPACK, by the numbers of its static table, never to be kept: POST, http, path, authority, content type.
fn headers(method: &str) -> Vec<u8> {
    let text = |text: &str| [&[text.len() as u8], text.as_bytes()].concat();
    [
        vec![0x83, 0x86, 0x04],
        text(method),
        vec![0x01],
        text("localhost"),
        vec![0x0f, 0x10],
        text("application/grpc"),
        vec![0x00],
        text("te"),
        text("trailers"),
    ]
    .concat()
}

/// The bytes of the answer, up to its end.
fn answered(mut socket: impl Read + Write) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    loop {
        let mut head = [0; 9];
        let failed = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => "no answer in time".to_owned(),
            std::io::ErrorKind::UnexpectedEof => "the answer ends before its end".to_owned(),
            _ => error.to_string(),
        };
        socket.read_exact(&mut head).map_err(failed)?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let (kind, flags) = (head[3], head[4]);
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]) & (u32::MAX >> 1);
        if length > FRAME_BYTES {
            return Err("the answer is not one of HTTP/2".to_owned());
        }
        let mut content = vec![0; length];
        socket.read_exact(&mut content).map_err(failed)?;
        if let Some(reply) = reply(kind, flags, &content) {
            socket.write_all(&reply).map_err(failed)?;
        }
        if take(kind, flags, stream, &content, &mut body)? {
            return Ok(body);
        }
    }
}

/// What a server waits for.
fn reply(kind: u8, flags: u8, content: &[u8]) -> Option<Vec<u8>> {
    match kind {
        SETTINGS if flags & ACK == 0 => Some(frame(SETTINGS, ACK, 0, b"")),
        PING if flags & ACK == 0 => Some(frame(PING, ACK, 0, content)),
        _ => None,
    }
}

/// Takes a frame in; whether it is the last one of the answer.
fn take(kind: u8, flags: u8, stream: u32, content: &[u8], body: &mut Vec<u8>) -> Result<bool, String> {
    match (kind, stream) {
        (DATA, STREAM) => {
            let data = without_padding(flags, content).ok_or("the answer is not one of HTTP/2")?;
            if body.len() + data.len() > MOST_BYTES + PREFIX_BYTES {
                return Err(format!("the answer is longer than {} MiB", MOST_BYTES >> 20));
            }
            body.extend_from_slice(data);
            Ok(flags & END_STREAM != 0)
        }
        (HEADERS, STREAM) => Ok(flags & END_STREAM != 0),
        (RST_STREAM, STREAM) => Err("the call was broken off".to_owned()),
        (PUSH_PROMISE, _) => Err("the answer is not one of HTTP/2".to_owned()),
        (GOAWAY, 0) if last_stream(content) < STREAM => Err("the server takes no calls".to_owned()),
        _ => Ok(false),
    }
}

fn without_padding(flags: u8, content: &[u8]) -> Option<&[u8]> {
    if flags & PADDED == 0 {
        return Some(content);
    }
    let (padding, rest) = content.split_first()?;
    rest.get(..rest.len().checked_sub(usize::from(*padding))?)
}

fn last_stream(goaway: &[u8]) -> u32 {
    goaway
        .first_chunk()
        .map_or(0, |last| u32::from_be_bytes(*last) & (u32::MAX >> 1))
}

/// Whether it is compressed, its length, and itself.
fn message(body: Vec<u8>) -> Result<Vec<u8>, String> {
    let Some((prefix, message)) = body.split_first_chunk::<PREFIX_BYTES>() else {
        return Err("the call was refused".to_owned());
    };
    let [compressed, length @ ..] = *prefix;
    match u32::from_be_bytes(length) as usize {
        _ if compressed != 0 => Err("the answer is compressed, which was not asked for".to_owned()),
        length if length == message.len() => Ok(message.to_vec()),
        _ => Err("the answer is not one message".to_owned()),
    }
}

#[cfg(test)]
#[path = "unary_tests.rs"]
mod tests;
