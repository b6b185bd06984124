//! How much the web server takes of one client, and of all together.

use std::time::Duration;

/// Connections that are served at one time; who comes later waits in the kernel's queue.
pub(crate) const CONNECTIONS: usize = 512;
/// The same where health alone is asked for.
pub(crate) const HEALTH_CONNECTIONS: usize = 32;
/// Connections that the kernel keeps waiting for us (it takes no more than `net.core.somaxconn`).
pub(crate) const BACKLOG: i32 = 4096;
/// The request line and all headers.
pub(crate) const HEADER_BYTES: usize = 16 << 10;
pub(crate) const HEADER_LINES: usize = 64;
/// From the connection, or the first byte of a later request, to the last byte of the headers; TLS included.
pub(crate) const HEADER_TIME: Duration = Duration::from_secs(10);
/// A client that takes nothing of an answer for so long is left.
pub(crate) const STALL_TIME: Duration = Duration::from_secs(10);
/// Nobody may take an answer for longer, however steadily.
pub(crate) const TAKE_TIME: Duration = Duration::from_secs(60);
/// What a client posts, all of it within [`BODY_TIME`].
pub(crate) const BODY_BYTES: usize = 1 << 20;
pub(crate) const BODY_TIME: Duration = Duration::from_secs(10);
/// Of all texts that are made and taken, of all clients together; one text may be longer.
pub(crate) const TEXT_BYTES: usize = 64 << 20;
/// Of an answer that the kernel keeps for a connection; it keeps twice that, and by itself would keep megabytes.
pub(crate) const SEND_BUFFER_BYTES: i32 = 64 << 10;
/// A connection between two requests; longer than the usual scrape intervals.
pub(crate) const IDLE_TIME: Duration = Duration::from_secs(150);
/// A client that has not asked within this time gives its place to others, where there is none left.
pub(crate) const GRACE: Duration = Duration::from_millis(250);
/// As [`GRACE`], for one that takes nothing of its answer.
pub(crate) const STALL_GRACE: Duration = Duration::from_secs(1);
/// What is left in answering when the server stops has this long.
pub(crate) const STOP_TIME: Duration = Duration::from_secs(2);
/// Scrapes are answered within this time, with the last known values if need be.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
