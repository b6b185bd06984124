//! The type information of the running kernel and of its modules, read when it is first needed.

use super::btf::Btf;
use super::place::{Nameless, Names};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek};
use std::path::PathBuf;

const DIRECTORY: &str = "/sys/kernel/btf";
const KERNEL: &str = "vmlinux";

/// The kernel's own types. Modules' are read for each look.
pub struct Types {
    kernel: Result<Btf<'static>, String>,
    modules: Modules,
}

/// Where modules' types are found.
enum Modules {
    /// Opened for each look: a module may come and go.
    AsTheyAre,
    Open(HashMap<String, File>),
}

impl Types {
    /// Reads the kernel's own.
    #[must_use]
    pub fn read() -> Types {
        Types {
            kernel: std::fs::read(path_of(KERNEL))
                .map_err(|error| unreadable(KERNEL, &error))
                .and_then(|bytes| parsed(KERNEL, bytes, None)),
            modules: Modules::AsTheyAre,
        }
    }

    /// Opens those of all modules that are loaded now: later nothing more is opened.
    #[must_use]
    pub(super) fn with_modules(self) -> Types {
        let entries = std::fs::read_dir(DIRECTORY).into_iter().flatten().flatten();
        let open = |entry: std::fs::DirEntry| {
            let name = entry.file_name().into_string().ok().filter(|name| name != KERNEL)?;
            Some((name, File::open(entry.path()).ok()?))
        };
        Types {
            modules: Modules::Open(entries.filter_map(open).collect()),
            ..self
        }
    }

    /// Of a kernel that says nothing.
    #[cfg(test)]
    pub(super) fn none() -> Types {
        Types {
            kernel: Err("no type information".to_owned()),
            modules: Modules::AsTheyAre,
        }
    }

    /// The number of a function in the type information of the kernel, or of its module.
    ///
    /// # Errors
    /// There is none, or the function is not in it.
    pub(crate) fn id_of(&self, module: Option<&str>, function: &str) -> Result<u32, String> {
        let kernel = self.kernel.as_ref().map_err(|why| no_hint(why))?;
        let of_module = module.map(|module| self.of_module(module, kernel)).transpose();
        let of_module = of_module.map_err(|why| no_hint(&why))?;
        let types = of_module.as_ref().unwrap_or(kernel);
        types
            .function_id(function)
            .ok_or_else(|| "the kernel has no type information of this function".to_owned())
    }

    fn of_module<'b>(&self, module: &str, kernel: &'b Btf<'b>) -> Result<Btf<'b>, String> {
        let bytes = self.modules.bytes_of(module);
        parsed(module, bytes.map_err(|error| unreadable(module, &error))?, Some(kernel))
    }

    /// Hands `with` what the kernel says of the arguments of a function.
    pub(crate) fn names_of<T>(&self, module: Option<&str>, function: &str, with: impl FnOnce(&dyn Names) -> T) -> T {
        let kernel = match &self.kernel {
            Ok(kernel) => kernel,
            Err(why) => return with(&Nameless(why.clone())),
        };
        let of_module = module.map(|module| self.of_module(module, kernel));
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

fn parsed<'b>(name: &str, bytes: Vec<u8>, base: Option<&'b Btf<'b>>) -> Result<Btf<'b>, String> {
    Btf::parse(bytes, base).map_err(|error| format!("{}: {error}", path_of(name).display()))
}

fn unreadable(name: &str, error: &io::Error) -> String {
    format!(
        "no type information ({}: {error}); hint: give arguments in the order of the prototype, as \"name: KIND\"",
        path_of(name).display()
    )
}

fn path_of(name: &str) -> PathBuf {
    PathBuf::from(DIRECTORY).join(name)
}

impl Modules {
    fn bytes_of(&self, name: &str) -> io::Result<Vec<u8>> {
        let Modules::Open(files) = self else {
            return std::fs::read(path_of(name));
        };
        let mut file = files.get(name).ok_or(ErrorKind::NotFound)?;
        let mut bytes = Vec::new();
        file.rewind()?;
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}
