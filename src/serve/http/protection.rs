//! The web config in force: read at the start, and again when one of its files has changed.
//!
//! A thread of its own reads, as the one that serves may open nothing.
//!
//! A change that cannot be used is told once, and what was in force stays so.

use super::auth::Users;
use super::tls;
use super::unreadable::unreadable;
use super::web_config::{self, WebConfig};
use crate::confine::{self, Capability, Keep};
use crate::refusal;
use anyhow::{Context, Result, anyhow};
use hyper::header::{HeaderName, HeaderValue};
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio_rustls::rustls::ServerConfig;

/// How often files are looked at, at most.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long who asks waits for a look.
const LOOK_TAKES: Duration = Duration::from_millis(250);
const CONFIG_BYTES: u64 = 1 << 20;

/// Called with what an operator should know, one line or with hints on further ones.
pub type Notice = dyn Fn(&str) + Send + Sync;

/// The web config in force.
pub(crate) struct Protection {
    shared: Arc<Shared>,
    /// To the thread that reads: a look is wanted, and whom to tell that it is done.
    wish: Sender<SyncSender<()>>,
}

struct Shared {
    notice: Box<Notice>,
    now: Mutex<Now>,
}

struct Now {
    path: Option<PathBuf>,
    rules: Arc<Rules>,
    stamps: Vec<Stamp>,
    looked: Instant,
}

/// What holds for a connection.
pub(crate) struct Rules {
    pub tls: Option<Arc<ServerConfig>>,
    pub users: Users,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// What others may read and should not; a line for each.
    pub warnings: Vec<String>,
}

/// A file and what tells one state of it from another.
type Stamp = (PathBuf, Option<[i64; 7]>);

/// Whether a web config could be put in force.
///
/// # Errors
/// The file or one that it names cannot be used.
pub(crate) fn check_web_config(path: Option<&Path>) -> Result<()> {
    Now::read(path).map(|_| ())
}

impl Protection {
    /// What the file says; without one everybody may ask, in clear.
    ///
    /// # Errors
    /// The file or one that it names cannot be used, or no thread is left.
    pub(crate) fn new(path: Option<&Path>, notice: Box<Notice>) -> Result<Protection> {
        let now = Mutex::new(Now::read(path)?);
        let shared = Arc::new(Shared { notice, now });
        let (wish, wishes) = channel();
        let own = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("web-config".to_owned());
        thread
            .spawn(move || own.look_when_wanted(&wishes))
            .context("failed to start the thread that reads the web config")?;
        Ok(Protection { shared, wish })
    }

    /// Puts another file in force.
    ///
    /// # Errors
    /// It cannot be used, and what was in force stays so.
    pub fn replace(&self, path: Option<&Path>) -> Result<()> {
        let now = Now::read(path)?;
        *self.shared.now() = now;
        Ok(())
    }

    /// What holds now.
    pub(crate) fn rules(&self) -> Arc<Rules> {
        if self.shared.is_look_due() {
            let (done, looked) = sync_channel(1);
            if self.wish.send(done).is_ok() {
                // a file that does not answer changes nothing
                let _ = looked.recv_timeout(LOOK_TAKES);
            }
        }
        Arc::clone(&self.shared.now().rules)
    }
}

impl Shared {
    /// What serves has no right to open a file; only this thread has, while somebody serves.
    fn look_when_wanted(&self, wishes: &Receiver<SyncSender<()>>) {
        confine::this_thread(Keep::Capabilities(&[Capability::DacReadSearch]));
        for done in wishes {
            self.look_again();
            // who waited in vain is gone
            let _ = done.try_send(());
        }
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_look_due(&self) -> bool {
        let mut now = self.now();
        let due = now.path.is_some() && now.looked.elapsed() >= LOOK_EVERY;
        if due {
            now.looked = Instant::now();
        }
        due
    }

    fn look_again(&self) {
        let (path, before) = {
            let now = self.now();
            (now.path.clone(), now.stamps.clone())
        };
        let stamps: Vec<Stamp> = before.iter().map(|(path, _)| stamp(path)).collect();
        if stamps == before {
            return;
        }
        let new = Now::read(path.as_deref());
        let mut now = self.now();
        if now.path != path {
            // another file was put in force meanwhile
            return;
        }
        match new {
            Ok(new) => {
                *now = new;
                now.rules.warnings.iter().for_each(|warning| (self.notice)(warning));
            }
            Err(error) => {
                now.stamps = stamps;
                let error = error.context("the web config has changed and cannot be used; the last one stays in force");
                (self.notice)(&refusal::message(&error));
            }
        }
    }
}

impl Now {
    fn read(path: Option<&Path>) -> Result<Now> {
        // before the files: a change while they are read is seen the next time
        let mut stamps: Vec<Stamp> = path.into_iter().map(stamp).collect();
        let config = path.map(read).transpose()?.unwrap_or_default();
        let named = config.tls.iter().flat_map(|tls| {
            let ca_file = tls.clients.iter().map(|clients| clients.ca_file.as_path());
            [tls.cert_file.as_path(), &tls.key_file].into_iter().chain(ca_file)
        });
        stamps.extend(named.map(stamp));
        Ok(Now {
            path: path.map(Path::to_owned),
            rules: Arc::new(Rules {
                tls: config.tls.as_ref().map(tls::configure).transpose()?,
                warnings: warnings(path, &config),
                users: Users::new(config.users),
                headers: config.headers,
            }),
            stamps,
            looked: Instant::now(),
        })
    }
}

/// The file, with paths from its directory.
fn read(path: &Path) -> Result<WebConfig> {
    let text = bounded(path).map_err(|error| unreadable(path, "web config", error))?;
    let mut config = web_config::parse(&text).map_err(|mistake| match mistake.line {
        0 => anyhow!("{}: {mistake}", path.display()),
        line => anyhow!("{}:{line}: {mistake}", path.display()),
    })?;
    let directory = path.parent().unwrap_or(Path::new(""));
    if let Some(tls) = &mut config.tls {
        let ca_file = tls.clients.iter_mut().map(|clients| &mut clients.ca_file);
        for named in [&mut tls.cert_file, &mut tls.key_file].into_iter().chain(ca_file) {
            *named = directory.join(&*named);
        }
    }
    Ok(config)
}

fn bounded(path: &Path) -> io::Result<String> {
    let file = fs::File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let mut text = String::new();
    if file.take(CONFIG_BYTES).read_to_string(&mut text)? as u64 == CONFIG_BYTES {
        return Err(io::Error::other("it has a megabyte or more"));
    }
    Ok(text)
}

fn warnings(path: Option<&Path>, config: &WebConfig) -> Vec<String> {
    let hashes = path.filter(|_| !config.users.is_empty());
    let hashes = hashes.map(|path| (path, "hashes of passwords"));
    let key = config.tls.iter().map(|tls| (tls.key_file.as_path(), "a private key"));
    let open = hashes.into_iter().chain(key).filter(|(path, _)| others_may_read(path));
    open.map(|(path, what)| {
        let path = path.display();
        format!("{path} holds {what} and may be read by everybody here\nhint: chmod 600 {path}")
    })
    .collect()
}

fn others_may_read(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.mode() & 0o004 != 0)
}

fn stamp(path: &Path) -> Stamp {
    let of = |file: fs::Metadata| {
        let number = |number: u64| number.cast_signed();
        [
            number(file.dev()),
            number(file.ino()),
            number(file.size()),
            file.mtime(),
            file.mtime_nsec(),
            file.ctime(),
            file.ctime_nsec(),
        ]
    };
    (path.to_owned(), fs::metadata(path).ok().map(of))
}
