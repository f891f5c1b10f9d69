# SPDX-License-Identifier: BSD-2-Clause
"""usage: test_explain.py HCASIM

Tests traces in JSON and what `hcasim explain` makes of them: the page's story, the file for Perfetto, captures.
"""
import collections
import json
import os
import pathlib
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
import unittest

import hostile_captures
import ladders

EXPLAIN = pathlib.Path(__file__).resolve().parents[2] / "cli/explain"
sys.path.insert(0, str(EXPLAIN))

import story as stories  # noqa: E402

HCASIM = ""


class Explained(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.trace = self.path("trace.jsonl")

    def path(self, name):
        return pathlib.Path(self.folder.name) / name

    def explain(self, *files, perfetto=None):
        return ladders.explain(HCASIM, self.path("page.html"), *files, perfetto=perfetto)

    def story(self, *files):
        result = self.explain(*files)
        self.assertEqual(result.returncode, 0, result.stderr)
        return ladders.read_page(self.path("page.html"))

    def simulate(self, name, *more):
        options, _ = ladders.LADDERS[name]
        subprocess.run([HCASIM, "sim", *options, *ladders.CALM, "--trace-file", str(self.trace), *more], check=True,
                       stdout=subprocess.DEVNULL, timeout=100)


class Trace(Explained):
    def test_each_line_is_an_event_with_time_host_and_kind(self):
        self.simulate("write")
        lines = self.trace.read_text(encoding="utf-8").splitlines()
        head = json.loads(lines[0])
        self.assertEqual((head["hcasim"], head["version"]), ("trace", 1))
        kinds = collections.Counter()
        for line in lines[1:]:
            event = json.loads(line)
            self.assertIsInstance(event["t"], int)
            self.assertIn(event["host"], ("10.0.0.1", "10.0.0.2"))
            kinds[event["e"]] += 1
        for kind in ("command", "state", "post", "doorbell", "wqe", "sent", "received", "receive", "cqe", "poll"):
            self.assertGreater(kinds[kind], 0, kind)

    def test_fields_have_the_names_of_the_layouts(self):
        self.simulate("write")
        events = [json.loads(line) for line in self.trace.read_text(encoding="utf-8").splitlines()[1:]]
        wqe = next(event for event in events if event["e"] == "wqe" and event["opcode"] == "RDMA_WRITE")
        self.assertEqual(set(wqe["fields"]["raddr"]), {"raddr", "rkey"})
        self.assertEqual(set(wqe["fields"]["data"]), {"byte_count", "lkey", "addr"})
        cqe = next(event for event in events if event["e"] == "cqe" and event["opcode"].startswith("RESP"))
        self.assertIn("byte_cnt", cqe["fields"])

    def test_a_program_that_waits_gets_events_and_interrupts(self):
        subprocess.run([HCASIM, "run", "--wire", f"explain-{id(self)}", "--trace-file", str(self.trace), "--", "sh", "-c",
                        "ibv_rc_pingpong -p 18565 -e -g 1 -n 5 >&2 & sleep 1; ibv_rc_pingpong -p 18565 -e -g 1 -n 5 127.0.0.1 >&2; wait"],
                       check=True, stderr=subprocess.DEVNULL, timeout=60)
        kinds = {json.loads(line).get("e") for line in self.trace.read_text(encoding="utf-8").splitlines()}
        self.assertLessEqual({"eqe", "interrupt", "post", "poll"}, kinds)

    def test_the_same_seed_makes_the_same_events(self):
        runs = []
        for _ in range(2):
            self.simulate("dc")
            # commands have addresses of this process
            runs.append([line for line in self.trace.read_text(encoding="utf-8").splitlines()[1:]
                         if '"e":"command"' not in line])
        self.assertEqual(*runs)

    def test_processes_of_a_run_share_the_file_and_the_next_run_begins_anew(self):
        for _ in range(2):
            subprocess.run([HCASIM, "run", "--wire", f"explain-{id(self)}", "--trace-file", str(self.trace), "--", "sh", "-c",
                            "ibv_devinfo -v >&2 & ibv_devinfo -v >&2; wait"], check=True, stderr=subprocess.DEVNULL,
                           timeout=60)
            events = [json.loads(line) for line in self.trace.read_text(encoding="utf-8").splitlines()[1:]]
            self.assertEqual(len({event["host"] for event in events}), 2)

    def test_a_killed_process_leaves_whole_lines(self):
        command = [HCASIM, "run", "--wire", f"explain-{id(self)}", "--trace-file", str(self.trace), "--", "ibv_rc_pingpong",
                   "-g", "1"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            for _ in range(600):
                if self.trace.exists() and '"to":"INIT"' in self.trace.read_text(encoding="utf-8"):
                    break           # it has its QP, and waits for a peer
                time.sleep(0.05)
            process.kill()
        text = self.trace.read_text(encoding="utf-8")
        self.assertTrue(text.endswith("\n"))
        states = [event for event in map(json.loads, text.splitlines()) if event.get("e") == "state"]
        self.assertEqual([event["to"] for event in states], ["INIT"])

    def test_a_pipe_is_refused(self):
        result = subprocess.run([HCASIM, "run", "--trace-file", "/dev/null", "--", "ibv_devinfo"], check=False,
                                capture_output=True, text=True, timeout=60)
        self.assertIn("no regular file", result.stderr)


class Story(Explained):
    def test_a_message_goes_from_its_posting_to_the_completion_at_the_other_side(self):
        self.simulate("rendezvous")
        story = self.story(self.trace)
        message = next(message for message in story["messages"] if message["title"].startswith("SEND"))
        steps = [(story["events"][at]["kind"], story["events"][at]["host"]) for at in message["events"]]
        here, there = steps[0][1], next(host for kind, host in steps if kind == "received")
        self.assertEqual(steps[0][0], "post")
        self.assertNotEqual(here, there)
        self.assertIn(("cqe", there), steps)
        self.assertIn(("poll", there), steps)

    def test_a_lost_packet_and_its_repetition_are_the_messages_own(self):
        self.simulate("write")
        story = self.story(self.trace)
        number = ladders.find(story, "write")
        self.assertIsNotNone(number, "the seed does not show it any more; ladders.py tells which do")
        message = story["messages"][number]
        arrows = ladders.packets(story, message)
        lost = [arrow for arrow in arrows if arrow["lost"]]
        self.assertEqual(len(lost), 1)
        self.assertEqual(lost[0]["received"], -1)
        again = [arrow for arrow in arrows if arrow["repeated"]]
        self.assertIn(ladders.title(story, lost[0]), [ladders.title(story, arrow) for arrow in again])
        self.assertIn("repeated: NAK PSN sequence error", {arrow["why"] for arrow in again})

    def test_a_frame_leads_through_the_tables_of_both_hosts(self):
        """Whatever the rules say: a frame that was sent went through tables before, and one that arrived afterwards."""
        self.simulate("steering")
        story = self.story(self.trace)
        self.assertEqual(len(story["messages"]), 20)
        arrived = 0
        for message in story["messages"]:
            events = [story["events"][at] for at in message["events"]]
            kinds = [event["kind"] for event in events]
            walks = [event for event in events if event["kind"] == "flow"]
            self.assertEqual({event["data"]["domain"] for event in walks if event["host"] == message["host"]}, {"NIC_TX"})
            self.assertEqual(kinds[:4], ["post", "doorbell", "wqe", "flow"])
            if "sent" not in kinds:
                self.assertIn("DROP", walks[-1]["title"])
                continue
            self.assertEqual(message["packets"], 1)
            way = kinds[kinds.index("received"):]
            self.assertEqual(way[1], "flow")
            self.assertEqual(kinds.count("receive"), sum(
                event["kind"] == "cqe" and not event["data"]["of_send"] for event in events))
            arrived += "receive" in kinds
        self.assertGreater(arrived, 5)

    def test_a_capture_alone_has_the_packets(self):
        capture = self.path("capture.pcapng")
        self.simulate("write", "--capture", str(capture))
        traced, captured = self.story(self.trace), self.story(capture)
        packets = [collections.Counter(re.sub(r",.*| [0-9.]+ ms", "", ladders.title(story, arrow)) for arrow in story["arrows"]
                                       if arrow["sent"] >= 0) for story in (traced, captured)]
        self.assertEqual(*packets)

    def test_packets_are_the_same_in_trace_and_capture_whatever_their_addresses(self):
        """GID 0 is an IPv6 address, and packets by GID 3 are of RoCE version 1."""
        for gid in "0", "3":
            capture = self.path(f"{gid}.pcapng")
            ends = [f"ibv_rc_pingpong -p 18565 -g {gid} -n 5 {peer} >&2" for peer in ("", "127.0.0.1")]
            subprocess.run([HCASIM, "run", "--wire", f"explain-{id(self)}", "--trace-file", str(self.trace), "--capture",
                            str(capture), "--", "sh", "-c", f"{ends[0]} & sleep 1; {ends[1]}; wait"], check=True,
                           stderr=subprocess.DEVNULL, timeout=60)
            events = self.story(self.trace, capture)["events"]
            packets = [event["data"] for event in events if event["kind"] in ("sent", "received") and "psn" in event["data"]]
            self.assertGreater(len(packets), 20)
            # On a busy machine the times of some are far apart.
            self.assertGreater(sum("frame" in packet for packet in packets), len(packets) / 2, gid)

    def test_a_capture_adds_its_numbers_and_comments_to_a_trace(self):
        capture = self.path("capture.pcapng")
        self.simulate("write", "--capture", str(capture))
        alone, both = self.story(self.trace), self.story(self.trace, capture)
        self.assertEqual(len(alone["arrows"]), len(both["arrows"]))
        sent = [event["data"] for event in both["events"] if event["kind"] == "sent" and "psn" in event["data"]]
        self.assertTrue(all("frame" in data for data in sent))

    def test_a_line_that_is_cut_off_at_the_end_is_left_out(self):
        self.simulate("dc")
        whole = self.story(self.trace)
        text = self.trace.read_text(encoding="utf-8")
        self.trace.write_text(text[:-20], encoding="utf-8")
        self.assertEqual(len(self.story(self.trace)["events"]), len(whole["events"]) - 1)

    def test_data_cannot_end_the_script(self):
        self.trace.write_text('{"t":1,"host":"</script><b>","e":"sent","text":"</script>"}\n', encoding="utf-8")
        self.assertEqual(self.story(self.trace)["hosts"], ["</script><b>"])


    def test_a_loss_is_known_by_its_event_not_guessed(self):
        """Nothing else would say that the packet did not arrive: its receiver has no later event."""
        sent = {"host": "a", "qpn": 1, "dqpn": 2, "opcode": "RC_SEND_ONLY", "psn": 7, "src": "10.0.0.1", "dst": "10.0.0.2"}
        got = {**sent, "host": "b", "qpn": 2}
        del got["dqpn"]
        rule = {"what": "lost: never sent", "rule": 1, "of": "drop once"}
        for events, lost in (
                ([{"e": "sent", "t": 1, **sent}], ""),
                ([{"e": "sent", "t": 1, **sent}, {"e": "lost", "t": 1, "inbound": 0, **sent, **rule}],
                 "lost: never sent (fault 1: drop once)"),
                ([{"e": "sent", "t": 1, **sent}, {"e": "lost", "t": 3, "inbound": 1, **got, "what": "lost: never received"}],
                 "lost: never received"),
                ([{"e": "received", "t": 0, **got, "psn": 6}, {"e": "sent", "t": 1, **sent},
                  {"e": "received", "t": 99, **got, "psn": 5}], "it did not arrive")):
            self.trace.write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
            arrow = next(arrow for arrow in self.story(self.trace)["arrows"] if arrow["sent"] >= 0)
            self.assertEqual(arrow["lost"], lost)
            self.assertEqual(arrow["received"] >= 0, "received" in lost)

    def test_the_simulations_own_losses_are_events_too(self):
        self.simulate("write", "--fault", "none", "--loss", "10")
        story = self.story(self.trace)
        lost = {arrow["lost"] for arrow in story["arrows"] if arrow["lost"]}
        self.assertEqual(lost, {"lost"})

    def test_a_receive_leads_to_its_posting(self):
        subprocess.run([HCASIM, "sim", "--calm", "--hosts", "2", "--ops", "20", "--workload", "rc,srq", "--trace-file",
                        str(self.trace)], check=True, stdout=subprocess.DEVNULL, timeout=100)
        story, queues = self.story(self.trace), collections.Counter()
        events = story["events"]
        for message in story["messages"]:
            receives = [events[at] for at in message["events"] if events[at]["kind"] == "receive"]
            for posting, receive in zip((events[at] for at in message["receives"]), receives):
                queue = "srqn" if "srqn" in receive["data"] else "qpn"
                queues[queue] += 1
                self.assertEqual((posting["kind"], posting["host"]), ("post_recv", receive["host"]))
                self.assertEqual([posting["data"][key] for key in (queue, "wqe")], [receive["data"][key] for key in (queue, "wqe")])
                self.assertLessEqual(posting["t"], receive["t"])
        self.assertEqual(set(queues), {"srqn", "qpn"})
        news = [event["data"] for event in events if event["kind"] == "posted"]
        self.assertTrue(all(event["from"] != event["to"] for event in news))
        self.assertEqual({"srqn" in event for event in news}, {True, False})


class Faults(Explained):
    """Faults of the device have events."""

    def run_with(self, rules, command="ibv_rc_pingpong -p 18565 -g 1 -n 20 >&2 & sleep 1; ibv_rc_pingpong -p 18565 -g 1 -n 20 127.0.0.1 >&2; wait"):
        subprocess.run([HCASIM, "run", "--wire", f"explain-{id(self)}", "--trace-file", str(self.trace), "--fault", rules, "--",
                        "sh", "-c", command], check=False, stderr=subprocess.DEVNULL, timeout=60)
        events = [json.loads(line) for line in self.trace.read_text(encoding="utf-8").splitlines()[1:]]
        return [event for event in events if event["e"] == "fault"]

    def test_a_doorbell_that_is_not_seen_belongs_to_its_message(self):
        # the other end waits for the message, so no doorbell comes that makes good for it
        faults = self.run_with("doorbell unseen nth 3", "timeout 10 ibv_rc_pingpong -p 18565 -g 1 >&2 & sleep 1;"
                               " timeout 5 ibv_rc_pingpong -p 18565 -g 1 127.0.0.1 >&2; wait")
        self.assertEqual({(fault["what"], fault["of"]) for fault in faults}, {("doorbell unseen", "doorbell unseen nth 3")})
        self.assertIn("qpn", faults[0])
        story = self.story(self.trace)
        marked = [event for event in story["events"] if event["kind"] == "fault" and event["message"] >= 0]
        self.assertGreater(len(marked), 0)
        self.assertEqual(marked[0]["title"], "fault: doorbell unseen (rule 1: doorbell unseen nth 3)")

    def test_commands_and_interrupts(self):
        faults = self.run_with("command CREATE_CQ fail once", "ibv_rc_pingpong -p 18565 -g 1 127.0.0.1 >&2")
        self.assertEqual((faults[0]["what"], faults[0]["command"], faults[0]["rule"]), ("command fails", "CREATE_CQ", 1))
        faults = self.run_with("interrupt late 1ms once", "ibv_rc_pingpong -p 18565 -e -g 1 -n 5 >&2 & sleep 1;"
                               " ibv_rc_pingpong -p 18565 -e -g 1 -n 5 127.0.0.1 >&2; wait")
        self.assertEqual((faults[0]["what"], faults[0]["late_ns"]), ("interrupt late", 1000000))
        self.assertIn("vector", faults[0])

    def test_a_wrong_bit_is_told_by_the_sender(self):
        faults = self.run_with("corrupt RC_SEND_ONLY byte 60 once; duplicate RC_SEND_ONLY nth 2",
                               "ibv_rc_pingpong -p 18565 -g 1 -n 20 -s 64 >&2 & sleep 1; ibv_rc_pingpong -p 18565 -g 1 -n 20 -s 64 127.0.0.1 >&2; wait")
        self.assertRegex(faults[0]["what"], r"^corrupted: bit [0-7] of byte 60 is wrong$")
        self.assertEqual((faults[0]["inbound"], faults[0]["opcode"]), (0, "RC_SEND_ONLY"))
        self.assertIn("duplicate", {fault["what"] for fault in faults})


class Perfetto(Explained):
    def test_events_have_tracks_and_flows_pair_up(self):
        self.simulate("read")
        output = self.path("perfetto.json")
        result = self.explain(self.trace, perfetto=output)
        self.assertEqual(result.returncode, 0, result.stderr)
        events = json.loads(output.read_text(encoding="utf-8"))["traceEvents"]
        slices, flows, names = {}, collections.defaultdict(list), set()
        for event in events:
            self.assertIn(event["ph"], "MXstf")
            self.assertIsInstance(event["pid"], int)
            self.assertIsInstance(event["tid"], int)
            self.assertGreaterEqual(event["ts"], 0)
            if event["ph"] == "M":
                names.add((event["pid"], event["tid"], event["name"]))
            elif event["ph"] == "X":
                slices.setdefault((event["pid"], event["tid"]), set()).add(event["ts"])
            else:
                flows[event["id"]].append(event)
        self.assertGreater(len(flows), 0)
        for flow in flows.values():
            self.assertEqual([flow[0]["ph"], flow[-1]["ph"]], ["s", "f"])
            self.assertTrue(all(step["ph"] == "t" for step in flow[1:-1]))
            self.assertEqual(sorted(step["ts"] for step in flow), [step["ts"] for step in flow])
            for step in flow:       # a flow's step binds to a slice
                self.assertIn(step["ts"], slices[step["pid"], step["tid"]])
        for track in slices:
            self.assertIn((*track, "thread_name"), names)
            self.assertIn((track[0], 0, "process_name"), names)


class Refused(Explained):
    def refused(self, content, words):
        self.trace.write_bytes(content)
        result = self.explain(self.trace)
        self.assertEqual(result.returncode, 1)
        self.assertIn(words, result.stderr)
        self.assertNotIn("Traceback", result.stderr)

    def test_no_file(self):
        result = self.explain(self.path("none"))
        self.assertEqual(result.returncode, 1)
        self.assertIn("No such file", result.stderr)

    def test_files_that_are_neither(self):
        self.refused(b"hello\n", "line 1 is no event of a trace")
        self.refused(b"[1]\n", "line 1 is no event of a trace")
        self.refused(b'{"t":"now","e":"sent"}\n', "line 1 is no event of a trace")
        self.refused(b'{"hcasim":"trace"}\n', "there is no event")
        self.refused(b"\x0a\x0d\x0d\x0a\x1c\0\0\0ABCD" + bytes(16), "no pcapng file")
        self.refused(b"\x0a\x0d\x0d\x0a\x01\0\0\0\x4d\x3c\x2b\x1a" + bytes(16), "is no block")

    def test_damaged_captures_end_in_a_message_or_a_page(self):
        capture = self.path("capture.pcapng")
        self.simulate("dc", "--capture", str(capture))
        content = capture.read_bytes()
        for at in range(0, min(len(content), 4000), 37):
            damaged = bytearray(content)
            damaged[at] ^= 0xff
            capture.write_bytes(damaged)
            result = self.explain(capture)
            self.assertIn(result.returncode, (0, 1))
            self.assertNotIn("Traceback", result.stderr, f"byte {at}")


def packet(time, kind, psn, **more):
    """An event of a packet of QP 1 of host a to QP 2 of host b, as traces have it."""
    return {"t": time, "e": kind, "host": "a" if kind == "sent" else "b", "psn": psn, "opcode": "RC_SEND_ONLY", "src": "10.0.0.1",
            "dst": "10.0.0.2", **({"qpn": 1, "dqpn": 2} if kind == "sent" else {"qpn": 2}), **more}


def wqe(time, index, psn):
    return {"t": time, "e": "wqe", "host": "a", "qpn": 1, "wqe": index, "psn": psn, "opcode": "SEND", "len": 1}


class Pairing(unittest.TestCase):
    """Which packets of a trace and a capture are the same, and to which WQE a packet belongs: within bounds."""
    SECONDS = 30  # each takes less than two, on a machine without other work

    def setUp(self):
        self.begin = time.process_time()

    def tearDown(self):
        self.assertLess(time.process_time() - self.begin, self.SECONDS)

    @staticmethod
    def frames(story):
        return [event.get("frame") for event in story.events]

    def test_packets_join_if_they_are_near_in_time(self):
        for apart, frames in (stories.NEAR - 1, [7]), (stories.NEAR, [None]):
            story = stories.Story([packet(10 * stories.NEAR, "sent", 1)], [packet(10 * stories.NEAR + apart, "sent", 1, frame=7)])
            self.assertEqual(self.frames(story), frames)

    def test_each_packet_joins_the_nearest_of_its_copies_and_one_only(self):
        story = stories.Story([packet(0, "sent", 1), packet(1000, "sent", 1)],
                              [packet(990, "sent", 1, frame=7), packet(995, "sent", 1, frame=8), packet(999, "sent", 1, frame=9)])
        self.assertEqual(self.frames(story), [8, 7])

    def test_a_capture_of_another_run_changes_nothing(self):
        trace = [wqe(0, 0, 1), packet(1, "sent", 1), packet(2, "received", 1)]
        alone = stories.Story([dict(event) for event in trace], []).as_json()
        for other in (10 ** 15, 0), (0, 5000):  # another time, other PSNs
            capture = [packet(other[0] + n, kind, other[1] + n, frame=n) for n in range(1, 100) for kind in ("sent", "received")]
            self.assertEqual(stories.Story([dict(event) for event in trace], capture).as_json(), alone)

    def test_a_capture_of_other_hosts_is_beside_the_trace(self):
        story = stories.Story([packet(1, "sent", 1)], [packet(2, "sent", 1, host="c", src="10.0.0.3", frame=1)])
        self.assertEqual(self.frames(story), [None, 1])
        self.assertEqual([event["host"] for event in story.events], ["a", "c"])

    def test_many_packets_with_the_same_numbers(self):
        """Each one of the capture is compared with the nearest ones of the trace, not with all."""
        count = 20_000
        story = stories.Story([packet(n * stories.NEAR, "sent", 1) for n in range(count)],
                              [packet(n * stories.NEAR + 1, "sent", 1, frame=n) for n in range(count)])
        self.assertEqual(self.frames(story), list(range(count)))

    def test_many_packets_that_belong_to_none_of_many_wqes(self):
        count = 20_000
        story = stories.Story([wqe(n, n & 0xffff, 1000 + n) for n in range(count)] + [packet(count + n, "sent", 5) for n in range(count)], [])
        self.assertEqual({event["message"] for event in story.events if event["e"] == "sent"}, {-1})

    def test_many_postings_at_the_same_place_of_a_queue(self):
        count = 50_000
        story = stories.Story([{"t": n, "e": "post", "host": "a", "qpn": 1, "wqe": 0, "wr_id": n} for n in range(count)] +
                              [wqe(count + n, 0, n) for n in range(count)], [])
        self.assertEqual(len(story.messages), count)
        self.assertEqual(story.messages[-1]["events"], [count - 1, 2 * count - 1])

    def test_packets_between_the_first_psns_of_two_wqes_are_the_first_ones(self):
        top = stories.PSN_MASK
        story = stories.Story([wqe(0, 0, top - 3), wqe(1, 1, top), wqe(2, 2, 1)] +
                              [packet(3 + n, "sent", psn & top) for n, psn in enumerate((top - 4, top - 3, top - 1, top, top + 1, top + 2, 9))], [])
        self.assertEqual([event["message"] for event in story.events[3:]], [-1, 0, 0, 1, 1, 2, 2])

    def test_a_queue_with_a_number_that_another_one_had(self):
        sent = [(1, 5000), (3, 5010), (5, 100), (6, 109), (8, 110), (9, 50)]
        story = stories.Story([wqe(0, 0, 5000), wqe(2, 1, 5010), wqe(4, 0, 100), wqe(7, 1, 110)] +
                              [packet(time, "sent", psn) for time, psn in sent], [])
        self.assertEqual([event["message"] for event in story.events if event["e"] == "sent"], [0, 1, 2, 2, 3, -1])


class Hostile(Explained):
    """Files that somebody else has made or damaged: a page or one line, and a bounded memory."""
    SEEDS = int(os.environ.get("HCASIM_EXPLAIN_SEEDS", "60"))
    MEMORY = 1 << 30

    def setUp(self):
        super().setUp()
        self.capture = self.path("whole.pcapng")
        self.simulate("dc", "--capture", str(self.capture))

    def judge(self, file, about):
        """Runs the part behind `hcasim explain` itself, with little memory."""
        options = json.dumps({"output": str(self.path("page.html")), "perfetto": str(self.path("perfetto.json"))})
        self.path("page.html").unlink(missing_ok=True)
        done = subprocess.run([sys.executable, "-B", EXPLAIN / "explain.py", options, file], capture_output=True, text=True, timeout=60,
                              check=False, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (self.MEMORY, self.MEMORY)))
        self.assertNotIn("Traceback", done.stderr, about)
        if done.returncode:
            self.assertEqual(done.returncode, 1, about)
            self.assertRegex(done.stderr, r"\Ahcasim: explain: [^\n]+\n\Z", about)
        else:
            self.assertEqual(done.stderr, "", about)
            ladders.read_page(self.path("page.html"))
            json.loads(self.path("perfetto.json").read_text(encoding="utf-8"), parse_constant=self.fail)
        return done

    def test_damaged_captures(self):
        whole, statuses = self.capture.read_bytes(), collections.Counter()
        for seed in range(self.SEEDS):
            self.capture.write_bytes(hostile_captures.capture(random.Random(seed), whole))
            statuses[self.judge(self.capture, f"seed {seed}").returncode] += 1
        self.assertEqual(set(statuses), {0, 1})     # some damage is read over, and some is refused

    def test_damaged_traces(self):
        lines, statuses = self.trace.read_text(encoding="utf-8").splitlines()[-400:], collections.Counter()
        for seed in range(self.SEEDS):
            content = hostile_captures.trace(random.Random(seed), lines)
            self.trace.write_bytes(content.encode("utf-8", "surrogatepass"))
            statuses[self.judge(self.trace, f"seed {seed}").returncode] += 1
        self.assertEqual(set(statuses), {0, 1})

    def test_more_events_than_there_is_room_for(self):
        script = (f"import sys; sys.path.insert(0, {str(EXPLAIN)!r}); import story; story.MOST_EVENTS = 100; import explain; "
                  "sys.exit(explain.main())")
        for files in ((self.trace,), (self.capture,), (self.trace, self.capture)):
            done = subprocess.run([sys.executable, "-B", "-c", script, json.dumps({"output": "", "perfetto": ""}), *files],
                                  capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertRegex(done.stderr, r"^hcasim: explain: \S+: there are more than 100 events; give a part of the file, or "
                                          r"a shorter run\n$")

    def test_a_packet_that_was_sent_very_often(self):
        """The same numbers again and again: each copy is looked for among the last ones only."""
        sent = b'{"t":%d,"e":"sent","psn":1,"opcode":"RC_SEND_ONLY","src":"10.0.0.1","dst":"10.0.0.2","dqpn":1}\n'
        got = b'{"t":%d,"e":"received","host":"b","psn":1,"opcode":"RC_SEND_ONLY","src":"10.0.0.1","dst":"10.0.0.2","qpn":1}\n'
        self.trace.write_bytes(b"".join(sent % i for i in range(10000)) + b"".join(got % (10000 + i) for i in range(10000)))
        self.assertEqual(self.judge(self.trace, "one packet").returncode, 0)

    def test_many_interfaces(self):
        blocks = list(hostile_captures.blocks_of(self.capture.read_bytes()))
        self.capture.write_bytes(b"".join([blocks[0]] + [blocks[1]] * 5000 + blocks[2:]))
        self.assertIn("it has more than 4096 interfaces", self.judge(self.capture, "interfaces").stderr)

    def test_names_of_files_need_not_be_utf8(self):
        folder = os.fsencode(self.folder.name)
        trace, page = folder + b"/\xff.jsonl", folder + b"/\xfe.html"
        pathlib.Path(os.fsdecode(trace)).write_bytes(self.trace.read_bytes())
        done = subprocess.run([HCASIM, "explain", "-o", page, trace], capture_output=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        ladders.read_page(os.fsdecode(page))


if __name__ == "__main__":
    HCASIM = sys.argv.pop(1)
    unittest.main()
