#!/usr/bin/env python3
"""imports.py - which module of src/ imports which: they may know those of their own floor and of lower ones, and none that
knows them. Exit status 1: one does otherwise that is not in STILL, or one in STILL does no longer.
usage: imports.py [--list]     prints every import between modules instead"""
import re
import sys
from pathlib import Path

SRC = Path(__file__).resolve().parent.parent / "src"

# Lowest first. A new module gets its place here.
FLOORS = {
    "core": "clock frame output refusal secret text user wire",
    "catalog": "capture catalog driver",
    "collect": "confine device discover elf foreign owner probe stack",
    "state": "decode filter findings model rule",
    "store": "trace",
    "view": "export report sink timeline",
    "app": "cli command rows serve tracer",
}

# Upward imports that are still there: importer, imported.
STILL = {
    ("findings", "trace"),
    ("probe", "filter"),
    ("probe", "model"),
    ("trace", "sink"),
}

LEVEL = {module: level for level, modules in enumerate(FLOORS.values()) for module in modules.split()}


def module_of(path):
    """The top-level module that a file is part of; None: it is a root of a crate, or a test."""
    parts = path.relative_to(SRC).with_suffix("").parts
    is_test = "tests" in parts or parts[-1].endswith("_tests")
    return None if parts[0] in ("lib", "main", "bpf") or is_test else parts[0]


def imported(text):
    """The modules that the code of a file names, its tests aside."""
    code = re.sub(r"//[^\n]*", "", text.split("#[cfg(test)]\nmod tests {")[0])
    names = re.findall(r"\bcrate::(\w+)", code)
    for group in re.findall(r"\bcrate::\{([^;]*)\};", code):
        while (flat := re.sub(r"\{[^{}]*\}", "", group)) != group:
            group = flat
        names += re.findall(r"(?:^|,)\s*(\w+)", group)
    return set(names)


def edges():
    """Each import between modules, with the files that have it."""
    found = {}
    for path in sorted(SRC.rglob("*.rs")):
        module = module_of(path)
        for other in imported(path.read_text()) if module else ():
            if other != module and (other in LEVEL or (SRC / f"{other}.rs").exists() or (SRC / other).is_dir()):
                found.setdefault((module, other), []).append(str(path.relative_to(SRC.parent)))
    return found


def circles(pairs):
    """Modules that know themselves by way of others."""
    knows = {}
    for importer, other in pairs:
        knows.setdefault(importer, set()).add(other)

    def reach(module):
        seen, todo = set(), [module]
        while todo:
            new = knows.get(todo.pop(), set()) - seen
            seen |= new
            todo += new
        return seen

    return sorted(module for module in knows if module in reach(module))


def main():
    found = edges()
    if sys.argv[1:] == ["--list"]:
        for (importer, other), files in sorted(found.items()):
            print(f"{importer} -> {other}: {len(files)} {' '.join(files[:3])}{' …' if len(files) > 3 else ''}")
        return 0
    wrong = [f"{module} has no floor in FLOORS" for module in sorted({m for pair in found for m in pair} - set(LEVEL))]
    known = {pair: files for pair, files in found.items() if set(pair) <= set(LEVEL)}
    upward = {pair for pair in known if LEVEL[pair[0]] < LEVEL[pair[1]]}
    for importer, other in sorted(upward - STILL):
        wrong.append(f"{importer} must not import {other}, which lies above it: {known[importer, other][0]}")
    for importer, other in sorted(STILL - upward):
        wrong.append(f"{importer} no longer imports {other}: take that out of STILL")
    if circle := circles(known):
        wrong.append(f"a circle: {', '.join(circle)} know one another; --list says where")
    for line in wrong:
        print(f"imports.py: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
