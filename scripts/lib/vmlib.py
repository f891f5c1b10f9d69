# SPDX-License-Identifier: BSD-2-Clause
"""Virtual machines for tests, demos and users.

A Guest is the system that runs (scripts/lib/guest prepares it), a VM is one QEMU with it. Commands
run in the guest through an agent on a virtio-serial port (scripts/lib/guest.d/agent), several at a
time, each with its exit status, output and timeout. Every wait here has a limit, and no QEMU
outlives this process.

    with tempfile.TemporaryDirectory() as work:
        with VM("a", work, Guest.prepare(), devices=hcasim_device(...)) as vm:
            vm.wait_up()
            print(vm.run("uname -r").out)
            vm.poweroff()
"""
import base64
import ctypes
import dataclasses
import functools
import grp
import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

LIB = pathlib.Path(__file__).resolve().parent
ROOT = LIB.parents[1]
# As in common.sh. A user of a container may have neither HOME nor an entry in /etc/passwd.
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or
                     pathlib.Path(os.environ.get("HOME") or "/root", ".cache")) / "hcasim"
KVM = "/dev/kvm"
QEMU = os.environ.get("QEMU", "qemu-system-x86_64")
PLUGIN = pathlib.Path(os.environ.get("HCASIM_PLUGIN") or ROOT / "build/qemu-dev/hcasim.so")
PROGRAMS = ROOT / "build/tests/programs"  # what runs in guests, built on the host

# A slow machine needs a factor on every timeout, not other timeouts.
SLOWNESS = float(os.environ.get("HCASIM_SLOWNESS", "1"))
BOOT_SECONDS = 120
COMMAND_SECONDS = 60

# The words on a guest's kernel command line: less work under TCG, no random addresses, errors on
# the console, and an end instead of a hang.
KERNEL_ARGS = ("console=ttyS0 panic=-1 oops=panic quiet loglevel=5 mitigations=off nokaslr "
               "no_timer_check random.trust_cpu=on")


class VmError(Exception):
    """A VM did not do what was asked of it; the message says what it did."""


class NoKernel(VmError):
    """Debian has no kernel of the release asked for."""


class TimedOut(VmError):
    """A command in a guest did not end in time; .said is its output until then."""

    def __init__(self, message, said):
        super().__init__(f"{message}\n{said}")
        self.said = said


class CommandFailed(VmError):
    """A command in a guest ended with a status other than 0."""

    def __init__(self, result, more=""):
        super().__init__(f"{result}{more}")
        self.result = result


@dataclasses.dataclass
class Result:
    """The result of a command in a guest."""
    vm: str
    command: str
    status: int
    out: str
    err: str
    seconds: float

    def __str__(self):
        text = (self.out + self.err).strip()
        tail = "\n".join(text.splitlines()[-25:])
        return f"{self.vm}: `{self.command}`: status {self.status}\n{tail}".rstrip()


@dataclasses.dataclass
class Guest:
    """The files of a prepared system."""
    root: str
    kernel: str
    initrd: str
    modules: str

    @classmethod
    def prepare(cls, kernel=None, modules=None, packages=None, release=None, kernel_release=None):
        """Builds what is missing; with no arguments, Debian 13's own kernel and our packages.
        release: another Debian release, by its code name; kernel_release: its kernel alone.
        NoKernel if Debian has none of that release."""
        command = [LIB / "guest"]
        for option, value in (("--release", release), ("--kernel", kernel), ("--modules", modules),
                              ("--packages", packages), ("--kernel-release", kernel_release)):
            if value:
                command += [option, value]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode == 77:
            raise NoKernel("there is no such kernel (see above)")
        if done.returncode:
            raise VmError("the guest's system could not be prepared (see above)")
        return cls(**dict(line.split("=", 1) for line in done.stdout.splitlines()))


class Job:
    """A command under way in a guest."""

    def __init__(self, vm, number, command):
        self.vm, self.number, self.command = vm, number, command
        self.started = time.monotonic()
        self.result = None

    def wait(self, timeout=COMMAND_SECONDS, check=False):
        """Returns the Result. After timeout seconds the command is killed and TimedOut is raised
        with its output until then. With check, a status other than 0 raises CommandFailed."""
        if not self.vm._wait(lambda: self.result, timeout):
            said = self.vm._partial_output(self)
            self.kill()
            raise TimedOut(f"{self.vm.name}: `{self.command}`: no end after {timeout} s", said)
        if check and self.result.status:
            raise CommandFailed(self.result)
        return self.result

    def kill(self, sig="KILL"):
        if self.result is None:
            self.vm._send(f"kill {self.number} {sig}")


def _die_with_parent():
    # PR_SET_PDEATHSIG: QEMU ends when this process ends, for whatever reason.
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class VM:
    """One virtual machine: a context manager that kills it at the end if it still runs.

    devices: further QEMU arguments. shares: [(host folder, guest folder)]. Files are left in work/:
    NAME.console (the kernel's messages), NAME.qemu (QEMU's stderr: the device's own log)."""

    def __init__(self, name, work, guest, devices=(), shares=(), memory=1024, cpus=1,
                 append="", accel=None, terminal=None):
        self.name = name
        self.guest = guest
        self.console_path = pathlib.Path(work) / f"{name}.console"
        self.qemu_log_path = pathlib.Path(work) / f"{name}.qemu"
        self._options = (list(devices), list(shares), memory, cpus, append, terminal)
        self._accel = accel
        self.process = None
        self._changed = threading.Condition()
        self._agent = self._qmp = None
        self._up = False
        self._gone = False
        self._jobs = {}
        self._numbers = itertools.count(1)
        self._qmp_replies = []
        self._qmp_lock = threading.Lock()

    # Life

    def start(self):
        """Starts QEMU; the guest boots on its own (wait_up)."""
        self._agent, agent = socket.socketpair()
        self._qmp, qmp = socket.socketpair()
        command = self._command(agent.fileno(), qmp.fileno())
        terminal = self._options[-1]
        with open(self.qemu_log_path, "wb") as log:
            log.write((" ".join(map(str, command)) + "\n").encode())
            log.flush()
            self._log_start = log.tell()
            self.process = subprocess.Popen(
                command, stdin=None if terminal else subprocess.DEVNULL,
                stdout=None if terminal else log, stderr=log, preexec_fn=_die_with_parent,
                pass_fds=(agent.fileno(), qmp.fileno()), start_new_session=not terminal)
        agent.close()
        qmp.close()
        for target in (self._read_agent, self._read_qmp):
            threading.Thread(target=target, daemon=True).start()
        return self

    def _command(self, agent, qmp):
        devices, shares, memory, cpus, append, terminal = self._options
        args = [f"hcasim.name={self.name}", KERNEL_ARGS]
        command = [
            QEMU, "-name", self.name, "-nodefaults", "-no-user-config", "-display", "none",
            "-no-reboot", "-machine", "q35", "-smp", cpus, "-m", memory,
            *accel_args(self._accel or accelerator(self.guest)),
            "-kernel", self.guest.kernel, "-initrd", self.guest.initrd,
            "-object", "rng-random,id=rng,filename=/dev/urandom",
            "-device", "virtio-rng-pci,rng=rng",
            "-chardev", f"file,id=console,path={self.console_path}", "-serial", "chardev:console",
            "-chardev", f"socket,id=qmp,fd={qmp}", "-mon", "chardev=qmp,mode=control",
            "-device", "virtio-serial-pci",
            "-chardev", f"socket,id=agent,fd={agent}",
            "-device", "virtserialport,chardev=agent,name=hcasim.agent",
        ]
        for disk in ("root", "modules"):
            command += ["-drive", f"file={getattr(self.guest, disk)},format=raw,if=none,id={disk},"
                        "readonly=on", "-device", f"virtio-blk-pci,drive={disk}"]
        for i, (host, inside) in enumerate(shares):
            path = str(host).replace(",", ",,")  # as QEMU's options have it
            command += ["-virtfs", f"local,path={path},mount_tag=share{i},security_model=none,"
                        f"id=share{i}"]
        if shares:
            args.append("hcasim.share=" +
                        ",".join(f"share{i}:{inside}" for i, (_, inside) in enumerate(shares)))
        if terminal:
            command += ["-chardev", "stdio,id=tty,signal=off", "-device",
                        "virtconsole,chardev=tty"]
            args.append(terminal)
        return [str(word) for word in
                [*command, *devices, "-append", " ".join([*args, append]).strip()]]

    def wait_up(self, timeout=BOOT_SECONDS):
        """Waits until commands can be run."""
        if not self._wait(lambda: self._up, timeout):
            raise VmError(f"{self.name}: not up after {timeout} s{self._last_words()}")
        return self

    def wait_exit(self, timeout=COMMAND_SECONDS):
        """Waits for QEMU's end; returns its exit status."""
        try:
            return self.process.wait(timeout * SLOWNESS)
        except subprocess.TimeoutExpired:
            raise VmError(f"{self.name}: QEMU still runs after {timeout} s") from None

    def poweroff(self, timeout=COMMAND_SECONDS):
        """Powers the guest off through its kernel, which runs the drivers' shutdown. VmError if
        QEMU does not end well."""
        self.spawn("sync; busybox poweroff -f")
        status = self.wait_exit(timeout)
        if status:
            raise VmError(f"{self.name}: QEMU ended with status {status}{self._last_words()}")

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for end in (self._agent, self._qmp):
            if end:
                end.close()

    def __enter__(self):
        if self.process is None:
            self.start()
        return self

    def __exit__(self, *_):
        self.kill()

    # Commands

    def spawn(self, command):
        """Starts a command (a bash script) in the guest."""
        job = Job(self, next(self._numbers), command)
        self._jobs[job.number] = job
        self._send(f"run {job.number} {base64.b64encode(command.encode()).decode()}")
        return job

    def run(self, command, timeout=COMMAND_SECONDS, check=True):
        """Runs a command in the guest; returns its Result. See Job.wait()."""
        return self.spawn(command).wait(timeout, check)

    def until(self, command, timeout=COMMAND_SECONDS):
        """Runs a command in the guest again and again until it succeeds."""
        script = f"until {{ {command}; }} >/dev/null 2>&1; do sleep 0.1; done"
        return self.run(script, timeout)

    # Logs

    def console(self):
        """Returns the kernel's output on its console: warnings and worse, and "reboot: Power down".
        """
        return self.console_path.read_text(errors="replace")

    def qemu_log(self):
        """Returns what QEMU, including the device, wrote to stderr."""
        return self.qemu_log_path.read_bytes()[self._log_start:].decode(errors="replace")

    def dmesg(self):
        """Returns the kernel's messages as (level, line)."""
        out = self.run("dmesg --raw").out
        found = (re.match(r"<(\d+)>(.*)", line) for line in out.splitlines())
        return [(int(m[1]) & 7, m[2]) for m in found if m]

    # QEMU's own control

    def qmp(self, execute, timeout=30, **arguments):
        """Runs a QMP command; returns its return value."""
        with self._qmp_lock:
            self._qmp_replies.clear()
            message = {"execute": execute, "arguments": arguments}
            self._qmp.sendall(json.dumps(message).encode() + b"\n")
            if not self._wait(lambda: self._qmp_replies, timeout):
                raise VmError(f"{self.name}: QEMU does not answer {execute}")
            reply = self._qmp_replies[0]
        if "error" in reply:
            raise VmError(f"{self.name}: {execute}: {reply['error']['desc']}")
        return reply["return"]

    # Internal

    def _wait(self, condition, timeout):
        with self._changed:
            self._changed.wait_for(lambda: condition() or self._gone, timeout * SLOWNESS)
            if not condition() and self._gone:
                raise VmError(f"{self.name}: QEMU is gone{self._last_words()}")
            return condition()

    def _send(self, line):
        try:
            self._agent.sendall(line.encode() + b"\n")
        except OSError:
            raise VmError(f"{self.name}: QEMU is gone{self._last_words()}") from None

    def _partial_output(self, job):
        """Returns what a command has written until now. The guest may hang: it is asked once."""
        folder = f"/run/hcasim/{job.number}"
        try:
            tail = self.spawn(f"tail -n 20 {folder}/out {folder}/err")
            if self._wait(lambda: tail.result, 10):
                return tail.result.out
            tail.kill()
        except VmError:
            return ""
        return "the guest does not answer"

    def _last_words(self):
        tail = self.console().splitlines()[-15:] if self.console_path.exists() else []
        words = self.qemu_log().splitlines()[-15:] + tail
        status = self.process.poll()
        if status is not None:
            words.insert(0, f"QEMU's exit status: {status}" if status >= 0 else
                         f"QEMU was ended by {signal.Signals(-status).name}")
        return "".join(f"\n  {line}" for line in words)

    def _read_agent(self):
        with self._agent.makefile("rb") as lines:
            try:
                for line in lines:
                    self._answer(line.decode().split())
            except (OSError, ValueError):
                pass
        if self.process:
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                pass
        with self._changed:
            self._gone = True
            self._changed.notify_all()

    def _answer(self, words):
        with self._changed:
            if words and words[0] == "done":
                job = self._jobs.pop(int(words[1]))
                out, err = ("" if word == "-" else base64.b64decode(word).decode(errors="replace")
                            for word in words[3:5])
                job.result = Result(self.name, job.command, int(words[2]), out, err,
                                    time.monotonic() - job.started)
            elif words == ["up"]:
                self._up = True
            self._changed.notify_all()

    def _read_qmp(self):
        try:
            self._qmp.sendall(b'{"execute": "qmp_capabilities"}\n')
            with self._qmp.makefile("rb") as lines:
                for line in lines:
                    message = json.loads(line)
                    if "return" in message or "error" in message:
                        with self._changed:
                            self._qmp_replies.append(message)
                            self._changed.notify_all()
        except (OSError, ValueError):
            pass


# Acceleration

def accel_args(accel):
    if accel == "kvm":
        return ["-accel", "kvm", "-cpu", "host"]
    return ["-accel", "tcg,thread=multi,tb-size=256", "-cpu", "max"]


def accelerator(guest):
    """Returns "kvm" if it boots the guest, else "tcg". A /dev/kvm that opens may still not work: a
    trial decides, once for each boot of the host and kernel of the guest. HCASIM_ACCEL overrides
    the trial."""
    chosen = os.environ.get("HCASIM_ACCEL")
    if chosen in ("kvm", "tcg"):
        return chosen
    if not os.access(KVM, os.R_OK | os.W_OK):
        if os.path.exists(KVM):
            _say_no_right()
        return "tcg"
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    answer = CACHE / f"kvm-{boot}-{pathlib.Path(guest.kernel).parent.name}"
    if not answer.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        for old in CACHE.glob("kvm-*"):
            if boot not in old.name:
                old.unlink(missing_ok=True)
        print("there is /dev/kvm: trying whether a guest boots with it (15 s at most)",
              file=sys.stderr)
        answer.write_text(_try_kvm(guest), encoding="ascii")
    return answer.read_text(encoding="ascii").strip()


@functools.cache
def _say_no_right():
    print(f"hcasim: this user may not open {KVM}: guests run without it, several times slower. Members of the group "
          f"{_group_of(KVM)} may open it", file=sys.stderr, flush=True)


def _group_of(path):
    gid = os.stat(path).st_gid
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return gid


def _try_kvm(guest):
    work = CACHE / f"kvm-trial.{os.getpid()}"
    work.mkdir(parents=True)
    try:
        with VM("trial", work, guest, accel="kvm") as vm:
            vm.wait_up(15)
        return "kvm"
    except VmError:
        return "tcg"
    finally:
        shutil.rmtree(work)


# Devices

def hcasim_device(wire=None, mac=None, capture=None, plugin=PLUGIN, slot=1, **properties):
    """Returns QEMU arguments for one HCA behind its own root port, with the id "hca" and its slot.
    A second HCA needs another slot."""
    values = {"id": f"hca{slot}", "wire": wire, "mac": mac, "capture": capture, **properties}
    words = "".join(f",{key}={value}" for key, value in values.items() if value is not None)
    load = ["-plugin", str(plugin)] if slot == 1 else []
    return load + ["-device", f"pcie-root-port,id=hcaport{slot},chassis={slot},slot={slot}",
                   "-device", f"hcasim,bus=hcaport{slot}{words}"]


def dgram_netdev(local, remote):
    """Returns QEMU arguments for a netdev "net": a datagram link between two unix sockets."""
    return ["-netdev", f"dgram,id=net,local.type=unix,local.path={local},"
            f"remote.type=unix,remote.path={remote}"]


def stream_netdev(name, listens, place):
    """Returns QEMU arguments for a netdev of this name: a stream to a socket at place, a path or a
    TCP port of this machine. listens: QEMU waits for the other end. Otherwise it connects once,
    when it starts: QEMU before 8.0 does not try again."""
    at = f"addr.type=inet,addr.host=127.0.0.1,addr.port={place}" if isinstance(place, int) else \
        f"addr.type=unix,addr.path={place}"
    return ["-netdev", f"stream,id={name},server={'on' if listens else 'off'},{at}"]


def hub(*netdevs):
    """Returns QEMU arguments for a hub, which joins these netdevs with the device whose netdev is
    "hub"."""
    words = ["-netdev", "hubport,id=hub,hubid=1"]
    for name in netdevs:
        words += ["-netdev", f"hubport,id=hub-{name},hubid=1,netdev={name}"]
    return words


def virtio_nic(mac, local, remote):
    """Returns QEMU arguments for a virtio NIC on such a link: the baseline on which soft-RoCE runs.
    """
    return dgram_netdev(local, remote) + ["-device", f"virtio-net-pci,netdev=net,mac={mac}"]


def mac_of(index):
    """Returns the MAC of the HCA in guest number index (1, 2, ...)."""
    return f"02:00:00:ca:51:{index:02x}"
