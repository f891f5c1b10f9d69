# SPDX-License-Identifier: BSD-2-Clause
"""`hcasim ctl`: what it prints of the answers of a process, and how it says what went wrong.

usage: test_ctl.py HCASIM CONTROL_SERVER
"""
import json
import pathlib
import socket
import subprocess
import sys
import tempfile
import unittest

HCASIM, SERVER = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(2))
PATIENCE = 60
COMMANDS = """\
query-commands
    lists the commands and their arguments
query-status
    tells the state
set-link up=BOOL
    sets the link up or down
    up: whether the link is up
echo [text=STRING] [int=INT] [number=NUMBER] [any=ANY]
    answers with its arguments
fail
    fails
sleep
    is slow
"""
STATUS = """\
name: mlx5_0
up: true
addresses: 10.0.0.1, fe80::1
faults: -
link:
  mtu: 1500
  peer: -
qps:
  type       qpn  depth
  RC           7      -
  UD ?[31m  1234      3
"""


def hcasim(*words):
    done = subprocess.run([HCASIM, *words], capture_output=True, text=True, timeout=PATIENCE, check=False)
    return done.returncode, done.stdout, done.stderr


class Ctl(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="hcasim-ctl-")
        self.socket = pathlib.Path(self.folder.name) / "s"
        self.server = subprocess.Popen([SERVER, self.socket], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.assertEqual(self.server.stdout.readline(), "ready\n")

    def tearDown(self):
        self.server.stdin.close()
        self.server.wait(timeout=PATIENCE)
        self.server.stdout.close()
        self.folder.cleanup()

    def ctl(self, *words):
        return hcasim("ctl", self.socket, *words)

    def result(self, *words):
        status, out, err = self.ctl("--json", *words)
        self.assertEqual((status, err), (0, ""))
        return json.loads(out)

    def test_the_commands_are_listed_with_their_arguments(self):
        self.assertEqual(self.ctl(), (0, COMMANDS, ""))
        names = [row["name"] for row in self.result()]
        self.assertEqual(names, ["query-commands", "query-status", "set-link", "echo", "fail", "sleep"])

    def test_an_answer_is_printed_as_text(self):
        self.assertEqual(self.ctl("query-status"), (0, STATUS, ""))

    def test_an_answer_is_printed_as_json(self):
        status = self.result("query-status")
        self.assertEqual(status["qps"][1], {"type": "UD \x1b[31m", "qpn": 1234, "depth": 3})
        self.assertEqual(status["link"], {"mtu": 1500, "peer": None})

    def test_a_command_without_a_result_prints_nothing(self):
        self.assertEqual(self.ctl("set-link", "up=false"), (0, "", ""))
        self.assertIs(self.result("query-status")["up"], False)
        self.assertEqual(self.result("set-link", "up=true"), {})

    def test_arguments_have_the_types_that_the_process_asks_for(self):
        self.assertEqual(self.result("echo", "text=7", "int=-7", "number=1.5", 'any={"a": [true]}'),
                         {"text": "7", "int": -7, "number": 1.5, "any": {"a": [True]}})
        self.assertEqual(self.result("echo", "text=a=b", "any=word"), {"text": "a=b", "any": "word"})
        self.assertEqual(self.result("echo", "text="), {"text": ""})

    def refused(self, line, *words):
        self.assertEqual(self.ctl(*words), (1, "", f"hcasim: {line}\n"))

    def test_what_the_process_refuses_is_said_in_one_line(self):
        self.refused("there is no command 'quit', see query-commands", "quit")
        self.refused("set-link needs the argument up", "set-link")
        self.refused("the argument up of set-link must be true or false", "set-link", "up=maybe")
        self.refused("the argument int of echo must be an integer", "echo", "int=1.5")
        self.refused("set-link has no argument 'down', see query-commands", "set-link", "down=true")
        self.refused("there is no? QP 7", "fail")
        self.refused("an argument must be NAME=VALUE, but it is 'up'", "set-link", "up")
        self.refused("an argument must be NAME=VALUE, but it is '=up'", "set-link", "=up")
        self.refused("the argument up is given twice, or is not UTF-8", "set-link", "up=true", "up=true")

    def test_a_process_that_does_not_answer_is_given_up(self):
        self.refused(f"{self.socket}: there is no answer after 5000 ms", "sleep")

    def test_a_socket_at_which_nobody_listens(self):
        gone = self.socket.with_name("gone")
        self.assertEqual(hcasim("ctl", gone), (1, "", f"hcasim: {gone}: there is no such socket\n"))
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(gone))
        self.assertEqual(hcasim("ctl", gone), (1, "", f"hcasim: {gone}: no process listens there any more\n"))

    def test_a_folder_stands_for_its_sockets(self):
        folder, name = self.socket.parent, self.socket.name
        (folder / "file").touch()
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(folder / "killed"))
        self.assertEqual(hcasim("ctl", folder), (0, COMMANDS, ""))
        second = folder / "s10"
        with subprocess.Popen([SERVER, second], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
            server.stdout.readline()
            self.assertEqual(hcasim("ctl", second, "set-link", "up=false"), (0, "", ""))
            status, out, err = hcasim("ctl", "--json", folder, "query-status")
            self.assertEqual({each: answer["up"] for each, answer in json.loads(out).items()}, {name: True, "s10": False})
            self.assertEqual((status, err), (0, ""))
            self.assertIn("s10:\n  name: mlx5_0\n  up: false\n", hcasim("ctl", folder, "query-status")[1])
            self.assertEqual(hcasim("ctl", folder, "fail"), (1, "", f"hcasim: {name}: there is no? QP 7\n"))
            server.stdin.close()
        with tempfile.TemporaryDirectory() as empty:
            self.assertEqual(hcasim("ctl", empty, "query-status"),
                             (1, "", f"hcasim: {empty}: no process has a control socket in this folder\n"))

    def test_wrong_use(self):
        self.assertEqual(hcasim("ctl"), (2, "", "hcasim: ctl needs the path of a control socket, see hcasim help ctl\n"))

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([HCASIM, "ctl", self.socket, "query-status"], stdout=full, stderr=subprocess.PIPE,
                                  timeout=PATIENCE, check=False)
        self.assertEqual((done.returncode, done.stderr), (125, b"hcasim: standard output: No space left on device\n"))


if __name__ == "__main__":
    unittest.main()
