#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes docs/reference/verbs.md: each verb, and what the libraries of this project do when it is called.

    verbs_doc.py PROBE IBVERBS MLX5 > docs/reference/verbs.md
    verbs_doc.py PROBE IBVERBS MLX5 --check    exit status 1: docs/reference/verbs.md is not what would be written

IBVERBS and MLX5 are the libraries, PROBE is tests/programs/verbs_probe.c linked with them: it calls each
verb, and its word is what the page says. What there is to call comes from the libraries' symbols and from
the installed verbs.h, which turns verbs into calls through the context.

What the libraries can do depends on the headers of the rdma-core that is installed. The page is about
Debian 12's; with another one, --check exits with 77: skipped.
"""
import difflib
import os
import pathlib
import re
import subprocess
import sys

import symbols

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = pathlib.Path("/usr/include/infiniband")
SKIPPED = 77
RDMA_CORE = "44.0"  # the release that the page is about
THROUGH_CONTEXT = "-"  # in place of a version


def table(rows):
    lines = ["| verb | version | state |", "|---|---|---|"]
    return "\n".join(lines + [f"| `{name}` | {version} | {state} |" for name, version, state in rows])


def exported(library):
    """Names and versions of what the library exports."""
    return [tuple(symbol.replace("@@", "@").split("@")) for symbol in sorted(symbols.symbols(library))]


def context_verbs():
    """Returns the members of struct verbs_context and its ops."""
    header = (INCLUDE / "verbs.h").read_text()
    for start, end in (("struct ibv_context_ops {", "\n};"), ("struct verbs_context {", "\n};")):
        body = header[header.index(start):]
        body = body[:body.index(end)]
        for name in re.findall(r"\(\*\s*(\w+)\)\s*\(", body):
            if not name.startswith(("_compat", "ABI_placeholder")):
                yield name, THROUGH_CONTEXT


def call(probe, names):
    """Rows of a table: name, version, and what became of the call."""
    # the program frees nothing before it ends
    env = dict(os.environ, ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0")
    done = subprocess.run([probe], check=False, text=True, stdout=subprocess.PIPE, env=env,
                          input="".join(f"{name} {version}\n" for name, version in names))
    rows = [line.split(" ", 2) for line in done.stdout.splitlines()]
    if done.returncode or [(name, version) for name, version, _ in rows] != list(names):
        sys.exit(f"{probe}: exit status {done.returncode} after {rows[-1:]}")
    return [(name, "" if version == THROUGH_CONTEXT else version, state)
            for name, version, state in rows]


def page(probe, ibverbs, mlx5):
    return f"""# Verbs without a VM: what is there

Made by `guest-lib/export/verbs_doc.py` from what `tests/programs/verbs_probe.c` gets when it calls each verb; do not edit.
This is a build with the headers of rdma-core {RDMA_CORE}. A verb that hcasim's ConnectX-5 does not support
fails with the errno that rdma-core gives for a device without it. Some rows say "refused": the version
`IBVERBS_1.0` is the ABI before 2007, with other structures; `IBVERBS_PRIVATE` is for drivers of rdma-core;
and newer releases than {RDMA_CORE} have functions that these headers do not know. They are exported so that
a program that is linked with a newer rdma-core loads.

## libibverbs.so.1

{table(call(probe, exported(ibverbs)))}

## Verbs that `infiniband/verbs.h` turns into calls through the context

{table(call(probe, list(context_verbs())))}

## libmlx5.so.1

{table(call(probe, exported(mlx5)))}
"""


def check(text):
    """Compares with the page that is kept. Returns the exit status."""
    kept = (ROOT / "docs/reference/verbs.md").read_text()
    installed = subprocess.run(["pkg-config", "--modversion", "libibverbs"], check=True, text=True,
                               stdout=subprocess.PIPE).stdout.strip()
    if not installed.endswith(f".{RDMA_CORE}"):
        print(f"libibverbs {installed} is installed; the page is about rdma-core {RDMA_CORE}")
        return SKIPPED
    diff = list(difflib.unified_diff(kept.splitlines(), text.splitlines(), "docs/reference/verbs.md", "now", n=0, lineterm=""))
    print("\n".join(diff))
    return 1 if diff else 0


def main(argv):
    if len(argv) not in (4, 5) or argv[4:] not in ([], ["--check"]):
        sys.exit(__doc__)
    text = page(*argv[1:4])
    if argv[4:]:
        return check(text)
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
