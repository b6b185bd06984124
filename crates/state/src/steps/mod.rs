//! The iterations ("steps") of a program, found in what it gives its devices to do.
//!
//! A [`Follower`] takes all rows once. Its `Finder` looks for something that comes back with as much of the same work between
//! each two: the [`Anchor`]; or for ranges by which the program says so itself. A `Cutter`, or `Ranged`, cuts the rows into numbered steps at it, for who follows them: an [`Account`] says
//! how long they took and what was different in the slowest, [`Spans`] keep when each was. Pure, linear in rows, of bounded
//! memory. How they look is not its business.

mod account;
mod anchor;
mod candidate;
mod cutter;
mod detail;
mod dry;
mod finder;
mod follower;
mod lost;
mod period;
mod piece;
mod ranged;
mod said;
mod sample;
mod sketch;
mod spans;
mod watch;
mod work;

#[cfg(test)]
mod made;
#[cfg(test)]
mod property_tests;
#[cfg(test)]
mod tests;

pub use account::Account;
pub use anchor::Anchor;
pub use follower::{Followed, Follower};
pub use spans::{Numbered, Part, Spans};
