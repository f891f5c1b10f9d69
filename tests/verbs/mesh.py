#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs many processes on one wire, with no VM: each exchanges messages with all others, and some
are killed.

Runs tests/programs/mesh and tests/programs/datacheck under `scripts/hcasim run`. The sizes are
those of the default run; the project vouches for HCASIM_MESH_RANKS=100 HCASIM_MESH_KILLS=100
HCASIM_MESH_STOPS=1000 HCASIM_DATA_OPS=1000000. Timing is no condition: only a process that never
ends fails. The last line is "N passed, N failed, N skipped". Exit status 0: nothing failed.
"""
import argparse
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

import host_processes
import hosts
import tries

ROOT = pathlib.Path(__file__).resolve().parents[2]
HCASIM = ROOT / "scripts/hcasim"
PATIENCE = 600  # seconds for any wait
RANKS = int(os.environ.get("HCASIM_MESH_RANKS", "20"))
ROUNDS = int(os.environ.get("HCASIM_MESH_ROUNDS", "5"))
KILLS = int(os.environ.get("HCASIM_MESH_KILLS", "10"))
KILL_RANKS = 20  # processes of a run in which half are killed
STOPS = int(os.environ.get("HCASIM_MESH_STOPS", "20"))
STOP_RANKS = 16  # processes of a run in which some are stopped, and half are killed
DATA_OPS = int(os.environ.get("HCASIM_DATA_OPS", "50000"))
SEED = int(os.environ.get("HCASIM_DATA_SEED", "1"))


class Failure(Exception):
    pass


class Wire:
    """A wire of its own, and the processes on it."""

    def __init__(self, build, name):
        self.build = build
        self.name = f"{name}-{os.getpid()}"
        self.started = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.communicate()
        for left in self.files():
            left.unlink()

    def start(self, program, *arguments):
        if host_processes.absent([str(self.build / "tests/programs" / program)]):
            raise tries.Missing(f"{program} is not built")
        process = subprocess.Popen(
            [HCASIM, "run", "--build", self.build, "--wire", self.name, "--",
             self.build / "tests/programs" / program, *map(str, arguments)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        process.command = program
        self.started.append(process)
        return process

    def files(self):
        return list(pathlib.Path("/dev/shm").glob(f"hcasim-{os.getuid()}-{self.name}*"))

    def expect_nothing_left(self):
        if self.files():
            raise Failure(f"left: {', '.join(map(str, self.files()))}")


class Mesh:
    """Processes of which each is connected with each."""

    def __init__(self, wire, folder, ranks, rounds, timeout=18):
        self.folder = pathlib.Path(folder)
        self.processes = [wire.start("mesh", "-i", i, "-n", ranks, "-g", 1, "-r", rounds, "-t", timeout, folder)
                          for i in range(ranks)]
        self.killed = set()

    def say(self, name):
        (self.folder / name).touch()

    def wait_all(self, name):
        """Waits until every process that was not killed has made its file."""
        end = time.monotonic() + PATIENCE
        while True:
            missing = [i for i in range(len(self.processes))
                       if i not in self.killed and not (self.folder / f"{name}.{i}").exists()]
            if not missing:
                return
            for i in missing:
                if self.processes[i].poll() is not None:
                    raise Failure(f"rank {i} ended: {self.processes[i].communicate()[0]}")
            if time.monotonic() > end:
                raise Failure(f"ranks {missing} are not {name}")
            time.sleep(0.05)

    def kill(self, rank):
        self.processes[rank].send_signal(signal.SIGKILL)
        self.processes[rank].communicate()
        if self.processes[rank].returncode != -signal.SIGKILL:
            raise Failure(f"rank {rank} had ended before it was killed")
        self.killed.add(rank)

    def stop_and_kill(self, chance, stops, to_kill):
        """Makes that many stops of 10 to 200 ms, up to three at a time; these ranks are killed
        during some of them, stopped or not. Returns the number of stops."""
        kill_at = dict(zip(sorted(chance.sample(range(stops), len(to_kill))), to_kill))
        stopped = {}  # rank -> when it continues
        for n in range(stops):
            living = [i for i in range(len(self.processes)) if i not in self.killed and i not in stopped]
            rank = chance.choice(living)
            self.processes[rank].send_signal(signal.SIGSTOP)
            stopped[rank] = time.monotonic() + chance.uniform(0.01, 0.2)
            if n in kill_at:
                self.kill(kill_at[n])
                stopped.pop(kill_at[n], None)
            while len(stopped) > 2 or n == stops - 1 and stopped:
                self._go_on(stopped)
        return stops

    def _go_on(self, stopped):
        """Continues the process whose time comes first."""
        rank = min(stopped, key=stopped.get)
        time.sleep(max(0, stopped.pop(rank) - time.monotonic()))
        self.processes[rank].send_signal(signal.SIGCONT)

    def end(self):
        """Checks that all surviving processes succeed, without a difference, and have lost exactly
        the killed ranks. Returns the largest number of rounds."""
        self.wait_all("done")
        self.say("end")
        most = 0
        for i, process in enumerate(self.processes):
            if i in self.killed:
                continue
            text = process.communicate(timeout=PATIENCE)[0]
            found = re.fullmatch(r"rank \d+: (\d+) rounds, 0 differences, lost:([ \d]*)\n", text)
            if process.returncode or not found:
                raise Failure(f"rank {i}: exit status {process.returncode}\n{text}")
            if set(map(int, found[2].split())) != self.killed:
                raise Failure(f"{sorted(self.killed)} were killed, but {text}")
            most = max(most, int(found[1]))
        return most


def data_check(wire, ops):
    """Runs two processes with every kind of operation; every byte is compared."""
    port = hosts.free_port()
    options = ("-d", "mlx5_0", "-g", 1, "-n", ops, "-s", SEED, "-p", port)
    server = wire.start("datacheck", *options)
    hosts.wait_listening(server, port)
    for process in (wire.start("datacheck", *options, "localhost"), server):
        text = process.communicate(timeout=PATIENCE + ops // 50)[0]
        if process.returncode or not text.endswith(f"\n{ops} operations, 0 differences\n"):
            raise Failure(text)


def all_to_all(build):
    """Processes on one wire, each connected with each, complete; no byte differs."""
    with Wire(build, "mesh") as wire, tempfile.TemporaryDirectory() as folder:
        mesh = Mesh(wire, folder, RANKS, ROUNDS)
        mesh.wait_all("ready")
        mesh.say("go")
        mesh.end()
        wire.expect_nothing_left()
    return f"{RANKS} processes, {ROUNDS} rounds"


def killed_at_random(build):
    """SIGKILL is like a pulled cable: all other processes get IBV_WC_RETRY_EXC_ERR for the killed ones and go on
    among themselves, and new processes find the wire usable. When the last process has ended, nothing is left."""
    chance = random.Random(SEED)
    left, runs, rounds = KILLS, 0, 0
    while left:
        with Wire(build, f"kill{runs}") as wire, tempfile.TemporaryDirectory() as folder:
            mesh = Mesh(wire, folder, KILL_RANKS, 0)
            mesh.wait_all("ready")
            mesh.say("go")
            for rank in chance.sample(range(KILL_RANKS), min(left, KILL_RANKS // 2)):
                time.sleep(chance.random() / 10)
                mesh.kill(rank)
                left -= 1
            data_check(wire, 2000)
            mesh.say("stop")
            rounds += mesh.end()
            wire.expect_nothing_left()
            runs += 1
    return f"{KILLS} killed in {runs} runs of {KILL_RANKS}, {rounds} rounds"


def stopped_at_random(build):
    """SIGSTOP pauses the wire, and SIGKILL ends the pause, also if the killed process is stopped.

    The processes that were only stopped lose only the killed peers, and no byte differs. Most stops last longer
    than a QP's retries would, 8 times 4 to 8 ms."""
    chance = random.Random(SEED)
    kills = max(1, STOPS // 10)
    runs = -(-kills // (STOP_RANKS // 2))
    done = 0
    for run in range(runs):
        with Wire(build, f"stop{run}") as wire, tempfile.TemporaryDirectory() as folder:
            mesh = Mesh(wire, folder, STOP_RANKS, 0, timeout=10)
            mesh.wait_all("ready")
            mesh.say("go")
            to_kill = chance.sample(range(STOP_RANKS), kills // runs + (run < kills % runs))
            stops = STOPS // runs + (run < STOPS % runs)
            done += mesh.stop_and_kill(chance, stops, to_kill)
            data_check(wire, 500)
            mesh.say("stop")
            mesh.end()
            wire.expect_nothing_left()
    return f"{done} stops and {kills} kills in {runs} runs of {STOP_RANKS}"


def data(build):
    """Operations of every kind over RC, SRQ, UC and UD between two processes; no byte differs."""
    with Wire(build, "data") as wire:
        data_check(wire, DATA_OPS)
        wire.expect_nothing_left()
    return f"{DATA_OPS} operations"


STATEMENTS = (all_to_all, killed_at_random, stopped_at_random, data)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=lambda p: pathlib.Path(p).resolve(), default=ROOT / "build")
    parser.add_argument("names", nargs="*", help="The statements to check (default: all).")
    args = parser.parse_args()
    cases = tries.Cases("mesh")
    for statement in STATEMENTS:
        if not args.names or statement.__name__ in args.names:
            cases.run(statement.__name__, lambda: statement(args.build), title=statement.__doc__.splitlines()[0])
    return cases.end()


if __name__ == "__main__":
    sys.exit(main())
