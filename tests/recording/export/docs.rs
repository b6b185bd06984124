//! The examples of `docs/export.md`, as they stand there.

const PAGE: &str = include_str!("../../../docs/export.md");

/// The block of code below the line that begins with `engine`.
pub fn example_for(engine: &str) -> String {
    let (_, below) = PAGE.split_once(&format!("\n{engine}")).expect("a line about it");
    let (_, block) = below.split_once("\n```").expect("a block");
    let (_, code) = block.split_once('\n').expect("code");
    code.split_once("\n```").expect("its end").0.to_owned()
}
