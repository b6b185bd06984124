//! Names as their authors wrote them, from the linker's names of C++ and Rust.

use std::fmt::{self, Write};

/// Characters of a demangled name; a short name can stand for an endless one.
const LONGEST: usize = 64 << 10;

/// What a name means in C++ or Rust; any other stays as it is.
pub fn demangle(name: &str) -> String {
    rust(name)
        .or_else(|| cpp(name))
        .filter(|demangled| !demangled.is_empty())
        .unwrap_or_else(|| name.to_owned())
}

fn rust(name: &str) -> Option<String> {
    let demangled = rustc_demangle::try_demangle(name).ok()?;
    let mut text = Bounded::default();
    write!(text, "{demangled:#}").ok()?;
    Some(text.0)
}

fn cpp(name: &str) -> Option<String> {
    let symbol = cpp_demangle::BorrowedSymbol::new(name.as_bytes()).ok()?;
    let mut text = Bounded::default();
    let options = cpp_demangle::DemangleOptions::default();
    symbol.structured_demangle(&mut text, &options).ok()?;
    Some(text.0)
}

/// Text that refuses to grow without end.
#[derive(Default)]
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > LONGEST {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_of_cpp_and_rust_are_told_and_others_stay() {
        let names = [
            (
                "_ZN2at6native3addERKNS_6TensorEi",
                "at::native::add(at::Tensor const&, int)",
            ),
            (
                "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
                "core::fmt::Write::write_fmt",
            ),
            ("_RNvCs1234_7mycrate3foo", "mycrate::foo"),
            ("cuMemAlloc_v2", "cuMemAlloc_v2"),
            ("_Znot_mangled", "_Znot_mangled"),
            ("", ""),
        ];
        for (name, expected) in names {
            assert_eq!(demangle(name), expected);
        }
    }

    #[test]
    fn a_name_that_would_grow_without_end_stays_as_it_is() {
        assert_eq!(demangle(&doubling(2)), "f(A, A<A, A>, A<A<A, A>, A<A, A> >)");
        for name in [doubling(30), format!("_Z1f{}i", "P".repeat(100_000))] {
            assert_eq!(demangle(&name), name);
        }
    }

    /// A function whose parameters are each made of two of the one before.
    fn doubling(times: u32) -> String {
        let digit = |number: u32| char::from_digit(number, 36).unwrap().to_ascii_uppercase();
        let before = |at: u32| {
            at.checked_sub(1)
                .map(|number| digit(number).to_string())
                .unwrap_or_default()
        };
        let pairs: String = (0..times).map(|at| format!("S_IS{0}_S{0}_E", before(at))).collect();
        format!("_Z1f1A{pairs}")
    }

    proptest! {
        #[test]
        fn any_name_is_told_or_stays(name in "(_Z|_R|_ZN)?[0-9A-Za-z_$.]{0,60}") {
            prop_assert!(demangle(&name).len() <= LONGEST);
        }
    }
}
