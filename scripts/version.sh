# version.sh - sourced in the root of the sources: which these are, for the build: GPUSCOPE_COMMIT (empty without git),
# GPUSCOPE_DIRTY (true or false; nothing where that is not known), GPUSCOPE_RUSTC. What is set already is taken. src/version.rs has them.
# shellcheck shell=sh
if [ -z "${GPUSCOPE_COMMIT+set}" ]; then
  GPUSCOPE_COMMIT=
  # sources that were unpacked within somebody else's repository are not its commit
  if git ls-files --error-unmatch Cargo.lock >/dev/null 2>&1; then
    GPUSCOPE_COMMIT=$(git rev-parse HEAD)
    GPUSCOPE_DIRTY=false
    [ -z "$(git status --porcelain --untracked-files=no)" ] || GPUSCOPE_DIRTY=true
  fi
fi
GPUSCOPE_RUSTC=${GPUSCOPE_RUSTC:-$("${RUSTC:-rustc}" --version | cut -d' ' -f2)}
export GPUSCOPE_COMMIT GPUSCOPE_DIRTY GPUSCOPE_RUSTC
