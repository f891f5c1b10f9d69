# SPDX-License-Identifier: BSD-2-Clause
"""Joins the events of traces and captures: which packet arrived as which, and which events belong to a message.

A message is one work request of a send queue, from its posting to its last completion. The story is a plain object
that becomes JSON in the page (page.js says what it reads):

    hosts     [{name, title}]
    events    [{t, host, kind, qpn, message, title, data, ...}], in the order of time; t in ns since the first one
    arrows    [{sent, received, lost, repeated, why}], of indices of events; received -1: it did not arrive
    messages  [{host, qpn, wqe, title, from, to, packets, repeated, lost, status}]
"""
import json
import pathlib

from pcapng import Unreadable, read as read_capture

PSN_MASK, PSN_HALF = 0xffffff, 0x800000
MOST_LINE = 1 << 20
PCAPNG = b"\x0a\x0d\x0d\x0a"
NEAR = 2_000_000        # ns between a packet's event in a trace and the same packet in a capture


def read_trace(path):
    """Yields the events of a trace file. A line that is cut off at the end (a killed process) is left out."""
    with open(path, encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(iter(lambda: file.readline(MOST_LINE), ""), 1):
            try:
                event = json.loads(line)
            except ValueError as error:
                if line.endswith("\n"):
                    raise Unreadable(f"line {number} is no event of a trace") from error
                return
            if isinstance(event, dict) and "hcasim" in event:
                continue
            if not isinstance(event, dict) or not isinstance(event.get("t"), int) or \
                    not isinstance(event.get("e"), str):
                raise Unreadable(f"line {number} is no event of a trace")
            yield event


def read_all(paths):
    """Returns the events of traces, and those of captures."""
    traced, captured = [], []
    for path in paths:
        try:
            with open(path, "rb") as file:
                is_capture = file.read(4) == PCAPNG
            if is_capture:
                for event in read_capture(path):
                    captured.append({**event, "file": pathlib.Path(path).name})
            else:
                traced += read_trace(path)
        except (OSError, Unreadable) as error:
            raise Unreadable(f"{path}: {error}") from error
    return traced, captured


def number(event, key, default=-1):
    value = event.get(key, default)
    return value if isinstance(value, int) else default


def packet_key(event, qpn):
    return (str(event.get("src")), str(event.get("dst")), str(event.get("opcode")), number(event, qpn),
            number(event, "psn"))


def before(a, b):
    """Whether PSN a is b, or comes before it."""
    return (b - a) & PSN_MASK < PSN_HALF


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
        for event in traced:
            if event["e"] in ("sent", "received"):
                key = (event["e"], *packet_key(event, "dqpn" if event["e"] == "sent" else "qpn"))
                known.setdefault(key, []).append(event)
        addresses = {str(event.get("src" if event["e"] == "sent" else "dst")) for event in traced
                     if event["e"] in ("sent", "received")}
        rest = []
        for event in captured:
            kind = "sent" if event["e"] == "seen" else event["e"]
            key = (kind, *packet_key(event, "dqpn" if kind == "sent" else "qpn"))
            near = [other for other in known.get(key, ()) if "frame" not in other and
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
            if event["e"] in ("sent", "seen") and "psn" in event:
                sent.setdefault(packet_key(event, "dqpn"), []).append(at)
            elif event["e"] == "received" and "psn" in event:
                received.setdefault(packet_key(event, "qpn"), []).append(at)
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

    def _usual_time(self, sent, received):
        times = sorted(self.events[received[key][0]]["t"] - self.events[starts[0]]["t"]
                       for key, starts in sent.items() if len(starts) == 1 and len(received.get(key, ())) == 1)
        return times[len(times) // 2] if times else 0

    def _pair(self, starts, ends, usual):
        found = dict.fromkeys(starts, -1)
        for end in ends:
            free = [start for start in starts if found[start] < 0 and
                    self.events[start]["t"] <= self.events[end]["t"]]
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
        arrow = {"sent": start, "received": end, "lost": "", "repeated": int(bool(event.get("repeated"))),
                 "why": str(event.get("why", "")), "to": "", "from": ""}
        if start >= 0:
            target = self._host_of(str(event.get("dst")))
            arrow["to"] = target
            if event.get("lost"):
                arrow["lost"] = str(event["lost"])
            elif end >= 0 and self.events[end].get("lost"):
                arrow["lost"] = str(self.events[end]["lost"])
            elif end < 0 and event["e"] == "sent" and event["t"] + self.usual < self.last.get(target, 0):
                arrow["lost"] = "lost on the way"
        else:
            arrow["from"] = self._host_of(str(event.get("src")))
        self.arrows.append(arrow)

    # -- messages

    def _find_messages(self):
        queues = {}         # (host, qpn) -> (first PSN, WQE, message) of its WQEs, in order
        posted = {}         # (host, qpn, wqe) -> messages posted and not started
        self.last_arrival = {}
        completions = {}    # (host, cqn, qpn, wqe, of_send) -> messages whose CQE is not polled
        for at, event in enumerate(self.events):
            handler = getattr(self, "_on_" + event["e"], None)
            event["message"] = -1
            if handler:
                handler(at, event, queues, posted, completions)
        self._sum_up()

    def _new_message(self, at, event):
        self.messages.append({"host": event["host"], "qpn": number(event, "qpn"), "wqe": number(event, "wqe"),
                              "opcode": str(event.get("opcode", "?")), "len": None, "events": []})
        self._join(at, event, len(self.messages) - 1)
        return len(self.messages) - 1

    def _join(self, at, event, message):
        event["message"] = message
        self.messages[message]["events"].append(at)

    def _on_post(self, at, event, queues, posted, completions):
        key = (event["host"], number(event, "qpn"), number(event, "wqe"))
        message = self._new_message(at, event)
        self.messages[message]["wr_id"] = str(event.get("wr_id", ""))
        posted.setdefault(key, []).append(message)

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
            message = waiting.pop(0)
            self._join(at, event, message)
        else:
            message = self._new_message(at, event)
        if not is_fetch:
            self.messages[message].update(len=number(event, "len", 0), opcode=str(event.get("opcode", "?")))
        # The device counts its own WQEs apart, and they have no completion.
        wqe = -1 if is_fetch else number(event, "wqe")
        queues.setdefault(key[:2], []).append((number(event, "psn"), wqe, message))

    @staticmethod
    def _message_of_psn(queue, psn):
        for first, _, message in reversed(queue):
            if before(first, psn):
                return message
        return -1

    def _on_sent(self, at, event, queues, posted, completions):
        if "psn" not in event:
            return
        message = -1
        if "request_psn" in event:
            queue = queues.get((self.addresses.get(str(event.get("dst"))), number(event, "dqpn")), [])
            message = self._message_of_psn(queue, number(event, "request_psn"))
        elif "qpn" in event:
            queue = queues.get((event["host"], number(event, "qpn")), [])
            # A queue that starts a WQE writes the WQE's event first.
            message = self._message_of_psn(queue, number(event, "first_psn", number(event, "psn")))
        if message >= 0:
            self._join(at, event, message)

    def _on_received(self, at, event, queues, posted, completions):
        start = event.get("sent_by", -1)
        message = self.events[start]["message"] if start >= 0 else -1
        if message >= 0:
            self._join(at, event, message)
        self.last_arrival[event["host"], number(event, "qpn")] = message

    def _on_receive(self, at, event, queues, posted, completions):
        message = self.last_arrival.get((event["host"], number(event, "qpn")), -1)
        if message >= 0:
            self._join(at, event, message)

    def _on_cqe(self, at, event, queues, posted, completions):
        key = (event["host"], number(event, "qpn"))
        message = -1
        if event.get("of_send"):
            for _, wqe, candidate in reversed(queues.get(key, [])):
                if wqe == number(event, "wqe"):
                    message = candidate
                    break
            if message >= 0:
                self.messages[message]["status"] = str(event.get("syndrome", "success"))
        else:
            message = self.last_arrival.get(key, -1)
        if message >= 0:
            self._join(at, event, message)
        completions.setdefault(self._completion_key(event), []).append(message)

    @staticmethod
    def _completion_key(event):
        return (event["host"], *(number(event, key) for key in ("cqn", "qpn", "wqe", "of_send")))

    def _on_poll(self, at, event, queues, posted, completions):
        waiting = completions.get(self._completion_key(event))
        message = waiting.pop(0) if waiting else -1
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
                "title": f"{message['opcode']}{size}", "events": message["events"],
                "packets": message.get("packets", 0), "repeated": message.get("repeated", 0),
                "lost": message.get("lost", 0), "reasons": list(message.get("reasons", {})),
                "status": message.get("status", ""), "wr_id": message.get("wr_id", "")}


# What a reader sees of an event that is no packet.
TITLES = {
    "command": lambda get: f"command {get('command')} {get('status')}",
    "state": lambda get: f"{get('from')} → {get('to')}",
    "eqe": lambda get: f"event {get('type')}",
    "interrupt": lambda get: f"interrupt {get('vector')}",
    "post": lambda get: f"ibv_post_send {get('opcode')}",
    "poll": lambda get: f"ibv_poll_cq: {get('status')}",
    "cqe": lambda get: f"CQE {get('syndrome') or get('opcode')}",
    "receive": lambda get: f"receive WQE {get('wqe')}",
    "wqe": lambda get: f"WQE {get('wqe')} {get('opcode')}",
}


def title(event):
    """What a reader sees of an event, in one line."""
    kind = event["e"]
    get = event.get
    if kind in ("sent", "received", "seen"):
        if "psn" not in event:
            return str(get("text", f"{get('len', 0)} bytes"))
        fields = get("fields") if isinstance(get("fields"), dict) else {}
        said = f" {fields['syndrome']}" if "syndrome" in fields and fields["syndrome"] != "ACK" else ""
        length = number(event, "len", 0)
        return f"{get('opcode')} psn {get('psn')}{said}" + (f", {length} B" if length > 0 else "")
    return TITLES[kind](get) if kind in TITLES else kind
