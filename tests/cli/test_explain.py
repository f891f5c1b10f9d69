# SPDX-License-Identifier: BSD-2-Clause
"""usage: test_explain.py HCASIM

Tests traces in JSON and what `hcasim explain` makes of them: the page's story, the file for Perfetto, captures.
"""
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

import ladders

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
                        "ibv_rc_pingpong -e -g 1 -n 5 >&2 & sleep 1; ibv_rc_pingpong -e -g 1 -n 5 127.0.0.1 >&2; wait"],
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
        self.assertIsNotNone(number, "the seed does not show it any more; ladders.py finds others")
        message = story["messages"][number]
        arrows = ladders.packets(story, message)
        lost = [arrow for arrow in arrows if arrow["lost"]]
        self.assertEqual(len(lost), 1)
        self.assertEqual(lost[0]["received"], -1)
        again = [arrow for arrow in arrows if arrow["repeated"]]
        self.assertIn(ladders.title(story, lost[0]), [ladders.title(story, arrow) for arrow in again])
        self.assertIn("repeated: NAK PSN sequence error", {arrow["why"] for arrow in again})

    def test_a_capture_alone_has_the_packets(self):
        capture = self.path("capture.pcapng")
        self.simulate("write", "--capture", str(capture))
        traced, captured = self.story(self.trace), self.story(capture)
        packets = [collections.Counter(re.sub(r",.*| [0-9.]+ ms", "", ladders.title(story, arrow)) for arrow in story["arrows"]
                                       if arrow["sent"] >= 0) for story in (traced, captured)]
        self.assertEqual(*packets)

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


if __name__ == "__main__":
    HCASIM = sys.argv.pop(1)
    unittest.main()
