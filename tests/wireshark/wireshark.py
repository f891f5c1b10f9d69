# SPDX-License-Identifier: BSD-2-Clause
"""What the tests of this folder share: captures of the simulation, and tshark with hcasim's dissector."""
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))

LUA = ROOT / "wire/wireshark/hcasim.lua"
PATIENCE = 250


def skip_without_tshark():
    """Ends the test as skipped if there is no tshark."""
    if not shutil.which("tshark"):
        print("tshark is not installed")
        sys.exit(77)


def simulate(program, path, kind, *options):
    """Captures a simulation of one kind of jobs."""
    command = [program, "--workload", kind, "--hosts", "3", "--capture", str(path), *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=PATIENCE)


def capture_of(program, path, **more):
    """Captures a test of tests/sim, with one seed."""
    environment = dict(os.environ, HCASIM_SIM_CAPTURE=str(path), HCASIM_SIM_SEEDS="1", **more)
    subprocess.run([program], env=environment, check=True, stdout=subprocess.DEVNULL, timeout=PATIENCE)


def rows(path, fields, *options):
    """Returns a dictionary of the fields for each frame, in order. A field that occurs several times is its first
    value; a missing field is an empty text."""
    command = ["tshark", "-n", "-r", str(path), "-X", f"lua_script:{LUA}", *options, "-T", "fields",
               "-E", "separator=/t", "-E", "occurrence=f"]
    for field in fields:
        command += ["-e", field]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    if done.returncode or "Lua Error" in done.stdout + done.stderr or "lua:" in done.stderr.lower():
        raise SystemExit(f"tshark: exit status {done.returncode}\n{done.stderr}\n{done.stdout[-500:]}")
    return [dict(zip(fields, line.split("\t"))) for line in done.stdout.splitlines()]
