# SPDX-License-Identifier: BSD-2-Clause
"""The parts of scripts/package: which needs of a program needs.py finds, and the layout of the image that image.py writes.

usage: test_package.py SOURCE

The programs are linked with C libraries that the test makes: empty ones, which have the versions that a case asks for.
"""
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest

LIB = pathlib.Path(sys.argv.pop()) / "scripts/lib"


class Folder(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory(prefix="hcasim-package.")  # pylint: disable=consider-using-with
        self.addCleanup(held.cleanup)
        self.folder = pathlib.Path(held.name)

    def script(self, name, *words):
        return subprocess.run([sys.executable, "-B", LIB / name, *words], capture_output=True, text=True, check=False)


class Needs(Folder):
    """needs.py on one program."""

    def library(self, soname, versions):
        """A library that defines a symbol in each of the versions, sym0 and so on."""
        path = self.folder / soname
        source = "".join(f"void sym{index}(void); void sym{index}(void) {{}}\n" for index in range(len(versions)))
        script = self.folder / "map"
        script.write_text("".join(f"{version} {{ sym{index}; }};\n" for index, version in enumerate(versions)))
        self.link(path, source, "-shared", f"-Wl,-soname,{soname}", f"-Wl,--version-script,{script}")
        return path

    def link(self, path, source, *words):
        file = self.folder / "source.c"
        file.write_text(source)
        subprocess.run(["cc", "-nostdlib", "-fPIC", "-o", path, file, *words], check=True)

    def judged(self, *versions, soname="libc.so.6", name="program"):
        """needs.py on a program that needs the versions of a library."""
        library = self.library(soname, versions)
        tree = self.folder / "tree"
        tree.mkdir()
        calls = "".join(f"    sym{index}();\n" for index in range(len(versions)))
        declared = "".join(f"void sym{index}(void);\n" for index in range(len(versions)))
        self.link(tree / name, f"{declared}void begin(void);\nvoid begin(void)\n{{\n{calls}}}\n", "-pie", "-Wl,-e,begin",
                  library)
        return self.script("needs.py", tree)

    def refused(self, text, *versions, **how):
        done = self.judged(*versions, **how)
        self.assertEqual((done.returncode, done.stdout), (1, ""), done)
        self.assertIn(text, done.stderr)

    def test_a_version_that_all_releases_have(self):
        done = self.judged("GLIBC_2.2.5", "GLIBC_2.34")
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("1 programs and libraries need glibc 2.34: RHEL 9, ", done.stdout)

    def test_a_newer_version(self):
        self.refused("needs GLIBC_2.38 (sym1), which Ubuntu 22.04 does not have (glibc 2.35)", "GLIBC_2.34", "GLIBC_2.38")

    def test_a_private_version(self):
        self.refused("needs GLIBC_PRIVATE (sym1), which differs from build to build", "GLIBC_2.34", "GLIBC_PRIVATE")

    def test_packed_relocations(self):
        self.refused("needs GLIBC_ABI_DT_RELR (sym1), which Ubuntu 22.04 does not have", "GLIBC_2.34", "GLIBC_ABI_DT_RELR")

    def test_a_version_that_no_symbol_has(self):
        """With packed relocations, the linker itself asks for the version: no symbol of the program has it."""
        library = self.library("libc.so.6", ["GLIBC_2.34", "GLIBC_ABI_DT_RELR"])
        tree = self.folder / "tree"
        tree.mkdir()
        packed = "-Wl,-z,pack-relative-relocs"
        source = "void sym0(void);\nstatic int one, *table[] = {&one, &one, &one};\nint **begin(void);\n" \
                 "int **begin(void)\n{\n    sym0();\n    return table;\n}\n"
        self.link(tree / "program", source, "-pie", "-Wl,-e,begin", packed, library)
        sections = subprocess.run(["readelf", "--wide", "--sections", tree / "program"], capture_output=True, text=True,
                                  check=True).stdout
        if ".relr.dyn" not in sections:
            self.skipTest("this linker does not pack relocations")
        done = self.script("needs.py", tree)
        self.assertIn("needs GLIBC_ABI_DT_RELR, which RHEL 9 does not have", done.stderr)

    def test_an_unknown_version(self):
        self.refused("needs GLIBC_ABI_TEA (sym0), and it is unknown which glibc has this", "GLIBC_ABI_TEA")

    def test_another_library(self):
        self.refused("program: needs libtea.so.1", "TEA_1", soname="libtea.so.1")

    def test_the_helper_may_need_rdma_core(self):
        done = self.judged("IBVERBS_1.1", soname="libibverbs.so.1", name="conformance-helper")
        self.assertEqual(done.returncode, 0, done)

    def test_but_no_private_versions_of_it(self):
        self.refused("needs IBVERBS_PRIVATE_44 (sym0), which differs", "IBVERBS_PRIVATE_44", soname="libibverbs.so.1",
                     name="conformance-helper")

    def test_a_folder_without_programs(self):
        done = self.script("needs.py", self.folder)
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("has no program", done.stderr)


class Image(Folder):
    """image.py, and what docker and podman read of its file."""

    def setUp(self):
        super().setUp()
        root = self.folder / "root"
        (root / "bin").mkdir(parents=True)
        (root / "bin/program").write_text("#!/bin/sh\n")
        (root / "bin/program").chmod(0o755)
        (root / "bin/link").symlink_to("program")
        file = self.folder / "image.tar"
        done = self.script("image.py", root, "tea:1.2", file)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        self.assertEqual(sorted(os.listdir(self.folder)), ["image.tar", "root"])
        with tarfile.open(file) as tar:
            self.members = {member.name: tar.extractfile(member).read() for member in tar if member.isfile()}

    def json(self, name):
        return json.loads(self.members[name])

    def blob(self, reference):
        """The content that a descriptor of the OCI layout names, after a check of its digest and size."""
        kind, _, digest = reference["digest"].partition(":")
        data = self.members[f"blobs/{kind}/{digest}"]
        self.assertEqual((kind, hashlib.sha256(data).hexdigest(), len(data)), ("sha256", digest, reference["size"]))
        return data

    def test_layout_of_the_open_container_initiative(self):
        """OCI image specification 1.0: image-layout.md, manifest.md, config.md."""
        self.assertEqual(self.json("oci-layout"), {"imageLayoutVersion": "1.0.0"})
        index = self.json("index.json")
        self.assertEqual((index["schemaVersion"], len(index["manifests"])), (2, 1))
        reference = index["manifests"][0]
        self.assertEqual(reference["annotations"], {"org.opencontainers.image.ref.name": "tea:1.2"})
        self.assertEqual(reference["mediaType"], "application/vnd.oci.image.manifest.v1+json")
        manifest = json.loads(self.blob(reference))
        self.assertEqual((manifest["schemaVersion"], len(manifest["layers"])), (2, 1))
        self.assertEqual(manifest["layers"][0]["mediaType"], "application/vnd.oci.image.layer.v1.tar")
        self.assertEqual(manifest["config"]["mediaType"], "application/vnd.oci.image.config.v1+json")
        config = json.loads(self.blob(manifest["config"]))
        self.assertEqual((config["os"], config["architecture"], config["rootfs"]["type"]), ("linux", "amd64", "layers"))
        layer = self.blob(manifest["layers"][0])
        self.assertEqual(config["rootfs"]["diff_ids"], [f"sha256:{hashlib.sha256(layer).hexdigest()}"])

    def test_layout_of_docker_save(self):
        """What `docker load` reads: the names of config and layers are paths in the file."""
        one, = self.json("manifest.json")
        self.assertEqual(one["RepoTags"], ["tea:1.2"])
        config = self.json(one["Config"])
        layers = [f"sha256:{hashlib.sha256(self.members[name]).hexdigest()}" for name in one["Layers"]]
        self.assertEqual(config["rootfs"]["diff_ids"], layers)

    def test_the_layer_is_the_folder(self):
        one, = self.json("manifest.json")
        (self.folder / "layer.tar").write_bytes(self.members[one["Layers"][0]])
        with tarfile.open(self.folder / "layer.tar") as tar:
            kept = {os.path.normpath(member.name): member for member in tar}
        self.assertEqual(sorted(kept), [".", "bin", "bin/link", "bin/program"])
        self.assertEqual(kept["bin/program"].mode, 0o755)
        self.assertEqual(kept["bin/link"].linkname, "program")

    def test_two_images_of_a_folder_have_one_layer(self):
        again = self.folder / "again.tar"
        self.script("image.py", self.folder / "root", "tea:1.3", again)
        with tarfile.open(again) as tar:
            names = {member.name for member in tar}
        one, = self.json("manifest.json")
        self.assertIn(one["Layers"][0], names)


if __name__ == "__main__":
    unittest.main()
