#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests what scripts/fuzz promises: exit status 0 if nothing was found, 1 if something was found,
and a page that names it. The targets here are shell scripts that print what libFuzzer prints."""
import contextlib
import importlib.machinery
import importlib.util
import io
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOOD = """#!/bin/sh
echo "#10 INITED cov: 100 ft: 100"
echo "#20 NEW cov: 107 ft: 120"
echo "stat::number_of_executed_units: 25"
sleep 0.3
"""
# Finds something each time it is started.
BAD = """#!/bin/sh
for arg; do
    case $arg in -artifact_prefix=*) file=${arg#*=}crash-1 ;; esac
done
echo started >>"$0.starts"
echo x >"$file"
echo "#5 INITED cov: 50 ft: 50"
echo "SUMMARY: AddressSanitizer: heap-buffer-overflow model/x.c:1 in x_y"
echo "Test unit written to $file"
exit 77
"""


def load():
    loader = importlib.machinery.SourceFileLoader("fuzz", str(ROOT / "scripts/fuzz"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("fuzz", loader))
    loader.exec_module(module)
    return module


class Search(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.fuzz = load()
        self.fuzz.BUILD = self.build = pathlib.Path(folder.name)
        self.fuzz.CORPUS, self.fuzz.FOUND = self.build / "corpus", self.build / "found"
        self.fuzz.build = lambda names, jobs: None
        self.fuzz.seed = lambda name: self.build
        (self.build / "tests/fuzz").mkdir(parents=True)

    def run_with(self, targets, *args):
        """Returns the exit status and the output."""
        self.fuzz.targets = lambda: sorted(targets)
        for name, text in targets.items():
            program = self.build / "tests/fuzz" / f"fuzz-{name}"
            program.write_text(text)
            program.chmod(0o755)
        said = io.StringIO()
        argv, sys.argv = sys.argv, ["fuzz", "--jobs", "2", *args]
        try:
            with contextlib.redirect_stdout(said):
                status = int(self.fuzz.main())
        finally:
            sys.argv = argv
        return status, said.getvalue()

    def test_nothing_is_found(self):
        status, said = self.run_with({"one": GOOD, "two": GOOD}, "--seconds", "2")
        self.assertEqual(status, 0)
        self.assertRegex(said, r"\| one \| \d+ \| \d+ \| 107 \| 7 \| 0 \|")
        self.assertEqual((self.build / "summary.md").read_text(), said[said.index("# What"):])

    def test_each_has_a_turn_however_late(self):
        slow = GOOD.replace("sleep 0.3", "sleep 1.5")
        _, said = self.run_with({"one": slow, "two": slow}, "--seconds", "1", "--jobs", "1")
        self.assertRegex(said, r"\| one \| 25 \|")
        self.assertRegex(said, r"\| two \| 25 \|")

    def test_a_finding_is_named_and_the_status_is_1(self):
        status, said = self.run_with({"one": GOOD, "two": BAD}, "--seconds", "2")
        self.assertEqual(status, 1)
        self.assertRegex(said, r"\| two \| 5 \| \d+ \| 50 \| 0 \| 1 \|")
        self.assertIn("two: AddressSanitizer: heap-buffer-overflow model/x.c:1 in x_y", said)
        self.assertIn(f"build-fuzz/tests/fuzz/fuzz-two {self.build}/found/two-crash-1", said)
        self.assertTrue((self.build / "found/two-crash-1").exists())
        self.assertTrue((self.build / "found/two.log").exists())

    def test_a_target_with_a_finding_is_not_started_again(self):
        self.run_with({"two": BAD}, "--seconds", "2")
        self.assertEqual((self.build / "tests/fuzz/fuzz-two.starts").read_text(), "started\n")

    def test_an_exit_status_without_a_finding_is_a_failure(self):
        status, said = self.run_with({"one": "#!/bin/sh\nexit 3\n"}, "--seconds", "2")
        self.assertEqual(status, 1)
        self.assertIn("one: exit status 3", said)

    def test_only_those_that_are_named_run(self):
        _, said = self.run_with({"one": GOOD, "two": BAD}, "--seconds", "2", "one")
        self.assertRegex(said, r"\| one \| [1-9]")
        self.assertNotIn("two", said)


if __name__ == "__main__":
    unittest.main()
