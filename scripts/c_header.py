"""c_header.py - reads the C that crosses between the kernel programs and user space, of which wire.py writes the Rust side.

A header may hold: its guard, defines of integer expressions, enums, structures of fixed-width integers, `char`, arrays and
structures before them, and comments. Everything else is refused, and so is a structure with implicit padding. A comment
that begins on the line of what it follows belongs to it; one on lines of its own, to what comes directly behind it, or in
a structure, to the field before it; others are for readers of the header alone."""
import re
from dataclasses import dataclass, field

# Bytes of each type that may cross.
SIZES = {"__u8": 1, "__u16": 2, "__u32": 4, "__u64": 8, "__s32": 4, "__s64": 8, "char": 1}


class Refused(Exception):
    """What a header may not hold: which line, and what stands there."""


@dataclass
class Constant:
    name: str
    value: int
    written: str
    line: int
    enum: str  # that it is of; None: a define
    doc: list = field(default_factory=list)


@dataclass
class Field:
    name: str
    of: str  # its type in C
    lengths: list  # of arrays, the outermost first: as written, and the number
    offset: int
    doc: list = field(default_factory=list)


@dataclass
class Struct:
    name: str
    fields: list
    size: int = 0
    align: int = 1
    doc: list = field(default_factory=list)


@dataclass
class Enum:
    name: str
    constants: list
    doc: list = field(default_factory=list)


TOKEN = re.compile(
    r"(?P<comment>/\*.*?\*/)|(?P<directive>^[ \t]*\#(?:\\\n|/\*.*?\*/|[^\n])*)|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<number>0[xX][0-9a-fA-F]+[uUlL]*|\d+[uUlL]*)|(?P<sign><<|>>|[{}\[\]();=,+\-*/|&])|(?P<space>\s+)|(?P<other>.)",
    re.DOTALL | re.MULTILINE,
)


@dataclass
class Token:
    kind: str
    text: str
    line: int
    last: int  # line that it ends on


def tokens_of(text, line=1):
    """The tokens of a text that begins at `line`, without space."""
    found = []
    for match in TOKEN.finditer(text):
        last = line + match[0].count("\n")
        if match.lastgroup != "space":
            found.append(Token(match.lastgroup, match[0], line, last))
        line = last
    return found


def words_of(comment):
    """The text of a comment, without its stars, as one line."""
    return " ".join(re.sub(r"^\s*\* ?", "", line) for line in comment[2:-2].strip().splitlines()).strip()


def parted(tokens):
    """What is no comment, and the texts of those."""
    code = [token for token in tokens if token.kind != "comment"]
    return code, [words_of(token.text) for token in tokens if token.kind == "comment"]


class Header:
    """Reads one header. `items` are its constants, enums and structures in order."""

    def __init__(self, name, text):
        self.name, self.items, self.structs, self.constants = name, [], {}, {}
        self.tokens, self.at, self.guard, self.above = tokens_of(text), 0, None, None
        while self.at < len(self.tokens):
            self.item()
        if self.guard != "closed":
            raise Refused(f"{name}: the guard (#ifndef, #define, #endif) is not closed")

    def refuse(self, token, why):
        raise Refused(f"{self.name}:{token.line}: {why}: {token.text.strip().splitlines()[0]}")

    # ---- tokens ----

    def next(self, *texts):
        """The next token; one of `texts`, if there are any."""
        if self.at == len(self.tokens):
            self.refuse(self.tokens[-1], "the file ends too early")
        token = self.tokens[self.at]
        if texts and token.text not in texts:
            self.refuse(token, f"expected {' or '.join(texts)}")
        self.at += 1
        return token

    def word(self):
        token = self.next()
        if token.kind != "word":
            self.refuse(token, "expected a name")
        return token

    def until(self, *ends):
        """The tokens before one of `ends`."""
        start = self.at
        while self.next().text not in ends:
            pass
        self.at -= 1
        return self.tokens[start : self.at]

    def sees(self, text):
        return self.at < len(self.tokens) and self.tokens[self.at].text == text

    def sees_comment(self):
        return self.at < len(self.tokens) and self.tokens[self.at].kind == "comment"

    def trailing(self, owner):
        """Takes comments that begin on the line where the last token ends: they are `owner`'s."""
        while self.sees_comment():
            if self.tokens[self.at].line != self.tokens[self.at - 1].last:
                return
            owner.doc.append(words_of(self.next().text))

    def value(self, tokens, where):
        """The value of an integer expression."""
        if not tokens:
            self.refuse(where, "expected a number")
        parts = []
        for token in tokens:
            if token.kind == "number":
                parts.append(token.text.rstrip("uUlL"))
            elif token.kind == "word" and token.text in self.constants:
                parts.append(str(self.constants[token.text].value))
            elif token.text in ("+", "-", "*", "/", "|", "&", "<<", ">>", "(", ")"):
                parts.append("//" if token.text == "/" else token.text)
            else:
                self.refuse(where, f"{token.text} is no integer that is known here")
        try:
            return int(eval(" ".join(parts), {"__builtins__": {}}))  # digits and the signs above, nothing else
        except (SyntaxError, TypeError, ValueError, ZeroDivisionError):
            self.refuse(where, "not an integer expression")

    # ---- items ----

    def item(self):
        token = self.next()
        if token.kind == "comment":
            self.above = token
            return
        above, self.above = self.above, None
        doc = [words_of(above.text)] if above and above.last == token.line - 1 else []
        if self.guard in (None, "closed") and not token.text.startswith("#ifndef"):
            self.refuse(token, "outside of the guard (#ifndef, #define, #endif)")
        if token.kind == "directive":
            self.directive(token, doc)
        elif token.text == "enum":
            self.enum(doc)
        elif token.text == "struct":
            self.struct(doc)
        else:
            self.refuse(token, "neither a define, an enum nor a structure")

    def directive(self, token, doc):
        text = token.text.replace("\\\n", " ").strip()
        words = text.split()
        if words[0] == "#ifndef" and self.guard is None and len(words) == 2:
            self.guard = words[1]
        elif words == ["#define", self.guard]:
            pass
        elif words == ["#endif"]:
            self.guard = "closed"
        elif match := re.match(r"#define (\w+)\s+(.*)", text, re.DOTALL):
            written, behind = parted(tokens_of(match[2], token.line))
            value = self.value(written, token)
            self.items.append(self.constant(token, match[1], None, value, written, doc + behind))
        else:
            self.refuse(token, "not a define of an integer")

    def constant(self, token, name, enum, value, written, doc):
        if name in self.constants:
            self.refuse(token, "defined twice")
        text = " ".join(part.text for part in written)
        self.constants[name] = Constant(name, value, text, token.line, enum, doc)
        return self.constants[name]

    def enum(self, doc):
        token = self.word()
        enum = Enum(token.text, [], doc)
        self.next("{")
        following = 0
        while not self.sees("}"):
            name, written = self.word(), []
            if self.sees("="):
                self.next("=")
                written = self.until(",", "}")
                following = self.value(parted(written)[0], name)
            constant = self.constant(name, name.text, enum.name, following, *parted(written))
            enum.constants.append(constant)
            following += 1
            self.trailing(constant)
            if not self.sees("}"):
                self.next(",")
                self.trailing(constant)
        self.next("}")
        self.next(";")
        self.items.append(enum)

    def struct(self, doc):
        token = self.word()
        struct = Struct(token.text, [], doc=doc)
        self.next("{")
        while not self.sees("}"):
            if self.sees_comment():
                comment = self.next()
                if not struct.fields:
                    self.refuse(comment, "a comment that belongs to no field")
                struct.fields[-1].doc.append(words_of(comment.text))
                continue
            self.field(struct)
        self.next("}")
        self.next(";")
        if not struct.fields:
            self.refuse(token, "a structure without fields")
        if struct.name in self.structs:
            self.refuse(token, "defined twice")
        self.aligned(token, struct, "its end", struct.align)
        self.structs[struct.name] = struct
        self.items.append(struct)

    def field(self, struct):
        token = of = self.word()
        if token.text == "struct":
            of = self.word()
        nested = self.structs.get(of.text) if of is not token else None
        if not nested and (of is not token or of.text not in SIZES):
            self.refuse(of, "not a type that may cross")
        name = self.word()
        lengths = []
        while self.sees("["):
            self.next("[")
            written = self.until("]")
            lengths.append((written, self.value(written, name)))
            if lengths[-1][1] < 1:
                self.refuse(name, "an array without elements")
            self.next("]")
        self.next(";")
        size, align = (nested.size, nested.align) if nested else (SIZES[of.text],) * 2
        self.aligned(name, struct, name.text, align)
        found = Field(name.text, of.text, lengths, struct.size)
        for _, length in lengths:
            size *= length
        struct.size += size
        struct.align = max(struct.align, align)
        struct.fields.append(found)
        self.trailing(found)

    def aligned(self, token, struct, before, align):
        if missing := -struct.size % align:
            why = f"{missing} bytes of padding before {before} of {struct.name}: a structure never has implicit padding"
            self.refuse(token, f"{why}; hint: name them, as a field pad")
