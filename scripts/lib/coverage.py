#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Prints which lines and branches of model and fw the tests run (scripts/test coverage).

Builds with gcc's -Db_coverage in build-coverage, runs the tests by suite, counts each suite
separately, and prints the share of lines and of branches, by suite and for each file.

A branch is an edge of gcov's at -O0: each operand of && and || has two. Not counted are the
branches of an assertion that fails, and lines with g_assert_not_reached(): a test that reached them
would have found a bug. Nothing else is left out.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build-coverage"
COUNTS = BUILD / "coverage"
SUITES = ("unit", "sim", "conformance", "fuzz")
FOLDERS = ("model/", "fw/")
# The reasons why lines did not run: a pattern for "FILE: FUNCTION: LINE", a tab, the reason. The
# first pattern that fits counts.
REASONS = ROOT / "scripts/lib/uncovered.txt"
PAGE = ROOT / "docs/project/coverage.md"
UNTESTED = "There is no test yet:"
GOALS = {"lines": 95, "branches": 85}
OPS = "20000"  # operations of test-sim-data: more of them run the same lines

# -- running ---------------------------------------------------------------------------------------


def build(jobs):
    if not (BUILD / "build.ninja").exists():
        subprocess.run(["meson", "setup", BUILD, "-Db_coverage=true", "-Doptimization=0",
                        "-Dwerror=false"], cwd=ROOT,
                       env=dict(os.environ, CC="gcc"), check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", BUILD, "-j", str(jobs), "--quiet", "build.ninja"], check=True)
    known = json.loads(subprocess.run(["meson", "introspect", BUILD, "--tests", "--targets"], check=True,
                                      text=True, stdout=subprocess.PIPE).stdout)
    files = {target["id"]: target["filename"] for target in known["targets"]}
    tests = {suite: [] for suite in SUITES}
    targets = set()
    for test in known["tests"]:
        suite = test["name"].split("-")[0]
        if suite in tests and not test["name"].endswith("-page"):
            tests[suite].append(test["name"])
            for needed in test["depends"]:
                targets |= {os.path.relpath(file, BUILD) for file in files[needed]}
    subprocess.run(["ninja", "-C", BUILD, "-j", str(jobs), "--quiet", *targets], check=True)
    return tests


def run(suite, names, jobs):
    """Returns whether all passed."""
    counts = COUNTS / suite
    for old in counts.rglob("*.gcda"):
        old.unlink()
    env = dict(os.environ, GCOV_PREFIX=str(counts), GCOV_PREFIX_STRIP=str(len(BUILD.parts) - 1),
               HCASIM_SIM_OPS=OPS)
    log = BUILD / "meson-logs/testlog.json"
    log.unlink(missing_ok=True)
    subprocess.run(["meson", "test", "-C", BUILD, "--no-rebuild", "--quiet", "--num-processes", str(jobs),
                    *names], env=env, stdout=subprocess.DEVNULL, check=False)
    said = subprocess.run([sys.executable, "-B", ROOT / "scripts/lib/meson_tests.py", "--log", log, BUILD], text=True,
                          stdout=subprocess.PIPE, check=False).stdout
    print(f"{suite}:")
    print("\n".join(line for line in said.splitlines() if not line.startswith("ok")), flush=True)
    return ", 0 failed," in said


# -- counting --------------------------------------------------------------------------------------


class File:
    """The counts of a source file: how often each line ran, and each of its branches."""

    def __init__(self, name):
        self.lines, self.branches, self.function = {}, {}, {}
        self.text = (ROOT / name).read_text().splitlines()
        self.asserted, self.never = set(), set()
        number = 0
        while number < len(self.text):
            number += 1
            found = re.match(r"\s*(case .*:|default:)?\s*g_assert(_not_reached)?\w*\(", self.text[number - 1])
            if not found:
                continue
            if found[2]:
                self.never.add(number)
            self.asserted.add(number)
            while not self.text[number - 1].rstrip().endswith(";"):
                number += 1
                self.asserted.add(number)

    def add(self, entry):
        number = entry["line_number"]
        if number in self.never:
            return
        self.lines[number] = self.lines.get(number, 0) + entry["count"]
        self.function[number] = entry.get("function_name", "")
        if number in self.asserted:
            return
        for i, branch in enumerate(entry["branches"]):
            key = number, i
            self.branches[key] = self.branches.get(key, 0) + branch["count"]

    def merge(self, other):
        for name in ("lines", "branches"):
            mine = getattr(self, name)
            for key, count in getattr(other, name).items():
                mine[key] = mine.get(key, 0) + count
        self.function |= other.function

    def share(self, what):
        counts = getattr(self, what).values()
        return sum(1 for count in counts if count), len(counts)


def is_counted(name):
    return name.startswith(FOLDERS)


def read(suite):
    """Returns the files by name. A suite has no counts of a file that none of its tests links."""
    files = {}
    data = sorted(COUNTS.joinpath(suite).rglob("*.gcda"))
    for path in data:
        notes = path.with_suffix(".gcno")
        if not notes.exists():
            notes.symlink_to(BUILD / notes.relative_to(COUNTS / suite))
    for at in range(0, len(data), 50):
        said = subprocess.run(["gcov", "--json-format", "--stdout", "--branch-probabilities",
                               *data[at:at + 50]], cwd=BUILD, check=True, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        for line in said.splitlines():
            for source in json.loads(line)["files"]:
                name = os.path.relpath(BUILD / source["file"], ROOT)
                if is_counted(name):
                    file = files.setdefault(name, File(name))
                    for entry in source["lines"]:
                        file.add(entry)
    return files


def together(suites):
    files = {}
    for known in suites.values():
        for name, file in known.items():
            files.setdefault(name, File(name)).merge(file)
    return dict(sorted(files.items()))


def total(files, what, folder=""):
    shares = [file.share(what) for name, file in files.items() if name.startswith(folder)]
    return sum(hit for hit, _ in shares), sum(all_ for _, all_ in shares)


def percent(hit, all_):
    return f"{100 * hit / all_:5.1f} %" if all_ else "      -"


# -- printing --------------------------------------------------------------------------------------


def print_suites(suites, everything):
    print(f"{'suite':14}" + "".join(f"{folder + ' ' + what:>16}" for folder in FOLDERS
                                    for what in GOALS) + "".join(f"{what:>12}" for what in GOALS))
    for suite, files in [*suites.items(), ("together", everything)]:
        # a suite's share is of all existing lines
        cells = [percent(total(files, what, folder)[0], total(everything, what, folder)[1])
                 for folder in (*FOLDERS, "") for what in GOALS]
        print(f"{suite:14}" + "".join(f"{cell:>16}" for cell in cells[:-2]) +
              "".join(f"{cell:>12}" for cell in cells[-2:]))


def print_files(files):
    width = max(map(len, files))
    print(f"{'file':{width}}{'lines':>10}{'':10}{'branches':>10}")
    for name, file in files.items():
        cells = ""
        for what in GOALS:
            hit, all_ = file.share(what)
            cells += f"{percent(hit, all_):>10}{f'of {all_}':>10}"
        print(f"{name:{width}}{cells}")


def print_uncovered(files, chosen):
    for name, file in files.items():
        if chosen not in name:
            continue
        taken = collections.defaultdict(list)
        for (number, _), count in sorted(file.branches.items()):
            taken[number].append(count)
        for number, count in sorted(file.lines.items()):
            if not count:
                print(f"{name}:{number}: ##### {file.text[number - 1]}")
            elif 0 in taken[number]:
                edges = "".join("-+"[edge > 0] for edge in taken[number])
                print(f"{name}:{number}: {edges} {file.text[number - 1]}")


def reasons():
    """Returns the patterns and their reasons, in the file's order."""
    rows = [line.rstrip("\n").split("\t", 1) for line in REASONS.open() if not line.startswith("#")]
    return [(re.compile(pattern), reason) for pattern, reason in filter(lambda r: len(r) == 2, rows)]


def left(files):
    """Returns the lines that did not run, by reason: file, function and code of each."""
    known = reasons()
    by_reason = {reason: collections.defaultdict(list) for _, reason in known}
    for name, file in files.items():
        before = None
        for number, count in sorted(file.lines.items()):
            if count:
                before = None
                continue
            text = file.text[number - 1].strip()
            where = file.function[number]
            reason = next((reason for pattern, reason in known
                           if pattern.search(f"{name}: {where}: {text}")), before)
            before = reason or UNTESTED
            by_reason.setdefault(before, collections.defaultdict(list))[name].append((where, text))
    return by_reason


def write_page(suites, everything):
    lines = ["# Coverage", "",
             "This page shows which lines and branches of `model/` and `fw/` the tests run, as gcov counts them at",
             "-O0. `scripts/lib/coverage.py --no-run --write` makes it from the last `scripts/test coverage`.", "",
             "A branch is an edge: each operand of `&&` and `||` has two. The edges of assertions and",
             "`g_assert_not_reached()` are not counted, because a test that runs them has found a bug. The code of an",
             "accessor of `prm` is counted in the accessor and not in each line that uses it. Everything else is",
             "counted. The suites `verbs`, `qtest` and `vm` (`scripts/test`) run the same code and are not counted here.", "",
             "| suite | model: lines | branches | fw: lines | branches | both: lines | branches |",
             "|---|---|---|---|---|---|---|"]
    for suite, files in [*suites.items(), ("together", everything)]:
        cells = [percent(total(files, what, folder)[0], total(everything, what, folder)[1]).strip()
                 for folder in (*FOLDERS, "") for what in GOALS]
        lines.append(f"| {suite} | " + " | ".join(cells) + " |")
    lines += ["", "## What is left", ""]
    by_reason = left(everything)
    lines += [f"{sum(len(l) for f in by_reason.values() for l in f.values())} lines did not run, for these reasons:", ""]
    for reason, files in by_reason.items():
        if files:
            where = ", ".join(f"`{name}` {len(texts)}" for name, texts in files.items())
            lines += [f"- {reason} {where}."]
    lines += ["", f"`{REASONS.relative_to(ROOT)}` has a reason for each kind of line."]
    untested = by_reason.get(UNTESTED, {})
    if untested:
        lines += ["These lines have no reason:", "", "| file | function | code |", "|---|---|---|"]
    for name, texts in untested.items():
        lines += [f"| `{name}` | `{where}` | `{code}` |"
                  for where, code in ((where, text.replace("|", "\\|")) for where, text in texts)]
    lines += ["", "## By file", "", "| file | lines | of | branches | of |", "|---|---|---|---|---|"]
    for name, file in everything.items():
        cells = []
        for what in GOALS:
            hit, all_ = file.share(what)
            cells += [percent(hit, all_).strip(), str(all_)]
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    PAGE.write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-run", action="store_true", help="Reports the last run, and runs no test.")
    parser.add_argument("--suite", action="append", choices=SUITES,
                        help="Runs only this suite. The option may be given several times.")
    parser.add_argument("--uncovered", nargs="?", const="", metavar="FILE",
                        help="Prints the lines that did not run, and the lines that ran in part, with - for an edge "
                             "that was not taken. Only of files with FILE in their name.")
    parser.add_argument("--write", action="store_true", help=f"Writes {PAGE.relative_to(ROOT)}.")
    parser.add_argument("--jobs", type=int, default=2, metavar="N")
    args = parser.parse_args()
    good = True
    if not args.no_run:
        tests = build(args.jobs)
        for suite in args.suite or SUITES:
            good &= run(suite, tests[suite], args.jobs)
    suites = {suite: read(suite) for suite in SUITES}
    everything = together(suites)
    if args.uncovered is not None:
        print_uncovered(everything, args.uncovered)
        return 0
    if args.write:
        write_page(suites, everything)
    print_files(everything)
    print()
    print_suites(suites, everything)
    for what, goal in GOALS.items():
        hit, all_ = total(everything, what)
        if 100 * hit < goal * all_:
            print(f"{what}: less than {goal} %")
            good = False
    return not good


if __name__ == "__main__":
    sys.exit(main())
