//! What the kubelet of this node has given to containers, asked in a thread of its own: it may be slow or away.

use super::{Reservation, listing, unary};
use crate::confine::{self, Keep};
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Where kubelets listen, unless their root is elsewhere.
pub const SOCKET: &str = "/var/lib/kubelet/pod-resources/kubelet.sock";
const METHOD: &str = "/v1.PodResourcesLister/List";
const EVERY: Duration = Duration::from_secs(10);
const TIMEOUT: Duration = Duration::from_secs(1);
/// An answer is taken for what is for so long; then nothing is known.
const FRESH: Duration = Duration::from_secs(30);
const HINT: &str = "hint: the socket is root's; in a pod, mount its folder: docs/serve.md#reserved-and-unused";

/// What is known of reservations now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// There is no kubelet.
    Absent,
    /// It has not answered lately.
    Unknown,
    Known(Vec<Reservation>),
}

/// Asks a kubelet again and again.
#[derive(Debug)]
pub struct KubeletSocket {
    shared: Arc<Shared>,
    path: PathBuf,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    latest: Answer,
    /// When it was last heard of: of an answer, of its absence.
    heard: Instant,
    trouble: Option<String>,
    stopped: bool,
}

impl Default for State {
    fn default() -> State {
        State {
            latest: Answer::Unknown,
            heard: Instant::now(),
            trouble: None,
            stopped: false,
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KubeletSocket {
    /// Asks the kubelet that listens at `path`; that there is none is no trouble where `path` is the usual one.
    #[must_use]
    pub fn start(path: &Path) -> KubeletSocket {
        KubeletSocket::start_every(path, EVERY)
    }

    fn start_every(path: &Path, every: Duration) -> KubeletSocket {
        let shared = Arc::new(Shared::default());
        let (own, socket) = (Arc::clone(&shared), path.to_owned());
        let thread = std::thread::Builder::new().name("pod-resources".to_owned());
        let ask = move || {
            confine::this_thread(Keep::NoCapability);
            ask_until_stopped(&own, &socket, every);
        };
        if let Err(error) = thread.spawn(ask) {
            shared.lock().trouble = Some(format!("failed to start a thread: {error}"));
        }
        KubeletSocket {
            shared,
            path: path.to_owned(),
        }
    }

    /// What it has said last. Never waits.
    #[must_use]
    pub fn answer(&self) -> Answer {
        let state = self.shared.lock();
        match state.heard.elapsed() > FRESH {
            true => Answer::Unknown,
            false => state.latest.clone(),
        }
    }

    /// Why it is not known what is reserved.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        let state = self.shared.lock();
        let silent = || {
            let path = self.path.display();
            format!("failed to ask the kubelet at {path} for reserved devices: it does not answer\n{HINT}")
        };
        state
            .trouble
            .clone()
            .or_else(|| (state.heard.elapsed() > FRESH).then(silent))
    }
}

/// The thread ends by itself, after an answer that it may be waiting for.
impl Drop for KubeletSocket {
    fn drop(&mut self) {
        self.shared.lock().stopped = true;
        self.shared.changed.notify_one();
    }
}

fn ask_until_stopped(shared: &Shared, path: &Path, every: Duration) {
    loop {
        let answer = ask(path);
        let mut state = shared.lock();
        state.trouble = answer.as_ref().err().map(|words| {
            let path = path.display();
            format!("failed to ask the kubelet at {path} for reserved devices: {words}\n{HINT}")
        });
        if let Ok(answer) = answer {
            (state.latest, state.heard) = (answer, Instant::now());
        }
        let running = |state: &mut State| !state.stopped;
        let waited = shared.changed.wait_timeout_while(state, every, running);
        if waited.unwrap_or_else(PoisonError::into_inner).0.stopped {
            return;
        }
    }
}

fn ask(path: &Path) -> Result<Answer, String> {
    let socket = match UnixStream::connect(path) {
        Ok(socket) => socket,
        Err(error) if error.kind() == io::ErrorKind::NotFound && path == Path::new(SOCKET) => {
            return Ok(Answer::Absent);
        }
        Err(error) => return Err(error.to_string()),
    };
    let message = unary::call(socket, METHOD, TIMEOUT)?;
    listing::reservations(&message).map(Answer::Known)
}

#[cfg(test)]
#[path = "kubelet_tests.rs"]
mod tests;
