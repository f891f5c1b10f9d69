# SPDX-License-Identifier: BSD-2-Clause
"""`hcasim switch`: what it refuses, the line that says that it is ready, its commands, and its end.

usage: test_switch.py HCASIM
"""
import json
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts/lib"))

import capture  # noqa: E402

HCASIM = pathlib.Path(sys.argv.pop(1)).resolve()
PATIENCE = 60
REFUSED = {  # options -> what is said; status 2
    (): "a switch needs ports: say --listen /PATH, or --port URI",
    ("--listen", "/tmp/x", "more"): "switch takes options only, but there is 'more'",
    ("--listen", "/tmp/x", "--rate", "fast"):
        "rate is bits per second, 0 or from 1000 to 10000G, with K, M or G or without, but it is 'fast'",
    ("--listen", "/tmp/x", "--ecn", "1:2"):
        "ecn is off or MIN:MAX:PERCENT, bytes with K, M or G or without, such as 100K:400K:10, but it is '1:2'",
    ("--listen", "/tmp/x,vlan=5000"):
        "vlan is all, a number from 1 to 4094, trunk:LIST or trunk:LIST:NUMBER, such as trunk:10,20-29:1, but it is '5000'",
    ("--listen", "/tmp/x", "--capture", "/no/such/folder/x"):
        "capture must be a file that can be written, but it is /no/such/folder/x: No such file or directory",
    ("--listen", "/tmp/x", "--capture-size", "1K"): "capture_size must be 1M or more, in bytes or with K, M or G, but it is 1K",
    ("--listen", "/tmp/x,fault=drop x"): "fault rule 'drop x': 'x' is not allowed there, but one of these words: qp, ",
    ("--port", "udp:1,fault=health 1"): "fault rule 'health 1': there is no device here; rules can be about frames and the link",
    ("--listen", ",rate=1G"): "listen must be AT[,KEY=VALUE]..., but it begins with a setting, or is empty",
}
FAILED = {  # status 125
    ("--port", "vxlan:7:14789:127.0.0.1:14790", "--capture", "/dev/full"):
        "switch: vxlan:7:14789:127.0.0.1:14790: /dev/full: cannot write the capture: No space left on device",
    ("--listen", "/no/such/folder/x"): "switch: /no/such/folder/x: cannot listen there: No such file or directory",
    ("--port", "nonsense"): "switch: nonsense: 'nonsense' names no port: ",
}


def mac(n):
    return bytes([2, 0, 0, 0]) + struct.pack(">H", n)


class End:
    """A station of this test: frames framed as on a stream."""

    def __init__(self, at, number):
        self.number = number
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(at)
        self.socket.settimeout(PATIENCE)

    def send(self, to, payload=b"", kind=0x88b5):
        frame = to + mac(self.number) + struct.pack(">H", kind) + payload.ljust(46, b"\0")
        self.socket.sendall(struct.pack(">I", len(frame)) + frame)

    def receive(self):
        length = struct.unpack(">I", self._read(4))[0]
        return self._read(length)

    def _read(self, length):
        data = b""
        while len(data) < length:
            if not (more := self.socket.recv(length - len(data))):
                raise EOFError
            data += more
        return data

    def close(self):
        self.socket.close()


class Refusals(unittest.TestCase):
    def test_wrong_use(self):
        for statuses, status in (REFUSED, 2), (FAILED, 125):
            for options, says in statuses.items():
                done = subprocess.run([HCASIM, "switch", *options], capture_output=True, text=True, timeout=PATIENCE, check=False)
                self.assertEqual((done.returncode, done.stdout), (status, ""), options)
                self.assertTrue(done.stderr.startswith(f"hcasim: {says}"), done.stderr)


class Switch(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="hcasim-switch-")
        self.at, self.ctl = (f"{self.folder.name}/{name}" for name in ("sw", "ctl"))
        self.ends = []

    def tearDown(self):
        for end in self.ends:
            end.close()
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()
        self.folder.cleanup()

    def begin(self, *options):
        self.process = subprocess.Popen([HCASIM, "switch", "--listen", self.at, "--control", self.ctl, *options],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(self.process.stdout.readline(), f"switch: listening at {self.at.split(',')[0]}; 0 fixed ports\n")

    def end(self, signum=signal.SIGTERM):
        self.process.send_signal(signum)
        said, warned = self.process.communicate(timeout=PATIENCE)
        self.assertEqual(self.process.returncode, 0, warned)
        return said, warned

    def connect(self, count):
        """Ends whose addresses are known."""
        self.ends = [End(self.at, n + 1) for n in range(count)]
        for end in self.ends:
            end.send(b"\xff" * 6)
            for other in self.ends:
                if other is not end:
                    self.assertEqual(other.receive()[6:12], mac(end.number))
        return self.ends

    def ask(self, *words):
        done = subprocess.run([HCASIM, "ctl", "--json", self.ctl, *words], capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_frames_go_where_they_belong(self):
        self.begin()
        a, b, c = self.connect(3)
        a.send(mac(2), b"to b")
        a.send(mac(3), b"to c")
        self.assertIn(b"to b", b.receive())
        self.assertIn(b"to c", c.receive())
        said, _ = self.end(signal.SIGINT)
        self.assertEqual(said.split("\n")[0].split(), "PORT FRAMES IN FRAMES OUT DROPPED MARKED PEER".split())
        self.assertRegex(said, r"\n +1 +3 +2 +0 +0  \S+ from process \d+ \(python3")
        self.assertRegex(said, r"\n +all +5 +8 +0 +0 ")

    def test_a_port_has_fault_rules(self):
        """Each port that connects has its own count: out is what the switch sends there."""
        listens, self.at = self.at, f"{self.at},fault=drop nth 2; duplicate in nth 2,rate=1G"
        self.begin()
        self.at = listens
        self.ends = a, b = End(self.at, 1), End(self.at, 2)
        a.send(b"\xff" * 6, b"first")
        self.assertIn(b"first", b.receive())
        a.send(mac(2), b"lost")  # doubled as it comes in; the second copy is the third frame to b
        self.assertIn(b"lost", b.receive())
        a.send(mac(2), b"last")
        self.assertIn(b"last", b.receive())
        _, warned = self.end()
        self.assertIn("switch: fault 1, drop nth 2: sent frame of 60 bytes, type 0x88b5", warned)
        self.assertIn("switch: fault 2, duplicate in nth 2: received frame of 60 bytes", warned)

    def test_fault_rules_change_while_frames_pass(self):
        listens, self.at = self.at, f"{self.at},fault=none"
        self.begin()
        self.at = listens
        a, b = self.connect(2)
        ports = {row["mac"][-2:]: row["port"] for row in self.ask("query-fdb")}
        port = f"port={ports['02']}"
        self.ask("fault-add", port, "rules=drop nth 2; drop in once")
        self.assertEqual([(row["number"], row["rule"], row["done"]) for row in self.ask("fault-list", port)],
                         [(1, "drop nth 2", 0), (2, "drop in once", 0)])
        for text in (b"one", b"two", b"three"):
            a.send(mac(2), text)
        self.assertIn(b"one", b.receive())
        self.assertIn(b"three", b.receive())
        b.send(mac(1), b"lost")
        b.send(mac(1), b"comes")
        self.assertIn(b"comes", a.receive())
        self.assertEqual([(row["matched"], row["done"]) for row in self.ask("fault-list", port)], [(3, 1), (2, 1)])
        self.ask("fault-remove", port, "number=1")
        self.assertEqual([row["number"] for row in self.ask("fault-list", port)], [2])
        self.ask("fault-remove", port)
        self.assertEqual(self.ask("fault-list", port), [])
        self.ask("fault-add", port, "rules=delay 20ms")
        began = time.monotonic()
        a.send(mac(2), b"later")
        self.assertIn(b"later", b.receive())
        self.assertGreater(time.monotonic() - began, 0.019)
        plain = self.ask("port-add", f"uri=unix:{self.folder.name}/x:{self.folder.name}/y")["port"]
        for words, says in ((("fault-add", "port=9", "rules=drop"), "there is no port 9"),
                            (("fault-add", f"port={plain}", "rules=drop"), f"port {plain} was made without faults: make it with "),
                            (("fault-add", port, "rules=drop x"), "fault rule 'drop x': 'x' is not allowed there"),
                            (("fault-add", port, "rules=health 1"), "there is no device here"),
                            (("fault-add", port, f"rules={';'.join(['drop once'] * 64)}"), "there would be 65 fault rules"),
                            (("fault-remove", port, "number=99"), "there is no fault 99, see fault-list"),
                            (("fault-list",), "fault-list needs the argument port")):
            done = subprocess.run([HCASIM, "ctl", self.ctl, *words], capture_output=True, text=True, timeout=PATIENCE, check=False)
            self.assertEqual(done.returncode, 1, words)
            self.assertIn(says, done.stderr)
        self.assertEqual(len(self.ask("fault-list", port)), 1)      # nothing was added by what was refused
        self.end()

    def test_a_length_that_no_frame_has_ends_the_connection(self):
        self.begin()
        a, b = self.connect(2)
        a.socket.sendall(struct.pack(">I", 0xffffffff))
        self.assertRaises(EOFError, a.receive)
        b.send(b"\xff" * 6)  # others go on
        end = time.monotonic() + PATIENCE
        while len(self.ask("query-ports")) != 1:
            self.assertLess(time.monotonic(), end)
        self.end()

    def test_three_hundred_ends(self):
        """Each sends to all, then to its neighbour; the files and the memory of the switch are bounded."""
        self.begin()
        self.ends = [End(self.at, n) for n in range(300)]
        end = time.monotonic() + PATIENCE
        while self.ask("query-switch")["ports"] != 300:
            self.assertLess(time.monotonic(), end)
        for sender in self.ends:
            sender.send(b"\xff" * 6)
        for receiver in self.ends:
            senders = {receiver.receive()[6:12] for _ in range(299)}
            self.assertEqual(len(senders), 299)
        for i, sender in enumerate(self.ends):
            sender.send(mac((i + 1) % 300), b"to the next")
        for i, receiver in enumerate(self.ends):
            frame = receiver.receive()
            self.assertEqual((frame[:12], frame[14:25]), (mac(i) + mac((i - 1) % 300), b"to the next"))
        total = self.ask("query-switch")["total"]
        self.assertEqual((total["rx_frames"], total["sent"], total["flooded"]), (600, 300 * 299 + 300, 300))
        resident = int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{self.process.pid}/status").read_text())[1])
        self.assertLess(resident, 400_000)  # each end has 512 KiB of buffers, of which this uses little; checkers need more
        self.end()

    def test_settings_of_a_socket_are_those_of_its_ports(self):
        at = self.at
        self.at = f"{at},vlan=trunk:10,20:1,rate=5G"
        self.begin("--rate", "1G", "--latency", "5us")
        self.at = at
        self.ends = [End(self.at, 1)]
        end = time.monotonic() + PATIENCE
        while not (ports := self.ask("query-ports")):
            self.assertLess(time.monotonic(), end)
        settings = ports[0]["settings"]
        self.assertEqual((settings["vlan"], settings["rate"], settings["latency"]), ("trunk:10,20:1", "5G", "5us"))
        self.end()

    def test_commands(self):
        self.begin()
        a, b, _ = self.connect(3)
        self.assertEqual({(row["mac"][-2:], row["port"]) for row in self.ask("query-fdb")}, {("01", 1), ("02", 2), ("03", 3)})
        self.assertEqual(self.ask("query-groups"), [])
        self.ask("port-set", "port=2", "key=island", "value=7")
        a.send(mac(2), b"parted")
        end = time.monotonic() + PATIENCE
        while not self.ask("query-ports", "port=2")[0]["statistics"]["parted"]:
            self.assertLess(time.monotonic(), end)
        self.ask("port-remove", "port=2")
        self.assertRaises(EOFError, b.receive)
        added = self.ask("port-add", f"uri=unix:{self.folder.name}/x:{self.folder.name}/y,link=down")["port"]
        self.assertEqual(self.ask("query-ports", f"port={added}")[0]["settings"]["link"], "down")
        self.ask("switch-set", "querier=true")
        whole = self.ask("query-switch")
        self.assertEqual((whole["ports"], whole["querier"], whole["adds-up"]), (3, True, True))
        for words, says in ((("port-set", "port=9", "key=rate", "value=1"), "there is no port 9"),
                            (("port-set", "port=1", "key=rate", "value=x"), "rate is bits per second"),
                            (("port-remove", "port=9"), "there is no port 9"), (("port-add", "uri=x"), "'x' names no port")):
            done = subprocess.run([HCASIM, "ctl", self.ctl, *words], capture_output=True, text=True, timeout=PATIENCE, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn(says, done.stderr)
        self.end()

    def test_a_capture_has_each_port(self):
        file = pathlib.Path(self.folder.name, "all.pcapng")
        self.begin("--capture", file)
        one, two = self.connect(2)
        one.send(mac(2), b"hello")
        two.receive()
        two.send(mac(1), b"answer")
        one.receive()
        self.end()
        frames = [(outbound, frame[14:20]) for _, outbound, frame in capture.timed_frames(file) if frame[12:14] == b"\x88\xb5"]
        self.assertEqual([text for outbound, text in frames if not outbound and text[:1] in b"ha"], [b"hello\0", b"answer"])
        self.assertEqual([text for outbound, text in frames if outbound and text[:1] in b"ha"], [b"hello\0", b"answer"])

    def test_a_pipe_has_all_ports(self):
        pipe = pathlib.Path(self.folder.name, "pipe")
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        self.begin("--capture", pipe)
        one, two = self.connect(2)
        one.send(mac(2), b"hello")
        two.receive()
        self.end()
        stream = pathlib.Path(self.folder.name, "stream.pcapng")
        stream.write_bytes(os.read(reader, 1 << 20))
        os.close(reader)
        self.assertEqual({outbound for _, outbound, frame in capture.timed_frames(stream) if b"hello" in frame}, {False, True})

    def test_a_file_that_is_left_is_replaced_and_removed(self):
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(self.at)
        self.begin()
        self.end()
        self.assertFalse(pathlib.Path(self.at).exists() or pathlib.Path(self.ctl).exists())


if __name__ == "__main__":
    unittest.main()
