# SPDX-License-Identifier: BSD-2-Clause
"""Runs the commands of `hcasim vm` in one guest or two, without a terminal, and prints their output."""
import contextlib
import dataclasses
import re
import sys
import tempfile
import time

import vmlib

TIMED_OUT, NO_GUESTS = 124, 125  # exit statuses
LISTEN_SECONDS = 5               # how long the next command waits for this one to listen

# Prints the listeners of a guest.
LISTENERS = ("{ ss -Htln; rdma resource show cm_id | grep 'state LISTEN'; } 2>/dev/null | "
             "sed 's/ pid .*//' | sort")


@dataclasses.dataclass
class Command:
    """A shell command for the guest of this name."""
    guest: str
    text: str

    def __str__(self):
        """Returns the command in one short line, for the messages about progress."""
        line = " ".join(self.text.split())
        return f"{self.guest}: " + (line if len(line) <= 60 else line[:57] + "...")


def say(text):
    print(f"hcasim: {text}", file=sys.stderr, flush=True)


def bring_up(vms, names, bare):
    """Loads the drivers and sets the addresses in all guests. Returns, by guest, the lines before each of its
    commands: they set the variables with the names of this guest and the address of the other guest."""
    ups = {name: vm.spawn("true" if bare else f"/hcasim/up {names[name]}") for name, vm in vms.items()}
    starts = {}
    for name, vm in vms.items():
        peer = "".join(f"10.0.0.{index}" for other, index in names.items() if other != name)
        words = {"ip": f"10.0.0.{names[name]}", "peer": peer}
        words.update(re.findall(r"(\w+)=(\S+)", ups[name].wait(120, check=True).out))
        if not bare:
            words["gid"] = vm.run(f"/hcasim/gid {words['ibdev']} {words['ip']}").out.strip()
        starts[name] = "export " + " ".join(f"{word.upper()}={value}" for word, value in words.items()) + "\n"
    return starts


def wait_for_listener(vm, job, before):
    """Waits until a command has begun to listen, has ended, or has run for LISTEN_SECONDS."""
    end = time.monotonic() + LISTEN_SECONDS * vmlib.SLOWNESS
    while job.result is None and time.monotonic() < end:
        if vm.run(LISTENERS, check=False).out != before:
            return
        time.sleep(0.1)


def run_all(commands, vms, start):
    """Starts the commands, one after the other, and returns their jobs."""
    jobs = []
    for i, command in enumerate(commands):
        vm = vms[command.guest]
        is_last = i == len(commands) - 1
        before = "" if is_last else vm.run(LISTENERS, check=False).out
        say(command)
        jobs.append(vm.spawn(start[command.guest] + command.text))
        if not is_last:
            wait_for_listener(vm, jobs[-1], before)
    return jobs


def show(name, result, label):
    """Prints the output of a command."""
    for text, stream in ((result.out, sys.stdout), (result.err, sys.stderr)):
        lines = text.splitlines(keepends=True)
        stream.write("".join(f"{name}: {line}" for line in lines) if label else text)
        if label and lines and not lines[-1].endswith("\n"):
            stream.write("\n")
        stream.flush()


def wait_for(commands, jobs, timeout, label):
    """Waits for all commands and prints their output. Returns the exit status of this program."""
    end = time.monotonic() + timeout
    statuses = []
    for command, job in zip(commands, jobs):
        try:
            result = job.wait(max(end - time.monotonic(), 0.1) / vmlib.SLOWNESS)
        except vmlib.TimedOut as error:
            say(f"{command}: killed after {timeout:g} s (--timeout); it had said:\n{error.said}")
            statuses.append(TIMED_OUT)
            continue
        show(command.guest, result, label)
        say(f"{command}: status {result.status} after {result.seconds:.1f} s")
        statuses.append(result.status)
    return next((status for status in statuses if status), 0)


def power_off(vms):
    """Powers the guests off. If a guest does not power off, the caller ends it."""
    for vm in vms:
        vm.spawn("sync; busybox poweroff -f")
    for vm in vms:
        vm.wait_exit()


def run(options, guest, devices, shares):
    """Runs options.run in guests. devices: QEMU's arguments for the device of each guest, by guest number.
    Returns the exit status."""
    names = dict(zip("ab", devices))
    with tempfile.TemporaryDirectory(prefix="hcasim-vm.") as work, contextlib.ExitStack() as stack:
        vms = {name: vmlib.VM(name, work, guest, devices[index], shares, options.memory, options.cpus,
                              options.append) for name, index in names.items()}
        say(f"boots {' and '.join(vms)}")
        for vm in vms.values():
            stack.enter_context(vm)
        for vm in vms.values():
            vm.wait_up()
        start = bring_up(vms, names, options.bare)
        status = wait_for(options.run, run_all(options.run, vms, start), options.timeout, len(vms) > 1)
        try:
            power_off(list(vms.values()))
        except vmlib.VmError as error:
            say(error)
            status = status or NO_GUESTS
        return status
