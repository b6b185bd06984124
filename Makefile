.PHONY: help build catalog wire demo quick test check fuzz test-vm aarch64 platforms torture torture-long bench release clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 20

build: ## gpuscope itself: target/release/gpuscope
	scripts/setup.sh build
	scripts/build.sh

demo: ## builds all, then traces a simulated CUDA program; no root needed
	scripts/demo.sh

quick: ## before a commit: formatting, imports, visibility, lints, every test that needs no root
	scripts/setup.sh check
	cargo fmt --all --check
	scripts/imports.py
	scripts/visibility.py
	scripts/wire.py --check
	cargo clippy --locked --workspace --all-targets --quiet -- -D warnings
	sim/build.sh >/dev/null
	cargo test --locked --workspace --quiet

test: ## every test; those that hook programs need root and BPF
	scripts/test.sh

check: ## formatting, lints, documentation, licences
	scripts/check.sh

catalog: ## catalog/ out of tables/: one row for each function
	scripts/catalog.sh

wire: ## the Rust side of what crosses from the kernel, out of its headers
	scripts/wire.py

fuzz: ## every reader against random input, a minute each
	scripts/fuzz.sh

test-vm: ## exact counts on old and new kernels, in QEMU
	scripts/test-vm.sh

aarch64: ## cross-compiled, and exact counts on kernels of aarch64, in QEMU
	scripts/aarch64.sh test

platforms: build ## docs/platforms.md: which command works on which kernel, with which rights
	scripts/setup.sh vm
	sim/build.sh
	scripts/vm/platforms.sh

torture: ## hostile programs, kills, shortages, forged files: an hour
	scripts/torture.sh full

torture-long: ## the same for a day
	scripts/torture.sh long

bench: ## what a hook costs here
	scripts/setup.sh bench
	scripts/bench.sh

release: ## everything that is handed out, in dist/: make release VERSION=0.1.0
	scripts/release.sh "$(VERSION)"

clean: ## removes everything built
	cargo clean
	rm -rf dist sim/target sim/out fuzz/target fuzz/out
