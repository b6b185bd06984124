#!/usr/bin/env python3
"""imports.py - which module imports which: they may know those of their own floor, which is a crate, and of lower ones, and none
that knows them. The compiler holds crates apart; this looks for circles within them too, between top-level modules and between
those of any one parent (siblings.py). Exit status 1: one does otherwise.
usage: imports.py [--list]     prints every import between modules instead"""
import re
import sys
from pathlib import Path

import siblings

ROOT = Path(__file__).resolve().parent.parent

# Lowest first. A new module gets its place here.
FLOORS = {
    "core": "clock frame output refusal secret text user wire",
    "catalog": "capture catalog decode driver filter",
    "collect": "activity confine device discover elf engine foreign inside owner probe processor reserved stack",
    "state": "findings model record rule steps",
    "store": "trace",
    "view": "export part paths report section sink timeline",
    "app": "cli command rows serve space top tracer version",
}

LEVEL = {module: level for level, modules in enumerate(FLOORS.values()) for module in modules.split()}


def sources():
    """The folders of source of all crates."""
    return [ROOT / "src", *sorted(ROOT.glob("crates/*/src"))]


def module_of(path, source):
    """The top-level module that a file is part of; None: it is a root of a crate, or a test."""
    parts = path.relative_to(source).with_suffix("").parts
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
    for source in sources():
        for path in sorted(source.rglob("*.rs")):
            module = module_of(path, source)
            for other in imported(path.read_text()) if module else ():
                if other != module and other in LEVEL:
                    found.setdefault((module, other), []).append(str(path.relative_to(ROOT)))
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


def circles_of_siblings():
    """What is said of each circle between the modules of one parent."""
    for source in sources():
        crate = source.parent.name if source.parent != ROOT else "gpuscope"
        edges = siblings.Crate(source).edges()
        for circle in siblings.circles(edges):
            parent = "::".join(circle[0][0]) or "crate"
            names = {name for _, name in circle}
            yield f"a circle in {crate}, {parent}: {', '.join(sorted(names))} know one another"
            for (above, one, other), files in sorted(edges.items()):
                if above == circle[0][0] and {one, other} <= names:
                    yield f"    {one} -> {other}: {'::'.join(next(iter(files)))} names {next(iter(files.values()))}"


def main():
    found = edges()
    if sys.argv[1:] == ["--list"]:
        for (importer, other), files in sorted(found.items()):
            print(f"{importer} -> {other}: {len(files)} {' '.join(files[:3])}{' …' if len(files) > 3 else ''}")
        return 0
    homes = {module_of(path, source) for source in sources() for path in source.rglob("*.rs")} - {None}
    wrong = [f"{module} has no floor in FLOORS" for module in sorted(homes - set(LEVEL))]
    known = {pair: files for pair, files in found.items() if set(pair) <= set(LEVEL)}
    upward = {pair for pair in known if LEVEL[pair[0]] < LEVEL[pair[1]]}
    for importer, other in sorted(upward):
        wrong.append(f"{importer} must not import {other}, which lies above it: {known[importer, other][0]}")
    if circle := circles(known):
        wrong.append(f"a circle: {', '.join(circle)} know one another; --list says where")
    wrong += circles_of_siblings()
    for line in wrong:
        print(f"imports.py: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
