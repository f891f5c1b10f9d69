# SPDX-License-Identifier: BSD-2-Clause
"""Joins the events of traces and captures: which packet arrived as which, and which events belong to a message.

A message is one work request of a send queue, from its posting to its last completion. The story is a plain object
that becomes JSON in the page (page.js says what it reads):

    hosts     [{name, title}]
    events    [{t, host, kind, qpn, message, title, data, ...}], in the order of time; t in ns since the first one
    arrows    [{sent, received, lost, repeated, why}], of indices of events; received -1: it did not arrive
    messages  [{host, qpn, wqe, title, events, receives, packets, repeated, lost, status}]; receives: the postings of
              the receives that it took
"""
import bisect
import collections
import itertools
import json
import math
import pathlib

from pcapng import Unreadable, read as read_capture

PSN_MASK, PSN_HALF = 0xffffff, 0x800000
MOST_LINE = 1 << 20
MOST_EVENTS = 500_000       # of all files together: two kibibytes of memory each, or so
MOST_TIME = 1 << 63
MOST_NESTING = 16           # of an event's fields
MOST_COPIES = 256           # of a packet, among which the one that arrived is sought
PCAPNG = b"\x0a\x0d\x0d\x0a"
NEAR = 2_000_000        # ns between a packet's event in a trace and the same packet in a capture


def _refuse_constant(name):
    raise ValueError(f"{name} is no number of JSON")


def _is_deep(value, most=MOST_NESTING):
    """Whether more lists and objects than that lie in each other."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return most < 0 or any(_is_deep(part, most - 1) for part in inner)


def _is_event(event):
    return isinstance(event, dict) and isinstance(event.get("t"), int) and 0 <= event["t"] < MOST_TIME and \
        isinstance(event.get("e"), str) and not _is_deep(event)


def _read_float(text):
    value = float(text)
    return value if math.isfinite(value) else _refuse_constant(text)


def read_trace(path):
    """Yields the events of a trace file. A line that is cut off at the end (a killed process) is left out."""
    with open(path, encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(iter(lambda: file.readline(MOST_LINE), ""), 1):
            try:
                event = json.loads(line, parse_constant=_refuse_constant, parse_float=_read_float)
            except (ValueError, RecursionError) as error:
                if line.endswith("\n") or len(line) == MOST_LINE:
                    raise Unreadable(f"line {number} is no event of a trace") from error
                return
            if isinstance(event, dict) and "hcasim" in event:
                continue
            if not _is_event(event):
                raise Unreadable(f"line {number} is no event of a trace")
            # these keys are this program's own
            yield {key: value for key, value in event.items() if key not in ("message", "sent_by", "duplicate")}


def _count(events, have):
    """Yields the events, as long as there are not too many."""
    for number, event in enumerate(events, have + 1):
        if number > MOST_EVENTS:
            raise Unreadable(f"there are more than {MOST_EVENTS} events; give a part of the file, or a shorter run")
        yield event


def read_all(paths):
    """Returns the events of traces, and those of captures."""
    traced, captured = [], []
    for path in paths:
        try:
            with open(path, "rb") as file:
                is_capture = file.read(4) == PCAPNG
            if is_capture:
                for event in _count(read_capture(path), len(traced) + len(captured)):
                    captured.append({**event, "file": pathlib.Path(path).name})
            else:
                traced += _count(read_trace(path), len(traced) + len(captured))
        except (OSError, Unreadable) as error:
            raise Unreadable(f"{path}: {error}") from error
    return traced, captured


def number(event, key, default=-1):
    value = event.get(key, default)
    return value if isinstance(value, int) else default


def packet_key(event, qpn):
    return (str(event.get("src")), str(event.get("dst")), str(event.get("opcode")), number(event, qpn),
            number(event, "psn"))


def is_frame(event):
    """Whether the event is about a frame that is no RoCE packet, and says which one."""
    return "psn" not in event and "fcs" in event


def frame_key(event, qpn):
    """The same for both ends of a packet or frame, and different for others. None: the event is about neither."""
    if is_frame(event):
        return "frame", str(event["fcs"]), number(event, "len")
    return packet_key(event, qpn) if "psn" in event else None


def _around(events, time):
    """Those of the events, which are in the order of time, that are next to that time."""
    at = bisect.bisect_left(events, time, key=lambda event: event["t"])
    return events[max(0, at - MOST_COPIES):at + MOST_COPIES]


def before(a, b):
    """Whether PSN a is b, or comes before it."""
    return (b - a) & PSN_MASK < PSN_HALF


class Queue:
    """The WQEs that a queue has started, in their order. Their first PSNs grow, so that the WQE of a packet is found by
    halving, however many there are. Where a PSN goes back, a queue with the same number begins anew."""

    def __init__(self):
        self.started = []       # (first PSN, counted on past 24 bits; message)
        self.by_wqe = {}        # index -> message of the last WQE there

    def add(self, psn, wqe, message):
        last = self.started[-1][0] if self.started else psn
        if before(last, psn):
            self.started.append((last + ((psn - last) & PSN_MASK), message))
        else:
            self.started = [(psn, message)]
        self.by_wqe[wqe] = message

    def message_of(self, psn):
        """Returns the message of the last WQE that begins with this PSN or before it; -1: there is none."""
        last = self.started[-1][0] if self.started else psn
        ahead = (psn - last) & PSN_MASK
        wanted = last + (ahead if ahead < PSN_HALF else ahead - PSN_MASK - 1)
        at = bisect.bisect_right(self.started, wanted, key=lambda started: started[0])
        return self.started[at - 1][1] if at else -1


class Story:
    def __init__(self, traced, captured):
        self.events = sorted(self._with_captured(traced, captured), key=lambda event: event["t"])
        self.arrows = []
        self.messages = []
        self.hosts = {}
        self.addresses = {}     # address -> host
        self._name_hosts()
        self._pair_packets()
        self._find_messages()

    # -- captures

    @staticmethod
    def _with_captured(traced, captured):
        """Adds what a capture says of a packet to the packet's event in the trace. Packets of hosts without a trace
        become events of their own."""
        known = {}
        for event in sorted(traced, key=lambda event: event["t"]):
            if event["e"] in ("sent", "received"):
                key = (event["e"], *packet_key(event, "dqpn" if event["e"] == "sent" else "qpn"))
                known.setdefault(key, []).append(event)
        addresses = {str(event.get("src" if event["e"] == "sent" else "dst")) for event in traced
                     if event["e"] in ("sent", "received")}
        rest = []
        for event in captured:
            kind = "sent" if event["e"] == "seen" else event["e"]
            key = (kind, *packet_key(event, "dqpn" if kind == "sent" else "qpn"))
            near = [other for other in _around(known.get(key, ()), event["t"]) if "frame" not in other and
                    abs(other["t"] - event["t"]) < NEAR]
            if near:
                best = min(near, key=lambda other: abs(other["t"] - event["t"]))
                best.update({key: event[key] for key in ("frame", "file", "comment") if key in event})
            elif str(event.get("src" if kind == "sent" else "dst")) not in addresses:
                rest.append(event)
        return traced + rest

    # -- hosts

    def _name_hosts(self):
        for event in self.events:
            name = str(event.get("host") or "")
            kind = event["e"]
            address = str(event.get("src" if kind in ("sent", "seen") else "dst")) if "psn" in event and \
                kind in ("sent", "received", "seen") else None
            if kind == "seen" or not name:
                name = address or name
            if address and address != "None" and (kind != "received" or not event.get("lost")):
                self.addresses.setdefault((address, number(event, "qpn") if kind == "received" else -1), name)
                self.addresses.setdefault(address, name)
            event["host"] = name
            self.hosts.setdefault(name, len(self.hosts))

    def _host_of(self, address):
        name = self.addresses.get(address)
        if name is None:
            name = address
            self.addresses[address] = name
            self.hosts.setdefault(name, len(self.hosts))
        return name

    # -- packets

    def _pair_packets(self):
        """Pairs each packet that was received with the one that was sent. Between the copies of a packet that was
        sent more than once, the usual time on the way decides."""
        sent, received = {}, {}
        for at, event in enumerate(self.events):
            if "psn" not in event and not is_frame(event):
                continue
            if event["e"] in ("sent", "seen"):
                sent.setdefault(frame_key(event, "dqpn"), []).append(at)
            elif event["e"] == "received" or (event["e"] == "lost" and event.get("inbound")):
                received.setdefault(frame_key(event, "qpn"), []).append(at)
            elif event["e"] in ("lost", "fault") and not event.get("inbound"):
                self._tell_sender(at, event, sent)
        usual = self._usual_time(sent, received)
        self.usual = usual
        # A host that has no later event may have received the packet after the end of its trace.
        self.last = {event["host"]: event["t"] for event in self.events if event["e"] != "seen"}
        for key, starts in sent.items():
            ends = self._pair(starts, received.pop(key, []), usual)
            for start, end in zip(starts, ends):
                self._add_arrow(start, end)
        for ends in received.values():      # their sender has no trace
            for end in ends:
                self._add_arrow(-1, end)
        self.arrows.sort(key=lambda arrow: arrow["received"] if arrow["sent"] < 0 else arrow["sent"])

    def _tell_sender(self, at, event, sent):
        """A fault rule of the sending host has lost or changed the packet that it sent last with these numbers."""
        for start in itertools.islice(reversed(sent.get(frame_key(event, "dqpn"), [])), MOST_COPIES):
            if self.events[start]["host"] == event["host"]:
                event["sent_by"] = start
                if event["e"] == "lost":
                    self.events[start].setdefault("lost", loss(event))
                return

    def _usual_time(self, sent, received):
        times = sorted(self.events[received[key][0]]["t"] - self.events[starts[0]]["t"]
                       for key, starts in sent.items() if len(starts) == 1 and len(received.get(key, ())) == 1)
        return times[len(times) // 2] if times else 0

    def _pair(self, starts, ends, usual):
        found = dict.fromkeys(starts, -1)
        for end in ends:
            # the last ones that were sent before
            first = bisect.bisect_right(starts, self.events[end]["t"], key=lambda start: self.events[start]["t"])
            free = [start for start in starts[max(0, first - MOST_COPIES):first] if found[start] < 0]
            if free:
                way = self.events[end]["t"]
                best = min(free, key=lambda start: abs(way - self.events[start]["t"] - usual))
                found[best] = end
                self.events[end]["sent_by"] = best
            else:
                self.events[end]["duplicate"] = 1
        return [found[start] for start in starts]

    def _add_arrow(self, start, end):
        event = self.events[start if start >= 0 else end]
        if is_frame(event) and (start < 0 or (end < 0 and not event.get("lost"))):
            return      # nobody knows from where it comes, or how many hosts it was for
        arrow = {"sent": start, "received": end, "lost": "", "repeated": int(bool(event.get("repeated"))),
                 "why": str(event.get("why", "")), "to": "", "from": ""}
        if start >= 0:
            target = self.events[end]["host"] if is_frame(event) and end >= 0 else self._host_of(str(event.get("dst")))
            arrow["to"] = target
            if event.get("lost"):
                arrow["lost"] = str(event["lost"])
            elif end >= 0 and self.events[end]["e"] == "lost":
                arrow["lost"] = loss(self.events[end])
            elif end >= 0 and self.events[end].get("lost"):
                arrow["lost"] = str(self.events[end]["lost"])
            elif end < 0 and event["e"] == "sent" and event["t"] + self.usual < self.last.get(target, 0):
                arrow["lost"] = "it did not arrive"     # nobody says why
        else:
            arrow["from"] = self._host_of(str(event.get("src")))
        self.arrows.append(arrow)

    # -- messages

    def _find_messages(self):
        queues = collections.defaultdict(Queue)     # (host, qpn)
        posted = {}         # (host, qpn, wqe) -> messages posted and not started
        self.last_arrival = {}
        self.receives = {}  # (host, "srqn" or "qpn", number, wqe) -> postings of receives that are not taken
        self.arrived = {}   # host -> the message of the frame that it received last
        self.taken = {}     # (host, cqn) -> messages whose frame an Ethernet receive queue has taken
        completions = {}    # (host, cqn, qpn, wqe, of_send) -> messages whose CQE is not polled
        for at, event in enumerate(self.events):
            handler = getattr(self, "_on_" + event["e"], None)
            event["message"] = -1
            if handler:
                handler(at, event, queues, posted, completions)
        self._sum_up()

    def _new_message(self, at, event):
        self.messages.append({"host": event["host"], "qpn": number(event, "qpn"), "wqe": number(event, "wqe"),
                              "opcode": str(event.get("opcode", "?")), "len": None, "events": [], "receives": []})
        self._join(at, event, len(self.messages) - 1)
        return len(self.messages) - 1

    def _join(self, at, event, message):
        event["message"] = message
        self.messages[message]["events"].append(at)

    def _on_post(self, at, event, queues, posted, completions):
        key = (event["host"], number(event, "qpn"), number(event, "wqe"))
        message = self._new_message(at, event)
        self.messages[message]["wr_id"] = str(event.get("wr_id", ""))
        posted.setdefault(key, collections.deque()).append(message)
        posted.setdefault(key[:2], []).append(message)      # any that was posted to the queue

    @staticmethod
    def _receive_key(event):
        queue = "srqn" if "srqn" in event else "qpn"
        return event["host"], queue, number(event, queue), number(event, "wqe")

    def _on_post_recv(self, at, event, queues, posted, completions):
        self.receives.setdefault(self._receive_key(event), collections.deque()).append(at)

    def _on_lost(self, at, event, queues, posted, completions):
        start = event.get("sent_by", -1)
        message = self.events[start]["message"] if start >= 0 else -1
        if message >= 0:
            self._join(at, event, message)

    def _on_fault(self, at, event, queues, posted, completions):
        """A fault of a packet, or a doorbell that the device does not see."""
        waiting = posted.get((event["host"], number(event, "qpn")))
        if "psn" in event:
            self._on_lost(at, event, queues, posted, completions)
        elif event.get("what") == "doorbell unseen" and waiting:
            self._join(at, event, waiting[-1])

    def _on_doorbell(self, at, event, queues, posted, completions):
        waiting = posted.get((event["host"], number(event, "qpn"), number(event, "wqe")))
        if waiting:
            self._join(at, event, waiting[-1])

    def _on_wqe(self, at, event, queues, posted, completions):
        key = (event["host"], number(event, "qpn"), number(event, "wqe"))
        waiting = posted.get(key)
        came = self.last_arrival.get(key[:2], -1)
        is_fetch = not waiting and came >= 0 and event.get("opcode") == "RDMA_READ"
        if is_fetch:        # rendezvous: the device fetches the data of a message that came on this QP
            message = came
            self._join(at, event, message)
        elif waiting:
            message = waiting.popleft()
            self._join(at, event, message)
        else:
            message = self._new_message(at, event)
        if not is_fetch:
            self.messages[message].update(len=number(event, "len", 0), opcode=str(event.get("opcode", "?")))
        # The device counts its own WQEs apart, and they have no completion.
        wqe = -1 if is_fetch else number(event, "wqe")
        queues[key[:2]].add(number(event, "psn"), wqe, message)

    def _on_sent(self, at, event, queues, posted, completions):
        message = -1
        if "psn" not in event:
            if "wqe" in event:
                message = queues[event["host"], number(event, "qpn")].by_wqe.get(number(event, "wqe"), -1)
        elif "request_psn" in event:
            queue = queues[self.addresses.get(str(event.get("dst"))), number(event, "dqpn")]
            message = queue.message_of(number(event, "request_psn"))
        elif "qpn" in event:
            # A queue that starts a WQE writes the WQE's event first.
            message = queues[event["host"], number(event, "qpn")].message_of(number(event, "first_psn", number(event, "psn")))
        if message >= 0:
            self._join(at, event, message)

    def _on_received(self, at, event, queues, posted, completions):
        start = event.get("sent_by", -1)
        message = self.events[start]["message"] if start >= 0 else -1
        if message >= 0:
            self._join(at, event, message)
        self.arrived[event["host"]] = message
        if "psn" in event:
            self.last_arrival[event["host"], number(event, "qpn")] = message

    def _on_flow(self, at, event, queues, posted, completions):
        """A table of rules: of the send queue that sends the frame, or of the frame that has just arrived."""
        message = -1
        if "qpn" in event:
            started = queues[event["host"], number(event, "qpn")].started
            message = started[-1][1] if started else -1
        elif str(event.get("domain")).endswith("_RX"):
            message = self.arrived.get(event["host"], -1)
        if message >= 0:
            self._join(at, event, message)

    def _on_receive(self, at, event, queues, posted, completions):
        if "rqn" in event:
            self._on_frame_receive(at, event)
            return
        message = self.last_arrival.get((event["host"], number(event, "qpn")), -1)
        waiting = self.receives.get(self._receive_key(event))
        posting = waiting.popleft() if waiting else -1
        if message >= 0:
            self._join(at, event, message)
            if posting >= 0:
                self.events[posting]["message"] = message
                self.messages[message]["receives"].append(posting)

    def _on_frame_receive(self, at, event):
        """An Ethernet receive queue takes the frame that has just arrived. The CQE will not name the queue."""
        message = self.arrived.get(event["host"], -1)
        self.taken.setdefault((event["host"], number(event, "cqn")), collections.deque()).append(message)
        if message >= 0:
            self._join(at, event, message)

    def _on_cqe(self, at, event, queues, posted, completions):
        key = (event["host"], number(event, "qpn"))
        taken = self.taken.get((event["host"], number(event, "cqn")))
        if event.get("of_send"):
            message = queues[key].by_wqe.get(number(event, "wqe"), -1)
            if message >= 0:
                self.messages[message]["status"] = str(event.get("syndrome", "success"))
        elif taken:
            message = taken.popleft()
        else:
            message = self.last_arrival.get(key, -1)
        if message >= 0:
            self._join(at, event, message)
        completions.setdefault(self._completion_key(event), collections.deque()).append(message)

    @staticmethod
    def _completion_key(event):
        return (event["host"], *(number(event, key) for key in ("cqn", "qpn", "wqe", "of_send")))

    def _on_poll(self, at, event, queues, posted, completions):
        waiting = completions.get(self._completion_key(event))
        message = waiting.popleft() if waiting else -1
        if message >= 0:
            self._join(at, event, message)

    def _sum_up(self):
        for arrow in self.arrows:
            event = self.events[arrow["sent"]] if arrow["sent"] >= 0 else None
            if event is None or event["message"] < 0:
                continue
            message = self.messages[event["message"]]
            message["packets"] = message.get("packets", 0) + 1
            message["repeated"] = message.get("repeated", 0) + arrow["repeated"]
            message["lost"] = message.get("lost", 0) + bool(arrow["lost"])
            if arrow["repeated"]:
                message.setdefault("reasons", {}).setdefault(arrow["why"].removeprefix("repeated: "))
        self._leave_out_inner()

    def _leave_out_inner(self):
        """Work requests that no program posted and that sent nothing are the driver's own, and no messages."""
        kept = {}
        for at, message in enumerate(self.messages):
            if "wr_id" in message or "packets" in message:
                kept[at] = len(kept)
        self.messages = [self.messages[at] for at in kept]
        for event in self.events:
            event["message"] = kept.get(event["message"], -1)

    # -- the result

    def as_json(self):
        start = self.events[0]["t"] if self.events else 0
        hosts = list(self.hosts)
        return {
            "hosts": hosts,
            "events": [self._event_as_json(event, start) for event in self.events],
            "arrows": [{**arrow, "to": self.hosts.get(arrow["to"], -1), "from": self.hosts.get(arrow["from"], -1)}
                       for arrow in self.arrows],
            "messages": [self._message_as_json(message) for message in self.messages],
        }

    def _event_as_json(self, event, start):
        hidden = ("t", "host", "message", "sent_by")
        return {"t": event["t"] - start, "host": self.hosts[event["host"]], "kind": event["e"],
                "qpn": number(event, "qpn"), "message": event["message"], "title": title(event),
                "data": {key: value for key, value in event.items() if key not in hidden}}

    def _message_as_json(self, message):
        size = "" if message["len"] is None else f", {message['len']} bytes"
        return {"host": self.hosts[message["host"]], "qpn": message["qpn"], "wqe": message["wqe"],
                "title": f"{message['opcode']}{size}", "events": message["events"], "receives": message["receives"],
                "packets": message.get("packets", 0), "repeated": message.get("repeated", 0),
                "lost": message.get("lost", 0), "reasons": list(message.get("reasons", {})),
                "status": message.get("status", ""), "wr_id": message.get("wr_id", "")}


def loss(event):
    """Why a packet is lost, as the event of its loss says it."""
    rule = f" (fault {event.get('rule')}: {event.get('of')})" if "of" in event else ""
    return str(event.get("what") or "lost") + rule


def fault_title(get):
    about = next((f" {get(key)}" for key in ("command", "vector", "opcode") if get(key) is not None), "")
    return f"fault: {get('what')}{about}" + (f" (rule {get('rule')}: {get('of')})" if get("of") is not None else "")


def flow_title(get):
    """That an entry has destinations is said by their names."""
    actions = str(get("actions") or get("how") or "").replace("FWD_DEST", "").split()
    table = f"0x{get('table'):x}" if isinstance(get("table"), int) else get("table")
    return f"table {table}: " + " ".join([*actions, *([str(get("to"))] if get("to") else [])])


# What a reader sees of an event that is no packet.
TITLES = {
    "command": lambda get: f"command {get('command')} {get('status')}",
    "state": lambda get: f"{get('from')} → {get('to')}",
    "eqe": lambda get: f"event {get('type')}",
    "interrupt": lambda get: f"interrupt {get('vector')}",
    "post": lambda get: f"ibv_post_send {get('opcode')}",
    "post_recv": lambda get: f"ibv_post_recv {get('wqe')}" if get("srqn") is None else f"ibv_post_srq_recv {get('wqe')}",
    "posted": lambda get: f"receive WQEs up to {get('to')} are posted",
    "fault": fault_title,
    "poll": lambda get: f"ibv_poll_cq: {get('status')}",
    "cqe": lambda get: f"CQE {get('syndrome') or get('opcode')}",
    "receive": lambda get: f"receive WQE {get('wqe')}",
    "wqe": lambda get: f"WQE {get('wqe')} {get('opcode')}",
    "flow": flow_title,
}


def title(event):
    """What a reader sees of an event, in one line."""
    kind = event["e"]
    get = event.get
    if kind == "lost":
        return f"{get('opcode') or 'frame'} {loss(event)}"
    if kind in ("sent", "received", "seen"):
        if "psn" not in event:
            return str(get("text", f"{get('len', 0)} bytes"))
        fields = get("fields") if isinstance(get("fields"), dict) else {}
        said = f" {fields['syndrome']}" if "syndrome" in fields and fields["syndrome"] != "ACK" else ""
        length = number(event, "len", 0)
        return f"{get('opcode')} psn {get('psn')}{said}" + (f", {length} B" if length > 0 else "")
    return TITLES[kind](get) if kind in TITLES else kind
