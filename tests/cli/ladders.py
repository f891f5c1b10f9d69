# SPDX-License-Identifier: BSD-2-Clause
"""The ladders of docs/howto/ladder.md: a simulation each. Fault rules say what is lost.

`python3 ladders.py HCASIM NAME` prints for each of a hundred seeds whether it shows the ladder.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

# No fault but those of rules; all messages are as long.
CALM = ["--calm", "--hosts", "2", "--jobs", "1", "--ops", "20", "--exact"]


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
        lost = [arrow for arrow in packets(story, message) if arrow["lost"]]
        return message["title"].startswith(opcode) and len(lost) == 1 and message["repeated"] >= 1 and \
            message["status"] == "success" and len(packets(story, message)) >= 4 and \
            part in title(story, lost[0]) and lost[0]["lost"].startswith("lost: never sent (fault 1: drop ")
    return shows


def _fetches(story, message):
    kinds = [title(story, arrow) for arrow in packets(story, message)]
    return message["title"].startswith("SEND") and any("READ_REQUEST" in kind for kind in kinds) and \
        any("READ_RESP" in kind for kind in kinds) and len(kinds) >= 5


def _connects(story, message):
    kinds = [title(story, arrow) for arrow in packets(story, message)]
    return any("CONNECT" in kind for kind in kinds) and len(kinds) >= 4 and message["status"] == "success"


def _is_steered(story, message):
    kinds = [story["events"][at]["kind"] for at in message["events"]]
    titles = " ".join(story["events"][at]["title"] for at in message["events"])
    return kinds.count("flow") >= 5 and "sent" in kinds and "receive" in kinds and "VLAN_POP" in titles and "MOD_HDR" in titles


# name: the options of `hcasim sim`, and whether a message of the story shows what the ladder is about
LADDERS = {
    "write": (["--size", "3000", "--workload", "rc", "--fault", "drop WRITE nth 2"], _loss_of("RDMA_WRITE", "WRITE")),
    "read": (["--size", "3000", "--workload", "rc", "--fault", "drop READ_RESPONSE nth 2"],
             _loss_of("RDMA_READ,", "READ_RESP")),
    "rendezvous": (["--size", "3000", "--workload", "tm"], _fetches),
    "dc": (["--size", "6000", "--workload", "dc"], _connects),
    "steering": (["--workload", "steering"], _is_steered),
}


def simulate(hcasim, name, trace, seed=1):
    words = [*LADDERS[name][0], *CALM, "--seed", str(seed)]
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
    with tempfile.TemporaryDirectory() as folder:
        trace, page = (pathlib.Path(folder) / file for file in ("t.jsonl", "t.html"))
        for seed in range(1, 101):
            simulate(hcasim, name, trace, seed)
            explain(hcasim, page, trace)
            print(seed, find(read_page(page), name) is not None)


if __name__ == "__main__":
    main()
