# SPDX-License-Identifier: BSD-2-Clause
"""The cases of a suite: runs and counts them, and tries a case again that may have failed by
chance.

A suite in real time (processes, VMs, programs) has cases that fail because a machine was busy. Such
a case is tried again, at once and alone, TRIES times in all. If it passes then, it is counted
separately and named at the end, and the output of each failed try is kept. A suite in virtual time
has no chance in it: a failure is a failure. The same holds in any suite for a crash, for a report
of a sanitizer or a kernel, and for a case that checks what the cases before it left behind
(once=True).

    cases = tries.Cases("mesh")
    cases.run("all_to_all", function, title="Processes complete", again=clean_up)
    sys.exit(cases.end())

The function returns a remark or None, and may raise anything. Skip, Missing and Expected are
described below; any other exception (Failure) is a failed try. The last line that end() prints is
"N passed, N failed, N skipped". Before it, end() prints lines for the cases that passed at a later
try and for those that ended in the expected error.

scripts/test passes its options to a suite in the environment; the programs that a case starts do
not see them.
HCASIM_RECORD=FOLDER: the suite adds a line for each case to its file "cases" (read_record()), and
puts logs there.
HCASIM_SUITE=NAME: the name of the suite. HCASIM_ONLY=NAME: only this case. HCASIM_TRIES=N: the
number of tries. HCASIM_CI=1: what is not installed is a failure.
"""
import collections
import os
import pathlib
import re
import subprocess
import tempfile
import time
import traceback

TRIES = 3
SKIPPED = 77  # exit status of a suite that could run nothing
LOG_LINES = 40  # lines of a failure on the terminal
# Errors that a busy machine does not explain.
GRAVE = re.compile(r"ERROR: (Address|Leak)Sanitizer|WARNING: ThreadSanitizer|: runtime error: |"
                   r"ended by SIG(SEGV|ABRT|BUS|ILL|FPE)|exit status (-(4|6|7|8|11)|13[24569])\b|"
                   r"Received signal (4|6|7|8|11)\b|Segmentation fault|core dumped|BUG: |Oops: |general protection")
Row = collections.namedtuple("Row", "outcome many tries seconds suite name note")


class Skip(Exception):
    """The case does not apply; the message is the reason."""


class Missing(Skip):
    """What the case needs is not installed."""


class Failure(Exception):
    """The case does not hold; the message is the reason."""


class Expected(Exception):
    """The case ended in the error that its list expects; the message is the error."""


def reason_of(error):
    """Returns the text of an exception; for an unexpected exception, where it came from."""
    if isinstance(error, subprocess.TimeoutExpired):
        said = error.output or b""
        return f"{error}\n{said.decode(errors='replace') if isinstance(said, bytes) else said}".rstrip()
    if isinstance(error, AssertionError) and str(error):
        return str(error)
    if type(error).__module__ == "builtins":
        return "".join(traceback.format_exception(error)).strip()
    return str(error)


def in_ci():
    return bool(os.environ.get("HCASIM_CI"))


class Cases:
    """The cases of one suite. real_time: whether a failed case is tried again; quiet: passed and
    skipped cases have no line; verbose: failures are printed in full length."""

    def __init__(self, suite, real_time=True, quiet=False, verbose=False):
        self.quiet, self.verbose = quiet, verbose
        self.suite = os.environ.pop("HCASIM_SUITE", suite)
        self.ci = in_ci()
        self.only = os.environ.pop("HCASIM_ONLY", None)
        self.most = int(os.environ.pop("HCASIM_TRIES", TRIES))
        if not real_time:
            self.most = 1
        record = os.environ.pop("HCASIM_RECORD", None)
        self.folder = pathlib.Path(record) if record else None
        self.recorded = bool(record)
        self.counts = collections.Counter()
        self.later, self.errors = [], []

    def wanted(self, name):
        return self.only in (None, name)

    # A case that is a function

    def run(self, name, function, *, title="", once=False, again=None, first=1):
        """Runs a case if it is wanted. Returns whether the case did not fail. again() cleans up
        after a failed try, and may return more text about it. first: the number of this try."""
        if not self.wanted(name):
            return True
        for number in range(first, self.most + 1):
            started = time.monotonic()
            try:
                remark = function() or ""
            except Missing as missing:
                if again:
                    again()
                return self.skipped(name, str(missing), title, missing=True)
            except Skip as skip:
                return self.skipped(name, str(skip), title)
            except Expected as error:
                return self.expected(name, str(error), title, time.monotonic() - started)
            except Exception as error:  # a case may fail in any way
                text = reason_of(error)
            else:
                return self.passed(name, title, time.monotonic() - started, number, remark)
            seconds = time.monotonic() - started
            if again:
                text = f"{text}\n{again() or ''}".rstrip()
            if self.final(text, number, once):
                return self.failed(name, text, title, seconds, number)
            self.failed_try(name, text, number)
        return False

    def final(self, text, number, once=False):
        """Returns whether a try that failed like this is the last one."""
        return once or number >= self.most or GRAVE.search(text) is not None

    # Cases of which the suite knows the outcome

    def passed(self, name, title="", seconds=0.0, tries=1, remark=""):
        outcome = "later" if tries > 1 else "passed"
        if tries > 1:
            self.later.append(name)
            remark = f"{remark + ', ' if remark else ''}at try {tries}"
        self._say("ok", name, title, remark, seconds, tries)
        return self._count(outcome, name, tries, seconds)

    def failed(self, name, text, title="", seconds=0.0, tries=1, many=1):
        """Counts a failed case. many: the number of cases that this call counts, here and in the functions below."""
        self._say("FAIL", name, title, "", seconds)
        lines = text.splitlines()
        shown = lines if self.verbose else lines[-LOG_LINES:]
        if len(lines) > len(shown):
            shown.insert(0, f"... all of it: {self._keep(name, text, tries)}")
        elif self.recorded:
            self._keep(name, text, tries)
        print("".join(f"       {line}\n" for line in shown), end="", flush=True)
        self._count("failed", name, tries, seconds, lines[-1] if lines else "", many)
        return False

    def failed_try(self, name, text, number):
        """Keeps the output of a failed try of a case that is to be tried again."""
        last = (text.splitlines() or [""])[-1][:150]
        print(f"again {name}: try {number} of {self.most} failed, its log: {self._keep(name, text, number)}\n       {last}",
              flush=True)

    def skipped(self, name, reason, title="", missing=False, many=1):
        if missing and self.ci:
            return self.failed(name, f"{reason}: in CI everything is installed", title)
        self._say("skip", name, title, reason)
        return self._count("skipped", name, 1, 0, reason, many)

    def expected(self, name, reason, title="", seconds=0.0):
        self.errors.append(name)
        self._say("error", name, title, f"as expected: {reason}", seconds)
        return self._count("expected", name, 1, seconds, reason)

    def more(self, outcome, name, many):
        """Counts more cases of a program that already has a line."""
        self._count(outcome, name, 1, 0, "", many)

    # The end

    def end(self):
        """Prints the counts. Returns the suite's exit status."""
        for line in closing_lines(self.later, self.errors, self.folder):
            print(line)
        print(last_line(self.counts), flush=True)
        if self.counts["failed"] or not sum(self.counts.values()):
            return 1
        return SKIPPED if set(self.counts) == {"skipped"} else 0

    # Internal

    def _say(self, word, name, title, remark, seconds=None, tries=1):
        if self.quiet and word in ("ok", "skip") and tries == 1:
            return
        time_spent = "" if seconds is None else f" ({seconds:.1f} s)"
        print(f"{word:4} {name}{': ' + title if title else ''}{' [' + remark + ']' if remark else ''}{time_spent}",
              flush=True)

    def _count(self, outcome, name, tries, seconds, note="", many=1):
        self.counts[outcome] += many
        if self.recorded:
            line = "\t".join(re.sub(r"\s+", " ", str(word)) for word in
                             (outcome, many, tries, f"{seconds:.2f}", self.suite, name, note[:300])) + "\n"
            with open(os.open(self.folder / "cases", os.O_WRONLY | os.O_APPEND), "w", encoding="utf-8") as cases:
                cases.write(line)
        return True

    def _keep(self, name, text, number):
        """Writes the output of a failed try to its own file; returns the file's path."""
        if self.folder is None:
            self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hcasim-tries."))
        stem = re.sub(r"[^\w.-]+", "-", f"{self.suite}-{name}")[:80]
        with tempfile.NamedTemporaryFile("w", dir=self.folder, prefix=f"{stem}.try{number}.", suffix=".log", delete=False,
                                         encoding="utf-8", errors="replace") as log:
            log.write(text + "\n")
        os.chmod(log.name, 0o644)
        return log.name


def new_record():
    """Returns a new folder that suites of any user can write to."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="hcasim-test."))
    folder.chmod(0o1777)
    (folder / "cases").touch()
    (folder / "cases").chmod(0o666)
    return folder


def read_record(folder):
    """Returns what all suites have recorded there, in order."""
    rows = []
    for line in (pathlib.Path(folder) / "cases").read_text(encoding="utf-8").splitlines():
        outcome, many, tries, seconds, suite, name, note = line.split("\t")
        rows.append(Row(outcome, int(many), int(tries), float(seconds), suite, name, note))
    return rows


def closing_lines(later, errors, folder):
    """Yields the lines before the last one."""
    if errors:
        yield f"{len(errors)} ended in the error expected: {'; '.join(errors)}"
    if later:
        yield f"{len(later)} passed at a later try: {'; '.join(later)} (logs of the failed ones: {folder})"


def last_line(counts):
    return f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped"
