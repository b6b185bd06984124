#!/bin/bash
# stage.sh - what packages are made of, laid out as the archive shows it
# usage: SOURCE_DATE_EPOCH=S stage.sh PROGRAM FOLDER [SPEAKER]
#   SPEAKER: the same program for this machine, which writes manual page and completions; default: PROGRAM
set -euo pipefail
cd "$(dirname "$0")/../.."
program=${1:?usage: stage.sh PROGRAM FOLDER [SPEAKER]} stage=${2:?usage: stage.sh PROGRAM FOLDER [SPEAKER]}
speaker=$(realpath "${3:-$program}")
: "${SOURCE_DATE_EPOCH:?}"
rm -rf "$stage"
mkdir -p "$stage"/{man,completions,systemd,prometheus,grafana,hooks}

install -m 755 "$program" "$stage/gpuscope"
"$speaker" man >"$stage/man/gpuscope.1"
"$speaker" completions bash >"$stage/completions/gpuscope.bash"
"$speaker" completions zsh >"$stage/completions/_gpuscope"
"$speaker" completions fish >"$stage/completions/gpuscope.fish"
install -m 644 deploy/systemd/gpuscope.service deploy/systemd/serve.toml "$stage/systemd"
install -m 644 deploy/prometheus/gpuscope.rules.yml "$stage/prometheus"
install -m 644 deploy/grafana/*.json "$stage/grafana"
install -m 644 hooks/*.toml "$stage/hooks"
install -m 644 README.md CHANGELOG.md LICENSE LICENSE-APACHE LICENSE-MIT "$stage"
scripts/release/notices.py >"$stage/THIRD-PARTY.txt"
chmod -R u+rwX,go+rX,go-w "$stage"
find "$stage" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
