# SPDX-License-Identifier: BSD-2-Clause
"""The headers that are installed for kinds of jobs outside of this tree: enough for the example, and none too many.

usage: test_headers.py SOURCE EXAMPLE HEADER... -- COMPILER...
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

AT = sys.argv.index("--")
COMPILER, (SOURCE, EXAMPLE, *HEADERS) = sys.argv[AT + 1:], sys.argv[1:AT]
del sys.argv[1:]


class Headers(unittest.TestCase):
    def test_the_example_includes_these_headers(self):
        flags = subprocess.run(["pkg-config", "--cflags", "glib-2.0", "libibverbs"], check=True, capture_output=True,
                               text=True).stdout.split()
        with tempfile.TemporaryDirectory(prefix="hcasim-headers.") as folder:
            for header in HEADERS:
                to = pathlib.Path(folder, header)
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(pathlib.Path(SOURCE, header), to)
            done = subprocess.run([*COMPILER, "-fms-extensions", "-I", folder, *flags, "-MM", EXAMPLE],
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            used = {word.removeprefix(f"{folder}/") for word in done.stdout.split() if word.startswith(folder)}
        self.assertEqual(used, set(HEADERS))


if __name__ == "__main__":
    unittest.main()
