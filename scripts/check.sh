#!/bin/bash
# check.sh - what a change must pass beside the tests: formatting, lints, documentation, licences.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh check
cargo fmt --all --check
cargo fmt --check --manifest-path fuzz/Cargo.toml
(cd sim && cargo fmt --all --check)
bpf=crates/collect/src/bpf programs=tests/torture/programs
agent=crates/collect/src/agent
clang-format --dry-run -Werror $bpf/*.c $bpf/*.h $agent/*.c $agent/*.h $programs/*.c $programs/*.cpp $programs/*.h fuzz/src/inside/*.c
scripts/imports.py
scripts/siblings_tests.py --quiet
scripts/visibility.py
scripts/visibility_tests.py --quiet
scripts/catalog.sh --check
scripts/wire.py --check
scripts/wire_tests.py --quiet
cargo clippy --locked --workspace --all-targets --quiet -- -D warnings
# what the fuzz targets are built with
cargo check --locked --quiet --no-default-features --features otlp,record,serve
# the kernel programs for the other processor; all of it: scripts/aarch64.sh
libbpf=$(find target/debug/build -path '*/libbpf-sys-*/out/include' -type d -printf '%T@ %p\n' | sort -n | tail -1 | cut -d' ' -f2)
clang -Wall -Wextra -Werror -Wno-unused-parameter -isystem /usr/aarch64-linux-gnu/include -I "$libbpf" -fno-stack-protector \
  -D__TARGET_ARCH_arm64 -O2 -g -target bpf -c $bpf/calls.bpf.c -o /dev/null
sim/build.sh >/dev/null
(cd sim && cargo clippy --locked --all-targets --quiet -- -D warnings)
# who reads it changes the code: links may lead to what only the crate uses
RUSTDOCFLAGS='-D warnings -A rustdoc::private_intra_doc_links' cargo doc --locked --workspace --no-deps --document-private-items --quiet
if cargo deny --version >/dev/null 2>&1; then
  cargo deny --log-level error check
else
  echo "check.sh: licences NOT checked: cargo install --locked cargo-deny" >&2
fi
echo "check: ok"
