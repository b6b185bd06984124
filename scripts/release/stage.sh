#!/bin/bash
# stage.sh - what packages are made of, laid out as the archive shows it
# usage: SOURCE_DATE_EPOCH=S stage.sh PROGRAM FOLDER
set -euo pipefail
cd "$(dirname "$0")/../.."
program=${1:?usage: stage.sh PROGRAM FOLDER} stage=${2:?usage: stage.sh PROGRAM FOLDER}
: "${SOURCE_DATE_EPOCH:?}"
rm -rf "$stage"
mkdir -p "$stage"/{man,completions,systemd,prometheus,grafana,hooks}

install -m 755 "$program" "$stage/gpuscope"
"$stage/gpuscope" man >"$stage/man/gpuscope.1"
"$stage/gpuscope" completions bash >"$stage/completions/gpuscope.bash"
"$stage/gpuscope" completions zsh >"$stage/completions/_gpuscope"
"$stage/gpuscope" completions fish >"$stage/completions/gpuscope.fish"
install -m 644 deploy/systemd/gpuscope.service deploy/systemd/serve.toml "$stage/systemd"
install -m 644 deploy/prometheus/gpuscope.rules.yml "$stage/prometheus"
install -m 644 deploy/grafana/*.json "$stage/grafana"
install -m 644 hooks/*.toml "$stage/hooks"
install -m 644 README.md CHANGELOG.md LICENSE LICENSE-APACHE LICENSE-MIT "$stage"
scripts/release/notices.py >"$stage/THIRD-PARTY.txt"
chmod -R u+rwX,go+rX,go-w "$stage"
find "$stage" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
