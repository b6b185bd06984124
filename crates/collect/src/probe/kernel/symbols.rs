//! The kernel's symbols, as `/proc/kallsyms` lists them. Pure.

/// A function of the kernel.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Symbol {
    /// As the kernel calls it, with what the compiler has added to it (`.isra.0`).
    pub name: String,
    /// 0 where this process may not see addresses.
    pub address: u64,
    /// The module that it is of; `None`: the kernel itself.
    pub module: Option<String>,
}

impl Symbol {
    /// Its name in the source.
    #[must_use]
    pub fn source_name(&self) -> &str {
        source_name(&self.name)
    }

    /// Whether the compiler has made another function of it, whose arguments may be others.
    #[must_use]
    pub(crate) fn is_changed(&self) -> bool {
        self.source_name() != self.name
    }
}

/// The name in the source of a symbol: compilers add `.isra.0`, `.constprop.0`, `.part.0`, `.cold`, `.llvm.123`.
#[must_use]
pub(crate) fn source_name(name: &str) -> &str {
    match name.find('.') {
        None | Some(0) => name,
        Some(end) => &name[..end],
    }
}

/// The functions of `kallsyms` whose name in the source is `wanted`. Lines that say something else are passed over, as
/// are cold parts of functions, which are not entered by a call.
pub fn functions(kallsyms: &str, wanted: &dyn Fn(&str) -> bool) -> Vec<Symbol> {
    let mut found: Vec<Symbol> = kallsyms.lines().filter_map(|line| function(line, wanted)).collect();
    found.sort();
    found.dedup();
    found
}

fn function(line: &str, wanted: &dyn Fn(&str) -> bool) -> Option<Symbol> {
    let mut words = line.split_ascii_whitespace();
    let (address, kind, name) = (words.next()?, words.next()?, words.next()?);
    let is_code = matches!(kind, "t" | "T" | "w" | "W");
    if !is_code || name.contains(".cold") || !wanted(source_name(name)) {
        return None;
    }
    let module = words.next().and_then(|word| word.strip_prefix('[')?.strip_suffix(']'));
    Some(Symbol {
        name: name.to_owned(),
        address: u64::from_str_radix(address, 16).ok()?,
        module: module.filter(|module| *module != "bpf").map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: &str = "\
ffffffff81000000 T vfs_read
ffffffff81000100 t helper.isra.0
ffffffff81000200 t helper.cold
ffffffff82000000 D jiffies
ffffffffc0001000 t nvidia_isr\t[nvidia]
0 t broken
nonsense
";

    #[test]
    fn functions_are_found_by_their_name_in_the_source() {
        let found = functions(LISTED, &|name| name == "helper");
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].name.as_str(), found[0].is_changed()), ("helper.isra.0", true));
    }

    #[test]
    fn a_module_s_function_says_which_module() {
        let found = functions(LISTED, &|name| name.starts_with("nvidia"));
        assert_eq!(found[0].module.as_deref(), Some("nvidia"));
        assert_eq!(found[0].address, 0xffff_ffff_c000_1000);
    }

    #[test]
    fn data_is_no_function() {
        assert!(functions(LISTED, &|name| name == "jiffies").is_empty());
    }
}
