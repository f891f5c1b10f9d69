#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Processes as hosts: Debian's own verbs programs under `scripts/hcasim run`, with no VM.

They run as an ordinary user in a container (sandbox.py), whoever starts this. Each statement is a function below; if
one fails, the output of its programs is printed. The wire is this run's own. Timing is no condition: programs have
enough time, and only a program that never ends fails. A statement whose programs are not installed is skipped. Exit
status 0: none fails; 77: all are skipped.
"""
import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))

from host_processes import (  # noqa: E402
    HCASIM, PATIENCE, Failure, remove_xrc_files, has_failed, Hosts, said_until_now, free_port, wait_listening)
import sandbox  # noqa: E402
import tries  # noqa: E402

ON_DEVICE = ["-d", "mlx5_0", "-g", "1"]
# -F: on a busy machine perftest does not find its clock's frequency, and then gives up.
PERFTEST = ["-F", "-d", "mlx5_0", "-x", "1"]
SERVER_IP, CLIENT_IP = "10.7.0.1", "10.7.0.2"
# The words by which programs report a refusal; event 8 is REJECTED, 6 is UNREACHABLE, which datagrams get.
REFUSED = r"reject|refused|UNREACHABLE[,;] error: 1|CM event bl blka [68]"
# How long a program is stopped while its peer waits. HCASIM_STOP_SECONDS=60: as long as somebody uses a debugger.
STOP_SECONDS = float(os.environ.get("HCASIM_STOP_SECONDS", "1"))
# A program that ends as soon as it continues: gdb lets its threads go on one after another, and when it comes to the
# last one the program may have ended (gdb 13; rarely, but half of the times on a busy machine).
ENDS_IN_GDB = re.compile(r"^Couldn't get registers: No such process\.$", re.M)
TRIES_IN_GDB = 20
# Opens the first device, and checks the entries in /sys, /dev and the network before and after it is removed; then
# the addresses of the connection manager, which begins only now.
BESIDE_A_REMOVED_DEVICE = """
import ctypes, os, socket, struct, sys, time
verbs = ctypes.CDLL("libibverbs.so.1")
verbs.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
verbs.ibv_open_device.restype = ctypes.c_void_p
verbs.ibv_open_device.argtypes = [ctypes.c_void_p]
def look():
    names = [f"mlx5_{n}" for n in range(3) if os.path.exists(f"/sys/class/infiniband/mlx5_{n}/node_guid")]
    print(",".join(names))
    print(",".join(f"hca{n}" for n in range(3) if os.path.exists(f"/sys/class/net/hca{n}/mtu")))
assert verbs.ibv_open_device(verbs.ibv_get_device_list(None)[0])
look()
open(sys.argv[1], "w").close()
while os.path.exists("/sys/class/infiniband/mlx5_0"):
    time.sleep(0.02)
try:
    socket.if_nametoindex("hca0")
    print("hca0 has a number")
except OSError:
    assert socket.if_nametoindex("hca1")
look()
cm = ctypes.CDLL("librdmacm.so.1")
cm.rdma_create_event_channel.restype = ctypes.c_void_p
channel = ctypes.c_void_p(cm.rdma_create_event_channel())
for ip in ("10.7.0.1", "10.7.0.2"):
    identifier = ctypes.c_void_p()
    assert not cm.rdma_create_id(channel, ctypes.byref(identifier), None, 0x106)
    address = struct.pack("<HH4s8x", socket.AF_INET, 0, socket.inet_aton(ip))
    print(ip if not cm.rdma_bind_addr(identifier, address) else "gone")
"""
RETRY_EXCEEDED = "(12)"  # enum ibv_wc_status IBV_WC_RETRY_EXC_ERR, as pingpongs print it


def container(hosts):
    """The programs run without capabilities, device files, a class in sysfs and rdma-core."""
    watch = hosts.start("ibv_asyncwatch", "-d", "mlx5_0")
    if "FD" not in watch.stdout.readline():
        raise Failure("ibv_asyncwatch does not say what it waits for")
    maps = pathlib.Path(f"/proc/{watch.pid}/maps").read_text()
    files = set(re.findall(r"(/\S+)$", maps, re.M))
    if found := sandbox.violations():
        raise Failure(", ".join(found))
    theirs = [f for f in files if "/lib" in f and re.search("verbs|mlx5|rdma", pathlib.Path(f).name)
              and not f.startswith(str(hosts.build))]
    if theirs or not any(f.startswith(str(hosts.build)) for f in files):
        raise Failure(f"libraries of rdma-core are loaded: {theirs}\n{maps}")
    watch.kill()


def pingpongs(hosts):
    """Each transport's pingpong completes by polling, and by events with its data checked."""
    for transport in ("rc", "uc", "ud", "srq", "xsrq"):
        for options in ([], ["-e"], ["-e", "-c"]):
            if transport == "xsrq" and "-c" in options:
                continue  # it has no such option
            hosts.pair(f"ibv_{transport}_pingpong", *ON_DEVICE, *options)
    hosts.pair("ibv_rc_pingpong", *ON_DEVICE, "--dm", "-c")  # from device memory to device memory


def device_memory(hosts):
    """WRITEs, READs, SENDs and atomics from the memory of one device to that of another (tests/programs/device_memory)."""
    client, _ = hosts.pair(str(hosts.build / "tests/programs/device_memory"), "-d", "mlx5_0", "-g", "1")
    if "48 lengths" not in client:
        raise Failure(client)


def performance_tests(hosts):
    """perftest's operations complete on RC, UC, UD, XRC and DC, in all sizes, both ways and on many QPs.

    perftest_matrix.py has all that perftest can do.
    """
    for command in (
            "ib_send_bw -a -n 10", "ib_write_bw -a -n 10", "ib_read_bw -a -n 10",
            "ib_send_lat -a -n 10", "ib_send_bw -c UC -a -n 10", "ib_send_bw -c UD -a -n 50",
            "ib_send_bw -c UC -e -n 200", "ib_send_bw -c UD -q 64 -n 5", "ib_atomic_bw -n 200", "ib_atomic_lat -n 200",
            "ib_send_lat -e -n 200", "ib_send_bw -b -e -n 200", "ib_read_lat -e -n 200",
            "ib_send_bw -e -n 200", "ib_write_bw -q 64 -n 50", "ib_send_bw -b -q 4 -n 100",
            "ib_send_bw -c UC -n 1000", "ib_send_bw -c UC -s 1024 -n 1000",
            "ib_write_bw -c UC -n 200", "ib_send_bw -c UD -s 2048 -n 200",
            "ib_send_lat -c UD -e -n 100", "ib_send_bw -c XRC -a -n 10", "ib_send_bw -c XRC -e -n 200",
            "ib_write_bw -c XRC -q 8 -n 50", "ib_read_bw -c XRC -n 100", "ib_atomic_bw -c XRC -n 200",
            "ib_send_bw -c DC -a -n 10", "ib_send_bw -c DC -q 8 -n 50", "ib_send_lat -c DC -n 100",
            "ib_write_bw -c DC -b -n 100", "ib_read_bw -c DC -n 100", "ib_atomic_bw -c DC -n 200"):
        hosts.pair(*command.split(), *PERFTEST)


def memory_polling(hosts):
    """A program that only polls its memory sees WRITEs and answers them."""
    hosts.pair("ib_write_lat", "-n", "200", *PERFTEST)


def addresses(hosts):
    """GID 1 is the requested IPv4 address, and GID 0 is the link-local address made from the MAC address."""
    text = hosts.run("ibv_devinfo", "-v", options=["--ip", "10.9.8.7"])
    for gid in ("fe80::68:aff:fe09:807", "::ffff:10.9.8.7"):
        if gid not in text:
            raise Failure(f"no {gid} in\n{text}")


def devices(hosts):
    """A program has the requested number of devices, each with its own address."""
    text = hosts.run("ibv_devices", options=["--devices", "3"])
    guids = re.findall(r"mlx5_\d\s+(\w+)", text)
    if len(set(guids)) != 3:
        raise Failure(f"three different GUIDs are not in\n{text}")


def numbers(hosts):
    """Each host of a wire has its own number, in whatever network namespace it is.

    A number is free again when its process has ended.
    """
    def address(*prefix):
        text = subprocess.run(
            [*prefix, HCASIM, "run", "--build", hosts.build, "--wire", hosts.wire, "--", "ibv_devinfo", "-v"],
            capture_output=True, text=True, timeout=PATIENCE).stdout
        return re.search(r"::ffff:(10\.0\.0\.\d+)", text)[1]

    watch = hosts.start("ibv_asyncwatch", "-d", "mlx5_0")
    if "FD" not in watch.stdout.readline():
        raise Failure("ibv_asyncwatch does not say what it waits for")
    apart = ["unshare", "--user", "--map-current-user", "--net"]
    possible = subprocess.run([*apart, "true"], stderr=subprocess.DEVNULL).returncode == 0
    beside = [address()]
    if possible:
        beside.append(address(*apart))
    else:
        print("     no network namespace can be made here: none is looked from", flush=True)
    watch.kill()
    watch.communicate()
    after = address()
    if set(beside) != {"10.0.0.2"} or after != "10.0.0.1":
        raise Failure(f"beside a host, and apart from it: {beside}; after it: {after}")


def wire_of_another_name(hosts):
    """Hosts of different wires do not meet: neither finds the other's address."""
    port = free_port()
    # Each has its own wire: on the other statements' wire a host that has just ended may still be known.
    server = hosts.start("ibv_rc_pingpong", *ON_DEVICE, "-p", str(port), options=["--wire", hosts.wire + "-a"])
    wait_listening(server, port)
    client = hosts.start("ibv_rc_pingpong", *ON_DEVICE, "-p", str(port), "localhost",
                         options=["--wire", hosts.wire + "-b", "--host", "2"])
    text = server.communicate(timeout=PATIENCE)[0]
    if "Failed to modify QP to RTR" not in text:
        raise Failure(f"the server found its client\n{text}")
    if client.wait(PATIENCE) == 0:
        raise Failure("the client found its server")


def wakeups(pid):
    """Returns how often each thread has been given a processor."""
    counts = {}
    for status in pathlib.Path(f"/proc/{pid}/task").glob("*/status"):
        counts[status.parent.name] = sum(map(int, re.findall(r"_ctxt_switches:\s+(\d+)", status.read_text())))
    return counts


def idle(hosts):
    """Processes that wait for events do not wake up in ten seconds, and have less than 10 MB resident.

    One has only opened its device, one has used two QPs, and one listens for connections.
    """
    programs = [hosts.start("ibv_asyncwatch", "-d", "mlx5_0"),
                hosts.start(str(hosts.build / "tests/programs/idle"))]
    for program in programs:
        if not re.search("FD|idle", line := program.stdout.readline()):
            raise Failure(f"{program.command} does not say that it waits: {line}{program.communicate()[0]}")
    programs.append(hosts.start("rping", "-s", "-a", SERVER_IP, options=["--ip", SERVER_IP]))
    time.sleep(3)  # the last process prints nothing; the timers of what was sent run out
    before = [wakeups(program.pid) for program in programs]
    time.sleep(10)
    for program, count in zip(programs, before):
        if program.poll() is not None or not count:
            raise Failure(f"{program.command} has ended: {program.communicate()[0]}")
        rollup = pathlib.Path(f"/proc/{program.pid}/smaps_rollup").read_text()
        resident = int(re.search(r"^Rss:\s+(\d+) kB", rollup, re.M)[1])
        if wakeups(program.pid) != count or resident >= 10000:
            raise Failure(f"{program.command}: from {count} to {wakeups(program.pid)} wakeups in ten seconds, "
                          f"{resident} kB resident")
    hosts.kill()


def killed_peer(hosts):
    """A killed process is like a pulled cable: its peer gets RETRY_EXC_ERR, and other hosts do not notice."""
    port = free_port()
    # WRITEs without an end: a ping-pong would rightly wait for a message that nobody sends.
    command = ["stdbuf", "-oL", "ib_write_bw", *PERFTEST, "--run_infinitely", "-p", str(port)]
    server = hosts.start(*command)
    wait_listening(server, port)
    client = hosts.start(*command, "localhost")
    said = []
    while "remote address" not in (line := client.stdout.readline()):
        said.append(line)
        if not line:
            raise Failure(f"the client ended before its server was killed\n{''.join(said)}")
    time.sleep(0.5)
    server.send_signal(signal.SIGKILL)
    text = client.communicate(timeout=PATIENCE)[0]
    if "status 12" not in text:
        raise Failure(f"the client of a killed server says\n{text}")
    hosts.pair("ibv_rc_pingpong", *ON_DEVICE, "-c")


def removed_device(hosts):
    """A program whose device is removed learns of it wherever it waits.

    It waits for a completion, for an event, or for an event of a connection. Its peer's retries run out.
    """
    text = ""
    watching = hosts.start("stdbuf", "-oL", "ibv_asyncwatch", "-d", "mlx5_0", options=["--remove-after", "0.2"])
    while "DEVICE_FATAL" not in text and "local catastrophic" not in text:
        if not (line := watching.stdout.readline()):
            raise Failure(f"ibv_asyncwatch ended, and said\n{text}")
        text += line
    watching.kill()  # it continues to wait, as with a card
    watching.communicate()
    with tempfile.TemporaryDirectory() as folder:
        gone = pathlib.Path(folder) / "gone"
        options = ["--remove-when", str(gone)]
        seen = hosts.run("/usr/bin/python3", "-c", BESIDE_A_REMOVED_DEVICE, str(gone),  # an interpreter that any user may start
                         options=[*options, "--devices", "2", "--ip", "10.7.0.1"])
        if seen.split() != ["mlx5_0,mlx5_1", "hca0,hca1", "mlx5_1", "hca1", "gone", "10.7.0.2"]:
            raise Failure(f"beside the libraries are\n{seen}")
        gone.unlink()
        port = free_port()
        command = ["stdbuf", "-oL", "ibv_rc_pingpong", *ON_DEVICE, "-e", "-n", "100000000", "-p", str(port)]
        server = hosts.start(*command, options=options)
        wait_listening(server, port)
        client = hosts.start(*command, "localhost")
        while "remote address" not in (line := client.stdout.readline()):
            if not line:
                raise Failure("the client ended before its server's device was removed")
        time.sleep(0.3)
        gone.touch()
        served = server.communicate(timeout=PATIENCE)[0]
        client.kill()  # with nothing outstanding it is not notified, as with a card
        client.communicate()
        if server.returncode != 1 or "Failed to get cq_event" not in served:
            raise Failure(f"{server.command}: exit status {server.returncode}\n{served}")
        gone.unlink()
        port = free_port()
        command = ["stdbuf", "-oL", "ib_write_bw", *PERFTEST, "--run_infinitely", "-p", str(port)]
        server = hosts.start(*command, options=options)
        wait_listening(server, port)
        client = hosts.start(*command, "localhost")
        while "remote address" not in (line := client.stdout.readline()):
            if not line:
                raise Failure("the client ended before its server's device was removed")
        time.sleep(0.3)
        gone.touch()
        asked = client.communicate(timeout=PATIENCE)[0]
        server.kill()
        if "status 12" not in asked:
            raise Failure(f"{client.command}: exit status {client.returncode}\n{asked}")
        gone.unlink()
        server = hosts.start("stdbuf", "-oL", "rping", "-s", "-v", "-C", "100000000", "-a", SERVER_IP,
                             options=[*options, "--ip", SERVER_IP])
        time.sleep(1)
        client = hosts.start("rping", "-c", "-C", "100000000", "-a", SERVER_IP, options=["--ip", CLIENT_IP])
        while "ping data" not in (line := server.stdout.readline()):
            if not line:
                raise Failure("the server ended before its device was removed")
        gone.touch()
        served = server.communicate(timeout=PATIENCE)[0]
        client.kill()  # likewise
        if not server.returncode or "cma detected device removal" not in served:
            raise Failure(f"{server.command}: exit status {server.returncode}\n{served[-2000:]}")


def stopped_peer(hosts):
    """A stopped process pauses the wire, however long its peer's retries would last.

    Afterwards both continue as if nothing had happened, and no byte differs.
    """
    port = free_port()
    command = [str(hosts.build / "tests/programs/datacheck"), "-d", "mlx5_0", "-g", "1", "-n", "40000",
               "-u", "8", "-p", str(port)]  # 8 times 1 to 2 ms, then a QP gives up
    server = hosts.start(*command)
    wait_listening(server, port)
    sides = (server, hosts.start(*command, "localhost"))
    stopped = 0
    while stopped < 6 and all(side.poll() is None for side in sides):
        time.sleep(0.1)
        side = sides[stopped % 2]
        side.send_signal(signal.SIGSTOP)
        time.sleep(STOP_SECONDS)
        side.send_signal(signal.SIGCONT)
        stopped += 1
    if stopped < 2:
        raise Failure("the programs ended before both had been stopped")
    for side in sides:
        if "40000 operations, 0 differences" not in (text := hosts.output(side)):
            raise Failure(text)


def in_gdb(where, *command, times=1, finish=False):
    """Returns a command that stops in gdb for STOP_SECONDS when it comes to a function for that time, or returns from
    it; its exit status is the program's."""
    steps = ["set breakpoint pending on", f"break {where}", f"ignore 1 {times - 1}", "run", *["finish"] * finish,
             f"shell echo stopped; sleep {STOP_SECONDS}", "delete", "continue"]
    return ["gdb", "-q", "-batch", "-nx", "-return-child-result", *[w for step in steps for w in ("-ex", step)],
            "--args", *command]


def expect_stopped(text):
    if not re.search(r"^stopped$", text, re.M) or "exited normally" not in text:
        raise Failure(f"it did not stop in gdb, or did not go on:\n{text}")


def stopped_in_gdb(hosts):
    """A program at a breakpoint pauses the wire: its peer waits, both continue, and no byte differs.

    The peer's retries alone would last for 16 ms.
    """
    program = [str(hosts.build / "tests/programs/datacheck"), "-d", "mlx5_0", "-g", "1", "-n", "5000", "-u", "8"]
    for side in "server", "client":
        port = free_port()
        command = [*program, "-p", str(port)]
        stops = in_gdb("run_batch", *command, times=5)
        server = hosts.start(*(stops if side == "server" else command))
        wait_listening(server, port)
        client = hosts.start(*(stops if side == "client" else command), "localhost")
        for text in (said := {"client": hosts.output(client), "server": hosts.output(server)}).values():
            if "5000 operations, 0 differences" not in text:
                raise Failure(text)
        expect_stopped(said[side])


def stopped_while_it_connects(hosts):
    """The peer waits for a program that is at a breakpoint while it connects by address, and they connect."""
    server = ["rping", "-s", "-V", "-C", "20", "-a", SERVER_IP]
    client = ["rping", "-c", "-V", "-C", "20", "-a", SERVER_IP]
    for side, where, finish in (("server", "rdma_accept", False), ("server", "rdma_accept", True),
                                ("client", "rdma_connect", False), ("client", "rdma_connect", True),
                                ("client", "rdma_disconnect", False), ("server", "ibv_dereg_mr", False)):
        command = in_gdb(where, *(server if side == "server" else client), finish=finish)
        for left in reversed(range(TRIES_IN_GDB)):
            try:
                said = by_address(hosts, command if side == "server" else server,
                                  *(command if side == "client" else client))
                break
            except Failure as error:
                if not left or not ENDS_IN_GDB.search(str(error)):
                    raise
        expect_stopped(said[side == "server"])


def stopped_listener(hosts):
    """A listener that is stopped when a peer connects accepts it later; then each side is stopped under traffic."""
    server = hosts.start("rping", "-s", "-V", "-C", "15000", "-a", SERVER_IP, options=["--ip", SERVER_IP])
    time.sleep(3)  # until it listens, which nothing outside shows
    server.send_signal(signal.SIGSTOP)
    client = hosts.start("rping", "-c", "-V", "-C", "15000", "-a", SERVER_IP, options=["--ip", "10.7.0.2"])
    time.sleep(STOP_SECONDS)
    server.send_signal(signal.SIGCONT)
    for side in client, server:
        time.sleep(0.1)
        if client.poll() is not None:
            raise Failure(f"the programs ended before both had been stopped\n{client.communicate()[0]}")
        side.send_signal(signal.SIGSTOP)
        time.sleep(STOP_SECONDS)
        side.send_signal(signal.SIGCONT)
    for side in client, server:
        hosts.output(side)


def killed_while_stopped(hosts):
    """A stopped process that is killed is like a pulled cable, too."""
    port = free_port()
    command = ["stdbuf", "-oL", "ib_write_bw", *PERFTEST, "-u", "8", "--run_infinitely", "-p", str(port)]
    server = hosts.start(*command)
    wait_listening(server, port)
    client = hosts.start(*command, "localhost")
    while "remote address" not in (line := client.stdout.readline()):
        if not line:
            raise Failure("the client ended before its server was stopped")
    time.sleep(0.5)
    server.send_signal(signal.SIGSTOP)
    time.sleep(1)
    if client.poll() is not None:
        raise Failure(f"the client of a stopped server ended\n{client.communicate()[0]}")
    server.send_signal(signal.SIGKILL)
    text = client.communicate(timeout=PATIENCE)[0]
    if "status 12" not in text:
        raise Failure(f"the client of a killed server says\n{text}")


def ordering(hosts):
    """A program sees the operations of another program in the promised order.

    tests/programs/litmus; the promises are in docs/explanation/ordering.md.
    """
    hosts.pair(str(hosts.build / "tests/programs/litmus"), "-d", "mlx5_0", "-g", "1", "-n", "500")


def dynamic_connections(hosts):
    """Few DC initiators reach many targets by messages, RDMA and atomics.

    A wrong key reaches no target, and an error of one stream does not affect another (tests/programs/dc). With CQEs
    of 128 bytes, the CQEs of targets have small data in them.
    """
    for size in "64", "128":
        client, _ = hosts.pair("env", f"MLX5_CQE_SIZE={size}", str(hosts.build / "tests/programs/dc"), "-d", "mlx5_0",
                               "-g", "1")
        if "800 messages, 925 operations, streams: yes" not in client:
            raise Failure(client)


def tag_matching(hosts):
    """Tagged messages arrive in the buffer of their tag, in MPI's order.

    Messages without a buffer go to a receive, and the device fetches messages that are announced (tests/programs/tm).
    With CQEs of 128 bytes, small messages come in the CQE.
    """
    for size in "64", "128":
        hosts.pair("env", f"MLX5_CQE_SIZE={size}", str(hosts.build / "tests/programs/tm"), "-d", "mlx5_0", "-g", "1")


def atomics_under_masks(hosts):
    """A program's own WQEs swap and add under masks as a reference in C does (tests/programs/masked_atomics)."""
    client, _ = hosts.pair(str(hosts.build / "tests/programs/masked_atomics"), "-d", "mlx5_0", "-g", "1")
    if "800 operations" not in client:
        raise Failure(client)


def everybodys_word(hosts):
    """Threads of a program and two or three HCAs change one word at the same time, and no change is lost.

    tests/programs/atomics.
    """
    program = str(hosts.build / "tests/programs/atomics")
    for devices in ("mlx5_0", "mlx5_0,mlx5_1"):
        _, server = hosts.pair(program, "-d", devices, "-g", "1", options=["--devices", "2"])
        if server.count("of the CPU: exact") != 3:
            raise Failure(server)


def reserved_numbers(hosts):
    """No QP gets a reserved QP number, and each number is reserved once (tests/programs/reserved)."""
    hosts.run(str(hosts.build / "tests/programs/reserved"), "-d", "mlx5_0")


def compressed_completions(hosts):
    """A program reads CQs with compressed CQEs itself, and they cost a quarter of the bytes or less (compressed)."""
    for profile in "cx5", "cx6dx":
        text = hosts.run("env", f"HCASIM_PROFILE={profile}", str(hosts.build / "tests/programs/compressed"),
                         "-d", "mlx5_0")
        lines = re.findall(r"^(\w+).* ([\d.]+) bytes of CQEs for a receive, +([\d.]+) for a send$", text, re.M)
        if len(lines) != 8:
            raise Failure(text)
        for name, receive, send in lines:
            most = 64 if name == "uncompressed" else 16
            if max(float(receive), float(send)) > most:
                raise Failure(f"more than {most} bytes\n{text}")


def time_stamps(hosts):
    """Wall clock stamps of completions are the host's time, with a real-time clock and without one (stamps)."""
    for profile, clock in (("cx5", "free running"), ("cx7", "real time")):
        text = hosts.run("env", f"HCASIM_PROFILE={profile}", str(hosts.build / "tests/programs/stamps"), "-d", "mlx5_0")
        if not text.startswith(f"{clock}: 200 stamps fit"):
            raise Failure(text)


def all_to_all(hosts):
    """Processes that send each other small messages need a tenth of the QPs over DC that they need over RC."""
    queues = {}
    for transport in ("rc", "dc"):
        text = hosts.run(str(hosts.build / "tests/programs/alltoall"), "-d", "mlx5_0", "-g", "1", "-n", "24",
                         "-r", "5", "-i", "1", transport)
        queues[transport] = int(re.search(r"(\d+) in all", text)[1])
    if queues["rc"] < 10 * queues["dc"]:
        raise Failure(f"QPs: {queues}")


def by_address(hosts, server, *client, served=True, macs=(None, None)):
    """Runs a server, and a client that reaches it by its address; returns the output of both.

    Nothing outside shows when the server listens; until then its host refuses. A client that was refused once may be
    accepted the next time, and have ended: then the server gives up as well. So both begin again, with a longer
    interval."""
    there, here = (["--ip", ip, *(["--mac", mac] if mac else [])] for ip, mac in zip((SERVER_IP, CLIENT_IP), macs))
    for delay in (0.1, 0.3, 1, 3, 10):
        listening = hosts.start(*server, options=there)
        time.sleep(delay)
        asking = hosts.start(*client, options=here)
        text = asking.communicate(timeout=PATIENCE)[0]
        if not asking.returncode or not re.search(REFUSED, text, re.I):
            break
        listening.kill()
        listening.communicate()
    if has_failed(asking, text):
        listening.kill()
        raise Failure(f"{asking.command}: exit status {asking.returncode}\n{text}\n"
                      f"{listening.command}: {listening.communicate()[0]}")
    if served:
        return text, hosts.output(listening)
    listening.kill()
    return text, listening.communicate()[0]


def connections_by_address(hosts):
    """Debian's librdmacm connects queue pairs by IP address and port.

    The programs are rping, with its data checked, ucmatose, and the examples of its manual, XRC among them.
    """
    by_address(hosts, ["rping", "-s", "-V", "-C", "50", "-a", "0.0.0.0"],
               "rping", "-c", "-V", "-C", "50", "-a", SERVER_IP)
    by_address(hosts, ["rping", "-s", "-V", "-C", "5", "-S", "4000", "-a", SERVER_IP, "-p", "9999"],
               "rping", "-c", "-V", "-C", "5", "-S", "4000", "-a", SERVER_IP, "-p", "9999")
    by_address(hosts, ["ucmatose", "-c", "50", "-C", "5"], "ucmatose", "-s", SERVER_IP, "-c", "50", "-C", "5")
    by_address(hosts, ["rping", "-s", "-P", "-a", SERVER_IP], "rping", "-c", "-C", "5", "-a", SERVER_IP, served=False)
    by_address(hosts, ["rping", "-s", "-q", "-V", "-C", "5", "-a", SERVER_IP],  # it modifies its queue pair itself
               "rping", "-c", "-q", "-V", "-C", "5", "-a", SERVER_IP)
    by_address(hosts, ["ucmatose", "-P", "ib", "-c", "3"], "ucmatose", "-s", SERVER_IP, "-P", "ib", "-c", "3")
    by_address(hosts, ["ucmatose", "-m"], "ucmatose", "-s", SERVER_IP, "-m")  # identifiers migrate
    by_address(hosts, ["rdma_server"], "rdma_client", "-s", SERVER_IP)
    for service in "r", "x":
        by_address(hosts, ["rdma_xserver", "-c", service], "rdma_xclient", "-c", service, "-s", SERVER_IP)


def addresses_that_are_gids(hosts):
    """A program that names its peer by a GID (AF_IB) gets as far as on Linux over RoCE.

    There no route leads to a GID: ucmatose, rstream.
    """
    gid = f"::ffff:{SERVER_IP}"
    for command, says in ((f"ucmatose -f gid -s {gid}", "resolve route failed: No such device"),
                          (f"ucmatose -f gid -P ib -s {gid}", "resolve route failed: No such device"),
                          (f"ucmatose -f gid -b {gid}", "bind address failed: No such device"),
                          (f"rstream -f gid -s {gid}", "rconnect: No such device"),
                          (f"rstream -f gid -b {gid}", "rbind: No such device")):
        text = hosts.start(*command.split(), options=["--ip", SERVER_IP]).communicate(timeout=PATIENCE)[0]
        if says not in text:
            raise Failure(f"{command}: {text}")


STRANGERS = ("52:54:00:12:34:01", "52:54:00:12:34:02")  # MAC addresses that cannot be derived from IP addresses


def strangers(hosts):
    """Hosts of any MAC address find each other by ARP and neighbour discovery; an absent host is not found."""
    by_address(hosts, ["rping", "-s", "-V", "-C", "5", "-a", SERVER_IP], "rping", "-c", "-V", "-C", "5", "-a", SERVER_IP,
               macs=STRANGERS)
    by_address(hosts, ["rping", "-s", "-V", "-C", "5", "-a", SERVER_IP], "rping", "-c", "-V", "-C", "5", "-a", SERVER_IP,
               macs=(STRANGERS[0], None))
    link_local = "fe80::5054:ff:fe12:3401"
    by_address(hosts, ["rping", "-s", "-V", "-C", "5", "-a", link_local], "rping", "-c", "-V", "-C", "5", "-a", link_local,
               macs=STRANGERS)
    for gid in "0", "1":
        port = free_port()
        command = ["ibv_rc_pingpong", "-d", "mlx5_0", "-g", gid, "-n", "10", "-p", str(port)]
        server = hosts.start(*command, options=["--mac", STRANGERS[0]])
        wait_listening(server, port)
        hosts.run(*command, "localhost", options=["--mac", STRANGERS[1]])
        hosts.output(server)
    for nobody in "10.7.0.77", "fe80::1":
        text = hosts.start("rping", "-c", "-a", nobody, "-C", "1").communicate(timeout=PATIENCE)[0]
        if "RDMA_CM_EVENT_ADDR_ERROR, error -110" not in text:  # -ETIMEDOUT
            raise Failure(text)


def connections_meanwhile(hosts):
    """rping connects repeatedly with its data checked, while XRC and DC carry messages of every size."""
    rping = ("rping", "-c", "-V", "-C", "20", "-a", SERVER_IP)
    server = hosts.start("rping", "-s", "-P", options=["--ip", SERVER_IP])
    end = time.monotonic() + PATIENCE
    while has_failed(first := hosts.start(*rping, options=["--ip", CLIENT_IP]),
                     text := first.communicate(timeout=PATIENCE)[0]):  # until it listens
        if time.monotonic() > end:
            raise Failure(f"{first.command}: {text}")
    try:
        for transport in ("XRC", "DC"):
            sides = hosts.start_pair(*f"ib_send_bw -a -n 5 -c {transport}".split(), *PERFTEST)
            times = 0
            while any(side.poll() is None for side in sides):
                hosts.run(*rping, options=["--ip", CLIENT_IP])
                times += 1
            for side in sides:
                hosts.output(side)
            if not times:
                raise Failure(f"ib_send_bw over {transport} was through before rping")
    except (Failure, subprocess.TimeoutExpired) as err:
        raise Failure(f"{err}\n{said_until_now(server)}") from err
    hosts.kill()


def datagrams_by_address(hosts):
    """Datagram queue pairs are found by address and port, and by multicast group: udaddy, mckey."""
    for ports in "udp", "ipoib":
        by_address(hosts, ["udaddy", "-P", ports, "-c", "10"], "udaddy", "-s", SERVER_IP, "-P", ports, "-c", "10")
    for mode in [], ["-o"], ["-l"]:  # one side only sends; nothing goes to its own host
        receiver = hosts.start("stdbuf", "-oL", "mckey", "-m", "239.7.7.7", "-b", SERVER_IP, options=["--ip", SERVER_IP])
        while "MULTICAST" not in (line := receiver.stdout.readline()) and "receiving" not in line:
            if not line:
                raise Failure("mckey does not receive")
        hosts.run("mckey", "-m", "239.7.7.7", "-b", CLIENT_IP, "-s", *mode, options=["--ip", CLIENT_IP])
        if "data transfers complete" not in (text := hosts.output(receiver)):
            raise Failure(text)


def sockets(hosts):
    """rsockets of librdmacm: a file arrives as it was sent, and both ends of a stream agree."""
    with tempfile.TemporaryDirectory() as folder:
        sent, got = pathlib.Path(folder, "sent"), pathlib.Path(folder, "got")
        sent.write_bytes(os.urandom(1 << 20))
        by_address(hosts, ["rcopy"], "rcopy", str(sent), f"{SERVER_IP}:{got}", served=False)
        if sent.read_bytes() != got.read_bytes():
            raise Failure("the copy differs")
    sizes = ["-S", "4096", "-I", "10", "-C", "5"]
    for mode in [], ["-T", "v"], ["-T", "n"], ["-T", "r"]:  # data verified, not blocking, an address resolved
        by_address(hosts, ["rstream", *sizes, *mode], "rstream", "-s", SERVER_IP, *sizes, *mode)
    for mode in [], ["-T", "v"]:  # by riowrite(), to remote memory
        by_address(hosts, ["riostream", *sizes, *mode], "riostream", "-s", SERVER_IP, *sizes, *mode)


def joined_by(hosts, server_wire, client_wire, *command):
    """A pair of programs whose wires are the two ends of a socket."""
    port = free_port()
    server = hosts.start(*command, "-p", str(port), options=["--wire", server_wire, "--host", "1"])
    wait_listening(server, port)
    client = hosts.start(*command, "-p", str(port), "localhost", options=["--wire", client_wire, "--host", "2"])
    for side in client, server:
        hosts.output(side)


def links_of_sockets(hosts):
    """Two hosts are joined by a stream, Unix or TCP, and by datagrams of Unix sockets, UDP and VXLAN."""
    with tempfile.TemporaryDirectory() as folder:
        one, other = f"{folder}/one", f"{folder}/other"

        def links():
            near, far = free_port(), free_port()
            return ((f"listen:{one}", f"connect:{one}"),
                    (f"listen:127.0.0.1:{near}", f"connect:127.0.0.1:{near}"),
                    (f"unix:{one}:{other}", f"unix:{other}:{one}"),
                    (f"udp:{near}:127.0.0.1:{far}", f"udp:{far}:127.0.0.1:{near}"),
                    (f"vxlan:7:{near}:127.0.0.1:{far}", f"vxlan:7:{far}:127.0.0.1:{near}"))

        for ends in links():
            for transport in "rc", "uc", "ud":
                joined_by(hosts, *ends, f"ibv_{transport}_pingpong", *ON_DEVICE, "-c")
        # perftest does not begin while the link is down, so not on a stream whose other end is still to come
        for ends in links()[2:]:
            for command in "ib_write_bw -n 100", "ib_read_lat -n 100", "ib_send_bw -c UD -n 5", "ib_atomic_bw -n 100":
                program, *options = command.split()
                joined_by(hosts, *ends, program, *PERFTEST, *options)
    for wire in "listen:/none", "udp:1:127.0.0.1:1":
        refused_wire = hosts.start("ibv_devices", options=["--wire", wire])
        text = refused_wire.communicate(timeout=PATIENCE)[0]
        if "choose a host number" not in text:
            raise Failure(text)


def many_connections(hosts):
    """Two hundred connections at a time are made and ended (cmtime)."""
    text = by_address(hosts, ["cmtime", "-c", "200"], "cmtime", "-s", SERVER_IP, "-c", "200", served=False)[0]
    if not re.search(r"^connect +:", text, re.M):
        raise Failure(text)


def queues_dealt_to_threads(hosts):
    """1, 2, 4 and 8 threads share eight queue pairs of one device: each message arrives unchanged and in order."""
    for threads in 1, 2, 4, 8:
        text = hosts.run(str(hosts.build / "tests/programs/many_qps"), "1", "8", str(threads), "2000")
        if not text.startswith(f"8 QPs, {threads} threads: "):
            raise Failure(text)


def performance_tests_by_address(hosts):
    """perftest's programs connect by librdmacm (-R)."""
    for command in ("ib_send_bw -n 100", "ib_read_lat -n 50", "ib_write_bw -n 100 -q 4", "ib_send_bw -c UD -n 100"):
        by_address(hosts, [*command.split(), "-R", "-F"], *command.split(), "-R", "-F", SERVER_IP)


CLUSTER = """
case $HCASIM_HOST in
1) exec ibv_rc_pingpong -d mlx5_0 -g 1 -p {port} ;;
2) until grep -q ':{port:04X} 0*:0000 0A' /proc/net/tcp /proc/net/tcp6; do :; done
   exec ibv_rc_pingpong -d mlx5_0 -g 1 -p {port} localhost ;;
*) echo a; echo b >&2; exit $HCASIM_HOST ;;
esac"""


def start_cluster(hosts, *words):
    """A shell starts commands in the background with SIGINT ignored, and a cluster leaves an ignored signal alone."""
    return subprocess.Popen([HCASIM, "cluster", "--build", hosts.build, *words], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))


def cluster(hosts):
    """Hosts that one command starts reach each other; each has its label and its exit status.

    A reader who leaves, an interrupt and a program's children hold nothing up."""
    started = start_cluster(hosts, "-n", "3", "sh", "-c", CLUSTER.format(port=free_port()))
    out, err = started.communicate(timeout=PATIENCE)
    want = [r"^1\|   remote address: .* GID ::ffff:10.0.0.2$", r"^2\|   remote address: .* GID ::ffff:10.0.0.1$",
            r"^3\| a$"]
    if started.returncode != 3 or "3| b\nhcasim: host 3 ended with status 3\n" not in err or \
            not all(re.search(line, out, re.M) for line in want):
        raise Failure(f"exit status {started.returncode}\n{out}\n{err}")
    devices = start_cluster(hosts, "-n", "2", "--devices", "2", "ibv_devinfo").communicate(timeout=PATIENCE)[0]
    os.environ["HCASIM_DEVICES"] = "2"
    devices += start_cluster(hosts, "-n", "2", "ibv_devinfo").communicate(timeout=PATIENCE)[0]
    del os.environ["HCASIM_DEVICES"]
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
        file.write("[hcasim]\ndevices = 2\n")
        file.flush()
        devices += start_cluster(hosts, "-n", "2", "--config", file.name, "ibv_devinfo").communicate(timeout=PATIENCE)[0]
        file.write("ip=10.0.0.1\n")
        file.flush()
        refused = start_cluster(hosts, "-n", "2", "--config", file.name, "ibv_devinfo").communicate(timeout=PATIENCE)[1]
    guids = re.findall(r"node_guid:\s*(\S+)", devices)
    if len(guids) != 12 or len(set(guids)) != 4 or f"{file.name}: ip: each host has its own" not in refused:
        raise Failure(devices + refused)
    started = start_cluster(hosts, "-n", "2", "yes")
    started.stdout.readline()
    started.stdout.close()
    if started.wait(PATIENCE) != 128 + signal.SIGPIPE:
        raise Failure(f"a reader who has left: exit status {started.returncode}")
    if start_cluster(hosts, "-n", "2", "sh", "-c", f"sleep {10 * PATIENCE} &").wait(PATIENCE):
        raise Failure("a program's child is waited for")
    started = start_cluster(hosts, "-n", "2", "sh", "-c", "echo begun; exec sleep 1000")
    started.stdout.readline()
    started.terminate()
    if started.wait(PATIENCE) != 128 + signal.SIGTERM:
        raise Failure(f"SIGTERM: exit status {started.returncode}")
    # Programs that SIGTERM does not end, and a user who does not wait for SIGKILL.
    started = start_cluster(hosts, "-n", "2", "sh", "-c", "trap '' TERM; echo $$; while :; do sleep 1; done")
    pids = [started.stdout.readline().split()[1] for _ in range(2)]
    for _ in range(2):
        started.send_signal(signal.SIGINT)
        time.sleep(0.5)
    if started.wait(PATIENCE) != 128 + signal.SIGINT:
        raise Failure(f"SIGINT: exit status {started.returncode}")
    left = [pid for pid in pids if pathlib.Path(f"/proc/{pid}").exists()]
    for pid in left:
        os.kill(int(pid), signal.SIGKILL)
    if left:
        raise Failure(f"{len(left)} of two hosts run on after two interrupts")
    # A reader that does not read: the pipe has no more room.
    started = start_cluster(hosts, "-n", "2", "yes")
    started.stdout.readline()
    time.sleep(1)
    started.send_signal(signal.SIGINT)
    if started.wait(PATIENCE) != 128 + signal.SIGINT:
        raise Failure(f"SIGINT while nobody reads: exit status {started.returncode}")


def tools(hosts):
    """ip, rdma, lstopo and ibstat show the HCA and its network device besides those of the machine."""
    def shows(command, *wanted):
        text = hosts.run(*command.split(), options=["--devices", "2", "--ip", "10.9.8.7"])
        if missing := [each for each in wanted if each not in text]:
            raise Failure(f"{command}: no {missing} in\n{text}")

    shows("lstopo-no-graphics --of console", "PCI ca00:00:00.0 (Ethernet)", 'OpenFabrics "mlx5_1"', 'Net "hca1"')
    shows("ibstat", "CA 'mlx5_0'", "CA 'mlx5_1'", "State: Active", "Rate: 100", "Link layer: Ethernet")
    shows("ip link show", ": lo:", ": hca0:", ": hca1:", "02:68:0a:09:08:07")
    shows("ip -d addr", "127.0.0.1/8", "inet 10.9.8.7/24", "inet6 fe80::68:aff:fe09:807/64", "parentdev ca00:00:00.0")
    shows("ip addr show dev hca1", "inet 10.9.8.8/24")
    shows("ip -6 -o addr", "hca0    inet6 fe80::68:aff:fe09:807/64")
    shows("ip route get 10.9.8.9", "dev hca0", "src 10.9.8.7")
    shows("rdma dev show", "mlx5_0: node_type ca", "mlx5_1: node_type ca")
    shows("rdma link show", "link mlx5_0/1 state ACTIVE", "netdev hca1")
    shows("rdma system show", "netns shared copy-on-fork on")


BIND = """
import ctypes, socket, sys
ctypes.CDLL(sys.argv[1])
here = socket.socket()
here.bind(("10.7.0.1", 0))
there = socket.socket()
here.listen()
there.connect(("10.7.0.1", here.getsockname()[1]))
print(there.getpeername()[0])
"""


def sockets_before_verbs(hosts):
    """Sockets meet at the HCA's address before a program's first verb.

    One program loads libibverbs itself; in the other, another library needs it.
    """
    for library in ("libibverbs.so.1", "librdmacm.so.1"):
        text = hosts.run("python3", "-c", BIND, library, options=["--ip", SERVER_IP])
        if text != "127.7.0.1\n":
            raise Failure(f"{library}: {text}")


# As DPDK does: finds the driver of the PCI function, asks for steering by software, and asks again.
STEERING = """
import ctypes, os
function = "/sys/bus/pci/devices/ca00:00:00.0"
print(os.path.basename(os.readlink(function + "/driver")), open(function + "/uevent").read().split()[-1])
mlx5 = ctypes.CDLL("libmlx5.so.1", use_errno=True)
for _ in range(2):
    print(mlx5.mlx5dv_dr_domain_create(None, 0), os.strerror(ctypes.get_errno()))
"""


def steering_by_software(hosts):
    """A program that asks for mlx5dv_dr, as DPDK does, is told once that it needs a guest."""
    text = hosts.run("python3", "-c", STEERING)
    for want in ("mlx5_core PCI_SLOT_NAME=ca00:00:00.0\n", "0 Operation not supported\n" * 2):
        if want not in text:
            raise Failure(text)
    if len(re.findall(r"hcasim: mlx5dv_dr_domain_create\(\) fails: .*docs/howto/dpdk.md", text)) != 1:
        raise Failure(text)


def arguments(hosts):
    """Words after the program's name belong to the program; before it, an option asks for help."""
    line = [HCASIM, "run", "--build", hosts.build, "--wire", hosts.wire]
    for words, want in ((["echo", "-h", "--wire"], r"-h --wire\n"), (["--", "echo", "--help"], r"--help\n|.*GNU.*"),
                        (["printf", "%s", "--host"], "--host"), (["--help"], r"usage: .*"), (["-h"], r"usage: .*")):
        said = subprocess.run([*line, *words], capture_output=True, text=True, timeout=PATIENCE, check=True).stdout
        if not re.fullmatch(want, said, re.S):
            raise Failure(f"{words}: {said}")


def programs_beyond_reach(hosts):
    """hcasim says so if a program cannot load its libraries, and runs the program."""
    for program, why in (("/sbin/ldconfig", "linked statically"), ("su", "rights that its caller does not have")):
        text = hosts.run(program, "--version")
        if why not in text or text.count("\n") < 2:
            raise Failure(f"{program}: {text}")
    if "hcasim: " in hosts.run("true"):
        raise Failure("true is an ordinary program")


def installed(library):
    """Returns the path where the loader finds the library without hcasim."""
    said = subprocess.run(["ldd", shutil.which("ibv_devinfo")], capture_output=True, text=True, check=True).stdout
    return pathlib.Path(re.search(rf"{re.escape(library)} => (\S+)", said)[1])


def libraries_of_their_own(hosts):
    """A program that comes with rdma-core's libibverbs gets that of hcasim."""
    theirs = installed("libibverbs.so.1").read_bytes()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        for library in "libibverbs.so.1", "libibverbs-0123abcd.so.1.14.44.0":
            (folder / library).write_bytes(theirs)
        shutil.copy(installed("libc.so.6").parent / "libm.so.6", folder / "libhere.so")
        # Another name of the same length, for a program that is linked with the copy.
        (folder / "libibverb0.so.1").write_bytes(theirs.replace(b"libibverbs.so.1\0", b"libibverb0.so.1\0"))
        for kind in "rpath", "runpath":
            program = (hosts.build / f"tests/programs/where-{kind}").read_bytes()
            for of, text in (("own", program), ("renamed", program.replace(b"libibverbs.so.1\0", b"libibverb0.so.1\0"))):
                where = folder / f"where-{kind}-{of}"
                where.write_bytes(text)
                where.chmod(0o755)
                names = ["libibverbs.so.1", f"{folder}/libibverbs.so.1", f"{folder}/libibverbs-0123abcd.so.1.14.44.0"]
                said = hosts.run(str(where), *names, "libhere.so")
                if said != "".join(f"{name}: mlx5_0\n" for name in ("linked", *names)):
                    raise Failure(f"{where.name}: {said}")


def build_with_a_blank(hosts):
    """A build folder may have a blank in its name; with a colon it is refused."""
    with tempfile.TemporaryDirectory() as folder:
        for name, status in (("a build", 0), ("a:build", 125)):
            build = pathlib.Path(folder) / name
            for file in [*hosts.build.glob("cli/*"), *hosts.build.glob("guest-lib/verbs/lib*.so*")]:
                if file.is_file():
                    (build / file.relative_to(hosts.build)).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(file, build / file.relative_to(hosts.build))
            process = Hosts(build).start("cat", "/sys/class/infiniband/mlx5_0/node_type")
            text = process.communicate(timeout=PATIENCE)[0]
            if process.returncode != status or not ("CA" in text) ^ bool(status):
                raise Failure(f"{build}: exit status {process.returncode}\n{text}")


def refused(hosts):
    """A connection to a port without a listener is refused."""
    hosts.start("rping", "-s", "-a", SERVER_IP, "-p", "7000", options=["--ip", SERVER_IP])
    client = hosts.start("rping", "-c", "-a", SERVER_IP, "-p", "7001", "-C", "1", options=["--ip", CLIENT_IP])
    text = client.communicate(timeout=PATIENCE)[0]
    if "RDMA_CM_EVENT_REJECTED" not in text:
        raise Failure(text)


def nothing_left(hosts):
    """When the last process has closed its device, nothing is left in /dev/shm.

    The next process takes back the share of a killed process.
    """
    hosts.kill()
    hosts.run("ibv_devinfo")
    if hosts.segments():
        raise Failure(f"left: {', '.join(map(str, hosts.segments()))}")


STATEMENTS = (container, pingpongs, device_memory, performance_tests, memory_polling, ordering, dynamic_connections, tag_matching,
              atomics_under_masks, everybodys_word, reserved_numbers, compressed_completions, time_stamps, all_to_all, addresses, devices, numbers,
              connections_by_address, addresses_that_are_gids, strangers, connections_meanwhile, datagrams_by_address, sockets, many_connections,
              queues_dealt_to_threads, performance_tests_by_address, cluster, tools, sockets_before_verbs, steering_by_software, arguments,
              programs_beyond_reach, libraries_of_their_own, build_with_a_blank, refused,
              wire_of_another_name, links_of_sockets, idle, killed_peer, removed_device, stopped_peer,
              stopped_in_gdb, stopped_while_it_connects, stopped_listener, killed_while_stopped, nothing_left)


ONCE = (nothing_left,)  # checks what all the others leave behind


def check(cases, statements, names, given, clear_up):
    """Checks the statements of these names, or all, with these arguments. Returns the exit status."""
    for name in sandbox.lacking():
        cases.skipped("sandbox", sandbox.LACKING[name])
    for statement in statements:
        if not names or statement.__name__ in names:
            cases.run(statement.__name__, lambda: statement(*given), title=statement.__doc__.splitlines()[0],
                      once=statement in ONCE, again=clear_up)
    return cases.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=lambda p: pathlib.Path(p).resolve(), default=ROOT / "build")
    parser.add_argument("names", nargs="*", help="The statements to check (default: all).")
    args = parser.parse_args()
    remove_xrc_files()
    sandbox.enter(__file__, {"--build": args.build})
    hosts = Hosts(args.build)
    try:
        return check(tries.Cases("hosts"), STATEMENTS, args.names, (hosts,), hosts.end)
    finally:
        hosts.end()


if __name__ == "__main__":
    sys.exit(main())
