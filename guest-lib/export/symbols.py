#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What libibverbs.so.1 and libmlx5.so.1 export: symbols and their versions.

A table beside this script (libibverbs.symbols, libmlx5.symbols) has the symbols of each library of
rdma-core. So hcasim exports the same symbols wherever it is built, and a program that is linked with
a newer rdma-core than that of the building machine still loads.

    symbols.py map TABLE                a version script for the linker
    symbols.py failures TABLE ARCHIVE...  C code of functions that fail, for symbols that no archive defines
    symbols.py front TABLE              a line of C for each symbol (guest-lib/verbs/preload/front.c)
    symbols.py list FILE                NAME@VERSION (an old one) and NAME@@VERSION, sorted
    symbols.py compare TABLE LIBRARY    symbols that only one of them has; status 1 if there are any
    symbols.py covers TABLE LIBRARY     symbols of an rdma-core library that the table lacks; status 1 if
                                        there are any, except those of another private interface

FILE is a table or a library; readelf tells what a library exports. The version scripts make no symbol
local, because the code is compiled with hidden visibility.
"""
import re
import subprocess
import sys

PRIVATE = re.compile("@@IBVERBS_PRIVATE_\\d+$")
WORDS = re.compile(r"(?:old|pointer|void|fd|since \d+\.\d+)(?: (?:old|pointer|void|fd|since \d+\.\d+))*")


class Table:
    """The file of a library: versions as (name, parent or None), symbols as in symbols()."""

    def __init__(self, path):
        self.versions, self.symbols, self.returns = [], set(), {}
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                words = line.partition("#")[0].split()
                if words and not line[0].isspace() and len(words) <= 2:
                    self.versions.append((words[0], words[1] if len(words) > 1 else None))
                elif words and line[0].isspace() and (not words[1:] or WORDS.fullmatch(" ".join(words[1:]))):
                    self.add(words[0], words[1:])
                elif words:
                    sys.exit(f"{path}:{number}: {line.strip()}: the first lines of the file say which words there are")

    def add(self, name, words):
        version = self.versions[-1][0]
        self.symbols.add(f"{name}{'@' if 'old' in words else '@@'}{version}")
        for kind in ("pointer", "void", "fd"):
            if kind in words:
                self.returns[name] = kind


def readelf(option, library):
    return subprocess.run(["readelf", "--wide", option, library], check=True, text=True,
                          env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"},
                          stdout=subprocess.PIPE).stdout


def symbols(library):
    """Returns the names that the library exports, each as NAME@VERSION or NAME@@VERSION."""
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


def version_script(table):
    members = {}
    for symbol in table.symbols:
        # the code that defines an old version of a symbol has a .symver directive
        name, default, version = symbol.partition("@@")
        if default:
            members.setdefault(version, []).append(name)
    text = "/* made by guest-lib/export/symbols.py */\n"
    for version, parent in table.versions:
        text += version + " {\n"
        if members.get(version):
            text += "    global:\n"
            text += "".join(f"        {name};\n" for name in sorted(members[version]))
        text += "}" + (f" {parent}" if parent else "") + ";\n"
    return text


# The type and the body of a function that fails, for each kind of result.
FAILURES = {
    "errno": ("int ", "return errno = EOPNOTSUPP;"),
    "fd": ("int ", "errno = EOPNOTSUPP; return -1;"),
    "pointer": ("void *", "errno = EOPNOTSUPP; return NULL;"),
    "void": ("void ", ""),
}


def failures(table, archives):
    """Returns C code for the symbols of the table that no archive defines."""
    defined = set()
    for archive in archives:
        listing = subprocess.run(["nm", "--defined-only", archive], check=True, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        fields = [line.split() for line in listing.splitlines()]
        # A capital letter is a symbol for other files; a function of the file's own has a small one.
        found = {name for _, kind, name in (line for line in fields if len(line) == 3) if kind.isupper()}
        # An archive that defines NAME@@VERSION defines NAME.
        defined |= found | {symbol.partition("@@")[0] for symbol in found}
    names = {symbol.partition("@@")[0] for symbol in table.symbols if "@@" in symbol}
    old = [symbol.split("@") for symbol in table.symbols - defined if "@@" not in symbol]
    text = "/* made by guest-lib/export/symbols.py */\n#include <errno.h>\n#include <stddef.h>\n"
    for name in sorted(names - defined):
        kind, body = FAILURES[table.returns.get(name, "errno")]
        text += (f"{kind}{name}(void);\n__attribute__((visibility(\"default\"))) "
                 f"{kind}{name}(void) {{ {body} }}\n")
    # versions with other structures, from before contexts could grow; no program uses them any more
    for name, version in sorted(old):
        text += (f"long old_{name}(void);\n__attribute__((visibility(\"default\"))) "
                 f"long old_{name}(void) {{ errno = EOPNOTSUPP; return 0; }}\n"
                 f"__asm__(\".symver old_{name}, {name}@{version}, remove\");\n")
    return text


def front(table):
    """FRONT_NAME(number, "symbol", "@" or "@@", "version") of each symbol."""
    text = "/* made by guest-lib/export/symbols.py */\n"
    for number, symbol in enumerate(sorted(table.symbols)):
        name, at, version = re.fullmatch("([^@]+)(@+)(.+)", symbol).groups()
        text += f'FRONT_NAME({number}, "{name}", "{at}", "{version}")\n'
    return text


def compare(table, library):
    missing, extra = table.symbols - symbols(library), symbols(library) - table.symbols
    for name in sorted(missing):
        print(f"missing: {name}")
    for name in sorted(extra):
        print(f"extra: {name}")
    print(f"{len(table.symbols)} symbols: {len(missing)} missing, {len(extra)} extra")
    return 1 if missing or extra or not table.symbols else 0


def covers(table, library):
    theirs = symbols(library)
    private = {symbol for symbol in theirs if PRIVATE.search(symbol)}
    if private <= table.symbols:
        private = set()
    missing = theirs - private - table.symbols
    for name in sorted(missing):
        print(f"the table lacks {name}")
    print(f"{len(theirs)} symbols of {library}: {len(missing)} are not in the table")
    return 1 if missing or not theirs else 0


def main(argv):
    command, files = (argv[1], argv[2:]) if len(argv) > 2 else (None, [])
    of_one = {"map": version_script, "front": front}
    if command in of_one and len(files) == 1:
        sys.stdout.write(of_one[command](Table(files[0])))
    elif command == "failures" and len(files) >= 2:
        sys.stdout.write(failures(Table(files[0]), files[1:]))
    elif command == "list" and len(files) == 1:
        found = Table(files[0]).symbols if files[0].endswith(".symbols") else symbols(files[0])
        print("\n".join(sorted(found)))
    elif command in ("compare", "covers") and len(files) == 2:
        return {"compare": compare, "covers": covers}[command](Table(files[0]), files[1])
    else:
        sys.exit(__doc__)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
