# SPDX-License-Identifier: BSD-2-Clause
"""Formats each man page of hcasim with groff, which must have no complaint.

usage: test_man.py HCASIM
Exit status 77: groff is not installed.
"""
import shutil
import subprocess
import sys

PAGES = ("run", "cluster", "sim", "conformance", "vm", "wires", "ctl", "switch", "top", "device", "wire")


def main():
    if not shutil.which("groff"):
        print("groff is not installed")
        return 77
    bad = 0
    for name in ([], *([each] for each in PAGES)):
        page = subprocess.run([sys.argv[1], "--man", *name], capture_output=True, text=True, check=True).stdout
        done = subprocess.run(["groff", "-man", "-Tascii", "-ww", "-z"], input=page, capture_output=True, text=True,
                              check=False)
        if not page.startswith(".") or done.returncode or done.stderr:
            print(f"{' '.join(['hcasim', *name])}: {done.stderr or page}")
            bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
