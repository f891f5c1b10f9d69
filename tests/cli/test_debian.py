# SPDX-License-Identifier: BSD-2-Clause
"""The lists of debian/: each file that `meson install` installs is in one package, or is left out by name.

usage: test_debian.py BUILD SOURCE
"""
import fnmatch
import json
import os
import pathlib
import sys
import unittest

SOURCE, BUILD = pathlib.Path(sys.argv.pop()), pathlib.Path(sys.argv.pop())


def patterns(path):
    return [line for line in path.read_text().splitlines() if line and not line.startswith("#")]


def is_in(file, pattern):
    """dh_install takes a folder with all that is in it."""
    return any(fnmatch.fnmatchcase(str(part), pattern) for part in (file, *file.parents))


def installed():
    """The files that would be installed, as if below /usr."""
    options = json.loads((BUILD / "meson-info/intro-buildoptions.json").read_text())
    prefix = next(option["value"] for option in options if option["name"] == "prefix")
    paths = json.loads((BUILD / "meson-info/intro-installed.json").read_text()).values()
    return {pathlib.PurePath("usr", os.path.relpath(path, prefix)) for path in paths}


class Lists(unittest.TestCase):
    def setUp(self):
        self.lists = {path.name: patterns(path) for path in (SOURCE / "debian").glob("*.install")}
        self.left_out = patterns(SOURCE / "debian/not-installed")

    def test_each_file_has_one_package(self):
        for file in installed():
            names = [name for name, lines in self.lists.items() if any(is_in(file, line) for line in lines)]
            if any(is_in(file, line) for line in self.left_out):
                names.append("not-installed")
            self.assertEqual(len(names), 1, f"{file} is in {names or 'no list of debian/'}")

    def test_each_line_has_a_file(self):
        """Other packages have files of builds with other options."""
        for line in [*self.lists["hcasim.install"], *self.left_out]:
            self.assertTrue(any(is_in(file, line) for file in installed()), line)


if __name__ == "__main__":
    unittest.main()
