#!/usr/bin/env python3
"""notices.py - THIRD-PARTY.txt on stdout: whose code is in the program, and the texts of their licences, each once."""
import re
import sys

import crates

TEXTS = re.compile(r"(licen[sc]e|copying|notice|unlicense)[^/]*$", re.IGNORECASE)


def texts_of(package):
    files = sorted(path for path in crates.folder(package).iterdir() if path.is_file() and TEXTS.match(path.name))
    return [path.read_text(errors="replace").strip() for path in files]


def gathered():
    """Names by licence's text, which may be laid out differently, and the names whose package has none."""
    packages, _, _ = crates.linked()
    of_text, layout, without = {}, {}, []

    def add(text, name):
        text = layout.setdefault(" ".join(text.split()), text)
        of_text.setdefault(text, []).append(name)

    for package in sorted(packages.values(), key=lambda one: (one["name"], one["version"])):
        if package["source"] is None:
            continue
        name = f"{package['name']} {package['version']} ({package['license']})"
        texts = texts_of(package)
        for text in texts:
            add(text, name)
        if not texts:
            without.append(name)
    folders = {package["name"]: crates.folder(package) for package in packages.values()}
    for crate, name, version, licence, _, file in crates.CARRIED:
        text = (folders[crate] / file).read_text(errors="replace").strip()
        add(text, f"{name} {version or 'of ' + crate} ({licence})")
    return of_text, without


def main():
    of_text, without = gathered()
    out = sys.stdout
    out.write("gpuscope contains code of others, under these licences. libelf is used under LGPL-3.0-or-later: with the\n"
              "sources of gpuscope the program can be built again with any libelf (docs/dependencies.md).\n")
    for name, licence, url in crates.ADDED:
        out.write(f"\n{name} ({licence}), {url}")
    out.write("\n\nWithout a text of their own in their packages:\n" + "".join(f"  {name}\n" for name in without))
    for text, names in sorted(of_text.items(), key=lambda item: item[1]):
        out.write("\n" + "=" * 78 + "\n" + "\n".join(names) + "\n" + "-" * 78 + "\n" + text + "\n")


if __name__ == "__main__":
    main()
