#!/usr/bin/env python3
"""visibility.py - what is `pub` is what another crate may use: all else is `pub(crate)` at most, so that the compiler can say what has
no caller. Exit status 1: something is wider than that.
usage: visibility.py [--fix]     narrows it instead (then: cargo fmt --all, cargo check)
       visibility.py --count     how many items are `pub`, fields aside, and how many may be less

It goes by names alone, and errs towards `pub`. An item stays `pub` when a crate above its own names it, or a test, an example of the
documentation, a benchmark, a fuzz target or `src/main.rs`, and when it is reached from there: by modules that are `pub` and named, by
a `pub use`, or as a member of a type that stays. So do the types in the signature of such an item. Which crates are above which,
imports.py knows."""
import re
import sys
from collections import defaultdict
from pathlib import Path

from imports import FLOORS
from rust_items import Source

ROOT = Path(__file__).resolve().parent.parent
ABOVE_ALL = ["tests", "benches", "examples", "fuzz/src"]
MAIN = ROOT / "src/main.rs"
TYPES = {"struct", "enum", "union", "trait", "type"}


def read(folder):
    return [Source(path) for path in sorted((ROOT / folder).rglob("*.rs")) if path != MAIN]


def union(sets):
    return set().union(*sets)


class Named:
    """What some sources name."""

    PARTS = ("mentioned", "methods", "fields", "pairs", "updated")

    def __init__(self):
        for part in self.PARTS:
            setattr(self, part, set())

    def add(self, sources):
        for part in self.PARTS:
            getattr(self, part).update(*(getattr(source, part)() for source in sources))


class Crate:
    """The items of a crate, and which of them stay `pub`."""

    def __init__(self, folder, sources, above):
        self.above = above
        self.types = union(source.types() for source in sources)
        self.expanded = union(source.exported() for source in sources)
        self.kept = set()  # items, by id
        self.signed = set()  # types that stay, by name
        self.used = set()  # (module, name) of what a `pub use` shows elsewhere
        self.open = {()}  # modules that are reached
        self.faces = defaultdict(set)  # module: those that show all that it has
        self.aliases = defaultdict(set)  # type: others that are made of it
        self.items = []
        for source in sources:
            self.enter(source, module_of(source.path.relative_to(folder)))
        while any([self.keep(item) for item in self.items]):
            pass

    def enter(self, source, module):
        for item in source.items(module):
            if source.is_generated():
                self.follow(item)
            else:
                self.items.append(item)
            for name in item.signature if item.kind == "type" else ():
                self.aliases[name].add(item.name)

    def keep(self, item):
        """Whether an item stays that did not yet."""
        if id(item) in self.kept or not self.stays(item):
            return False
        self.kept.add(id(item))
        self.follow(item)
        return True

    def follow(self, item):
        """Takes down what follows from an item that stays."""
        self.signed |= item.signature & self.types
        if item.kind in TYPES:
            self.signed.add(item.name)
        elif item.kind == "mod":
            self.open.add((*item.module, item.name))
        elif item.kind == "use":
            path, name = item.leaf
            self.used.add((resolved(path, item.module), name))
            if name == "*":
                self.faces[resolved(path, item.module)].add(item.module)

    def stays(self, item):
        if item.kind == "impl":
            return self.is_open(item.owner)
        if item.kind == "field":
            # one of a narrower structure is no wider than that
            return not self.is_open(item.owner) or self.is_used(item)
        if item.owner:
            return self.is_open(item.owner) and self.is_used(item)
        if item.name == "*":
            return item.module in self.open
        return self.is_reached(item) or (item.kind in TYPES and item.name in self.signed)

    def is_open(self, owner):
        """Whether a type stays, or a macro may make it."""
        return owner in self.signed or owner not in self.types

    def is_used(self, item):
        """Whether anything above names a member, as far as one sees without its type."""
        if item.owner not in self.types:
            return True
        if item.kind == "field":
            return item.name in self.above.fields or item.owner in self.above.updated
        if item.is_method:
            return item.name in self.above.methods
        return any((owner, item.name) in self.above.pairs for owner in (item.owner, *self.aliases[item.owner]))

    def is_reached(self, item):
        """Whether a path from above leads to it."""
        return any(
            (module, item.name) in self.used or (module in self.open and self.is_named(module, item.name))
            for module in (item.module, *self.faces[item.module])
        )

    def is_named(self, module, name):
        if not module or (module[-1], "*") in self.above.pairs:
            return name in self.above.mentioned
        return (module[-1], name) in self.above.pairs or name in self.expanded

    def wide(self):
        return [item for item in self.items if item.kind != "impl" and id(item) not in self.kept]


def module_of(path):
    parts = path.with_suffix("").parts
    return parts[:-1] if parts[-1] in ("mod", "lib") else parts


def resolved(path, module):
    """The module that the path of a `use` in `module` leads to; one that is not there, if it leads to another crate."""
    steps = path.split("::")[:-1]
    if steps and steps[0] == "crate":
        return tuple(steps[1:])
    while steps and steps[0] in ("self", "super"):
        module = module[:-1] if steps[0] == "super" else module
        steps = steps[1:]
    return (*module, *steps)


def crates():
    """(name, crate) of all of them, from above."""
    above = Named()
    above.add([Source(MAIN), *(source for folder in ABOVE_ALL for source in read(folder))])
    for name in reversed(FLOORS):
        folder = "src" if name == "app" else f"crates/{name}/src"
        sources = read(folder)
        above.add([source.examples() for source in sources])
        yield name, Crate(ROOT / folder, sources, above)
        above.add(sources)
        lent = union(source.elsewhere() for source in sources) - {source.path for source in sources}
        above.add([Source(path) for path in sorted(lent)])


def narrowed(crate, path):
    """The text of a file, with less of it `pub`."""
    text, places = path.read_text(), defaultdict(list)
    for item in crate.items:
        if item.path == path and item.kind != "impl":
            places[item.at].append(item)
    for at, items in sorted(places.items(), reverse=True):
        rest = [item for item in items if id(item) in crate.kept]
        if not rest:
            text = f"{text[:at]}pub(crate){text[at + len('pub') :]}"
        elif len(rest) < len(items):
            here = [item for item in items if item not in rest]
            text = f"{text[:at]}{halves(text[:at], rest, here)}{text[items[0].end :]}"
    return text


def halves(before, rest, here):
    """A `use` of which a part is narrowed: in two, both with its attributes."""
    attributes = re.search(r"(?:^[ \t]*#\[[^\n]*\]\n)*[ \t]*\Z", before, re.M)[0]
    return f"pub use {tree(rest)};\n{attributes}pub(crate) use {tree(here)};"


def tree(items):
    """What a `use` of these has behind its keyword."""
    words = [path if item.name == name else f"{path} as {item.name}" for item in items for path, name in [item.leaf]]
    parts = [word.split("::") for word in words]
    common = 0
    while all(len(part) > common + 1 and part[common] == parts[0][common] for part in parts):
        common += 1
    ends = ["::".join(part[common:]) for part in parts]
    return "::".join(parts[0][:common] + [f"{{{', '.join(ends)}}}" if len(ends) > 1 else ends[0]]).removesuffix("::self")


def fix(crate):
    for path in sorted({item.path for item in crate.wide()}):
        path.write_text(narrowed(crate, path))


def told(crate):
    for item in crate.wide():
        line = item.path.read_text().count("\n", 0, item.at) + 1
        print(f"{item.path.relative_to(ROOT)}:{line}: {item.kind} {item.name} is pub, and nothing outside its crate uses it")


def counted(name, crate):
    items = [item for item in crate.items if item.kind not in ("impl", "field")]
    wide = [item for item in crate.wide() if item.kind != "field"]
    print(f"{name}: {len(items)}, of which {len(wide)} may be less")


def main():
    is_wrong = False
    for name, crate in list(crates()):
        if sys.argv[1:] == ["--count"]:
            counted(name, crate)
        elif sys.argv[1:] == ["--fix"]:
            fix(crate)
        else:
            told(crate)
            is_wrong |= bool(crate.wide())
    if is_wrong:
        print("visibility.py: hint: scripts/visibility.py --fix", file=sys.stderr)
    return is_wrong


if __name__ == "__main__":
    sys.exit(main())
