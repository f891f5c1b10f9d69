# SPDX-License-Identifier: BSD-2-Clause
"""The demo behind scripts/demo, which has already set up and built: two guests, their HCAs, RDMA.
"""
import argparse
import pathlib
import re
import shutil
import signal
import sys
import tempfile
import time

import capture
import vmlib
from lab import Lab


class Demo:
    """Runs steps, prints each, and keeps the table's rows."""

    def __init__(self):
        self.rows = []
        self.failed = False
        self.stuck = False

    def row(self, step, ran, outcome, came_back, seconds):
        self.rows.append((step, ran, outcome, came_back))
        print(f"{outcome:4} {step}: {came_back} ({seconds:.1f} s)", flush=True)

    def step(self, name, ran, function, essential=False):
        """Runs one step; function returns the result, or raises. After the failure of an essential
        step, the later steps are not tried."""
        if self.stuck:
            self.rows.append((name, ran, "-", "not tried"))
            return
        print(f"...  {name}: {ran}", flush=True)
        started = time.monotonic()
        try:
            came_back, outcome = function() or "done", "ok"
        except (vmlib.VmError, OSError, ValueError, LookupError) as error:
            self.failed = True
            self.stuck = essential
            print(error, file=sys.stderr)
            outcome, came_back = "FAIL", next(iter(str(error).splitlines()), repr(error))
        self.row(name, ran, outcome, came_back, time.monotonic() - started)

    def table(self):
        widths = [max(len(row[i]) for row in self.rows) for i in range(3)]
        print()
        for head in (("step", "what was run", "", "what came back"), *self.rows):
            cells = [cell.ljust(width) for cell, width in zip(head, widths)]
            print("  ".join([*cells, head[3]]).rstrip())


def found(pattern, text):
    """Returns what the pattern's group matched; raises LookupError with the text if nothing
    matched."""
    match = re.search(pattern, text)
    if not match:
        raise LookupError(f"no /{pattern}/ in:\n{text}")
    return match[1]


def show(demo, lab):
    """Runs the steps with two guests."""
    def in_both(command):
        jobs = [vm.spawn(command.format(**host)) for vm, host in
                zip(lab.vms, lab.hosts or [{}, {}])]
        return [job.wait(check=True).out for job in jobs]

    def lspci():
        texts = in_both("lspci -nn -d 15b3:1017")
        return found(r"\]: (.*ConnectX-5.*)", texts[0]) and found(r"\]: (.*ConnectX-5.*)", texts[1])

    def up():
        lab.up()
        return ", ".join(f"{vm.name}: {host['netdev']} {host['ip']}, {host['ibdev']}"
                         for vm, host in zip(lab.vms, lab.hosts))

    def ping(i):
        text = lab.vms[i].run(f"ping -c 5 -i 0.2 -W 5 {lab.hosts[1 - i]['ip']}").out
        return (found(r"(\d+ received)", text) + ", " +
                found(r"rtt [^=]*= [\d.]+/([\d.]+)", text) + " ms on average")

    def devinfo():
        text = in_both("ibv_devinfo -d {ibdev}")[0]
        return " ".join(found(rf"{key}:\s+(.*)", text).strip() for key in
                        ("fw_ver", "vendor_part_id", "state", "link_layer"))

    def pingpong():
        client, _ = lab.pair("ibv_rc_pingpong -c -d {dev} -g {gid}")
        return found(r"(\d+ iters) in", client.out) + ", data verified, " + \
            found(r"= ([\d.]+ usec/iter)", client.out)

    def rping():
        lab.pair("rping -s -V -C 10", "rping -c -V -C 10 -a {peer}", listens="cm")
        return "10 rounds of READ and WRITE, data verified"

    def write_bw():
        client, _ = lab.pair("ib_write_bw -F -d {dev} -x {gid} -n 500")
        return found(r"\n\s*65536\s+500\s+[\d.]+\s+([\d.]+)", client.out) + " MiB/s"

    def captured():
        texts = []
        for path in lab.captures:
            wrong, seen = capture.wrong_icrcs(path)
            if wrong:
                raise ValueError(f"{path}: {len(wrong)} frames have a wrong ICRC")
            complaints = capture.tshark_complaints(path, checksums=lab.device == "hcasim")
            if complaints:
                raise ValueError(f"{path}: tshark complains: {complaints[0]}")
            texts.append(f"{sum(seen.values())} RoCEv2 packets")
        return texts[0] + ", none malformed, every ICRC good"

    demo.step("boot", "two guests, Debian's own kernel", lambda: lab.boot() or
              lab.vms[0].run("uname -r").out.strip(), essential=True)
    if lab.device == "hcasim":
        demo.step("the PCI device", "lspci -d 15b3:1017", lspci)
    demo.step("drivers and addresses", "modprobe mlx5_core mlx5_ib; ip addr add"
              if lab.device == "hcasim" else "rdma link add; ip addr add", up, essential=True)
    demo.step("a pings b", "ping 10.0.0.2", lambda: ping(0))
    demo.step("b pings a", "ping 10.0.0.1", lambda: ping(1))
    demo.step("the RDMA device", "ibv_devinfo", devinfo)
    demo.step("RC messages", "ibv_rc_pingpong -c", pingpong)
    demo.step("RDMA-CM, READ, WRITE", "rping -V -C 10", rping)
    demo.step("bandwidth", "ib_write_bw", write_bw)
    demo.step("power-off", "poweroff", lab.poweroff)
    demo.step("the captures", "tshark, ICRC of each packet", captured)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", choices=("hcasim", "rxe"), default="hcasim")
    parser.add_argument("--setup-seconds", type=int, default=0)
    parser.add_argument("--build-seconds", type=int, default=0)
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))

    started = time.monotonic()
    demo = Demo()
    demo.row("packages, headers", "scripts/setup", "ok", "ready", args.setup_seconds)
    demo.row("build", "ninja qemu-dev/hcasim.so", "ok", "built", args.build_seconds)
    if args.device == "hcasim":
        demo.step("the plugin", "ls build/qemu-dev",
                  lambda: f"{vmlib.PLUGIN.name}, {vmlib.PLUGIN.stat().st_size >> 10} KiB", essential=True)
    work = pathlib.Path(tempfile.mkdtemp(prefix="hcasim-demo."))
    guests = []
    demo.step("the guests' system", "scripts/lib/guest",
              lambda: guests.append(vmlib.Guest.prepare()) or "Debian 13 packages, cached",
              essential=True)
    if guests and not demo.stuck:
        with Lab(work, args.device, capture=True, guest=guests[0]) as lab:
            show(demo, lab)
    demo.table()
    seconds = time.monotonic() - started + args.setup_seconds + args.build_seconds
    print(f"\n{'FAILED' if demo.failed else 'all well'} after {seconds:.0f} s")
    if demo.failed:
        print(f"logs and captures are in {work}")
        return 1
    shutil.rmtree(work)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("demo: interrupted; the guests are off", file=sys.stderr)
        sys.exit(130)
