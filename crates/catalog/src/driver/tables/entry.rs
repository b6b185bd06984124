//! What one line of a table says.

use super::ClassKind;
use crate::driver::branch::{Branch, Dialect};
use crate::driver::layout::{Field, FieldKind, Layout, Role, Size};

/// A call of the front end or of UVM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub nr: u32,
    /// Without `NV_ESC_`: `RM_ALLOC`, `UVM_FREE`.
    pub name: &'static str,
    pub role: Role,
    /// Those of one branch differ in size.
    pub(crate) layouts: Vec<Layout>,
}

/// Why the fields of a known call cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unfit {
    /// The branch has no such call; the layouts are of these branches.
    Branch(Branch, Branch),
    /// The request's size is none of these, which the branch knows.
    Size(Vec<Size>),
}

impl Entry {
    /// The layout of an argument of `size` bytes. In a branch without tables of its own, the size may also be that of
    /// another branch.
    ///
    /// # Errors
    /// When no layout fits.
    pub fn layout(&self, dialect: Dialect, size: Option<u32>) -> Result<&Layout, Unfit> {
        let mut of_branch = self.layouts.iter().filter(|layout| layout.is_of(dialect.branch));
        if let Some(layout) = of_branch.find(|layout| layout.size.fits(size)) {
            return Ok(layout);
        }
        let elsewhere = self.layouts.iter().rfind(|layout| layout.size.fits(size));
        elsewhere
            .filter(|_| !dialect.certain)
            .ok_or_else(|| self.unfit(dialect.branch))
    }

    /// What the number means that tells calls of this entry apart: that of a class or of a method.
    #[must_use]
    pub fn subject(&self) -> Option<FieldKind> {
        let kinds = self
            .layouts
            .iter()
            .flat_map(|layout| &layout.fields)
            .map(|field| field.kind);
        kinds.into_iter().find(|kind| kind.is_subject())
    }

    fn unfit(&self, branch: Branch) -> Unfit {
        let sizes: Vec<Size> = self
            .layouts
            .iter()
            .filter(|layout| layout.is_of(branch))
            .map(|l| l.size)
            .collect();
        let first = self.layouts.iter().map(|layout| layout.first).min();
        let last = self.layouts.iter().map(|layout| layout.last).max();
        match (first, last) {
            (Some(first), Some(last)) if sizes.is_empty() => Unfit::Branch(first, last),
            _ => Unfit::Size(sizes),
        }
    }
}

/// A class of the resource manager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    pub number: u32,
    pub name: &'static str,
    pub kind: ClassKind,
    /// The one field behind `pAllocParms` that is worth a read.
    pub behind: Option<Field>,
}

/// A number with its name: a method of the resource manager's objects, or an NV_STATUS. In other branches the number
/// may have another's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    pub number: u32,
    pub name: &'static str,
    pub first: Branch,
    pub last: Branch,
}

/// What NVIDIA's catalogue and headers say of an Xid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XidMeaning {
    pub code: u32,
    pub name: &'static str,
    pub meaning: &'static str,
    /// Who is usually at fault: `app`, `hw`, `link`, `fw`, …; empty when not known.
    pub origin: &'static str,
    /// NVIDIA's bucket of what to do at once: `RESTART_APP`, `RESET_GPU`, …; empty when it gives none.
    pub action: &'static str,
    /// NVIDIA's bucket of what to do then.
    pub then: &'static str,
    /// What the number was called in other versions, with these versions.
    pub others: &'static str,
}
