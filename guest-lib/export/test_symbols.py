#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests symbols.py: what a table may have, and which functions of an archive count as defined."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SYMBOLS = pathlib.Path(__file__).with_name("symbols.py")
VERSIONS = "V_1\n    one old\nV_2 V_1\n    one\n"


class Symbols(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hcasim-symbols.")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.table = self.folder / "t.symbols"

    def symbols(self, command, *files):
        return subprocess.run([sys.executable, SYMBOLS, command, self.table, *files], capture_output=True, text=True,
                              check=False)

    def test_a_table(self):
        self.table.write_text(f"# a comment\n{VERSIONS}    two pointer since 65.0 # why\n    three fd\n")
        done = self.symbols("list")
        self.assertEqual((done.returncode, done.stdout.split()), (0, ["one@@V_2", "one@V_1", "three@@V_2", "two@@V_2"]))

    def test_what_a_line_cannot_have(self):
        for line in ("    two viod", "    two since", "    two since then", "    two 65.0", "V_3 V_2 V_1"):
            self.table.write_text(f"{VERSIONS}{line}\n")
            done = self.symbols("list")
            self.assertNotEqual(done.returncode, 0, line)
            self.assertIn(f"{self.table}:5: {line.strip()}: ", done.stderr)

    def test_a_files_own_function_defines_no_symbol(self):
        self.table.write_text("V_1\n    two pointer\n    three\n    four void\n")
        archive = self.folder / "a.o"
        code = "static __attribute__((used)) int two(void) { return 2; } int three(void); int three(void) { return 3; }"
        subprocess.run(["cc", "-x", "c", "-c", "-", "-o", archive], input=code, text=True, check=True)
        text = self.symbols("failures", archive).stdout
        self.assertIn(" void *two(void) {", text)
        self.assertIn(" void four(void) {", text)
        self.assertNotIn("three", text)


if __name__ == "__main__":
    unittest.main()
