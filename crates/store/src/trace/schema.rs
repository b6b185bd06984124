//! What a recording says of itself before its first row: its format, its trace, its columns, and which part of the trace it has.

use super::columns;
use crate::clock::Clock;
use crate::record::Meta;
use arrow_schema::Schema;
use std::collections::HashMap;

/// Of the format: 2 has rows of type `snapshot`, 3 those of type `gpu`, 4 those of
/// types `range` and `mark`, 5 those of type `open`. A reader refuses newer ones, and reads all older ones.
pub(crate) const VERSION: u32 = 5;

const VERSION_KEY: &str = "gpuscope.format";
const PIECE_KEY: &str = "gpuscope.piece";
const COVERS_KEY: &str = "gpuscope.covers_from_ns";
const START_KEY: &str = "gpuscope.start_monotonic_ns";

/// From when on a file has all that happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Covers {
    /// From the start of the trace.
    All,
    /// ns since the start of the trace.
    From(i64),
    /// It begins in the middle of the trace, and does not say when.
    Unsaid,
}

/// From when on a file of `schema` has all that happened.
pub(super) fn covers(schema: &Schema) -> Covers {
    let from = schema.metadata().get(COVERS_KEY);
    match (piece(schema), from.and_then(|from| from.parse().ok())) {
        (Piece::Whole, _) => Covers::All,
        (_, Some(from)) => Covers::From(from),
        (_, None) => Covers::Unsaid,
    }
}

/// What a file holds of its trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece {
    Whole,
    /// One of several files that follow each other, from 1.
    Part,
    /// The last moments before something happened.
    Dump,
}

impl Piece {
    fn name(self) -> &'static str {
        match self {
            Piece::Whole => "whole",
            Piece::Part => "part",
            Piece::Dump => "dump",
        }
    }

    /// Why a file that has its end has no totals.
    pub(super) fn why_no_summary(self) -> &'static str {
        match self {
            Piece::Whole => "it has no totals: the recording ended before they were known",
            Piece::Part => "it is a part of a recording: totals are those of all parts together",
            Piece::Dump => "it holds the last moments before it was written, and no totals",
        }
    }
}

/// What a file of `schema` holds.
pub(super) fn piece(schema: &Schema) -> Piece {
    let name = schema.metadata().get(PIECE_KEY);
    let piece = [Piece::Part, Piece::Dump]
        .into_iter()
        .find(|piece| name.is_some_and(|name| name == piece.name()));
    piece.unwrap_or(Piece::Whole)
}

/// The same columns and trace, in a file that holds `piece` of it: all that happened from `from` on, CLOCK_MONOTONIC ns;
/// `None`: from its start.
pub(super) fn of_piece(schema: &Schema, piece: Piece, from: Option<u64>) -> Schema {
    let mut metadata = schema.metadata().clone();
    let start: u64 = metadata.get(START_KEY).and_then(|ns| ns.parse().ok()).unwrap_or(0);
    let since = from.map_or(0, |from| from.saturating_sub(start));
    metadata.insert(PIECE_KEY.to_owned(), piece.name().to_owned());
    if piece != Piece::Whole {
        metadata.insert(COVERS_KEY.to_owned(), since.to_string());
    }
    Schema::new_with_metadata(schema.fields().clone(), metadata)
}

/// Of a trace that `meta` describes.
#[must_use]
pub fn schema(meta: &Meta) -> Schema {
    let metadata = HashMap::from([
        (VERSION_KEY.to_owned(), VERSION.to_string()),
        ("gpuscope.tool".to_owned(), meta.tool.clone()),
        (START_KEY.to_owned(), meta.clock.start_monotonic_ns.to_string()),
        (
            "gpuscope.start_unix_ns".to_owned(),
            meta.clock.start_unix_ns.to_string(),
        ),
        (
            "gpuscope.command".to_owned(),
            serde_json::json!(meta.command).to_string(),
        ),
        ("gpuscope.attach".to_owned(), meta.tier.clone()),
        ("gpuscope.host".to_owned(), meta.host.clone()),
    ]);
    Schema::new_with_metadata(columns::fields(), metadata)
}

/// What `schema` says of its trace.
///
/// # Errors
/// It is none of a recording, or of a newer version; says which.
pub(crate) fn meta(schema: &Schema) -> Result<Meta, String> {
    let text = |key: &str| {
        schema
            .metadata()
            .get(&format!("gpuscope.{key}"))
            .cloned()
            .unwrap_or_default()
    };
    let number = |key: &str| text(key).parse().unwrap_or(0);
    let Some(version) = schema.metadata().get(VERSION_KEY) else {
        return Err("it is an Arrow stream, but no recording of gpuscope".to_owned());
    };
    if version.parse::<u32>().map_or(true, |version| version > VERSION) {
        let tool = text("tool");
        return Err(format!(
            "it has format {version:?}, of gpuscope {tool:?}, and this gpuscope reads up to {VERSION}\nhint: read it with that version or a newer one"
        ));
    }
    Ok(Meta {
        clock: Clock {
            start_monotonic_ns: number("start_monotonic_ns"),
            start_unix_ns: number("start_unix_ns"),
        },
        command: serde_json::from_str(&text("command")).unwrap_or_default(),
        tier: text("attach"),
        host: text("host"),
        tool: text("tool"),
    })
}
