//! A server with a gatherer beside it, and clients that say exactly what they are told to.

use gpuscope::serve::http::{Format, Server, Settings};
use gpuscope::serve::{Exchange, Scrape, Status};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longer than anything takes that does not hang.
pub const LONG: Duration = Duration::from_secs(60);

/// A web server and what it is fed by.
pub struct World {
    pub server: Option<Server>,
    pub exchange: Arc<Exchange>,
    /// How many texts were made.
    pub rendered: Arc<AtomicU64>,
    gatherer: Option<Gatherer>,
}

struct Gatherer {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

pub fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// Settings whose text is `size` bytes and says its scrape and format; what was made is counted.
pub fn settings(size: usize, rendered: &Arc<AtomicU64>) -> Settings {
    let rendered = Arc::clone(rendered);
    let render = move |scrape: &Scrape, format: Format| {
        rendered.fetch_add(1, Ordering::Relaxed);
        let mut text = format!("scrape {} as {format:?}\n", scrape.number);
        while text.len() < size {
            let line = text.len();
            text.push_str(&format!("gpuscope_x{{line=\"{line}\"}} 1\n"));
        }
        Arc::new(text)
    };
    Settings {
        listen: vec![loopback()],
        health: Vec::new(),
        telemetry_path: "/metrics".to_owned(),
        render: Box::new(render),
        web_config: None,
        notice: Box::new(|said| panic!("{said}")),
    }
}

pub fn scrape(number: u64, status: Status) -> Scrape {
    Scrape {
        at: Instant::now(),
        number,
        samples: Vec::new(),
        status,
    }
}

impl World {
    /// Nothing is gathered unless a test publishes it.
    pub fn silent() -> World {
        World::with(|_| {}, 0)
    }

    /// Ready, with texts of this size.
    pub fn gathering(size: usize) -> World {
        World::with(|_| {}, size).gather()
    }

    pub fn with(change: impl FnOnce(&mut Settings), size: usize) -> World {
        let exchange = Arc::new(Exchange::new().unwrap());
        let rendered = Arc::default();
        let mut settings = settings(size, &rendered);
        change(&mut settings);
        let server = Server::start(settings, Arc::clone(&exchange)).unwrap();
        World {
            server: Some(server),
            exchange,
            rendered,
            gatherer: None,
        }
    }

    /// Has a thread answer the wishes, as the tracer does.
    pub fn gather(mut self) -> World {
        let (stop, exchange) = (Arc::new(AtomicBool::new(false)), Arc::clone(&self.exchange));
        let stops = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut number = 0;
            while !stops.load(Ordering::Relaxed) {
                if exchange.take_wish() {
                    number += 1;
                    let status = Status {
                        ready: true,
                        ..Status::default()
                    };
                    exchange.publish(scrape(number, status));
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        self.gatherer = Some(Gatherer { stop, thread });
        self
    }

    pub fn address(&self) -> SocketAddr {
        self.server.as_ref().unwrap().addresses()[0]
    }

    pub fn requests(&self) -> Vec<(u16, u64)> {
        self.server.as_ref().unwrap().requests()
    }

    pub fn connect(&self) -> TcpStream {
        connect(self.address())
    }

    /// GET with further header lines.
    pub fn get(&self, path: &str, headers: &str) -> Answer {
        self.ask(&format!(
            "GET {path} HTTP/1.1\r\nHost: x\r\n{headers}Connection: close\r\n\r\n"
        ))
    }

    /// The answer to these bytes.
    pub fn ask(&self, request: &str) -> Answer {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        Answer::read(&mut stream)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        drop(self.server.take());
        if let Some(Gatherer { stop, thread }) = self.gatherer.take() {
            stop.store(true, Ordering::Relaxed);
            thread.join().unwrap();
        }
    }
}

pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub code: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    /// All until the server closes.
    pub fn read(stream: &mut impl Read) -> Answer {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        Answer::parse(&bytes)
    }

    pub fn parse(bytes: &[u8]) -> Answer {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        let end = end.unwrap_or_else(|| panic!("no answer: {:?}", String::from_utf8_lossy(bytes)));
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_ascii_lowercase();
        let code = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer {
            code,
            head,
            body: bytes[end + 4..].to_vec(),
        }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(found, _)| *found == name).map(|(_, value)| value)
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }
}
