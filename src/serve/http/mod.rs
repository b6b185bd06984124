//! The web server of `gpuscope serve`: metrics, health and a page for people, over TCP or TLS.
//!
//! ```text
//!  listener ─► seats (who may stay) ─► connection ─► auth ─► route (pure) ─► answer ─► texts (one for all clients)
//!                       web_config ─► protection: tls ┴─ users
//! ```
//!
//! It has a thread of its own and knows of the tracer only the [`Exchange`]. What metrics look like is [`Render`]'s.
//!
//! [`Exchange`]: super::Exchange

mod answer;
pub mod auth;
mod connection;
mod keep;
mod limits;
mod listener;
pub(crate) mod negotiate;
pub mod page;
mod protection;
mod reply;
pub mod route;
mod seats;
mod server;
mod site;
mod tally;
mod texts;
mod tls;
mod unreadable;
mod watched;
pub mod web_config;

pub use negotiate::Format;
pub(crate) use protection::check_web_config;
pub use server::{Server, Settings};

use super::Scrape;
use std::sync::Arc;

/// Writes a scrape as text.
pub(crate) type Render = dyn Fn(&Scrape, Format) -> Arc<String> + Send + Sync;
