//! Units and their text, clocks, outputs, frames, and the layout of what crosses from the kernel: what knows nobody.

pub mod clock;
pub mod frame;
pub mod output;
pub mod refusal;
pub mod secret;
pub mod text;
pub mod user;
pub mod wire;
