# SPDX-License-Identifier: BSD-2-Clause
"""Tests what a hostile guest can make the function do to itself, to its slot, and to QEMU.

DMA reaches configuration space, whose window is memory like any other, the function's own BAR, and
the root port. So does an interrupt, which is a write to an address. Each recipe makes the device
write to such a place in the middle of its work. Afterwards QEMU must live, and the function, reset
or plugged in again, must work (tests/qtest/run checks that).
"""
import functools

import function as fn
from function import BAR, ECAM, PAGE
from layouts import Image
from machine import Failure
from queues import RDMA_WRITE, SEND, Connection

RECIPES = []
CHIPSET_WINDOW = ECAM + 0x60  # PCIEXBAR: the address of the window on configuration space
EVENT_PORT_CHANGE = 1 << 9


def recipe(statement, **machine):
    """machine: options of QEMU that are not the default."""
    def register(run):
        RECIPES.append((statement, run, machine))
        return run
    return register


def expect(condition, message):
    if not condition:
        raise Failure(message)


def event_that_writes(hca, address, value, log_size=0):
    """Makes an EQ whose events write a 16-bit value to an address; returns a function that
    generates one."""
    at = address % 64 - 32  # in the data of an event, which begins at byte 32 of its entry
    expect(0 <= at <= 26, f"no event has data at 0x{address:x}")
    eqn = hca.create_eq(ring=address // 64 * 64, log_size=log_size)
    data = bytes(at) + value.to_bytes(2, "little")
    return lambda **options: hca.gen_eqe(eqn, data, **options)


def interrupt_that_writes(hca, address, value):
    """Makes an EQ in memory whose interrupt writes a 32-bit value to an address; returns its
    number."""
    hca.msix_vector(1, address, value)
    hca.msix_on()
    eqn = hca.create_eq(vector=1, events=EVENT_PORT_CHANGE)
    hca.arm_eq(eqn)
    return eqn


def payload_that_writes(hca, address, data):
    """Makes the device itself write data to an address, by RDMA to itself."""
    connection = Connection(hca).connect()
    source = hca.alloc()
    hca.machine.write(source, data)
    connection.post(RDMA_WRITE, source, len(data), remote=address)
    return connection


# A reset of the function, caused by its own work


@recipe("an event resets the function it comes from", resets=True)
def event_flr(hca):
    event_that_writes(hca, hca.device_control, fn.FLR)()


@recipe("the first of two events in one turn resets the function", resets=True)
def two_events_flr(hca):
    write = event_that_writes(hca, hca.device_control, fn.FLR)
    write(slot=0, ring=False)
    write(slot=1, ring=False)
    hca.ring(3)


@recipe("received payload resets the function", resets=True)
def payload_flr(hca):
    payload_that_writes(hca, hca.device_control, fn.FLR.to_bytes(2, "little"))


@recipe("received payload resets the function in the midst of a longer message", resets=True)
def long_payload_flr(hca):
    connection = Connection(hca).connect()
    source = hca.alloc(64 << 10)
    hca.machine.write(source + 0x69, b"\x80")  # the rest is 0
    connection.post(RDMA_WRITE, source, 0x4000, remote=hca.config_page)


@recipe("a command's output resets the function", resets=True)
def mailbox_flr(hca):
    # QUERY_QP returns an address that CREATE_QP stored, and that lies on the register
    qp = Connection(hca, alternate=b"\xff" * 16)
    at = fn.INLINE + hca.express + fn.DEVICE_CONTROL + 1
    hca.send("QUERY_QP", {"qpn": qp.qpn})
    hca.wait()
    expect(hca.output(at + 1)[at] == 0xff, "the output has not what was asked for")
    # as a mailbox, configuration space has token 0, block number 0 and no next
    hca.send("QUERY_QP", {"qpn": qp.qpn}, out_box=hca.config_page)


@recipe("an interrupt resets the function", resets=True)
def interrupt_flr(hca):
    eqn = interrupt_that_writes(hca, hca.device_control, fn.FLR)
    hca.gen_eqe(eqn)


@recipe("a link that goes down interrupts, which resets the function", netdev=True,
        resets=True)
def set_link_flr(hca):
    interrupt_that_writes(hca, hca.device_control, fn.FLR)
    hca.machine.qmp("set_link", name="net", up=False)
    hca.machine.settle()
    hca.machine.qmp("set_link", name="net", up=True)


@recipe("a doorbell that interrupts at once resets the function", resets=True)
def arm_flr(hca):
    hca.msix_vector(1, hca.device_control, fn.FLR)
    hca.msix_on()
    eqn = hca.create_eq(vector=1)
    hca.gen_eqe(eqn)
    hca.wait()
    hca.arm_eq(eqn)


@recipe("an interrupt disables the function through its own initialization segment")
def interrupt_disable(hca):
    value = int.from_bytes((fn.NIC_DISABLED).to_bytes(4, "big"), "little")
    eqn = interrupt_that_writes(hca, BAR + fn.CMDQ_LOW, value)
    hca.gen_eqe(eqn)


@recipe("received payload overwrites the function's whole configuration space")
def payload_config(hca):
    source = hca.alloc()
    connection = Connection(hca).connect()
    hca.machine.write(source, bytes(range(256)) * 16)
    connection.post(RDMA_WRITE, source, PAGE, remote=hca.config_page)


# The slot: unplugged, its bus reset, caused by the function's own work


def slot_off(hca):
    hca.machine.store(hca.slot_control, 2, fn.SLOT_POWER_ON)
    return fn.SLOT_POWER_OFF


@recipe("an event unplugs the function it comes from", unplugs=True)
def event_unplug(hca):
    event_that_writes(hca, hca.slot_control, slot_off(hca))()


@recipe("the first of two events in one turn unplugs the function", unplugs=True)
def two_events_unplug(hca):
    write = event_that_writes(hca, hca.slot_control, slot_off(hca))
    write(slot=0, ring=False)
    write(slot=1, ring=False)
    hca.ring(3)


@recipe("a completion unplugs the function it comes from", unplugs=True)
def completion_unplug(hca):
    slot_off(hca)
    connection = Connection(hca, cq_slot=hca.slot_control // 64 * 64).connect()
    # its count of bytes, big-endian, lies on the register: 0x07 in its second byte
    at = hca.slot_control % 64
    expect(at == 0x2c, f"byte_cnt is not at 0x{at:x} of an entry")
    source, target = hca.alloc(512 << 10), hca.alloc(512 << 10)
    connection.post_recv(target, 512 << 10)
    connection.post(SEND, source, fn.SLOT_POWER_OFF << 8)


@recipe("received payload unplugs the function", unplugs=True)
def payload_unplug(hca):
    payload_that_writes(hca, hca.slot_control, slot_off(hca).to_bytes(2, "little"))


@recipe("an interrupt unplugs the function", unplugs=True)
def interrupt_unplug(hca):
    eqn = interrupt_that_writes(hca, hca.slot_control, slot_off(hca))
    hca.gen_eqe(eqn)


@recipe("a doorbell that interrupts at once unplugs the function", unplugs=True)
def arm_unplug(hca):
    hca.msix_vector(1, hca.slot_control, slot_off(hca))
    hca.msix_on()
    eqn = hca.create_eq(vector=1)
    hca.gen_eqe(eqn)
    hca.wait()
    hca.arm_eq(eqn)


@recipe("a link that goes down interrupts, which unplugs the function", netdev=True, unplugs=True)
def set_link_unplug(hca):
    interrupt_that_writes(hca, hca.slot_control, slot_off(hca))
    hca.machine.qmp("set_link", name="net", up=False)


@recipe("received payload resets the bus that the function is on", resets=True)
def payload_bus_reset(hca):
    payload_that_writes(hca, hca.port_page + fn.BRIDGE_CONTROL,
                        fn.SECONDARY_RESET.to_bytes(2, "little"))


@recipe("an interrupt resets the bus that the function is on", resets=True)
def interrupt_bus_reset(hca):
    eqn = interrupt_that_writes(hca, hca.port_page + 0x3c, fn.SECONDARY_RESET << 16)
    hca.gen_eqe(eqn)


@recipe("received payload moves the root port's windows and bus numbers")
def payload_port_header(hca):
    payload_that_writes(hca, hca.port_page + 0x18, bytes(range(1, 17)))


@recipe("received payload takes away the window on configuration space that it comes through")
def payload_window(hca):
    payload_that_writes(hca, CHIPSET_WINDOW, bytes(8))


# The function's own BAR


@recipe("an EQ's interrupt is the doorbell that arms it: it interrupts as long as it likes")
def interrupt_arms(hca):
    eqn = hca.create_eq(vector=1)
    value = int.from_bytes((eqn << 24).to_bytes(4, "big"), "little")
    hca.msix_vector(1, BAR + hca.uarn * PAGE + fn.EQ_ARM, value)
    hca.msix_on()
    hca.arm_eq(eqn)
    hca.gen_eqe(eqn)
    hca.wait()
    hca.arm_eq(eqn)  # also from outside a turn: there is something in the ring


@recipe("events, completions and payload go to the function's own doorbells")
def own_doorbells(hca):
    uar = BAR + hca.uarn * PAGE
    for offset in (0, 0x40, 0x800):
        eqn = hca.create_eq(ring=uar + offset, log_size=2)
        hca.gen_eqe(eqn, bytes([eqn]) * 28)
        hca.wait()
    connection = Connection(hca, cq_slot=uar + 0x40).connect()
    source = hca.alloc()
    hca.machine.write(source, bytes(Image("send_doorbell", {
        "opcode": RDMA_WRITE, "qpn": connection.qpn, "ds": 3})) * 64)
    connection.post(RDMA_WRITE, source, 512, remote=uar + 0x800)
    connection.post(RDMA_WRITE, source, 512, remote=BAR)


@recipe("the command queue and its mailboxes are the function's own BAR")
def own_queue(hca):
    hca.send("QUERY_HCA_CAP", {"op_mod": 0}, out_box=BAR)
    hca.machine.settle()
    for low in (BAR, hca.config_page, hca.port_page):
        hca.write32(fn.CMDQ_LOW, low)
        hca.ring(0xffffffff)
        hca.machine.settle()


def tests():
    """Returns (statement, function of plugin and work folder) of each recipe."""
    return [(f"hostile: {statement}", functools.partial(run_recipe, run, **machine))
            for statement, run, machine in RECIPES]


def run_recipe(run, plugin, work, netdev=False, resets=False, unplugs=False):
    devices = fn.PORT + fn.device_argument()
    if netdev:
        devices = (["-netdev", "hubport,id=net,hubid=0"] + fn.PORT +
                   fn.device_argument(netdev="net"))
    with plugin.machine(work, devices) as machine:
        hca = fn.Function(machine).bring_up()
        run(hca)
        machine.alive()
        hca.enumerate()
        if resets:
            expect(hca.is_reset(), "the function was not reset")
        if unplugs:
            expect(not hca.present(), "the function is still there")
            hca.plug(**({"netdev": "net"} if netdev else {}))
        hca.works()
        expect(machine.quit() == 0, f"QEMU did not end well{machine.last_words()}")
