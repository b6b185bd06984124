#!/usr/bin/env python3
"""wire_tests.py - what c_header.py and wire.py take out of a header, and what they refuse. Exit status 1: they do otherwise."""
import unittest
from unittest import mock

import wire
from c_header import Constant, Header, Refused


def header(body):
    """A header that holds `body`, which begins on line 3."""
    return Header("h", f"#ifndef H\n#define H\n{body}\n#endif\n")


@mock.patch.dict(wire.ENUMS, {"color": "u8"})
class Taken(unittest.TestCase):
    def constants(self, body):
        parsed = header(body)
        return [(name, wire.type_of(parsed, found), found.value) for name, found in parsed.constants.items()]

    def test_defines_are_expressions_of_numbers_and_of_earlier_ones(self):
        body = "#define WIRE_A 0x10u\n#define WIRE_B (WIRE_A / 3 + 2 * 4) /* so many */\n#define SIGN_BIT (1ull << 63)"
        self.assertEqual(
            self.constants(body), [("WIRE_A", "usize", 16), ("WIRE_B", "usize", 13), ("SIGN_BIT", "u64", 1 << 63)]
        )

    def test_an_enum_counts_on_from_explicit_values(self):
        body = "enum color { RED, GREEN = 4, BLUE,\n BLACK = RED | 1 << 3 };"
        expected = [("RED", "u8", 0), ("GREEN", "u8", 4), ("BLUE", "u8", 5), ("BLACK", "u8", 8)]
        self.assertEqual(self.constants(body), expected)

    def test_comments_belong_to_what_is_on_their_line_or_directly_below(self):
        parsed = header(
            "/* free */\n\n/* of\n * A */\n#define WIRE_A 1 /* its own */\n"
            "enum color { RED, /* one */ GREEN = 2 /* two */\n};\n"
            "/* of s */\nstruct s {\n\t__u32 a; /* of a */\n\t__u32 b;\n\t/* b ends here */\n};"
        )
        docs = {constant.name: constant.doc for constant in parsed.constants.values()}
        self.assertEqual(docs, {"WIRE_A": ["of A", "its own"], "RED": ["one"], "GREEN": ["two"]})
        struct = parsed.structs["s"]
        self.assertEqual((struct.doc, [found.doc for found in struct.fields]), (["of s"], [["of a"], ["b ends here"]]))

    def test_offsets_and_sizes_are_those_of_c(self):
        parsed = header(
            "#define WIRE_N 3\nstruct in {\n\t__u64 a;\n\t__s32 b;\n\t__u32 pad;\n};\n"
            "struct out {\n\t__u8 a[2][WIRE_N];\n\t__u16 b;\n\tstruct in in[2];\n\tchar name[WIRE_N * 2 + 2];\n};"
        )
        struct = parsed.structs["out"]
        places = [(found.name, found.offset) for found in struct.fields]
        self.assertEqual(places, [("a", 0), ("b", 6), ("in", 8), ("name", 40)])
        self.assertEqual((struct.size, struct.align), (48, 8))
        rust = "\n".join(wire.rust_struct(parsed, struct))
        for line in ("pub a: [[u8; N]; 2],", "pub in: [In; 2],", "pub name: [u8; N * 2 + 2],"):
            self.assertIn(line, rust)

    def test_long_arrays_and_what_holds_them_have_no_default(self):
        holder = "struct b {\n\tstruct a a;\n};"
        parsed = header(f"struct a {{\n\t__u8 a[33];\n}};\n{holder}\nstruct c {{\n\t__u8 a[32];\n}};")
        self.assertEqual([wire.has_default(parsed, struct) for struct in parsed.structs.values()], [False, False, True])

    def test_documentation_leads_to_what_it_names_and_is_no_markup(self):
        parsed = header("#define WIRE_A 1")
        self.assertEqual(wire.documented(parsed, ["as WIRE_A <b> [x] `[y]`"]), [r"/// As [`A`] \<b\> \[x\] `[y]`."])
        self.assertEqual(wire.documented(parsed, ["enum color; or 1"]), ["/// `enum color`; or 1."])

    def test_numbers_look_as_they_were_written(self):
        numbers = [Constant("A", 1 << 32, "1ull << 32", 1, None), Constant("B", 100000, "100000", 2, None)]
        self.assertEqual([wire.number(constant) for constant in numbers], ["0x1_0000_0000", "100_000"])


class Refusals(unittest.TestCase):
    def refused(self, body, *parts):
        with self.assertRaises(Refused) as refusal:
            wire.rust_of(header(body), "h", "")
        for part in parts:
            self.assertIn(part, str(refusal.exception))

    def test_implicit_padding_inside_and_at_the_end(self):
        never = "a structure never has implicit padding"
        self.refused("struct s {\n\t__u8 a;\n\t__u32 b;\n};", "h:5:", "3 bytes", "before b of s", never)
        self.refused("struct s {\n\t__u64 a;\n\t__u8 b;\n};", "h:3:", "7 bytes", "before its end of s", never)
        self.refused("struct i {\n\t__u64 a;\n};\nstruct s {\n\t__u32 a;\n\tstruct i b;\n};", "h:8:", "4 bytes", never)

    def test_types_that_may_not_cross(self):
        for of in ("int", "unsigned long", "size_t", "enum color", "struct later", "union u"):
            self.refused(f"struct s {{\n\t{of} a;\n}};", "h:4:")
        self.refused("struct s {\n\tint a;\n};", "h:4: not a type that may cross: int")

    def test_forms_that_are_not_known(self):
        fields = ("__u8 *a;", "__u8 a : 3;", "__u8 a, b;", "__u8 a[];", "__u8 a[0];", "__u8 a[X];", "struct { __u8 a; } b;")
        for field in fields:
            self.refused(f"struct s {{\n\t{field}\n}};", "h:4:")
        lines = ("#define F(x) ((x) + 1)", "#define WIRE_A", '#define WIRE_A "text"', "#include <linux/types.h>", "#if 1")
        for line in lines:
            self.refused(f"\n{line}", "h:4:")
        for line in ("typedef __u8 byte;", "union u { __u8 a; };", "int f(void);", "@", "struct s { };", "// remark"):
            self.refused(f"\n{line}", "h:4:")
        self.refused("struct s {\n\t/* of nothing */\n\t__u8 a;\n};", "h:4: a comment that belongs to no field")

    def test_expressions_that_are_none(self):
        for written in ("1 +", "UNKNOWN", "sizeof(int)", "1 / 0", "1 << -1", "010", "f(1)", "1 ? 2 : 3"):
            self.refused(f"#define WIRE_A {written}", "h:3:")

    def test_constants_without_a_type_or_beyond_it(self):
        self.refused("#define OTHER 1", "h:3:", "DEFINES of scripts/wire.py does not say its type")
        self.refused("enum other { A };", "h:3:", "ENUMS of scripts/wire.py does not say its type")
        self.refused("#define WORD_A 256", "h:3:", "256 is no u8")
        self.refused("#define WIRE_A 1\n#define WIRE_A 2", "h:4: defined twice")

    def test_what_lies_outside_of_the_guard_or_breaks_off(self):
        begun = "#ifndef H\n#define H\n"
        for text in ("struct s {\n\t__u8 a;\n};\n", begun, f"{begun}#endif\n#define WIRE_A 1\n"):
            with self.assertRaises(Refused):
                Header("h", text)
        self.refused("struct s {\n\t__u8 a;", "h:5:", "#endif")
        for end in ("struct s {\n\t__u8 a;", "struct s {", "struct", "enum e { A =", "enum e { A"):
            with self.assertRaises(Refused):
                Header("h", f"#ifndef H\n#define H\n{end}")

    def test_rows_of_tables_that_nothing_needs_and_names_that_meet(self):
        with self.assertRaises(Refused) as refusal:
            wire.check_tables([header("#define WIRE_A 1")])
        self.assertIn("which a table names", str(refusal.exception))
        tables = {name: {} for name in ("ENUMS", "RENAMED")} | {"DEFINES": {"WIRE": "u8", "A": "u8"}}
        tables |= {name: set() for name in ("OF_THE_SKELETON", "NO_DEFAULT", "AS_BYTES")}
        with mock.patch.multiple(wire, **tables), self.assertRaises(Refused) as refusal:
            wire.check_tables([header("#define WIRE_A 1\n#define A 2")])
        self.assertIn("two things would be called A", str(refusal.exception))


if __name__ == "__main__":
    unittest.main()
