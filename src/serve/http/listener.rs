//! Where the server listens, and letting clients in.

use super::connection;
use super::limits::{BACKLOG, SEND_BUFFER_BYTES};
use super::site::{Door, Site};
use anyhow::{Context, Result};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

/// After an error of the machine's, such as no file descriptor left.
const RESPITE: Duration = Duration::from_millis(100);

/// Takes `address`.
///
/// # Errors
/// It cannot be had.
pub(crate) fn bind(address: SocketAddr) -> Result<TcpListener> {
    let listener = TcpListener::bind(address).map_err(|error| {
        let hint = hint(address, &error);
        anyhow::Error::new(error).context(format!("failed to listen on {address}{hint}"))
    })?;
    listener
        .set_nonblocking(true)
        .with_context(|| format!("failed to listen on {address}"))?;
    bound_buffers(&listener);
    // SAFETY: the socket is ours and listens; it does so with a longer queue from here on, or with the old one
    unsafe { libc::listen(listener.as_raw_fd(), BACKLOG) };
    Ok(listener)
}

/// Connections that come have the buffers of the socket that they come to. One that keeps its own is slower to bound only.
fn bound_buffers(listener: &TcpListener) {
    let bytes = SEND_BUFFER_BYTES;
    let (value, length) = ((&raw const bytes).cast(), size_of_val(&bytes) as libc::socklen_t);
    // SAFETY: reads a number of ours
    unsafe { libc::setsockopt(listener.as_raw_fd(), libc::SOL_SOCKET, libc::SO_SNDBUF, value, length) };
}

fn hint(address: SocketAddr, error: &io::Error) -> String {
    let port = address.port();
    match error.kind() {
        ErrorKind::AddrInUse => format!(
            "\nhint: ss -ltnp 'sport = :{port}' shows who has the port; --listen {} takes another",
            SocketAddr::new(address.ip(), port.wrapping_add(1).max(1024))
        ),
        ErrorKind::AddrNotAvailable => {
            "\nhint: ip address shows the addresses of this machine; --listen 127.0.0.1:9748 always exists".to_owned()
        }
        ErrorKind::PermissionDenied => {
            format!("\nhint: port {port} needs CAP_NET_BIND_SERVICE; a port from 1024 on needs nothing")
        }
        _ => String::new(),
    }
}

/// Lets clients in until the server stops. No error ends it.
pub(crate) async fn let_in(listener: tokio::net::TcpListener, door: Door, site: Arc<Site>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let taken = site.seats(door).take().await;
                tokio::spawn(connection::serve(stream, door, taken, Arc::clone(&site)));
            }
            // of the client that went away
            Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
            Err(_) => {
                site.seats(door).make_room();
                tokio::time::sleep(RESPITE).await;
            }
        }
    }
}
