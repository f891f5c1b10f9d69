# SPDX-License-Identifier: BSD-2-Clause
"""`hcasim run` on machines with a CUDA driver, and without one: the front before the driver, and the stand-in GPU.

The driver is a library of the tests (tests/programs/cuda_driver.c), in a folder of LD_LIBRARY_PATH or of the loader's
cache. On a machine with a CUDA driver of its own, the tests that need a machine without one are skipped.

usage: test_cuda.py HCASIM
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HCASIM = pathlib.Path(sys.argv.pop(1)).resolve()
BUILD = HCASIM.parents[1]
PROGRAMS = BUILD / "tests/programs"
DRIVER = PROGRAMS / "libtest-cuda-driver.so"
WRONG_USE, FAILED = 2, 125
WIRE = f"cuda-{os.getpid()}"
WAYS = ("linked", "loaded", "reloaded", "old-runtime", "runtime")
MOUNTS = ["unshare", "--mount"] + ([] if os.getuid() == 0 else ["--user", "--map-root-user"])
DOORBELLS = ("page", "register", "IOMEMORY alone", "two pages")
# What the driver is asked without a front: 1 portable, 2 mapped, 4 IOMEMORY.
PLAIN = {"the library that is there": "the same", "page": "7", "register": "7", "page without IOMEMORY": "1",
         "IOMEMORY alone": "4", "two pages": "7", "two pages and a byte": "7", "memory": "7", "a byte before": "7",
         "no bytes": "7", "all bytes": "7", "private": "7", "other file": "7", "hole": "7"}
FRONT = PLAIN | {"libcuda.so": "the same", "page": "3", "register": "3", "IOMEMORY alone": "0", "two pages": "3"}
EXPORTS = {"the library that is there": "the same", "libcuda.so": "the same", "first": "1000 2000",
           "second": "3000 4000", "duplicate": "1000 2000",
           "other file": "unknown", "no file": "unknown", "a range that the driver refuses": "1",
           "first after that": "1000 2000",
           "first of the last 4095": "1000 2000", "older": "unknown", "newest": "5000 6000"}


def has_driver():
    """Whether the loader finds a CUDA driver of this machine."""
    script = "import ctypes, sys\ntry: ctypes.CDLL('libcuda.so.1')\nexcept OSError: sys.exit(1)"
    return not subprocess.run([sys.executable, "-c", script], check=False).returncode


def facts(done):
    """What cuda_front printed, by name."""
    return dict(line.split(": ", 1) if ": " in line else (line, "") for line in done.stdout.splitlines())


class Machine(unittest.TestCase):
    """A machine: a folder for what runs leave behind, and a folder with a CUDA driver."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hcasim test ", dir="/tmp")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.driver = self.folder / "a driver"
        self.state = self.folder / "some state"
        self.state.mkdir()
        self.driver.mkdir()
        (self.driver / "libcuda.so.1").symlink_to(DRIVER)
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("HCASIM_")}
        self.environment |= {"XDG_RUNTIME_DIR": str(self.state), "LD_LIBRARY_PATH": str(self.driver), "HCASIM_WIRE": WIRE}

    def run_in(self, *words, way=(), **variables):
        return subprocess.run([*way, HCASIM, "run", *words], capture_output=True, text=True, timeout=100, check=False,
                              env=self.environment | variables)

    def program(self, way, part, *options, **variables):
        """Runs cuda_front with these options of `hcasim run`. Returns what it printed."""
        path = PROGRAMS / f"cuda-front-{'linked' if way == 'linked' else 'loaded'}"
        done = self.run_in(*options, path, way, part, **variables)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return facts(done)

    def links(self, state=None):
        return sorted((state or self.state).glob("hcasim-cuda-*"))


class Front(Machine):
    def test_each_way_leads_to_the_front(self):
        for way in WAYS:
            self.assertEqual(self.program(way, "registers"), FRONT, way)

    def test_exports_are_known(self):
        for way in WAYS:
            self.assertEqual(self.program(way, "exports"), EXPORTS, way)

    def test_threads(self):
        found = self.program("runtime", "threads")
        self.assertEqual([value for name, value in found.items() if name.startswith("thread ")], ["right"] * 4)

    def test_it_can_be_switched_off(self):
        for way in WAYS:
            self.assertEqual(self.program(way, "registers", "--cuda-front", "off"), PLAIN, way)
        self.assertEqual(self.program("loaded", "registers", HCASIM_CUDA_FRONT="off"), PLAIN)
        self.assertEqual(self.program("loaded", "registers", "--cuda-front=on", HCASIM_CUDA_FRONT="off"), FRONT)
        self.assertEqual(len(self.links()), 1)
        done = self.run_in("--cuda-front", "maybe", "true")
        self.assertEqual((done.returncode, done.stderr),
                         (WRONG_USE, "hcasim: cuda_front must be on or off, but it is maybe\n"))

    def test_a_key_file_can_switch_it_off(self):
        file = self.folder / "settings"
        file.write_text("[hcasim]\ncuda_front=off\n", encoding="ascii")
        self.assertEqual(self.program("loaded", "registers", "--config", str(file)), PLAIN)

    def test_the_program_is_told_of_the_driver(self):
        version = "/sys/module/nvidia_peermem/version"
        for words in ([], ["--cuda-front", "off"], [HCASIM, "run"]):
            done = self.run_in(*words, "sh", "-c", f"echo $HCASIM_GPU; exec cat {version}")
            self.assertRegex(done.stdout, r"^real\n\d+\.\d+\.\d+\n$", done.stderr)
        # An outer run may have had another driver than this one.
        done = self.run_in("sh", "-c", f"echo $HCASIM_GPU; cat {version}", HCASIM_GPU="real", LD_LIBRARY_PATH="")
        if not has_driver():
            self.assertEqual(done.stdout, "\n")

    def test_the_streams_of_the_program_get_queues_of_their_own(self):
        name = "CUDA_DEVICE_MAX_CONNECTIONS"
        mps = self.folder / "mps"
        mps.mkdir()
        place = {"CUDA_MPS_PIPE_DIRECTORY": str(mps)}
        self.assertEqual(self.run_in("printenv", name, **place).stdout, "32\n")
        self.assertEqual(self.run_in("printenv", name, CUDA_DEVICE_MAX_CONNECTIONS="1").stdout, "1\n")
        # The processes of CUDA's MPS share the GPU's queues.
        (mps / "control").touch()
        for percent, queues in (("", 8), ("1", 8), ("25", 16), ("50", 32), ("100", 32), ("x", 8), ("nan", 8), ("-5", 8)):
            done = self.run_in("printenv", name, CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=percent, **place)
            self.assertEqual(done.stdout, f"{queues}\n", percent)
        if not has_driver():
            self.assertEqual(self.run_in("printenv", name, LD_LIBRARY_PATH="").stdout, "")

    def test_hcasim_does_not_load_the_driver(self):
        loaded = self.folder / "loaded"
        self.assertEqual(self.run_in("true", DRIVER_LOADED=str(loaded)).returncode, 0)
        self.assertEqual(self.run_in("ibv_devinfo", DRIVER_LOADED=str(loaded)).returncode, 0)
        self.assertFalse(loaded.exists())
        self.program("loaded", "registers", DRIVER_LOADED=str(loaded))
        self.assertTrue(loaded.exists(), "the test sees a driver that is loaded")

    def test_a_run_in_a_run(self):
        for outer, inner, expected in (([], [], FRONT), (["--cuda-front", "off"], [], PLAIN),
                                       ([], ["--cuda-front", "off"], PLAIN),
                                       (["--cuda-front", "off"], ["--cuda-front", "on"], FRONT)):
            done = self.run_in(*outer, HCASIM, "run", *inner, PROGRAMS / "cuda-front-loaded", "loaded", "registers")
            self.assertEqual((done.returncode, done.stderr, facts(done)), (0, "", expected))
        done = self.run_in(HCASIM, "run", HCASIM, "run", "--cuda-front", "off", "printenv", "LD_LIBRARY_PATH")
        self.assertNotIn("hcasim-cuda-", done.stdout)
        self.assertIn(f":{self.driver}\n", done.stdout)

    def test_a_cluster_has_it(self):
        done = subprocess.run([HCASIM, "cluster", "-n", "2", PROGRAMS / "cuda-front-loaded", "runtime", "registers"],
                              capture_output=True, text=True, timeout=100, check=False, env=self.environment)
        self.assertEqual((done.returncode, done.stdout.count("| page: 3\n")), (0, 2), done.stdout + done.stderr)

    def test_what_is_no_library_for_this_machine_is_skipped(self):
        """As the loader does."""
        other = self.folder / "other"
        other.mkdir()
        for content in (b"", b"no library", b"\x7fELF\x01\x01\x01" + bytes(57)):
            (other / "libcuda.so.1").write_bytes(content)
            self.assertEqual(self.program("loaded", "registers", LD_LIBRARY_PATH=f"{other}::{self.driver}"), FRONT)
            if content.startswith(b"\x7fELF"):
                self.assertEqual(os.readlink(self.links()[0] / "libcuda-of-the-system.so.1"),
                                 str(self.driver / "libcuda.so.1"))

    def test_folders_may_be_relative(self):
        done = subprocess.run([HCASIM, "run", PROGRAMS / "cuda-front-loaded", "loaded", "registers"], capture_output=True,
                              text=True, timeout=100, check=False, cwd=self.folder,
                              env=self.environment | {"LD_LIBRARY_PATH": "nothing:a driver"})
        self.assertEqual((done.returncode, done.stderr, facts(done)), (0, "", FRONT))


class Links(Machine):
    def test_many_runs_share_a_folder(self):
        words = [HCASIM, "run", PROGRAMS / "cuda-front-loaded", "loaded", "registers"]
        started = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                    env=self.environment | {"HCASIM_WIRE": f"{WIRE}-{i}"}) for i in range(8)]
        for each in started:
            with each:
                text = each.communicate(timeout=100)[0]
            self.assertEqual((each.returncode, facts(subprocess.CompletedProcess([], 0, text))), (0, FRONT))
        self.assertEqual(len(self.links()), 1)
        self.assertEqual(sorted(file.name for file in self.links()[0].iterdir()),
                         ["libcuda-of-the-system.so.1", "libcuda.so", "libcuda.so.1"])

    def test_a_folder_that_lacks_a_link_is_made_again(self):
        self.assertEqual(self.run_in("true").returncode, 0)
        for name in ("libcuda-of-the-system.so.1", "libcuda.so.1"):
            (self.links()[0] / name).unlink()
            self.assertEqual(self.program("loaded", "registers"), FRONT)
        self.assertEqual(len(self.links()), 1)

    def test_a_folder_that_others_may_change_is_not_used(self):
        self.assertEqual(self.run_in("true").returncode, 0)
        folder, = self.links()
        folder.chmod(0o777)
        done = self.run_in("printenv", "LD_LIBRARY_PATH")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertNotIn(str(self.state), done.stdout)
        used = pathlib.Path(re.search(r"/\w[^:]*/hcasim-cuda-[^:]*", done.stdout)[0])
        self.addCleanup(shutil.rmtree, used)
        self.assertEqual(used.parent, pathlib.Path("/tmp"))

    def test_the_links_of_what_is_gone_are_removed(self):
        def clean():
            """The folders in this state that are removed. A question mark stands for a blank."""
            text = subprocess.run([HCASIM, "wires", "--clean"], capture_output=True, text=True, timeout=100, check=True,
                                  env=self.environment).stdout
            return re.findall(re.escape(str(self.state).replace(" ", "?")) + r"/(.*)\n", text)

        self.assertEqual(self.run_in("true").returncode, 0)
        folder, = self.links()
        unfinished = self.state / "hcasim-cuda-abcdef"
        unfinished.mkdir(0o700)
        # Young folders stay: the run that makes them may not have finished.
        (self.driver / "libcuda.so.1").rename(self.driver / "away")
        self.assertEqual(clean(), [])
        for each in (folder, unfinished):
            os.utime(each, (1, 1))
        (self.driver / "away").rename(self.driver / "libcuda.so.1")
        self.assertEqual(clean(), [unfinished.name])
        (self.driver / "libcuda.so.1").unlink()
        self.assertEqual(clean(), [folder.name])
        self.assertEqual(self.links(), [])

    def test_a_new_folder_sweeps_the_old_ones(self):
        self.assertEqual(self.run_in("true").returncode, 0)
        folder, = self.links()
        other = self.folder / "other driver"
        self.driver.rename(other)
        os.utime(folder, (1, 1))
        self.assertEqual(self.program("loaded", "registers", LD_LIBRARY_PATH=str(other)), FRONT)
        self.assertEqual(len(self.links()), 1)
        self.assertNotEqual(self.links(), [folder])

    def test_if_no_place_can_have_links_a_line_says_so(self):
        read_only = "mount -t tmpfs -o ro tmpfs {}; "
        way = [*MOUNTS, "sh", "-ec", 'cp -r "$1" /mnt/driver; ' + "".join(map(read_only.format, ("/tmp", "/dev/shm"))) +
               'shift; exec env XDG_RUNTIME_DIR=/proc LD_LIBRARY_PATH=/mnt/driver "$@"', "sh"]
        if subprocess.run([*way[:-2], "mount -t tmpfs tmpfs /mnt", "sh"], capture_output=True, check=False).returncode:
            self.skipTest("no mount namespace can be made here")
        way[-2] = "mount -t tmpfs tmpfs /mnt; " + way[-2]
        done = self.run_in("--cuda-front=on", "printenv", "LD_LIBRARY_PATH", way=[*way, self.driver])
        self.assertEqual((done.returncode, done.stderr),
                         (0, "hcasim: a GPU cannot ring doorbells, because no folder for the links of the CUDA driver's front "
                          "can be made: Read-only file system\n"))
        self.assertNotIn("hcasim-cuda-", done.stdout)


class Places(Machine):
    def test_the_cache_of_the_loader(self):
        """A cache of its own, in a mount namespace, names the folder of the driver."""
        cache = self.folder / "cache"
        (self.folder / "conf").write_text(f"{self.driver}\n", encoding="utf-8")
        for kind in ("new", "compat"):
            subprocess.run(["/sbin/ldconfig", "-X", "-c", kind, "-C", cache, "-f", self.folder / "conf"], check=True,
                           capture_output=True)
            way = [*MOUNTS, "sh", "-ec", 'mount --bind "$1" /etc/ld.so.cache; shift; exec "$@"', "sh", cache]
            if subprocess.run([*way, "true"], capture_output=True, check=False).returncode:
                self.skipTest("no mount namespace can be made here")
            done = self.run_in(PROGRAMS / "cuda-front-loaded", "loaded", "registers", way=way, LD_LIBRARY_PATH="")
            self.assertEqual((done.returncode, done.stderr, facts(done)), (0, "", FRONT), kind)

    @unittest.skipIf(has_driver(), "this machine has a CUDA driver")
    def test_without_a_driver_nothing_changes(self):
        plain = {"LD_LIBRARY_PATH": str(self.folder)}
        without = self.run_in("--cuda-front=off", "env", **plain)
        done = self.run_in("env", **plain)
        drop = re.compile(r"^(HCASIM_RUN|HCASIM_CUDA_FRONT)=.*\n", re.M)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(drop.sub("", done.stdout), drop.sub("", without.stdout))
        self.assertEqual(list(self.state.iterdir()), [])
        (PROGRAMS / "cuda-front-loaded").stat()
        done = self.run_in(PROGRAMS / "cuda-front-loaded", "loaded", "registers", **plain)
        self.assertEqual((done.returncode, done.stdout), (1, "no libcuda.so.1\n"))


class FakeGpu(Machine):
    GPU = {"device": "mlx5_0", "init": "0", "get device": "0", "context": "0", "current": "0", "allocate": "0",
           "copy to it": "0", "copy from it": "0", "data": "to the GPU", "export": "0", "export is known": "0",
           "its range": "right", "register memory": "0", "register dma-buf": "0", "end of the PD": "0",
           "doorbell page as memory": "0", "its end": "0", "doorbell page": "0"}
    INVALID_VALUE = "1"

    def gpu(self, *options, **variables):
        done = self.run_in(*options, PROGRAMS / "cuda-gpu", **variables)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return facts(done)

    def test_a_program_has_a_gpu_and_an_hca(self):
        """Whether the machine has a CUDA driver or not."""
        for path in (str(self.driver), ""):
            self.assertEqual(self.gpu("--fake-gpu", LD_LIBRARY_PATH=path), self.GPU)
            self.assertEqual(self.gpu(LD_LIBRARY_PATH=path, HCASIM_FAKE_GPU="1"), self.GPU)

    def test_it_refuses_what_the_driver_refuses(self):
        """Without the front, a doorbell page is memory."""
        self.assertEqual(self.gpu("--fake-gpu", "--cuda-front=off", LD_LIBRARY_PATH=""),
                         self.GPU | {"doorbell page": self.INVALID_VALUE})
        self.assertEqual(self.links(), [])

    def test_a_run_in_a_run(self):
        """The inner run may have another driver than the outer one."""
        again = [HCASIM, "run"]
        self.assertEqual(self.gpu("--fake-gpu", *again, "--cuda-front=on"), self.GPU)
        self.assertEqual(self.gpu("--cuda-front=off", *again, "--fake-gpu"), self.GPU | {"doorbell page": self.INVALID_VALUE})
        for front in ("on", "off"):
            found = self.program("loaded", "registers", "--fake-gpu", f"--cuda-front={front}", "env", "HCASIM_FAKE_GPU=0",
                                 *again, "--cuda-front=on")
            self.assertEqual(found, FRONT)

    def test_the_stand_in_of_another_hcasim_is_no_driver(self):
        """Nor a folder of links. Meson puts the folders of libraries into LD_LIBRARY_PATH."""
        for name in ("build/guest-lib/cuda/standin", "libexec/hcasim/cuda-standin", "hcasim-cuda-0-0123456789abcdef"):
            other = self.folder / name
            other.mkdir(parents=True)
            (other / "libcuda.so.1").symlink_to(DRIVER)
            done = self.run_in("printenv", "LD_LIBRARY_PATH", LD_LIBRARY_PATH=f"{other}:{self.folder}")
            self.assertNotIn(name, done.stdout)
            self.assertTrue(done.stdout.endswith(f":{self.folder}\n"), done.stdout)
            if not has_driver():
                self.assertEqual(self.links(), [])

    def test_the_program_is_told_of_it(self):
        self.assertEqual(self.run_in("--fake-gpu", "printenv", "HCASIM_GPU").stdout, "fake\n")


class Missing(Machine):
    """A build in which libraries are missing."""

    def setUp(self):
        super().setUp()
        self.build = self.folder / "build"
        (self.build / "cli").mkdir(parents=True)
        for name in ("hcasim", "source-tree"):
            shutil.copy(HCASIM.parent / name, self.build / "cli")
        (self.build / "guest-lib").mkdir()
        (self.build / "guest-lib/verbs").symlink_to(BUILD / "guest-lib/verbs")

    def refused(self, library, *words, **variables):
        done = subprocess.run([self.build / "cli/hcasim", "run", *words, "echo", "ran"], capture_output=True, text=True,
                              timeout=100, check=False, env=self.environment | variables)
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (FAILED, "", f"hcasim: {self.build}/guest-lib/cuda/{library} is not built: run scripts/setup verbs, "
                          "then ninja -C build\n"))

    def test_a_front_that_is_missing_is_named(self):
        self.refused("libhcasim-cuda.so")
        self.assertEqual(self.links(), [])

    def test_a_stand_in_that_is_missing_is_named(self):
        self.refused("standin/libcuda.so.1", "--fake-gpu")
        self.refused("standin/libcuda.so.1", HCASIM_FAKE_GPU="1")
        self.refused("standin/libcuda.so.1", "--fake-gpu", LD_LIBRARY_PATH="")
        self.assertEqual(self.links(), [])


if __name__ == "__main__":
    unittest.main()
