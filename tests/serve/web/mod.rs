//! `gpuscope serve`'s web server over real TCP. It needs no privileges: what it shows is given to it.

#![allow(clippy::unwrap_used, reason = "whatever fails here fails the test")]

mod crowd;
mod hostile;
mod pages;
mod protection;
mod secrets;
mod stopping;
mod support;
