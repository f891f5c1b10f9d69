# SPDX-License-Identifier: BSD-2-Clause
"""The output and reports of hcasim conformance and its helper: cases that fail, and wrong options.

usage: test_player.py HCASIM CONFORMANCE SCRIPT [HELPER]
"""
import contextlib
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import unittest
from xml.etree import ElementTree

HCASIM, CONFORMANCE, SCRIPT, *HELPER = [pathlib.Path(word).resolve() for word in sys.argv[1:]]
del sys.argv[1:]
WRONG_USE, FAILED = 2, 125
# A packet that does not come, in a case whose title is markup; a step with a mistake; and a case that holds.
SCRIPT_TEXT = """\
case  A title with <b>markup</b> & "quotes"
rule  1.2  A <rule>.
  qp q rc
  > ACK psn=0 msn=0
case  A step with a mistake
rule  1.3  Another rule.
  mr m 64 rihgts=rr
case  A case that holds
rule  1.4  A third rule.
  mr m 64
"""


# A case's steps, and what is said of the last one.
MISTAKES = (
    (["mr m"], "its length is missing"),
    (["mr m x"], "'x' is no number"),
    (["mr m 64 rihgts=rr"], "'rihgts=rr' is not known here; did you mean rights=?"),
    (["mr m 64 colour=red"], "'colour=red' is not known here; this step knows: rights= paged other_pd dm errno="),
    (["mr m 64 rights=x"], "'x' is none of: none all lw rw rr ra mw"),
    (["qp q rc", "< SEND_ONYL psn=0"], "the transport of 'q' has no opcode 'SEND_ONYL'; did you mean SEND_ONLY?"),
    (["qp q ud", "< XYZZY"], "the transport of 'q' has no opcode 'XYZZY'; opcodes: SEND_ONLY SEND_ONLY_IMM CNP"),
    (["qp q rc", "> AKC"], "the transport of 'q' has no opcode 'AKC'; did you mean ACK?"),
    (["qp q rc", "< SEND_ONLY psn=0 dta=16"], "'dta=16' is not known here; did you mean data=?"),
    (["qp q rc", "recv q n:64"], "there is no region for 'n:64'"),
    (["qp q rc", "destroy q", "modify q ERR"], "'q' is destroyed"),
    (["qp q rc", "wc q XYZZY"], "'XYZZY' is none of: SEND WRITE READ CAS FAA LOCAL_INV BIND UMR MEMCPY RECV RECV_IMM LOC_LEN_ERR "
     "LOC_QP_OP_ERR LOC_PROT_ERR WR_FLUSH_ERR MW_BIND_ERR BAD_RESP_ERR LOC_ACCESS_ERR REM_INV_REQ_ERR REM_ACCESS_ERR "
     "REM_OP_ERR RETRY_EXC_ERR RNR_RETRY_EXC_ERR REM_ABORT_ERR"),
    (["qp q rc", "mw w", "send q BIND"], "mw= is missing: the window"),
    (["+ 5"], "'5' is no time, such as 4.2us, 67ms, 2s; 100s is the longest"),
    (["+ 101s"], "'101s' is no time, such as 4.2us, 67ms, 2s; 100s is the longest"),
    (["mr m 0xffffff", "mr n 1", "mr o 1"], "a region has 1 byte or more, and all regions of a case have up to 16777216 bytes"),
    (["+ 1e30s"], "'1e30s' is no time, such as 4.2us, 67ms, 2s; 100s is the longest"),
    (["device profile=cx9"], "there is no profile 'cx9'; profiles: cx4 cx4lx cx5 cx6dx cx7 cx8"),
)
# The lines of a script, and the line that refuses it: no case is played.
WRONG_SCRIPTS = (
    (["case  A", "rule  1  B", "frobnicate"], "3: there is no step 'frobnicate'; steps: < > + mr dereg srq memory qp modify "
     "query destroy resize mw arm notice recv send wc event key null check device"),
    (["case  A", "rule  1  B", "mr m 64", "", "destory m"], "5: there is no step 'destory'; did you mean destroy?"),
    (["case  A", "rule  1  B", "mr m 64", "device profile=cx5"],
     "4: the step 'device' must be the first one of its case"),
    (["mr m 64"], "1: there is no case yet"),
)
WIRES = "wire must be if:NAME, tap:NAME, unix:OURS:THEIRS, shm:NAME or another URI of hcasim help wire, but it is"
GOOD = "wire=shm:x\nhelper=a:1\naddress=10.0.0.200\n"
# Key files of --peer, and what is said of them.
WRONG_PEERS = (
    (None, "No such file or directory"),
    ("[peer]\n", "the key 'wire' is missing"),
    ("[peer]\n" + GOOD.replace("helper=a:1\n", ""), "the key 'helper' is missing"),
    ("[peer]\n" + GOOD.replace("10.0.0.200", "x"), "address must be an IPv4 address such as 10.0.0.7, but it is x"),
    ("[peer]\n" + GOOD.replace("a:1", "a"), "helper must be HOST:PORT, but it is a"),
    ("[peer]\n" + GOOD.replace("shm:x", "lab"), f"{WIRES} lab"),
    ("[peer]\n" + GOOD + "mac=01:00:00:00:00:01\n",
     "mac must be a unicast MAC address such as 02:00:00:00:00:07, but it is 01:00:00:00:00:01"),
    ("[peer]\n" + GOOD + "patience_ms=1s\n", "patience_ms must be 1 to 600000, but it is 1s"),
    ("[peer]\nadress=10.0.0.200\n",
     "there is no key 'adress'; did you mean address? The keys are: wire helper address mac settle_ms patience_ms"),
    ("[peer]\ncolour=red\n",
     "there is no key 'colour'; the keys are: wire helper address mac settle_ms patience_ms"),
    ("[peers]\n" + GOOD, "there is no group [peers]: the keys are in the group [peer]"),
    (GOOD, "Key file does not start with a group"),
)
# Wires that cannot be opened, and why.
WRONG_WIRES = (
    ("tap:nope0", r"there is no interface 'nope0': ip tuntap add nope0 mode tap && ip link set nope0 up"),
    ("if:nope0", r"there is no interface 'nope0'; interfaces: .*\blo\b.*"),
    ("unix:a", r"'a' is not OURS:THEIRS, two paths"),
    ("unix:/nonexistent/a:b", r"/nonexistent/a: No such file or directory"),
)


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
            failed, mistaken, held = suite
            self.assertEqual(done.stdout.splitlines()[-1], "1 passed, 2 failed, 0 skipped")
            self.assertEqual((done.returncode, root.get("tests"), root.get("failures"), suite.get("name")),
                             (WRONG_USE, "3", "2", "mine.txt"))
            self.assertEqual(failed.get("name"), 'A title with <b>markup</b> & "quotes"')
            self.assertIn(failed.find("failure").get("message"), done.stderr)
            self.assertIn("rule 1.2  A <rule>.", failed.find("failure").text)
            self.assertIn("rihgts", mistaken.find("failure").text)
            self.assertEqual((held.get("name"), len(held)), ("A case that holds", 0))

    def test_a_rule_that_does_not_hold_has_another_status_than_a_mistake(self):
        for only, status in (("markup", 1), ("mistake", WRONG_USE), ("holds", 0)):
            self.assertEqual(run(CONFORMANCE, "--only", only, self.script).returncode, status)

    def test_a_mistake_is_named_in_one_line(self):
        for steps, why in MISTAKES:
            self.script.write_text("\n".join(["case  A", "rule  1  B", *steps, ""]), encoding="utf-8")
            done = run(CONFORMANCE, self.script)
            self.assertEqual((done.returncode, done.stderr),
                             (WRONG_USE, f"{self.script}:{2 + len(steps)}: {steps[-1]}: {why}\n"))

    def test_a_wrong_script_is_refused_before_a_case_is_played(self):
        report, wrong = self.folder / "report.md", self.folder / "wrong.txt"
        for lines, why in WRONG_SCRIPTS:
            wrong.write_text("\n".join([*lines, ""]), encoding="utf-8")
            for more in ([f"--report={report}"], [f"--report=junit:{report}"], ["--list"]):
                done = run(CONFORMANCE, *more, SCRIPT, wrong)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (WRONG_USE, "", f"hcasim: {wrong}:{why}\n"))
                self.assertFalse(report.exists())
        done = run(CONFORMANCE, SCRIPT, self.folder / "none.txt")
        self.assertEqual((done.returncode, done.stdout), (WRONG_USE, ""))
        self.assertRegex(done.stderr, "^hcasim: .*/none.txt.: No such file or directory\n$")

    def test_a_report_in_markdown_has_no_empty_table(self):
        report = self.folder / "report.md"
        run(CONFORMANCE, f"--report={report}", "--only", "holds", self.script)
        self.assertEqual(report.read_text(encoding="utf-8"), "1 cases hold, 0 do not, 0 were not tried.\n")
        run(CONFORMANCE, f"--report={report}", "--only", "markup", self.script)
        self.assertRegex(report.read_text(encoding="utf-8"),
                         r"^0 cases hold, 1 do not, 0 were not tried\.\n\n## What does not hold\n\n"
                         r"\| rule \| case \| step, and what came \|\n\|---\|---\|---\|\n\| 1\.2  A <rule>\. \| .* \|\n$")

    def test_an_unknown_kind_of_report_is_refused(self):
        for program in ([HCASIM, "conformance"], [CONFORMANCE]):
            done = run(*program, "--report", "xml:r.xml", self.script, cwd=self.folder)
            self.assertEqual((done.returncode, done.stdout, done.stderr),
                             (WRONG_USE, "", "hcasim: there is no kind of report 'xml': say FILE for Markdown or junit:FILE "
                              "for JUnit XML (a file of that name is ./xml:r.xml)\n"))
            self.assertFalse((self.folder / "xml:r.xml").exists())

    def test_a_report_that_cannot_be_written(self):
        for value, why in (("/nonexistent/x", "/nonexistent/x: No such file or directory"), ("junit:", "empty"),
                           ("junit:/nonexistent/x", "/nonexistent/x: No such file or directory"), ("", "empty")):
            done = run(HCASIM, "conformance", f"--report={value}", self.script)
            self.assertEqual((done.returncode, done.stdout, done.stderr),
                             (WRONG_USE, "", f"hcasim: report must be a file that can be written, but it is {why}\n"))
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

    def test_a_wrong_key_file_is_refused(self):
        file = self.folder / "peer"
        for text, why in WRONG_PEERS:
            if text:
                file.write_text(text, encoding="utf-8")
            done = run(CONFORMANCE, "--peer", file, SCRIPT)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (WRONG_USE, "", f"hcasim: {file}: {why}\n"))
        # The groups of other commands may be in the same file.
        file.write_text("[hcasim]\nmtu=1500\n[simulation]\nhosts=3\n[peer]\n" + GOOD, encoding="utf-8")
        self.assertEqual(run(CONFORMANCE, "--list", "--peer", file, SCRIPT).returncode, 0)

    def peer(self, **keys):
        """A key file. Without another patience, who waits for something fails this test."""
        file = self.folder / "peer"
        keys = {"address": "10.0.0.200", "patience_ms": 600000, **keys}
        file.write_text("".join(["[peer]\n", *(f"{key}={value}\n" for key, value in keys.items())]), encoding="utf-8")
        return file

    def refused(self, file, why):
        """The player ends at once, and plays no case."""
        done = run(CONFORMANCE, "--peer", file, SCRIPT)
        self.assertEqual((done.returncode, done.stdout), (WRONG_USE, ""))
        self.assertRegex(done.stderr, f"^hcasim: {re.escape(str(file))}: {why}\n$")

    def test_a_wire_that_cannot_be_opened_is_refused(self):
        for wire, why in WRONG_WIRES:
            self.refused(self.peer(wire=wire, helper="127.0.0.1:1"), f"wire={wire}: {why}")

    def test_a_helper_that_cannot_be_called_is_refused(self):
        for helper, why in (("127.0.0.1:1", "Connection refused"), ("127.0.0.1:no-such-port", r"Servname not supported.*")):
            self.refused(self.peer(wire=f"unix:{self.folder}/a:{self.folder}/b", helper=helper), f"no helper at {helper}: {why}")

    def test_a_helper_that_does_not_answer_is_refused(self):
        with contextlib.ExitStack() as stack:
            full = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
            for _ in range(4):  # a full queue of calls: the kernel ignores further ones, as a firewall does
                caller = stack.enter_context(socket.socket())
                caller.setblocking(False)
                caller.connect_ex(full.getsockname())
            helper = f"127.0.0.1:{full.getsockname()[1]}"
            self.refused(self.peer(wire=f"unix:{self.folder}/a:{self.folder}/b", helper=helper, patience_ms=50),
                         f"no helper at {helper}: Connection timed out")

    def test_a_helper_and_the_wire_of_its_device(self):
        if not HELPER:
            self.skipTest("there is no helper: glib has no static library here")
        name = f"test-player-{os.getpid()}"
        with subprocess.Popen([HCASIM, "run", "--wire", name, "--ip", "10.0.0.7", "--", *HELPER, "--port", "0"],
                              stdout=subprocess.PIPE, text=True) as helper:
            try:
                line = helper.stdout.readline()
                self.assertRegex(line, r"^waits for calls at port \d+$")
                at = f"127.0.0.1:{line.split()[-1]}"
                self.refused(self.peer(wire=f"shm:{name}-other", helper=at),
                             f"wire=shm:{name}-other: nobody else is on this wire, so it is not the wire of the helper's "
                             "device, which has the address 10.0.0.7")
                wire = f"unix:{self.folder}/a:{self.folder}/b"
                self.refused(self.peer(wire=wire, helper=at, patience_ms=700),
                             f"wire={wire}: nobody on this wire has the address 10.0.0.7, which is that of the helper's device")
                # With the right wire, cases are played. The helper finds the mistakes in its steps.
                self.script.write_text("case  A\nrule  1  B\nmr m x\ncase  C\nrule  1  B\nmr m 64\n", encoding="utf-8")
                done = run(CONFORMANCE, "--peer", self.peer(wire=f"shm:{name}", helper=at, patience_ms=10000), self.script)
                self.assertEqual((done.returncode, done.stdout.splitlines()[1:], done.stderr),
                                 (WRONG_USE, ["ok   C", "1 passed, 1 failed, 0 skipped"],
                                  f"{self.script}:3: mr m x: 'x' is no number\n"))
            finally:
                helper.kill()

    def test_a_helper_without_its_device_ends(self):
        if not HELPER:
            self.skipTest("there is no helper: glib has no static library here")
        done = run(HCASIM, "run", "--wire", "test-player", "--", *HELPER, "--device", "none", "--port", "0")
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (WRONG_USE, "", "conformance-helper: there is no device none; devices: mlx5_0\n"))


if __name__ == "__main__":
    unittest.main()
