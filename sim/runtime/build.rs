//! Expands `symbols.txt` into the library's exports.

#[path = "../exports.rs"]
mod exports;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    exports::generate("libcudart.so.13")
}
