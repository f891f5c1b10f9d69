# SPDX-License-Identifier: BSD-2-Clause
"""Tests a correct device in QEMU: it is plugged and unplugged, pauses with its machine, and can be
inspected."""
import pathlib
import re
import socket
import tempfile
import time
import types

import function as fn
from function import PAGE
from machine import PATIENCE, Failure
from queues import RDMA_WRITE, SEND, Connection

TESTS = []
PATTERN = bytes(range(1, 256)) * 16
NETDEV = ["-netdev", "hubport,id=net,hubid=0"]
EVENT_PORT_CHANGE = 1 << 9
LONG = 8 << 20  # bytes of a message that takes many turns
SENDERS = 8  # QPs that send at a time

# Capabilities
PM, VPD, VENDOR, EXPRESS, MSIX = 0x01, 0x03, 0x09, 0x10, 0x11
AER, ARI, SECONDARY = 0x0001, 0x000e, 0x0019


def test(statement, sanitized=False):
    """sanitized: the test needs a plugin with AddressSanitizer."""
    def register(run):
        TESTS.append((statement, sanitized, run))
        return run
    return register


def tests(plugin):
    """Returns (statement, function of plugin and work folder) of each test that this plugin
    supports."""
    return [(statement, run) for statement, sanitized, run in TESTS
            if plugin.sanitizer or not sanitized]


def expect(condition, message):
    if not condition:
        raise Failure(message)


def usual(plugin, work, **properties):
    """Returns a machine with the function below a root port."""
    return plugin.machine(work, fn.PORT + fn.device_argument(**properties))


def end(machine):
    expect(machine.quit() == 0, f"QEMU did not end well{machine.last_words()}")


# Coming and going


@test("info qtree shows the function and its properties")
def qtree(plugin, work):
    with usual(plugin, work) as machine:
        tree = machine.monitor("info qtree")
        for what in ('dev: hcasim, id "hca"', 'mac = "02:00:00:ca:51:01"', "trace = false",
                     "pci id 15b3:1017"):
            expect(what in tree, f"no {what} in\n{tree}")
        end(machine)


@test("the function is unplugged and plugged in again, three times, and works each time")
def hot_plug(plugin, work):
    with usual(plugin, work) as machine:
        hca = fn.Function(machine).bring_up()
        for _ in range(3):
            hca.unplug()
            expect(not hca.present(), "it is still there")
            expect("hcasim" not in machine.monitor("info qtree"), "it is still in info qtree")
            hca.plug()
            hca.works()
        end(machine)


@test("less host memory than a function needs is refused by name; the least there may be is enough")
def least_memory(plugin, work):
    with usual(plugin, work) as machine:
        hca = fn.Function(machine).bring_up()
        hca.unplug()
        try:
            hca.plug(memory="8388607")
        except Failure as failure:
            expect("memory is 8388607 bytes, the least is 8388608" in str(failure), str(failure))
        else:
            raise Failure("a byte too little is accepted")
        hca.plug(memory="8M")
        hca.works()
        end(machine)


@test("the function is unplugged in the midst of a long message to itself")
def unplug_under_traffic(plugin, work):
    with usual(plugin, work) as machine:
        hca = fn.Function(machine).bring_up()
        connection = Connection(hca).connect()
        source, target = hca.alloc(LONG), hca.alloc(LONG)
        for _ in range(4):
            connection.post(RDMA_WRITE, source, LONG, remote=target)
        hca.unplug()
        expect(not hca.present(), "it is still there")
        machine.alive()
        hca.plug()
        hca.works()
        end(machine)


@test("the function is unplugged while its netdev still holds a frame of it")
def unplug_with_frame(plugin, work):
    paths = [f"{work}/{name}" for name in ("theirs", "ours")]
    netdev = ["-netdev", f"dgram,id=net,local.type=unix,local.path={paths[0]},"
              f"remote.type=unix,remote.path={paths[1]}"]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ours:
        ours.bind(paths[1])
        with plugin.machine(work, netdev + fn.PORT + fn.device_argument(netdev="net")) as machine:
            hca = fn.Function(machine).bring_up()
            connections = [Connection(hca) for _ in range(SENDERS)]
            elsewhere = types.SimpleNamespace(gid=connections[0].gid[:15] + b"\x09", qpn=0x99,
                                              mac=0x02000000cafe)
            source = hca.alloc(64 << 10)
            for connection in connections:  # more frames than the socket takes unread
                connection.connect(elsewhere)
                connection.post(RDMA_WRITE, source, 64 << 10, remote=0)
            machine.settle()
            hca.unplug()
            expect(not hca.present(), "it is still there")
            ours.settimeout(1)
            try:
                while ours.recv(1 << 16):  # the netdev continues with the frames that it holds
                    pass
            except TimeoutError:
                pass
            machine.alive()
            end(machine)


@test("a function-level reset, a bus reset and a machine reset leave it as after power-on")
def resets(plugin, work):
    with usual(plugin, work) as machine:
        hca = fn.Function(machine).bring_up()

        def bus_reset():
            for value in (fn.SECONDARY_RESET, 0):
                machine.store(hca.port_page + fn.BRIDGE_CONTROL, 2, value)

        for reset in (hca.flr, bus_reset, lambda: machine.qmp("system_reset")):
            reset()
            machine.settle()
            hca.enumerate()
            expect(hca.is_reset(), "it has not been reset")
            hca.bring_up()
        end(machine)


@test("power state D3 and back is no reset")
def power_states(plugin, work):
    with usual(plugin, work) as machine:
        hca = fn.Function(machine).bring_up()
        for state in (3, 0):
            machine.store(hca.config_page + hca.pm + 4, 2, state)
            expect(machine.load(hca.config_page + hca.pm + 4, 2) & 3 == state, "no such state")
        hca.configure()
        hca.command("QUERY_ISSI")
        end(machine)


@test("nothing that the device allocates is left when it goes", sanitized=True)
def leaks(plugin, work):
    devices = NETDEV + fn.PORT + fn.device_argument(netdev="net")
    with plugin.machine(work, devices, leaks=True) as machine:
        hca = fn.Function(machine).bring_up()
        Connection(hca).connect()
        hca.unplug()
        hca.plug(wire=f"shm:{work}/wire", capture=f"{work}/capture")
        hca.bring_up()
        Connection(hca).connect()
        hca.unplug()
        machine.quit()
        # QEMU's own leaks do not count.
        ours = [leak for leak in re.split(r"\n\n", machine.said())
                if " leak of " in leak and "hcasim.so" in leak]
        expect(not ours, "\n".join(ours))
        expect("LeakSanitizer" in machine.said(), "nobody has looked for leaks")


# Inspection


@test("the capabilities are those of a ConnectX-5, but for SR-IOV and ACS")
def capabilities(plugin, work):
    with usual(plugin, work) as machine:
        hca = fn.Function(machine)
        found, at = {}, machine.load(hca.config_page + 0x34, 1)
        while at:
            found[at], at = machine.load(hca.config_page + at, 2).to_bytes(2, "little")
        expect(found == {0x40: PM, 0x48: VPD, 0x60: EXPRESS, 0x9c: MSIX, 0xc0: VENDOR}, str(found))
        found, at = {}, 0x100
        while at:
            header = machine.load(hca.config_page + at, 4)
            found[at], at = header & 0xffff, header >> 20
        expect(found == {0x100: AER, 0x150: ARI, 0x1c0: SECONDARY}, str(found))
        expect(machine.load(hca.config_page + hca.express + 0x0c, 4) & 0x3ff == 16 << 4 | 3,
               "the link is not 8 GT/s x16")
        end(machine)


@test("the reports of errors can be enabled, and a reset ends them")
def error_reports(plugin, work):
    with usual(plugin, work) as machine:
        hca = fn.Function(machine)
        control = hca.config_page + hca.express + fn.DEVICE_CONTROL
        machine.store(control, 2, 0xf)  # correctable, non-fatal, fatal, unsupported request
        expect(machine.load(control, 2) & 0xf == 0xf, "reports cannot be enabled")
        hca.flr()
        expect(machine.load(control, 2) & 0xf == 0, "a reset does not end them")
        end(machine)


@test("atomics can be enabled: the root port completes them while the function is behind it")
def atomics(plugin, work):
    with plugin.machine(work, ["-smp", "2"] + fn.PORT + fn.device_argument()) as machine:
        hca = fn.Function(machine)
        completes = hca.slot_control - fn.SLOT_CONTROL + 0x24  # DEVCAP2 of the port: bits 7, 8
        control = hca.config_page + hca.express + 0x28  # DEVCTL2
        expect(machine.load(completes, 4) & 0x380 == 0x180, "the port completes none")
        machine.store(control, 2, 0xffff)
        expect(machine.load(control, 2) & 0x40, "the function does not ask for any")
        hca.flr()
        expect(not machine.load(control, 2) & 0x40, "a reset does not end it")
        hca.unplug()
        expect(not machine.load(completes, 4) & 0x380, "the port completes some without it")
        hca.plug()
        expect(machine.load(completes, 4) & 0x380 == 0x180, "nor with the next function")
        end(machine)


@test("where the guest's CPUs are not atomic beside the function, nobody says so")
def no_atomics(plugin, work):
    with usual(plugin, work) as machine:  # one translated CPU: docs/explanation/ordering.md
        hca = fn.Function(machine)
        completes = hca.slot_control - fn.SLOT_CONTROL + 0x24
        expect(not machine.load(completes, 4) & 0x380, "the port completes some")
        end(machine)


# The vendor specific capability's registers, and the address spaces behind it (Mellanox's tools,
# mtcr_ul).
VSC_CTRL, VSC_COUNTER, VSC_SEMAPHORE, VSC_ADDR, VSC_DATA = 0x04, 0x08, 0x0c, 0x10, 0x14
VSC_FLAG, VSC_SYNDROME = 1 << 31, 1 << 30
CONFIGURATION, COMMANDS, SEMAPHORES = 2, 3, 0xa
ICMD_MAILBOX = 0x100000


@test("device memory is RAM in the BAR: a CPU and the device see the same bytes; operations are MMIO")
def device_memory(plugin, work):
    with usual(plugin, work) as machine:
        hca = fn.Function(machine).bring_up()
        window = 28 << 20
        where = {"range_start_addr": window + PAGE, "range_size": PAGE, "memic_size": 64}
        at = fn.BAR + hca.command("ALLOC_MEMIC", where)["memic_start_addr"]
        expect(at == fn.BAR + window + PAGE, f"the memory is at 0x{at:x}")
        expect(not any(machine.read(at, PAGE)), "new memory is not 0")
        machine.write(at, b"\x05hello")
        operation = {"memic_start_addr": at - fn.BAR}
        inc, tas = (fn.BAR + hca.command("MODIFY_MEMIC", {**operation, "memic_operation_type": op})
                    ["memic_operation_addr"] for op in (0, 1))
        machine.write(inc, b"\x01")
        machine.write(inc + 1, b"\x01")
        expect(machine.read(at, 6) == b"\x06iello", f"after two increments: {machine.read(at, 6)}")
        expect([machine.read(tas, 1) for _ in range(2)] == [b"\x06", b"\x01"], "test and set")
        machine.store(inc + 8, 8, 1 << 40 | 3)
        machine.store(inc + 8, 4, 4)
        expect(machine.load(at + 8, 8) == 1 << 40 | 7, "words of 8 and 4 bytes are not added up")
        hca.flr()
        hca.configure()
        machine.write(inc, b"\x01")  # nobody's
        hca.bring_up()
        again = fn.BAR + hca.command("ALLOC_MEMIC", where)["memic_start_addr"]
        expect(again == at and not any(machine.read(at, PAGE)), "a reset left something")
        hca.unplug()
        hca.plug()
        hca.works()
        expect("hcasim-memory" in machine.monitor("info mtree"), "it is not in info mtree")
        hca.unplug()
        hca.plug(profile="cx4")
        hca.configure()
        expect("hcasim-memory" not in machine.monitor("info mtree"), "a ConnectX-4 has device memory")
        end(machine)


class Gateway:
    """The vendor specific capability, as a tool uses it."""

    def __init__(self, machine, hca):
        self.machine = machine
        self.at = hca.config_page + hca.capability(hca.config_page, VENDOR)

    def select(self, space):
        """Selects a space; returns whether it exists."""
        self.machine.store(self.at + VSC_CTRL, 4, space)
        return self.machine.load(self.at + VSC_CTRL, 4) >> 29 != 0

    def read(self, space, address):
        """Returns None if there is no such address."""
        expect(self.select(space), f"no space {space}")
        self.machine.store(self.at + VSC_ADDR, 4, address)
        done = self.machine.load(self.at + VSC_ADDR, 4)
        expect(done & VSC_FLAG, "a read is not done")
        return None if done & VSC_SYNDROME else self.machine.load(self.at + VSC_DATA, 4)

    def write(self, space, address, value):
        """Returns False if there is no such address."""
        expect(self.select(space), f"no space {space}")
        self.machine.store(self.at + VSC_DATA, 4, value)
        self.machine.store(self.at + VSC_ADDR, 4, address | VSC_FLAG)
        done = self.machine.load(self.at + VSC_ADDR, 4)
        expect(not done & VSC_FLAG, "a write is not done")
        return not done & VSC_SYNDROME

    def command(self, opcode, dwords=()):
        """Returns the status of an ICMD."""
        for i, dword in enumerate(dwords):
            self.write(COMMANDS, ICMD_MAILBOX + 4 * i, dword)
        self.write(COMMANDS, 0, opcode << 16 | 1)
        control = self.read(COMMANDS, 0)
        expect(not control & 1, "a command is busy for ever")
        return control >> 8 & 0xff

    def register(self, number, method, dwords):
        """Returns the status of an access to a register, and its dwords."""
        tlvs = [1 << 27 | 4 << 16, number << 16 | method << 8 | 1, 0, 0, 3 << 27 | (len(dwords) + 1) << 16]
        expect(self.command(0x9001, tlvs + dwords) == 0, "the command fails")
        back = [self.read(COMMANDS, ICMD_MAILBOX + 4 * i) for i in range(5 + len(dwords))]
        expect(back[1] & 1 << 15, "no response")
        return back[0] >> 8 & 0x7f, back[5:]


@test("the vendor specific capability tells the chip's id, and reads and writes registers")
def vendor_gateway(plugin, work):
    with usual(plugin, work) as machine:
        hca = fn.Function(machine)
        gateway = Gateway(machine, hca)
        expect([space for space in range(0x120) if gateway.select(space)] == [1, 2, 3, 0xa], "other spaces")
        expect(gateway.read(CONFIGURATION, 0xf0014) == 0x20d, "not a ConnectX-5's id")
        expect(gateway.read(CONFIGURATION, 0xb5e04) == 0, "the firmware is not up")
        expect(gateway.read(CONFIGURATION, 0xf0018) is None, "there are other registers")
        expect(not gateway.write(CONFIGURATION, 0xf0014, 1), "the id can be written")
        expect(gateway.read(COMMANDS, 0x1000) == 1024, "another mailbox")
        # the mailbox ends at the reported size
        expect(gateway.read(COMMANDS, ICMD_MAILBOX + 1024) is None, "a longer mailbox")
        expect(not gateway.write(COMMANDS, ICMD_MAILBOX - 4, 1), "a mailbox before the mailbox")
        expect(gateway.command(0x1234) == 1, "an unknown command is taken")
        expect(gateway.command(0x8400) == 0 and gateway.read(COMMANDS, ICMD_MAILBOX) >> 29 & 1,
               "no access to registers")
        pmtu = [1 << 16, 0, 0, 0]
        status, back = gateway.register(0x5003, 1, pmtu)
        expect(status == 0 and back[1] >> 16 == 9978, f"PMTU: {status} {back}")
        status, back = gateway.register(0x5003, 2, [1 << 16, 0, 9000 << 16, 0])
        expect(status == 0 and gateway.register(0x5003, 1, pmtu)[1][2] == 9000 << 16, f"{back}")
        for number, method, dwords, wrong in (
                (0x9021, 1, [0] * 4, 4), (0x5003, 3, pmtu, 6), (0x5008, 2, [1 << 16] + [0] * 3, 6),
                (0x5003, 1, [2 << 16, 0, 0, 0], 7), (0x5003, 2, [1 << 16, 0, 1 << 16, 0], 7)):
            status, _ = gateway.register(number, method, dwords)
            expect(status == wrong, f"register {number:x}, method {method}: {status}, not {wrong}")
        # lengths that do not fit
        for head in (3 << 27, 3 << 27 | 253 << 16, 3 << 27 | 0x7ff << 16, 2 << 27 | 5 << 16):
            expect(gateway.command(0x9001, [1 << 27 | 4 << 16, 0x5003 << 16 | 0x101, 0, 0, head]) == 4, hex(head))
        status, back = gateway.register(0x5003, 1, [1 << 16] + [0] * 250)
        expect(status == 0 and back[1] >> 16 == 9978, "the longest one")
        hca.flr()
        expect(gateway.read(COMMANDS, ICMD_MAILBOX) == 0, "the mailbox outlives a reset")
        end(machine)


@test("vital product data: part number and a serial number of its own, with a good checksum")
def vital_product_data(plugin, work):
    with usual(plugin, work) as machine:
        hca = fn.Function(machine)
        vpd = hca.config_page + hca.capability(hca.config_page, VPD)

        def read(at):
            machine.store(vpd + 2, 2, at)
            expect(machine.load(vpd + 2, 2) == 0x8000 | at, "the flag is not set")
            return machine.read(vpd + 4, 4)

        data = b"".join(read(at) for at in range(0, 256, 4))
        expect(data[0] == 0x82, "it does not begin with a name")
        name_end = 3 + int.from_bytes(data[1:3], "little")
        expect(data[3:name_end] == b"CX516A - ConnectX-5 QSFP28", str(data[3:name_end]))
        expect(data[name_end] == 0x90, "no fields to be read")
        at = name_end + 3
        fields_end = at + int.from_bytes(data[name_end + 1:at], "little")
        fields = {}
        while at < fields_end:
            fields[data[at:at + 2].decode()] = data[at + 3:at + 3 + data[at + 2]]
            if data[at:at + 2] == b"RV":
                expect(sum(data[:at + 4]) % 256 == 0, "the checksum is wrong")
            at += 3 + data[at + 2]
        expect(fields["PN"] == b"MCX516A-CCAT" and fields["SN"] == b"HS020000ca5101", str(fields))
        expect("RV" in fields and data[fields_end] == 0x78, "it has no end")
        # nothing of it can be written, and there is nothing beyond it
        machine.store(vpd + 4, 4, 0)
        machine.store(vpd + 2, 2, 0x8000)
        expect(machine.load(vpd + 2, 2) == 0, "the flag is not cleared")
        expect(read(0) == data[:4] and not any(read(0x7ffc)), "what was read is not what is there")
        end(machine)


# Stop and go


@test("what a stopped machine's function is told to do it does once the machine goes on")
def stopped_commands(plugin, work):
    with usual(plugin, work) as machine:
        hca = fn.Function(machine).bring_up()
        connection = Connection(hca).connect()
        source, target = hca.alloc(), hca.alloc()
        machine.write(source, PATTERN)
        machine.qmp("stop")
        connection.post(RDMA_WRITE, source, len(PATTERN), remote=target)
        hca.send("QUERY_ISSI")
        expect(hca.read32(0x1fc) >> 31 == 0, "its registers are not to be read")
        pause(machine)
        expect(not hca.done(), "a command was answered in a stopped machine")
        expect(not any(machine.read(target, len(PATTERN))), "payload came to a stopped machine")
        machine.qmp("cont")
        expect(hca.wait() == 0, "the command failed")
        connection.wait(1)
        expect(machine.read(target, len(PATTERN)) == PATTERN, "other payload came")
        end(machine)


@test("a long message to itself pauses with the machine, wherever it is, and then goes on")
def stopped_traffic(plugin, work):
    with usual(plugin, work) as machine:
        hca = fn.Function(machine).bring_up()
        connection = Connection(hca).connect()
        source, target = hca.alloc(LONG), hca.alloc(LONG)
        machine.ask(f"memset 0x{source:x} 0x{LONG:x} 0xa5")
        for _ in range(4):
            connection.post(RDMA_WRITE, source, LONG, remote=target)
        for _ in range(3):
            machine.qmp("stop")
            before = arrived(machine, target), connection.completions()
            pause(machine)
            expect((arrived(machine, target), connection.completions()) == before,
                   "payload or a completion came to a stopped machine")
            machine.qmp("cont")
        connection.wait(4)
        expect(all(arrived(machine, target)), "some of it never came")
        end(machine)


def arrived(machine, target):
    """Returns which pages of a long message have been written."""
    return [machine.read(page, 1) != b"\0" for page in range(target, target + LONG, 16 * PAGE)]


@test("an error that QEMU injects leaves what the link can do as it was")
def injected_error(plugin, work):
    with usual(plugin, work) as machine:
        hca = fn.Function(machine)
        link = machine.load(hca.config_page + hca.express + 0x0c, 4)
        said = machine.monitor("pcie_aer_inject_error hca UNSUP")
        expect("OK" in said, said)
        expect(machine.load(hca.config_page + hca.express + 0x0a, 2) & 0xa == 0xa, "there was no error")
        expect(machine.load(hca.config_page + hca.express + 0x0c, 4) == link, "LNKCAP has changed")
        end(machine)


@test("a link that changes while the machine is stopped tells so once it goes on")
def stopped_link(plugin, work):
    with plugin.machine(work, NETDEV + fn.PORT + fn.device_argument(netdev="net")) as machine:
        hca = fn.Function(machine).bring_up()
        ring = hca.alloc()
        hca.create_eq(ring=ring, events=EVENT_PORT_CHANGE)
        machine.qmp("stop")
        machine.qmp("set_link", name="net", up=False)
        pause(machine)
        expect(not any(machine.read(ring, PAGE)), "an event came to a stopped machine")
        machine.qmp("cont")
        wait_for(lambda: any(machine.read(ring, PAGE)), machine, "no event came")
        end(machine)


@test("frames for a stopped machine wait in the wire")
def stopped_frames(plugin, work):
    with tempfile.TemporaryDirectory(dir="/dev/shm") as wire, \
            tempfile.TemporaryDirectory() as other_work:
        machines, connections = [], []
        for host, where in ((1, work), (2, other_work)):
            properties = {"host": host, "wire": f"shm:{wire}/wire"}
            machines.append(plugin.machine(where, fn.PORT + fn.device_argument(**properties)))
        with machines[0] as a, machines[1] as b:
            for host, machine in ((1, a), (2, b)):
                hca = fn.Function(machine, host).bring_up()
                connections.append(Connection(hca, host))
            for connection, peer in zip(connections, reversed(connections)):
                connection.connect(peer)
            source, target = connections[0].hca.alloc(), connections[1].hca.alloc()
            a.write(source, PATTERN)
            connections[1].post_recv(target, PAGE)
            b.qmp("stop")
            connections[0].post(SEND, source, len(PATTERN))
            pause(a)
            pause(b)
            expect(not any(b.read(target, PAGE)), "payload came to a stopped machine")
            expect(not connections[1].completions(), "a completion came to a stopped machine")
            b.qmp("cont")
            connections[1].wait(1)
            connections[0].wait(1)
            expect(b.read(target, len(PATTERN)) == PATTERN, "other payload came")
            end(a)
            end(b)


@test("a stopped machine's function is reset, unplugged and plugged in as another one")
def stopped_life(plugin, work):
    with usual(plugin, work) as machine:
        hca = fn.Function(machine).bring_up()
        machine.qmp("stop")
        hca.send("QUERY_ISSI")
        hca.flr()
        hca.configure()
        expect(hca.is_reset(), "it has not been reset")
        hca.unplug()
        expect(not hca.present(), "it is still there")
        hca.plug()
        hca.attach()
        hca.send("ENABLE_HCA")
        pause(machine)
        expect(not hca.done(), "a command was answered in a stopped machine")
        machine.qmp("cont")
        hca.works()
        end(machine)


def pause(machine):
    """Waits long enough for anything that is about to happen. With a shorter wait a defect might be
    missed, but no correct device fails."""
    machine.settle()
    time.sleep(0.1)
    machine.settle()


def wait_for(condition, machine, otherwise):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        expect(time.monotonic() < deadline, otherwise)
        machine.settle()


@test("a machine with the function is not migrated, and says why")
def no_migration(plugin, work):
    with usual(plugin, work) as machine:
        try:
            machine.qmp("migrate", uri=f"exec:cat >{pathlib.Path(work) / 'state'}")
        except Failure as failure:
            expect("hcasim" in str(failure) and "non-migratable" in str(failure), str(failure))
        else:
            raise Failure("it is migrated")
        end(machine)
