#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the old and the new program of each feature under hcasim run, and compares what they print.

    compare.py BUILD [old | new | only] [FEATURE ...]     one kind of programs; FEATURE: only these

Both programs must print the same lines, which are in BOTH; where the old one prints others, these are in OLD. A feature
that rdma-core does not have has one program, with its lines in ONLY. Exit status 0: all programs printed these lines.
"""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
# Features that both interfaces have (old_NAME, new_NAME).
BOTH = {
    "accelerated": "3 messages, 3 completions, data right",
    "atomics": "atomics: global; PCI atomics: 3 3 3\nfetch and add: was 5, is 12\ncompare and swap: was 12, is 99",
    "compression": "32 messages, the lengths of 32 right",
    "contiguous": "4194304 bytes, the last page right",
    "dc": "2000 bytes at the target, right\nwith a wrong key: transport retry counter exceeded",
    "dc_odp": "DC pages on demand: send yes, write yes, receive from an SRQ yes",
    "device_memory": "from the device: right\nto the device: right",
    "gid_type": "GID 0: RoCE v2\nGID 1: RoCE v2\nGID 2: RoCE v1\nGID 3: RoCE v1",
    "inline_receive": "in the CQE: 20 bytes, after the poll right\nin the buffer: 200 bytes, after the poll right",
    "moderation": "events of 1 completion each: the second waits for the period\n"
                  "the second of 4 completions: at once",
    "out_of_order": "8 WRITEs, data right",
    "prefetch": "before: 0 pages\nafter: 2 pages\ndata: right",
    "raw_ethernet": "128 bytes for port 6000, payload right\n"
                    "sums: IP 0000, UDP 0000; checked by the device: yes",
    "reregister": "with the right to write: success\nwithout it: remote access error",
    "resource_domain": "queues of a domain: data right\nthe domain ends: 0",
    "rtt": "10 round trips, each takes time",
    "striding": "the device has strides: yes\na queue with strides: made",
    "tag_matching": "tag abcd, 1000 bytes, right; matched: yes",
    "time_stamps": "clock: 1000000 kHz, mask 7fffffffffffffff\nthe stamp lies between two readings: yes\n"
                   "in nanoseconds, too: yes",
    "tso": "segment of 1054 bytes at 0, IP sum 0000, payload right\n"
           "segment of 1054 bytes at 1000, IP sum 0000, payload right\n"
           "segment of 1054 bytes at 2000, IP sum 0000, payload right",
    "umr": "two ranges: right\na block with gaps: right",
    "vlan": "128 bytes, the tag was taken out: yes",
    "windows": "bound: success, data right\nno longer bound: remote access error",
}
# The old kernel did not look at what the PCI bus guarantees
# (mlx5_ib_get_atomic_caps()), and libmlx5 does.
OLD = {"atomics": BOTH["atomics"].replace("global", "between HCAs")}
# Features of experimental verbs alone (only_NAME).
ONLY = {
    "as_notify": "a CQ with AS notify: Operation not supported\nexit status 77",
    "byte_order": "answers in the other order: no\na queue pair for them: Invalid argument",
    "capabilities": "CAPI, which needs a POWER machine: no\nVXLAN: no\ntunnels: yes\npacket pacing: yes\n"
                    "padding to cache lines: yes\ndynamic connections: yes",
    "cross_channel": "before: nothing\nafter: written\n40 + 2 = 42",
    "dc_info": "a trace of CNAKs: no, refused",
    "erasure_code": "parity: right\nthe lost block: right",
    "flow_entropy": "flow entropy: 0",
    "key_violations": "event 32 for the target\ncounted: yes",
    "masked_atomics": "masked swap: was 1122334455667788, is 112233445566ff88\n"
                      "fields added: was 112233445566ff88, is 1122334555660088",
    "nop": "first wr_id 3, then 9",
    "peer_async": "posted: nothing\ncommitted: written",
    "peer_sync": "for a peer: No such device\nwithout an attribute: Invalid argument",
    "physical": "all of memory: not permitted",
    "shared_region": "8192 bytes at another address: yes\nwritten to one, read from the other: right",
    "tunneled_atomic": "tunneled atomics: yes\na WRITE that adds 2 to 40: 42\nwith pages on demand: refused",
    "umr_list": "room for 8 ranges\n8 ranges by a list in memory: right",
}
SECONDS = 120


def printed(build, program):
    """Returns the program's output, and its exit status and messages if it failed."""
    try:
        result = subprocess.run(
            [ROOT / "scripts/hcasim", "run", "--build", build, "--wire", f"migration-{os.getpid()}", "--devices", "2",
             "--", pathlib.Path(build) / "tests/programs/migration" / program],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"no end within {SECONDS} seconds"
    output = result.stdout.strip()
    return output if not result.returncode else f"{output}\nexit status {result.returncode}\n{result.stderr}".strip()


def main():
    kinds_of_all = ("old", "new", "only")
    build, names = sys.argv[1], [name for name in sys.argv[2:] if name not in kinds_of_all]
    wanted = [kind for kind in kinds_of_all if kind in sys.argv[2:]] or kinds_of_all
    wrong = 0
    for table, kinds in ((BOTH, ("old", "new")), (ONLY, ("only",))):
        for name, expected in table.items():
            for kind in [k for k in kinds if k in wanted] if not names or name in names else ():
                found = printed(build, f"{kind}_{name}")
                expected = OLD.get(name, expected) if kind == "old" else table[name]
                print(f"{kind} {name}: {'ok' if found == expected else 'not as expected'}", flush=True)
                if found != expected:
                    wrong += 1
                    print("    expected: " + expected.replace("\n", "\n              "))
                    print("    found:    " + found.replace("\n", "\n              "), flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
