#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""usage: control.py HCASIM

Control sockets of programs under `hcasim run --control` and `cluster --control`: what they tell of rdma-core's
pingpongs while these run is what the capture says, a cable that is cut is a link that is down, and no socket stays in
the way of the next program. Exit status 77: rdma-core's programs are not installed.
"""
import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts/lib"))

import capture  # noqa: E402

HCASIM = sys.argv.pop(1)
WIRE = f"control-{os.getpid()}"
PATIENCE = 120
ENDLESS = "100000000"
IPV4 = b"\x08\x00"       # the type of a frame


def free_port():
    with socket.socket() as probe:
        probe.bind(("", 0))
        return str(probe.getsockname()[1])


def wait_until(condition):
    until = time.monotonic() + PATIENCE
    while not (result := condition()):
        if time.monotonic() > until:
            raise TimeoutError("it does not become true")
        time.sleep(0.05)
    return result


def listens(port):
    line = re.compile(rf":{int(port):04X} .* 0A ")
    return any(line.search(pathlib.Path(table).read_text()) for table in ("/proc/net/tcp", "/proc/net/tcp6"))


def end(process, number=signal.SIGKILL):
    process.send_signal(number)
    process.wait(timeout=PATIENCE)


def exposition(text):
    """Reads the text format of Prometheus: a name's type, and its samples as (labels, value)."""
    metrics, name = {}, None
    assert text.endswith("\n")
    for line in text[:-1].split("\n"):
        if found := re.fullmatch(r"# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge)", line):
            name = found[1]
            assert name not in metrics, f"{name} has two places"
            metrics[name] = (found[2], [])
            continue
        found = re.fullmatch(r"([a-zA-Z_:][a-zA-Z0-9_:]*)\{(.*)\} (\d+)", line)
        assert found and found[1] == name, line
        label = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"'
        assert re.fullmatch(f"{label}(,{label})*", found[2]), line
        labels = re.findall(label, found[2])
        assert len(dict(labels)) == len(labels), line
        metrics[name][1].append((dict(labels), int(found[3])))
    for kind, samples in metrics.values():
        keys = [tuple(sorted(labels.items())) for labels, _ in samples]
        assert samples and len(set(keys)) == len(keys)
    return metrics


class Control(unittest.TestCase):
    def setUp(self):
        self.at_end = contextlib.ExitStack()
        self.addCleanup(self.at_end.close)
        self.folder = pathlib.Path(self.at_end.enter_context(tempfile.TemporaryDirectory(prefix="hcasim-control-")))
        self.sockets = self.folder / "sockets"

    def start(self, host, *words, options=(), wire=WIRE):
        process = subprocess.Popen([HCASIM, "run", "--wire", wire, "--host", str(host), "--control", self.sockets, *options,
                                    "--", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.at_end.callback(end, process)
        return process

    def pair(self, program, *more, options=(), wire=WIRE):
        """A server, host 1, with these options, and a client, host 2: (process, socket) of each."""
        port = free_port()
        words = [program, "-d", "mlx5_0", "-g", "1", "-n", ENDLESS, "-p", port, *more]
        server = self.start(1, *words, options=options, wire=wire)
        wait_until(lambda: listens(port))
        client = self.start(2, *words, "127.0.0.1", wire=wire)
        return server, self.socket(1, server), client, self.socket(2, client)

    def socket(self, host, process):
        path = self.sockets / f"10.0.0.{host}.{process.pid}.mlx5_0"
        wait_until(path.exists)
        return path

    def ctl(self, path, *words):
        done = subprocess.run([HCASIM, "ctl", "--json", path, *words], capture_output=True, text=True, timeout=PATIENCE,
                              check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def counters(self, path):
        return self.ctl(path, "query-stats")["counters"]

    def test_the_status_names_the_program_and_its_device(self):
        server, at_server, client, at_client = self.pair("ibv_rc_pingpong", options=["--profile", "cx6dx"])
        status = self.ctl(at_server, "query-status")
        self.assertEqual([status[name] for name in ("kind", "device", "program", "pid", "profile", "mac", "link", "cut")],
                         ["host", "mlx5_0", "ibv_rc_pingpong", server.pid, "cx6dx", "02:68:0a:00:00:01", "up", False])
        self.assertEqual(status["addresses"], ["fe80::68:aff:fe00:1", "10.0.0.1"])
        self.assertTrue(status["wire"].endswith(WIRE))
        self.assertEqual({name: each["pid"] for name, each in self.ctl(self.sockets, "query-status").items()},
                         {at_server.name: server.pid, at_client.name: client.pid})

    def test_the_counters_are_those_of_the_capture(self):
        """If the client of a UC pingpong is killed, its server waits for the next message for ever."""
        file = self.folder / "server.pcapng"
        server, at_server, client, _ = self.pair("ibv_uc_pingpong", options=["--capture", file])
        wait_until(lambda: self.counters(at_server)["receives"] > 100)
        (qp,) = self.ctl(at_server, "query-qps")
        end(client)
        wait_until(lambda: self.is_quiet(at_server))
        stats = self.counters(at_server)
        end(server)
        frames = list(capture.timed_frames(file))
        for name, outbound in (("tx", True), ("rx", False)):
            mine = [frame for _, out, frame in frames if out is outbound]
            # The host announces its address by itself, past the device.
            mine = [frame for frame in mine if not outbound or frame[12:14] == IPV4]
            self.assertGreater(len(mine), 100)
            self.assertEqual(stats[f"{name}_frames"], len(mine))
            self.assertEqual(stats[f"{name}_bytes"], sum(map(len, mine)))
        self.assertEqual((qp["type"], qp["state"], qp["peer"]), ("UC", "RTS", "10.0.0.2"))
        self.assertIn(stats["messages"] - stats["receives"], (0, 1))
        self.assertEqual(stats["retransmissions"], 0)

    def is_quiet(self, path):
        before = self.counters(path)
        time.sleep(0.2)
        return self.counters(path) == before

    def test_losses_are_counted_at_both_ends(self):
        _, at_server, _, at_client = self.pair("ibv_rc_pingpong", options=["--loss", "2%"])
        wait_until(lambda: self.counters(at_client)["out_of_sequence"] > 20)
        # What one end has received, the other has sent before.
        received = self.counters(at_server)
        sent = self.counters(at_client)
        self.assertGreater(received["retransmissions"], 20)
        self.assertGreater(received["naks_received"], 0)
        self.assertGreaterEqual(sent["naks_sent"], received["naks_received"])
        self.assertGreaterEqual(sent["out_of_sequence"], sent["naks_sent"])

    def test_the_counts_of_objects_are_those_of_the_program(self):
        _, at_server, _, _ = self.pair("ibv_srq_pingpong", "-q", "5")
        wait_until(lambda: self.ctl(at_server, "query-stats")["qps"] == [{"type": "RC", "state": "RTS", "count": 5}])
        gauges = self.ctl(at_server, "query-stats")["gauges"]
        self.assertEqual((gauges["qps"], gauges["srqs"], gauges["cqs"], gauges["link_up"]), (5, 1, 1, 1))
        self.assertLess(gauges["memory_bytes"], gauges["memory_limit_bytes"])
        rows = self.ctl(at_server, "query-qps")
        self.assertEqual([row["peer"] for row in rows], ["10.0.0.2"] * 5)
        numbers = [row["qpn"] for row in rows]
        self.assertEqual([row["qpn"] for row in self.ctl(at_server, "query-qps", f"from={numbers[2]}", "count=2")],
                         numbers[2:4])

    def test_a_cable_that_is_cut_is_a_link_that_is_down(self):
        server, at_server, client, _ = self.pair("ibv_rc_pingpong")
        watch = subprocess.Popen([HCASIM, "run", "--wire", WIRE, "--host", "3", "--control", self.sockets, "--",
                                  "ibv_asyncwatch", "-d", "mlx5_0"], stdout=subprocess.PIPE, text=True)
        self.at_end.callback(watch.stdout.close)
        self.at_end.callback(end, watch)
        watch.stdout.readline()
        at_watch = self.socket(3, watch)
        self.ctl(at_watch, "set-link", "up=false")
        self.assertEqual(self.ctl(at_watch, "query-status")["link"], "down")
        self.assertIn("IBV_EVENT_PORT_ERR", watch.stdout.readline())
        self.ctl(at_watch, "set-link", "up=true")
        self.assertIn("IBV_EVENT_PORT_ACTIVE", watch.stdout.readline())
        self.assertEqual(self.counters(at_watch)["link_downs"], 1)
        # The side whose message is under way retries, and gives up.
        self.ctl(at_server, "set-link", "up=false")
        wait_until(lambda: server.poll() or client.poll())

    def test_faults_come_and_go_while_programs_run(self):
        _, at_server, _, at_client = self.pair("ibv_rc_pingpong", options=["--fault", "none"])
        self.assertEqual(self.ctl(at_server, "fault-list"), [])
        before = self.counters(at_server)["retransmissions"]
        self.ctl(at_server, "fault-add", "rules=loss 2%; drop NAK in once")
        wait_until(lambda: self.counters(at_server)["retransmissions"] > before + 10)
        first, second = self.ctl(at_server, "fault-list")
        self.assertEqual((first["number"], first["done"] > 0, second["number"]), (1, True, 2))
        self.ctl(at_server, "fault-remove", "number=2")
        self.assertEqual([rule["number"] for rule in self.ctl(at_server, "fault-list")], [1])
        self.ctl(at_server, "fault-remove")
        self.assertEqual(self.ctl(at_server, "fault-list"), [])
        for path, words, said in (
                (at_server, ("fault-remove", "number=2"), "there is no fault 2, see fault-list"),
                (at_server, ("fault-add", "rules=drop everything!"), "everything!"),
                (at_client, ("fault-list",), "mlx5_0 was started without faults: start it with the fault 'none' at least")):
            done = subprocess.run([HCASIM, "ctl", path, *words], capture_output=True, text=True, timeout=PATIENCE, check=False)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1))
            self.assertIn(said, done.stderr)

    def test_a_receive_that_a_rule_returns_is_posted_again(self):
        """libmlx5's mlx5_complete_odp_fault(): the program does not hear of such a receive."""
        _, at_server, _, _ = self.pair("ibv_srq_pingpong", "-q", "4", "-o", options=["--fault", "receive returned"])
        wait_until(lambda: self.counters(at_server)["receives"] > 100)
        (rule,) = self.ctl(at_server, "fault-list")
        self.assertGreater(rule["done"], 0)

    def top(self, *words):
        done = subprocess.run([HCASIM, "top", *words], capture_output=True, text=True, timeout=PATIENCE, check=False)
        return done.returncode, done.stdout.splitlines(), done.stderr

    def test_top_has_a_line_for_each_host(self):
        _, _, client, _ = self.pair("ibv_uc_pingpong")
        status, lines, err = self.top("--once", self.sockets)
        self.assertEqual((status, err, len(lines)), (0, "", 3))
        titles = re.split(r"  +", lines[0])
        for address, line in zip(("10.0.0.1", "10.0.0.2"), lines[1:]):
            row = dict(zip(titles, re.split(r"  +", line)))
            self.assertEqual([row[name] for name in ("HOST", "DEVICE", "LINK", "QPS", "RETR/s", "TIMEOUT", "PROGRAM")],
                             [address, "mlx5_0", "up", "1", "0", "0", "ibv_uc_pingpong"])
            for name in ("TX bit/s", "RX bit/s", "TX fr/s", "MSG/s"):
                self.assertRegex(row[name], r"^[1-9][0-9.]*[kMG]?$")
        client.send_signal(signal.SIGSTOP)
        _, lines, _ = self.top(self.sockets)    # the output is no terminal
        self.assertEqual([line.split()[2] for line in lines[1:]], ["up", "silent"])
        client.send_signal(signal.SIGCONT)

    def test_top_has_a_line_for_each_port_of_a_switch(self):
        at, control = self.folder / "switch", self.folder / "switch.ctl"
        switch = subprocess.Popen([HCASIM, "switch", "--listen", at, "--control", control], stdout=subprocess.DEVNULL)
        self.at_end.callback(end, switch)
        wait_until(lambda: at.exists() and control.exists())
        self.pair("ibv_uc_pingpong", wire=f"connect:{at}")
        status, lines, err = self.top("--once", control)
        self.assertEqual((status, err, len(lines)), (0, "", 3))
        for number, line in enumerate(lines[1:], 1):
            row = re.split(r"  +", line)
            self.assertEqual(row[:3], ["switch.ctl", f"port {number}", "up"])
            self.assertRegex(row[5], r"^[1-9][0-9.]*[kMG]?$")
        status, lines, err = self.top("--once", control, self.sockets)
        self.assertEqual((status, err, len(lines)), (0, "", 5))

    def test_top_says_what_is_wrong(self):
        environment = {name: value for name, value in os.environ.items() if name != "HCASIM_CONTROL"}
        for words, status, said in ((["--once", self.folder], 1, "no process has a control socket there: start it with --control"),
                                    ([], 2, "top needs a folder of control sockets, or a control socket, see hcasim help top"),
                                    (["--once", "--prometheus", "/tmp/x", "/tmp"], 2, "--once and --prometheus exclude each other"),
                                    (["--prometheus", "nowhere", "/tmp"], 1, "'nowhere' is not HOST:PORT")):
            done = subprocess.run([HCASIM, "top", *words], capture_output=True, text=True, timeout=PATIENCE, check=False,
                                  env=environment)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (status, "", f"hcasim: {said}\n"))

    def test_top_on_a_terminal(self):
        self.pair("ibv_uc_pingpong")
        pid, terminal = pty.fork()
        if not pid:
            os.execv(HCASIM, [HCASIM, "top", str(self.sockets)])
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 10, 40, 0, 0))
        seen = b""
        asked = False
        while True:
            try:
                seen += os.read(terminal, 65536)
            except OSError:
                break       # it has ended
            if not asked and seen.count(b"10.0.0.2") >= 2:
                os.write(terminal, b"m")
                os.write(terminal, b"q")
                asked = True
        os.close(terminal)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.assertTrue(seen.startswith(b"\x1b[?1049h\x1b[?25l") and seen.endswith(b"\x1b[?25h\x1b[?1049l"))
        last = re.sub(rb"\x1b\[[?0-9]*[a-zA-Z]", b"", seen.split(b"\x1b[H")[-1]).decode().replace("\r", "").split("\n")
        self.assertEqual(last[0][:20], "HOST      DEVICE  LI")
        self.assertEqual({line.split()[0] for line in last[1:3]}, {"10.0.0.1", "10.0.0.2"})
        self.assertLessEqual(max(map(len, last)), 40)

    def ask(self, path, request):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(request)
            answer = b""
            while piece := client.recv(65536):
                answer += piece
        head, _, body = answer.decode().partition("\r\n\r\n")
        return head.split("\r\n")[0], body

    def test_prometheus_reads_the_same_numbers(self):
        _, at_server, _, at_client = self.pair("ibv_srq_pingpong", "-q", "3")
        path = self.folder / "metrics"
        server = subprocess.Popen([HCASIM, "top", "--prometheus", path, self.sockets])
        self.at_end.callback(end, server)
        wait_until(path.exists)
        before = self.counters(at_server)
        status, text = self.ask(path, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        after = self.counters(at_server)
        self.assertEqual(status, "HTTP/1.1 200 OK")
        metrics = exposition(text)
        kinds = {name: kind for name, (kind, _) in metrics.items()}
        self.assertEqual((kinds["hcasim_messages_total"], kinds["hcasim_qps"]), ("counter", "gauge"))
        for name, least in before.items():
            kind, samples = metrics[f"hcasim_{name}_total"]
            (value,) = (value for labels, value in samples if labels["socket"] == at_server.name)
            self.assertEqual(kind, "counter")
            self.assertTrue(least <= value <= after[name], name)
        self.assertEqual({(labels["host"], labels["device"], labels["program"], value)
                          for labels, value in metrics["hcasim_qps"][1]},
                         {("10.0.0.1", "mlx5_0", "ibv_srq_pingpong", 3), ("10.0.0.2", "mlx5_0", "ibv_srq_pingpong", 3)})
        self.assertEqual({(labels["type"], labels["state"], value) for labels, value in metrics["hcasim_qps_in_state"][1]},
                         {("RC", "RTS", 3)})
        self.assertEqual(self.ask(path, b"GET /other HTTP/1.1\r\n\r\n")[0], "HTTP/1.1 404 Not Found")
        self.assertEqual(self.ask(path, b"PUT / HTTP/1.1\r\n\r\n")[0], "HTTP/1.1 405 Method Not Allowed")
        self.assertEqual(self.ask(path, b"x" * 8192)[0], "HTTP/1.1 400 Bad Request")
        self.assertEqual(path.stat().st_mode & 0o777, 0o600)
        end(server, signal.SIGTERM)
        self.assertEqual((server.returncode, path.exists()), (0, False))

    def test_sockets_end_with_their_programs(self):
        server, at_server, client, at_client = self.pair("ibv_rc_pingpong")
        (self.sockets / "not-ours").touch()
        for process in (server, client):
            end(process)
        self.assertTrue(at_server.exists())     # it was killed
        done = subprocess.run([HCASIM, "run", "--wire", WIRE, "--control", self.sockets, "--", "ibv_devinfo"], check=True,
                              stdout=subprocess.PIPE)
        self.assertIn(b"mlx5_0", done.stdout)
        self.assertEqual([path.name for path in self.sockets.iterdir()], ["not-ours"])

    def test_a_program_that_does_not_close_its_device_leaves_no_socket(self):
        program = ("import ctypes, glob, sys; verbs = ctypes.CDLL('libibverbs.so.1'); "
                   "verbs.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p); "
                   "verbs.ibv_open_device.restype = ctypes.c_void_p; "
                   "assert verbs.ibv_open_device(ctypes.c_void_p(verbs.ibv_get_device_list(None)[0])); "
                   "print(len(glob.glob(sys.argv[1] + '/*')))")
        done = subprocess.run([HCASIM, "run", "--wire", WIRE, "--control", self.sockets, "--", sys.executable, "-c", program,
                               self.sockets], check=True, stdout=subprocess.PIPE)
        self.assertEqual((done.stdout, list(self.sockets.iterdir())), (b"1\n", []))

    def test_each_host_of_a_cluster_has_a_socket(self):
        done = subprocess.Popen([HCASIM, "cluster", "-n", "3", "--control", self.sockets, "--", "ibv_asyncwatch", "-d", "mlx5_0"],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.at_end.callback(end, done, signal.SIGINT)
        wait_until(lambda: self.sockets.exists() and len(list(self.sockets.iterdir())) == 3)
        addresses = sorted(each["addresses"][1] for each in self.ctl(self.sockets, "query-status").values())
        self.assertEqual(addresses, ["10.0.0.1", "10.0.0.2", "10.0.0.3"])

    def test_a_folder_that_cannot_be_made_is_an_error(self):
        (self.folder / "file").touch()
        done = subprocess.run([HCASIM, "run", "--wire", WIRE, "--control", self.folder / "file/sockets", "--", "ibv_devinfo"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(f"hcasim: mlx5_0: the folder of the control sockets, {self.folder}/file/sockets: Not a directory",
                      done.stderr)


if __name__ == "__main__":
    if not shutil.which("ibv_rc_pingpong"):
        print("ibv_rc_pingpong is not installed")
        sys.exit(77)
    unittest.main()
