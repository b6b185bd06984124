#!/bin/bash
# sums.sh - SHA256SUMS of a folder, and a signature of it by a key that the user has.
# usage: [RELEASE_KEY=KEY] sums.sh FOLDER
# KEY: a file of ssh-keygen (SHA256SUMS.sig) or of minisign (SHA256SUMS.minisig), or else the name of a key of gpg
# (SHA256SUMS.asc). Without it nothing is signed, and that is said.
set -euo pipefail
cd "${1:?usage: sums.sh FOLDER}"
rm -f SHA256SUMS SHA256SUMS.*
find . -maxdepth 1 -type f ! -name 'SHA256SUMS*' -printf '%P\n' | LC_ALL=C sort | xargs sha256sum >SHA256SUMS

key=${RELEASE_KEY:-}
if [ -z "$key" ]; then
  echo "sums.sh: NOT SIGNED: no RELEASE_KEY" >&2
elif [ -f "$key" ] && grep -q 'BEGIN OPENSSH PRIVATE KEY' "$key"; then
  ssh-keygen -q -Y sign -f "$key" -n file SHA256SUMS
elif [ -f "$key" ] && head -1 "$key" | grep -q '^untrusted comment: minisign'; then
  minisign -S -q -s "$key" -m SHA256SUMS
else
  gpg --batch --yes --local-user "$key" --armor --detach-sign --output SHA256SUMS.asc SHA256SUMS
fi
