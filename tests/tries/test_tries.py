#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests what scripts/lib/tries.py and scripts/test promise: which cases are tried again, which are
not, and what is counted."""
import contextlib
import functools
import importlib.machinery
import importlib.util
import io
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))

import meson_tests  # noqa: E402
import tries  # noqa: E402

# A suite whose cases fail as often as their names say, and count their tries in files.
FAKE = f"""
import pathlib, sys
sys.path.insert(0, "{ROOT}/scripts/lib")
import tries

def fails(name, times):
    tried = pathlib.Path(__file__).with_name(f"tried-{{name}}")
    tried.write_text((tried.read_text() if tried.exists() else "") + "x")
    if len(tried.read_text()) <= times:
        raise tries.Failure(f"{{name}} fails")

cases = tries.Cases("fake")
for name, times in (("well", 0), ("once", 1), ("twice", 2)):
    cases.run(name, lambda: fails(name, times))
if "bad" in sys.argv:
    cases.run("always", lambda: fails("always", 99))
print("1000 passed, 1000 failed, 1000 skipped")
sys.exit(cases.end())
"""


def load(path):
    loader = importlib.machinery.SourceFileLoader("test_script", str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("test_script", loader))
    sys.modules["test_script"] = module  # its dataclasses need it
    loader.exec_module(module)
    return module


class Base(unittest.TestCase):
    def setUp(self):
        self.folder = tries.new_record()
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        for name in ("HCASIM_ONLY", "HCASIM_TRIES", "HCASIM_CI", "HCASIM_SUITE"):
            os.environ.pop(name, None)
        self.tried = 0

    def cases(self, **told):
        os.environ["HCASIM_RECORD"] = str(self.folder)
        return tries.Cases("fake", **told)

    def fails(self, times, text="fails"):
        """Returns a case that fails that many times, and then passes."""
        tried = 0

        def function():
            nonlocal tried
            tried += 1
            self.tried = tried
            if tried <= times:
                raise tries.Failure(text)
        return function

    def said(self, function, *given, **named):
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            result = function(*given, **named)
        return result, text.getvalue()

    def outcomes(self):
        return {row.name: (row.outcome, row.tries) for row in tries.read_record(self.folder)}


class RealTime(Base):
    def test_cases_that_fail_once_or_twice_are_counted_apart_and_named(self):
        cases = self.cases()
        for name, times in (("well", 0), ("once", 1), ("twice", 2)):
            good, _ = self.said(cases.run, name, self.fails(times))
            self.assertTrue(good)
            self.assertEqual(self.tried, times + 1)
        status, said = self.said(cases.end)
        self.assertEqual(status, 0)
        self.assertEqual(self.outcomes(), {"well": ("passed", 1), "once": ("later", 2), "twice": ("later", 3)})
        last = said.splitlines()
        self.assertEqual(last[-1], "1 passed, 0 failed, 0 skipped")
        self.assertEqual(last[-2], f"2 passed at a later try: once; twice (logs of the failed ones: {self.folder})")

    def test_a_case_that_always_fails_fails_after_three_tries(self):
        cases = self.cases()
        good, _ = self.said(cases.run, "always", self.fails(99))
        self.assertFalse(good)
        self.assertEqual(self.tried, 3)
        self.assertEqual(self.outcomes(), {"always": ("failed", 3)})
        status, said = self.said(cases.end)
        self.assertEqual((status, said), (1, "0 passed, 1 failed, 0 skipped\n"))

    def test_each_failed_try_leaves_its_log(self):
        cases = self.cases()
        _, said = self.said(cases.run, "a case: with / odd letters", self.fails(2, "because of this"))
        logs = sorted(self.folder.glob("*.log"))
        self.assertEqual(len(logs), 2)
        for number, log in enumerate(logs, 1):
            self.assertEqual(log.read_text(), "because of this\n")
            self.assertIn(f"try {number} of 3 failed, its log: {log}", said)

    def test_between_two_tries_somebody_clears_up_and_has_more_to_say(self):
        cleared = []
        cases = self.cases()
        self.said(cases.run, "once", self.fails(1), again=lambda: cleared.append(1) or "a program said so")
        self.assertEqual(cleared, [1])
        self.assertEqual(next(self.folder.glob("*.log")).read_text(), "fails\na program said so\n")

    def test_a_crash_or_a_report_is_final(self):
        for text in ("==1==ERROR: AddressSanitizer: heap-use-after-free", "QEMU was ended by SIGSEGV",
                     "Received signal 6 (Aborted)", "exit status -11", "kernel BUG: at", "WARNING: ThreadSanitizer: race",
                     "x.c:1:2: runtime error: null pointer"):
            cases = self.cases()
            good, _ = self.said(cases.run, "crash", self.fails(1, text))
            self.assertEqual((good, self.tried), (False, 1), text)

    def test_a_program_that_was_ended_on_purpose_did_not_crash(self):
        for text in ("exit status -9", "exit status 1", "exit status 124"):
            cases = self.cases()
            good, _ = self.said(cases.run, "no crash", self.fails(1, text))
            self.assertTrue(good, text)

    def test_a_case_about_earlier_cases_is_not_repeated(self):
        good, _ = self.said(self.cases().run, "nothing is left", self.fails(1), once=True)
        self.assertEqual((good, self.tried), (False, 1))

    def test_an_exception_that_nobody_thought_of_is_a_failed_try_with_its_place(self):
        good, said = self.said(self.cases().run, "odd", lambda: {}["key"])
        self.assertFalse(good)
        self.assertIn('KeyError: \'key\'', said)
        self.assertIn("test_tries.py", said)


class VirtualTime(Base):
    def test_a_failure_is_a_failure(self):
        cases = self.cases(real_time=False)
        good, _ = self.said(cases.run, "once", self.fails(1))
        self.assertEqual((good, self.tried), (False, 1))
        self.assertEqual(self.said(cases.end)[0], 1)
        self.assertEqual(self.outcomes(), {"once": ("failed", 1)})


def entry(suites, result, failures=0, text=""):
    """Returns meson's record of a Check program of ten tests."""
    return {"name": "program", "suites": suites, "result": result, "duration": 1.0,
            "stdout": f"{text}\n{100 - 10 * failures}%: Checks: 10, Failures: {failures}, Errors: 0\n"}


class Meson(Base):
    def report(self, suites, *results):
        """Reports a program whose tries end with these results; returns the number of tries."""
        results = [entry(suites, "FAIL" if failures else "OK", failures) for failures in results]
        rest = iter(results[1:])
        started = [1]

        def again(_):
            started[0] += 1
            return next(rest)
        cases = self.cases()
        _, said = self.said(meson_tests.report, cases, results[0], again)
        return started[0], cases.counts, said

    def test_a_program_in_real_time_is_run_again(self):
        started, counts, _ = self.report("hcasim:unit+real-time", 2, 0)
        self.assertEqual(started, 2)
        self.assertEqual(dict(counts), {"later": 1, "passed": 9})

    def test_twice_at_most(self):
        started, counts, _ = self.report("hcasim:unit+real-time", 2, 1, 3, 0)
        self.assertEqual(started, 3)
        self.assertEqual(dict(counts), {"failed": 3, "passed": 7})

    def test_a_program_in_virtual_time_is_not(self):
        started, counts, _ = self.report("hcasim:unit", 1, 0)
        self.assertEqual(started, 1)
        self.assertEqual(dict(counts), {"failed": 1, "passed": 9})


class Counted(Base):
    def test_a_skip_for_something_missing_is_a_failure_in_ci(self):
        def misses():
            raise tries.Missing("no program")
        cases = self.cases()
        self.said(cases.run, "one", misses)
        self.assertEqual(self.said(cases.end)[0], tries.SKIPPED)
        os.environ["HCASIM_CI"] = "1"
        cases = self.cases()
        self.said(cases.run, "one", misses)
        self.assertEqual(self.said(cases.end)[0], 1)

    def test_an_expected_error_is_counted_apart(self):
        def ends():
            raise tries.Expected("as its list says")
        cases = self.cases()
        self.said(cases.run, "pinned", ends)
        self.said(cases.run, "well", self.fails(0))
        status, said = self.said(cases.end)
        self.assertEqual(status, 0)
        self.assertEqual(said, "1 ended in the error expected: pinned\n1 passed, 0 failed, 0 skipped\n")

    def test_a_suite_without_a_case_fails(self):
        self.assertEqual(self.said(self.cases().end)[0], 1)


class Script(Base):
    """Runs scripts/test with a suite of its own."""

    def run_with(self, *arguments, script=FAKE, least=1):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "fake.py"
            program.write_text(script)
            self.test = load(ROOT / "scripts/test")
            self.test.SUITES = (self.test.Suite("fake", "fake", f"{sys.executable} -B {program} {' '.join(arguments)}", least),)
            run = self.test.Run()
            self.addCleanup(shutil.rmtree, run.record, ignore_errors=True)
            _, said = self.said(run.run, self.test.SUITES[0])
            status, end = self.said(run.end)
        return status, said + end

    def test_only_what_is_recorded_is_counted(self):
        status, said = self.run_with()
        self.assertEqual(status, 0)
        self.assertEqual(said.splitlines()[-1], "1 passed, 0 failed, 0 skipped")
        self.assertIn("2 passed at a later try: fake: once; fake: twice", said)

    def test_where_the_time_went_is_said(self):
        _, said = self.run_with()
        self.assertRegex(said, r"where the time went: \d+ s, \d+ s of processors\n +\d+ s +\d+ s  fake: fake\n"
                               r"the slowest cases:\n +[\d.]+ s  fake: ")

    def test_failed_cases_are_named(self):
        status, said = self.run_with("bad")
        self.assertEqual(status, 1)
        self.assertIn("failed: fake: always", said)

    def test_a_suite_that_dies_is_a_failure(self):
        for script in ("raise SystemExit(3)", FAKE.replace("sys.exit(cases.end())", "sys.exit(5)")):
            status, said = self.run_with(script=script)
            self.assertEqual(status, 1)
            self.assertRegex(said, r"FAIL fake ended with status [35]")

    def test_a_suite_with_fewer_cases_than_it_should_have_fails_in_ci(self):
        self.assertEqual(self.run_with(least=4)[0], 0)
        os.environ["HCASIM_CI"] = "1"
        self.assertEqual(self.run_with(least=3)[0], 0)
        status, said = self.run_with(least=4)
        self.assertEqual(status, 1)
        self.assertIn("has 3 cases, and should have 4 at least", said)

    def build_beside(self, builder):
        """Runs a suite beside which there is a build, and one that needs the build."""
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "fake.py"
            program.write_text(FAKE)
            self.test = load(ROOT / "scripts/test")
            suite = functools.partial(self.test.Suite, "fake", command=f"{sys.executable} -B {program}")
            suites = suite("first", beside=("one", "two")), suite("second", builds=("one",))
            self.test.BUILDERS = {"one": builder}
            run = self.test.Run()
            self.addCleanup(shutil.rmtree, run.record, ignore_errors=True)
            return "".join(self.said(run.run, one, suites[number + 1:])[1] for number, one in enumerate(suites))

    def test_a_build_runs_beside_a_suite_once_and_at_a_low_priority(self):
        built = []
        said = self.build_beside(lambda *at_priority: built.append(at_priority))
        self.assertEqual(built, [("nice", "-n", "19")])
        self.assertNotIn("FAIL", said)

    def test_a_build_that_fails_beside_a_suite_fails_the_suite_that_needs_it(self):
        def builder(*_):
            raise subprocess.CalledProcessError(1, "ninja", "no such file")
        said = self.build_beside(builder)
        self.assertRegex(said, "(?s)== fake: second\nFAIL second cannot be built for: .*no such file")
        self.assertEqual(said.count("FAIL"), 1)

    def test_a_hunt_runs_one_case_with_one_try_each(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "fake.py"
            program.write_text(FAKE)
            self.test = load(ROOT / "scripts/test")
            self.test.SUITES = (self.test.Suite("fake", "fake", f"{sys.executable} -B {program}"),)
            run = self.test.Run()
            self.addCleanup(shutil.rmtree, run.record, ignore_errors=True)
            status, said = self.said(self.test.hunt, run, "fake: twice", 4)
            self.assertFalse((pathlib.Path(folder) / "tried-once").exists())
        self.assertEqual(status, 1)
        self.assertIn("fake: twice failed 2 times of 4", said)
        self.assertEqual(said.splitlines()[-1], "2 passed, 2 failed, 0 skipped")
        self.assertEqual(sorted(path.name for path in run.record.glob("?.log")), ["1.log", "2.log"])


if __name__ == "__main__":
    os.dup2(2, 1)  # the lines that suites print here are not this program's count
    unittest.main()
