//! What all connections share, and what is given where a client came in.

use super::protection::Protection;
use super::seats::Seats;
use super::tally::Tally;
use super::texts::Texts;
use crate::serve::Exchange;
use std::sync::Arc;
use tokio::sync::watch;

/// What all connections share.
pub(crate) struct Site {
    pub exchange: Arc<Exchange>,
    pub telemetry_path: String,
    pub texts: Texts,
    pub tally: Arc<Tally>,
    pub protection: Arc<Protection>,
    pub(super) seats: Arc<Seats>,
    /// A crowd that wants metrics does not keep out who asks for health.
    pub(super) health_seats: Arc<Seats>,
    pub(super) stopping: watch::Receiver<bool>,
}

/// What is given where a client came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Door {
    /// All pages, as the web config says.
    All,
    /// Health, to everybody.
    Health,
}

impl Site {
    pub(crate) fn seats(&self, door: Door) -> &Arc<Seats> {
        match door {
            Door::All => &self.seats,
            Door::Health => &self.health_seats,
        }
    }

    /// When the server stops.
    pub(crate) async fn stops(&self) {
        // without a server nothing serves either
        let _ = self.stopping.clone().wait_for(|stops| *stops).await;
    }
}
