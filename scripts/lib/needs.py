# SPDX-License-Identifier: BSD-2-Clause
"""usage: needs.py FOLDER

Checks the programs and libraries of the tarball (scripts/package), which is unpacked in FOLDER. They may need
libraries of the C library alone, and no newer version of it than the oldest release below has. Prints on which
releases the tarball runs. Exit status 1: a file needs more.
"""
import collections
import pathlib
import re
import subprocess
import sys

# The releases on which the tarball must run, and their glibc.
RELEASES = {"RHEL 9": (2, 34), "Ubuntu 22.04": (2, 35), "Debian 12": (2, 36), "Ubuntu 24.04": (2, 39), "Fedora 41": (2, 40),
            "Debian 13": (2, 41)}
LIBRARIES = {"libc.so.6", "ld-linux-x86-64.so.2"}
# The helper of `hcasim conformance --peer` runs on the host of another device, which has rdma-core.
# The front before the CUDA driver needs a link to the driver, which `hcasim run` makes (cli/cuda_links.c).
MORE = {"conformance-helper": {"libibverbs.so.1"}, "libhcasim-cuda.so": {"libcuda-of-the-system.so.1"}}
# Versions that stand for an ability of the loader, not for symbols, and the first glibc that has it: packed
# relocations (-z pack-relative-relocs).
ABILITIES = {"GLIBC_ABI_DT_RELR": (2, 36)}


def readelf(*words):
    return subprocess.run(["readelf", "--wide", *words], check=True, capture_output=True, text=True,
                          env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}).stdout


def dotted(version):
    return ".".join(map(str, version))


def version_of(name):
    """The first glibc that has the version of this name; None if no number tells it."""
    number = re.fullmatch(r"GLIBC_(\d+(?:\.\d+)+)", name)
    return tuple(map(int, number[1].split("."))) if number else ABILITIES.get(name)


def versions(path):
    """The names of the versions that the file needs, each with the first symbols that need it. The loader asks for
    these names before it runs the program, also for a name that no symbol has."""
    named = collections.defaultdict(list)
    for symbol, name in re.findall(r" UND (\S+?)@+(\S+)", readelf("--dyn-syms", path)):
        named[name].append(symbol)
    asked = re.findall(r"^ +0x[0-9a-f]+: +Name: (\S+) +Flags: .* Version: \d+$", readelf("--version-info", path), re.M)
    return {name: named[name] for name in asked}


def faults(path):
    """The needs of the file that a release lacks, in words; and the version of glibc that it needs."""
    libraries = set(re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("--dynamic", path)))
    said = [f"{path}: needs {name}" for name in sorted(libraries - LIBRARIES - MORE.get(path.name, set()))]
    newest = (2, 0)
    for name, symbols in sorted(versions(path).items()):
        of = f" ({', '.join(symbols[:3])})" if symbols else ""
        needed = version_of(name)
        if needed:
            newest = max(newest, needed)
            said += [f"{path}: needs {name}{of}, which {release} does not have (glibc {dotted(has)})"
                     for release, has in RELEASES.items() if has < needed]
        elif "_PRIVATE" in name:
            said.append(f"{path}: needs {name}{of}, which differs from build to build of that library")
        elif name.startswith("GLIBC_"):
            said.append(f"{path}: needs {name}{of}, and it is unknown which glibc has this")
    return said, newest


def is_elf(path):
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def main():
    files = [path for path in sorted(pathlib.Path(sys.argv[1]).rglob("*"))
             if path.is_file() and not path.is_symlink() and is_elf(path)]
    found = [faults(path) for path in files]
    said = [line for lines, _ in found for line in lines]
    if not files:
        said = [f"{sys.argv[1]} has no program"]
    if said:
        print(*said, "build the tarball on the oldest release of Debian that hcasim supports", sep="\n", file=sys.stderr)
        return 1
    print(f"{len(files)} programs and libraries need glibc {dotted(max(version for _, version in found))}:"
          f" {', '.join(RELEASES)} have it")
    return 0


sys.exit(main())
