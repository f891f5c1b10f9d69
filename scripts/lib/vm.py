# SPDX-License-Identifier: BSD-2-Clause
"""The virtual machine behind scripts/vm, which has the help text: one guest on this terminal, tmux
with two of them, or commands in one or two of them (vm_run.py)."""
import argparse
import os
import pathlib
import shlex
import shutil
import sys
import tempfile
import termios

import vm_run
import vmlib


def parse(words):
    parser = argparse.ArgumentParser(usage="see scripts/vm --help")
    parser.add_argument("--two", action="store_true")
    parser.add_argument("--join")
    parser.add_argument("--index", type=int)
    parser.add_argument("--share", action="append", default=[])
    for name in ("--packages", "--kernel", "--kernel-release", "--modules", "--release"):
        parser.add_argument(name)
    for name in ("--append", "--device-args", "--qemu-args"):
        parser.add_argument(name, default="")
    parser.add_argument("--memory", type=int, default=1024)
    parser.add_argument("--cpus", type=int, default=1)
    parser.add_argument("--bare", action="store_true")
    parser.add_argument("--run", nargs="+", metavar="[NAME:]COMMAND")
    parser.add_argument("--timeout", type=float, default=600)
    args = parser.parse_args(words)
    args.index = args.index or (2 if args.join else 1)
    if not 1 <= args.index <= 254:
        parser.error("--index is 1 to 254")
    if args.run and args.two and (args.join or args.index != 1):
        parser.error("--two --run makes a wire of its own, with the guests 1 and 2")
    return args


def shares(options):
    """The (host folder, guest folder) pairs that --share asks for."""
    pairs = []
    for option in options:
        host, _, inside = option.partition(":")
        host = pathlib.Path(host).resolve()
        if not host.is_dir():
            sys.exit(f"vm: --share {option}: {host} is no folder")
        pairs.append((host, inside or f"/mnt/{host.name}"))
    return pairs


def two(wire, words):
    """Both guests in one tmux window, instead of this process; without tmux, says how to get the
    second one."""
    words = [word for word in words if word != "--two"]
    script = str(vmlib.ROOT / "scripts/vm")
    first, second = (shlex.join([script, "--join", wire, "--index", str(i), *words])
                     for i in (1, 2))
    if not shutil.which("tmux"):
        print(f"vm: no tmux here; this is the first guest, in another terminal run\n  {second}")
        return
    os.execlp("tmux", "tmux", "new-session", "-s", wire, first, ";",
              "split-window", "-h", second)


def devices(args, wire, index):
    """QEMU arguments for the HCA of guest number index, and the user's own."""
    # The last word wins where the user names a property of ours.
    properties = dict(word.split("=", 1) for word in args.device_args.split(",") if word)
    device = {"wire": f"shm:{wire}", "mac": vmlib.mac_of(index)}
    if "netdev" in properties:
        del device["wire"]
    return vmlib.hcasim_device(**{**device, **properties}) + shlex.split(args.qemu_args)


def main():
    words = sys.argv[1:]
    args = parse(words)
    wire = args.join or f"vm-{os.getpid()}"
    # Once, before two guests ask for it at the same time.
    guest = vmlib.Guest.prepare(args.kernel, args.modules, args.packages, args.release,
                                args.kernel_release)
    if args.run:
        indexes = [1, 2] if args.two else [args.index]
        sys.exit(vm_run.run(args, guest, {index: devices(args, wire, index) for index in indexes},
                            shares(args.share)))
    if args.two:
        two(wire, words)

    size = os.get_terminal_size()
    terminal = f"hcasim.shell={size.lines}x{size.columns}"
    if not args.bare:
        terminal += f" hcasim.up={args.index}"
    work = tempfile.mkdtemp(prefix="hcasim-vm.")
    print(f"vm: guest {args.index} boots (10.0.0.{args.index}); a further guest on its wire: "
          f"scripts/vm --join {wire}; its kernel's console and QEMU's messages: {work}")
    settings = termios.tcgetattr(sys.stdin)
    status = 0
    try:
        with vmlib.VM(f"vm{args.index}", work, guest, devices(args, wire, args.index),
                      shares(args.share), args.memory, args.cpus, args.append,
                      terminal=terminal) as vm:
            status = vm.process.wait()
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, settings)
    if status:
        sys.stderr.write(vm.qemu_log())
        sys.exit(f"vm: QEMU ended with status {status}; see {work}")
    shutil.rmtree(work)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print("vm: interrupted; the guests are off", file=sys.stderr)
        sys.exit(130)
    except vmlib.VmError as error:
        print(f"vm: {error}", file=sys.stderr)
        sys.exit(vm_run.NO_GUESTS)
