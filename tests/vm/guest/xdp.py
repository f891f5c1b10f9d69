# SPDX-License-Identifier: BSD-2-Clause
"""XDP programs on a netdev, and frames for them whose bytes are compared.

usage: xdp.py verdict NETDEV pass|drop|tx|redirect FILE   attaches a program in native mode
       xdp.py frames NETDEV MAC COUNT back|lost           sends frames from a packet socket

verdict makes the file FILE when it is ready, and ends when the file is gone.

The frames have the EtherType 0x88B5, which is free for experiments: programs act on these frames
alone and pass all others to the kernel. tx and redirect return a frame to its sender. Exit status
0: every frame came back unchanged, or none if they are lost.
"""
import ctypes
import os
import random
import select
import socket
import struct
import sys
import time

ETHERTYPE = 0x88b5
SECONDS = 20  # without any frame
WINDOW = 32  # frames under way
PATTERN = random.Random(2).randbytes(4096)
libc = ctypes.CDLL(None, use_errno=True)


def frame(number, target, source):
    """A frame of 60 to 1514 bytes; every byte follows from its number."""
    length = 46 + number * 97 % 1455
    at = number * 31 % 2048
    return target + source + struct.pack("!HI", ETHERTYPE, number) + PATTERN[at:at + length - 4]


def mac_of(netdev):
    with open(f"/sys/class/net/{netdev}/address", encoding="ascii") as file:
        return bytes.fromhex(file.read().strip().replace(":", ""))


def ready(file):
    with open(file, "x", encoding="ascii"):
        pass


# BPF: instructions by hand, so that a guest needs no compiler

SYS_BPF = 321
PROG_LOAD, LINK_CREATE = 5, 28
PROG_TYPE_XDP, ATTACH_XDP, NATIVE = 6, 37, 4
DROP, PASS, TX = 1, 2, 3
CALL_REDIRECT = 23


def bpf(command, attributes):
    attributes = ctypes.create_string_buffer(attributes, 144)
    result = libc.syscall(SYS_BPF, command, attributes, 144)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"bpf() command {command}")
    return result


def code(op, to=0, of=0, offset=0, number=0):
    return struct.pack("<BBhi", op, of << 4 | to, offset, number)


def load32(to, of, offset):
    return code(0x61, to, of, offset)


def returns(value):
    return code(0xb7, 0, number=value) + code(0x95)


def program(action):
    """Returns the instructions of a program whose action, itself instructions, is for our frames."""
    take = (code(0xbf, 6, 1) + load32(2, 1, 0) + load32(3, 1, 4) +      # r6 = context, r2 = data, r3 = its end
            code(0xbf, 4, 2) + code(0x07, 4, number=16))                # r4 = r2 + 16
    action = load32(5, 2, 12) + code(0x57, 5, number=0xffff) + code(
        0x55, 5, 0, len(action) // 8, (ETHERTYPE & 0xff) << 8 | ETHERTYPE >> 8) + action
    return take + code(0x2d, 4, 3, len(action) // 8) + action + returns(PASS)


def load16(to, of, offset):
    return code(0x69, to, of, offset)


# Exchanges the addresses of the frame at r2.
SWAP = (load32(0, 2, 0) + load16(7, 2, 4) + load32(8, 2, 6) + load16(9, 2, 10) +
        code(0x63, 2, 8, 0) + code(0x6b, 2, 9, 4) + code(0x63, 2, 0, 6) + code(0x6b, 2, 7, 10))


def attach(netdev, action):
    """Attaches a program; returns the file that holds it there."""
    text = ctypes.create_string_buffer(program(action))
    licence = ctypes.create_string_buffer(b"Dual BSD/GPL")
    loaded = bpf(PROG_LOAD, struct.pack("<IIQQ", PROG_TYPE_XDP, (len(text) - 1) // 8, ctypes.addressof(text),
                                        ctypes.addressof(licence)))
    return bpf(LINK_CREATE, struct.pack("<IIII", loaded, socket.if_nametoindex(netdev), ATTACH_XDP, NATIVE))


def verdict(netdev, name, file):
    actions = {
        "pass": returns(PASS), "drop": returns(DROP), "tx": SWAP + returns(TX),
        "redirect": SWAP + code(0xb7, 1, number=socket.if_nametoindex(netdev)) + code(0xb7, 2) +
        code(0x85, number=CALL_REDIRECT) + code(0x95)}
    attach(netdev, actions[name])
    ready(file)
    while os.path.exists(file):
        time.sleep(0.1)


def exchange_all(count, give, receive, own, peer):
    """Sends the frames in a window, and compares what comes back; a frame comes back exchanged."""
    sent = back = 0
    due = {}
    until = time.monotonic() + SECONDS
    while back < count:
        while sent < count and len(due) < WINDOW:
            give(frame(sent, peer, own))
            due[sent] = frame(sent, own, peer)
            sent += 1
        for got in receive():
            number = struct.unpack_from("!I", got, 14)[0]
            want = due.pop(number, None)
            if got != want:
                sys.exit(f"frame {number} came back changed or again: {got.hex()}, not {want and want.hex()}")
            back += 1
            until = time.monotonic() + SECONDS
        if time.monotonic() > until:
            sys.exit(f"{back} of {sent} frames came back; frames {sorted(due)[:8]} and others did not")
    print(back, "frames came back unchanged")


def frames(netdev, peer, count, fate):
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE))
    sock.bind((netdev, ETHERTYPE))
    own = mac_of(netdev)

    def receive(wait=0.2):
        while select.select([sock], [], [], wait)[0]:
            got, address = sock.recvfrom(4096)
            if address[2] != socket.PACKET_OUTGOING:
                yield got
            wait = 0

    if fate == "back":
        exchange_all(count, sock.send, receive, own, peer)
        return
    for number in range(count):
        sock.send(frame(number, peer, own))
        if number % WINDOW == 0:  # the receiver's queue has 1,024 places, and other users
            time.sleep(0.01)
    if list(receive(1)):
        sys.exit("a frame came back")


def main(job, netdev, *words):
    words = [bytes.fromhex(word.replace(":", "")) if ":" in word else int(word) if word.isdigit() else word
             for word in words]
    {"verdict": verdict, "frames": frames}[job](netdev, *words)


if __name__ == "__main__":
    main(*sys.argv[1:])
