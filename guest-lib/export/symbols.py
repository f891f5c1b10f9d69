#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What a shared library exports: its symbols and their versions, as readelf tells them.

    symbols.py map LIBRARY                a version script that gives another library the same ones
    symbols.py list LIBRARY               NAME@VERSION (an old one) and NAME@@VERSION, sorted
    symbols.py compare THEIRS OURS        what one has and the other lacks; status 1 if anything

The version scripts of libibverbs.so.1 and libmlx5.so.1 are made from the rdma-core that is installed
where hcasim is built, so that programs linked with that one find every symbol at its version.
"""
import re
import subprocess
import sys


def readelf(option, library):
    return subprocess.run(["readelf", "--wide", option, library], check=True, text=True,
                          env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"},
                          stdout=subprocess.PIPE).stdout


def symbols(library):
    """The names that the library defines for others, each as NAME@VERSION or NAME@@VERSION."""
    found = set()
    for line in readelf("--dyn-syms", library).splitlines():
        fields = line.split()
        if len(fields) < 8 or not fields[0].rstrip(":").isdigit():
            continue
        kind, bind, index, name = fields[3], fields[4], fields[6], fields[7]
        # a version's own name is an absolute symbol
        if bind in ("GLOBAL", "WEAK") and index not in ("UND", "ABS") and kind != "NOTYPE":
            found.add(name)
    return found


def versions(library):
    """The versions it defines, in order: (name, name of the one it builds on or None)."""
    found = []
    lines = iter(readelf("--version-info", library).splitlines())
    for line in lines:
        if line.startswith("Version definition section"):
            break
    for line in lines:
        if line.startswith("Version needs section"):
            break
        name = re.search(r"Flags: (\S+) .*Name: (\S+)", line)
        parent = re.search(r"Parent \d+: (\S+)", line)
        if name and name[1] != "BASE":
            found.append([name[2], None])
        elif parent and found:
            found[-1][1] = parent[1]
    return found


def version_script(library):
    members = {}
    for symbol in symbols(library):
        name, _, version = symbol.replace("@@", "@").partition("@")
        members.setdefault(version, []).append(name)
    text = "/* made by guest-lib/export/symbols.py */\n"
    for i, (version, parent) in enumerate(versions(library)):
        text += version + " {\n"
        if members.get(version):
            text += "    global:\n"
            text += "".join(f"        {name};\n" for name in sorted(members[version]))
        if i == 0:
            text += "    local:\n        *;\n"
        text += "}" + (f" {parent}" if parent else "") + ";\n"
    return text


def compare(theirs, ours):
    missing, extra = symbols(theirs) - symbols(ours), symbols(ours) - symbols(theirs)
    for name in sorted(missing):
        print(f"missing: {name}")
    for name in sorted(extra):
        print(f"extra: {name}")
    print(f"{len(symbols(theirs))} symbols of {theirs}: {len(missing)} missing, "
          f"{len(extra)} extra")
    return 1 if missing or extra or not symbols(theirs) else 0


def main(argv):
    if len(argv) == 3 and argv[1] == "map":
        sys.stdout.write(version_script(argv[2]))
    elif len(argv) == 3 and argv[1] == "list":
        print("\n".join(sorted(symbols(argv[2]))))
    elif len(argv) == 4 and argv[1] == "compare":
        return compare(argv[2], argv[3])
    else:
        sys.exit(__doc__)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
