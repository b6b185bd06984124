#!/usr/bin/env python3
"""siblings_tests.py - which modules siblings.py says import one another. Exit status 1: it does otherwise."""
import tempfile
import unittest
from pathlib import Path

import siblings


class Edges(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def edges(self, **files):
        """Who imports whom in a crate of these files; `__` parts folders."""
        for name, text in files.items():
            path = self.root / f"{name.replace('__', '/')}.rs"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return siblings.Crate(self.root).edges()

    def pairs(self, **files):
        return {("::".join(parent), one, other) for parent, one, other in self.edges(**files)}

    def test_a_sibling_is_named_by_either_path(self):
        pairs = self.pairs(lib="mod p;", p="mod a;mod b;", p__a="use super::b::X;", p__b="fn f() { crate::p::a::g() }")
        self.assertEqual(pairs, {("p", "a", "b"), ("p", "b", "a")})

    def test_what_the_parent_shows_of_a_sibling_is_the_siblings(self):
        pairs = self.pairs(lib="mod p;", p="mod a;mod b;pub use b::X as Y;", p__a="use super::Y;", p__b="pub struct X;")
        self.assertEqual(pairs, {("p", "a", "b")})

    def test_what_the_parent_itself_has_is_no_import_of_a_sibling(self):
        pairs = self.pairs(lib="mod p;", p="mod a;mod b;pub struct X;use b::Y;", p__a="use super::X;", p__b="pub struct Y;")
        self.assertEqual(pairs, set())

    def test_whoever_lies_deeper_imports_for_the_sibling_above_it(self):
        files = {"lib": "mod p;", "p": "mod a;mod b;", "p__a": "mod c;", "p__a__c": "use crate::p::b;", "p__b": ""}
        self.assertEqual(self.pairs(**files), {("p", "a", "b")})

    def test_a_module_that_was_imported_leads_on(self):
        files = {"lib": "mod p;", "p": "mod a;mod b;", "p__a": "use crate::p;fn f() { p::b::g() }", "p__b": "fn g() {}"}
        self.assertEqual(self.pairs(**files), {("p", "a", "b")})

    def test_all_that_the_parent_has_is_what_of_it_is_named(self):
        shown = {"lib": "mod p;", "p": "mod a;mod b;use b::*;", "p__b": "pub struct X;"}
        self.assertEqual(self.pairs(**shown, p__a="use super::*;fn f(_: X) {}"), {("p", "a", "b")})
        self.assertEqual(self.pairs(**shown, p__a="use super::*;"), set())

    def test_tests_and_comments_do_not_count(self):
        a = "// super::b\n#[cfg(test)]\nmod tests {\n use super::super::b;\n}\n#[cfg(test)]\nmod apart;\n"
        files = {"lib": "mod p;", "p": "mod a;mod b;", "p__a": a, "p__a__apart": "use crate::p::b;", "p__b": ""}
        self.assertEqual(self.pairs(**files), set())

    def test_a_circle_is_those_that_reach_themselves(self):
        edges = [((), "a", "b"), ((), "b", "a"), ((), "c", "a"), (("a",), "c", "b")]
        self.assertEqual(siblings.circles(edges), [[((), "a"), ((), "b")]])


if __name__ == "__main__":
    unittest.main()
