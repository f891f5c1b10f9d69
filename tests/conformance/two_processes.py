#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""usage: two_processes.py BUILD SCRIPT... [--only TEXT]

Plays scripts as against a foreign device: the player on a shared-memory wire in real time, the device
(`hcasim run`) that of another process, with the helper.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("scripts", type=pathlib.Path, nargs="+")
    parser.add_argument("--only")
    args = parser.parse_args()
    programs = args.build / "tests/conformance"
    wire = f"conformance-{os.getpid()}"
    command = [ROOT / "scripts/hcasim", "run", "--build", args.build, "--wire", wire, "--ip", "10.0.0.1",
               "--", programs / "conformance-helper", "--port", "0"]
    with tempfile.TemporaryDirectory() as work, \
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as helper:
        try:
            port = helper.stdout.readline().split()[-1]
            peer = pathlib.Path(work) / "peer"
            peer.write_text(f"[peer]\nwire=shm:{wire}\nhelper=127.0.0.1:{port}\naddress=10.0.0.200\n"
                            "settle_ms=200\n",
                            encoding="utf-8")
            player = [programs / "conformance", "--peer", peer, *args.scripts]
            return subprocess.run(player + (["--only", args.only] if args.only else []),
                                  check=False).returncode
        finally:
            helper.kill()


if __name__ == "__main__":
    sys.exit(main())
