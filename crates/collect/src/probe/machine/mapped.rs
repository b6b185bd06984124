//! A file with CUDA functions that a process maps.

use serde::Serialize;

/// In what form a process carries CUDA functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A library of its own.
    Shared,
    /// Linked into a program or another library that still names its functions.
    Static,
    /// Linked into a file without a symbol table.
    Stripped,
}

impl Kind {
    /// The word used in output.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Shared => "shared",
            Kind::Static => "static",
            Kind::Stripped => "stripped",
        }
    }
}

/// A mapped file with CUDA functions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MappedLibrary {
    /// As the process sees it; not escaped.
    pub path: String,
    /// In what form the functions are there.
    pub kind: Kind,
    /// The label of its calls.
    pub layer: String,
    /// Functions that can be probed.
    pub hookable: usize,
    /// Functions found in the file; aliases count once.
    pub of: usize,
    /// The process has a file system view of its own.
    pub mount_namespace_differs: bool,
    /// The mapped file no longer has this name.
    pub deleted: bool,
    /// What else is to be known.
    pub note: Option<String>,
}

impl MappedLibrary {
    pub(super) fn add_note(&mut self, note: String) {
        self.note = Some(
            self.note
                .take()
                .map_or(note.clone(), |first| format!("{first}; {note}")),
        );
    }

    pub(super) fn add_notes(&mut self, notes: Vec<String>) {
        notes.into_iter().for_each(|note| self.add_note(note));
    }
}
