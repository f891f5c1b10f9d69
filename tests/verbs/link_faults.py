#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""usage: link_faults.py HCASIM DATAGRAMS ONE_THREAD

Tests faults of frames without a VM (`hcasim run --loss` and so on) with rdma-core's programs and two
of tests/programs. Nothing here passes or fails because of a time, except that a delay has a
least time. Exit status 77: rdma-core's programs are not installed.
"""
import collections
import contextlib
import os
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts/lib"))

import capture  # noqa: E402

HCASIM, DATAGRAMS, ONE_THREAD = sys.argv[1:]
WIRE = f"faults-{os.getpid()}"
PINGPONG = ["ibv_rc_pingpong", "-d", "mlx5_0", "-g", "1"]
PATIENCE = 120       # seconds; only a test that fails waits so long
SEQUENCE_NAK = 0x60  # AETH.syndrome of a NAK for a PSN sequence error (IBTA table 44)
ACK = 0x11          # its opcode; those of requests are lower


def free_port():
    with socket.socket() as probe:
        probe.bind(("", 0))
        return str(probe.getsockname()[1])


def command(options, program):
    return [HCASIM, "run", "--wire", WIRE, "--explain", "--log", "info", *options, "--", *program]


def start(options, program):
    return subprocess.Popen(command(options, program), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_port(port):
    listens = re.compile(rf":{int(port):04X} .* 0A ")
    until = time.monotonic() + PATIENCE
    while not any(listens.search(pathlib.Path(table).read_text()) for table in ("/proc/net/tcp", "/proc/net/tcp6")):
        if time.monotonic() > until:
            raise TimeoutError(f"nobody listens at port {port}")
        time.sleep(0.05)


def counts(text, device="mlx5_0"):
    """Returns the counts in the last line about the faults of a device: frames, and the number of each kind."""
    said = re.search(rf"^{device}: faults: of (\d+) frames, (.*)$", text, re.MULTILINE)
    kinds = collections.Counter({kind: int(number) for number, kind in
                                 re.findall(r"(\d+) (?:were )?([a-z ]+)", said.group(2))})
    kinds["frames"] = int(said.group(1))
    return kinds


class Ended:
    def __init__(self, process):
        self.out, self.err = process.communicate(timeout=PATIENCE)
        self.status = process.returncode


class Pair(unittest.TestCase):
    def ends(self, *options, more=(), server_options=None):
        """A server and a client of ibv_rc_pingpong."""
        port = free_port()
        program = [*PINGPONG, "-p", port, *more]
        server = start(options if server_options is None else server_options, program)
        with contextlib.ExitStack() as at_end:
            at_end.callback(server.communicate)
            at_end.callback(server.kill)
            wait_for_port(port)
            client = Ended(start(options, [*program, "localhost"]))
            if client.status == 0:
                server = Ended(server)
                at_end.pop_all()
                self.assertEqual(server.status, 0, server.err)
            return server, client

    def good_ends(self, *options, more=()):
        server, client = self.ends(*options, more=more)
        self.assertEqual(client.status, 0, client.err)
        return server, client

    def test_a_peer_that_hears_nothing_is_given_up(self):
        _, client = self.ends("--loss", "100", server_options=[], more=["-n", "10"])
        self.assertEqual(client.status, 1)
        self.assertIn("transport retry counter exceeded", client.err)
        count = counts(client.err)
        self.assertEqual(count["lost"], count["frames"])
        # The send queue's packets, and seven retries of each of them.
        self.assertEqual(count["frames"] % 8, 0)

    def test_delays_add_up(self):
        for more in [], ["-e"]:  # polls; sleeps in ibv_get_cq_event()
            with self.subTest(more):
                server, client = self.good_ends("--delay", "20ms", more=["-n", "10", *more])
                took = float(re.search(r"10 iters in ([\d.]+) seconds", client.out).group(1))
                self.assertGreaterEqual(took, 0.4)
                for end in server, client:
                    count = counts(end.err)
                    self.assertEqual(count["delayed"], count["frames"])

    def test_a_program_that_sleeps_is_woken_late(self):
        server, client = self.good_ends("--fault", "interrupt late 20ms", more=["-n", "10", "-e"])
        for end in server, client:
            self.assertGreater(int(re.search(r"fault 1: interrupt late 20ms: matched \d+, done (\d+)", end.err).group(1)), 5)
        took = float(re.search(r"10 iters in ([\d.]+) seconds", client.out).group(1))
        self.assertGreaterEqual(took, 0.2)


class Connection(unittest.TestCase):
    """Both ends in one process. If a peer ended early, an ACK of its last message might be lost for ever."""

    def messages(self, *options, ends=2):
        done = Ended(start(["--devices", "2", *options], [ONE_THREAD, "send", "20000", "100", "4"]))
        self.assertEqual(done.status, 0, done.err)
        return [counts(done.err, f"mlx5_{end}") for end in range(ends)], done.err

    def test_lost_frames_are_sent_again(self):
        """The capture has the frames of the first device."""
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "sender.pcapng")
            said, _ = self.messages("--loss", "5%", "--capture", str(file))
            comments, naks, again = what_a_capture_shows(file)
        for count in said:
            self.assertGreater(count["lost"], 0)
            self.assertLess(count["lost"], count["frames"])
        self.assertEqual(comments["lost: never sent"], said[0]["lost"])
        self.assertGreater(naks, 0)
        self.assertGreater(again, 0)

    def test_wrong_and_duplicate_and_late_frames_do_no_harm(self):
        said, log = self.messages("--duplication", "10%", "--reorder", "10%", "--corruption", "3%", "--jitter", "50us")
        for count in said:
            for kind in "duplicated", "reordered", "corrupted", "delayed":
                self.assertGreater(count[kind], 0, kind)
            self.assertEqual(count["lost"], 0)
        for end in 0, 1:
            self.assertIn(f"mlx5_{end}: a RoCE packet with a wrong ICRC is dropped", log)


class Rules(unittest.TestCase):
    """Rules in words (--fault). Each is done, and the messages of a connection arrive all the same."""

    def messages(self, rule):
        done = Ended(start(["--devices", "2", "--fault", rule], [ONE_THREAD, "send", "20000", "100", "4"]))
        self.assertEqual(done.status, 0, f"{rule}: {done.err}")
        return done.err

    def test_each_rule_is_done_and_does_no_harm(self):
        for rule in ("drop RESPONSE every 10", "drop NAK in once; loss 2%", "duplicate both 5%", "corrupt in every 40",
                     "reorder both 5% within 200us", "delay 100us in jitter 20us", "rate 1Gbit queue 1M",
                     "link down 20ms after 100", "link flap 2ms every 20ms for 200ms", "part for 5ms after 100",
                     "interrupt late 1ms", "command any slow 1ms times 20", "doorbell unseen nth 20"):
            with self.subTest(rule):
                said = self.messages(rule)
                last = rule.split("; ")[-1]
                counted = re.findall(rf"^mlx5_\d: fault \d: {re.escape(last)}: matched \d+, done (\d+)$", said, re.MULTILINE)
                self.assertEqual(len(counted), 2, said)
                if not rule.startswith("interrupt"):  # a program that polls has no interrupts
                    self.assertGreater(sum(map(int, counted)), 0, said)

    def test_a_host_without_rules_ends_well(self):
        self.assertIn("frames, none had a fault", self.messages("none"))

    def test_a_command_fails(self):
        done = Ended(start(["--fault", "command CREATE_CQ fail once status NO_RES"], [*PINGPONG, "-p", free_port()]))
        self.assertEqual(done.status, 1)
        self.assertIn("Couldn't create CQ", done.err)
        self.assertIn("mlx5_0: fault 1: command CREATE_CQ fail once status NO_RES: matched 1, done 1", done.err)

    def test_a_fault_has_a_line_in_the_log_and_in_the_capture(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "rules.pcapng")
            done = Ended(start(["--devices", "2", "--fault", "drop REQUEST nth 7", "--capture", str(file)],
                               [ONE_THREAD, "send", "20000", "100", "4"]))
            comments, _, _ = what_a_capture_shows(file)
        self.assertEqual(done.status, 0, done.err)
        self.assertRegex(done.err, r"(?m)^mlx5_0: fault 1, drop REQUEST nth 7: sent RC_SEND_\w+ qp 0x\w+ psn \d+")
        self.assertEqual(sum(count for text, count in comments.items() if text and "lost: never sent" in text), 1)


class Datagrams(unittest.TestCase):
    def arrived(self, *options, sent=1000):
        done = Ended(start(["--devices", "2", *options], [DATAGRAMS, str(sent)]))
        self.assertEqual(done.status, 0, done.err)
        return int(re.fullmatch(rf"(\d+) of {sent} arrived\n", done.out).group(1)), counts(done.err), done.err

    def test_as_many_as_counted_are_lost(self):
        arrived, count, _ = self.arrived("--loss", "20%")
        self.assertEqual(count["frames"], 1000)
        self.assertGreater(count["lost"], 100)
        self.assertEqual(arrived + count["lost"], 1000)

    def test_as_many_as_counted_are_sent_twice(self):
        arrived, count, _ = self.arrived("--duplication", "20")
        self.assertGreater(count["duplicated"], 100)
        self.assertEqual(arrived, 1000 + count["duplicated"])

    def test_as_many_as_counted_have_a_wrong_icrc(self):
        arrived, count, said = self.arrived("--corruption", "20")
        self.assertGreater(count["corrupted"], 100)
        self.assertEqual(arrived + count["corrupted"], 1000)
        self.assertIn("mlx5_1: a RoCE packet with a wrong ICRC is dropped", said)

    def test_a_seed_repeats_itself(self):
        """Datagrams are not sent again, so the frames are the same in each run."""
        options = ["--host", "9", "--loss", "10", "--duplication", "10"]
        first, again, other = (self.arrived(*options, "--fault-seed", seed)[1] for seed in ("7", "7", "8"))
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)

    def test_delayed_datagrams_leave_when_their_sender_ends(self):
        """They would be due in ten seconds. The wire holds 512 frames from one host to another one."""
        arrived, count, _ = self.arrived("--delay", "10s", sent=400)
        self.assertEqual(count["delayed"], 400)
        self.assertEqual(count["too late to be sent"], 0)
        self.assertEqual(arrived, 0)


class Cluster(unittest.TestCase):
    def test_each_host_has_faults_of_its_own(self):
        done = subprocess.run([HCASIM, "cluster", "-n", "2", "--devices", "2", "--loss", "20", "--explain", "--",
                               DATAGRAMS, "1000"], capture_output=True, text=True, timeout=PATIENCE, check=True)
        lost = []
        for host in "1", "2":
            count = counts(re.sub(rf"^{host}\| ", "", done.stderr, flags=re.MULTILINE))
            arrived = int(re.search(rf"^{host}\| (\d+) of 1000 arrived", done.stdout, re.MULTILINE).group(1))
            self.assertEqual(arrived + count["lost"], 1000)
            lost.append(count["lost"])
        self.assertGreater(min(lost), 100)


class Ends(unittest.TestCase):
    def test_nothing_is_left(self):
        """The wire's files are removed with its last program, although frames are delayed when it ends."""
        for end in "exec {}; exit 3", "{} & sleep 0.3; kill -9 $!; wait":
            done = Ended(start(["--devices", "2", "--delay", "10s"], ["sh", "-c", end.format(f"'{DATAGRAMS}' 100")]))
            self.assertNotIn("Sanitizer", done.err)
        # The next program that joins a wire removes what a killed program left.
        Ended(start([], ["ibv_devinfo"]))
        self.assertEqual([file for file in os.listdir("/dev/shm") if WIRE in file], [])


def what_a_capture_shows(file):
    """Comments and how often each is there; NAKs for a PSN sequence error; requests that were sent again."""
    comments, requests, naks = collections.Counter(), collections.Counter(), 0
    for text, outbound, frame in commented_frames(file):
        comments[text] += text is not None
        parts = capture.roce(frame)
        if not parts:
            continue
        ib = parts[2]
        if ib[0] == ACK:
            naks += ib[12] == SEQUENCE_NAK
        elif outbound and ib[0] < ACK:
            requests[parts[0][12:20] + ib[5:8] + ib[9:12]] += 1
    return comments, naks, sum(count > 1 for count in requests.values())


def commented_frames(file):
    """Yields the packets of a pcapng file: comment or None, whether it is outbound, frame."""
    data, at = file.read_bytes(), 0
    while at < len(data):
        kind, size = struct.unpack_from("=II", data, at)
        if kind == 6:
            kept, = struct.unpack_from("=I", data, at + 20)
            options = dict(capture.options("=", data, at + 28 + (kept + 3) // 4 * 4, at + size - 4))
            text = options.get(1)
            yield (text.decode() if text else None, struct.unpack("=I", options[2])[0] & 3 == 2,
                   data[at + 28:at + 28 + kept])
        at += size


if __name__ == "__main__":
    if not shutil.which(PINGPONG[0]):
        print("rdma-core's programs are not installed")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
