# SPDX-License-Identifier: BSD-2-Clause
"""`hcasim wires`: what it lists, what it removes, and that it harms no wire in use; what killed programs leave is
removed by the next `hcasim run`.

All tests run in a mount namespace with a /dev/shm and a /tmp of their own. If this process cannot make one, they are
skipped.

usage: test_wires.py HCASIM
"""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import unittest

HCASIM = pathlib.Path(sys.argv.pop(1)).resolve()
INSIDE, SKIPPED = "HCASIM_TEST_INSIDE", 77
SHM = pathlib.Path("/dev/shm")
PATIENCE = 60
COLUMNS = "WIRE HOST PROCESS PROGRAM ADDRESS STATE AGE MEMORY FILE".split()
JOINERS, JOINS = 2, 15      # while others list and remove wires all the time


def hcasim(*words, **options):
    return subprocess.run([HCASIM, *words], capture_output=True, text=True, timeout=PATIENCE, check=False, **options)


def segment(wire):
    return SHM / f"hcasim-{os.getuid()}-{wire}"


def wires(*words):
    """Returns the list of wires, as dictionaries."""
    return json.loads(hcasim("wires", "--json", *words).stdout)


def hosts(wire):
    """Returns the living hosts of a wire."""
    return [host for view in wires(wire) for host in view["hosts"] if host["alive"]]


def wait_until(condition):
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, "it does not become true"
        time.sleep(0.02)


@contextlib.contextmanager
def host(wire, *options, port=18535):
    """Starts a program that has opened its device and waits for a client."""
    before = len(hosts(wire))
    command = ["ibv_rc_pingpong", "-d", "mlx5_0", "-g", "1", "-n", "10", "-p", str(port)]
    with subprocess.Popen([HCASIM, "run", "--wire", wire, *options, "--", *command], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: len(hosts(wire)) > before and all("mac" in each for each in hosts(wire)))
            yield process
        finally:
            process.kill()


class Wires(unittest.TestCase):
    def tearDown(self):
        hcasim("wires", "--clean")
        for path in SHM.iterdir():
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()

    def rows(self, *words):
        done = hcasim("wires", *words)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = done.stdout.splitlines()
        self.assertEqual(lines[0].split(), COLUMNS)
        starts = [lines[0].index(title) for title in COLUMNS]
        for line in lines[1:]:     # it is aligned
            self.assertFalse([start for start in starts[1:] if line[start - 1] != " " or line[start] == " "], line)
        return [dict(zip(COLUMNS, line.split())) for line in lines[1:]]


class Lists(Wires):
    def test_no_wire_is_no_line(self):
        done = hcasim("wires")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.assertEqual(wires(), [])

    def test_hosts_are_listed(self):
        with host("lab", "--host", "7") as one, host("lab", "--ip", "10.0.9.9", port=18536) as two:
            before = segment("lab").stat()
            rows = {row["ADDRESS"]: row for row in self.rows()}
            self.assertEqual(set(rows), {"10.0.0.7", "10.0.9.9"})
            for address, number, process in (("10.0.0.7", 7, one), ("10.0.9.9", 1, two)):
                row = rows[address]
                self.assertEqual([row[name] for name in ("WIRE", "HOST", "PROCESS", "PROGRAM", "STATE", "FILE")],
                                 ["lab", str(number), str(process.pid), "ibv_rc_pingpong", "alive", str(segment("lab"))])
                self.assertRegex(row["AGE"], r"^\d+s$")
                self.assertRegex(row["MEMORY"], r"^0\.\dM$")
            # Listing does not join the wire, and writes nothing.
            after = segment("lab").stat()
            self.assertEqual((before.st_mtime_ns, before.st_blocks), (after.st_mtime_ns, after.st_blocks))
            self.assertEqual(sorted(path.name for path in SHM.iterdir()),
                             sorted(segment("lab").name + suffix for suffix in ("", ".0", ".1")))

    def test_the_list_is_also_json(self):
        with host("lab", "--host", "7", "--mac", "02:00:00:00:00:07") as process:
            (view,) = wires()
            self.assertEqual([view[name] for name in ("wire", "file", "state")], ["lab", str(segment("lab")), "in-use"])
            self.assertEqual(view["hosts"], [{"number": 7, "process": process.pid, "program": "ibv_rc_pingpong",
                                              "mac": "02:00:00:00:00:07", "macs": 1, "open": True, "alive": True}])
            self.assertEqual(self.rows()[0]["ADDRESS"], "02:00:00:00:00:07")

    def test_a_host_without_an_open_device_has_no_address(self):
        with subprocess.Popen([HCASIM, "run", "--wire", "lab", "--", "python3", "-c",
                               "import ctypes, signal; library = ctypes.CDLL('libibverbs.so.1'); "
                               "library.ibv_get_device_list(None); print(flush=True); signal.pause()"],
                              stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            (row,) = self.rows()
            self.assertEqual([row[name] for name in ("HOST", "PROCESS", "ADDRESS", "STATE")],
                             ["1", str(process.pid), "-", "alive"])
            process.kill()

    def test_the_dead_are_told_from_the_living(self):
        with host("lab") as one, host("lab", port=18536) as two:
            one.kill()
            one.wait()
            rows = {row["ADDRESS"]: row for row in self.rows()}
            self.assertEqual((rows["10.0.0.1"]["STATE"], rows["10.0.0.1"]["PROCESS"]), ("dead", "-"))
            self.assertEqual(rows["10.0.0.2"]["STATE"], "alive")
            two.kill()
            two.wait()
            self.assertEqual({row["STATE"] for row in self.rows()}, {"left-behind"})

    def test_a_wire_elsewhere_is_listed_if_it_is_named(self):
        with host("shm:/tmp/elsewhere"):
            pass
        self.assertEqual(self.rows("shm:/tmp/elsewhere")[0]["STATE"], "left-behind")
        done = hcasim("wires", "--clean", "shm:/tmp/elsewhere")
        self.assertEqual((done.returncode, done.stdout),
                         (0, "removed /tmp/elsewhere.0\nremoved /tmp/elsewhere\n"))

    def test_wrong_names_are_refused(self):
        for words in (["wires"], ["wires", "--clean"]):
            done = hcasim(*words, "nope")
            self.assertEqual((done.returncode, done.stdout, done.stderr),
                             (1, "", f"hcasim: {segment('nope')}: there is no such wire; wires: none\n"))
            for name in ("lab", "other"):
                segment(name).touch()
            done = hcasim(*words, "nope", "lab")
            self.assertEqual((done.returncode, done.stderr),
                             (1, f"hcasim: {segment('nope')}: there is no such wire; wires: lab, other\n"))
            self.assertEqual(segment("lab").exists(), words == ["wires"])
            hcasim("wires", "--clean")
        done = hcasim("wires", "my lab")
        self.assertEqual(done.returncode, 2)
        self.assertIn("wire must be a name", done.stderr)
        self.assertEqual(hcasim("wires", "--clean", "--json").returncode, 2)


class Foreign(Wires):
    """Whatever is in a file, it is listed, and nothing crashes."""

    def test_other_files_are_no_wires_and_stay(self):
        segment("text").write_text("precious")
        segment("folder").mkdir()
        segment("link").symlink_to("/etc/passwd")
        segment("\x1b[31mred\n").write_text("precious")
        rows = {row["WIRE"]: row["STATE"] for row in self.rows()}
        self.assertEqual(rows, {name: "not-a-wire" for name in ("text", "folder", "link", "?[31mred?")})
        self.assertIn("\x1b[31mred\n", {view["wire"] for view in wires()})
        self.assertEqual(hcasim("wires", "--clean").stdout, "nothing to remove\n")
        self.assertEqual(len(list(SHM.iterdir())), 4)
        done = hcasim("wires", "--clean", "text")
        self.assertEqual((done.returncode, done.stderr),
                         (1, f"hcasim: {segment('text')}: is not-a-wire, and stays\n"))

    def test_an_unreadable_wire_is_reported_with_its_reason(self):
        segment("locked").touch(mode=0)
        line = f"hcasim: {segment('locked')}: is unreadable: Permission denied\n"
        weak = ["setpriv", "--bounding-set=-all", HCASIM, "wires"]   # root can read all files
        done = subprocess.run(weak, capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, line))
        self.assertRegex(done.stdout, r"\nlocked .* unreadable ")
        done = subprocess.run([*weak, "--json"], capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual((done.stderr, json.loads(done.stdout)[0]["why"]), (line, "Permission denied"))
        done = subprocess.run([*weak, "--clean", "locked"], capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual((done.returncode, done.stderr),
                         (1, f"{line}hcasim: {segment('locked')}: is unreadable, and stays\n"))

    def test_damaged_segments_of_the_dead_are_left_behind(self):
        with host("lab"):
            pass
        with open(segment("lab"), "rb") as file:    # it is sparse, and has gigabytes
            intact = file.read(1 << 21)
        size = segment("lab").stat().st_size
        damage = {"version": b"hcasimSW" + b"\xff" * 4096, "short": intact[:20], "half": intact[:1 << 20],
                  "noise": intact[:24] + os.urandom((1 << 21) - 24)}
        for name, data in damage.items():
            segment(name).write_bytes(data)
        os.truncate(segment("noise"), size)
        segment("empty").touch()
        os.mkfifo(segment("gone.3"))
        self.assertEqual({view["state"] for view in wires()}, {"left-behind"})
        self.assertEqual({view["wire"] for view in wires()}, {*damage, "lab", "empty", "gone.3"})
        self.rows()
        removed = hcasim("wires", "--clean").stdout.splitlines()
        self.assertEqual(sorted(removed), sorted(f"removed {segment(name)}" for name in
                                                 (*damage, "lab", "lab.0", "empty", "gone.3")))
        self.assertEqual(list(SHM.iterdir()), [])

    def test_a_damaged_segment_in_use_is_listed_and_stays(self):
        with host("lab"):
            with open(segment("lab"), "r+b") as file:
                file.seek(8)
                file.write(b"\xff" * 8)
            self.assertEqual(self.rows()[0]["STATE"], "other-version")
            self.assertEqual(hcasim("wires", "--clean").stdout, "nothing to remove\n")
            os.truncate(segment("lab"), 0)
            self.assertEqual(len(self.rows()), 1)
            self.assertEqual(hcasim("wires", "--clean").stdout, "nothing to remove\n")


class Removes(Wires):
    def test_a_wire_in_use_stays_and_works(self):
        with host("lab", "--host", "7") as server:
            with host("other", port=18536):
                pass
            done = hcasim("wires", "--clean")
            self.assertEqual(done.stdout, f"removed {segment('other')}.0\nremoved {segment('other')}\n")
            done = hcasim("wires", "--clean", "lab")
            self.assertEqual((done.returncode, done.stdout, done.stderr),
                             (1, "", f"hcasim: {segment('lab')}: is in-use, and stays\n"))
            client = hcasim("run", "--wire", "lab", "ibv_rc_pingpong", "-d", "mlx5_0", "-g", "1", "-n", "10",
                            "-p", "18535", "localhost")
            self.assertEqual(client.returncode, 0, client.stderr)
            self.assertEqual(server.wait(PATIENCE), 0)
        self.assertEqual(list(SHM.iterdir()), [])

    def test_files_of_sys_of_the_dead_are_removed(self):
        hcasim("run", "sh", "-c", "read state </sys/class/infiniband/mlx5_0/ports/1/state; kill -9 $$")
        left = list(pathlib.Path("/tmp").glob("hcasim-tree-*"))
        self.assertEqual(len(left), 1)
        self.assertEqual(hcasim("wires", "--clean").stdout, f"removed {left[0]}\n")
        self.assertFalse(left[0].exists())

    def test_whoever_joins_meanwhile_is_not_harmed(self):
        """Processes come and go on one wire, so that it is made and removed again and again, while others remove
        all wires without a host. Each process finds its wire whole."""
        failures, over = [], threading.Event()

        def join(number):
            for _ in range(JOINS):
                done = hcasim("run", "--wire", "lab", "--host", str(number), "ibv_devinfo")
                if done.returncode or "PORT_ACTIVE" not in done.stdout:
                    failures.append(done)

        def clean():
            while not over.is_set():
                done = hcasim("wires", "--clean")
                if done.returncode:
                    failures.append(done)
                hcasim("wires")

        joiners = [threading.Thread(target=join, args=(number + 1,)) for number in range(JOINERS)]
        cleaner = threading.Thread(target=clean)
        for thread in (*joiners, cleaner):
            thread.start()
        for thread in joiners:
            thread.join()
        over.set()
        cleaner.join()
        self.assertEqual(failures, [])
        hcasim("wires", "--clean")
        self.assertEqual(list(SHM.iterdir()), [])


class Killed(Wires):
    """The promise of docs/start/install.md."""

    def test_the_next_run_removes_what_a_killed_one_left(self):
        with host("lab", "--host", "7"):
            pass
        self.assertEqual({path.name for path in SHM.iterdir()}, {segment("lab").name, segment("lab.0").name})
        self.assertEqual(hcasim("run", "--wire", "other", "true").returncode, 0)
        self.assertEqual(list(SHM.iterdir()), [])

    def test_a_program_that_ends_without_closing_its_device_leaves_nothing(self):
        done = hcasim("run", "--wire", "lab", "--", "python3", "-c",
                      "import ctypes; v = ctypes.CDLL('libibverbs.so.1'); "
                      "v.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p); "
                      "v.ibv_open_device.restype = ctypes.c_void_p; "
                      "print(v.ibv_open_device(ctypes.c_void_p(v.ibv_get_device_list(None)[0])) is not None)")
        self.assertEqual((done.returncode, done.stdout), (0, "True\n"), done.stderr)
        self.assertEqual(list(SHM.iterdir()), [])

    def test_a_program_that_ends_leaves_the_wire_to_others(self):
        with host("lab", "--host", "7") as server:
            hcasim("run", "--wire", "lab", "python3", "-c",
                   "import ctypes; v = ctypes.CDLL('libibverbs.so.1'); "
                   "v.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p); "
                   "v.ibv_open_device(ctypes.c_void_p(v.ibv_get_device_list(None)[0]))")
            self.assertEqual([each["process"] for each in hosts("lab")], [server.pid])

    def cluster(self):
        return subprocess.Popen([HCASIM, "cluster", "-n", "2", "ibv_rc_pingpong", "-d", "mlx5_0", "-g", "1", "-p", "0"],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def test_the_next_run_removes_what_a_killed_cluster_left(self):
        with self.cluster() as cluster:
            wire = f"cluster-{cluster.pid}"
            wait_until(lambda: sum("mac" in each for each in hosts(wire)) == 2)
            cluster.kill()
            cluster.wait()
            for each in hosts(wire):
                os.kill(each["process"], signal.SIGKILL)
            wait_until(lambda: not hosts(wire))
        self.assertNotEqual(list(SHM.iterdir()), [])
        hcasim("run", "true")
        self.assertEqual(list(SHM.iterdir()), [])

    def test_a_cluster_that_is_ended_leaves_nothing(self):
        with self.cluster() as cluster:
            wait_until(lambda: sum("mac" in each for each in hosts(f"cluster-{cluster.pid}")) == 2)
            cluster.terminate()
            cluster.wait(PATIENCE)
        self.assertEqual(list(SHM.iterdir()), [])


def main():
    if os.environ.get(INSIDE):
        return unittest.main()
    namespace = ["unshare", "--mount"] + ([] if os.getuid() == 0 else ["--user", "--map-root-user"])
    mounts = "mount -t tmpfs tmpfs /dev/shm && mount -t tmpfs tmpfs /tmp"
    if subprocess.run([*namespace, "sh", "-c", mounts], check=False).returncode:
        print("no mount namespace can be made here")
        return SKIPPED
    environment = {name: value for name, value in os.environ.items() if name != "XDG_RUNTIME_DIR"}
    return subprocess.run([*namespace, "sh", "-ec", f'{mounts}; exec "$@"', "sh", sys.executable, "-B",
                           pathlib.Path(__file__).resolve(), HCASIM, *sys.argv[1:]], check=False,
                          env={**environment, INSIDE: "1"}, cwd="/").returncode


if __name__ == "__main__":
    sys.exit(main())
