//! Follows the steps of a trace in one reading: looks for what they are cut at while it cuts at what was found so far.
//!
//! The first rows are kept, so that what is found by them has them all. What is found later has only what comes then, and says
//! so: who can read the rows once more begins again with [`Follower::at`].

use super::anchor::Anchor;
use super::dry::{Devices, Dry};
use super::finder::{Finder, Found};
use super::lost::LostTimes;
use super::piece::{Piece, Pieces};
use crate::findings::interner::Interner;
use crate::record::{Kind, Record, Taker};

/// Rows that are kept.
const KEPT: usize = 1 << 18;
/// It is looked for anchors after so many rows, and after twice as many each time.
const FIRST_LOOK: u64 = 1 << 12;
/// Cuts that are followed on although they are no longer thought best: it may come back to them.
const STALE: usize = 4;

/// Why none are told of, where rows cannot be read again.
const TOO_LATE: &str = "for most of the time something else came back: they were found too late to be followed";

/// What is done with the rows of a trace, once it is known what its steps are cut at.
pub trait Follow {
    /// Before all rows.
    fn of(anchor: &Anchor) -> Self;
    /// The next row.
    fn take(&mut self, piece: &Piece);
    /// Devices had nothing to do, as they told it.
    fn dried(&mut self, _: Dry) {}
    /// When they had not is not known from the first row on.
    fn misses_dry(&mut self) {}
}

/// Follows the steps of a trace. Of bounded memory.
#[derive(Debug)]
pub struct Follower<T> {
    pieces: Pieces,
    devices: Devices,
    /// `None`: what is cut at is known.
    finder: Option<Finder>,
    /// All so far; `None`: they were more than `most`.
    first: Option<Vec<Piece>>,
    most: usize,
    rows: u64,
    look_at: u64,
    latest: i64,
    lost: LostTimes,
    cuts: Vec<Cut<T>>,
}

/// Steps that are cut somewhere.
#[derive(Debug)]
pub struct Cut<T> {
    pub anchor: Anchor,
    /// `None`: since the first row; else ns since the start of the trace.
    pub since: Option<i64>,
    pub to: T,
}

/// What there is after the last row.
#[derive(Debug)]
pub struct Followed<T> {
    /// Those of the process that launches most first.
    pub cuts: Vec<Cut<T>>,
    /// Why there are none.
    pub why_none: Option<String>,
    /// Where steps are cut as all rows tell, unless `cuts` has them all from the first row on.
    pub again: Option<Vec<Anchor>>,
    pub(super) names: Interner,
    pub(super) lost: LostTimes,
}

impl<T> Default for Follower<T> {
    fn default() -> Follower<T> {
        Follower {
            pieces: Pieces::default(),
            devices: Devices::default(),
            finder: Some(Finder::default()),
            first: Some(Vec::new()),
            most: KEPT,
            rows: 0,
            look_at: FIRST_LOOK,
            latest: i64::MIN,
            lost: LostTimes::default(),
            cuts: Vec::new(),
        }
    }
}

impl<T: Follow> Follower<T> {
    /// Of steps that are cut at these.
    #[must_use]
    pub fn at(anchors: Vec<Anchor>) -> Follower<T> {
        let cut = |anchor: Anchor| Cut {
            to: T::of(&anchor),
            since: None,
            anchor,
        };
        Follower {
            finder: None,
            first: None,
            cuts: anchors.into_iter().map(cut).collect(),
            ..Follower::default()
        }
    }

    #[cfg(test)]
    pub(super) fn keeping(most: usize) -> Follower<T> {
        Follower {
            most,
            ..Follower::default()
        }
    }

    fn found(&self) -> Option<Found> {
        self.finder
            .as_ref()
            .map(|finder| finder.found(&self.pieces.names, &self.pieces.ranges))
    }

    /// Begins to cut where it was not known to until now.
    fn look(&mut self) {
        let Some(found) = self.found() else { return };
        for anchor in &found.anchors {
            if !self.cuts.iter().any(|cut| cut.anchor.cuts_as(anchor)) {
                let cut = self.begin(anchor);
                self.cuts.push(cut);
            }
        }
        self.forget(&found);
    }

    fn begin(&self, anchor: &Anchor) -> Cut<T> {
        let mut to = T::of(anchor);
        self.first.iter().flatten().for_each(|piece| to.take(piece));
        match self.devices.kept() {
            Some(kept) => kept.iter().for_each(|dry| to.dried(*dry)),
            None => to.misses_dry(),
        }
        Cut {
            anchor: anchor.clone(),
            since: self.first.is_none().then_some(self.latest),
            to,
        }
    }

    /// Those that are not thought best any more, but for the last few; as long as all rows are there nothing is lost with them.
    fn forget(&mut self, found: &Found) {
        let most = if self.first.is_some() { 0 } else { STALE };
        let is_stale = |cut: &Cut<T>| !found.anchors.iter().any(|anchor| anchor.cuts_as(&cut.anchor));
        let mut excess = self
            .cuts
            .iter()
            .filter(|cut| is_stale(cut))
            .count()
            .saturating_sub(most);
        self.cuts.retain(|cut| {
            let goes = excess > 0 && is_stale(cut);
            excess -= usize::from(goes);
            !goes
        });
    }

    fn keep(&mut self, piece: Piece) {
        if self.first.as_ref().is_some_and(|first| first.len() == self.most) {
            self.look();
            self.first = None;
            self.devices.forget();
        }
        if let Some(first) = &mut self.first {
            first.push(piece);
        }
    }

    /// What has followed the steps that are cut at `anchor`, though its work may have been thought to be a little other; best from
    /// the first row on.
    fn best(&mut self, anchor: &Anchor) -> Option<Cut<T>> {
        let rank = |cut: &Cut<T>| (!cut.anchor.cuts_as(anchor), cut.since.is_some());
        let cuts = self.cuts.iter().enumerate();
        let ours = cuts.filter(|(_, cut)| cut.anchor.is_at_the_place_of(anchor));
        let best = ours.min_by_key(|(_, cut)| rank(cut)).map(|(index, _)| index)?;
        Some(self.cuts.swap_remove(best))
    }

    /// After the last row.
    #[must_use]
    pub fn finish(mut self) -> Followed<T> {
        if self.first.is_some() {
            self.look();
        }
        let found = self.found().unwrap_or_else(|| Found {
            anchors: self.cuts.iter().map(|cut| cut.anchor.clone()).collect(),
            why_none: None,
        });
        let (mut cuts, mut whole) = (Vec::new(), true);
        for anchor in &found.anchors {
            let Some(mut cut) = self.best(anchor) else {
                whole = false;
                continue;
            };
            match cut.anchor.cuts_as(anchor) {
                true => cut.anchor = anchor.clone(),
                false => whole = false,
            }
            whole &= cut.since.is_none();
            cuts.push(cut);
        }
        let late = (!whole && cuts.is_empty()).then(|| TOO_LATE.to_owned());
        Followed {
            cuts,
            why_none: found.why_none.or(late),
            again: (!whole).then_some(found.anchors),
            names: self.pieces.names,
            lost: self.lost,
        }
    }
}

impl<T: Follow> Taker for Follower<T> {
    fn take(&mut self, event: &Record<'_>) {
        if event.kind == Kind::Lost {
            self.lost.take(event);
        }
        if let Some(dry) = self.devices.take(event) {
            self.cuts.iter_mut().for_each(|cut| cut.to.dried(dry));
            self.devices.keep(dry);
        }
        let Some(piece) = self.pieces.of(event) else { return };
        if let Some(finder) = &mut self.finder {
            finder.take(&piece);
            self.keep(piece);
        }
        self.latest = self.latest.max(piece.at);
        self.cuts.iter_mut().for_each(|cut| cut.to.take(&piece));
        self.rows += 1;
        if self.rows == self.look_at {
            self.look_at = self.look_at.saturating_mul(2);
            self.look();
        }
    }
}
