# SPDX-License-Identifier: BSD-2-Clause
"""Runs one program on several hosts of a wire, each with an HCA of its own: the part behind `hcasim cluster`.

The program hcasim calls this with its checked options as one JSON argument, and then the program and its
arguments. Each line that a host prints begins with the number of the host. The exit status is that of the first
host that failed, as a shell has it. SIGINT, SIGTERM, SIGHUP and SIGQUIT end all hosts, unless the caller ignores
the signal, as nohup does with SIGHUP.
"""
import contextlib
import json
import os
import pathlib
import select
import selectors
import signal
import subprocess
import sys
import time

LINE = 1 << 16     # a longer line is printed in pieces
LINGER = 0.5       # seconds for reading the pipes of a program that has ended
PATIENCE = 5       # seconds from SIGTERM to SIGKILL
STDOUT, STDERR = 1, 2
FAILED = 125       # exit status: hcasim itself failed
INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Host:
    """A program that runs on one host, and the pipes that it prints to."""

    def __init__(self, number, command, environment):
        self.number = number
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        self.rest = {self.process.stdout: b"", self.process.stderr: b""}
        self.ended_at = None

    def status(self):
        """Returns the exit status, as a shell counts it, or None while the program runs."""
        code = self.process.poll()
        return code if code is None or code >= 0 else 128 - code

    def signal(self, number):
        """Sends a signal to the program and to the processes that it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)


class Cluster:
    def __init__(self, options, command):
        self.pipes = selectors.DefaultSelector()
        self.hosts = []
        self.first_failure = 0
        self.interrupts = []    # signals that came
        self.until = None       # in end(): when all hosts must have ended
        self.unprinted = {STDOUT: bytearray(), STDERR: bytearray()}
        self.is_printing = False
        self.is_broken = False  # a write has failed: nothing more is printed
        self.options = options
        self.command = command

    def start(self):
        count, step = self.options["hosts"], self.options["devices"]
        for number in range(1, count + 1):
            if self.interrupts:
                return
            host = Host(number, self._line(1 + (number - 1) * step, number), {**os.environ, "HCASIM_HOSTS": str(count)})
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
        if self.options["trace_file"]:
            file = pathlib.Path(self.options["trace_file"])
            line += ["--trace-file", str(file.with_suffix(f".{number}{file.suffix}"))]
        return [*line, "--", *self.command]

    def run(self):
        """Runs until all hosts have ended, or an interrupt comes. Returns the exit status."""
        while not self.interrupts and (any(host.ended_at is None for host in self.hosts) or self._unread()):
            self._serve()
        if not self.interrupts:
            self._print_rests()
        return 128 + self.interrupts[0] if self.interrupts else self.first_failure

    def _serve(self):
        for key, _ in self.pipes.select(timeout=0.1):
            self._read(key.fileobj, key.data)
        for host in self.hosts:
            self._see_end(host)

    def interrupt(self, number, _):
        """Notes a signal; it is handled later, because it may come at any moment. The second signal ends this
        program even if it waits for the reader of its output."""
        self.interrupts.append(number)
        if self.is_printing and len(self.interrupts) > 1:
            sys.exit(128 + number)

    def _print(self, descriptor, text):
        """Waits for the reader, until an interrupt comes. Then the reader has 0.1 s for each piece, or as long as
        a host runs after end() has told it to end; the rest stays in self.unprinted."""
        if self.is_broken:
            return
        self.unprinted[descriptor] += text
        self.is_printing = True
        try:
            while self.unprinted[descriptor] and self._may_print(descriptor):
                # A pipe that has room takes PIPE_BUF bytes without waiting.
                with contextlib.suppress(BlockingIOError):
                    del self.unprinted[descriptor][:os.write(descriptor, self.unprinted[descriptor][:select.PIPE_BUF])]
        except OSError:
            self.is_broken = True
            raise
        finally:
            self.is_printing = False

    def _may_print(self, descriptor):
        poll = select.poll()
        poll.register(descriptor, select.POLLOUT)
        while not poll.poll(100):
            if self.interrupts and not (self.until and self._are_running()):
                return False
        return True

    def _are_running(self):
        return time.monotonic() < self.until and len(self.interrupts) < 2 and \
            any(host.status() is None for host in self.hosts)

    def _unread(self):
        """Returns whether pipes are still to be read. A process that the program started may hold them open for
        ever, so they are read until LINGER after the end of the program."""
        return any(time.monotonic() < key.data.ended_at + LINGER for key in self.pipes.get_map().values())

    def _see_end(self, host):
        if host.ended_at is not None or host.status() is None:
            return
        host.ended_at = time.monotonic()
        # Its output is printed before the line about its end. One read takes all that a pipe holds.
        for pipe in set(host.rest) & {key.fileobj for key in self.pipes.get_map().values()}:
            with contextlib.suppress(BlockingIOError):
                self._read(pipe, host)
        if host.status() and not (self.interrupts or self.until):
            self.first_failure = self.first_failure or host.status()
            self._print(STDERR, f"hcasim: host {host.number} ended with status {host.status()}\n".encode())

    def _read(self, pipe, host):
        chunk = os.read(pipe.fileno(), LINE)
        if not chunk:
            self.pipes.unregister(pipe)
        lines = (host.rest[pipe] + chunk).split(b"\n")
        host.rest[pipe] = lines.pop()
        self._print_lines(pipe, host, lines)
        if not chunk or len(host.rest[pipe]) >= LINE:
            self._print_rest(pipe, host)

    def _print_lines(self, pipe, host, lines):
        width = len(str(self.options["hosts"]))
        label = f"{host.number:{width}}| ".encode()
        self._print(STDOUT if pipe is host.process.stdout else STDERR,
                    b"".join(label + line + b"\n" for line in lines))

    def _print_rest(self, pipe, host):
        """Prints a last line that has no end, or a piece of a long line."""
        if rest := host.rest[pipe]:
            host.rest[pipe] = b""
            self._print_lines(pipe, host, [rest])

    def _print_rests(self):
        for host in self.hosts:
            for pipe in host.rest:
                self._print_rest(pipe, host)

    def end(self):
        """Ends the hosts that still run, and what they started. A second interrupt ends them at once."""
        for host in self.hosts:
            if host.status() is None:
                host.signal(signal.SIGTERM)
        self.until = time.monotonic() + PATIENCE
        try:
            with contextlib.suppress(OSError):
                while self._are_running():
                    self._serve()
                if self.interrupts:
                    self._serve()
                    self._print_rests()
        finally:
            for host in self.hosts:
                host.signal(signal.SIGKILL)
                host.process.wait()
        # Hosts that a signal ended have not removed their wire. If another host is on the wire, it stays.
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run([self.options["hcasim"], "wires", "--clean", self.options["wire"]], check=False,
                           timeout=PATIENCE, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)


def main():
    cluster = Cluster(json.loads(sys.argv[1]), sys.argv[2:])
    for number in INTERRUPTS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, cluster.interrupt)
    # If the caller ignores SIGCHLD, so does this process, and the kernel keeps no exit status of a host.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        cluster.start()
        return cluster.run()
    except BrokenPipeError:  # the reader of our output has gone
        return 128 + signal.SIGPIPE
    except OSError as error:  # no more descriptors or processes, a disk that is full
        with contextlib.suppress(OSError):
            os.write(STDERR, f"hcasim: {error.strerror}\n".encode())
        return FAILED
    finally:
        cluster.end()


if __name__ == "__main__":
    sys.exit(main())
