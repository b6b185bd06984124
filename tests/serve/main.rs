//! `gpuscope serve` beside the programs it is made for: Prometheus from Debian, a browser, a collector of
//! OpenTelemetry. What they got is held against the simulated CUDA's own counts. Its web server by itself, its sampler of
//! NVML, and what lies in `deploy/`.

#![cfg(feature = "serve")]
#![allow(clippy::expect_used, reason = "whatever fails here fails the test")]

mod budget;
mod deploy;
mod driver;
mod exporter;
mod expression;
mod fleet;
mod fresh;
mod frozen;
mod hanging;
mod hardware;
mod idle;
#[cfg(feature = "record")]
mod kept;
mod kubelet;
mod links;
mod numbers;
#[cfg(feature = "otlp")]
mod otlp;
mod owners;
mod page;
mod prometheus;
mod queries;
mod reserved;
mod restart;
mod rights;
mod sites;
mod slurm;
mod soak;
#[path = "../support/mod.rs"]
mod support;
mod telemetry;
#[cfg(feature = "top")]
mod top;
mod unmapped;
mod web;
mod workload;
