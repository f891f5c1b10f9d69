# SPDX-License-Identifier: BSD-2-Clause
"""The output and reports of hcasim sim for seeds that fail, with a kind of jobs that always fails.

usage: test_failures.py SIM, which is the simulator with the kinds of kinds_faulty.c
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
from xml.etree import ElementTree

SIM = pathlib.Path(sys.argv.pop(1)).resolve()
WRONG_USE, FAILED = 2, 125


def sim(*words, **how):
    return subprocess.run([SIM, *words], text=True, timeout=100, check=False,
                          **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how})


class Failures(unittest.TestCase):
    def test_the_replay_of_the_smallest_run_finds_no_smaller_one(self):
        done = sim("--workload", "liar", "--seed", "1")
        self.assertEqual(done.returncode, 1)
        smaller = re.search(r"\n  smaller, after \d+ runs: .*is a liar\n  hcasim sim (.*) --trace\n", done.stdout)
        self.assertTrue(smaller, done.stdout)
        again = sim(*smaller[1].split())
        self.assertRegex(again.stdout, r"\n  no smaller run fails \(\d+ runs\)\n")
        self.assertNotIn("smaller, after", again.stdout)

    def report(self, *words):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "report.xml")
            done = sim(*words, f"--report=junit:{file}")
            return done, ElementTree.parse(file).getroot()

    def test_a_report_has_each_seed(self):
        done, root = self.report("--workload", "liar", "--seed", "7", "--seeds", "2", "--no-shrink")
        self.assertEqual((done.returncode, root.tag, root.get("tests"), root.get("failures")), (1, "testsuites", "2", "2"))
        suite, = root
        self.assertEqual((suite.tag, suite.get("name"), suite.get("failures")), ("testsuite", "hcasim sim", "2"))
        self.assertEqual(sorted(case.get("name") for case in suite), ["seed 7", "seed 8"])
        for case in suite:
            failure, = case
            self.assertIn("is a liar", failure.get("message"))
            self.assertEqual(failure.text.count("\n  hcasim sim --seed"), 1)
            self.assertGreaterEqual(float(case.get("time")), 0)

    def test_a_report_has_the_smaller_run(self):
        done, root = self.report("--workload", "liar")
        self.assertIn(root.find("testsuite/testcase/failure").text, done.stdout)
        self.assertIn("\n  smaller, after", root.find("testsuite/testcase/failure").text)

    def test_a_report_of_seeds_that_pass(self):
        done, root = self.report("--workload", "rc", "--ops", "20")
        self.assertEqual((done.returncode, root.get("tests"), root.get("failures")), (0, "1", "0"))
        self.assertEqual(len(root.find("testsuite/testcase")), 0)

    def test_a_report_that_cannot_be_written(self):
        done = sim("--workload", "liar", "--report=junit:/nonexistent/x")
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (WRONG_USE, "", "hcasim: report /nonexistent/x: No such file or directory\n"))
        done = sim("--workload", "rc", "--ops", "20", "--report=junit:/dev/full")
        self.assertEqual((done.returncode, done.stderr), (FAILED, "hcasim: report /dev/full: No space left on device\n"))

    def test_a_simulation_that_does_not_run_leaves_no_report(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "report.xml")
            report = f"--report=junit:{file}"
            for words in ([report, "--workload", "nope"], [report, "--hosts=x"], ["--nope", report]):
                self.assertEqual(sim(*words).returncode, WRONG_USE)
                self.assertFalse(file.exists(), words)

    def test_output_that_is_lost_is_a_failure(self):
        for trace in ([], ["--trace"]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = sim("--workload", "rc", "--ops", "20", "--no-shrink", *trace, stdout=full)
            self.assertEqual((done.returncode, done.stderr), (FAILED, "hcasim: standard output cannot be written\n"))

    def test_a_key_file_is_named(self):
        for text, why in ((None, "No such file or directory"), ("[simulation]\nhosts=x\n", "hosts must be 0 to 1000, but it is x"),
                          ("[simulation]\ncolour=red\n", "there is no option colour"),
                          ("[simulation]\nlos=1\n", "there is no option los; did you mean loss?"),
                          ("[simulation]\nhosts=2\n[simulatoin]\nloss=1\n",
                           "there is no group [simulatoin]: the keys are in the group [simulation]")):
            with tempfile.TemporaryDirectory() as folder:
                file = pathlib.Path(folder, "key")
                if text:
                    file.write_text(text, encoding="utf-8")
                self.assertEqual(sim(file).stderr, f"hcasim: {file}: {why}\n")


if __name__ == "__main__":
    unittest.main()
