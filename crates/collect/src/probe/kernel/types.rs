//! The type information of the running kernel and of its modules, read when it is first needed.

use super::btf::Btf;
use super::place::{Nameless, Names};
use std::path::PathBuf;

const DIRECTORY: &str = "/sys/kernel/btf";

/// The kernel's own types. Modules' are read for each look.
pub struct Types {
    kernel: Result<Btf<'static>, String>,
}

impl Types {
    /// Reads the kernel's own.
    #[must_use]
    pub fn read() -> Types {
        Types {
            kernel: read("vmlinux", None),
        }
    }

    /// Of a kernel that says nothing.
    #[cfg(test)]
    pub(super) fn none() -> Types {
        Types {
            kernel: Err("no type information".to_owned()),
        }
    }

    /// The number of a function in the type information of the kernel, or of its module.
    ///
    /// # Errors
    /// There is none, or the function is not in it.
    pub(crate) fn id_of(&self, module: Option<&str>, function: &str) -> Result<u32, String> {
        let kernel = self.kernel.as_ref().map_err(|why| no_hint(why))?;
        let of_module = module.map(|module| read(module, Some(kernel))).transpose();
        let of_module = of_module.map_err(|why| no_hint(&why))?;
        let types = of_module.as_ref().unwrap_or(kernel);
        types
            .function_id(function)
            .ok_or_else(|| "the kernel has no type information of this function".to_owned())
    }

    /// Hands `with` what the kernel says of the arguments of a function.
    pub fn names_of<T>(&self, module: Option<&str>, function: &str, with: impl FnOnce(&dyn Names) -> T) -> T {
        let kernel = match &self.kernel {
            Ok(kernel) => kernel,
            Err(why) => return with(&Nameless(why.clone())),
        };
        let of_module = module.map(|module| read(module, Some(kernel)));
        let types = match &of_module {
            None => kernel,
            Some(Ok(types)) => types,
            Some(Err(why)) => return with(&Nameless(why.clone())),
        };
        match types.function(function) {
            Some(prototype) => with(&prototype),
            None => with(&Nameless(
                "the kernel has no type information of this function; hint: give its arguments in the order of its prototype, as \"name: KIND\""
                    .to_owned(),
            )),
        }
    }
}

/// Without what concerns arguments.
fn no_hint(why: &str) -> String {
    why.split("; hint").next().unwrap_or(why).to_owned()
}

fn read<'b>(name: &str, base: Option<&'b Btf<'b>>) -> Result<Btf<'b>, String> {
    let path = PathBuf::from(DIRECTORY).join(name);
    let bytes = std::fs::read(&path).map_err(|error| {
        format!(
            "no type information ({}: {error}); hint: give arguments in the order of the prototype, as \"name: KIND\"",
            path.display()
        )
    })?;
    Btf::parse(bytes, base).map_err(|error| format!("{}: {error}", path.display()))
}
