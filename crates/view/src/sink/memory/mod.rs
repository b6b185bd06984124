//! Who holds memory: a report for people, one for programs, a live table, and a few lines for a summary.
//!
//! Owns words and layout. What is held is `model::memory`'s business, where it is written to the command's.

mod apart;
mod brief;
mod families;
mod json;
mod live;
mod map;
mod pace;
mod process;
mod sites;
mod text;
mod view;
mod words;

pub(crate) use apart::Apart;
pub(crate) use brief::brief;
pub(crate) use json::processes;
pub use json::{last_line, line};
pub use live::table;
pub use pace::{Pace, Rates};
pub use text::page;
pub use view::View;
