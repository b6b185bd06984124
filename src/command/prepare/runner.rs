//! As whom a command runs: under sudo as the user who called it.

use crate::cli::Start;
use crate::probe::environment;
use crate::probe::launch::Runner;
use crate::refusal::Usage;
use crate::user::{self, User};
use anyhow::{Result, bail};

/// Who runs the command; `None`: whoever runs gpuscope, with that environment.
///
/// # Errors
/// There is no such user, or we may not become one.
pub(crate) fn runner(how: &Start) -> Result<Option<Runner>> {
    let is_root = user::effective() == 0;
    match (&how.user, how.as_root) {
        (_, true) if !is_root => bail!(Usage("--as-root: gpuscope is not root\nhint: sudo gpuscope".to_owned())),
        (_, true) => Ok(None),
        (Some(name), _) => named(name, is_root),
        (None, _) => Ok(user::behind_sudo().map(User::of_caller).map(caller)),
    }
}

fn named(name: &str, is_root: bool) -> Result<Option<Runner>> {
    let user = User::named(name)?;
    if user.uid == user::effective() {
        return Ok(None);
    }
    if !is_root {
        bail!(Usage(format!(
            "--user {name}: only root may run a command as somebody else\nhint: sudo gpuscope"
        )));
    }
    Ok(Some(match user::behind_sudo() {
        Some(behind) if behind.uid == user.uid => caller(user),
        _ => Runner {
            environment: environment::of_other(&user),
            user,
        },
    }))
}

fn caller(user: User) -> Runner {
    Runner {
        environment: environment::of_caller(&user),
        user,
    }
}
