#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the kernel of guest-lib/host/gpu_atomic.c without a GPU.

    gpu_kernel.py gpu_atomic.c [PTXAS]

Takes the PTX out of the source and interprets its instructions: each atomic operation, with 4 and 8 bytes and random
operands, also while another kernel changes the word and when the host has given the operation up. If PTXAS is the
path of CUDA's assembler, the PTX must assemble, too.
"""

import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile

WORD, ORDER = 0x1000, 0x2000
ADD, CMP_SWAP, MASKED_CMP_SWAP, FIELD_ADD = range(4)
DONE, GIVEN_UP = 1, 2
ROUNDS = 400
STEPS = 10000  # of one run


def ptx_of(source):
    text = re.search(r"static const char kernel\[\] =(.*?);\n\n", source.read_text(), re.S).group(1)
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S).replace("CUDA_ATOMIC_KERNEL", '"hcasim_atomic"')
    return "".join(re.findall(r'"([^"]*)"', text)).replace("\\n", "\n")


class Kernel:
    """The instructions that the kernel has; any other is an error."""

    def __init__(self, ptx):
        body = ptx[ptx.index("{") + 1:ptx.rindex("}")]
        self.width, self.labels, self.code = {}, {}, []
        for line in body.split("\n"):
            line = line.strip()
            register = re.match(r"\.reg \.(\w+) (.*);$", line)
            if register:
                bits = {"b64": 64, "b32": 32, "pred": 1}[register.group(1)]
                self.width.update({name: bits for name in register.group(2).split(", ")})
            elif line.endswith(":"):
                self.labels[line[:-1]] = len(self.code)
            elif line:
                guard = re.match(r"(@%\w+ )?([\w.]+)(?: (.*))?;$", line)
                assert guard, line
                operands = re.split(r", (?![^\[]*\])", guard.group(3)) if guard.group(3) else []
                self.code.append((guard.group(1), guard.group(2), operands))

    def run(self, memory, meanwhile):
        """Runs it on a memory of bytes by address. meanwhile() is called before each atomic instruction."""
        registers, at = {}, 0

        def value(operand):
            return int(operand) if operand.isdigit() else registers[operand]

        def address(operand):
            match = re.match(r"\[(%\w+)(?: \+ (\d+))?\]$", operand)
            return registers[match.group(1)] + int(match.group(2) or 0)

        def load(addr, size):
            return int.from_bytes(bytes(memory[addr + i] for i in range(size)), "little")

        def store(addr, size, number):
            for i, byte in enumerate((number & (1 << 8 * size) - 1).to_bytes(size, "little")):
                assert addr + i in memory, hex(addr + i)
                memory[addr + i] = byte

        for _ in range(STEPS):
            guard, name, ops = self.code[at]
            at += 1
            if guard and not registers[guard[1:].strip()]:
                continue
            parts = name.split(".")
            size = int(parts[-1][1:]) // 8 if parts[-1][1:].isdigit() else 0
            if name == "ret":
                return
            if parts[0] == "bra":
                at = self.labels[ops[0]]
                continue
            if parts[0] == "membar":
                continue
            if parts[0] == "st":
                assert self.width[ops[1]] == 8 * size
                store(address(ops[0]), size, value(ops[1]))
                continue
            if name == "ld.param.u64":
                result = ORDER
            elif parts[0] == "ld":
                result = load(address(ops[1]), size)
            elif parts[0] == "atom":
                meanwhile()
                assert address(ops[1]) % size == 0 and all(self.width[o] == 8 * size for o in ops[2:])
                result = load(address(ops[1]), size)
                if parts[3] == "add":
                    store(address(ops[1]), size, result + value(ops[2]))
                elif result == value(ops[2]):
                    assert parts[3] == "cas"
                    store(address(ops[1]), size, value(ops[3]))
            elif parts[0] == "mov":
                result = value(ops[1])
            elif parts[0] == "cvt":
                assert self.width[ops[1]] == int(parts[2][1:]) and self.width[ops[0]] == int(parts[1][1:])
                result = value(ops[1])
            elif parts[0] == "setp":
                x, y = value(ops[1]), value(ops[2])
                result = {"eq": x == y, "ne": x != y, "ge": x >= y}[parts[1]]
            else:
                assert all(self.width[o] == 8 * size for o in ops), (name, ops)
                x, y = value(ops[1]), value(ops[2]) if len(ops) > 2 else 0
                result = {"and": x & y, "or": x | y, "xor": x ^ y, "not": ~x, "add": x + y}[parts[0]]
            registers[ops[0]] = result & (1 << self.width[ops[0]]) - 1
        raise AssertionError("it does not end")


def reference(kind, size, held, operand, compare, swap_mask, compare_mask):
    every = (1 << 8 * size) - 1
    operand, compare, swap_mask, compare_mask = (n & every for n in (operand, compare, swap_mask, compare_mask))
    if kind == ADD:
        return held + operand & every
    if kind == CMP_SWAP:
        return operand if held == compare else held
    if kind == MASKED_CMP_SWAP:
        return held if (held ^ compare) & compare_mask else held & ~swap_mask | operand & swap_mask
    made = carry = 0
    for bit in range(8 * size):  # compare marks the top bits of the fields
        total = (held >> bit & 1) + (operand >> bit & 1) + carry
        made |= (total & 1) << bit
        carry = 0 if compare >> bit & 1 else total >> 1
    return made


def check(kernel, rand, kind, size, cancelled):
    held, operand, compare, swap_mask, compare_mask = (rand.getrandbits(64) for _ in range(5))
    every = (1 << 8 * size) - 1
    if rand.randrange(2):  # a comparison that holds, a few fields
        compare, compare_mask = (held, compare_mask & rand.getrandbits(64)) if kind != FIELD_ADD else (
            compare & rand.getrandbits(64) & rand.getrandbits(64), 0)
    if size == 4:  # what the host stores there
        operand, compare, swap_mask, compare_mask = (n & every for n in (operand, compare, swap_mask, compare_mask))
    memory = {}
    memory.update(zip(range(WORD, WORD + 8), struct.pack("<Q", held)))
    memory.update(zip(range(ORDER, ORDER + 72), struct.pack(
        "<QQQQIIIIIIQQ", WORD, operand, compare, 0, kind, size, 0, cancelled, 0, 0, swap_mask, compare_mask)))
    expected = {"held": held & every}

    def meanwhile():
        if rand.randrange(3) == 0:
            expected["held"] = rand.getrandbits(64) & every if rand.randrange(2) else held & every
            memory.update(zip(range(WORD, WORD + size), expected["held"].to_bytes(size, "little")))

    kernel.run(memory, meanwhile)
    order = struct.unpack("<QQQQIIIIIIQQ", bytes(memory[ORDER + i] for i in range(72)))
    word = int.from_bytes(bytes(memory[WORD + i] for i in range(size)), "little")
    rest = bytes(memory[WORD + i] for i in range(size, 8))
    assert order[6] == 1, "it does not say that it has started"
    assert rest == struct.pack("<Q", held)[size:], "it changed what is behind the word"
    if cancelled:
        assert order[8] == GIVEN_UP and word == held & every
        return
    assert order[8] == DONE
    assert order[3] == expected["held"], (kind, size, order[3], expected)
    assert word == reference(kind, size, expected["held"], operand, compare, swap_mask, compare_mask), (kind, size)


def main():
    ptx = ptx_of(pathlib.Path(sys.argv[1]))
    kernel, rand = Kernel(ptx), random.Random(1)
    for kind in (ADD, CMP_SWAP, MASKED_CMP_SWAP, FIELD_ADD):
        for size in (4, 8):
            for n in range(ROUNDS):
                check(kernel, rand, kind, size, cancelled=int(n % 20 == 0))
    if len(sys.argv) > 2:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "kernel.ptx")
            path.write_text(ptx)
            subprocess.run([sys.argv[2], "-arch=sm_90", "-o", path.with_suffix(".cubin"), path], check=True)


main()
