#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Captures of processes: `hcasim run --capture` around one program, and around several.

The programs run as an ordinary user in a container (sandbox.py). Each statement is a function below.
Each file is read by tshark and by scripts/lib/capture.py, which computes every ICRC. Exit status 0: no
statement fails; 77: all are skipped.
"""
import argparse
import collections
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import hosts
import sandbox
import tries

import capture

RUNS = "for i in 1 2; do ibv_rc_pingpong -d mlx5_0 -g 1 -p {port} -n 10 & " \
       "until grep -q ':{listens} .* 0A ' /proc/net/tcp /proc/net/tcp6; do sleep 0.1; done; " \
       "ibv_rc_pingpong -d mlx5_0 -g 1 -p {port} -n 10 localhost || exit 1; wait $! || exit 1; done"


def runs():
    port = hosts.free_port()
    return RUNS.format(port=port, listens=f"{port:04X}")


def interfaces(path):
    """Returns the names of a capture's interfaces, and the number of frames of each."""
    said = subprocess.run(["tshark", "-n", "-r", path, "-T", "fields", "-e", "frame.interface_name"],
                          capture_output=True, text=True, check=True).stdout.splitlines()
    return {name: said.count(name) for name in dict.fromkeys(said)}


def expect_whole(path):
    wrong, seen = capture.wrong_icrcs(path)
    if wrong or not seen["RC"]:
        raise hosts.Failure(f"{path}: wrong ICRCs of {wrong}; packets {dict(seen)}")
    if complaints := capture.tshark_complaints(path):
        raise hosts.Failure("\n".join(complaints))


def processes_of_a_run(hosts_, folder):
    """The processes of a run share one file, side by side and one after another."""
    path = folder / "shared.pcapng"
    hosts_.run("sh", "-c", runs(), options=["--capture", str(path)])
    expect_whole(path)
    names = interfaces(path)
    if len(names) != 4 or not all("ibv_rc_pingpong[" in name for name in names):
        raise hosts.Failure(f"{names}: two servers and two clients")


def another_run(hosts_, folder):
    """A run that begins when the file's writers have ended replaces the file."""
    path = folder / "again.pcapng"
    hosts_.run("sh", "-c", runs(), options=["--capture", str(path)])
    hosts_.run("ibv_devinfo", options=["--capture", str(path)])
    if any(capture.frames(path)) and len(interfaces(path)) != 1:
        raise hosts.Failure(f"{interfaces(path)}: frames of the run before")


def runs_at_a_time(hosts_, folder):
    """Two runs that name the same file at the same time share it."""
    path = folder / "two.pcapng"
    hosts_.pair("ibv_rc_pingpong", *hosts.ON_DEVICE, options=["--capture", str(path)])
    expect_whole(path)
    if len(interfaces(path)) != 2:
        raise hosts.Failure(f"{interfaces(path)}: a server and a client")


def a_sequence_diagram(hosts_, folder):
    """tshark draws one interface of a capture as a sequence diagram, as docs/howto/capture.md shows it."""
    path = folder / "diagram.pcapng"
    hosts_.pair("ibv_rc_pingpong", *hosts.ON_DEVICE, "-n", "2", options=["--capture", str(path)])
    flow = f'flow,any,standard,frame.interface_name == "{next(iter(interfaces(path)))}"'
    said = subprocess.run(["tshark", "-q", "-z", flow, "-r", path], capture_output=True, text=True, check=True).stdout
    # Two messages of four packets in each direction, and ACKs.
    for arrow in "---->", "<----":
        if said.count(arrow) < 8:
            raise hosts.Failure(f"less than eight {arrow}:\n{said}")
    if said.count("RRoCE: RC Send Last") < 4 or "RC Acknowledge" not in said:
        raise hosts.Failure(f"a message is missing:\n{said}")


def a_ring_of_files(hosts_, folder):
    """A capture of several processes stays within its number and size of files, and each file is whole."""
    path, size, files = folder / "ring.pcapng", 1 << 20, 3
    hosts_.pair("ibv_rc_pingpong", *hosts.ON_DEVICE, "-n", "500",
                options=["--capture", str(path), "--capture-size", "1M", "--capture-files", str(files)])
    found = sorted(folder.glob("ring.*"))
    if len(found) != files or path not in found or max(file.stat().st_size for file in found) > size:
        raise hosts.Failure(f"{[(file.name, file.stat().st_size) for file in found]}")
    for file in found:
        expect_whole(file)
        if file.stat().st_size > size // 2 and len(interfaces(file)) != 2:
            raise hosts.Failure(f"{file.name}: {interfaces(file)}: a server and a client")
    numbers = [int(file.suffixes[0][1:]) for file in found if file != path]
    if numbers != [max(numbers) - 1, max(numbers)] or max(numbers) < 4:
        raise hosts.Failure(f"the files of the ring have the numbers {numbers}")


def a_live_feed(hosts_, folder):
    """tshark reads a named pipe while frames come, and gets each of them."""
    pipe = new_pipe(folder)
    with subprocess.Popen(["tshark", "-l", "-n", "-i", str(pipe), "-T", "fields", "-e", "infiniband.bth.opcode"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as tshark:
        server, client = with_a_pipe(hosts_, pipe)
        hosts_.output(client)
        hosts_.output(server)
        said = tshark.communicate(timeout=hosts.PATIENCE)[0].split()
    # 40 messages of four packets in each direction, and ACKs: less than a pipe keeps for a slow reader
    if said.count("0") < 80 or said.count("2") < 80 or "17" not in said:
        raise hosts.Failure(f"{collections.Counter(said)}")


def new_pipe(folder):
    pipe = pathlib.Path(tempfile.mkdtemp(dir=folder)) / "pipe"
    os.mkfifo(pipe)
    return pipe


def with_a_pipe(hosts_, pipe):
    """Starts a pingpong whose client captures into the pipe."""
    port = hosts.free_port()
    command = ["ibv_rc_pingpong", *hosts.ON_DEVICE, "-n", "40", "-p", str(port)]
    server = hosts_.start(*command)
    hosts.wait_listening(server, port)
    return server, hosts_.start(*command, "localhost", options=["--capture", str(pipe)])


def a_reader_that_does_not_read(hosts_, folder):
    """A program does not wait for one who has the pipe open and reads nothing."""
    pipe = new_pipe(folder)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    server, client = with_a_pipe(hosts_, pipe)
    hosts_.output(client)
    hosts_.output(server)
    os.close(reader)


PROGRAMS = ("ibv_uc_pingpong", "ibv_ud_pingpong", "ibv_srq_pingpong", "ibv_xsrq_pingpong", "ib_write_bw -n 20 -s 5000",
            "ib_read_bw -n 20 -s 5000", "ib_atomic_bw -n 20", "ib_send_bw -c DC -n 20 -s 5000", "ib_send_bw -c XRC -n 20 -s 5000")


def nothing_is_malformed(hosts_, folder):
    """tshark finds nothing malformed in the packets of pingpongs and of perftest."""
    for number, command in enumerate(PROGRAMS):
        program, *words = command.split()
        path = folder / f"malformed.{number}.pcapng"
        hosts_.pair(program, *words, *(hosts.ON_DEVICE if program.startswith("ibv_") else hosts.PERFTEST),
                    options=["--capture", str(path)])
        wrong, seen = capture.wrong_icrcs(path)
        if complaints := capture.tshark_complaints(path):
            raise hosts.Failure("\n".join([command, *complaints[:10]]))
        if wrong or not seen:
            raise hosts.Failure(f"{command}: wrong ICRCs of {wrong[:10]}; packets {dict(seen)}")


def version_1_of_roce(hosts_, folder):
    """With a GID of RoCE version 1, RC, UC and UD send packets of that version alone, and their data arrives."""
    for gid in "2", "3":
        for transport in "rc", "uc", "ud":
            path = folder / f"{transport}{gid}.pcapng"
            command = f"ibv_{transport}_pingpong", "-d", "mlx5_0", "-g", gid, "-c", "-n", "20"
            hosts_.pair(*command, options=["--capture", str(path)])
            wrong, seen = capture.wrong_icrcs(path)
            if wrong or set(seen) != {f"{transport.upper()} v1"}:
                raise hosts.Failure(f"{path}: wrong ICRCs of {wrong}; packets {dict(seen)}")
            if complaints := capture.tshark_complaints(path):
                raise hosts.Failure("\n".join(complaints))


def comments_name_what_happened(hosts_, folder):
    """With lost and corrupted frames, tshark shows the fate of each, and why packets are sent again."""
    path = folder / "faults.pcapng"
    hosts_.pair("ibv_rc_pingpong", *hosts.ON_DEVICE, "-n", "300",
                options=["--capture", str(path), "--loss", "2%", "--corruption", "2%"])
    said = [line.split("\t") for line in subprocess.run(
        ["tshark", "-n", "-r", path, "-X", f"lua_script:{capture.LUA}", "-T", "fields", "-E", "occurrence=f", *(
            word for field in ("hcasim.fate", "hcasim.repeated", "hcasim.why", "hcasim.process", "hcasim.qp", "hcasim.wqe")
            for word in ("-e", field))], capture_output=True, text=True, check=True).stdout.splitlines()]
    fates = collections.Counter(row[0] for row in said)
    again = [row for row in said if row[1] in ("1", "True")]
    if not fates["lost"] or not fates["corrupted"] or not any("NAK" in row[2] for row in again):
        raise hosts.Failure(f"fates {dict(fates)}; {len(again)} sent again: {collections.Counter(row[2] for row in again)}")
    if not all(row[4] and "ibv_rc_pingpong[" in row[3] for row in again):
        raise hosts.Failure(f"{again[:5]}: no QP or process")
    if complaints := capture.tshark_complaints(path):
        raise hosts.Failure("\n".join(complaints[:10]))


STATEMENTS = (nothing_is_malformed, version_1_of_roce, comments_name_what_happened, processes_of_a_run, another_run, runs_at_a_time, a_sequence_diagram, a_ring_of_files, a_live_feed,
              a_reader_that_does_not_read)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=lambda p: pathlib.Path(p).resolve(), default=hosts.ROOT / "build")
    parser.add_argument("names", nargs="*", help="The statements to check (default: all).")
    args = parser.parse_args()
    sandbox.enter(__file__, {"--build": args.build})
    cases = tries.Cases("captures")
    if not shutil.which("tshark"):
        cases.skipped("captures", "tshark is not installed", missing=True)
        return cases.end()
    on_wire = hosts.Hosts(args.build)
    try:
        with tempfile.TemporaryDirectory() as name:
            return hosts.check(cases, STATEMENTS, args.names, (on_wire, pathlib.Path(name)), on_wire.end)
    finally:
        on_wire.end()


if __name__ == "__main__":
    sys.exit(main())
