#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Fuzzes the plugin with a guest that does anything at any moment: registers, configuration space,
commands, interrupts and DMA that go to the function itself or to its slot, frames, and a user
who resets, stops and unplugs.

A round is one QEMU and some hundred steps, all drawn from the round's seed; now and then the
function is brought up again. A round fails if QEMU ends, does not answer (for example because of a
turn without a bound), or a sanitizer reports something. Then the seed and the last steps are
printed: fuzz.py --seed SEED --rounds 1 repeats them, as far as QEMU's own threads allow.
"""
import argparse
import os
import pathlib
import random
import socket
import sys
import tempfile
import time

import function as fn
from function import BAR, BAR_SIZE, PAGE
from layouts import COMMANDS, PRM, Image, input_of, opcode, output_of
from machine import Failure, Plugin, Refused
from queues import RDMA_WRITE, SEND, Connection

ROOT = pathlib.Path(__file__).resolve().parents[2]
STEPS = 400
LAST = 60          # lines of a failed round that are printed
SETTLE = 4         # checks of a command that may never end
APIC = 0xfee00000
NOWHERE = 0x7f00000000

REGISTERS = [0x0, 0x10, 0x14, 0x18, 0x18, 0x18, 0x1fc, 0x200, 0xff8, 0x1000, 0x1004, 0x100c, 0x1010,
             0x1040, 0x200c, 0x2000, 0x3000, 0x3008]
DOORBELLS = [0x20, 0x24, 0x40, 0x44, 0x48, 0x800, 0x804, 0x808, 0x8f8, 0x900, 0x9f8, 0xff8]

# Commands that lead somewhere; all others are tried, too.
LIKELY = ["CREATE_EQ", "GEN_EQE", "GEN_EQE", "QUERY_EQ", "DESTROY_EQ", "CREATE_CQ", "DESTROY_CQ",
          "MODIFY_CQ", "CREATE_MKEY", "DESTROY_MKEY", "CREATE_QP", "RST2INIT_QP", "INIT2RTR_QP",
          "RTR2RTS_QP", "2ERR_QP", "2RST_QP", "DESTROY_QP", "CREATE_SRQ", "CREATE_SQ", "CREATE_RQ",
          "CREATE_TIR", "CREATE_TIS", "ALLOC_PD", "ALLOC_UAR", "DEALLOC_UAR", "MANAGE_PAGES",
          "QUERY_HCA_CAP", "SET_HCA_CAP", "ACCESS_REG", "TEARDOWN_HCA", "DISABLE_HCA",
          "SET_ROCE_ADDRESS", "MODIFY_NIC_VPORT_CONTEXT", "ALLOC_MEMIC", "DEALLOC_MEMIC",
          "MODIFY_MEMIC"]
# The device memory in the BAR, and the size of each of its three windows.
MEMORY_AT, MEMORY_WINDOW = 28 << 20, 1 << 20


def leaves(struct, prefix="", depth=0):
    """Yields the paths of a structure's numbers."""
    found = []
    for field in PRM.structs[struct].fields:
        path = prefix + field.name
        if field.type and field.count is None:
            found += leaves(field.type, path + ".", depth + 1)
        elif not field.type:
            found.append((f"{path}[0]" if field.count is not None else path, field.width))
    return found


LEAVES = {name: leaves(input_of(name)) for name in COMMANDS}

# Fields that contain the number of an object, with the name of that number in the creating command.
KINDS = {"c_eqn_or_apu_element": "eq_number", "cqn_snd": "cqn", "cqn_rcv": "cqn", "uar_page": "uar",
         "remote_qpn": "qpn", "srqn_rmpn_xrqn": "srqn"}
# The guest's data in memory: words that have an effect where they land.
POISON = b"".join(word.to_bytes(4, "little") for word in (
    fn.FLR, fn.SLOT_POWER_OFF, fn.SLOT_POWER_OFF << 16, fn.SECONDARY_RESET, fn.SECONDARY_RESET << 16,
    fn.FLR << 16, 0, 0xffffffff, fn.NIC_DISABLED << 8, 3, 6, 0x01000000)) * 64


class Guest:
    """One round."""

    def __init__(self, machine, seed, ends):
        self.machine = machine
        self.random = random.Random(seed)
        self.ends = ends  # (the netdev's address, the test's socket)
        self.numbers = [0, 1, 2, 3, 4, 8, 64, 256]
        self.known = {}  # numbers of objects by kind
        self.connections = []
        self.stopped = False
        self.hca = fn.Function(machine, patience=0.2)  # a command may never end
        self.steps = [
            (self.write_register, 16), (self.read_register, 4), (self.write_config, 6),
            (self.write_port, 1), (self.commands, 28), (self.connection, 6), (self.work, 20),
            (self.interrupts, 6), (self.frames, 4), (self.reset, 0.5), (self.unplug, 1),
            (self.plug, 0.5), (self.link, 2), (self.stop, 1), (self.cont, 3), (self.revive, 16)]

    def run(self):
        self.revive()
        methods, weights = zip(*self.steps)
        for step in range(STEPS):
            method = self.random.choices(methods, weights)[0]
            self.machine.sent.append(f"# step {step}: {method.__name__}")
            try:
                method()
            except (Refused, fn.CommandFailed, fn.NotAnswered, fn.Absent):
                pass  # QEMU or the function may refuse
            if step % 16 == 0:
                self.machine.alive()
        self.cont()
        self.machine.alive()

    # Random values

    def chance(self, of):
        return self.random.random() < of

    def number(self, bits=32):
        kind = self.random.randrange(6)
        value = (self.random.choice(self.numbers) if kind < 3 else
                 self.random.getrandbits(bits) if kind == 3 else
                 (1 << bits) - 1 if kind == 4 else self.random.randrange(16))
        return value & ((1 << bits) - 1)

    def object(self, path, bits):
        """Returns a number for a field: of an object of its kind, or any."""
        name = path.split(".")[-1].split("[")[0]
        known = self.known.get(KINDS.get(name, name))
        if known and self.chance(0.8):
            return self.random.choice(known) & ((1 << bits) - 1)
        return self.number(bits)

    def address(self):
        """Returns a target of DMA or of an interrupt: mostly one that it should not be."""
        hca, draw = self.hca, self.random
        where = draw.randrange(12)
        if where < 3:
            return fn.HEAP + draw.randrange(fn.HEAP_END - fn.HEAP - PAGE) // 64 * 64
        if where < 6:
            return hca.device_control // 64 * 64 + draw.choice((0, 0, 0x28, 0x29, 0x2c, -64))
        if where < 7:
            return hca.config_page + draw.randrange(PAGE) // 4 * 4
        if where < 8:
            return draw.choice((hca.slot_control, hca.slot_control // 64 * 64,
                                hca.port_page + fn.BRIDGE_CONTROL, hca.port_page))
        if where < 9:
            return hca.port_page + draw.randrange(PAGE) // 4 * 4
        if where < 11:
            return self.register() + BAR
        return draw.choice((APIC, NOWHERE, BAR + BAR_SIZE - 64, (1 << 64) - 64))

    def register(self):
        draw = self.random
        where = draw.randrange(9)
        if where == 8:
            return self.device_memory() + draw.randrange(3) * MEMORY_WINDOW + draw.randrange(64)
        if where < 3:
            return draw.choice(REGISTERS)
        if where < 6:
            uar = self.uarn() if self.chance(0.8) else draw.randrange(8, BAR_SIZE // PAGE)
            return uar * PAGE + draw.choice(DOORBELLS)
        return draw.randrange(0x4000 if where == 6 else BAR_SIZE)

    def device_memory(self):
        """Returns a page of the device memory, among the few that are allocated."""
        return MEMORY_AT + self.random.randrange(4) * PAGE

    def uarn(self):
        return getattr(self.hca, "uarn", 8) % (BAR_SIZE // PAGE)

    def value(self, length):
        """Returns a value to write: a doorbell of something, or anything."""
        draw = self.random
        kind = draw.randrange(5)
        if kind == 0:
            word = (self.number(8) << 24 | self.number(24)) << 8 * (length - 4) if length > 4 else 0
        elif kind == 1:  # a send doorbell
            word = self.number(16) << 40 | draw.choice((0, 8, 10, 16)) << 32 | self.number(24) << 8 | 3
        elif kind == 2:
            word = 1 << draw.randrange(8 * length)
        else:
            word = self.number(8 * length)
        return word & ((1 << 8 * length) - 1)

    # Steps

    def write_register(self):
        lines = []
        for _ in range(self.random.randrange(1, 6)):
            length = self.random.choice((1, 2, 4, 4, 4, 8, 8))
            offset = self.register() % (BAR_SIZE - 8)
            if self.chance(0.9):
                offset -= offset % length
            if offset // 4 in (4, 5) and self.chance(0.9):
                continue  # the command queue is of more use at its present address
            lines.append(self.machine.write_line(
                BAR + offset, self.value(length).to_bytes(length, "big")))
        self.machine.ask(*lines)

    def read_register(self):
        lines = []
        for _ in range(self.random.randrange(1, 6)):
            length = self.random.choice((1, 2, 4, 8, 16))
            lines.append(f"read 0x{BAR + self.register() % (BAR_SIZE - 16):x} 0x{length:x}")
        self.machine.ask(*lines)

    def write_config(self):
        hca, draw = self.hca, self.random
        known = [hca.device_control - hca.config_page, hca.msix + 2, hca.pm + 4, fn.COMMAND, 0x10,
                 0x14, 0x30, 0xc4, 0xc8, 0xcc, 0xd0, 0xd4, 0x104, 0x108]
        for _ in range(draw.randrange(1, 4)):
            length = draw.choice((1, 2, 4))
            at = draw.choice(known) if self.chance(0.7) else draw.randrange(PAGE - 4)
            if at == fn.COMMAND and self.chance(0.8):
                value = fn.MEMORY_SPACE | (fn.BUS_MASTER if self.chance(0.5) else 0)
                length = 2
            else:
                value = self.value(length)
            if self.chance(0.3):
                self.machine.read(hca.config_page + at, length)
            self.machine.store(hca.config_page + at, length, value)

    def write_port(self):
        hca, draw = self.hca, self.random
        at = draw.choice((hca.port_express + fn.SLOT_CONTROL, fn.BRIDGE_CONTROL, fn.COMMAND, 0x18,
                          0x24, hca.port_express + 8, draw.randrange(PAGE - 4)))
        self.machine.store(hca.port_page + at, draw.choice((1, 2, 4)) & 2 or 2,
                           draw.choice((fn.SLOT_POWER_OFF, fn.SLOT_POWER_ON, fn.SECONDARY_RESET, 0,
                                        draw.getrandbits(16))))

    def image(self, name):
        """Returns a command: one that would have an effect, and then a part of it is changed."""
        hca, page = self.hca, self.address() & (1 << 64) - 64
        likely = {
            "CREATE_EQ": {"eq_context_entry.log_eq_size": self.random.randrange(4),
                          "eq_context_entry.uar_page": self.uarn(),
                          "eq_context_entry.intr": self.random.randrange(4),
                          "eq_context_entry.page_offset": page % PAGE // 64,
                          "event_bitmask[0]": self.random.getrandbits(64) & ~0x401,
                          "pas[0]": page},
            "GEN_EQE": {"eq_number": self.object("eq_number", 8), "eqe": self.event()},
            "CREATE_CQ": {"cq_context.log_cq_size": self.random.randrange(4),
                          "cq_context.uar_page": self.uarn(), "cq_context.dbr_addr": page ^ 64,
                          "cq_context.page_offset": page % PAGE // 64,
                          "cq_context.c_eqn_or_apu_element": self.object("eq_number", 8),
                          "pas[0]": page},
            "ALLOC_MEMIC": {"range_start_addr": self.device_memory(), "range_size": PAGE,
                            "memic_size": 64},
            "DEALLOC_MEMIC": {"memic_start_addr": self.device_memory(), "memic_size": 64},
            "MODIFY_MEMIC": {"memic_start_addr": self.device_memory(),
                             "memic_operation_type": self.random.randrange(2),
                             "op_mod": self.random.randrange(2)},
            "CREATE_MKEY": {f"memory_key_mkey_entry.{key}": value for key, value in {
                "lr": 1, "lw": 1, "rr": 1, "rw": 1, "a": 1, "qpn": 0xffffff, "mkey_7_0": 1,
                "pd": getattr(hca, "pdn", 1), "length64": 1}.items()},
        }.get(name, {})
        image = Image(input_of(name), likely)
        image.data[:2] = opcode(name).to_bytes(2, "big")
        for path, width in LEAVES[name]:
            if path not in likely and KINDS.get(path.split(".")[-1], path) in self.known:
                image[path] = self.object(path, width)
        if name == "CREATE_MKEY" and self.chance(0.2):  # of device memory
            for key, value in (("access_mode_1_0", 1), ("access_mode_4_2", 1), ("length64", 0),
                               ("start_addr", self.device_memory()), ("len", 64)):
                image[f"memory_key_mkey_entry.{key}"] = value
        for _ in range(self.random.choice((0, 0, 0, 1, 2, 6))):
            path, width = self.random.choice(LEAVES[name])
            if path.split(".")[-1] != "opcode":
                image[path] = self.address() if width == 64 else self.object(path, width)
        return bytes(image)

    def event(self):
        """Makes an EQE that has an effect if the ring lies on a register."""
        eqe = bytearray(self.random.randbytes(64) if self.chance(0.2) else 64)
        for address, value in ((self.hca.device_control, fn.FLR),
                               (self.hca.slot_control, fn.SLOT_POWER_OFF)):
            if self.chance(0.4):
                eqe[address % 64:address % 64 + 2] = value.to_bytes(2, "little")
        return bytes(eqe)

    def commands(self):
        hca, draw = self.hca, self.random
        names = {}
        for slot in draw.sample(range(fn.ENTRIES), draw.choice((1, 1, 1, 2, 4))):
            name = draw.choice(LIKELY if self.chance(0.8) else COMMANDS)
            if name in ("TEARDOWN_HCA", "DISABLE_HCA") and self.chance(0.9):
                continue
            data = self.image(name)
            length = PRM.structs[output_of(name)].size + draw.choice((0, 0, 0, 16, 512))
            boxes = {f"{way}_box": self.address() // 512 * 512 for way in ("in", "out")
                     if self.chance(0.04)}
            hca.prepare(slot, data, length, token=0 if boxes else 1, **boxes)
            names[slot] = name
        hca.ring(sum(1 << slot for slot in names))
        for _ in range(SETTLE):
            if all(hca.done(slot) for slot in names):
                break
            self.machine.settle()
        for slot, name in names.items():
            if "CREATE" in name or "ALLOC" in name:
                output = hca.output(fn.INLINE, slot)
                number = int.from_bytes(output[9:12], "big")
                for field in PRM.structs[output_of(name)].fields:
                    if field.bit // 32 == 2 and number and not output[0]:
                        self.learn(field.name, number)

    def learn(self, kind, number):
        self.known[kind] = self.known.get(kind, [])[-7:] + [number]
        self.numbers = self.numbers[:8] + self.numbers[8:][-30:] + [number]

    def connection(self):
        slot = self.address() // 64 * 64 & (1 << 64) - 1 if self.chance(0.3) else None
        connection = Connection(self.hca, cq_slot=slot)
        self.connections = self.connections[-3:] + [connection]
        self.learn("qpn", connection.qpn)
        self.learn("cqn", connection.cqn)
        connection.connect()

    def work(self):
        if not self.connections:
            return
        connection = self.random.choice(self.connections)
        for _ in range(self.random.randrange(1, 8)):
            length = self.random.choice((1, 2, 4, 64, 600, PAGE, 1 << 16, 0x70000))
            source = self.address()
            if self.chance(0.7):
                source = self.poison + self.random.randrange(0, 256, 2)
            if self.chance(0.4):
                connection.post_recv(self.address(), length)
            if self.chance(0.6):
                connection.post(RDMA_WRITE, source, length, remote=self.address())
            else:
                connection.post(SEND, source, length)

    def interrupts(self):
        for _ in range(self.random.randrange(1, 4)):
            address = self.address() // 4 * 4
            data = self.random.choice((fn.FLR, fn.SLOT_POWER_OFF, fn.SECONDARY_RESET << 16,
                                       self.number(8), self.random.getrandbits(32)))
            # Messages to the CPU use a fixed vector: a reset of it, or a system management
            # interrupt, would start something.
            self.hca.msix_vector(self.random.randrange(5), address,
                                 0x40 if address == APIC else data)
        self.hca.msix_on()

    def frames(self):
        ours = self.ends[1]
        frames = [bytes.fromhex("0200 00ca 5101 0200 00ca 5102 0800") + self.random.randbytes(
            self.random.choice((20, 46, 200, 1486)))]
        try:
            while True:
                frames.append(ours.recv(1 << 16))  # frames that the function sent come back, nearly unchanged
        except BlockingIOError:
            pass
        for frame in frames[-8:]:
            frame = bytearray(frame)
            for _ in range(self.random.randrange(3)):
                frame[self.random.randrange(len(frame))] = self.random.randrange(256)
            try:
                ours.sendto(frame, self.ends[0])
            except OSError:
                pass  # the socket is full: the frame counts as lost

    def reset(self):
        self.machine.qmp("system_reset")

    def unplug(self):
        if self.chance(0.5):
            self.machine.qmp("device_del", id="hca")
        self.machine.store(self.hca.slot_control, 2, fn.SLOT_POWER_OFF)

    def plug(self):
        self.hca.plug(netdev="net")

    def link(self):
        self.machine.qmp("set_link", name="net", up=self.chance(0.6))

    def stop(self):
        self.stopped = True
        self.machine.qmp("stop")

    def cont(self):
        self.stopped = False
        self.machine.qmp("cont")

    def revive(self):
        """Finds the function wherever it is now, and brings it up if necessary."""
        if self.stopped:
            self.cont()
        self.hca.enumerate()
        if not self.hca.present():
            self.hca.plug(netdev="net")
        elif not self.hca.is_reset() and self.chance(0.9):
            return
        self.connections, self.known = [], {}
        self.hca.flr()
        self.hca.configure()
        self.hca.bring_up()
        self.poison = self.hca.alloc()
        self.machine.write(self.poison, POISON)
        for kind, number in (("eq_number", self.hca.eqn), ("uar", self.hca.uarn),
                             ("pd", self.hca.pdn)):
            self.learn(kind, number)


def fuzz_round(plugin, seed):
    """Runs one QEMU; returns the seconds of its longest answer."""
    with tempfile.TemporaryDirectory() as work:
        paths = [os.path.join(work, name) for name in ("theirs", "ours")]
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ours:
            ours.bind(paths[1])
            ours.setblocking(False)
            netdev = ["-netdev", f"dgram,id=net,local.type=unix,local.path={paths[0]},"
                      f"remote.type=unix,remote.path={paths[1]}"]
            with plugin.machine(work, netdev + fn.PORT + fn.device_argument(netdev="net")) as machine:
                try:
                    Guest(machine, seed, (paths[0], ours)).run()
                    if machine.quit():
                        raise Failure(f"QEMU did not end well{machine.last_words()}")
                except Failure as failure:
                    steps = "".join(f"\n  {line[:200]}" for line in machine.sent[-LAST:])
                    raise Failure(f"seed {seed}: {failure}\nThe last steps:{steps}") from None
                return machine.longest


def fuzz(plugin, seconds, seed=None, rounds=None):
    """Runs rounds until time is up; prints what was done. The first failure ends it."""
    seed = random.randrange(1 << 32) if seed is None else seed
    until, done, longest = time.monotonic() + seconds, 0, 0
    while done < rounds if rounds else time.monotonic() < until:
        longest = max(longest, fuzz_round(plugin, seed + done))
        done += 1
    return f"seeds {seed} to {seed + done - 1}, {STEPS} steps each, longest answer {longest:.2f} s"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build-asan",
                        help="The build folder with qemu-dev/hcasim.so (default: build-asan).")
    parser.add_argument("--seconds", type=int, default=30, help="The time in which new rounds begin (default: 30).")
    parser.add_argument("--rounds", type=int, help="The number of rounds, instead of a time.")
    parser.add_argument("--seed", type=int, help="The seed of the first round. Each further round has the next seed.")
    args = parser.parse_args()
    try:
        print(fuzz(Plugin(args.build / "qemu-dev/hcasim.so"), args.seconds, args.seed, args.rounds))
    except Failure as failure:
        print(f"FAIL {failure}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
