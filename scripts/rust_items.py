"""rust_items.py - what visibility.py takes out of a file of Rust: its `pub` items, what their signatures name, and what the file names
of others. By patterns, on text that rustfmt has formatted: nothing is resolved. What macros are given is code like any other."""
import re
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

NOT_CODE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|\bb?r(\#*)".*?"\1|b?"(?:\\.|[^"\\])*"|b?'(?:\\[^'\n]+|[^\\'\n])'""", re.S
)
DOC_CODE = re.compile(r"^[ \t]*//[/!] ```(\w*)\n(.*?)^[ \t]*//[/!] ```", re.M | re.S)
DOC_LINK = re.compile(r"^[ \t]*//[/!].*\[`.*", re.M)
ITEM = re.compile(
    r"\bpub\s+(?:(?:(?:const|unsafe|async|extern)\s+)*(?P<fn>fn)\s+(?P<fn_name>\w+)"
    r"|(?:unsafe\s+)?(?P<kind>struct|enum|union|trait|const|static|type|mod)\s+(?:mut\s+)?(?P<name>\w+)"
    r"|(?P<use>use)\s+(?P<tree>[^;]*);"
    r"|(?:r\#)?(?P<field>\w+)\s*:(?!:))"
)
TYPE = re.compile(r"(?:struct|enum|union|trait|type) (\w+)")
IMPL = re.compile(r"(?<![\w-])impl\b([^{;()]*)\{")
STRUCT = re.compile(r"(?:struct|union) (\w+)[^{;(]*\{")
ASSOCIATED = re.compile(r"\btype \w+[^=;]*=([^;]*);")
UPDATE = re.compile(r"\.\.\s*[A-Za-z_(*]")
METHOD = re.compile(r"\.\s*([A-Za-z_]\w*)\s*(?=\(|::\s*<)|::([A-Za-z_]\w*)")
FIELD = re.compile(r"(?:[{,\]]\s*(?:ref\s+|mut\s+)*|\.\s*)([A-Za-z_]\w*)\s*(?![\w\s(])")
TURBOFISH = re.compile(r"::\s*<[^<>]*>")
PAIR = re.compile(r"\b(\w+)::(?=(\w+))")
USE = re.compile(r"\buse\s+([^;]*);")
ELSEWHERE = re.compile(r'#\[path = "([^"]+)"\]')
EXPORTED = re.compile(r"#\[macro_export\]\s*macro_rules!\s*\w+\s*(?=\{)")
BRACKET = re.compile(r"->|=>|[()\[\]<>{};,=]")
BRACE = re.compile(r"[{}]")
FOR = re.compile(r"\bfor\b(?!\s*<)")
# where the signature of an item ends
STOPS = {"fn": "{;", "struct": "{;", "type": ";", "const": "=;", "static": "=;", "field": ",}", "mod": "{;"}


@dataclass
class Item:
    """What may be `pub`; or an `impl`, by which a type names others: its bounds, its associated types."""

    kind: str
    name: str
    path: Path
    at: int
    end: int
    module: tuple
    owner: str | None = None  # the type that it is a member of; "?": a macro knows
    signature: set = field(default_factory=set)
    is_method: bool = False  # it takes `self`
    leaf: tuple | None = None  # of a `use`: the path, the name at its end


def names(text):
    return set(re.findall(r"[A-Za-z_]\w*", text))


def until(code, at, stops):
    """Where the first of `stops` is that stands in no bracket."""
    depth = 0
    for found in BRACKET.finditer(code, at):
        sign = found[0]
        if depth <= 0 and sign in stops:
            return found.start()
        depth += (sign in "([<") - (sign in ")]>")
    return len(code)


def closing(code, at):
    """Behind the brace that closes the next one that opens."""
    depth = 0
    for found in BRACE.finditer(code, at):
        depth += 1 if found[0] == "{" else -1
        if depth == 0:
            return found.end()
    return len(code)


def first_of(trees):
    """Where the first of several trees of a `use` ends."""
    depth = 0
    for at, sign in enumerate(trees):
        depth += (sign == "{") - (sign == "}")
        if sign == "," and depth == 0:
            return at
    return len(trees)


def leaves(tree, prefix=""):
    """(path, name, name by which it is known) of all that the tree of a `use` names."""
    before, brace, rest = tree.partition("{")
    if not brace:
        path, _, alias = tree.strip().partition(" as ")
        path = prefix + re.sub(r"\s", "", path)
        name = path.removesuffix("::self").rpartition("::")[2]
        yield path, name, alias.strip() or name
        return
    trees = rest[: rest.rindex("}")]
    while trees.strip():
        end = first_of(trees)
        yield from leaves(trees[:end], prefix + re.sub(r"\s", "", before))
        trees = trees[end + 1 :]


def implemented(header):
    """The name of the type that an `impl` is of."""
    if header.startswith("<"):
        header = header[until(header, 1, ">") + 1 :]
    of = re.sub(r"&|'\w+|\bmut\b|\bdyn\b", " ", FOR.split(header)[-1]).strip()
    found = re.match(r"(?:\w+::)*(\w+)", of)
    return found[1] if found else "?"


class Source:
    """A file: `text`, and `code`, which is the same without comments and literals, each character in its place."""

    def __init__(self, path, text=None):
        self.path = path
        self.text = path.read_text() if text is None else text
        self.code = NOT_CODE.sub(lambda found: re.sub(r"[^\n]+", lambda line: " " * len(line[0]), found[0]), self.text)

    def is_generated(self):
        return "by `scripts/" in self.text.partition("\n")[0]

    def examples(self):
        """The code in its documentation, which is compiled as a crate of its own."""
        blocks = (block for language, block in DOC_CODE.findall(self.text) if language != "text")
        return Source(self.path, re.sub(r"(?m)^[ \t]*//[/!] ?(# )?", "", "".join(blocks)))

    def links(self):
        """What links of the documentation name."""
        return "\n".join(DOC_LINK.findall(self.text))

    def mentioned(self):
        return names(self.code) | names(self.links())

    def methods(self):
        """Names that stand where those of methods do."""
        return {name for found in METHOD.findall(self.code) for name in found} | names(self.links())

    def fields(self):
        """Names that stand where those of fields do, in values and patterns."""
        return set(FIELD.findall(self.code)) | names(self.links())

    def pairs(self):
        """(module, name) of each path, whatever it begins with."""
        found = set(PAIR.findall(TURBOFISH.sub("", f"{self.code}\n{self.links()}")))
        known = [leaf for tree in USE.findall(self.code) for leaf in leaves(tree)]
        for path, _, _ in known:
            found |= set(pairwise(path.split("::")))
        renamed = {alias: name for _, name, alias in known if alias != name}
        return found | {(renamed[first], second) for first, second in found if first in renamed}

    def updated(self):
        """Structures that are made out of another value of theirs (`..Default::default()`), which takes all of their fields."""
        found = set()
        for update in UPDATE.finditer(self.code):
            before = self.code[: update.start()].rstrip()
            if before.endswith((",", "{")):
                found |= set(re.findall(r"(\w+)\s*$", before[: opening(before)]))
        return found

    def exported(self):
        """Names within macros that other crates expand."""
        found = (self.code[macro.end() : closing(self.code, macro.end())] for macro in EXPORTED.finditer(self.code))
        return set().union(*map(names, found))

    def elsewhere(self):
        """Files that it includes by their path."""
        return {(self.path.parent / name).resolve() for name in ELSEWHERE.findall(self.text)}

    def types(self):
        """All types and traits, whoever sees them."""
        return set(TYPE.findall(self.code))

    def blocks(self):
        """(begin, end, type whose members it has, header if it is an `impl`)."""
        for found in IMPL.finditer(self.code):
            yield found.start(), closing(self.code, found.end() - 1), implemented(found[1]), found[1]
        for found in STRUCT.finditer(self.code):
            yield found.start(), closing(self.code, found.end() - 1), found[1], None

    def items(self, module):
        blocks = sorted(self.blocks(), key=lambda block: block[0])
        for found in ITEM.finditer(self.code):
            yield from self.found(found, module, blocks)
        for begin, end, owner, header in blocks:
            if header is not None:
                yield Item("impl", "", self.path, begin, end, module, owner, self.carried(begin, end, header))

    def found(self, found, module, blocks):
        kind = found["fn"] or found["kind"] or found["use"] or "field"
        place = (self.path, found.start(), found.end(), module)
        if kind == "use":
            for path, name, alias in leaves(found["tree"]):
                yield Item(kind, alias, *place, leaf=(path, name))
            return
        owner = next((of for begin, end, of, _ in reversed(blocks) if begin < found.start() < end), None)
        signature = names(self.signature(kind, found.end()))
        name = found["fn_name"] or found["name"] or found["field"]
        yield Item(kind, name, *place, owner, signature, kind == "fn" and "self" in signature)

    def signature(self, kind, begin):
        end = until(self.code, begin, STOPS[kind]) if kind in STOPS else closing(self.code, begin)
        return self.code[begin:end]

    def carried(self, begin, end, header):
        """What a type names by an `impl` of it."""
        named = names(header) if header.startswith("<") or "where" in header else set()
        types = ASSOCIATED.findall(self.code[begin:end]) if FOR.search(header) else []
        return named | names(" ".join(types))


def opening(code):
    """Where the last brace is that is open at the end."""
    depth = 0
    for at in range(len(code) - 1, -1, -1):
        depth += (code[at] == "}") - (code[at] == "{")
        if depth < 0:
            return at
    return 0
