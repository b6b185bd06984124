//! Serves Perfetto's page and one trace, as a web server would that has both.

use super::processor::perfetto;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Until the end of the test program, on a port of its own: where the page opens the trace.
pub fn served(trace: &Path) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let site = Arc::new(Site {
        folder: format!("/{}/", version()),
        trace: trace.to_owned(),
    });
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let site = Arc::clone(&site);
            // a browser also connects to ask nothing, and leaves when the test ends
            std::thread::spawn(move || drop(site.answer(stream)));
        }
    });
    format!("http://127.0.0.1:{port}/#!/viewer?url=http://127.0.0.1:{port}/t.pftrace")
}

struct Site {
    /// Where the page looks for its parts.
    folder: String,
    trace: PathBuf,
}

impl Site {
    fn answer(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut lines = BufReader::new(stream.try_clone()?).lines().map_while(Result::ok);
        let first = lines.next().unwrap_or_default();
        lines.find(String::is_empty);
        let asked = first.split(' ').nth(1).unwrap_or_default();
        let file = self
            .file(asked)
            .and_then(|path| Some((kind(&path), std::fs::read(path).ok()?)));
        let (status, kind, body) = match file {
            Some((kind, body)) => ("200 OK", kind, body),
            None => ("404 Not Found", "text/plain", Vec::new()),
        };
        let length = body.len();
        write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        )?;
        stream.write_all(&body)
    }

    fn file(&self, asked: &str) -> Option<PathBuf> {
        match asked {
            "/" => Some(perfetto().join("start.html")),
            "/t.pftrace" => Some(self.trace.clone()),
            _ => asked.strip_prefix(&self.folder).map(|name| perfetto().join(name)),
        }
    }
}

/// As its start page has it.
fn version() -> String {
    let path = perfetto().join("start.html");
    let start = std::fs::read_to_string(path).expect("scripts/fetch-tools.sh fetches it");
    let (_, rest) = start.split_once(r#"{"stable":""#).expect("versions");
    rest.split_once('"').expect("a version").0.to_owned()
}

fn kind(path: &Path) -> &'static str {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("html") => "text/html",
        Some("js") => "text/javascript",
        Some("css") => "text/css",
        Some("wasm") => "application/wasm",
        Some("json") => "application/json",
        Some("woff2") => "font/woff2",
        Some("png") => "image/png",
        _ => "application/octet-stream",
    }
}
