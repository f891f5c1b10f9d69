# SPDX-License-Identifier: BSD-2-Clause
"""The control socket of the device in QEMU (-device hcasim,control=PATH), which QEMU's main loop serves. No guest runs.

usage: test_qemu_control.py HCASIM PLUGIN
Exit status 77: QEMU is not installed.
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HCASIM, PLUGIN = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(2))
QEMU = os.environ.get("QEMU", "qemu-system-x86_64")
PATIENCE = 60


class Control(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="hcasim-qemu-control-")
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name) / "control"

    def start(self, *more):
        """Starts QEMU, and waits until the device answers."""
        wire = f"shm:{self.folder.name}/wire"
        qemu = subprocess.Popen([QEMU, "-machine", "q35", "-m", "64", "-nodefaults", "-S", "-display", "none", "-monitor",
                                 "stdio", "-plugin", PLUGIN, "-device",
                                 ",".join(["hcasim", "id=card", f"wire={wire}", f"control={self.path}", *more])],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

        def stop():
            qemu.kill()
            qemu.communicate()

        self.addCleanup(stop)
        until = time.monotonic() + PATIENCE
        while f'"pid": {qemu.pid}' not in self.try_ctl("query-status").stdout:
            self.assertIsNone(qemu.poll())
            self.assertLess(time.monotonic(), until, "the device does not answer")
            time.sleep(0.05)
        return qemu, wire

    def try_ctl(self, *words):
        return subprocess.run([HCASIM, "ctl", "--json", self.path, *words], capture_output=True, text=True,
                              timeout=PATIENCE, check=False)

    def ctl(self, *words):
        done = self.try_ctl(*words)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def test_the_device_answers_and_its_cable_can_be_cut(self):
        qemu, wire = self.start("profile=cx6dx")
        status = self.ctl("query-status")
        self.assertEqual([status[name] for name in ("kind", "device", "pid", "profile", "wire", "link", "cut")],
                         ["host", "card", qemu.pid, "cx6dx", wire, "up", False])
        self.assertEqual(self.ctl("query-qps"), [])
        self.ctl("set-link", "up=false")
        self.assertEqual(self.ctl("query-status")["link"], "down")
        qemu.stdin.write("system_reset\n")     # which mends no cable
        qemu.stdin.flush()
        self.assertEqual(self.ctl("query-stats")["gauges"]["link_up"], 0)
        self.ctl("set-link", "up=true")
        self.assertEqual(self.ctl("query-stats")["gauges"]["link_up"], 1)

    def test_faults_come_and_go(self):
        self.start("fault=none")
        self.ctl("fault-add", "rules=loss 1%")
        self.assertEqual([rule["number"] for rule in self.ctl("fault-list")], [1])
        self.ctl("fault-remove")
        self.assertEqual(self.ctl("fault-list"), [])

    def test_the_socket_ends_with_the_device_or_is_replaced(self):
        qemu, _ = self.start()
        self.assertEqual(self.path.stat().st_mode & 0o777, 0o600)
        qemu.send_signal(signal.SIGKILL)
        qemu.wait(timeout=PATIENCE)
        self.assertTrue(self.path.exists())
        qemu, _ = self.start()
        self.assertEqual(self.ctl("query-status")["pid"], qemu.pid)
        qemu.stdin.write("quit\n")
        qemu.stdin.flush()
        self.assertEqual(qemu.wait(timeout=PATIENCE), 0)


if __name__ == "__main__":
    if not shutil.which(QEMU):
        print(f"{QEMU} is not installed")
        sys.exit(77)
    unittest.main()
