//! What a program is started with so that it loads an agent, beside what it loads already.

use super::{ACTIVITY, AGENT};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// What has NVTX call a library: it holds one.
pub(in crate::inside) const INJECTION: &str = "NVTX_INJECTION64_PATH";
const SANITIZER: &str = "ASAN_OPTIONS";
const ANY_ORDER: &str = "verify_asan_link_order=0";

/// What has a program load `agent` last, and that be told `word`. Another agent of ours among what is loaded already gives way:
/// both would follow that word.
pub(in crate::inside) fn variables(
    agent: &Path,
    preloaded: Option<OsString>,
    word: OsString,
) -> Vec<(OsString, OsString)> {
    let list = preloaded.unwrap_or_default();
    let is_other = |path: &&[u8]| !path.is_empty() && !is_agent(Path::new(OsStr::from_bytes(path)));
    let others = list
        .as_bytes()
        .split(|byte| matches!(byte, b':' | b' '))
        .filter(is_other);
    let all: Vec<&[u8]> = others.chain([agent.as_os_str().as_bytes()]).collect();
    let preload = OsString::from_vec(all.join(&b':'));
    vec![
        ("LD_PRELOAD".into(), preload),
        (AGENT.variable.into(), word),
        (INJECTION.into(), agent.into()),
        sanitizer(),
    ]
}

/// Leaves NVTX to another tool that has it already, as `given` in the program's environment: its path.
pub(in crate::inside) fn leave_injection(
    all: &mut Vec<(OsString, OsString)>,
    given: Option<OsString>,
) -> Option<PathBuf> {
    let other = given.map(PathBuf::from);
    let other = other.filter(|path| !path.as_os_str().is_empty() && !is_agent(path))?;
    all.retain(|(name, _)| name != INJECTION);
    Some(other)
}

/// Whether CUDA is to load somebody else's library, by what the environment has for that.
pub(crate) fn is_taken(given: Option<OsString>) -> bool {
    let path = given.map(PathBuf::from).unwrap_or_default();
    !path.as_os_str().is_empty() && path.file_name() != Some(OsStr::new(ACTIVITY.file))
}

/// Has programs with a sanitizer of their own start though theirs is not the first library; what the user sets comes later.
fn sanitizer() -> (OsString, OsString) {
    let own = std::env::var_os(SANITIZER).unwrap_or_default();
    let is_set = memchr::memmem::find(own.as_bytes(), ANY_ORDER.as_bytes()).is_some();
    let both = match (is_set, own.is_empty()) {
        (true, _) => own,
        (false, true) => ANY_ORDER.into(),
        (false, false) => OsString::from_vec([ANY_ORDER.as_bytes(), own.as_bytes()].join(&b':')),
    };
    (SANITIZER.into(), both)
}

/// Whether it is an agent of some gpuscope, as a file or in the memory of one.
fn is_agent(path: &Path) -> bool {
    let names = |path: &Path| {
        path.as_os_str()
            .as_bytes()
            .windows(AGENT.file.len())
            .any(|part| part == AGENT.file.as_bytes())
    };
    names(path) || fs::read_link(path).is_ok_and(|target| names(&target))
}
