#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes docs/verbs.md: each verb, and what the libraries of this project do with it.

    verbs_doc.py BUILD > docs/verbs.md
    verbs_doc.py BUILD --check       exit status 1: docs/verbs.md is not what would be written

What the libraries export depends on the rdma-core that is installed; the page is about Debian 12's, and
--check of another one exits with 77: skipped.

What is exported comes from the installed rdma-core and from BUILD's libraries; what is refused from the
refusals that were generated (symbols.py) and from mlx5dv/dv_functions.def; the verbs that headers turn
into calls through the context from the installed verbs.h and the places that fill them in.
"""
import difflib
import pathlib
import re
import sys

import symbols

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = pathlib.Path("/usr/include/infiniband")
WORKS = "works"
SKIPPED = 77
# Refused by code of their own, which tells a wrong question from one for what is not there.
REFUSING = {"ibv_set_ece": "EOPNOTSUPP", "modify_qp_rate_limit": "EINVAL"}


def table(rows):
    lines = ["| verb | version | state |", "|---|---|---|"]
    return "\n".join(lines + [f"| `{name}` | {version} | {state} |" for name, version, state in rows])


def ibverbs_rows(build, library):
    generated = (build / "guest-lib/verbs/ibverbs_stubs.c").read_text()
    refused = set(re.findall(r"(?:int|void \*|void) (\w+)\(void\) \{", generated))
    for symbol in sorted(symbols.symbols(library)):
        name, default, version = symbol.partition("@@")
        if not default:
            name, _, version = symbol.partition("@")
            yield name, version, "refused: of before 2007, with other structures"
        elif name in REFUSING:
            yield name, version, f"refused: {REFUSING[name]}"
        elif name not in refused:
            yield name, version, WORKS
        elif "PRIVATE" in version:
            yield name, version, "refused: for drivers of rdma-core"
        else:
            yield name, version, "refused: EOPNOTSUPP"


def context_rows():
    """The members of struct verbs_context and its ops, and whether anyone sets them."""
    header = (INCLUDE / "verbs.h").read_text()
    sources = "".join(path.read_text() for path in sorted((ROOT / "guest-lib/verbs").glob("*.c")))
    given = set(re.findall(r"ops->(?:context\.ops\.)?(\w+) = (?!NULL)", sources))
    for start, end in (("struct ibv_context_ops {", "\n};"), ("struct verbs_context {", "\n};")):
        body = header[header.index(start):]
        body = body[:body.index(end)]
        for name in re.findall(r"\(\*\s*(\w+)\)\s*\(", body):
            if not name.startswith(("_compat", "ABI_placeholder")):
                refusal = REFUSING.get(name) or (None if name in given else "EOPNOTSUPP")
                yield name, "", f"refused: {refusal}" if refusal else WORKS


def mlx5_rows(library):
    text = (ROOT / "guest-lib/mlx5dv/dv_functions.def").read_text()
    errnos = dict(re.findall(r"^DV_ERRNO\((\w+), (\w+),", text, re.M))
    errnos.update(re.findall(r"^DV_NULL\([^,]+, (\w+), (\w+),", text, re.M))
    nothing = set(re.findall(r"^DV_VOID\((\w+),", text, re.M))
    for symbol in sorted(symbols.symbols(library)):
        name, _, version = symbol.replace("@@", "@").partition("@")
        short = name.removeprefix("_").removeprefix("mlx5dv_")
        if short in errnos:
            yield name, version, f"refused: {errnos[short]}"
        elif short in nothing:
            yield name, version, "does nothing: there is no such object"
        else:
            yield name, version, WORKS


def page(build):
    ibverbs = str(build / "guest-lib/verbs/libibverbs.so.1")
    mlx5 = str(build / "guest-lib/mlx5dv/libmlx5.so.1")
    return f"""# Verbs without a VM: what is there

Made by `guest-lib/export/verbs_doc.py`; do not edit. What a ConnectX-5 of this project lacks is refused with the errno
that rdma-core gives for a device without it.

## libibverbs.so.1

{table(ibverbs_rows(build, ibverbs))}

## Verbs that `infiniband/verbs.h` turns into calls through the context

{table(context_rows())}

## libmlx5.so.1

{table(mlx5_rows(mlx5))}
"""


def check(text):
    """Compares with the page that is kept. Returns the exit status."""
    kept = (ROOT / "docs/verbs.md").read_text()
    if names(kept) != names(text):
        print("the installed rdma-core is another one than the page is about")
        return SKIPPED
    diff = list(difflib.unified_diff(kept.splitlines(), text.splitlines(), "docs/verbs.md", "now", n=0, lineterm=""))
    print("\n".join(diff))
    return 1 if diff else 0


def names(text):
    """The verbs of a page with their versions, without their state."""
    return re.findall(r"^\| (`\w+` \| .*?) \|", text, re.M)


def main(argv):
    if len(argv) not in (2, 3) or argv[2:] not in ([], ["--check"]):
        sys.exit(__doc__)
    text = page(pathlib.Path(argv[1]))
    if argv[2:]:
        return check(text)
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
