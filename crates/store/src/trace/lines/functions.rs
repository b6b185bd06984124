//! What the built-in catalogue knows of functions, for lines of earlier versions, which do not say it.

use crate::catalog::{Catalog, Class};
use crate::trace::line::Line;
use anyhow::Result;
use std::collections::HashMap;
use std::sync::OnceLock;

static FUNCTIONS: OnceLock<Functions> = OnceLock::new();

/// What the built-in catalogue knows of functions: lines of earlier versions do not say it.
pub(super) struct Functions {
    by_name: HashMap<String, (Class, bool, Vec<i32>)>,
}

impl Functions {
    /// Of the catalogue that is built in; made once.
    ///
    /// # Errors
    /// It is wrong.
    pub(super) fn builtin() -> Result<&'static Functions> {
        match FUNCTIONS.get() {
            Some(known) => Ok(known),
            None => {
                let known = Functions::known(&Catalog::builtin()?);
                Ok(FUNCTIONS.get_or_init(|| known))
            }
        }
    }

    fn known(catalog: &Catalog) -> Functions {
        let judged = |row: &crate::catalog::Row| catalog.is_failure(row, 0xffff_fffe);
        let rows = catalog.rows.iter();
        Functions {
            by_name: rows
                .map(|row| (row.symbol.clone(), (row.class, judged(row), row.ok.clone())))
                .collect(),
        }
    }

    /// The class of the call that a line tells of.
    pub(super) fn class(&self, line: &Line<'_>, name: &str) -> Class {
        let said = line.text("class").and_then(|name| Class::from_name(&name));
        let known = || self.by_name.get(name).map(|(class, ..)| *class);
        let grouped = || line.text("category").and_then(|name| Class::from_name(&name));
        said.or_else(known).or_else(grouped).unwrap_or(Class::Other)
    }

    /// Whether a call that has returned this has failed.
    pub(super) fn is_failure(&self, name: &str, result: Option<i64>) -> bool {
        let code = result
            .and_then(|result| i32::try_from(result).ok())
            .filter(|code| *code != 0);
        let (Some(code), Some((_, true, fine))) = (code, self.by_name.get(name)) else {
            return false;
        };
        !fine.contains(&code)
    }
}
