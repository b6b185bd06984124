"""What is in the program beside its own sources: crates by Cargo.lock, the C libraries that some of them carry, and what the
compilers add. One list for the notices and for the bill of materials."""
import json
import os
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# crate that carries it, name, version, licence as it is used, who made it, its licence's file within the crate
CARRIED = [
    ("libbpf-sys", "libbpf", "1.7.0", "BSD-2-Clause", "https://github.com/libbpf/libbpf", "libbpf/LICENSE.BSD-2-Clause"),
    ("libbpf-sys", "elfutils-libelf", "0.191", "LGPL-3.0-or-later", "https://sourceware.org/elfutils/",
     "elfutils/COPYING-LGPLV3"),
    ("libbpf-sys", "zlib", "1.2.13", "Zlib", "https://zlib.net/", "zlib/README"),
    ("zstd-sys", "zstd", None, "BSD-3-Clause", "https://github.com/facebook/zstd", "zstd/LICENSE"),
]
# What toolchains link in: name, licence, who made it.
ADDED = [
    ("rust-std", "MIT OR Apache-2.0", "https://github.com/rust-lang/rust"),
    ("llvm-libunwind", "Apache-2.0 WITH LLVM-exception", "https://llvm.org/"),
    ("llvm-compiler-rt", "Apache-2.0 WITH LLVM-exception", "https://llvm.org/"),
]


def metadata(processor):
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform",
               f"{processor}-unknown-linux-gnu"]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)


def linked(processor="x86_64"):
    """(packages by id, edges between their ids, the root's id): what normal dependencies lead to, with the default features."""
    facts = metadata(processor)
    packages = {package["id"]: package for package in facts["packages"]}
    nodes = {node["id"]: node for node in facts["resolve"]["nodes"]}
    root = facts["resolve"]["root"]
    edges, waiting, seen = [], [root], {root}
    while waiting:
        one = waiting.pop()
        for other in nodes[one]["deps"]:
            normal = any(kind["kind"] is None for kind in other["dep_kinds"])
            if not normal or is_macro(packages[other["pkg"]]):
                continue
            edges.append((one, other["pkg"]))
            if other["pkg"] not in seen:
                seen.add(other["pkg"])
                waiting.append(other["pkg"])
    return {one: packages[one] for one in seen}, sorted(edges), root


def is_macro(package):
    """Runs in the compiler; nothing of it is in the program."""
    return any("proc-macro" in target["kind"] for target in package["targets"])


def checksums():
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    return {(one["name"], one["version"]): one["checksum"] for one in lock["package"] if "checksum" in one}


def folder(package):
    return Path(package["manifest_path"]).parent


def rustc():
    return os.environ.get("GPUSCOPE_RUSTC") or subprocess.run(
        ["rustc", "--version"], check=True, capture_output=True, text=True).stdout.split()[1]
