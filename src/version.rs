//! Which gpuscope this is. What the sources' folder knows of it (the commit) comes from `scripts/version.sh`, by variables of the
//! build; without them it says that it does not know.

use std::sync::LazyLock;

/// What was built, of what, by what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Build {
    pub version: &'static str,
    /// Of git, in full.
    pub commit: Option<&'static str>,
    /// The sources were not those of the commit.
    pub dirty: Option<bool>,
    pub rustc: Option<&'static str>,
    pub features: Vec<&'static str>,
    pub target: String,
}

/// How many digits name a commit in one line.
const SHORT_COMMIT: usize = 7;

static THIS: LazyLock<Build> = LazyLock::new(Build::this);
static SHORT: LazyLock<String> = LazyLock::new(|| THIS.short());

/// Of this program.
#[must_use]
pub fn this() -> &'static Build {
    &THIS
}

/// In a few words, without the program's name.
#[must_use]
pub(crate) fn short() -> &'static str {
    &SHORT
}

impl Build {
    fn this() -> Self {
        Build {
            version: env!("CARGO_PKG_VERSION"),
            commit: known(option_env!("GPUSCOPE_COMMIT")),
            dirty: option_env!("GPUSCOPE_DIRTY").and_then(|word| word.parse().ok()),
            rustc: known(option_env!("GPUSCOPE_RUSTC")),
            features: features(),
            target: target(),
        }
    }

    /// `0.1.0 (abcdef0, dirty)`.
    #[must_use]
    pub(crate) fn short(&self) -> String {
        let commit = self.commit.map_or("unknown commit", |commit| shortened(commit));
        let dirty = if self.dirty == Some(true) { ", dirty" } else { "" };
        format!("{} ({commit}{dirty})", self.version)
    }

    /// One fact a line.
    #[must_use]
    pub fn long(&self) -> String {
        let dirty = match self.dirty {
            Some(true) => "yes",
            Some(false) => "no",
            None => "unknown",
        };
        let features = match self.features.is_empty() {
            true => "none".to_owned(),
            false => self.features.join(", "),
        };
        format!(
            "gpuscope {}\ncommit: {}\ndirty: {dirty}\nrustc: {}\nfeatures: {features}\ntarget: {}\n",
            self.short(),
            self.commit.unwrap_or("unknown"),
            self.rustc.unwrap_or("unknown"),
            self.target,
        )
    }
}

fn known(word: Option<&'static str>) -> Option<&'static str> {
    word.filter(|word| !word.is_empty())
}

fn shortened(commit: &str) -> &str {
    commit.get(..SHORT_COMMIT).unwrap_or(commit)
}

fn features() -> Vec<&'static str> {
    let features = [
        ("otlp", cfg!(feature = "otlp")),
        ("parquet", cfg!(feature = "parquet")),
        ("record", cfg!(feature = "record")),
        ("serve", cfg!(feature = "serve")),
        ("top", cfg!(feature = "top")),
    ];
    features.iter().filter(|(_, on)| *on).map(|(name, _)| *name).collect()
}

fn target() -> String {
    let library = if cfg!(target_env = "musl") { "musl" } else { "gnu" };
    format!("{}-{}-{library}", std::env::consts::ARCH, std::env::consts::OS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build() -> Build {
        Build {
            version: "1.2.3",
            commit: Some("abcdef0123456789abcdef0123456789abcdef01"),
            dirty: Some(false),
            rustc: Some("1.95.0"),
            features: vec!["record", "serve"],
            target: "x86_64-linux-gnu".to_owned(),
        }
    }

    #[test]
    fn a_line_names_the_commit_and_what_was_changed_since() {
        assert_eq!(build().short(), "1.2.3 (abcdef0)");
        let dirty = Build {
            dirty: Some(true),
            ..build()
        };
        assert_eq!(dirty.short(), "1.2.3 (abcdef0, dirty)");
    }

    #[test]
    fn sources_without_git_say_that_the_commit_is_unknown() {
        let archive = Build {
            commit: None,
            dirty: None,
            rustc: None,
            features: Vec::new(),
            ..build()
        };
        assert_eq!(archive.short(), "1.2.3 (unknown commit)");
        insta::assert_snapshot!(archive.long(), @r"
        gpuscope 1.2.3 (unknown commit)
        commit: unknown
        dirty: unknown
        rustc: unknown
        features: none
        target: x86_64-linux-gnu
        ");
    }

    #[test]
    fn all_that_is_known_has_a_line_each() {
        insta::assert_snapshot!(build().long(), @r"
        gpuscope 1.2.3 (abcdef0)
        commit: abcdef0123456789abcdef0123456789abcdef01
        dirty: no
        rustc: 1.95.0
        features: record, serve
        target: x86_64-linux-gnu
        ");
    }

    #[test]
    fn a_variable_that_is_empty_is_one_that_is_missing() {
        assert_eq!(
            (known(Some("")), known(None), known(Some("a"))),
            (None, None, Some("a"))
        );
    }

    #[test]
    fn this_one_is_of_the_manifests_version_and_target() {
        assert!(short().starts_with(concat!(env!("CARGO_PKG_VERSION"), " (")));
        assert!(this().target.contains("linux"), "{}", this().target);
        assert_eq!(this().features.contains(&"serve"), cfg!(feature = "serve"));
    }
}
