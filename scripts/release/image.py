#!/usr/bin/env python3
"""image.py - writes an OCI image: two layers, which hold nothing but glibc and the program, the same for the same input.
usage: VERSION=V SOURCE_DATE_EPOCH=S GPUSCOPE_BASE=ROOT [GPUSCOPE_COMMIT=C] image.py STAGE TO.tar x86_64|aarch64"""
import datetime
import gzip
import hashlib
import io
import json
import os
import sys
import tarfile
from pathlib import Path

NAME = "ghcr.io/gpuscope/gpuscope"
# As OCI calls the processor, where its libraries lie, and where programs look for the dynamic linker.
PROCESSORS = {
    "x86_64": ("amd64", "x86_64-linux-gnu", "usr/lib64/ld-linux-x86-64.so.2"),
    "aarch64": ("arm64", "aarch64-linux-gnu", "usr/lib/ld-linux-aarch64.so.1"),
}
# Of glibc: what the program and NVML are linked to, and how names of hosts are found.
GLIBC = ["libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0", "libresolv.so.2", "librt.so.1",
         "libutil.so.1", "libnss_dns.so.2", "libnss_files.so.2"]
TEXTS = {
    "etc/passwd": "root:x:0:0:root:/:/sbin/nologin\nnobody:x:65534:65534:nobody:/:/sbin/nologin\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}


class Layer:
    """A layer as it grows: folders come before what is in them."""

    def __init__(self, epoch):
        self.bytes, self.epoch, self.folders = io.BytesIO(), epoch, {""}
        self.tar = tarfile.open(fileobj=self.bytes, mode="w", format=tarfile.USTAR_FORMAT)

    def _add(self, name, kind, mode, content=b"", link=""):
        self._parents(name)
        entry = tarfile.TarInfo(name)
        entry.type, entry.mode, entry.mtime, entry.size, entry.linkname = kind, mode, self.epoch, len(content), link
        self.tar.addfile(entry, io.BytesIO(content))

    def _parents(self, name):
        parent = name.rpartition("/")[0]
        if parent not in self.folders:
            self.folder(parent)

    def folder(self, name, mode=0o755):
        self._parents(name)
        self.folders.add(name)
        self._add(name, tarfile.DIRTYPE, mode)

    def file(self, name, content, mode=0o644):
        self._add(name, tarfile.REGTYPE, mode, content)

    def link(self, name, to):
        self._add(name, tarfile.SYMTYPE, 0o777, link=to)

    def finished(self):
        self.tar.close()
        return self.bytes.getvalue()


def base(root, epoch, processor):
    _, folder, linker = PROCESSORS[processor]
    layer = Layer(epoch)
    layer.link("lib", "usr/lib")
    layer.link("lib64", "usr/lib64")
    layer.folder("tmp", 0o1777)
    for name, text in TEXTS.items():
        layer.file(name, text.encode())
    for name in [linker.rpartition("/")[2], *GLIBC]:
        layer.file(f"usr/lib/{folder}/{name}", (root / "lib" / folder / name).read_bytes(), 0o755)
    layer.link(linker, f"/usr/lib/{folder}/" + linker.rpartition("/")[2])
    layer.file("usr/share/doc/libc6/copyright", (root / "usr/share/doc/libc6/copyright").read_bytes())
    return layer.finished()


def program(stage, epoch):
    layer = Layer(epoch)
    layer.file("usr/bin/gpuscope", (stage / "gpuscope").read_bytes(), 0o755)
    layer.folder("var/lib/gpuscope")
    for name in ["LICENSE", "LICENSE-APACHE", "LICENSE-MIT", "THIRD-PARTY.txt"]:
        layer.file(f"usr/share/doc/gpuscope/{name}", (stage / name).read_bytes())
    return layer.finished()


def digest(content):
    return hashlib.sha256(content).hexdigest()


class Layout:
    """The blobs, by their digests."""

    def __init__(self):
        self.blobs = {}

    def put(self, kind, content):
        key = digest(content)
        self.blobs[key] = content
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{key}", "size": len(content)}

    def put_json(self, kind, value):
        return self.put(kind, json.dumps(value, separators=(",", ":")).encode())


def configuration(layers, created, labels, processor):
    return {
        "architecture": PROCESSORS[processor][0], "os": "linux", "created": created,
        "config": {
            # Capabilities that a runtime adds reach only root; it is given no others (deploy/kubernetes).
            "User": "0", "ExposedPorts": {"9748/tcp": {}}, "WorkingDir": "/",
            # NVML comes with the NVIDIA container toolkit.
            "Env": ["PATH=/usr/bin", "NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=utility",
                    "STATE_DIRECTORY=/var/lib/gpuscope"],
            "Entrypoint": ["/usr/bin/gpuscope"], "Cmd": ["serve", "--listen", "0.0.0.0:9748"], "Labels": labels,
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest(layer)}" for layer in layers]},
        "history": [{"created": created, "created_by": "scripts/release/image.py", "comment": what}
                    for what in ["glibc of Debian 12", "gpuscope"]],
    }


def image(stage, root, version, commit, epoch, packages, processor):
    created = datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    labels = {
        "org.opencontainers.image.title": "gpuscope", "org.opencontainers.image.version": version,
        "org.opencontainers.image.revision": commit, "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
        "org.opencontainers.image.source": "https://github.com/gpuscope/gpuscope",
        "org.opencontainers.image.base.name": packages,
    }
    layers = [base(root, epoch, processor), program(stage, epoch)]
    layout = Layout()
    packed = [layout.put("layer.v1.tar+gzip", gzip.compress(layer, 9, mtime=0)) for layer in layers]
    config = layout.put_json("config.v1+json", configuration(layers, created, labels, processor))
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config,
                "layers": packed, "annotations": labels}
    named = layout.put_json("manifest.v1+json", manifest)
    named["annotations"] = {"org.opencontainers.image.ref.name": version, "io.containerd.image.name": f"{NAME}:{version}"}
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [named]}
    blob = lambda one: "blobs/sha256/" + one["digest"].partition(":")[2]
    docker = [{"Config": blob(config), "RepoTags": [f"{NAME}:{version}"], "Layers": [blob(one) for one in packed]}]
    return layout, index, docker, sum(one["size"] for one in packed)


def main():
    if len(sys.argv) != 4 or sys.argv[3] not in PROCESSORS:
        sys.exit(__doc__)
    epoch = int(os.environ["SOURCE_DATE_EPOCH"])
    packages = os.environ.get("GPUSCOPE_BASE_PACKAGES", "")
    layout, index, docker, size = image(Path(sys.argv[1]), Path(os.environ["GPUSCOPE_BASE"]), os.environ["VERSION"],
                                        os.environ.get("GPUSCOPE_COMMIT", ""), epoch, packages, sys.argv[3])
    archive = Layer(epoch)
    archive.file("oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
    archive.file("index.json", json.dumps(index).encode())
    archive.file("manifest.json", json.dumps(docker).encode())
    for key, content in sorted(layout.blobs.items()):
        archive.file(f"blobs/sha256/{key}", content)
    Path(sys.argv[2]).write_bytes(archive.finished())
    print(f"image: {size / 1e6:.1f} MB of compressed layers")


if __name__ == "__main__":
    main()
