//! `gpuscope serve`'s web server over real TCP. It needs no privileges: what it shows is given to it.
#![cfg(feature = "serve")]
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "web/support.rs"]
mod support;

#[path = "web/crowd.rs"]
mod crowd;
#[path = "web/hostile.rs"]
mod hostile;
#[path = "web/pages.rs"]
mod pages;
#[path = "web/protection.rs"]
mod protection;
#[path = "web/secrets.rs"]
mod secrets;
#[path = "web/stopping.rs"]
mod stopping;
