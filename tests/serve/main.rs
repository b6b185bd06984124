//! `gpuscope serve` beside the programs it is made for: Prometheus from Debian, a browser, a collector of
//! OpenTelemetry. What they got is held against the simulated CUDA's own counts.

#![cfg(feature = "serve")]
#![allow(clippy::expect_used, reason = "whatever fails here fails the test")]

mod driver;
mod exporter;
#[path = "../deploy/expression.rs"]
mod expression;
mod fresh;
mod frozen;
mod hanging;
mod hardware;
mod idle;
mod links;
mod numbers;
#[cfg(feature = "otlp")]
mod otlp;
mod owners;
mod page;
mod prometheus;
mod queries;
mod restart;
mod rights;
mod soak;
#[path = "../support/mod.rs"]
mod support;
mod unmapped;
mod workload;
