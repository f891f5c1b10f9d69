#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests which mutants scripts/lib/random_mutants.py makes of lines of C, and which lines it leaves
alone."""
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))

import random_mutants as mutants  # noqa: E402

FILE = """/* Some code. */
static const unsigned table[] = {1, 2};

static int f(int a)
{
    /* a > 1 */
    g_assert(a > 0);
    if (a <= 3) {
        g(a + 1);
    }
    return a;
}
"""


def made(kind, line):
    return list(mutants.OPERATORS[kind](line))


class Operators(unittest.TestCase):
    def test_relational(self):
        self.assertEqual(made("relational", "    if (a <= b && c != d) {"),
                         ["    if (a < b && c != d) {", "    if (a <= b && c == d) {"])
        self.assertEqual(made("relational", "    p->x = q;"), [])

    def test_arithmetic(self):
        self.assertEqual(made("arithmetic", "    n++;"), ["    n--;"])
        self.assertEqual(made("arithmetic", "    x = a + *b;"), ["    x = a - *b;"])
        self.assertEqual(made("arithmetic", "    p->x = q;"), [])

    def test_constants(self):
        self.assertEqual(made("constant", "    return true;"), ["    return false;"])
        self.assertEqual(made("constant", "    x = 7;"), ["    x = 0;", "    x = 7 + 1;"])
        self.assertEqual(made("constant", "    x64 = 0x10 + y2;"), [])

    def test_removed_statements(self):
        self.assertEqual(made("removed statement", "    obj_unref(a, b);"), ["    ;"])
        self.assertEqual(made("removed statement", "    a->b = c(d);"), ["    ;"])
        for line in ("    return f(x);", "    int a = 1;", "    if (a) {", "      b, c);", "    break;"):
            self.assertEqual(made("removed statement", line), [], line)

    def test_removed_conditions(self):
        self.assertEqual(made("removed condition", "    } else if (a && b(c)) {"),
                         ["    } else if (true) {", "    } else if (false) {"])
        self.assertEqual(made("removed condition", "    if (a &&"), [])


class Places(unittest.TestCase):
    def test_only_code_within_functions_is_broken(self):
        lines, code = mutants.lines_of(FILE)
        self.assertEqual([lines[at].strip() for at in code], ["if (a <= 3) {", "g(a + 1);", "return a;"])

    def test_mutants_come_from_the_device_or_from_chosen_files(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name in ("model/a.c", "fw/b.c", "fw/b.h", "guest-lib/c.c", "wire/d.c"):
                (root / name).parent.mkdir(exist_ok=True)
                (root / name).write_text(FILE)
            self.assertEqual(mutants.files_of(root, None), ["model/a.c", "fw/b.c"])
            self.assertEqual(mutants.files_of(root, ["a.c", "guest-lib"]), ["model/a.c", "guest-lib/c.c"])

    def test_a_block_has_the_lines_that_make_its_place_the_only_one(self):
        lines = ["a;", "x;", "b;", "x;", ""]
        self.assertEqual(mutants.block("f.c", lines, 3, "y;"), "f.c\n b;\n-x;\n+y;")


if __name__ == "__main__":
    unittest.main()
