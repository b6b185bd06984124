#!/usr/bin/env python3
"""visibility_tests.py - what visibility.py lets be `pub`, and what it narrows. Exit status 1: it does otherwise."""
import tempfile
import unittest
from pathlib import Path

import visibility
from rust_items import Source, leaves


class Narrowed(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def file(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return Source(path)

    def narrowed(self, above, **files):
        """What becomes of a crate of `files`, beneath one that says `above`."""
        named = visibility.Named()
        named.add([self.file("above.rs", above)])
        sources = [self.file(f"src/{name}.rs", text) for name, text in files.items()]
        crate = visibility.Crate(self.root / "src", sources, named)
        visibility.fix(crate)
        return [(self.root / f"src/{name}.rs").read_text() for name in files]

    def test_what_nothing_above_names_is_narrowed(self):
        _, text = self.narrowed("low::a::used();", lib="pub mod a;", a="pub fn used() {}\npub const fn unused() {}\n")
        self.assertEqual(text, "pub fn used() {}\npub(crate) const fn unused() {}\n")

    def test_a_name_counts_only_behind_its_module_and_not_in_comments_or_texts(self):
        above = 'use low::a; let free = 1; a::kept(); // a::comment\n "a::text";'
        _, text = self.narrowed(above, lib="pub mod a;", a="".join(f"pub fn {n}();" for n in ("free", "comment", "text")))
        self.assertEqual(text.count("pub(crate)"), 3)

    def test_a_module_that_nothing_above_names_hides_what_it_has(self):
        lib, text = self.narrowed("inner::Shown;", lib="mod inner;", inner="pub struct Shown;")
        self.assertEqual(text, "pub(crate) struct Shown;")

    def test_what_a_pub_use_shows_stays_under_either_name(self):
        above = "use low::{Shown, Other};"
        lib = "mod inner;\npub use inner::{Shown, Real as Other};"
        same, text = self.narrowed(above, lib=lib, inner="pub struct Shown;pub struct Real;")
        self.assertEqual((same, text), (lib, "pub struct Shown;pub struct Real;"))

    def test_a_use_of_which_a_part_is_used_becomes_two_with_its_attributes(self):
        lib = "#[cfg(unix)]\npub use inner::{Shown, Hidden};"
        text, _ = self.narrowed("low::Shown", lib=lib, inner="pub struct Shown;pub struct Hidden;")
        self.assertEqual(text, "#[cfg(unix)]\npub use inner::Shown;\n#[cfg(unix)]\npub(crate) use inner::Hidden;")

    def test_what_the_signature_of_an_item_that_stays_names_stays(self):
        lib = "pub fn shown() -> Vec<Given> {}\npub struct Given { pub field: Deep, pub other: Lost }\npub struct Deep;\npub struct Lost;"
        (text,) = self.narrowed("low::shown().field.x", lib=lib)
        self.assertEqual(text, lib.replace("pub other", "pub(crate) other").replace("pub struct Lost", "pub(crate) struct Lost"))

    def test_an_associated_type_of_a_type_that_stays_stays(self):
        lib = "pub struct Shown;\nimpl Iterator for Shown { type Item = Given; }\npub struct Given;"
        self.assertEqual(self.narrowed("low::Shown", lib=lib), [lib])

    def test_members_stay_with_their_type_and_as_they_are_called(self):
        lib = "pub struct Shown;\nimpl Shown {\npub fn new() {}\npub fn called(&self) {}\npub fn idle(&self) {}\n}\n"
        hidden = lib.replace("Shown", "Hidden")
        (text,) = self.narrowed("use low::Shown; x.called(); y.idle; Other::new();", lib=lib + hidden)
        self.assertEqual(text.count("pub fn called"), 1)
        self.assertEqual(text.count("pub(crate) fn called"), 1)
        self.assertEqual(text.count("pub(crate) fn idle"), 2)
        self.assertEqual(text.count("pub(crate) fn new"), 2)

    def test_a_structure_that_is_made_of_another_keeps_its_fields(self):
        lib = "pub struct Shown { pub a: u8, pub b: u8 }"
        self.assertEqual(self.narrowed("low::Shown { a: f(1), ..Shown::default() }", lib=lib), [lib])

    def test_what_a_macro_makes_members_of_is_not_told_from_others(self):
        lib = "macro_rules! made { () => { impl $name {\n pub fn any(&self) {}\n} } }"
        self.assertEqual(self.narrowed("", lib=lib), [lib])

    def test_what_a_script_writes_is_left_and_what_it_names_stays(self):
        lib = "//! Made of it by `scripts/wire.py`.\npub struct Made { pub a: Given }"
        same, given = self.narrowed("", lib=lib, given="pub struct Given;")
        self.assertEqual((same, given), (lib, "pub struct Given;"))

    def test_examples_of_the_documentation_are_outside(self):
        text = "//! ```text\n//! low::drawn\n//! ```\n//! ```no_run\n//! # use low::shown;\n//! ```\n"
        self.assertIn(("low", "shown"), self.file("a.rs", text).examples().pairs())
        self.assertNotIn(("low", "drawn"), self.file("a.rs", text).examples().pairs())


class Uses(unittest.TestCase):
    def test_a_tree_is_its_leaves(self):
        found = list(leaves("a::{self, b::{C as D, *}, e}"))
        self.assertEqual(
            found, [("a::self", "a", "a"), ("a::b::C", "C", "D"), ("a::b::*", "*", "*"), ("a::e", "e", "e")]
        )


if __name__ == "__main__":
    unittest.main()
