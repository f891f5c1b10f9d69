# SPDX-License-Identifier: BSD-2-Clause
"""The four ladders of docs/howto/ladder.md: a simulation each, whose seed decides what happens.

A change of the device may change what a seed does. `python3 ladders.py HCASIM NAME` looks for seeds that show it.
"""
import json
import pathlib
import subprocess
import sys

# No fault but loss.
CALM = ["--flaps", "0", "--partitions", "0", "--errors", "0", "--corruption", "0", "--duplication", "0", "--reorder", "0",
        "--strays", "0", "--jitter", "0", "--hosts", "2", "--jobs", "1", "--size", "9000"]


def _lost(story, opcode):
    return [arrow for arrow in story["arrows"] if arrow["lost"] and opcode in title(story, arrow)]


def title(story, arrow):
    return story["events"][arrow["sent"]]["title"]


def packets(story, message):
    """The arrows of a message."""
    number = story["messages"].index(message)
    return [arrow for arrow in story["arrows"] if arrow["sent"] >= 0 and
            story["events"][arrow["sent"]]["message"] == number]


def _loss_of(opcode, part):
    """Whether a message loses one packet of that part, which is the only one lost, and succeeds."""
    def shows(story, message):
        return message["title"].startswith(opcode) and message["lost"] == 1 and message["repeated"] >= 1 and \
            message["status"] == "success" and len(packets(story, message)) >= 4 and \
            len(_lost(story, "")) == 1 and len(_lost(story, part)) == 1
    return shows


def _fetches(story, message):
    kinds = [title(story, arrow) for arrow in packets(story, message)]
    return message["title"].startswith("SEND") and any("READ_REQUEST" in kind for kind in kinds) and \
        any("READ_RESP" in kind for kind in kinds) and len(kinds) >= 5


def _connects(story, message):
    kinds = [title(story, arrow) for arrow in packets(story, message)]
    return any("CONNECT" in kind for kind in kinds) and len(kinds) >= 5 and message["status"] == "success" and \
        not story["events"][message["events"][0]]["host"]


# name: the options of `hcasim sim`, and whether a message of the story shows what the ladder is about
LADDERS = {
    "write": (["--seed", "144", "--workload", "rc", "--ops", "4", "--loss", "4"], _loss_of("RDMA_WRITE,", "WRITE")),
    "read": (["--seed", "167", "--workload", "rc", "--ops", "4", "--loss", "4"], _loss_of("RDMA_READ,", "READ_RESP")),
    "rendezvous": (["--seed", "12", "--workload", "tm", "--ops", "3", "--loss", "0"], _fetches),
    "dc": (["--seed", "11", "--workload", "dc", "--ops", "4", "--loss", "0"], _connects),
}


def simulate(hcasim, name, trace, seed=None):
    words = [*LADDERS[name][0], *CALM]
    if seed is not None:
        words[1] = str(seed)
    subprocess.run([hcasim, "sim", *words, "--trace-file", str(trace)], check=True, stdout=subprocess.DEVNULL, timeout=100)


def read_page(page):
    """The story in a page."""
    text = pathlib.Path(page).read_text(encoding="utf-8")
    begin = text.index('<script id="story" type="application/json">') + len('<script id="story" type="application/json">')
    return json.loads(text[begin:text.index("</script>", begin)])


def find(story, name):
    """The number of the first message that shows what the ladder is about, or None."""
    return next((number for number, message in enumerate(story["messages"]) if LADDERS[name][1](story, message)), None)


def telling(story, number):
    """The event that a picture selects: the packet that was lost, or one with a header of its own."""
    arrows = packets(story, story["messages"][number])
    best = [arrow for arrow in arrows if arrow["lost"]] or \
        [arrow for arrow in arrows if "READ_REQUEST" in title(story, arrow)] or arrows
    return best[0]["sent"]


def explain(hcasim, page, *files, perfetto=None):
    words = ["-o", str(page)] + (["--perfetto", str(perfetto)] if perfetto else [])
    return subprocess.run([hcasim, "explain", *words, *map(str, files)], check=False, capture_output=True, text=True,
                          timeout=100)


def main():
    hcasim, name = sys.argv[1:]
    for seed in range(1, 1000):
        simulate(hcasim, name, "/tmp/ladders.jsonl", seed)
        explain(hcasim, "/tmp/ladders.html", "/tmp/ladders.jsonl")
        if find(read_page("/tmp/ladders.html"), name) is not None:
            print(seed)


if __name__ == "__main__":
    main()
