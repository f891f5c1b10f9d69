# SPDX-License-Identifier: BSD-2-Clause
"""Makes a page of traces and captures, or a file for Perfetto: the part behind `hcasim explain`.

The program hcasim calls this with its checked options as one JSON argument, and then the files.
"""
import json
import os
import pathlib
import sys

from pcapng import Unreadable
from perfetto import convert
from story import Story, read_all

HERE = pathlib.Path(__file__).parent
FAILED = 1


def make_page(story, name):
    """One file with everything in it: it works from a disk, without a network."""
    # "</" would end the script that the data is in
    data = json.dumps(story, separators=(",", ":")).replace("</", "<\\/")
    page = (HERE / "page.html").read_text(encoding="utf-8")
    for mark, part in (("/*STYLE*/", (HERE / "page.css").read_text(encoding="utf-8")),
                       ("/*DRAW*/", (HERE / "draw.js").read_text(encoding="utf-8")),
                       ("/*SCRIPT*/", (HERE / "page.js").read_text(encoding="utf-8")),
                       ("<!--NAME-->", name.replace("&", "&amp;").replace("<", "&lt;")),
                       ("/*STORY*/", data)):
        before, after = page.split(mark)
        page = before + part + after
    return page


def main():
    options, files = json.loads(sys.argv[1]), sys.argv[2:]
    sys.stdout.reconfigure(errors="surrogateescape")    # names of files need not be UTF-8
    try:
        story = Story(*read_all(files)).as_json()
        if not story["events"]:
            raise Unreadable(f"{', '.join(files)}: there is no event and no RoCE packet in it")
        names = ", ".join(os.fsencode(pathlib.Path(file).name).decode("utf-8", "replace") for file in files)
        if options["perfetto"]:
            pathlib.Path(options["perfetto"]).write_text(json.dumps(convert(story)), encoding="utf-8")
        if options["output"]:
            pathlib.Path(options["output"]).write_text(make_page(story, names), encoding="utf-8")
    except (OSError, Unreadable) as error:
        print(f"hcasim: explain: {error}", file=sys.stderr)
        return FAILED
    for kind, name in (("perfetto", "a trace for Perfetto"), ("output", "a page")):
        if options[kind]:
            print(f"{options[kind]}: {name} with {len(story['events'])} events, {len(story['arrows'])} packets and "
                  f"{len(story['messages'])} messages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
