# SPDX-License-Identifier: BSD-2-Clause
"""The installed hcasim: `meson install` into an empty DESTDIR, then its commands by a link, from another folder.

The source tree and the build are hidden meanwhile, and all but /tmp and /dev/shm is read-only, if this process
may make mounts of its own. Otherwise the commands run without that, and the test counts as skipped (exit status
77), because they could have used files of the tree.

usage: test_install.py BUILD SOURCE
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import hidden

SOURCE, BUILD = pathlib.Path(sys.argv.pop()).resolve(), pathlib.Path(sys.argv.pop()).resolve()
COMMANDS = ("run", "cluster", "sim", "conformance", "vm", "wires", "ctl", "switch", "top")
WIRE = f"install-{os.getpid()}"

class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="hcasim-install.", dir="/tmp"))
        subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", cls.folder],
                       check=True, stdout=subprocess.DEVNULL)
        found = list(cls.folder.glob("**/bin/hcasim"))
        assert len(found) == 1, found
        cls.prefix = found[0].parents[1]
        # It works wherever it is moved to.
        moved = cls.folder / "some where"
        cls.prefix.rename(moved)
        cls.prefix = moved
        cls.link = cls.folder / "link"
        cls.link.symlink_to(moved / "bin/hcasim")
        cls.way = hidden.way([SOURCE, BUILD], ["/tmp"]) or []
        cls.has_plugin = (BUILD / "qemu-dev/hcasim.so").exists()

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def hcasim(self, *words, status=0, **variables):
        # An installed hcasim does not know the variables of a source tree's tests.
        environment = {name: value for name, value in os.environ.items() if name != "HCASIM_CI"}
        done = subprocess.run([*self.way, self.link, *words], cwd="/", capture_output=True, text=True, timeout=120,
                              check=False, env={**environment, **variables})
        self.assertEqual(done.returncode, status, f"{words}: {done.stdout}{done.stderr}")
        return done

    def test_the_files_are_in_their_places(self):
        for name in ("bin/hcasim", "libexec/hcasim/libibverbs.so.1", "libexec/hcasim/libmlx5.so.1",
                     "libexec/hcasim/libhcasim.so", "libexec/hcasim/libhcasim-ibverbs.so",
                     "libexec/hcasim/libhcasim-mlx5.so", "libexec/hcasim/libhcasim-cuda.so",
                     "libexec/hcasim/cuda-standin/libcuda.so.1", "libexec/hcasim/hcasim-sim", "libexec/hcasim/cluster.py",
                     "libexec/hcasim/conformance", "libexec/hcasim/conformance-scripts/uc.txt",
                     "share/bash-completion/completions/hcasim", "share/hcasim/hcasim.lua", "share/doc/hcasim/README.md",
                     "share/man/man7/hcasim-device.7",
                     "share/man/man7/hcasim-wire.7",
                     *(f"share/man/man1/hcasim{command}.1" for command in ("", *(f"-{each}" for each in COMMANDS)))):
            self.assertTrue((self.prefix / name).exists(), name)

    def test_no_test_is_installed(self):
        self.assertEqual([file.name for file in (self.prefix / "bin").iterdir()], ["hcasim"])
        self.assertFalse(list(self.prefix.glob("**/test-*")))

    def test_its_own_texts(self):
        self.assertRegex(self.hcasim("--version").stdout, r"^hcasim \d+\.\d+\.\d+\n$")
        text = self.hcasim("help", "run").stdout
        self.assertTrue(text.startswith("usage: hcasim run "))
        self.assertNotIn("--build", text)
        self.assertIn("unknown option --build", self.hcasim("run", "--build", "/tmp", "true", status=2).stderr)
        for command in COMMANDS:
            page = (self.prefix / f"share/man/man1/hcasim-{command}.1").read_text()
            self.assertEqual(page, self.hcasim("--man", command).stdout)

    def test_run(self):
        done = self.hcasim("run", "--require", "--wire", WIRE, "--ip", "10.0.7.7", "ibv_devinfo")
        self.assertRegex(done.stdout, r"hca_id:\s+mlx5_0")
        done = self.hcasim("run", "--wire", WIRE, "cat", "/sys/class/infiniband/mlx5_0/ports/1/state")
        self.assertEqual(done.stdout, "4: ACTIVE\n")

    def test_experimental_verbs(self):
        """docs/howto/experimental-verbs.md: its example, compiled with the installed header, prints what the page shows."""
        docs, program = self.prefix / "share/doc/hcasim/docs", self.folder / "experimental"
        subprocess.run(["cc", "-I", self.prefix / "include/hcasim", docs / "examples/experimental.c", "-o", program,
                        "-libverbs"], check=True)
        shown = re.search("It prints:\n\n((?:    .*\n)+)", (docs / "howto/experimental-verbs.md").read_text())[1]
        self.assertEqual(self.hcasim("run", "--wire", WIRE, program).stdout, re.sub("^    ", "", shown, flags=re.M))

    def test_a_gpu(self):
        """The stand-in GPU, with the front before it and without."""
        asks = ("import ctypes; cuda = ctypes.CDLL('libcuda.so.1'); devices = ctypes.c_int(); cuda.cuInit(0); "
                "print(cuda.cuDeviceGetCount(ctypes.byref(devices)), devices.value)")
        for front in ("on", "off"):
            done = self.hcasim("run", "--fake-gpu", "--cuda-front", front, "python3", "-c", asks,
                               XDG_RUNTIME_DIR=str(self.folder))
            self.assertEqual((done.stdout, done.stderr), ("0 1\n", ""))

    def test_cluster(self):
        done = self.hcasim("cluster", "-n", "2", "--require", "ibv_devinfo")
        self.assertEqual(len(re.findall("PORT_ACTIVE", done.stdout)), 2)

    def test_sim(self):
        self.assertIn("1 passed, 0 failed, 0 skipped", self.hcasim("sim", "--workload", "uc").stdout)

    def test_conformance(self):
        self.assertRegex(self.hcasim("conformance", "--only", "READ").stdout, r"\n\d+ passed, 0 failed, 0 skipped\n$")

    def test_vm(self):
        """The guests themselves are in tests/vm/by-script."""
        plugin = self.prefix / "libexec/hcasim/hcasim.so"
        self.assertEqual(plugin.exists(), self.has_plugin)
        if not self.has_plugin:
            line = (f"hcasim: {plugin}, the plugin for QEMU, is missing: install the Debian package hcasim-qemu or, in "
                    "the source tree, run scripts/setup, ninja -C build and meson install -C build\n")
            self.assertEqual(self.hcasim("vm", "--", "true", status=125).stderr, line)
            return
        for name in ("vm.py", "guest", "guest-root", "guest.d/init", "guest.d/up"):
            self.assertTrue((self.prefix / "libexec/hcasim/vm/scripts/lib" / name).exists(), name)
        done = self.hcasim("vm", "--", "true", status=125, QEMU="/bin/true", XDG_CACHE_HOME="/proc/nothing")
        self.assertEqual(done.stderr, "guest: /proc/nothing/hcasim cannot be written: set XDG_CACHE_HOME to a folder "
                         "with 3 GB of room\nhcasim: the guest's system could not be prepared (see above)\n")


def main():
    done = unittest.main(exit=False).result
    if not done.wasSuccessful():
        return 1
    return 0 if Install.way else 77


if __name__ == "__main__":
    sys.exit(main())
