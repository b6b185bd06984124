//! The calls of NVIDIA's kernel driver as a library that no file is. What each of them is, [`crate::driver::rows`] knows.

use super::{Catalog, Class, EnumId, EnumTable, Layer, Library, LibraryId, Returns, Row};
use crate::driver::rows::{LIBRARY, answers};
use crate::driver::{Dialect, DriverRows};
use std::collections::HashMap;

impl Catalog {
    /// Adds the calls of NVIDIA's kernel driver.
    ///
    /// # Errors
    /// The catalogue is full, or has a library of that name.
    pub fn add_driver(&mut self, dialect: Dialect) -> Result<(), String> {
        if self.library(LIBRARY).is_some() {
            return Err(format!("library \"{LIBRARY}\" is already defined; choose another name"));
        }
        let full = |_| "too many definitions".to_owned();
        let library = u16::try_from(self.libraries.len()).map(LibraryId).map_err(full)?;
        let errors = u16::try_from(self.enums.len()).map(EnumId).map_err(full)?;
        let answers = EnumTable::new("NV_STATUS".to_owned(), answers(dialect).collect());
        self.enums.push(answers);
        self.libraries.push(Library {
            name: LIBRARY.to_owned(),
            // no file is called so
            pattern: "/".to_owned(),
            errors: Some(errors),
            ended: None,
            layer: Layer::Kernel,
        });
        self.symbols.push(HashMap::new());
        self.driver = Some(DriverRows::new(self.rows.len() as u32, dialect));
        self.rows.extend(DriverRows::names().map(|name| row(library, name)));
        Ok(())
    }
}

fn row(library: LibraryId, name: &str) -> Row {
    Row {
        class: Class::Ioctl,
        returns: Returns::Error,
        raw: false,
        ..Row::unknown(library, name)
    }
}
