# SPDX-License-Identifier: BSD-2-Clause
"""scripts/vm --run: commands in one guest or two, with their output and exit status, and no terminal."""
import contextlib
import re
import sys
import tempfile
import time

import vmlib

TIMED_OUT, NO_GUESTS = 124, 125  # exit statuses
LISTEN_SECONDS = 5               # how long the next command waits for this one to listen

# What listens in a guest.
LISTENERS = ("{ ss -Htln; rdma resource show cm_id | grep 'state LISTEN'; } 2>/dev/null | "
             "sed 's/ pid .*//' | sort")


def say(text):
    print(f"vm: {text}", file=sys.stderr, flush=True)


def brief(command):
    """A command as progress names it."""
    line = " ".join(command.split())
    return line if len(line) <= 60 else line[:57] + "..."


def commands_of(words, guests):
    """The (guest's name, command) pairs that --run asks for."""
    pairs = []
    for word in words:
        found = re.match(r"([a-z]):", word)
        name, command = (found[1], word[2:]) if found else ("a", word)
        if name not in guests:
            raise vmlib.VmError(f"--run {word}: there is no guest {name}" +
                                ("" if len(guests) > 1 else " (--two has a and b)"))
        pairs.append((name, command))
    return pairs


def bring_up(vms, names, bare):
    """The drivers and addresses of all guests. By guest, the start of each command in it: what it is told
    of itself and of the other guest."""
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
    """Until a command has begun to listen, has ended, or has had time enough for it."""
    end = time.monotonic() + LISTEN_SECONDS * vmlib.SLOWNESS
    while job.result is None and time.monotonic() < end:
        if vm.run(LISTENERS, check=False).out != before:
            return
        time.sleep(0.1)


def run_all(pairs, vms, start):
    """Starts the commands, one after the other; their jobs."""
    jobs = []
    for i, (name, command) in enumerate(pairs):
        vm = vms[name]
        is_last = i == len(pairs) - 1
        before = "" if is_last else vm.run(LISTENERS, check=False).out
        say(f"{name}: {brief(command)}")
        jobs.append(vm.spawn(start[name] + command))
        if not is_last:
            wait_for_listener(vm, jobs[-1], before)
    return jobs


def show(name, result, label):
    """Prints what a command said."""
    for text, stream in ((result.out, sys.stdout), (result.err, sys.stderr)):
        lines = text.splitlines(keepends=True)
        stream.write("".join(f"{name}: {line}" for line in lines) if label else text)
        if label and lines and not lines[-1].endswith("\n"):
            stream.write("\n")
        stream.flush()


def wait_for(pairs, jobs, timeout, label):
    """Waits for all commands and shows what they said; the exit status of this program."""
    end = time.monotonic() + timeout
    statuses = []
    for (name, command), job in zip(pairs, jobs):
        try:
            result = job.wait(max(end - time.monotonic(), 0.1) / vmlib.SLOWNESS)
        except vmlib.TimedOut as error:
            say(f"{name}: {brief(command)}: killed after {timeout:g} s (--timeout); it had said:\n{error.said}")
            statuses.append(TIMED_OUT)
            continue
        show(name, result, label)
        say(f"{name}: {brief(command)}: status {result.status} after {result.seconds:.1f} s")
        statuses.append(result.status)
    return next((status for status in statuses if status), 0)


def power_off(vms):
    """What does not power off is ended by the caller."""
    for vm in vms:
        vm.spawn("sync; busybox poweroff -f")
    for vm in vms:
        vm.wait_exit()


def run(args, guest, devices, shares):
    """Runs args.run in guests, whose devices' QEMU arguments are by guest number; the exit status."""
    names = dict(zip("ab", devices))
    pairs = commands_of(args.run, names)
    with tempfile.TemporaryDirectory(prefix="hcasim-vm.") as work, contextlib.ExitStack() as stack:
        vms = {name: vmlib.VM(name, work, guest, devices[index], shares, args.memory, args.cpus,
                              args.append) for name, index in names.items()}
        say(f"boots {' and '.join(vms)}")
        for vm in vms.values():
            stack.enter_context(vm)
        for vm in vms.values():
            vm.wait_up()
        start = bring_up(vms, names, args.bare)
        status = wait_for(pairs, run_all(pairs, vms, start), args.timeout, len(vms) > 1)
        try:
            power_off(list(vms.values()))
        except vmlib.VmError as error:
            say(error)
            status = status or NO_GUESTS
        return status
