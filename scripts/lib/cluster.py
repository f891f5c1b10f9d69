# SPDX-License-Identifier: BSD-2-Clause
"""Hosts behind `scripts/hcasim cluster`: one program on so many hosts of a wire, each with an HCA of its own.

usage: scripts/hcasim cluster -n N [OPTION...] [--] PROGRAM [ARGUMENT...]

Host 1 to N run the program, each on its own HCA; they reach each other, and nobody else, unless --wire says so. The
program finds its address's last number in HCASIM_HOST (10.0.0.HCASIM_HOST), N in HCASIM_HOSTS; with --devices D
the numbers of hosts are D apart. Each line that a host prints begins with its number. Who does not end well is named on standard
error. The exit status is that of the first one that failed, as a shell tells it; an interrupt ends all.

  -n, --hosts N      hosts
  --wire NAME        the wire (default: one of its own)
  --capture FILE     writes the frames of host H to FILE, with .H before its suffix

and the options of `hcasim run`, but for --host, --ip and --mac, which each host has of its own: a key file of --config has
none of them either, and no capture.
"""
import configparser
import contextlib
import os
import pathlib
import selectors
import signal
import subprocess
import sys
import time

RUN = pathlib.Path(__file__).resolve().parents[1] / "hcasim"
OF_ONE_HOST = ("HOST", "IP", "MAC", "CAPTURE")
PASSED_ON = ("--devices", "--mtu", "--memory", "--responders", "--profile", "--log", "--config", "--build")
MOST_HOSTS = 254   # of which each has an address of its own (10.0.0.H)
LINE = 1 << 16     # a longer line is printed in pieces
LINGER = 0.5       # seconds for what a program that has ended leaves in its pipes
PATIENCE = 5       # seconds from SIGTERM to SIGKILL
STDOUT, STDERR = 1, 2


class Usage(Exception):
    pass


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
        line = [str(RUN), "run", "--wire", self.options["wire"], "--host", str(first_device), *self.options["passed"]]
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


def count_of(option, text, most):
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= most:
        raise Usage(f"{option} is 1 to {most}, not '{text}'")
    return int(text)


def settings_of(file):
    """Of a key file. What is wrong with it otherwise, each host's program says."""
    parser = configparser.ConfigParser(interpolation=None, strict=False, delimiters="=", comment_prefixes="#")
    with contextlib.suppress(configparser.Error, OSError, UnicodeDecodeError):
        parser.read(file, encoding="utf-8")
    settings = dict(parser["hcasim"]) if "hcasim" in parser else {}
    for own in OF_ONE_HOST:
        if own.lower() in settings:
            raise Usage(f"{file}: {own.lower()}: each host has its own")
    return settings


def devices_of(passed):
    """Devices of a host: as an option says, else the environment, else the key file; else 1."""
    options = dict(zip(passed[::2], passed[1::2]))
    file = options.get("--config") or os.environ.get("HCASIM_CONFIG")
    said = {f"{file}: devices": settings_of(file).get("devices", "").strip() if file else "",
            "HCASIM_DEVICES": os.environ.get("HCASIM_DEVICES"), "--devices": options.get("--devices")}
    devices = 1
    for source, text in said.items():
        devices = count_of(source, text, MOST_HOSTS) if text else devices
    return devices


def parse(words):
    """Options and the program with its arguments."""
    options = {"hosts": 0, "wire": f"cluster-{os.getpid()}", "capture": "", "passed": []}
    words = list(words)
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if option == "--":
            break
        if option in ("--host", "--ip", "--mac"):
            raise Usage(f"{option}: each host has its own")
        if option not in ("-n", "--hosts", "--wire", "--capture", *PASSED_ON):
            raise Usage(f"there is no option {option}")
        if not words:
            raise Usage(f"{option} needs a value")
        value = words.pop(0)
        if option in ("-n", "--hosts"):
            options["hosts"] = count_of(option, value, MOST_HOSTS)
        elif option == "--capture" and not pathlib.Path(value).name:
            raise Usage(f"--capture {value}: that is no file")
        elif option in ("--wire", "--capture"):
            options[option[2:]] = value
        else:
            options["passed"] += [option, value]
    options["devices"] = devices_of(options["passed"])
    if not options["hosts"]:
        raise Usage("how many hosts? (-n N)")
    if options["hosts"] * options["devices"] > MOST_HOSTS:
        raise Usage(f"that is more than {MOST_HOSTS} devices")
    if not words:
        raise Usage("which program?")
    return options, words


def main():
    words = sys.argv[1:]
    if words[:1] in (["-h"], ["--help"]):
        print(__doc__.split("\n\n", 1)[1], end="")
        return 0
    try:
        cluster = Cluster(*parse(words))
    except Usage as error:
        print(f"hcasim: {error}, see hcasim cluster --help", file=sys.stderr)
        return 1
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
