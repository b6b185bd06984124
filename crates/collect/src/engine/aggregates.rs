//! What users' rows have summed up, read out of an engine's tables.

use super::{Engine, Table};
use crate::wire;
use anyhow::Result;
use std::collections::HashMap;

type Sums = Vec<(wire::AggregateKey, wire::Aggregate)>;

impl dyn Engine {
    pub(super) fn aggregates(&self) -> Result<Sums> {
        self.entries(Table::Aggregates)
    }

    /// Takes the sums of processes that have ended out of its table.
    pub(super) fn take_aggregates(&self, ended: &dyn Fn(u32) -> bool) -> Result<Sums> {
        self.take(Table::Aggregates, |key: &wire::AggregateKey| ended(key.tgid))
    }

    /// The texts that calls were grouped by, by number.
    ///
    /// # Errors
    /// The table cannot be read.
    pub fn aggregate_texts(&self) -> Result<HashMap<u64, String>> {
        let texts: Vec<(wire::AggregateText, u64)> = self.entries(Table::AggregateTexts)?;
        let named = texts
            .into_iter()
            .map(|(text, number)| (number, wire::text_of(&text.text)));
        Ok(named.collect())
    }
}
