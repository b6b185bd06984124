.PHONY: help build demo test check fuzz test-vm bench clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 20

build: ## gpuscope itself: target/release/gpuscope
	scripts/setup.sh build
	cargo build --release --locked

demo: ## builds all, then traces a simulated CUDA program (root, or sudo)
	scripts/demo.sh

test: ## every test; those that hook programs need root and BPF
	scripts/test.sh

check: ## formatting, lints, documentation, licences
	scripts/check.sh

fuzz: ## every parser against random input, a minute each (cargo-fuzz)
	scripts/fuzz.sh

test-vm: ## exact counts on old and new kernels, in QEMU
	scripts/test-vm.sh

bench: ## what a hook costs here
	scripts/setup.sh bench
	scripts/bench.sh

clean: ## removes everything built
	cargo clean
	rm -rf sim/target sim/out fuzz/target
