#!/bin/sh
# Builds the simulated CUDA into sim/out and checks that it can be probed like the real one.
set -eu
cd "$(dirname "$0")"
out=$PWD/out
mkdir -p "$out"

# As in .cargo/config.toml, which RUSTFLAGS from outside would replace.
export RUSTFLAGS="-Cforce-frame-pointers=yes -Cforce-unwind-tables=yes"
unset CARGO_ENCODED_RUSTFLAGS CARGO_BUILD_TARGET CARGO_TARGET_DIR 2>/dev/null || true
# what is inlined decides what tests read of call sites
unset CARGO_PROFILE_RELEASE_LTO
release=target/release

# A running program keeps the old file: replace, never overwrite.
install_file() {
    cp "$1" "$2.new"
    mv -f "$2.new" "$2"
}

cargo build --release --locked --quiet -p gpusim-driver -p gpusim-runtime -p gpusim-nvml -p gpusim-cupti
install_file $release/libcuda.so "$out/libcuda.so.1"
install_file $release/libcudart.so "$out/libcudart.so.13"
install_file $release/libnvidia_ml.so "$out/libnvidia-ml.so.1"
# apart: programs have it where a test says so
mkdir -p "$out-cupti"
install_file $release/libcupti.so "$out-cupti/libcupti.so.13"
ln -sf libcuda.so.1 "$out/libcuda.so"
ln -sf libcudart.so.13 "$out/libcudart.so"
ln -sf libnvidia-ml.so.1 "$out/libnvidia-ml.so"

GPUSIM_LINK_DIR=$out cargo build --release --locked --quiet -p gpusim
for program in gpusim gpusim-static gpusim-late; do
    install_file $release/$program "$out/$program"
done
"${CC:-cc}" -O1 -Wall -Wextra -fno-omit-frame-pointer -o "$out/gpusim-driver.new" gpusim/c/driver.c -ldl -Wl,-rpath,"\$ORIGIN",--enable-new-dtags
mv -f "$out/gpusim-driver.new" "$out/gpusim-driver"
strip -o "$out/gpusim-static-stripped.new" "$out/gpusim-static"
mv -f "$out/gpusim-static-stripped.new" "$out/gpusim-static-stripped"

fail() {
    echo "sim/build.sh: $*" >&2
    exit 1
}

# check_push FILE: every CUDA function in it begins with `push %rbp`.
check_push() {
    bad=$(objdump -d --no-show-raw-insn "$1" | awk '
        /^[0-9a-f]+ <(__)?cu[a-zA-Z0-9_]*>:$/ { name = $2; if (name !~ /^<(cu[A-Z]|cuda[A-Z]|__cuda[A-Z])/) name = ""; next }
        name != "" { seen++; if ($2 != "push" || $3 !~ /rbp/) print name, $2, $3; name = "" }
        END { if (seen < 400) print "only", seen + 0, "functions" }')
    [ -z "$bad" ] || fail "$1: not every function begins with push %rbp: $bad"
}

# check_dynamic FILE PATTERN
check_dynamic() {
    readelf -d "$1" | grep -q "$2" || fail "$1: no $2"
}

check_push "$out/libcuda.so.1"
check_push "$out/libcudart.so.13"
check_push "$out/gpusim-static"
check_dynamic "$out/libcuda.so.1" 'SONAME.*\[libcuda.so.1\]'
check_dynamic "$out/libcudart.so.13" 'SONAME.*\[libcudart.so.13\]'
check_dynamic "$out/libnvidia-ml.so.1" 'SONAME.*\[libnvidia-ml.so.1\]'
check_dynamic "$out-cupti/libcupti.so.13" 'SONAME.*\[libcupti.so.13\]'
check_dynamic "$out/gpusim" 'NEEDED.*\[libcudart.so.13\]'
for program in gpusim gpusim-static gpusim-late; do
    check_dynamic "$out/$program" 'RUNPATH.*ORIGIN'
done
for program in gpusim-static gpusim-late gpusim-driver; do
    ! readelf -d "$out/$program" | grep -q 'NEEDED.*libcud' || fail "$program needs CUDA"
done
for layer in driver:libcuda.so.1 runtime:libcudart.so.13; do
    exported=$(nm -D --defined-only "$out/${layer#*:}" | awk '{ print $3 }')
    missing=$(printf '%s\n' "$exported" | LC_ALL=C sort >target/exported && cut -d' ' -f1 "${layer%%:*}/symbols.txt" | LC_ALL=C sort | LC_ALL=C comm -13 target/exported -)
    [ -z "$missing" ] || fail "${layer#*:} lacks $missing"
done
echo "sim: built $out"
