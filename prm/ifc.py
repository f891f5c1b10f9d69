# SPDX-License-Identifier: BSD-2-Clause
"""Reads the structures of the Linux driver's mlx5_ifc.h: names, bit offsets, bit widths.

The header writes a layout as C structures in which one u8 array element stands for one bit.
Layouts.fields("qpc") returns the fields in the form of our descriptions: the members of anonymous
structures and unions are fields of the outer structure, and reserved ranges are left out. Only the
test of the descriptions uses this module; nothing is generated from the header.
"""

import re
from dataclasses import dataclass
from typing import Optional

TOKEN = re.compile(r'[A-Za-z_]\w*|0[xX][0-9a-fA-F]+|\d+|[{}\[\];()<>+*-]')


@dataclass
class Field:
    name: str
    bit: int                  # from the structure's first bit, most significant first
    width: int                # of one element, bits
    count: Optional[int]      # None: not an array; 0: open array at the end
    type: Optional[str]       # name of the nested structure or union

    @property
    def total(self):
        return self.width * (1 if self.count is None else self.count)


@dataclass
class Member:
    kind: str                 # 'u8', 'ref' or 'inline'
    name: Optional[str]
    dims: list
    ref: object = None        # tag, or the Body of an inline structure


@dataclass
class Body:
    union: bool
    members: list


def strip(text):
    text = re.sub(r'/\*.*?\*/', ' ', text, flags=re.S)
    text = re.sub(r'//[^\n]*', ' ', text)
    return re.sub(r'^\s*#(?:[^\n]*\\\n)*[^\n]*$', ' ', text, flags=re.M)


class Layouts:
    def __init__(self, text):
        self.consts = {}            # #define of a number, or of a sum of such
        for name, value in re.findall(r'^#define\s+(MLX5_\w+)\s+\(?((?:[^\n]*\\\n)*[^\n]*)$', text,
                                      re.M):
            terms = re.findall(r'\w+', value)
            if terms and all(t in self.consts or re.fullmatch(r'\d+|0x[0-9a-fA-F]+', t)
                             for t in terms):
                self.consts[name] = sum(self.consts[t] if t in self.consts else int(t, 0)
                                        for t in terms)
        text = strip(text)
        self.bodies = {}
        pattern = re.compile(r'^(struct|union)\s+mlx5_ifc_(\w+?)(?:_bits)?\s*\{', re.M)
        for match in pattern.finditer(text):
            tokens = self._tokens(text, match.end())
            self.bodies[match.group(2)] = self._body(tokens, match.group(1) == 'union')
        self._sizes = {}

    @staticmethod
    def _tokens(text, pos):
        for match in TOKEN.finditer(text, pos):
            yield match.group(0)

    def _body(self, tokens, union):
        body = Body(union, [])
        for token in tokens:
            if token == '}':
                return body
            if token in ('struct', 'union'):
                tag = next(tokens)
                if tag == '{':
                    inline = self._body(tokens, token == 'union')
                    name, dims = self._declarator(tokens)
                    body.members.append(Member('inline', name, dims, inline))
                else:
                    tag = re.sub(r'^mlx5_ifc_', '', tag)
                    tag = re.sub(r'_bits$', '', tag)
                    name, dims = self._declarator(tokens)
                    body.members.append(Member('ref', name, dims, tag))
            elif token == 'u8':
                name, dims = self._declarator(tokens)
                body.members.append(Member('u8', name, dims))
            elif token == 'DECLARE_FLEX_ARRAY':
                # an open array in a union: ( struct TAG NAME ) ;
                _, _, tag, name, _, _ = (next(tokens) for _ in range(6))
                tag = re.sub(r'^mlx5_ifc_|_bits$', '', tag)
                body.members.append(Member('ref', name, [0], tag))
            else:
                raise ValueError(f'mlx5_ifc.h: unexpected "{token}"')
        raise ValueError('mlx5_ifc.h: structure without an end')

    def _declarator(self, tokens):
        name, dims = None, []
        for token in tokens:
            if token == ';':
                return name, dims
            if token == '[':
                value = next(tokens)
                if value == ']':
                    dims.append(0)
                    continue
                if next(tokens) != ']':
                    raise ValueError(f'mlx5_ifc.h: array size of {name} is an expression')
                dims.append(self.consts[value] if value in self.consts else int(value, 0))
            else:
                name = token
        raise ValueError('mlx5_ifc.h: member without an end')

    def _member_width(self, member):
        """Returns the width in bits of one element, and the array's length or None."""
        if member.kind == 'u8':
            if len(member.dims) == 0:
                return 1, None          # a single "bit"
            if len(member.dims) == 1:
                # u8 x[] would be an open array of bits; only seen as u8 x[0x..]
                return member.dims[0], None
            return member.dims[1], member.dims[0]
        width = self.size(member.ref) if member.kind == 'ref' else self._body_size(member.ref)
        return width, (member.dims[0] if member.dims else None)

    def _body_size(self, body):
        total = 0
        for member in body.members:
            width, count = self._member_width(member)
            size = width * (1 if count is None else count)
            total = max(total, size) if body.union else total + size
        return total

    def size(self, tag):
        """Returns the size in bits of a structure or union."""
        if tag not in self._sizes:
            self._sizes[tag] = self._body_size(self.bodies[tag])
        return self._sizes[tag]

    def _walk(self, body, base, prefix):
        pos = base
        for member in body.members:
            width, count = self._member_width(member)
            if member.kind == 'inline' and not member.dims:
                inner = prefix + (member.name + '_' if member.name else '')
                yield from self._walk(member.ref, pos, inner)
            elif member.name and not member.name.startswith('reserved'):
                tag = member.ref if member.kind == 'ref' else None
                yield Field(prefix + member.name, pos, width, count, tag)
            if not body.union:
                pos += width * (1 if count is None else count)

    def fields(self, tag):
        """Returns the named fields of a structure in order, including those of its anonymous parts."""
        return list(self._walk(self.bodies[tag], 0, ''))
