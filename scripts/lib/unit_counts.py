# SPDX-License-Identifier: BSD-2-Clause
"""Reads meson's testlog.json and prints a line for each test program, then "N passed, N failed, N
skipped". A Check program counts as many tests as it says it has, one that prints such a line itself as
many as that says; any other counts as one."""
import json
import re
import sys


def counts(entry):
    """(passed, failed, skipped) of one program."""
    if entry["result"] in ("SKIP", "EXPECTEDFAIL"):
        return 0, 0, 1
    summary = re.search(r"\d+%: Checks: (\d+), Failures: (\d+), Errors: (\d+)",
                        entry.get("stdout", ""))
    own = re.search(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", entry.get("stdout", ""), re.M)
    good = entry["result"] == "OK"
    if summary:
        total, failures, errors = map(int, summary.groups())
        failed = failures + errors
        # A program can fail beyond its tests: a sanitizer's report at exit, a time-out.
        if not good and not failed:
            failed, total = 1, total + 1
        return total - failed, failed, 0
    if own and (good or int(own[2])):
        return tuple(map(int, own.groups()))
    return int(good), int(not good), 0


def main():
    totals = [0, 0, 0]
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                entry = json.loads(line)
                numbers = counts(entry)
                totals = [total + number for total, number in zip(totals, numbers)]
                outcome = "FAIL" if numbers[1] else "skip" if numbers[2] else "ok"
                print(f"{outcome:4} {entry['name']}: {numbers[0]} of {sum(numbers)} "
                      f"({entry['duration']:.1f} s)")
                if numbers[1]:
                    said = (entry.get("stdout", "") + entry.get("stderr", "")).splitlines()
                    print("".join(f"       {text}\n" for text in said[-40:]), end="")
    print("{} passed, {} failed, {} skipped".format(*totals))


main()
