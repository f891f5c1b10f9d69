#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Finds static functions whose names do not say where they are (scripts/check names).

A backtrace or a profile shows a name and no file. Therefore the name of each static function
contains a word of its file's name, or outside model, fw and guest-lib/verbs a word of a folder's
name (in guest-lib/verbs/exp: exp), or a word that ABOUT lists for the file. No other file has a function of that name.
"""

import collections
import pathlib
import re
import sys

ABOUT = {
    "fw/access_reg.c": "cmd",
    "guest-lib/host/local.c": "world",
    "guest-lib/host/progress.c": "local",
    "guest-lib/verbs/kernel/devx_mem.c": "umem",
    "guest-lib/verbs/kernel/events.c": "async",
    "guest-lib/verbs/user/dv_wr.c": "wr",
    "guest-lib/verbs/user/events.c": "comp async",
    "model/eth/tir.c": "rqt",
    "model/rdma/wqe_source.c": "ring device",
    "qemu-dev/device.c": "host",
}
ATTRIBUTE = re.compile(r"(?:__attribute__\(\(\w+(?:\([^)]*\))?\)\)|G_GNUC_\w+\([^)]*\))\s*")
FUNCTION = re.compile(r"^static [^;={}()]*?\b(\w+)\([^;{]*\)\n\{", re.M)


def words_of(path):
    folders = path.parts[1:-1]
    if path.parts[0] in ("model", "fw") or folders[:1] == ("verbs",):
        folders = folders[1:] if folders == ("verbs", "exp") else ()
    words = set(path.stem.split("_")).union(*(folder.split("_") for folder in folders))
    return words | set(ABOUT.get(str(path), "").split())


def is_said(name, words):
    """Returns whether a word of the name is one of these words, is the beginning of one, or begins
    with one."""
    return any(part == word or (min(len(part), len(word)) > 2 and
                                (part.startswith(word) or word.startswith(part)))
               for part in name.split("_") for word in words)


def main():
    places = collections.defaultdict(list)
    for line in sys.stdin:
        path = pathlib.Path(line.rstrip("\n"))
        for name in FUNCTION.findall(ATTRIBUTE.sub("", path.read_text())):
            places[name].append(path)
    wrong = 0
    for name, paths in sorted(places.items()):
        for path in paths:
            if not is_said(name, words_of(path)):
                print(f"{path}: {name}() does not say its area")
                wrong += 1
        if len(paths) > 1:
            print(f"{name}() is in {', '.join(map(str, paths))}")
            wrong += 1
    return 1 if wrong else 0


sys.exit(main())
