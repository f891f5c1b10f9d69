# SPDX-License-Identifier: BSD-2-Clause
"""Runs a QEMU without a guest: the test itself does what a guest would do, over QEMU's qtest.

The one CPU halts for ever in a BIOS of four instructions, so memory, ports and time are QEMU's own.
(QEMU's accelerator for such tests would do the same, but distributions do not ship it.) If QEMU
does not answer in time, or ends for any reason, that is a Failure, which carries QEMU's last
output.

A plugin that was built with AddressSanitizer needs its run-time library loaded before all others.
"""
import ctypes
import json
import os
import pathlib
import signal
import socket
import subprocess
import time

QEMU = os.environ.get("QEMU", "qemu-system-x86_64")
# A slow machine needs a factor on every limit, not other limits.
PATIENCE = 60 * float(os.environ.get("HCASIM_SLOWNESS", "1"))  # seconds for any answer
MEMORY = 64 << 20
BATCH = 32  # outstanding lines: the answers must fit into the socket

# cli; hlt; jmp to the hlt: at the reset vector, in 64 KiB of further copies.
HALT = b"\xfa\xf4\xeb\xfd"
BIOS = b"\xf4" * 0xfff0 + HALT + b"\xf4" * 12
# Interrupts that the CPU cannot refuse lead back there: an interrupt of any vector (a message to
# 0xfee00000 may be an NMI), and a system management interrupt. A CPU that continued through empty
# memory would never leave it, and QEMU's device_add waits for that (drain_call_rcu()).
VECTORS = bytes.fromhex("f0ff 00f0") * 256
SMI_ENTRY = 0x38000


class Failure(Exception):
    """QEMU did not do what was asked of it; the message says what it did."""


class Refused(Failure):
    """QEMU answers a command of QMP with an error."""


class Plugin:
    """A build of the plugin, and what is needed to load it."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.sanitizer = None
        if b"__asan_init" in self.path.read_bytes():
            self.sanitizer = subprocess.run(["gcc", "-print-file-name=libasan.so"], check=True,
                                            text=True, stdout=subprocess.PIPE).stdout.strip()

    def machine(self, work, devices, **options):
        return Machine(work, self.path, devices, self.sanitizer, **options)


def _die_with_parent():
    # PR_SET_PDEATHSIG: QEMU ends when this process ends, for whatever reason.
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Machine:
    """A q35 with the plugin: a context manager. devices: further arguments of QEMU."""

    def __init__(self, work, plugin, devices, sanitizer=None, leaks=False):
        self.log_path = pathlib.Path(work) / "qemu.log"
        bios = pathlib.Path(work) / "bios"
        bios.write_bytes(BIOS)
        self.sent = []  # the lines that were sent, for later inspection
        self.longest = 0  # seconds that an answer took
        self.died = False
        environment = dict(os.environ)
        if sanitizer:
            environment["LD_PRELOAD"] = str(sanitizer)
            # Coroutines switch stacks. QEMU's own leaks do not count: a test for the plugin's leaks
            # needs whole stacks to distinguish them, which makes every allocation slow.
            environment["ASAN_OPTIONS"] = ":".join((
                "detect_stack_use_after_return=0", "strict_string_checks=1", "exitcode=99",
                f"detect_leaks={leaks:d}", f"fast_unwind_on_malloc={not leaks:d}",
                "stack_trace_format='    #%n %p %F %L (%m)'"))
            environment["UBSAN_OPTIONS"] = "halt_on_error=1:print_stacktrace=1:exitcode=99"
        self._qtest, qtest = socket.socketpair()
        self._qmp, qmp = socket.socketpair()
        command = [QEMU, "-nodefaults", "-no-user-config", "-display", "none", "-machine", "q35",
                   "-accel", "tcg", "-smp", "1", "-m", str(MEMORY >> 20), "-bios", str(bios),
                   # a slot's own registers announce hot plug, not ACPI's
                   "-global", "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off",
                   "-chardev", f"socket,id=qtest,fd={qtest.fileno()}",
                   "-qtest", "chardev:qtest", "-qtest-log", "/dev/null",
                   "-chardev", f"socket,id=qmp,fd={qmp.fileno()}", "-mon",
                   "chardev=qmp,mode=control", "-plugin", str(plugin), *devices]
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment,
                preexec_fn=_die_with_parent, pass_fds=(qtest.fileno(), qmp.fileno()))
        qtest.close()
        qmp.close()
        for end in (self._qtest, self._qmp):
            end.settimeout(PATIENCE)
        self._answers = self._qtest.makefile("rb")
        self._replies = self._qmp.makefile("rb")

    def __enter__(self):
        try:
            self._read(self._replies)  # the greeting
            self.qmp("qmp_capabilities")
            self.write(0, VECTORS)
            self.write(SMI_ENTRY, HALT)
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, *_):
        self.kill()

    # Memory and ports

    def ask(self, *lines):
        """Sends lines of qtest's protocol; returns the values of their answers."""
        values = []
        for first in range(0, len(lines), BATCH):
            batch = lines[first:first + BATCH]
            self.sent += batch
            started = time.monotonic()
            self._send(self._qtest, "".join(line + "\n" for line in batch).encode())
            for line in batch:
                words = self._read(self._answers, line).decode().split()
                if words[:1] != ["OK"]:
                    raise Failure(f"qtest: {line}: {' '.join(words)}")
                values.append(words[1] if len(words) > 1 else None)
            self.longest = max(self.longest, time.monotonic() - started)
        return values

    def out(self, port, value):
        self.ask(f"outl 0x{port:x} 0x{value:x}")

    def read(self, address, length):
        return bytes.fromhex(self.ask(f"read 0x{address:x} 0x{length:x}")[0][2:])

    @staticmethod
    def write_line(address, data):
        return f"write 0x{address:x} 0x{len(data):x} 0x{bytes(data).hex()}"

    def write(self, address, data):
        self.ask(self.write_line(address, data))

    def load(self, address, length):
        """Returns a little-endian value, as in configuration space."""
        return int.from_bytes(self.read(address, length), "little")

    def store(self, address, length, value):
        self.write(address, value.to_bytes(length, "little"))

    # QEMU's own control

    def qmp(self, execute, **arguments):
        """Runs a command of QMP; returns its result. Skips events."""
        self.sent.append(f"# {execute} {arguments or ''}".rstrip())
        message = {"execute": execute, "arguments": arguments}
        started = time.monotonic()
        self._send(self._qmp, json.dumps(message).encode() + b"\n")
        while True:
            reply = json.loads(self._read(self._replies, execute))
            if "error" in reply:
                raise Refused(f"{execute}: {reply['error']['desc']}")
            if "return" in reply:
                self.longest = max(self.longest, time.monotonic() - started)
                return reply["return"]

    def monitor(self, line):
        """Returns what a line of the human monitor prints."""
        return self.qmp("human-monitor-command", **{"command-line": line})

    def settle(self):
        """Lets the main loop run: work that a device does by itself has had a turn."""
        for _ in range(8):
            self.qmp("query-status")

    def alive(self):
        """Checks that QEMU answers on both sockets, and that no sanitizer has reported anything."""
        self.read(0, 1)
        self.settle()
        if "runtime error:" in self.said() or "ERROR: AddressSanitizer" in self.said():
            raise Failure(f"a sanitizer has something to say{self.last_words()}")

    def said(self):
        return self.log_path.read_text(errors="replace")

    def quit(self):
        """Ends QEMU as a user would; returns its exit status."""
        try:
            self.qmp("quit")
        except Failure:
            pass  # it may be gone before it has answered
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise Failure(f"QEMU does not quit{self.last_words()}") from None

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for end in (self._answers, self._replies, self._qtest, self._qmp):
            end.close()

    # Internal

    def _send(self, end, data):
        try:
            end.sendall(data)
        except (OSError, socket.timeout):
            self._gone("takes nothing any more")

    def _read(self, lines, asked="a greeting"):
        while True:
            try:
                line = lines.readline()
            except (OSError, socket.timeout):
                line = b""
            if not line:
                self._gone(f"does not answer: {asked}")
            if not line.startswith(b"IRQ "):
                return line

    def _gone(self, what):
        self.died = True
        try:
            status = self.process.wait(5)
            what = (f"was ended by {signal.Signals(-status).name}" if status < 0 else
                    f"ended with status {status}") + f" ({what})"
        except subprocess.TimeoutExpired:
            pass
        raise Failure(f"QEMU {what}{self.last_words()}")

    def last_words(self):
        return "".join(f"\n  {line}" for line in self.said().splitlines()[-60:])
