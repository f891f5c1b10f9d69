# SPDX-License-Identifier: BSD-2-Clause
"""The function below a root port, and a driver for it: the layer between a test's statement and
configuration space, BAR, command queue and mailboxes.

    function = Function(machine)
    function.bring_up()
    eqn = function.create_eq(ring=function.config_page)
    function.command("GEN_EQE", {"eq_number": eqn, ...})
"""
import time

from layouts import PRM, Image, input_of, opcode, output_of, size
from machine import MEMORY, PATIENCE, Failure

ECAM = 0xb0000000      # the address of configuration space that the chipset gets
BAR = 0xc0000000
BAR_SIZE = 32 << 20
PORT_DEVFN = 2 << 3    # of the root port on bus 0
MSIX_TABLE = BAR + 0x2000
PAGE = 4096
HEAP = 1 << 20         # the driver uses the guest's memory from here on
HEAP_END = MEMORY
FAR_PAGES = 1 << 40    # addresses of pages for the firmware: never read or written

# Arguments of QEMU for the function "hca" in the slot "hcaport".
PORT = ["-device", f"pcie-root-port,id=hcaport,chassis=1,slot=1,addr={PORT_DEVFN >> 3}"]
HCA = {"driver": "hcasim", "id": "hca", "bus": "hcaport"}
MAC = "02:00:00:ca:51:{:02x}"


def device_argument(host=1, **properties):
    words = {**HCA, "mac": MAC.format(host), **properties}
    return ["-device", ",".join(value if key == "driver" else f"{key}={value}"
                                for key, value in words.items())]


# Configuration space
COMMAND, BRIDGE_CONTROL = 0x04, 0x3e
MEMORY_SPACE, BUS_MASTER = 0x2, 0x4
SECONDARY_RESET = 0x40
CAP_EXPRESS, CAP_MSIX, CAP_PM = 0x10, 0x11, 0x01
DEVICE_CONTROL, SLOT_CONTROL = 0x08, 0x18  # in the Express capability
FLR = 0x8000
SLOT_POWER_OFF = 0x700  # power controller off, power indicator off
SLOT_POWER_ON = 0x100   # power controller on, power indicator on

# Initialization segment
CMDQ_HIGH, CMDQ_LOW, DOORBELL = 0x10, 0x14, 0x18
NIC_DISABLED = 1 << 8


# UAR pages
EQ_ARM = 0x40

# Command queue
ENTRIES = 32
STRIDE = 64
BOX_STRIDE = 1024
BOX_DATA = 512
INLINE = 16


class CommandFailed(Failure):
    """A command came back with a status other than 0."""

    def __init__(self, name, status, syndrome):
        super().__init__(f"{name}: status 0x{status:x}, syndrome 0x{syndrome:x}")
        self.status, self.syndrome = status, syndrome


class Absent(Failure):
    """Something is missing in configuration space."""


class NotAnswered(Failure):
    """The firmware is not there, or the device keeps a command's entry, or the entry cannot be
    read."""


class Function:
    def __init__(self, machine, host=1, patience=PATIENCE):
        self.machine = machine
        self.patience = patience  # seconds for a command
        self.mac = bytes.fromhex(MAC.format(host).replace(":", ""))
        self.port_page = ECAM | PORT_DEVFN << 12
        self.config_page = ECAM | 1 << 20
        self.heap = HEAP
        self.enumerate()

    # Configuration space

    def enumerate(self):
        """Does what firmware and a kernel do until the function's BAR answers."""
        machine = self.machine
        machine.out(0xcf8, 0x80000060)  # the chipset's PCIEXBAR
        machine.out(0xcfc, ECAM | 1)
        machine.out(0xcf8, 0x80000064)
        machine.out(0xcfc, 0)
        port = self.port_page
        machine.store(port + 0x18, 4, 0x00010100)  # bus 1 is behind it
        machine.store(port + 0x20, 4, 0x0000fff0)  # no window but the prefetchable one
        window = BAR >> 16 | (BAR + BAR_SIZE - 1) >> 16 << 16
        machine.store(port + 0x24, 4, window)
        machine.store(port + 0x28, 8, 0)
        machine.store(port + BRIDGE_CONTROL, 2, 0)
        machine.store(port + COMMAND, 2, MEMORY_SPACE | BUS_MASTER)
        self.port_express = self.capability(port, CAP_EXPRESS)
        self.slot_control = port + self.port_express + SLOT_CONTROL
        if self.present():
            self.configure()

    def configure(self):
        self.express = self.capability(self.config_page, CAP_EXPRESS)
        self.msix = self.capability(self.config_page, CAP_MSIX)
        self.pm = self.capability(self.config_page, CAP_PM)
        self.device_control = self.config_page + self.express + DEVICE_CONTROL
        self.machine.store(self.config_page + 0x10, 8, BAR)
        self.machine.store(self.config_page + COMMAND, 2, MEMORY_SPACE | BUS_MASTER)

    def unplug(self):
        """Asks for the function to be unplugged, and removes it as a guest does."""
        self.machine.qmp("device_del", id=HCA["id"])
        self.machine.store(self.slot_control, 2, SLOT_POWER_OFF)
        self.machine.settle()

    def plug(self, host=1, **properties):
        """Plugs a function in, switches its slot on, and finds it."""
        self.machine.qmp("device_add", **{**HCA, "mac": MAC.format(host), **properties})
        self.machine.store(self.slot_control, 2, SLOT_POWER_ON)
        self.enumerate()

    def present(self):
        return self.machine.load(self.config_page, 4) == 0x101715b3

    def capability(self, page, wanted):
        at = self.machine.load(page + 0x34, 1)
        for _ in range(48):
            if not at:
                break
            if self.machine.load(page + at, 1) == wanted:
                return at
            at = self.machine.load(page + at + 1, 1)
        raise Absent(f"there is no capability 0x{wanted:x}")

    def flr(self):
        self.machine.store(self.device_control, 2, FLR)

    def msix_on(self):
        self.machine.store(self.config_page + self.msix + 2, 2, 0x8000)

    def msix_vector(self, vector, address, data):
        self.machine.write(MSIX_TABLE + 16 * vector,
                           b"".join(word.to_bytes(4, "little")
                                    for word in (address & 0xffffffff, address >> 32, data, 0)))

    # The BAR: big-endian

    def read32(self, offset):
        return int.from_bytes(self.machine.read(BAR + offset, 4), "big")

    def write32(self, offset, value):
        self.machine.write(BAR + offset, value.to_bytes(4, "big"))

    def uar(self, uar, offset, value, length=8):
        self.machine.write(BAR + uar * PAGE + offset, value.to_bytes(length, "big"))

    def is_reset(self):
        """Returns whether nobody has told the function the address of commands since its last
        reset."""
        return self.read32(CMDQ_LOW) >> 8 & 3 == 1

    # Memory

    def alloc(self, length=PAGE):
        """Returns the bus address of zeroed pages of the guest's memory."""
        at = self.heap
        self.heap += -(-length // PAGE) * PAGE
        if self.heap > HEAP_END:
            raise Failure("the guest has no memory left")
        self.machine.ask(f"memset 0x{at:x} 0x{self.heap - at:x} 0x00")
        return at

    # Commands

    def attach(self):
        """Finds the firmware and gives it the address of commands."""
        if self.read32(0x1fc) >> 31:
            raise NotAnswered("the firmware does not come up")
        self.heap = HEAP
        self.queue = self.alloc()
        self.boxes = [self.alloc(64 * BOX_STRIDE) for _ in range(4)]
        self.write32(CMDQ_HIGH, self.queue >> 32)
        self.write32(CMDQ_LOW, self.queue & 0xffffffff)

    def chain(self, first, count, token):
        """Returns the control parts of a chain of mailboxes, as lines."""
        lines = []
        for i in range(count):
            box = Image("cmd_if_box", {"block_number": i, "token": token})
            following = first + (i + 1) * BOX_STRIDE if i + 1 < count else 0
            box["next_pointer_63_32"] = following >> 32
            box["next_pointer_31_10"] = (following & 0xffffffff) >> 10
            lines.append(self.machine.write_line(first + i * BOX_STRIDE + BOX_DATA,
                                                 box.data[BOX_DATA:]))
        return lines

    def prepare(self, slot, data, out_length, token=1, in_box=None, out_box=None):
        """Puts a command into an entry of the queue. in_box, out_box: bus addresses of the first
        mailbox of each direction, if not the driver's own; existing contents stay unchanged."""
        in_blocks = max(0, -(-(len(data) - INLINE) // BOX_DATA))
        out_blocks = max(0, -(-(out_length - INLINE) // BOX_DATA))
        base = self.boxes[slot % len(self.boxes)]
        entry = Image("cmd_queue_entry", {
            "type": 7, "input_length": len(data), "output_length": out_length, "token": token,
            "command_input_inline_data": data[:INLINE].ljust(INLINE, b"\0"), "ownership": 1})
        lines = []
        for name, address, first, count in (("input", in_box, base, in_blocks),
                                            ("output", out_box, base + 32 * BOX_STRIDE, out_blocks)):
            if address is None and count:
                address = first
                lines += self.chain(first, count, token)
            if address is not None:
                entry[f"{name}_mailbox_pointer_63_32"] = address >> 32
                entry[f"{name}_mailbox_pointer_31_9"] = (address & 0xffffffff) >> 9
        if in_box is None:
            for i in range(in_blocks):
                part = data[INLINE + i * BOX_DATA:INLINE + (i + 1) * BOX_DATA]
                lines.append(self.machine.write_line(base + i * BOX_STRIDE, part))
        lines.append(self.machine.write_line(self.queue + slot * STRIDE, bytes(entry)))
        self.machine.ask(*lines)

    def ring(self, vector=1):
        self.write32(DOORBELL, vector)

    def done(self, slot=0):
        return not self.machine.read(self.queue + slot * STRIDE + STRIDE - 1, 1)[0] & 1

    def wait(self, slot=0, patience=PATIENCE):
        """Waits until the driver owns an entry again; returns its delivery status."""
        deadline = time.monotonic() + patience
        while not self.done(slot):
            if time.monotonic() > deadline:
                raise NotAnswered("the command is not answered")
            self.machine.settle()
        return self.machine.read(self.queue + slot * STRIDE + STRIDE - 1, 1)[0] >> 1

    def output(self, out_length, slot=0):
        data = self.machine.read(self.queue + slot * STRIDE + 0x20, INLINE)
        base = self.boxes[slot % len(self.boxes)] + 32 * BOX_STRIDE
        for i in range(max(0, -(-(out_length - INLINE) // BOX_DATA))):
            data += self.machine.read(base + i * BOX_STRIDE, BOX_DATA)
        return data[:out_length]

    @staticmethod
    def encode(name, values):
        return bytes(Image(input_of(name), {"opcode": opcode(name), **values}))

    def send(self, name, values=None, slot=0, out_length=None, out_box=None, ring=True):
        """Starts a command and does not wait for its end: it may never end."""
        self.prepare(slot, self.encode(name, values or {}), out_length or size(output_of(name)),
                     token=0 if out_box is not None else 1, out_box=out_box)
        if ring:
            self.ring(1 << slot)

    def command(self, name, values=None):
        """Runs a command; returns the Image of its output. CommandFailed if its status is not 0."""
        out = output_of(name)
        self.send(name, values)
        delivery = self.wait(patience=self.patience)
        if delivery:
            raise NotAnswered(f"{name}: delivery status 0x{delivery:x}")
        image = Image(out, self.output(PRM.structs[out].size))
        if image["status"]:
            raise CommandFailed(name, image["status"], image["syndrome"])
        return image

    # Bring-up

    def give_pages(self, stage):
        wanted = self.command("QUERY_PAGES", {"op_mod": stage})["num_pages"]
        if wanted:
            pages = b"".join((FAR_PAGES * stage + i * PAGE).to_bytes(8, "big") for i in range(wanted))
            self.command("MANAGE_PAGES", {"op_mod": 1, "input_num_entries": wanted, "pas": pages})

    def bring_up(self):
        """From power-on to a function with a UAR, a PD and an EQ in memory."""
        self.attach()
        self.command("ENABLE_HCA")
        self.command("SET_ISSI", {"current_issi": 1})
        self.give_pages(1)
        self.give_pages(2)
        self.command("INIT_HCA")
        self.uarn = self.command("ALLOC_UAR")["uar"]
        self.pdn = self.command("ALLOC_PD")["pd"]
        self.eqn = self.create_eq()
        return self

    def works(self):
        """Resets the function, whatever its state, and brings it up: nothing in it is broken."""
        self.enumerate()
        if not self.present():
            raise Failure("the function is not there")
        self.flr()
        self.configure()
        self.bring_up()
        self.machine.alive()

    # Objects

    def create_eq(self, ring=None, log_size=3, vector=0, events=0):
        """ring: the ring's address if it is not in memory, a multiple of 64."""
        ring = self.alloc() if ring is None else ring
        return self.command("CREATE_EQ", {
            "event_bitmask[0]": events, "eq_context_entry.log_eq_size": log_size,
            "eq_context_entry.uar_page": self.uarn, "eq_context_entry.intr": vector,
            "eq_context_entry.page_offset": ring % PAGE // 64,
            "pas[0]": ring // PAGE * PAGE})["eq_number"]

    def gen_eqe(self, eqn, data=b"", **options):
        """Makes the device write an EQE, with data from the 33rd byte on."""
        eqe = bytearray(64)
        eqe[32:32 + len(data)] = data
        self.send("GEN_EQE", {"eq_number": eqn, "eqe": bytes(eqe)}, **options)

    def arm_eq(self, eqn, consumer=0):
        self.uar(self.uarn, EQ_ARM, eqn << 24 | consumer, 4)
