# SPDX-License-Identifier: BSD-2-Clause
"""Converts a device's trace (model/core/trace.h) of tests/programs/tour into a form that can be
compared with that of another run.

Values that differ from run to run have a name instead: queue numbers, keys, user indices, addresses
in the program's memory. Commands are parsed by the descriptions in prm.
"""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "prm")]

from describe import Descriptions  # noqa: E402

PRM = Descriptions(sorted(map(str, (ROOT / "prm").glob("*.prm"))))
# Numbers that the device assigns and addresses of memory: runs only share that there is such a
# value.
GIVEN = {"uid", "pd", "uar_page", "c_eqn_or_apu_element", "dbr_addr", "rmpn"}
OBJECTS = {"CREATE_CQ", "CREATE_RMP", "CREATE_QP", "RST2INIT_QP", "INIT2RTR_QP", "RTR2RTS_QP",
           "DESTROY_QP", "DESTROY_RMP", "DESTROY_CQ"}
Command = collections.namedtuple("Command", "name status data")


def dwords(text):
    return [int(word, 16) for word in text.split()]


def decode(struct, data, at=0, prefix=""):
    """Yields every field of the structure at byte `at` of data, as far as data reaches."""
    fields = {}
    number = int.from_bytes(data, "big")
    for field in struct.fields:
        if field.count == 0 or at + (field.bit + field.total) / 8 > len(data):
            continue
        for i in range(field.count or 1):
            name = prefix + field.name + (f"[{i}]" if field.count else "")
            bit = at * 8 + field.bit + i * field.width
            if field.type:
                fields.update(decode(PRM.structs[field.type], data, bit // 8, name + "."))
            else:
                fields[name] = (number >> (len(data) * 8 - bit - field.width)
                                & ((1 << field.width) - 1))
    return fields


def udp_sport(qpn, remote_qpn):
    """For a connection without a flow label (rdma_calc_flow_label(),
    rdma_flow_label_to_udp_sport())."""
    label = qpn * remote_qpn
    label ^= label >> 20
    label ^= label >> 40
    return 0xc000 | (label & 0x3fff) ^ (label >> 14 & 0x3f)


class Trace:
    """What one run of the program did: .commands (names, in order), .objects (parsed commands of
    the program's objects, by command), .queues (what went through each queue)."""

    def __init__(self, text):
        lines = [line.split("command ", 1) for line in text.splitlines() if "command " in line]
        commands = [self._command(line[1]) for line in lines]
        self._uid = self._uid_of_program(commands)
        self.objects = collections.defaultdict(list)
        self.commands = []
        for command in commands:
            if command.name in OBJECTS:
                fields = decode(PRM.structs[command.name.lower() + "_in"], command.data)
                if fields.get("uid") == self._uid:
                    self.objects[command.name].append(fields)
        self._name_numbers(text)
        for fields in (fields for kind in self.objects.values() for fields in kind):
            self._name_fields(fields)
        self.commands = self._of_program(commands)
        self.queues = collections.defaultdict(list)
        for line in text.splitlines():
            self._queue_line(line)

    @staticmethod
    def _command(text):
        found = re.match(r"(\w+) status (\d+):(.*)", text)
        data = b"".join(word.to_bytes(4, "big") for word in dwords(found[3]))
        return Command(found[1], int(found[2]), data)

    @staticmethod
    def _uid_of_program(commands):
        """Only the program makes an SRQ."""
        data = next(command.data for command in commands if command.name == "CREATE_RMP")
        return decode(PRM.structs["create_rmp_in"], data)["uid"]

    def _of_program(self, commands):
        """Returns the commands from the program's first to its last: (name, status)."""
        names = [(command.name, command.status) for command in commands]
        return names[names.index(("CREATE_UCTX", 0)):names.index(("DESTROY_UCTX", 0)) + 1]

    def _name_numbers(self, text):
        self.qps = {fields["qpn"]: f"qp{i}" for i, fields in enumerate(self.objects["RST2INIT_QP"])}
        creates = self.objects["CREATE_QP"]
        self.cqs = {creates[0]["qpc.cqn_snd"]: "send_cq", creates[0]["qpc.cqn_rcv"]: "recv_cq"}
        self.uidx = {fields["qpc.user_index"]: f"uidx{i}" for i, fields in enumerate(creates)}
        # The first WQE of the tour begins at the start of its memory.
        first = next(dwords(line.rsplit(":", 1)[1]) for line in text.splitlines()
                     if re.search(rf"qp 0x{next(iter(self.qps)):x}: send wqe 0 ", line))
        self._key, self._base = first[5], first[6] << 32 | first[7]

    def _name_fields(self, fields):
        """Replaces assigned values by names."""
        sport = next((name for name in fields if name.endswith("path.udp_sport")), None)
        if sport and fields[sport] and fields[sport] == udp_sport(fields["qpn"],
                                                                  fields["qpc.remote_qpn"]):
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

    def _name(self, words, names):
        """Returns the dwords after the control segment, with names for values."""
        out, i = [], 0
        while i < len(words):
            pair = words[i] << 32 | (words[i + 1] if i + 1 < len(words) else 0)
            if 0 <= pair - self._base < 16384:
                out += [f"mem+{pair - self._base}"]
                i += 1
            elif words[i] in (self._key, ~self._key & 0xffffffff):
                out.append("key" if words[i] == self._key else "~key")
            else:
                out.append(names.get(words[i], f"{words[i]:08x}"))
            i += 1
        return out

    def _send_wqe(self, name, words):
        av = {qpn | 0x80000000: f"to-{qp}" for qpn, qp in {**self.qps, 0xffffff: "group"}.items()}
        # The UDP source port of an address vector without a flow label is random
        # (mlx5_create_ah()).
        if len(words) > 7 and words[6] in av and words[7] >= 0xc000:
            words[7] = words[7] & ~0xffff | 0xc000
        seg = PRM.structs["wqe_ctrl_seg"]
        ctrl = decode(seg, b"".join(word.to_bytes(4, "big") for word in words[:4]))
        ctrl["qpn"] = self.qps[ctrl["qpn"]]
        return " ".join([name] + [f"{field}={value}" for field, value in ctrl.items()] +
                        self._name(words[4:], av))

    def _cqe(self, name, words):
        data = b"".join(word.to_bytes(4, "big") for word in words)
        is_error = name.endswith("_ERR")
        fields = decode(PRM.structs["err_cqe" if is_error else "cqe64"], data)
        fields["qpn"] = self.qps[fields["qpn"]]
        fields["srqn"] = self.uidx.get(fields["srqn"], fields["srqn"])
        if fields.get("rqpn"):
            fields["rqpn"] = self.qps[fields["rqpn"]]
        # The time, and other views of fields that already have a name.
        fields = {name: value for name, value in fields.items()
                  if name not in ("timestamp", "flags_rqpn") and not name.startswith("inline_data")}
        return " ".join([name] + [f"{field}={value}" for field, value in fields.items() if value])

    def _queue_line(self, line):
        found = re.search(r"(qp|cq) 0x(\w+): (send wqe \d+|receive wqe|cqe) ?(\w*):(.*)", line)
        if not found:
            found = re.search(r"(eq) (\w+): (event) (\w+)\.\d+:(.*)", line)
            if found and found[4] == "COMP" and dwords(found[5])[6] in self.cqs:
                self.queues["events"].append(f"COMP {self.cqs[dwords(found[5])[6]]}")
            elif found and found[4] not in ("COMP", "CMD"):
                self.queues["events"].append(found[4])
            return
        number = int(found[2], 16)
        if found[3] == "cqe" and number in self.cqs:
            self.queues[self.cqs[number]].append(self._cqe(found[4], dwords(found[5])))
        elif found[3].startswith("send") and number in self.qps:
            self.queues[self.qps[number]].append(self._send_wqe(found[4], dwords(found[5])))
        elif found[3].startswith("receive") and number in self.qps:
            self.queues[self.qps[number] + " receive"].append(f"{found[4]}{found[5]}")
