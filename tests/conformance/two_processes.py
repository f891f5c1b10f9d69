#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""usage: two_processes.py BUILD SCRIPT... [--only TEXT] [--interface | --tap]

Plays scripts as against a foreign device: the player is on a wire in real time, and the device
(`hcasim run`) belongs to another process, with the helper. The wire is shared memory; or the player
uses an interface of the kernel (if:) or the other end of one (tap:), in a network namespace of its
own, and a relay joins the two wires. Exit status 77: this user may not make such a network here.
"""
import argparse
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77
# What a player in its own network namespace needs; frames are longer than Ethernet's.
LINKS = {
    "interface": ["ip link add player mtu 9000 type veth peer name device mtu 9000",
                  "ip link set player up", "ip link set device up"],
    "tap": ["ip tuntap add dev device mode tap", "ip link set device mtu 9000 up"],
}
WIRES = {"interface": "if:player", "tap": "tap:device"}


def unshared(kind):
    """Returns the command that runs the words after it in a network namespace with such a link;
    None: that is impossible."""
    links = " && ".join(["ip link set lo up", *LINKS[kind]])
    command = ["unshare", "--net", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    try:
        done = subprocess.run([*command, "sh", "-c", links], stderr=subprocess.PIPE, text=True,
                              check=False)
    except FileNotFoundError:
        print("skip: there is no unshare")
        return None
    if done.returncode:
        print(f"skip: no network of its own with such a link: {done.stderr.strip()}")
        return None
    return [*command, "sh", "-c", f'{links} && exec "$@"', "sh"]


@contextlib.contextmanager
def running(*command):
    """Starts a program, and returns the first line that it prints."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.stdout.readline()
        finally:
            process.kill()


def promiscuity(link):
    text = subprocess.run(["ip", "-json", "-details", "link", "show", link], stdout=subprocess.PIPE,
                          text=True, check=True).stdout
    return json.loads(text)[0]["promiscuity"]


def play(args, work, wire):
    programs = args.build / "tests/conformance"
    key = f"conformance-{os.getpid()}"
    device = [ROOT / "scripts/hcasim", "run", "--build", args.build, "--wire", key, "--ip", "10.0.0.1",
              "--", programs / "conformance-helper", "--port", "0"]
    with contextlib.ExitStack() as all_of_it:
        port = all_of_it.enter_context(running(*device)).split()[-1]
        if wire:
            all_of_it.enter_context(running(programs / "conformance-relay", f"shm:{key}", "if:device"))
            if promiscuity("device") < 1:
                print("FAIL an interface is to take frames for any address while it is a wire")
                return 1
        peer = work / "peer"
        peer.write_text(f"[peer]\nwire={wire or f'shm:{key}'}\nhelper=127.0.0.1:{port}\n"
                        "address=10.0.0.200\nsettle_ms=200\n",
                        encoding="utf-8")
        player = [programs / "conformance", "--peer", peer, *args.scripts]
        return subprocess.run(player + (["--only", args.only] if args.only else []),
                              check=False).returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("scripts", type=pathlib.Path, nargs="+")
    parser.add_argument("--only")
    for kind in LINKS:
        parser.add_argument(f"--{kind}", dest="kind", action="store_const", const=kind)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.kind and not args.inside:
        within = unshared(args.kind)
        if not within:
            return SKIPPED
        os.execvp(within[0], [*within, sys.executable, "-B", *sys.argv, "--inside"])
    with tempfile.TemporaryDirectory() as work:
        return play(args, pathlib.Path(work), WIRES.get(args.kind))


if __name__ == "__main__":
    sys.exit(main())
