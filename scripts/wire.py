#!/usr/bin/env python3
"""wire.py - writes the Rust side of what crosses between the kernel programs and user space, out of its headers.
usage: wire.py [--check]     with --check only says whether the files are what the headers give; exit status 1: not

Of wire.h, site.h, arena.h, range.h and activity.h come constants, structures, and assertions of the size of each and of where each field lies
(`layout!`); of the first two, that the BPF object has the same ones (`mirrored!`). Comments become documentation. The
tables below say what C does not: which integer a constant is in Rust, and what has another name there. What a header
may hold: c_header.py."""
import re
import subprocess
import sys
import textwrap
from pathlib import Path

from c_header import Constant, Enum, Header, Refused

ROOT = Path(__file__).resolve().parent.parent
BPF = "crates/collect/src/bpf"
AGENT = "crates/collect/src/agent"
ACTIVITY = "crates/collect/src/activity"
# header, what is made of it, what that is called beside the skeleton (None: it has no part in that), what it needs
HEADERS = [
    (f"{BPF}/wire.h", "crates/core/src/wire/generated.rs", "wire", "use super::layout;"),
    (f"{BPF}/site.h", "crates/collect/src/stack/wire/generated.rs", "site", "use crate::wire::layout;"),
    (f"{AGENT}/arena.h", "crates/collect/src/inside/arena/generated.rs", None, "use crate::wire::layout;"),
    (f"{AGENT}/range.h", "crates/core/src/wire/range.rs", None, "use super::layout;"),
    (f"{ACTIVITY}/activity.h", f"{ACTIVITY}/shared/generated.rs", None, "use crate::wire::layout;"),
]
MIRRORED = "crates/collect/src/probe/skeleton/mirrored.rs"

# The type of an enum's constants, by the enum.
ENUMS = {
    "activity_clock": "u32", "activity_kind": "u8", "activity_state": "u32", "activity_step": "u32", "activity_turn": "u64",
    "aggregate_bucket": "u32", "arena_stream": "u32", "arena_table": "usize", "message_kind": "u32", "call_unreadable": "u8", "context_move": "u8", "door_wake": "u32", "driver_family": "u8",
    "driver_seen": "u8", "driver_step": "u8", "event_flag": "u8", "hook_flag": "u8", "hook_group": "u8",
    "kernel_place_flag": "u8", "kernel_tag": "u32", "kernel_unknown": "u64", "launch_role": "u8",
    "memory_kind": "u32", "notice_kind": "u32", "place_kind": "u8", "python_entry": "u32", "shape_state": "u64",
    "range_flag": "u8", "range_kind": "u8", "site_flag": "u32", "site_python": "u32", "site_special": "u64", "spec_flag": "u8", "spec_ground": "u32",
    "test_kind": "u8", "waits": "u32", "wire_size": "u8", "work_flag": "u8", "work_step": "u8",
}  # fmt: skip

# The type of a define, by its name, or by the word that it begins with.
DEFINES = {
    "ACTIVITY": "u64", "LIBRARY": "usize", "SHARED": "u64",
    "ARENA": "u64", "BLOCK": "u64", "KEPT": "u64", "LARGE": "u32", "MESSAGE": "usize", "MOST": "u32", "PATCH": "usize",
    "PROCESS": "u64", "RING": "u64", "RUN": "u64", "RUN_FILES_MOST": "u32", "RUN_FILES_SLOTS": "u32", "SLOT": "u32", "STARTED": "u64",
    "ANY_SIZE": "u32", "COOKIE": "u64", "DRIVER_SUBJECT": "u64", "NO_OFFSET": "u16", "PYTHON_ABSENT": "u32",
    "PYTHON_FRAME_ENTRY": "u64", "PYTHON_WINDOW": "u32", "RANGE": "usize", "READ_DIRECT": "u16", "SIGN_BIT": "u64", "SITE": "usize",
    "UVM_REQUEST": "u32", "WAIT_NS": "u64", "WIRE": "usize", "WIRE_BATCH": "u32", "WIRE_PER_THREAD": "u64",
    "WIRE_SLOW_NS": "u64", "WORD": "u8",
}  # fmt: skip

# What is called otherwise in Rust. Beside these, `WIRE_` and `spec_` fall away, and structures are written LikeThis.
RENAMED = {
    "kernel_event": "KernelRecord", "site_event": "SiteRecord", "TAG_STUB": "KERNEL_STUB", "TAG_UNREAD": "KERNEL_UNREAD",
    "WAITS": "WAITS_HERE", "SITE_NATIVE": "NATIVE", "SITE_PYTHON": "PYTHON", "SITE_NATIVE_FULL": "NATIVE_FULL",
    "SITE_NATIVE_CUT": "NATIVE_CUT", "SITE_NATIVE_NONE": "NATIVE_NONE", "SITE_PYTHON_FULL": "PYTHON_FULL",
    "SITE_PYTHON_BROKEN": "PYTHON_BROKEN", "SITE_THREADS_FULL": "THREADS_FULL", "SITE_AT_ENTRY": "AT_ENTRY",
    "SITE_AT_PLACE": "AT_PLACE", "SITE_ON_CPU": "ON_CPU", "SITE_BETWEEN": "BETWEEN", "SITE_WAITED": "WAITED", "PYTHON_FRAME_ENTRY": "FRAME_ENTRY", "PYTHON_WINDOW": "WINDOW",
    "PYTHON_ABSENT": "ABSENT", "PYTHON_ENTRY_EACH": "ENTRY_EACH", "PYTHON_ENTRY_BYTE": "ENTRY_BYTE",
    "PYTHON_ENTRY_SHIM": "ENTRY_SHIM",
}  # fmt: skip

# Structures that user space has from the skeleton: they lie in variables of the BPF object, or no one else reads them.
OF_THE_SKELETON = {"aggregate_counters", "control", "kernel_call_key", "options", "site_options"}
# Of these all zero is something, not nothing: they, and what holds them, have no `Default`.
NO_DEFAULT = {"ioctl_plan", "kernel_site", "spec_factor", "spec_operand"}
# Words that are bytes of something else, and bytes in Rust.
AS_BYTES = {("driver_call", "before"), ("driver_call", "behind"), ("driver_call", "after")}

# Comments that are no sentences.
UNITS = {"ns"}

INTEGERS = {"__u8": "u8", "__u16": "u16", "__u32": "u32", "__u64": "u64", "__s32": "i32", "__s64": "i64", "char": "u8"}
SIZES = {"u8": 1, "u16": 2, "u32": 4, "i32": 4, "u64": 8, "i64": 8, "usize": 8}


def type_of(header, constant):
    """The type of a constant, which holds its value."""
    name, table = constant.name, "ENUMS" if constant.enum else "DEFINES"
    of = ENUMS.get(constant.enum) if constant.enum else DEFINES.get(name) or DEFINES.get(name.split("_")[0])
    if of is None:
        raise Refused(f"{header.name}:{constant.line}: {table} of scripts/wire.py does not say its type: {name}")
    if not 0 <= constant.value < 1 << 8 * SIZES[of]:
        raise Refused(f"{header.name}:{constant.line}: {constant.value} is no {of}: {name}")
    return of


def rust_name(name):
    return RENAMED.get(name) or (camel(name) if name.islower() else name.removeprefix("WIRE_"))


def camel(name):
    return "".join(word.capitalize() for word in name.removeprefix("spec_").split("_"))


def sentence(header, doc):
    """A comment as documentation: what it names of the header leads there."""
    doc = re.sub(r"\b(enum \w+)", r"`\1`", doc)
    parts = re.split(r"(`[^`]*`)", doc if doc in UNITS else doc[:1].upper() + doc[1:])
    for at in range(0, len(parts), 2):
        text = re.sub(r"([\[\]<>])", r"\\\1", parts[at])
        parts[at] = re.sub(r"\w+", lambda word: link(header, word[0]), text)
    return "".join(parts) + ("" if doc.endswith((".", ":")) else ".")


def link(header, word):
    return f"[`{rust_name(word)}`]" if word in header.constants else word


def documented(header, docs, indent=""):
    """Lines of documentation: each comment a sentence."""
    text = " ".join(sentence(header, doc) for doc in docs)
    return [f"{indent}/// {line}" for line in textwrap.wrap(text, 110 - len(indent), break_long_words=False)]


def number(constant):
    """As it was written: in hexadecimal, or not."""
    if constant.value > 0xFFF and ("0x" in constant.written or "<<" in constant.written):
        return f"{constant.value:#_x}"
    return f"{constant.value:_}" if constant.value > 9999 else str(constant.value)


def rust_length(header, written, value):
    """The length of an array, in words where these are usable as such."""
    names = [header.constants[part.text] for part in written if part.kind == "word"]
    if not names or any(type_of(header, constant) != "usize" for constant in names):
        return str(value)
    return " ".join(rust_name(part.text) if part.kind == "word" else part.text for part in written)


def rust_shape(header, struct, found):
    """The element of a field, and the lengths of its arrays: as written, and the number."""
    of = INTEGERS.get(found.of) or rust_name(found.of)
    lengths = [(rust_length(header, *length), length[1]) for length in found.lengths]
    if (struct.name, found.name) in AS_BYTES:
        inner = (lengths.pop()[1] if lengths else 1) * SIZES[of]
        return "u8", [*lengths, (str(inner), inner)]
    return of, lengths


def rust_type(header, struct, found):
    of, lengths = rust_shape(header, struct, found)
    for length, _ in reversed(lengths):
        of = f"[{of}; {length}]"
    return of


def has_default(header, struct):
    """Whether `Default` can be derived, and means something."""
    nested = [header.structs[found.of] for found in struct.fields if found.of in header.structs]
    is_long = any(length > 32 for found in struct.fields for _, length in rust_shape(header, struct, found)[1])
    return struct.name not in NO_DEFAULT and not is_long and all(has_default(header, inner) for inner in nested)


def rust_struct(header, struct):
    derived = ["Clone", "Copy", "Debug"] + ["Default"] * has_default(header, struct) + ["PartialEq", "Eq"]
    derived += ["Hash", "PartialOrd", "Ord"] * struct.name.endswith("_key")
    lines = documented(header, struct.doc) + ["#[repr(C)]", f"#[derive({', '.join(derived)})]"]
    lines.append(f"pub struct {rust_name(struct.name)} {{")
    for found in struct.fields:
        lines += documented(header, found.doc, "    ")
        lines.append(f"    pub {found.name}: {rust_type(header, struct, found)},")
    return lines + ["}", ""]


def rust_constant(header, constant):
    name, of = rust_name(constant.name), type_of(header, constant)
    return documented(header, constant.doc) + [f"pub const {name}: {of} = {number(constant)};"]


def wrapped(parts, indent):
    return textwrap.wrap(" ".join(parts), 108, initial_indent=indent, subsequent_indent=indent, break_long_words=False)


def rust_layout(struct):
    places = [f"{found.name}={found.offset}," for found in struct.fields]
    lines = [line.replace("=", ": ") for line in wrapped(places, "    ")]
    return [f"layout! {{ {rust_name(struct.name)}, {struct.size}:"] + lines + ["}"]


def mirrored_structs(header):
    return [struct for struct in header.structs.values() if struct.name not in OF_THE_SKELETON]


def rust_of(header, source, needs):
    lines = [f"//! Made of `{source}` by `scripts/wire.py`: change that, and run this.", "", needs, ""]
    for item in header.items:
        if isinstance(item, Constant):
            lines += rust_constant(header, item)
        elif isinstance(item, Enum):
            title = f"`enum {item.name}`" + "".join(f": {doc}" for doc in item.doc)
            lines += ["", *(f"// {line}" for line in textwrap.wrap(title, 110))]
            for constant in item.constants:
                lines += rust_constant(header, constant)
            lines.append("")
        elif item.name not in OF_THE_SKELETON:
            lines += ["", *rust_struct(header, item)]
    for struct in mirrored_structs(header):
        lines += rust_layout(struct)
    return lines


def rust_mirrored(headers):
    """Every structure, with its fields, once for the skeleton and once for user space."""
    lines = [f"//! Made of `{BPF}/wire.h` and `site.h` by `scripts/wire.py`: change these, and run this.", ""]
    lines += ["use super::types;", "use crate::stack::wire as site;", "use crate::wire;", ""]
    lines.append("mirrored! {")
    for header, module in headers:
        for struct in mirrored_structs(header):
            lines.append(f"    {struct.name} => {module}::{rust_name(struct.name)} {{")
            lines += wrapped([found.name for found in struct.fields], "        ") + ["    }"]
    return lines + ["}"]


def formatted(lines):
    command = ["rustfmt", "--edition", "2024", "--config-path", str(ROOT)]
    done = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True)
    if done.returncode:
        raise Refused(f"rustfmt: {done.stderr.strip()}")
    return done.stdout


def check_tables(headers):
    """A row of a table that no header needs is a mistake, and so are two things of one name."""
    enums = {item.name for header in headers for item in header.items if isinstance(item, Enum)}
    known = {name for header in headers for name in [*header.structs, *header.constants]}
    structs = [struct for header in headers for struct in header.structs.values()]
    fields = {(struct.name, found.name) for struct in structs for found in struct.fields}
    begun = {name.split("_")[0] for name in known} | known
    idle = (set(ENUMS) - enums) | (set(DEFINES) - begun) | ((set(RENAMED) | OF_THE_SKELETON | NO_DEFAULT) - known)
    for name in sorted(idle) + sorted(".".join(pair) for pair in AS_BYTES - fields):
        raise Refused(f"scripts/wire.py: no header has {name}, which a table names")
    for header in headers:
        names = [rust_name(name) for name in [*header.structs, *header.constants]]
        for name in sorted({name for name in names if names.count(name) > 1}):
            raise Refused(f"{header.name}: two things would be called {name}; hint: RENAMED of scripts/wire.py")


def made():
    """Each file that is made, and what stands in it."""
    headers = [Header(source, (ROOT / source).read_text()) for source, *_ in HEADERS]
    check_tables(headers)
    mirrored = [(header, row[2]) for header, row in zip(headers, HEADERS) if row[2]]
    files = {MIRRORED: formatted(rust_mirrored(mirrored))}
    for header, (source, rust, _, needs) in zip(headers, HEADERS):
        files[rust] = formatted(rust_of(header, source, needs))
    return files


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__.splitlines()[1])
    stale = 0
    try:
        for path, text in made().items():
            file = ROOT / path
            if sys.argv[1:] == []:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            elif not file.exists() or file.read_text() != text:
                print(f"wire.py: {path} is not what wire.h, site.h and arena.h give; hint: make wire", file=sys.stderr)
                stale = 1
    except Refused as error:
        print(f"wire.py: {error}", file=sys.stderr)
        return 1
    return stale


if __name__ == "__main__":
    sys.exit(main())
