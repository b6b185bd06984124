#!/usr/bin/env python3
"""sbom.py - the bill of materials of a release as SPDX 2.3 JSON, on stdout: crates by Cargo.lock with their checksums, the C
libraries that they carry, what the compilers add.
usage: VERSION=V SOURCE_DATE_EPOCH=S sbom.py PROGRAM x86_64|aarch64"""
import datetime
import hashlib
import json
import os
import re
import sys

import crates

HOME = "https://github.com/gpuscope/gpuscope"


def identity(name, version):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", f"{name}-{version}" if version else name)


def licence(words):
    """Crates may say "MIT/Apache-2.0", which is no expression."""
    return (words or "NOASSERTION").replace("/", " OR ")


def package(name, version, words, location, **more):
    if version:
        more["versionInfo"] = version
    return {"SPDXID": identity(name, version), "name": name, "downloadLocation": location, "filesAnalyzed": False, "licenseConcluded": licence(words), "licenseDeclared": licence(words),
            "copyrightText": "NOASSERTION", "supplier": "NOASSERTION", **more}


def of_crate(one, sums):
    name, version = one["name"], one["version"]
    if one["source"] is None:
        return package(name, version, one["license"], HOME)
    more = {"externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                              "referenceLocator": f"pkg:cargo/{name}@{version}"}]}
    if (name, version) in sums:
        more["checksums"] = [{"algorithm": "SHA256", "checksumValue": sums[name, version]}]
    return package(name, version, one["license"], f"https://crates.io/api/v1/crates/{name}/{version}/download", **more)


def relation(one, kind, other):
    return {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}


def document(program, processor, version, epoch):
    packages, edges, root = crates.linked(processor)
    sums = crates.checksums()
    name_of = {key: identity(one["name"], one["version"]) for key, one in packages.items()}
    listed = [of_crate(one, sums) for one in packages.values()]
    relations = [relation("SPDXRef-DOCUMENT", "DESCRIBES", name_of[root])]
    relations += [relation(name_of[one], "DEPENDS_ON", name_of[other]) for one, other in edges]
    by_name = {one["name"]: key for key, one in packages.items()}
    for crate, name, at, words, url, _ in crates.CARRIED:
        at = at or packages[by_name[crate]]["version"].partition("zstd.")[2]
        listed.append(package(name, at, words, url))
        relations.append(relation(name_of[by_name[crate]], "CONTAINS", identity(name, at)))
    for name, words, url in crates.ADDED:
        at = crates.rustc() if name.startswith("rust") else None
        listed.append(package(name, at, words, url))
        relations.append(relation(name_of[root], "CONTAINS", identity(name, at)))
    for one in listed:
        if one["SPDXID"] == name_of[root]:
            digest = hashlib.sha256(open(program, "rb").read()).hexdigest()
            one.update(primaryPackagePurpose="APPLICATION", checksums=[{"algorithm": "SHA256", "checksumValue": digest}])
    created = datetime.datetime.fromtimestamp(int(epoch), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"gpuscope-{version}",
        "documentNamespace": f"{HOME}/releases/download/v{version}/gpuscope-{version}-{processor}.spdx.json",
        "creationInfo": {"created": created, "creators": ["Organization: The gpuscope authors", "Tool: scripts/release/sbom.py"]},
        "packages": sorted(listed, key=lambda one: one["SPDXID"]),
        "relationships": sorted(relations, key=lambda one: tuple(one.values())),
    }


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    made = document(sys.argv[1], sys.argv[2], os.environ["VERSION"], os.environ["SOURCE_DATE_EPOCH"])
    json.dump(made, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
