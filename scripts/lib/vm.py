# SPDX-License-Identifier: BSD-2-Clause
"""The virtual machines behind `hcasim vm`: one guest on this terminal, tmux with two of them, or commands
in one or two of them (vm_run.py).

The program hcasim calls this with its checked options as one JSON argument (cli/vm.c).
"""
import json
import os
import pathlib
import shlex
import shutil
import signal
import sys
import tempfile
import termios
import types

import vm_run
import vmlib


def options_of(text):
    """Returns the options as numbers, texts and lists. An option that was not given is empty."""
    options = types.SimpleNamespace(**json.loads(text))
    for name in ("index", "memory", "cpus"):
        setattr(options, name, int(getattr(options, name)))
    options.timeout = float(options.timeout)
    options.run = [vm_run.Command(*text.split(":", 1)) for text in options.run]
    return options


def shares(texts):
    """Returns the (host folder, guest folder) pairs of --share."""
    pairs = []
    for text in texts:
        host, _, inside = text.partition(":")
        host = pathlib.Path(host).resolve()
        pairs.append((host, inside or f"/mnt/{host.name}"))
    return pairs


def guest_words(options, wire, index):
    """Returns the command that opens another guest like this one on a wire."""
    return shlex.join([options.hcasim, "vm", *options.words, "--join", wire, "--index", str(index)])


def two(options, wire):
    """Replaces this process by tmux with both guests in one window. Without tmux, prints the command for the
    second guest."""
    if not shutil.which("tmux"):
        print("hcasim: no tmux here; this is the first guest, in another terminal run\n  "
              f"{guest_words(options, wire, 2)}")
        return
    os.execlp("tmux", "tmux", "new-session", "-s", f"vm-{os.getpid()}", guest_words(options, wire, 1), ";",
              "split-window", "-h", guest_words(options, wire, 2))


def devices(options, wire, index):
    """Returns QEMU's arguments for the HCA of guest number index, and the user's own."""
    # The user's properties replace ours.
    properties = dict(word.split("=", 1) for word in options.device_args.split(",") if word)
    device = {"wire": wire if ":" in wire else f"shm:{wire}", "mac": vmlib.mac_of(index)}
    if "netdev" in properties:
        del device["wire"]
    return vmlib.hcasim_device(**{**device, **properties}) + shlex.split(options.qemu_args)


def main():
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda got, _: sys.exit(128 + got))
    options = options_of(sys.argv[1])
    wire = options.join or f"vm-{os.getpid()}"
    # The system is prepared once, before two guests need it at the same time.
    guest = vmlib.Guest.prepare(options.kernel, options.modules, options.packages, options.release,
                                options.kernel_release)
    if options.run:
        indexes = [1, 2] if options.two else [options.index]
        sys.exit(vm_run.run(options, guest, {index: devices(options, wire, index) for index in indexes},
                            shares(options.share)))
    if options.two:
        two(options, wire)

    size = os.get_terminal_size()
    terminal = f"hcasim.shell={size.lines}x{size.columns}"
    if not options.bare:
        terminal += f" hcasim.up={options.index}"
    work = tempfile.mkdtemp(prefix="hcasim-vm.")
    print(f"hcasim: guest {options.index} boots (10.0.0.{options.index}). A further guest on its wire: "
          f"{shlex.join([options.hcasim, 'vm', '--join', wire])}. Its kernel's console and QEMU's messages: {work}")
    settings = termios.tcgetattr(sys.stdin)
    status = 0
    try:
        with vmlib.VM(f"vm{options.index}", work, guest, devices(options, wire, options.index),
                      shares(options.share), options.memory, options.cpus, options.append,
                      terminal=terminal) as vm:
            status = vm.process.wait()
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, settings)
    if status:
        sys.stderr.write(vm.qemu_log())
        raise vmlib.VmError(f"QEMU ended with status {status}; see {work}")
    shutil.rmtree(work)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print("hcasim: interrupted; the guests are off", file=sys.stderr)
        sys.exit(130)
    except vmlib.VmError as error:
        print(f"hcasim: {error}", file=sys.stderr)
        sys.exit(vm_run.NO_GUESTS)
    except OSError as error:    # a folder that cannot be written, a disk that is full
        print(f"hcasim: {error.filename or ''}{': ' if error.filename else ''}{error.strerror or error}", file=sys.stderr)
        sys.exit(vm_run.NO_GUESTS)
