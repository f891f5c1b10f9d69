# SPDX-License-Identifier: BSD-2-Clause
"""usage: clang_warnings.py BUILD

Prints clang's warnings about each file that BUILD compiles with another compiler. clang reads the
files with BUILD's options and writes nothing, which takes a quarter of the time of a build. Exit
status 1 if there are warnings or no files.
"""
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys

# Options for the other compiler's generated code.
NOT_FOR_CLANG = ("-mmemset-strategy=", "-flto", "-ffat-lto-objects", "-fdiagnostics-color")
WITHOUT = ("-MD", "-c")
WITH_ARGUMENT = ("-o", "-MQ", "-MF")


def command_of(entry):
    """Returns clang's command for one entry of compile_commands.json."""
    words = shlex.split(entry["command"])
    kept = ["clang", "-fsyntax-only", "-Wno-unknown-warning-option"]
    rest = iter(words[next(i for i, word in enumerate(words) if word.startswith("-")):])
    for word in rest:
        if word in WITH_ARGUMENT:
            next(rest)
        elif word not in WITHOUT and not word.startswith(NOT_FOR_CLANG):
            kept.append(word)
    return tuple(kept)


def said(job):
    folder, command = job
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.stdout + ("" if done.returncode == 0 or done.stdout else f"{shlex.join(command)}: {done.returncode}\n")


def main():
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__.strip())
        return 0 if len(sys.argv) == 2 else 2
    entries = json.loads((pathlib.Path(sys.argv[1]) / "compile_commands.json").read_text(encoding="utf-8"))
    jobs = list(dict.fromkeys((entry["directory"], command_of(entry)) for entry in entries if entry["file"].endswith(".c")))
    found = False
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for text in pool.map(said, jobs):
            found |= bool(text)
            sys.stdout.write(text)
    print(f"{len(jobs)} files", file=sys.stderr)
    return 1 if found or not jobs else 0


if __name__ == "__main__":
    sys.exit(main())
