# SPDX-License-Identifier: BSD-2-Clause
"""Compares the device with soft-RoCE in one pair of guests (scripts/bench)."""
import argparse
import pathlib
import re
import statistics
import sys
import tempfile

import vmlib
from lab import Lab

# Each row: program and arguments; column of perftest's last line; unit; whether more is better.
# Where bandwidth is measured, a run lasts a fixed time, so both get the same time.
BANDWIDTH, LATENCY, RATE = (3, "MiB/s", True), (4, "us", False), (4, "Mmsg/s", True)
CASES = [
    ("ib_write_bw -s 65536 -D 2", BANDWIDTH),
    ("ib_send_bw -s 65536 -D 2", BANDWIDTH),
    ("ib_read_bw -s 65536 -D 2 -o 16", BANDWIDTH),
    ("ib_write_bw -s 64 -D 2", RATE),
    ("ib_send_lat -s 2 -n 500", LATENCY),
    ("ib_write_lat -s 2 -n 500", LATENCY),
    ("ib_read_lat -s 2 -n 500 -o 16", LATENCY),
]


class Both(Lab):
    """Two guests with the device on one wire, and with virtio NICs on another."""

    def _devices(self, i, properties):
        sockets = [self.work / f"{name}.net" for name in "ab"]
        return (super()._devices(i, properties) +
                vmlib.virtio_nic(f"02:00:00:ca:52:{i + 1:02x}", sockets[i], sockets[1 - i]))

    def up(self):
        super().up()
        self.sides = {"hcasim": self.hosts, "rxe": []}
        for i, vm in enumerate(self.vms, 1):
            netdev = vm.run("modprobe virtio_net; sleep 1; "
                            "basename /sys/bus/virtio/drivers/virtio_net/virtio*/net/*").out.strip()
            vm.run(f"ip link set {netdev} up; ip addr add 10.0.1.{i}/24 dev {netdev}; "
                   f"modprobe rdma_rxe; rdma link add rxe0 type rxe netdev {netdev}")
            self.sides["rxe"].append({"netdev": netdev, "ibdev": "rxe0", "ip": f"10.0.1.{i}",
                                      "gid": vm.run(f"/hcasim/gid rxe0 10.0.1.{i}").out.strip()})

    def measure(self, side, case):
        command, (column, _, _) = case
        self.hosts = self.sides[side]
        client, _ = self.pair(f"{command} -F -d {{dev}} -x {{gid}}", timeout=90)
        rows = [line.split() for line in client.out.splitlines()
                if re.match(r"\s*\d+\s+\d+\s+[\d.]", line)]
        if not rows:
            raise vmlib.VmError(f"no result:\n{client}")
        return float(rows[-1][column])


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("-n", type=int, default=3, metavar="ROUNDS")
    parser.add_argument("-k", default="", metavar="TEXT")
    parser.add_argument("--work")
    args = parser.parse_args()
    work = pathlib.Path(args.work or tempfile.mkdtemp(prefix="hcasim-bench."))
    work.mkdir(parents=True, exist_ok=True)
    failures = 0
    with Both(work) as lab:
        print("boots two guests with both devices", flush=True)
        lab.boot()
        lab.up()
        print(f"medians of {args.n} runs\n")
        print(f"{'program':32} {'hcasim':>10} {'soft-RoCE':>10} {'unit':8} times as good")
        for case in CASES:
            command, (_, unit, more_is_better) = case
            if args.k not in command:
                continue
            values = {"hcasim": [], "rxe": []}
            try:
                for _ in range(args.n):
                    for side, measured in values.items():
                        measured.append(lab.measure(side, case))
            except vmlib.VmError as error:
                failures += 1
                print(f"{command:32} FAILED: {str(error).splitlines()[0]}", flush=True)
                continue
            ours, theirs = (statistics.median(values[side]) for side in ("hcasim", "rxe"))
            ratio = ours / theirs if more_is_better else theirs / ours
            print(f"{command:32} {ours:10.4g} {theirs:10.4g} {unit:8} {ratio:.1f}", flush=True)
        lab.poweroff()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
