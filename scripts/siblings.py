"""siblings.py - which modules of one parent import one another, for imports.py. A module names another by a path that begins with
`crate`, `super` or a name that a `use` gave it; what a module shows of others (`use b::X`) is followed to where it is defined. What
is for tests alone does not count."""
import re
from itertools import count

from rust_items import USE, Source, closing, leaves, names, until

TEST = re.compile(r"#\[cfg\(test\)\]")
TEST_MODULE = re.compile(r"#\[cfg\(test\)\]\s*(?:#\[path[^\]]*\]\s*)?(?:pub(?:\([^)]*\))?\s+)?mod (\w+);")
PATH = re.compile(r"(?<![\w:$])\$?((?:crate|self|super)(?:\s*::\s*\w+)+)")
DEFINED = re.compile(r"\b(?:fn|struct|enum|union|trait|const|static|type|macro_rules!)\s+(?:mut\s+)?(\w+)")


def module_of(path, source):
    """The names that lead from the root of its crate to the module of a file."""
    parts = path.relative_to(source).with_suffix("").parts
    return parts[:-1] if parts[-1] in ("mod", "lib", "main") else parts


def without_tests(code):
    """Code, without the items that are compiled for tests alone."""
    while found := TEST.search(code):
        end = until(code, found.end(), ";{")
        end = closing(code, end) if code[end : end + 1] == "{" else end + 1
        code = code[: found.start()] + code[end:]
    return code


class File:
    def __init__(self, path, module):
        source = Source(path)
        self.module = module
        self.tests = set(TEST_MODULE.findall(source.code))
        self.code = without_tests(source.code)
        self.uses = [leaf for tree in USE.findall(self.code) for leaf in leaves(tree)]
        self.shown = {alias: path for path, name, alias in self.uses if name != "*"}
        self.globs = [path.removesuffix("::*") for path, name, _ in self.uses if name == "*"]
        self.defined = set(DEFINED.findall(self.code))
        self.words = names(self.code)

    def paths(self):
        """Every path that the code names, as it is written there."""
        yield from (path for path, name, _ in self.uses if name != "*")
        yield from (re.sub(r"\s", "", path) for path in PATH.findall(self.code))
        for alias, path in self.shown.items():
            for rest in re.findall(rf"(?<![\w:]){alias}((?:::\w+)+)", self.code):
                yield path.removesuffix("::self") + rest
        for path in self.globs:
            yield from (f"{path}::{word}" for word in self.words if word[0].isupper() or f"{word}(" in self.code)


class Crate:
    def __init__(self, source):
        found = (File(path, module_of(path, source)) for path in sorted(source.rglob("*.rs")) if path.name != "main.rs")
        self.files = {file.module: file for file in found}
        for module in [m for m in self.files if self.is_test(m)]:
            del self.files[module]

    def is_test(self, module):
        above = (self.files.get(module[:depth]) for depth in range(len(module)))
        return any(
            name == "tests" or name.endswith("_tests") or (file and name in file.tests)
            for file, name in zip(above, module)
        )

    def passed(self, module, path):
        """The modules that a path leads through, as `module` writes it, to where what it names is defined."""
        seen, at, todo = set(), module, path.split("::")
        if todo[0] == "crate":
            at, todo = (), todo[1:]
        while todo:
            step, todo = todo[0], todo[1:]
            if step == "super":
                at = at[:-1]
            elif step == "self":
                pass
            elif (*at, step) in self.files:
                at = (*at, step)
            else:
                shown = self.shown(at, step)
                if shown is None or (at, step) in seen:
                    break
                seen.add((at, step))
                yield at
                at, todo = (() if shown[0] == "crate" else at), [*shown[shown[0] == "crate" :], *todo]
        yield at

    def shown(self, module, name):
        """The path by which a module shows a name that it does not define."""
        file = self.files.get(module)
        if file is None or name in file.defined:
            return None
        if name in file.shown:
            path = file.shown[name].removesuffix("::self").split("::")
            return None if path == [name] else path
        for path in file.globs:
            for target in self.passed(module, path):
                shows = self.files.get(target)
            if shows and shows is not file and (name in shows.defined or name in shows.shown):
                return [*path.split("::"), name]
        return None

    def edges(self):
        """(parent, sibling, the sibling that it imports): the files that do it."""
        found = {}
        for module, file in self.files.items():
            for path in file.paths():
                for other in self.passed(module, path):
                    depth = next((i for i in count() if module[: i + 1] != other[: i + 1] or i >= len(module)), 0)
                    if depth < min(len(module), len(other)):
                        key = (module[:depth], module[depth], other[depth])
                        found.setdefault(key, {}).setdefault(module, path)
        return found


def circles(edges):
    """Siblings that know one another, by their parent."""
    knows = {}
    for parent, one, other in edges:
        knows.setdefault((parent, one), set()).add((parent, other))

    def reach(node):
        seen, todo = set(), [node]
        while todo:
            new = knows.get(todo.pop(), set()) - seen
            seen |= new
            todo += new
        return seen

    reached = {node: reach(node) for node in knows}
    groups = {frozenset(m for m in reached[node] if node in reached.get(m, ())) for node in knows if node in reached[node]}
    return sorted(sorted(group) for group in groups)
