# SPDX-License-Identifier: BSD-2-Clause
"""Runs one program on several hosts of a wire, each with an HCA of its own: the part behind `hcasim cluster`.

The program hcasim calls this with its checked options as one JSON argument, and then the program and its
arguments. Each line that a host prints begins with the number of the host. The exit status is that of the first
host that failed, as a shell has it. An interrupt ends all hosts.
"""
import contextlib
import json
import os
import pathlib
import selectors
import signal
import subprocess
import sys
import time

OF_ONE_HOST = ("HOST", "IP", "MAC", "CAPTURE")
LINE = 1 << 16     # a longer line is printed in pieces
LINGER = 0.5       # seconds for what a program that has ended leaves in its pipes
PATIENCE = 5       # seconds from SIGTERM to SIGKILL
STDOUT, STDERR = 1, 2


class Host:
    """A program that runs on one host, and the pipes that it prints to."""

    def __init__(self, number, command, environment):
        self.number = number
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        self.rest = {self.process.stdout: b"", self.process.stderr: b""}
        self.ended_at = None

    def status(self):
        """As a shell has it; None: it runs."""
        code = self.process.poll()
        return code if code is None or code >= 0 else 128 - code

    def signal(self, number):
        """To the program and to what it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)


class Cluster:
    def __init__(self, options, command):
        self.pipes = selectors.DefaultSelector()
        self.hosts = []
        self.first_failure = 0
        self.interrupts = []    # signals that came
        self.is_printing = False
        self.options = options
        self.command = command

    def start(self):
        count, step = self.options["hosts"], self.options["devices"]
        for number in range(1, count + 1):
            if self.interrupts:
                return
            host = Host(number, self._line(1 + (number - 1) * step, number), self._environment(count))
            self.hosts.append(host)
            for pipe in host.rest:
                os.set_blocking(pipe.fileno(), False)
                self.pipes.register(pipe, selectors.EVENT_READ, host)

    def _line(self, first_device, number):
        line = [self.options["hcasim"], "run", "--wire", self.options["wire"], "--host", str(first_device)]
        if self.options["require"]:
            line.append("--require")
        if self.options["capture"]:
            file = pathlib.Path(self.options["capture"])
            line += ["--capture", str(file.with_suffix(f".{number}{file.suffix}"))]
        return [*line, "--", *self.command]

    @staticmethod
    def _environment(count):
        environment = {name: value for name, value in os.environ.items()
                       if name not in {f"HCASIM_{of}" for of in OF_ONE_HOST}}
        return {**environment, "HCASIM_HOSTS": str(count)}

    def run(self):
        """Until all have ended, or an interrupt comes. Returns the exit status."""
        while not self.interrupts and (any(host.ended_at is None for host in self.hosts) or self._unread()):
            for key, _ in self.pipes.select(timeout=0.1):
                self._read(key.fileobj, key.data)
            for host in self.hosts:
                self._see_end(host)
        return 128 + self.interrupts[0] if self.interrupts else self.first_failure

    def interrupt(self, number, _):
        """A signal is noted and looked at later, for it may come in the midst of anything; but whoever should read
        what is printed may not do so."""
        self.interrupts.append(number)
        if self.is_printing:
            sys.exit(128 + number)

    def _print(self, descriptor, text):
        self.is_printing = True
        while text and not self.interrupts:
            text = text[os.write(descriptor, text):]
        self.is_printing = False

    def _unread(self):
        """Something that a program started may hold its pipes for ever: it is not waited for."""
        return any(time.monotonic() < key.data.ended_at + LINGER for key in self.pipes.get_map().values())

    def _see_end(self, host):
        if host.ended_at is not None or host.status() is None:
            return
        host.ended_at = time.monotonic()
        # What it printed stands before the news of its end. A pipe holds no more than one read takes.
        for pipe in set(host.rest) & {key.fileobj for key in self.pipes.get_map().values()}:
            with contextlib.suppress(BlockingIOError):
                self._read(pipe, host)
        if host.status():
            self.first_failure = self.first_failure or host.status()
            self._print(STDERR, f"hcasim: host {host.number} ended with status {host.status()}\n".encode())

    def _read(self, pipe, host):
        chunk = os.read(pipe.fileno(), LINE)
        if not chunk:
            self.pipes.unregister(pipe)
        lines = (host.rest[pipe] + chunk).split(b"\n")
        host.rest[pipe] = lines.pop()
        if not chunk or len(host.rest[pipe]) >= LINE:
            lines += [host.rest[pipe]] if host.rest[pipe] else []
            host.rest[pipe] = b""
        if lines:
            width = len(str(self.options["hosts"]))
            label = f"{host.number:{width}}| ".encode()
            self._print(STDOUT if pipe is host.process.stdout else STDERR,
                        b"".join(label + line + b"\n" for line in lines))

    def end(self):
        """Whoever still runs, and what it started. A second interrupt means: at once."""
        self.is_printing = False
        running = [host for host in self.hosts if host.status() is None]
        for host in running:
            host.signal(signal.SIGTERM)
        until = time.monotonic() + PATIENCE
        while any(host.status() is None for host in running) and time.monotonic() < until and \
                len(self.interrupts) < 2:
            time.sleep(0.02)
        for host in self.hosts:
            host.signal(signal.SIGKILL)
            host.process.wait()


def main():
    cluster = Cluster(json.loads(sys.argv[1]), sys.argv[2:])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, cluster.interrupt)
    try:
        cluster.start()
        return cluster.run()
    except BrokenPipeError:  # whoever reads what we print has gone
        return 128 + signal.SIGPIPE
    except OSError as error:  # no more descriptors or processes, a disk that is full
        print(f"hcasim: {error}", file=sys.stderr)
        return 1
    finally:
        cluster.end()


if __name__ == "__main__":
    sys.exit(main())
