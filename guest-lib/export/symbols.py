#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What a shared library exports: its symbols and their versions, as readelf tells them.

    symbols.py map LIBRARY                a version script that gives another library the same symbols
    symbols.py stubs LIBRARY ARCHIVE...   C code of functions that fail, for symbols that no archive defines
    symbols.py front LIBRARY              a line of C for each symbol (guest-lib/verbs/preload/front.c)
    symbols.py list LIBRARY               NAME@VERSION (an old one) and NAME@@VERSION, sorted
    symbols.py compare THEIRS OURS        symbols that only one of them has; status 1 if there are any

The scripts make no symbol local, because the code is compiled with hidden visibility.

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
        # the name of a version itself is an absolute symbol
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
        # the code that defines an old version of a symbol has a .symver directive
        name, default, version = symbol.partition("@@")
        if default:
            members.setdefault(version, []).append(name)
    text = "/* made by guest-lib/export/symbols.py */\n"
    for version, parent in versions(library):
        text += version + " {\n"
        if members.get(version):
            text += "    global:\n"
            text += "".join(f"        {name};\n" for name in sorted(members[version]))
        text += "}" + (f" {parent}" if parent else "") + ";\n"
    return text


# Functions of the private part that return a pointer, or nothing; the others return an errno.
POINTERS = ("_verbs_init_and_alloc_context", "verbs_open_device")
VOIDS = ("__verbs_log", "verbs_register_driver_", "verbs_set_ops", "verbs_uninit_context",
         "ibv_copy_", "verbs_init_cq", "verbs_allow_disassociate_destroy")


def stubs(library, archives):
    """C code for what the library exports and no archive defines."""
    defined = set()
    for archive in archives:
        listing = subprocess.run(["nm", "--defined-only", archive], check=True, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        defined |= {line.split()[2] for line in listing.splitlines() if len(line.split()) == 3}
    names = {symbol.partition("@@")[0] for symbol in symbols(library) if "@@" in symbol}
    old = [symbol.split("@") for symbol in symbols(library) if "@@" not in symbol]
    text = "/* made by guest-lib/export/symbols.py */\n#include <errno.h>\n#include <stddef.h>\n"
    for name in sorted(names - defined):
        if name.startswith(POINTERS):
            kind, body = "void *", "errno = EOPNOTSUPP; return NULL;"
        elif name.startswith(VOIDS):
            kind, body = "void ", ""
        else:
            kind, body = "int ", "return errno = EOPNOTSUPP;"
        text += (f"{kind}{name}(void);\n__attribute__((visibility(\"default\"))) "
                 f"{kind}{name}(void) {{ {body} }}\n")
    # versions with other structures, from before contexts could grow; no program uses them any more
    for name, version in sorted(old):
        text += (f"long old_{name}(void);\n__attribute__((visibility(\"default\"))) "
                 f"long old_{name}(void) {{ errno = EOPNOTSUPP; return 0; }}\n"
                 f"__asm__(\".symver old_{name}, {name}@{version}, remove\");\n")
    return text


def front(library):
    """FRONT_NAME(number, "symbol", "@" or "@@", "version") of each symbol."""
    text = "/* made by guest-lib/export/symbols.py */\n"
    for number, symbol in enumerate(sorted(symbols(library))):
        name, at, version = re.fullmatch("([^@]+)(@+)(.+)", symbol).groups()
        text += f'FRONT_NAME({number}, "{name}", "{at}", "{version}")\n'
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
    elif len(argv) >= 4 and argv[1] == "stubs":
        sys.stdout.write(stubs(argv[2], argv[3:]))
    elif len(argv) == 3 and argv[1] == "front":
        sys.stdout.write(front(argv[2]))
    elif len(argv) == 3 and argv[1] == "list":
        print("\n".join(sorted(symbols(argv[2]))))
    elif len(argv) == 4 and argv[1] == "compare":
        return compare(argv[2], argv[3])
    else:
        sys.exit(__doc__)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
