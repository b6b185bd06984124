//! Starting and stopping the web server; its thread.

use super::Render;
use super::limits::{CONNECTIONS, GRACE, HEALTH_CONNECTIONS, STOP_TIME};
use super::listener;
use super::protection::{Notice, Protection, Rules};
use super::seats::Seats;
use super::site::{Door, Site};
use super::tally::Tally;
use super::texts::Texts;
use crate::confine::{self, Keep};
use crate::serve::Exchange;
use anyhow::{Context, Result, bail};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

/// How often the seats are looked over.
const SWEEP: Duration = Duration::from_millis(500);

/// What the server is started with.
pub struct Settings {
    /// At least one. Port 0 takes a free one.
    pub listen: Vec<SocketAddr>,
    /// Where health alone is told, in clear and to everybody; may be empty.
    pub health: Vec<SocketAddr>,
    /// Where metrics are, `/metrics` as a rule.
    pub telemetry_path: String,
    pub render: Box<Render>,
    /// The file with TLS and users; none: everybody may ask, in clear.
    pub web_config: Option<PathBuf>,
    /// Told of what happens to the web config later.
    pub notice: Box<Notice>,
}

/// A web server that runs until this is dropped.
pub struct Server {
    addresses: Vec<SocketAddr>,
    health: Vec<SocketAddr>,
    tally: Arc<Tally>,
    protection: Arc<Protection>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens; from here on clients are answered.
    ///
    /// # Errors
    /// An address cannot be had, the web config cannot be used, or the path of the metrics is none.
    pub fn start(settings: Settings, exchange: Arc<Exchange>) -> Result<Server> {
        check_path(&settings.telemetry_path)?;
        let protection = Protection::new(settings.web_config.as_deref(), settings.notice)?;
        let protection = Arc::new(protection);
        let listeners = bind(&settings.listen)?;
        let health = bind(&settings.health)?;
        let (addresses, health_addresses) = (addresses(&listeners)?, addresses(&health)?);
        let (stop, stopping) = watch::channel(false);
        let tally = Arc::new(Tally::default());
        let site = Arc::new(Site {
            exchange,
            telemetry_path: settings.telemetry_path,
            texts: Texts::new(settings.render),
            tally: Arc::clone(&tally),
            protection: Arc::clone(&protection),
            seats: Arc::new(Seats::of(CONNECTIONS)),
            health_seats: Arc::new(Seats::of(HEALTH_CONNECTIONS)),
            stopping,
        });
        let runtime = Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(1)
            .build();
        let runtime = runtime.context("failed to start the web server")?;
        let thread = std::thread::Builder::new().name("http".to_owned());
        let doors = [(Door::All, listeners), (Door::Health, health)];
        let thread = thread.spawn(move || {
            // so do the threads that it starts, which compare passwords
            confine::this_thread(Keep::DescriptorsAlone);
            run(&runtime, doors, &site);
            // a password that is still compared is not waited for
            runtime.shutdown_background();
        });
        Ok(Server {
            addresses,
            health: health_addresses,
            tally,
            protection,
            stop,
            thread: Some(thread.context("failed to start the thread of the web server")?),
        })
    }

    /// All addresses that are listened on, in the order of [`Settings::listen`].
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The same of [`Settings::health`].
    pub fn health_addresses(&self) -> &[SocketAddr] {
        &self.health
    }

    /// `https` or `http`: what is spoken now.
    pub(crate) fn scheme(&self) -> &'static str {
        self.protection.rules().tls.as_ref().map_or("http", |_| "https")
    }

    /// What whoever started it should know, a line for each, some with a hint on the next.
    pub fn warnings(&self) -> Vec<String> {
        let rules = self.protection.rules();
        let far = self.addresses.iter().find(|address| !address.ip().is_loopback());
        let exposed = far.and_then(|address| exposed(*address, &rules));
        rules.warnings.iter().cloned().chain(exposed).collect()
    }

    /// Puts another web config in force; [`Server::warnings`] are then of that.
    ///
    /// # Errors
    /// It cannot be used, and what was in force stays so.
    pub fn protect(&self, web_config: Option<&Path>) -> Result<()> {
        self.protection.replace(web_config)
    }

    /// How many requests were answered, by status code.
    pub fn requests(&self) -> Vec<(u16, u64)> {
        self.tally.all()
    }

    /// Lets nobody in any more, and answers what was asked; [`Self::stop`] waits for that.
    pub(crate) fn begin_stop(&self) {
        self.stop.send_replace(true);
    }

    /// Lets nobody in any more, answers what was asked, and ends within some two seconds.
    pub fn stop(self) {}
}

impl Drop for Server {
    fn drop(&mut self) {
        self.begin_stop();
        if let Some(thread) = self.thread.take() {
            // a panic in it was printed
            let _ = thread.join();
        }
    }
}

fn exposed(address: SocketAddr, rules: &Rules) -> Option<String> {
    let what = match (&rules.tls, rules.users.is_open()) {
        (None, true) => "whoever reaches it reads what runs on this machine",
        (None, false) => "passwords travel in clear",
        (Some(_), _) => return None,
    };
    Some(format!(
        "{address} can be reached by others, and {what}\nhint: --web-config FILE with tls_server_config, or --listen \
         127.0.0.1:{}",
        address.port()
    ))
}

fn check_path(path: &str) -> Result<()> {
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'?' | b'#' | b'%' | b'"' | b'<' | b'>' | b'\\');
    if !path.starts_with('/') || !path.bytes().all(plain) {
        bail!("{path:?} is no path for metrics\nhint: it begins with /, as /metrics does, and has no ?, # or %");
    }
    if matches!(path, "/healthz" | "/readyz" | super::route::KEEP) {
        bail!("{path} is taken by another page, so that metrics cannot be there\nhint: /metrics");
    }
    Ok(())
}

fn bind(addresses: &[SocketAddr]) -> Result<Vec<TcpListener>> {
    addresses.iter().map(|at| listener::bind(*at)).collect()
}

fn addresses(listeners: &[TcpListener]) -> Result<Vec<SocketAddr>> {
    let addresses: Result<_, _> = listeners.iter().map(TcpListener::local_addr).collect();
    addresses.context("failed to ask for the address that is listened on")
}

fn run(runtime: &Runtime, doors: [(Door, Vec<TcpListener>); 2], site: &Arc<Site>) {
    runtime.block_on(async {
        let mut tasks = Vec::new();
        for (door, listener) in doors
            .into_iter()
            .flat_map(|(door, all)| all.into_iter().map(move |one| (door, one)))
        {
            // fails without a runtime, and there is one
            if let Ok(listener) = tokio::net::TcpListener::from_std(listener) {
                tasks.push(tokio::spawn(listener::let_in(listener, door, Arc::clone(site))));
            }
        }
        tokio::select! {
            () = sweep(site) => {}
            () = site.stops() => {}
        }
        tasks.iter().for_each(tokio::task::JoinHandle::abort);
        let all_left = async {
            emptied(&site.seats).await;
            emptied(&site.health_seats).await;
        };
        let _ = tokio::time::timeout(STOP_TIME, all_left).await;
    });
}

async fn sweep(site: &Site) {
    loop {
        tokio::time::sleep(SWEEP).await;
        site.seats.sweep();
        site.health_seats.sweep();
    }
}

/// When the last client has left.
async fn emptied(seats: &Seats) {
    while seats.count() > 0 {
        seats.dismiss();
        tokio::time::sleep(GRACE / 10).await;
    }
}
