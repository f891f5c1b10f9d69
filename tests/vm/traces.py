# SPDX-License-Identifier: BSD-2-Clause
"""Converts a device's trace (docs/reference/trace.md) of tests/programs/tour into a form that can
be compared with that of another run.

Values that differ from run to run have a name instead: queue numbers, keys, user indices, addresses
in the program's memory. The trace leaves out fields that are zero, and so does this form.
"""
import collections
import re

# Numbers that the device assigns and addresses of memory: runs only share that there is such a
# value.
GIVEN = {"uid", "pd", "uar_page", "c_eqn_or_apu_element", "dbr_addr", "rmpn", "src_addr_index"}
OBJECTS = {"CREATE_CQ", "CREATE_RMP", "CREATE_QP", "RST2INIT_QP", "INIT2RTR_QP", "RTR2RTS_QP",
           "DESTROY_QP", "DESTROY_RMP", "DESTROY_CQ"}
MEMORY = 16384  # bytes of the program's memory region
Command = collections.namedtuple("Command", "name status fields")


def number(text):
    """Returns the number, or the text if it is the name of a value."""
    return int(text, 0) if re.fullmatch(r"\d+|0x[0-9a-f]+", text) else text


def parse(text):
    """Returns the fields of a line by their paths ("qpc.state"), without lists of pages. Of a field
    that has changed ("state=RST->INIT"), it takes the new value."""
    fields, path = {}, []
    for opened, closed, name, value in re.findall(
            r"([\w\[\]]+)\{|(\})|([\w\[\]]+)=([^\s{}]*)", text):
        if opened:
            path.append(opened)
        elif closed:
            path.pop()
        elif not any(part.startswith("pas[") for part in (*path, name)):
            fields[".".join((*path, name))] = number(value.rsplit("->", 1)[-1])
    return fields


def udp_sport(qpn, remote_qpn):
    """Returns the UDP source port of a connection without a flow label (rdma_calc_flow_label(),
    rdma_flow_label_to_udp_sport())."""
    label = qpn * remote_qpn
    label ^= label >> 20
    label ^= label >> 40
    return 0xc000 | (label & 0x3fff) ^ (label >> 14 & 0x3f)


class Trace:
    """What one run of the program did: .commands (names, in order), .objects (parsed commands of
    the program's objects, by command), .queues (what went through each queue)."""

    def __init__(self, text):
        found = re.finditer(r"command (\w+) (\w+)(?: \(.*\))?(?: -> [^:]*)?(?::(.*))?$", text,
                            re.MULTILINE)
        commands = [Command(line[1], line[2], parse(line[3] or "")) for line in found]
        # Only the program makes an SRQ.
        uid = next(command.fields["uid"] for command in commands if command.name == "CREATE_RMP")
        self.objects = collections.defaultdict(list)
        for command in commands:
            if command.name in OBJECTS and command.fields.get("uid") == uid:
                self.objects[command.name].append(command.fields)
        self._name_numbers(text)
        for fields in (fields for kind in self.objects.values() for fields in kind):
            self._name_fields(fields)
        names = [(command.name, command.status) for command in commands]
        # From the program's first command to its last.
        self.commands = names[names.index(("CREATE_UCTX", "OK")):
                              names.index(("DESTROY_UCTX", "OK")) + 1]
        self.queues = collections.defaultdict(list)
        for line in text.splitlines():
            self._queue_line(line)

    def _name_numbers(self, text):
        self.qps = {fields["qpn"]: f"qp{i}" for i, fields in enumerate(self.objects["RST2INIT_QP"])}
        creates = self.objects["CREATE_QP"]
        for fields in creates:
            fields.setdefault("qpc.user_index", 0)
        self.cqs = {creates[0]["qpc.cqn_snd"]: "send_cq", creates[0]["qpc.cqn_rcv"]: "recv_cq"}
        self.uidx = {fields["qpc.user_index"]: f"uidx{i}" for i, fields in enumerate(creates)}
        # The first WQE of the tour begins at the start of its memory.
        first = re.search(rf"qp 0x{next(iter(self.qps)):x}: send wqe 0 .*? data\{{(.*?)\}}", text)
        self._key, self._base = parse(first[1])["lkey"], parse(first[1])["addr"]

    def _name_fields(self, fields):
        """Replaces assigned values by names."""
        sport = next((name for name in fields if name.endswith("path.udp_sport")), None)
        if sport and fields[sport] == udp_sport(fields["qpn"], fields["qpc.remote_qpn"]):
            fields[sport] = "of the QPNs"
        for name, value in fields.items():
            last = name.rsplit(".", 1)[-1]
            if last in GIVEN and value:
                fields[name] = "given"
            elif last in ("cqn", "cqn_snd", "cqn_rcv"):
                fields[name] = self.cqs.get(value, value)
            elif last in ("qpn", "remote_qpn"):
                fields[name] = self.qps.get(value, value)
            elif last == "user_index":
                fields[name] = self.uidx.get(value, value)

    def _name(self, field, value):
        """Returns the name of a number in a WQE or CQE, or the number."""
        if field in ("addr", "raddr") and 0 <= value - self._base < MEMORY:
            return f"mem+{value - self._base}"
        if field in ("lkey", "rkey") and value in (self._key, ~self._key & 0xffffffff):
            return "key" if value == self._key else "~key"
        if field == "dqp_dct" and value == 0xffffff:
            return "group"
        if field in ("dqp_dct", "rqpn"):
            return self.qps.get(value, value)
        if field == "src_addr_index":
            return "given"
        if field == "srqn":
            return self.uidx.get(value, value)
        # The UDP source port of an address vector without a flow label is random
        # (mlx5_create_ah()).
        return 0xc000 if field == "udp_sport" and value >= 0xc000 else value

    def _named(self, text):
        return re.sub(r"(\w+)=(0x[0-9a-f]+|\d+)\b",
                      lambda found: f"{found[1]}={self._name(found[1], int(found[2], 0))}", text)

    def _queue_line(self, line):
        if found := re.search(r"eq 0x\w+: event (\w+)[^:]*:(.*)", line):
            cq = parse(found[2]).get("cq_number")
            if found[1] == "COMP" and cq in self.cqs:
                self.queues["events"].append(f"COMP {self.cqs[cq]}")
            elif found[1] not in ("COMP", "CMD"):
                self.queues["events"].append(found[1])
        elif found := re.search(r"cq 0x(\w+): cqe (.*) qp 0x(\w+) (wqe \d+)(?::(.*))?$", line):
            cq, qpn = int(found[1], 16), int(found[3], 16)
            fields = found[5] or ""
            if found[2].startswith("RESP") and "srqn=" not in fields:
                fields += " srqn=0"  # the user index
            if cq in self.cqs:
                self.queues[self.cqs[cq]].append(
                    f"{found[2]} {self.qps[qpn]} {found[4]}{self._named(fields)}")
        elif found := re.search(r"qp 0x(\w+): (send|receive) wqe (.*)", line):
            qpn = int(found[1], 16)
            if qpn in self.qps:
                queue = self.qps[qpn] + (" receive" if found[2] == "receive" else "")
                self.queues[queue].append(self._named(found[3]))
