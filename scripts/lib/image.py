# SPDX-License-Identifier: BSD-2-Clause
"""usage: image.py FOLDER NAME:TAG FILE

Writes FILE, a container image with one layer, the content of FOLDER. The file has the layout of the Open Container
Initiative (index.json), and also the manifest.json of `docker save`: `docker load` and `podman load` take it.
"""
import hashlib
import io
import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile

BLOBS = "blobs/sha256/"
CHUNK = 1 << 20
# The extended headers, which --xattrs needs, would have the times of access and tar's process id. Then the same
# folder would be another layer each time.
SAME_AGAIN = ("--format=posix", "--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime")


def digest_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while data := file.read(CHUNK):
            digest.update(data)
    return digest.hexdigest()


def packed(value):
    return json.dumps(value, indent=1, sort_keys=True).encode()


class Image:
    def __init__(self, path):
        self.tar = tarfile.open(path, "w", format=tarfile.GNU_FORMAT)  # pylint: disable=consider-using-with

    def put(self, name, data):
        info = tarfile.TarInfo(name)
        info.size, info.mode = len(data), 0o644
        self.tar.addfile(info, io.BytesIO(data))

    def blob(self, kind, data):
        """Stores it; returns what refers to it."""
        digest = hashlib.sha256(data).hexdigest()
        self.put(BLOBS + digest, data)
        return {"mediaType": f"application/vnd.oci.image.{kind}+json", "digest": f"sha256:{digest}", "size": len(data)}

    def layer(self, path):
        digest = digest_of(path)
        info = tarfile.TarInfo(BLOBS + digest)
        info.size, info.mode = pathlib.Path(path).stat().st_size, 0o644
        with open(path, "rb") as file:
            self.tar.addfile(info, file)
        return {"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": f"sha256:{digest}", "size": info.size}


def main():
    folder, name, path = sys.argv[1:]
    with tempfile.NamedTemporaryFile(dir=pathlib.Path(path).resolve().parent, suffix=".layer") as file:
        subprocess.run(["tar", "--create", "--file", file.name, "--directory", folder, "--numeric-owner", "--sort=name",
                        "--xattrs", "--one-file-system", *SAME_AGAIN, "."], check=True)
        image = Image(path)
        layer = image.layer(file.name)
    config = image.blob("config.v1", packed({
        "architecture": "amd64", "os": "linux",
        "config": {"Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8"],
                   "Cmd": ["bash"]},
        "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]}}))
    manifest = image.blob("manifest.v1", packed({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                                                 "config": config, "layers": [layer]}))
    manifest["annotations"] = {"org.opencontainers.image.ref.name": name}
    image.put("oci-layout", packed({"imageLayoutVersion": "1.0.0"}))
    image.put("index.json", packed({"schemaVersion": 2, "manifests": [manifest]}))
    image.put("manifest.json", packed([{"Config": BLOBS + config["digest"].partition(":")[2], "RepoTags": [name],
                                        "Layers": [BLOBS + layer["digest"].partition(":")[2]]}]))
    image.tar.close()


main()
