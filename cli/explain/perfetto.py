# SPDX-License-Identifier: BSD-2-Clause
"""Writes a story as Chrome's trace events, which Perfetto and chrome://tracing show.

A host is a process; each of its QPs and CQs is a thread, which has a slice for each event. A message is a flow from
the slice of its posting through those of its packets to that of its last completion.
"""

SLICE = 0.5     # microseconds: a flow begins and ends in slices, and an event takes no time


def convert(story):
    events = [{"ph": "M", "name": "process_name", "pid": 1 + at, "tid": 0, "ts": 0, "args": {"name": host}}
              for at, host in enumerate(story["hosts"])]
    tracks = {}
    for event in story["events"]:
        event["track"] = _track(event, tracks, events)
        events.append({"ph": "X", "name": event["title"], "cat": event["kind"], "ts": event["t"] / 1000, "dur": SLICE,
                       "pid": 1 + event["host"], "tid": event["track"], "args": event["data"]})
    for number, message in enumerate(story["messages"], 1):
        events += _flow(number, message, story)
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def _track(event, tracks, events):
    data = event["data"]
    if event["kind"] in ("cqe", "poll"):
        name = f"CQ {data.get('cqn')}"
    elif event["qpn"] >= 0:
        name = f"QP 0x{event['qpn']:x}"
    else:
        name = "device"
    key = (event["host"], name)
    if key not in tracks:
        tracks[key] = 1 + len(tracks)
        events.append({"ph": "M", "name": "thread_name", "pid": 1 + event["host"], "tid": tracks[key], "ts": 0,
                       "args": {"name": name}})
    return tracks[key]


def _flow(number, message, story):
    """s, t, ..., f. A message of one event has no flow."""
    steps = message["events"]
    if len(steps) < 2:
        return []
    phases = ["s"] + ["t"] * (len(steps) - 2) + ["f"]
    flow = []
    for phase, at in zip(phases, steps):
        event = story["events"][at]
        step = {"ph": phase, "id": number, "name": message["title"], "cat": "message", "ts": event["t"] / 1000,
                "pid": 1 + event["host"], "tid": event["track"]}
        if phase == "f":
            step["bp"] = "e"
        flow.append(step)
    return flow
