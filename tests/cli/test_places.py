# SPDX-License-Identifier: BSD-2-Clause
"""hcasim where little can be written: a small /dev/shm, a read-only /tmp. Programs work, or one line says why not,
and nothing stays behind.

Each test runs in a mount namespace of its own. If this process cannot make one, the tests are skipped.

usage: test_places.py HCASIM
"""
import os
import pathlib
import subprocess
import sys
import unittest

HCASIM = pathlib.Path(sys.argv.pop(1)).resolve()
UNSHARE = ["unshare", "--mount"] + ([] if os.getuid() == 0 else ["--user", "--map-root-user"])
SKIPPED = 77
SHM, READ_ONLY_SHM = "mount -t tmpfs -o size={} tmpfs /dev/shm", "mount -t tmpfs -o ro tmpfs /dev/shm"
READ_ONLY_TMP = "mount -t tmpfs -o ro tmpfs /tmp"
STATE = "/sys/class/infiniband/mlx5_0/ports/1/state"
NO_TREE = ("hcasim: the program finds no files of the HCA in /sys and /dev, because $XDG_RUNTIME_DIR, /tmp and "
           "/dev/shm cannot hold them (Read-only file system)\n")


def inside(script, *words):
    """Runs a shell script in a mount namespace; $hcasim is the program."""
    environment = {name: value for name, value in os.environ.items() if name != "XDG_RUNTIME_DIR"}
    return subprocess.run([*UNSHARE, "sh", "-ec", script, "sh", *words], capture_output=True, text=True, timeout=100,
                          check=False, cwd="/", env={**environment, "hcasim": str(HCASIM)})


class SmallMemory(unittest.TestCase):
    def refused(self, size, line):
        done = inside(f"{SHM.format(size)}; $hcasim run ibv_devinfo 2>&1 >/dev/null | grep ^hcasim: >&2; ls -A /dev/shm")
        self.assertEqual(done.stdout, "", "nothing stays behind")
        self.assertRegex(done.stderr, f"^hcasim: {line}\n$")

    def test_there_is_no_room_for_a_wire(self):
        self.refused("64k", r"/dev/shm/hcasim-0-verbs: no memory for the segment: No space left on device: /dev/shm "
                            r"has 64 KiB, of which 64 KiB are free\. A container gets more with --shm-size=1g")

    def test_there_is_no_room_for_a_host(self):
        self.refused("520k", r"mlx5_0: /dev/shm/hcasim-0-verbs: no memory for another member of the segment: No space "
                             r"left on device: /dev/shm has 520 KiB, of which \d+ KiB are free\. A container gets more "
                             r"with --shm-size=1g")

    def test_a_wire_of_two_hosts_needs_less_than_a_megabyte(self):
        done = inside(f"{SHM.format('1m')}; $hcasim cluster -n 2 ibv_devinfo; ls -A /dev/shm")
        self.assertEqual((done.returncode, done.stdout.count("PORT_ACTIVE"), done.stdout.count("hcasim-")), (0, 2, 0),
                         done.stderr)


class FullDisk(unittest.TestCase):
    """A trace on a disk that is full: one line, and the program goes on."""
    DISK = "mount -t tmpfs -o size={} tmpfs /mnt"
    PINGPONG = ("$hcasim run --wire places-$$ --trace-file /mnt/t.jsonl -- sh -c '"
                "ibv_rc_pingpong -p 18545 -g 1 -n 50 -s 64 >&2 & sleep 1; ibv_rc_pingpong -p 18545 -g 1 -n 50 -s 64 127.0.0.1 || exit 7; wait'")

    def test_the_disk_fills_while_the_program_runs(self):
        done = inside(f"{self.DISK.format('64k')}; {self.PINGPONG} 2>&1 >/dev/null | grep trace >&2; head -c 300 /mnt/t.jsonl")
        said = [line.split(": ", 3)[-1] for line in done.stderr.splitlines()]
        self.assertEqual(set(said), {"trace file /mnt/t.jsonl: No space left on device; nothing more is traced"}, done.stderr)
        self.assertLessEqual(len(said), 2)      # of each process
        self.assertIn('"e":', done.stdout)

    def test_the_program_succeeds(self):
        done = inside(f"{self.DISK.format('64k')}; {self.PINGPONG}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("50 iters", done.stdout)

    def test_the_disk_is_full_from_the_beginning(self):
        done = inside(f"{self.DISK.format('8k')}; dd if=/dev/zero of=/mnt/all bs=4k 2>/dev/null || :; "
                      "$hcasim run --trace-file /mnt/t.jsonl -- ibv_devinfo")
        self.assertRegex(done.stderr, r"hcasim: mlx5_0: trace file /mnt/t\.jsonl: No space left on device")
        self.assertEqual(done.stderr.count("trace file"), 1)


class ReadOnly(unittest.TestCase):
    def test_files_of_sys_are_in_memory_if_tmp_is_read_only(self):
        done = inside(f"{SHM.format('1m')}; {READ_ONLY_TMP}; $hcasim run cat {STATE}; ls -A /dev/shm")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "4: ACTIVE\n", ""))

    def test_a_killed_program_leaves_no_tree_to_the_next(self):
        done = inside(f"{SHM.format('2m')}; {READ_ONLY_TMP}; $hcasim run sh -c 'read state <{STATE}; kill -9 $$' || :; "
                      "ls -A /dev/shm; $hcasim run true; ls -A /dev/shm")
        self.assertRegex(done.stdout, r"^hcasim-tree-\w{6}\n$", done.stderr)

    def test_if_nothing_can_be_written_a_line_says_so(self):
        done = inside(f"{READ_ONLY_SHM}; {READ_ONLY_TMP}; $hcasim run sh -c 'cat {STATE}; cat {STATE}; true' "
                      "2>&1 | grep ^hcasim: >&2; $hcasim run -- true")
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        # One line for each process that looks.
        self.assertEqual(done.stderr, 2 * NO_TREE)


if __name__ == "__main__":
    if inside("mount -t tmpfs tmpfs /tmp").returncode:
        print("no mount namespace can be made here")
        sys.exit(SKIPPED)
    unittest.main()
