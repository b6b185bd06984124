//! What threads give up once they need it no more: capabilities, new privileges, files, system calls.
//!
//! Capabilities, filters and Landlock's domains belong to a thread, and to those that it starts later. They keep a thread
//! from asking the kernel for what is not its business; they are no wall within the process, as all its threads share one
//! memory. docs/security.md says who keeps what, and why.
//!
//! Owns how rights are given up, not who needs which: that is for who starts a thread to say. What cannot be given up on
//! this kernel stays, and nothing else changes.

mod capability;
mod landlock;
mod seccomp;

pub use capability::Capability;

/// What a thread keeps.
#[derive(Debug, Clone, Copy)]
pub enum Keep {
    /// Descriptors that it holds: nothing is opened, connected or run any more.
    DescriptorsAlone,
    /// What any user may do.
    NoCapability,
    /// These, as far as they are there.
    Capabilities(&'static [Capability]),
    /// All that it has, and gets no more.
    All,
}

/// Gives up the rest, in this thread and in those that it starts from now on.
pub fn this_thread(keep: Keep) {
    match keep {
        Keep::Capabilities(kept) => capability::keep(kept),
        Keep::NoCapability | Keep::DescriptorsAlone => capability::keep(&[]),
        Keep::All => {}
    }
    no_new_privileges();
    if let Keep::DescriptorsAlone = keep {
        landlock::deny_all();
        seccomp::deny_what_is_not_served();
    }
}

/// No program that is run from here gets what this thread has not.
fn no_new_privileges() {
    // SAFETY: sets a flag of this thread
    unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
}

#[cfg(test)]
mod tests;
