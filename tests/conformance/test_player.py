# SPDX-License-Identifier: BSD-2-Clause
"""The output and reports of hcasim conformance and its helper: cases that fail, and wrong options.

usage: test_player.py HCASIM CONFORMANCE SCRIPT [HELPER]
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest
from xml.etree import ElementTree

HCASIM, CONFORMANCE, SCRIPT, *HELPER = [pathlib.Path(word).resolve() for word in sys.argv[1:]]
del sys.argv[1:]
WRONG_USE, FAILED = 2, 125
# A packet that must not be there, in a case whose title is markup; a case that the device cannot play; and a case that holds.
SCRIPT_TEXT = """\
case  A title with <b>markup</b> & "quotes"
rule  1.2  A <rule>.
  mr m 64
  > ACK psn=0 msn=0
case  A step that nobody knows
rule  1.3  Another rule.
  frobnicate
case  A case that holds
rule  1.4  A third rule.
  mr m 64
"""


def run(*words, **how):
    return subprocess.run(words, text=True, timeout=100, check=False,
                          **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how})


class Player(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.script = self.folder / "mine.txt"
        self.script.write_text(SCRIPT_TEXT, encoding="utf-8")

    def test_a_report_has_each_case(self):
        for program in ([HCASIM, "conformance"], [CONFORMANCE]):
            file = self.folder / "report.xml"
            done = run(*program, f"--report=junit:{file}", self.script)
            root = ElementTree.parse(file).getroot()
            suite, = root
            failed, unknown, held = suite
            self.assertEqual(done.stdout.splitlines()[-1], "1 passed, 2 failed, 0 skipped")
            self.assertEqual((done.returncode, root.get("tests"), root.get("failures"), suite.get("name")),
                             (1, "3", "2", "mine.txt"))
            self.assertEqual(failed.get("name"), 'A title with <b>markup</b> & "quotes"')
            self.assertIn(failed.find("failure").get("message"), done.stderr)
            self.assertIn("rule 1.2  A <rule>.", failed.find("failure").text)
            self.assertIn("frobnicate", unknown.find("failure").text)
            self.assertEqual((held.get("name"), len(held)), ("A case that holds", 0))

    def test_a_report_names_a_script_that_cannot_be_read(self):
        file = self.folder / "report.xml"
        done = run(HCASIM, "conformance", "--report", f"junit:{file}", self.folder / "none.txt")
        case = ElementTree.parse(file).find("testsuite/testcase")
        self.assertEqual(done.returncode, 1)
        self.assertIn("No such file", case.find("failure").get("message"))

    def test_a_report_that_cannot_be_written(self):
        must = "report must be FILE or junit:FILE, a file that can be written, but it is"
        for value in ("/nonexistent/x", "junit:/nonexistent/x", "junit:", ""):
            done = run(HCASIM, "conformance", f"--report={value}", self.script)
            self.assertEqual((done.returncode, done.stdout, done.stderr),
                             (WRONG_USE, "", f"hcasim: {must} {value or 'empty'}\n"))
        for value in ("/nonexistent/x", "junit:/nonexistent/x"):
            done = run(CONFORMANCE, f"--report={value}", self.script)
            self.assertEqual((done.returncode, done.stdout, done.stderr),
                             (WRONG_USE, "", "hcasim: report /nonexistent/x: No such file or directory\n"))
        for value in ("/dev/full", "junit:/dev/full"):
            done = run(HCASIM, "conformance", f"--report={value}", "--only", "holds", self.script)
            self.assertEqual((done.returncode, done.stderr),
                             (FAILED, "hcasim: report /dev/full: No space left on device\n"))

    def test_output_that_is_lost_is_a_failure(self):
        for words in (["--list"], ["--only", "holds"]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = run(HCASIM, "conformance", *words, self.script, stdout=full)
            self.assertEqual((done.returncode, done.stderr), (FAILED, "hcasim: standard output cannot be written\n"))

    def test_no_case_at_all(self):
        done = run(HCASIM, "conformance", "--only", "zzz", SCRIPT)
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (1, "0 passed, 0 failed, 0 skipped\n", "hcasim: no case has 'zzz' in its title or in a rule\n"))

    def test_a_key_file_is_named(self):
        file = self.folder / "peer"
        for text, why in ((None, "No such file or directory"), ("[peer]\n", "Key file does not have key “wire” in group “peer”"),
                          ("[peer]\nwire=shm:x\nhelper=a:1\naddress=x\n", "address must be an IPv4 address, but it is x")):
            if text:
                file.write_text(text, encoding="utf-8")
            done = run(CONFORMANCE, "--peer", file, SCRIPT)
            self.assertEqual((done.returncode, done.stderr), (WRONG_USE, f"hcasim: {file}: {why}\n"))

    def test_a_helper_without_its_device_ends(self):
        if not HELPER:
            self.skipTest("there is no helper: glib has no static library here")
        done = run(HCASIM, "run", "--wire", "test-player", "--", *HELPER, "--device", "none", "--port", "0")
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (WRONG_USE, "", "conformance-helper: there is no device none; devices: mlx5_0\n"))


if __name__ == "__main__":
    unittest.main()
