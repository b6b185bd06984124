//! A headless browser that is asked through its DevTools pipe: what a page shows, says and wants.

use serde_json::{Value, json};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// Of a browser on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(180);

pub struct Browser {
    child: Child,
    pipe: UnixStream,
    replies: UnixStream,
    buffer: Vec<u8>,
    session: Option<String>,
    number: u64,
    /// What it told without being asked.
    pub events: Vec<Value>,
    _profile: TempDir,
}

impl Browser {
    /// One page, which is empty.
    pub fn start() -> Browser {
        let is_there = |name: &&&str| {
            let mut command = Command::new(name);
            command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
            command.status().is_ok()
        };
        let name = BROWSERS.iter().find(is_there);
        let name = name.expect("chromium: scripts/setup.sh test installs it");
        let profile = tempfile::tempdir().expect("a folder");
        let (pipe, theirs_in) = UnixStream::pair().expect("a pipe");
        let (replies, theirs_out) = UnixStream::pair().expect("a pipe");
        let mut command = Command::new(name);
        command
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
            .args([
                "--disable-background-networking",
                "--no-first-run",
                "--remote-debugging-pipe",
                // no page of a test asks the network
                "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let (from, to) = (theirs_in.as_raw_fd(), theirs_out.as_raw_fd());
        // SAFETY: between fork and exec only dup and dup2 are called, on descriptors that are open; both are first moved
        // away from the numbers that the browser wants
        unsafe {
            command.pre_exec(move || {
                let (from, to) = (libc::fcntl(from, libc::F_DUPFD, 10), libc::fcntl(to, libc::F_DUPFD, 10));
                match libc::dup2(from, 3) == 3 && libc::dup2(to, 4) == 4 {
                    true => Ok(()),
                    false => Err(std::io::Error::last_os_error()),
                }
            });
        }
        let child = command.spawn().expect("a browser starts");
        replies.set_read_timeout(Some(PATIENCE)).expect("a limit");
        let mut browser = Browser {
            child,
            pipe,
            replies,
            buffer: Vec::new(),
            session: None,
            number: 0,
            events: Vec::new(),
            _profile: profile,
        };
        let target = browser.ask("Target.createTarget", json!({"url": "about:blank"}));
        let session = browser.ask(
            "Target.attachToTarget",
            json!({"targetId": target["targetId"], "flatten": true}),
        );
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.ask(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Its answer.
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        self.number += 1;
        let mut request = json!({"id": self.number, "method": method, "params": params});
        if let Some(session) = &self.session {
            request["sessionId"] = json!(session);
        }
        let mut bytes = request.to_string().into_bytes();
        bytes.push(0);
        self.pipe.write_all(&bytes).expect("the browser listens");
        loop {
            let message = self.message();
            if message["id"] == json!(self.number) {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].clone();
            }
            self.events.push(message);
        }
    }

    fn message(&mut self) -> Value {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == 0) {
                let message: Vec<u8> = self.buffer.drain(..=end).collect();
                return serde_json::from_slice(&message[..end]).expect("JSON of the browser");
            }
            let mut chunk = [0; 1 << 16];
            let length = self.replies.read(&mut chunk).expect("the browser answers");
            assert!(length > 0, "the browser has gone");
            self.buffer.extend_from_slice(&chunk[..length]);
        }
    }

    /// Goes to a page, until it is loaded.
    pub fn open(&mut self, url: &str) {
        self.ask("Page.navigate", json!({"url": url}));
        let loaded = |event: &Value| event["method"] == "Page.loadEventFired";
        while !self.events.iter().any(loaded) {
            let message = self.message();
            self.events.push(message);
        }
    }

    /// The value of an expression in the page.
    pub fn value(&mut self, expression: &str) -> Value {
        let asked = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.ask("Runtime.evaluate", asked);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// As on a screen of that width, light or dark.
    pub fn look(&mut self, width: u32, dark: bool) {
        let scheme = if dark { "dark" } else { "light" };
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.ask("Emulation.setEmulatedMedia", features);
        let screen = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        self.ask("Emulation.setDeviceMetricsOverride", screen);
    }

    /// The whole page as a PNG, in base64.
    pub fn picture(&mut self) -> String {
        let answer = self.ask("Page.captureScreenshot", json!({"captureBeyondViewport": true}));
        answer["data"].as_str().unwrap_or_default().to_owned()
    }

    /// Errors and warnings that the page made.
    pub fn complaints(&self) -> Vec<&Value> {
        let methods = ["Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"];
        let is_one = |event: &&Value| methods.iter().any(|method| event["method"] == *method);
        self.events.iter().filter(is_one).collect()
    }

    /// What the page asked for that is neither in it nor itself.
    pub fn requests(&self, own: &str) -> Vec<&str> {
        let asked = self
            .events
            .iter()
            .filter(|event| event["method"] == "Network.requestWillBeSent");
        let urls = asked.filter_map(|event| event["params"]["request"]["url"].as_str());
        urls.filter(|url| *url != own && !url.starts_with("data:")).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
