#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""usage: malformed.py HCASIM-SIM CONFORMANCE

tshark must find nothing malformed and no error in what devices send, except where the capture says
that the frame was corrupted. The captures are those of each kind of jobs of the simulation, with
faults and without, and of the conformance scripts. In the latter the player sends what is wrong on
purpose, so only what the device sends counts.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import wireshark

import capture

JOBS = ("--jobs", "3", "--ops", "40", "--seed", "2", "--processes", "1")
FAULTS = ("--loss", "1", "--duplication", "1", "--corruption", "3", "--reorder", "2", "--ecn", "20000", "--rate", "10000")
NO_FAULTS = ("--loss", "0", "--duplication", "0", "--corruption", "0")
# Raw packets of these kinds have wrong checksums on purpose, and the receiver must judge them (eth_message.h, offload.c).
OWN_CHECKSUMS = ("eth", "offloads", "steering")
# In these captures tshark must notice frames that were corrupted: a judge that notices nothing would prove nothing.
COUNTED = ("rc, with faults", "ud, with faults", "dc, with faults")
NEEDS_A_GPU = ("gpu", "peers")


def kinds():
    """Returns the names of the kinds of jobs."""
    table = (wireshark.ROOT / "tests/sim/fabric/kinds.def").read_text(encoding="utf-8")
    return [name.replace("_", "-") for name in re.findall(r"^KIND\((\w+)\)", table, re.M) if name not in NEEDS_A_GPU]


def simulations(program, folder):
    """Yields a title, a capture, and what tshark finds in it beside what was injected."""
    for kind in kinds():
        for title, options in ("without faults", NO_FAULTS), ("with faults", FAULTS):
            path = folder / "simulation.pcapng"
            path.unlink(missing_ok=True)
            wireshark.simulate(program, path, kind, *JOBS, *options)
            yield f"{kind}, {title}", path, capture.tshark_complaints(path, checksums=kind not in OWN_CHECKSUMS)


def conformance(program, folder):
    """Yields the same for each script."""
    for script in sorted((wireshark.ROOT / "tests/conformance").glob("*.txt")):
        path = folder / f"{script.stem}.pcapng"
        subprocess.run([program, script], env=dict(os.environ, HCASIM_SIM_CAPTURE=str(path)), check=True,
                       stdout=subprocess.DEVNULL, timeout=wireshark.PATIENCE)
        if path.exists():
            yield script.name, path, capture.tshark_complaints(path, only="frame.packet_flags_direction == 2")


def main():
    wireshark.skip_without_tshark()
    simulation, player = sys.argv[1:]
    failed = packets = noticed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for runs in simulations(simulation, folder), conformance(player, folder):
            for title, path, complaints in runs:
                packets += sum(1 for _ in capture.frames(path))
                if title in COUNTED:
                    noticed += len(wireshark.rows(path, ["frame.number"], "-Y", f'hcasim.fate == "corrupted" && ({capture.WRONG})'))
                failed += bool(complaints)
                print("\n".join([f"{title}: {len(complaints)} complaints", *complaints[:5]]) if complaints else f"{title}: ok")
    print(f"{packets} packets; of the corrupted ones tshark noticed {noticed} in {len(COUNTED)} captures; {failed} captures with complaints")
    return 1 if failed or not noticed else 0


if __name__ == "__main__":
    sys.exit(main())
