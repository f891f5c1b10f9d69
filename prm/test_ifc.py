#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares every described field with the Linux driver's own header.

    test_ifc.py CHAPTER.prm...

Environment variable MLX5_IFC_H names the header; the default is that of the newest kernel under
/usr/src. Offsets, widths, array lengths and sizes must agree. A structure or field that the header
does not have must be marked not-in-ifc in the descriptions, with a reason. Exits 77 (skipped) if no
header is installed, or if it is older than the descriptions.
"""

import glob
import os
import re
import sys

import describe
import ifc

OLDEST = (6, 12)          # the driver whose names the descriptions use
INSTALLED = '/usr/src/linux-headers-*/include/linux/mlx5/mlx5_ifc.h'


def find_header():
    """Returns the path of the header; or None, and the reason why there is none."""
    path = os.environ.get('MLX5_IFC_H')
    if path:
        return path, ''
    found = []
    for path in glob.glob(INSTALLED):
        version = re.search(r'linux-headers-(\d+)\.(\d+)', path)
        if version:
            found.append(((int(version.group(1)), int(version.group(2))), path))
    if not found:
        return None, 'no mlx5_ifc.h: set MLX5_IFC_H or install kernel headers'
    version, path = max(found)
    if version < OLDEST:
        return None, f'{path} is older than Linux {OLDEST[0]}.{OLDEST[1]}'
    return path, ''


def load(path):
    """The header's layouts, including those of mlx5_ifc_fpga.h, which it includes."""
    text = ''
    fpga = os.path.join(os.path.dirname(path), 'mlx5_ifc_fpga.h')
    for name in (fpga, path):
        if os.path.exists(name):
            with open(name, encoding='utf-8') as file:
                text += file.read()
    return ifc.Layouts(text)


def place(entry):
    text = f'byte 0x{entry.bit // 8:x} bit {entry.bit % 8}, {entry.width} bits'
    return text if entry.count is None else f'{text} x {entry.count or "open"}'


def compare(struct, layouts):
    """Yields one line per disagreement of a described structure with the header."""
    body = layouts.bodies[struct.name]
    if layouts.size(struct.name) != struct.size * 8:
        yield (f'{struct.where}: {struct.name} has 0x{struct.size:x} bytes, in the header '
               f'0x{layouts.size(struct.name) // 8:x}')
    theirs = {entry.name: entry for entry in layouts.fields(struct.name)}
    if body.union:
        yield f'{struct.where}: {struct.name} is a union in the header'
    for ours in struct.fields:
        entry = theirs.get(ours.name)
        if ours.name in struct.extra:
            if entry and (entry.bit, entry.total) == (ours.bit, ours.total) and entry.count != 0:
                yield f'{ours.where}: {struct.name}.{ours.name} is in the header after all'
            continue
        if entry is None:
            yield f'{ours.where}: {struct.name}.{ours.name} is not in the header'
            continue
        is_open = (ours.count == 0, entry.count == 0)
        same = ours.bit == entry.bit and is_open[0] == is_open[1]
        if is_open[0]:
            # the elements of an open array of bytes may be a union of several in the header
            union = entry.type and layouts.bodies[entry.type].union
            same = same and (ours.width == entry.width or (union and ours.width == 8))
        else:
            same = same and ours.total == entry.total
        if ours.type and entry.type and not layouts.bodies[entry.type].union:
            same = same and ours.type == entry.type
        if not same:
            yield (f'{ours.where}: {struct.name}.{ours.name} is {place(ours)}, in the header '
                   f'{place(entry)}')


def main(paths):
    path, why = find_header()
    if path is None:
        print(f'skipped: {why}')
        return 77
    desc = describe.Descriptions(paths)
    layouts = load(path)
    print(f'header: {path}')
    problems, structs, fields = [], 0, 0
    for struct in desc.structs.values():
        if struct.not_in_ifc:
            print(f'not in the header: {struct.name}: {struct.not_in_ifc}')
            continue
        if struct.name not in layouts.bodies:
            problems.append(f'{struct.where}: {struct.name} is not in the header')
            continue
        for name, reason in struct.extra.items():
            print(f'not in the header: {struct.name}.{name}: {reason}')
        problems += compare(struct, layouts)
        structs += 1
        fields += len(struct.fields) - len(struct.extra)
        known = {entry.name for entry in struct.fields}
        missing = [entry.name for entry in layouts.fields(struct.name) if entry.name not in known]
        if missing:
            print(f'only in the header: {struct.name}: {" ".join(missing)}')
    for problem in problems:
        print(problem)
    print(f'{fields} fields of {structs} structures compared, {len(problems)} differ')
    return 1 if problems or fields == 0 else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
