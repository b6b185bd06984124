//! How CMD is started, of every command that starts one.

use clap::Args;

/// As whom CMD runs, and until when it is traced.
#[derive(Clone, Debug, Default, Args)]
pub struct Start {
    /// Run CMD as this user, by name or number, with that user's groups and HOME [default: under sudo its caller, with
    /// the caller's PATH and other variables, too]
    #[arg(long, value_name = "NAME", requires = "command", help_heading = "How CMD runs")]
    pub user: Option<String>,
    /// Under sudo, run CMD as root and with root's environment
    #[arg(long, conflicts_with = "user", requires = "command", help_heading = "How CMD runs")]
    pub as_root: bool,
    /// When CMD has ended, go on until the processes that it left behind have ended, too
    #[arg(long, requires = "command", help_heading = "How CMD runs")]
    pub follow: bool,
}
