# SPDX-License-Identifier: BSD-2-Clause
"""A connection of the function: one key for its whole bus, a CQ, and an RC QP that is connected to
itself or to the QP of another function on the wire."""
import time

from function import PAGE
from layouts import Image, PRM
from machine import PATIENCE, Failure

VARIANT = 0x5a  # low byte of the key
RC, MIGRATED, MTU_1024 = 0, 3, 3
RDMA_WRITE, SEND = 0x08, 0x0a
BLUE_FLAME = 0x800
LOG_QUEUE = 3
WQEBB = 64
GID = bytes(10) + b"\xff\xff\x0a\x00\x00"  # 10.0.0.x


class Connection:
    """cq_slot: the address of the CQ's one entry, if it is not in memory (a multiple of 64).
    alternate: the GID of an alternate path."""

    def __init__(self, hca, host=1, cq_slot=None, alternate=None):
        self.hca = hca
        self.gid = GID + bytes([host])
        self.mac = int.from_bytes(hca.mac, "big")
        hca.command("MODIFY_NIC_VPORT_CONTEXT",
                    {"field_select.roce_en": 1, "nic_vport_context.roce_en": 1})
        hca.command("SET_ROCE_ADDRESS", {
            "roce_address.source_l3_address": self.gid,
            "roce_address.source_mac_47_32": self.mac >> 32,
            "roce_address.source_mac_31_0": self.mac & 0xffffffff,
            "roce_address.roce_version": 2})
        mkc = {"access_mode_1_0": 0, "lr": 1, "lw": 1, "rr": 1, "rw": 1, "a": 1, "qpn": 0xffffff,
               "mkey_7_0": VARIANT, "pd": hca.pdn, "length64": 1}
        key = hca.command("CREATE_MKEY",
                          {f"memory_key_mkey_entry.{name}": value for name, value in mkc.items()})
        self.key = key["mkey_index"] << 8 | VARIANT
        self.records = hca.alloc()
        self.cq = hca.alloc() if cq_slot is None else cq_slot
        if cq_slot is None:
            hca.machine.write(self.cq, b"".join(bytes(63) + b"\xf1" for _ in range(1 << LOG_QUEUE)))
        self.cqn = hca.command("CREATE_CQ", {
            "cq_context.log_cq_size": LOG_QUEUE if cq_slot is None else 0,
            "cq_context.uar_page": hca.uarn, "cq_context.c_eqn_or_apu_element": hca.eqn,
            "cq_context.dbr_addr": self.records, "cq_context.page_offset": self.cq % PAGE // 64,
            "pas[0]": self.cq // PAGE * PAGE})["cqn"]
        self.ring = hca.alloc()
        self.sent = self.received = 0
        spare = {"secondary_address_path.rgid_rip": alternate} if alternate else {}
        self.qpn = hca.command("CREATE_QP", {
            "pas[0]": self.ring, **self._qpc(
                uar_page=hca.uarn, log_sq_size=LOG_QUEUE, log_rq_size=LOG_QUEUE, log_rq_stride=0,
                dbr_addr=self.records + 64, user_index=0xffffff, **spare)})["qpn"]

    def _qpc(self, **fields):
        common = {"st": RC, "pm_state": MIGRATED, "pd": self.hca.pdn, "cqn_snd": self.cqn,
                  "cqn_rcv": self.cqn, "rre": 1, "rwe": 1, "rae": 1, "atomic_mode": 3}
        path = {} if "uar_page" in fields else {"primary_address_path.vhca_port_num": 1}
        return {f"qpc.{name}": value for name, value in {**common, **path, **fields}.items()}

    def connect(self, peer=None):
        """Connects to the peer, a Connection of another function, or to itself."""
        peer = peer or self
        path = "primary_address_path."
        self.hca.command("RST2INIT_QP", {"qpn": self.qpn, **self._qpc()})
        self.hca.command("INIT2RTR_QP", {"qpn": self.qpn, **self._qpc(**{
            "log_msg_max": 30, "mtu": MTU_1024, "remote_qpn": peer.qpn, "min_rnr_nak": 1,
            path + "hop_limit": 64, path + "udp_sport": 0xc000, path + "rgid_rip": peer.gid,
            path + "rmac_47_32": peer.mac >> 32, path + "rmac_31_0": peer.mac & 0xffffffff})})
        self.hca.command("RTR2RTS_QP", {"qpn": self.qpn, **self._qpc(**{
            path + "ack_timeout": 14, "retry_count": 7, "rnr_retry": 7})})
        return self

    def segment(self, address, length):
        return bytes(Image("wqe_data_seg", {"byte_count": length, "lkey": self.key,
                                            "addr": address}))

    def post_recv(self, address, length):
        machine, slot = self.hca.machine, self.received % (1 << LOG_QUEUE)
        machine.write(self.ring + slot * 16, self.segment(address, length))
        self.received += 1
        machine.write(self.records + 64, self.received.to_bytes(4, "big"))

    def post(self, opcode, address, length, remote=None, ring=True):
        """Posts a SEND, or with remote an RDMA_WRITE to the peer's address."""
        machine = self.hca.machine
        body = self.segment(address, length)
        if remote is not None:
            body = bytes(Image("wqe_raddr_seg", {"raddr": remote, "rkey": self.key})) + body
        ctrl = bytes(Image("wqe_ctrl_seg", {
            "wqe_index": self.sent, "opcode": opcode, "qpn": self.qpn, "ce": 2,
            "ds": 1 + len(body) // 16}))
        slot = self.sent % (1 << LOG_QUEUE)
        queue = self.ring + (16 << LOG_QUEUE)
        machine.write(queue + slot * WQEBB, ctrl + body)
        self.sent += 1
        machine.write(self.records + 68, self.sent.to_bytes(4, "big"))
        if ring:
            self.hca.uar(self.hca.uarn, BLUE_FLAME, int.from_bytes(ctrl[:8], "big"))

    def completions(self):
        """Returns the opcodes of the CQEs that have come so far."""
        entries = self.hca.machine.read(self.cq, WQEBB << LOG_QUEUE)
        last = [entries[i + 63] for i in range(0, len(entries), WQEBB)]
        return [byte >> 4 for byte in last if byte != 0xf1]

    def wait(self, count):
        """Waits for that many completions, all of them successful."""
        deadline = time.monotonic() + PATIENCE
        while len(self.completions()) < count:
            if time.monotonic() > deadline:
                raise Failure(f"{len(self.completions())} of {count} completions came")
            self.hca.machine.settle()
        bad = [opcode for opcode in self.completions() if opcode in ERRORS]
        if bad:
            raise Failure(f"completions with errors: {bad}")


ERRORS = [value for value, name, _ in PRM.enums["cqe_opcode"].values if name.endswith("_ERR")]
