# SPDX-License-Identifier: BSD-2-Clause
"""Programs under `scripts/hcasim run` as processes of a test: a wire of its own, pairs of server and client."""
import contextlib
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))

import tries  # noqa: E402

HCASIM = ROOT / "scripts/hcasim"
PATIENCE = 120 * float(os.environ.get("HCASIM_SLOWNESS", "1"))  # seconds for any program
# The file for the XRC domains of perftest and ibv_xsrq_pingpong, which is left behind. If another user has made it,
# it cannot be opened.
XRC_FILES = [pathlib.Path(f"/tmp/xrc_domain{of}") for of in ("", "_client", "_server")]
# rping's whole output when it is done, although it ends with status 255: the thread that waits for events may return
# to its channel after main() has closed it. rdma-core 59 joins that thread first ("rping: terminate CM event thread
# before exiting"); Debian 12's is older. If a ping had failed, rping would print so between the two lines.
RPING_IS_DONE = re.compile(r"\A(client|server) DISCONNECT EVENT\.\.\.\n(wait for RDMA_READ_ADV state 10\n)?"
                           r"rdma_get_cm_event: Bad file descriptor\n\Z")


class Failure(Exception):
    pass


def absent(command):
    """Returns the program that a command needs and that is not installed or built, or None."""
    program = next(word for word in command if word not in ("env", "stdbuf") and "=" not in word and word[0] != "-")
    return None if shutil.which(program) else program


def remove_xrc_files():
    """Removes the files; another user's files stay, unless this is root."""
    for left in XRC_FILES:
        with contextlib.suppress(PermissionError):
            left.unlink(missing_ok=True)


def has_failed(process, text):
    """Returns whether a process that has ended with this output has failed."""
    return process.returncode and not (process.command.startswith("rping ") and RPING_IS_DONE.match(text))


class Hosts:
    """The wire and the processes on it."""

    def __init__(self, build):
        self.build = build
        self.wire = f"hosts-{os.getpid()}"
        self.started = []

    def start(self, *command, options=()):
        if absent(command):
            raise tries.Missing(f"no {absent(command)}")
        wire = () if "--wire" in options else ("--wire", self.wire)
        process = subprocess.Popen(
            [HCASIM, "run", "--build", self.build, *wire, *options, "--", *command],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        process.command = " ".join(command)
        self.started.append(process)
        return process

    def output(self, process):
        """Returns the output of a program that must succeed."""
        text = process.communicate(timeout=PATIENCE)[0]
        if has_failed(process, text):
            raise Failure(f"{process.command}: exit status {process.returncode}\n{text}")
        return text

    def run(self, *command, options=()):
        return self.output(self.start(*command, options=options))

    def start_pair(self, *command, options=()):
        """Starts a server and a client that connects to it."""
        port = free_port()
        server = self.start(*command, "-p", str(port), options=options)
        wait_listening(server, port)
        return server, self.start(*command, "-p", str(port), "localhost", options=options)

    def both(self, *command):
        """Returns what a client and its server print, however they end."""
        return [(side, side.communicate(timeout=PATIENCE)[0]) for side in reversed(self.start_pair(*command))]

    def pair(self, *command, options=()):
        """Returns what a client and its server print; both must succeed."""
        server, client = self.start_pair(*command, options=options)
        try:
            return self.output(client), self.output(server)
        except Failure as err:
            if client.returncode == 0:
                raise
            try:  # only the server may know why the client failed
                text = server.communicate(timeout=5)[0]
            except subprocess.TimeoutExpired:
                server.kill()
                text = server.communicate()[0]
            raise Failure(f"{err}\n{server.command}: exit status {server.returncode}\n{text}") from err

    def kill(self):
        """Kills all processes that still run. Returns their output."""
        said = []
        for process in self.started:
            if process.poll() is None:
                process.kill()
                said.append(f"{process.command}: {process.communicate()[0]}")
        self.started.clear()
        return "\n".join(said)

    def end(self):
        """Cleans up. Returns the output of processes that still ran."""
        said = self.kill()
        for left in self.segments():
            left.unlink(missing_ok=True)
        remove_xrc_files()
        return said

    def segments(self):
        return list(pathlib.Path("/dev/shm").glob(f"hcasim-{os.getuid()}-{self.wire}*"))


def said_until_now(process):
    """Returns the output of a process that should still run, and how it has ended if it has. Kills it."""
    status = process.poll()
    process.kill()
    return f"{process.command}: {'runs' if status is None else f'exit status {status}'}\n{process.communicate()[0]}"


def free_port():
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


def listens(process, port):
    """Returns whether the port is in state LISTEN in the network of a process."""
    wanted = re.compile(rf":{port:04X} 0+:0000 0A ")
    with contextlib.suppress(OSError):  # it has ended
        return any(wanted.search(pathlib.Path(f"/proc/{process.pid}/net/{net}").read_text()) for net in ("tcp", "tcp6"))
    return False


def wait_listening(process, port):
    """Waits until a port is in state LISTEN; a connection to find out would be taken for the program's client."""
    end = time.monotonic() + PATIENCE
    while not listens(process, port):
        if process.poll() is not None or time.monotonic() > end:
            raise Failure(f"{process.command} does not listen\n{process.communicate()[0]}")
        time.sleep(0.02)
