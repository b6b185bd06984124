//! The iterations ("steps") of a program, found in what it gives its devices to do.
//!
//! [`Finder`] looks for something that comes back with as much of the same work between each two: the [`Anchor`].
//! [`Cutter`] cuts the same rows into numbered [`Step`]s at it, and [`Account`] says how long they took and what was
//! different in the slowest. Pure, linear in rows, of bounded memory. How they look is not its business.

mod account;
mod anchor;
mod candidate;
mod chosen;
mod cutter;
mod detail;
mod finder;
mod marking;
mod period;
mod sample;
mod sketch;
mod watch;
mod work;

#[cfg(test)]
mod made;
#[cfg(test)]
mod property_tests;
#[cfg(test)]
mod tests;

pub use account::{Account, Slow, Steps, WarmUp};
pub use anchor::{Anchor, Origin};
pub use chosen::{Chosen, Part};
pub use cutter::{Cutter, Step};
pub use detail::{Detail, Difference, Where};
pub use finder::{Finder, Found};
pub use marking::Marking;
