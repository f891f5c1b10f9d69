# SPDX-License-Identifier: BSD-2-Clause
"""Structures of the programming interface as bytes, by the field names of prm/*.prm.

    image = Image("create_eq_in", {"opcode": opcode("CREATE_EQ"), "eq_context_entry.intr": 3,
                                   "pas[0]": 0x1000})
    Image("create_eq_out", data)["eq_number"]
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "prm"))

import describe  # noqa: E402

PRM = describe.Descriptions(sorted((ROOT / "prm").glob("*.prm")))
COMMANDS = [name for name, command in PRM.commands.items() if command.input]


def opcode(name):
    return PRM.commands[name].opcode


def size(struct):
    return PRM.structs[struct].size


def input_of(name):
    """Returns the name of a command's input layout."""
    return PRM.commands[name].input


def output_of(name):
    return PRM.commands[name].output


class Image:
    """The bytes of one structure; elements of an open array extend them."""

    def __init__(self, struct, values=None):
        self.struct = PRM.structs[struct]
        self.data = bytearray(self.struct.size)
        if isinstance(values, (bytes, bytearray)):
            self.data[:len(values)] = values
        else:
            for path, value in (values or {}).items():
                self[path] = value

    def _place(self, path):
        """Returns first bit and width of the field at a path such as qpc.st or pas[3]."""
        struct, first = self.struct, 0
        for word in path.split("."):
            name, index = re.fullmatch(r"(\w+)(?:\[(\d+)\])?", word).groups()
            field = next((f for f in struct.fields if f.name == name), None)
            if field is None:
                raise KeyError(f"{self.struct.name} has no {path}")
            first += field.bit + int(index or 0) * field.width
            width = field.width if index or field.type else field.total
            struct = PRM.structs.get(field.type)
        return first, width

    def __setitem__(self, path, value):
        """Sets a number, or bytes (which may be longer than an open array is)."""
        first, width = self._place(path)
        if isinstance(value, (bytes, bytearray)):
            end = first // 8 + len(value)
            self._reach(end)
            self.data[first // 8:end] = value
            return
        if value >> width:
            raise ValueError(f"{path} has no room for 0x{value:x}")
        end = first + width
        self._reach((end + 7) // 8)
        low, high = first // 8, (end + 7) // 8
        shift = high * 8 - end
        word = int.from_bytes(self.data[low:high], "big")
        word = word & ~((1 << width) - 1 << shift) | value << shift
        self.data[low:high] = word.to_bytes(high - low, "big")

    def __getitem__(self, path):
        first, width = self._place(path)
        low, high = first // 8, (first + width + 7) // 8
        word = int.from_bytes(self.data[low:high], "big")
        return word >> (high * 8 - first - width) & ((1 << width) - 1)

    def _reach(self, length):
        if length > len(self.data):
            self.data.extend(bytes(length - len(self.data)))

    def __bytes__(self):
        return bytes(self.data)
