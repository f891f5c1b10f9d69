# SPDX-License-Identifier: BSD-2-Clause
"""Reads the descriptions (*.prm) into objects, and refuses descriptions that make no sense.

The grammar is in README.md. gen.py and test_ifc.py read descriptions only through this module, so
a mistake is reported in one way, with file and line.
"""

import os
import re
from dataclasses import dataclass, field, replace
from typing import Optional


class DescriptionError(Exception):
    pass


@dataclass
class Field:
    name: str
    bit: int                      # from the structure's first bit, most significant first
    width: int                    # of one element, bits
    count: Optional[int] = None   # None: not an array; 0: open array at the end
    type: Optional[str] = None    # name of the nested structure
    enum: Optional[str] = None
    meaning: str = ''
    alternative: bool = False     # may share its place with other fields
    where: str = ''

    @property
    def total(self):
        return self.width * (1 if self.count is None else self.count)


@dataclass
class Struct:
    name: str
    size: int                     # bytes
    title: str
    chapter: 'Chapter'
    where: str
    fields: list = field(default_factory=list)
    not_in_ifc: Optional[str] = None              # why the driver's header lacks it
    extra: dict = field(default_factory=dict)     # field name -> why the header lacks it


@dataclass
class Enum:
    name: str
    title: str
    chapter: 'Chapter'
    where: str
    values: list = field(default_factory=list)    # (value, name, meaning)


@dataclass
class Command:
    """A row of `commands`: command NAME and its layouts, if they are described."""
    name: str
    opcode: int
    where: str
    input: Optional[str] = None           # structure
    output: Optional[str] = None
    input_until: Optional[str] = None     # the input may end before this field
    output_until: Optional[str] = None
    any_variant: bool = False             # op_mod has bits, not a value of an enum
    act: Optional[str] = None             # one of ACTS, or None
    object: Optional[str] = None          # kind of the object that it acts on
    number: Optional[str] = None          # field with the object's number
    umem: list = field(default_factory=list)  # fields that say that memory is in umems


@dataclass
class Chapter:
    name: str
    title: str = ''
    not_in_ifc: Optional[str] = None
    items: list = field(default_factory=list)     # Struct and Enum in the order of the file


FIELD = re.compile(r'(?P<alt>\|\s*)?(?P<byte>0x[0-9a-f]+)'
                   r'(?P<bits>\.(?P<msb>\d+)(?::(?P<lsb>\d+))?)?\s+(?P<rest>.*)$')
TYPE = re.compile(r'(?P<base>[a-z]\w*)(?P<array>\[(?P<count>\d*)\])?$')
IDENT = re.compile(r'[A-Za-z_]\w*$')
ACTS = ('creates', 'queries', 'modifies', 'destroys')
COMMAND = re.compile(r'(?P<opcode>0x[0-9a-f]+)\s+(?P<name>\w+)'
                     r'(?:\s+(?P<input>[\w.]+)\s+(?P<output>[\w.]+)(?P<any>\s+any-variant)?'
                     rf'(?:\s+(?P<act>{"|".join(ACTS)})\s+(?P<object>[A-Z]\w+)\s+(?P<number>[\w.]+))?'
                     r'(?:\s+umem(?P<umem>(?:\s+[\w.]+)+))?'
                     r')?$')
UMEM_FIELDS = 2  # of a command at most (prm/reflect.h)
SCALAR = re.compile(r'u(8|16|24|32|40|48|56|64)$')


class Descriptions:
    def __init__(self, paths):
        self.chapters = []
        self.structs = {}
        self.enums = {}
        self.commands = {}
        for path in paths:
            self._read(path)
        for struct in self.structs.values():
            self._resolve(struct)
        for command in self.commands.values():
            self._resolve_command(command)
        self.objects = self._objects()
        self._check_cycles()
        for struct in self.structs.values():
            self._check(struct)

    def _read(self, path):
        chapter = Chapter(os.path.splitext(os.path.basename(path))[0])
        self.chapters.append(chapter)
        item, commands = None, False
        with open(path, encoding='utf-8') as lines:
            for number, line in enumerate(lines, 1):
                where = f'{os.path.basename(path)}:{number}'
                text = line.strip()
                if not text or text.startswith('#'):
                    continue
                if line[0].isspace():
                    if item is None:
                        raise DescriptionError(f'{where}: a field outside a structure')
                    if isinstance(item, Struct):
                        self._field(item, text, where)
                    elif commands:
                        self._command(item, text, where)
                    else:
                        self._value(item, text, where)
                    continue
                word, _, rest = text.partition(' ')
                rest = rest.strip()
                if word == 'title':
                    chapter.title = rest
                elif word == 'not-in-ifc':
                    chapter.not_in_ifc = rest
                elif word == 'struct':
                    item = self._struct(chapter, rest, where)
                elif word in ('enum', 'commands'):
                    commands = word == 'commands'
                    name, _, title = rest.partition(' ')
                    if name in self.enums or not IDENT.match(name):
                        raise DescriptionError(f'{where}: bad or second enum "{name}"')
                    item = Enum(name, title.strip(), chapter, where)
                    self.enums[name] = item
                    chapter.items.append(item)
                else:
                    raise DescriptionError(f'{where}: unknown word "{word}"')

    def _struct(self, chapter, rest, where):
        parts = rest.split(None, 2)
        if len(parts) < 3 or not IDENT.match(parts[0]) or not re.match(r'0x[0-9a-f]+$', parts[1]):
            raise DescriptionError(f'{where}: want "struct NAME 0xSIZE TITLE"')
        if parts[0] in self.structs:
            raise DescriptionError(f'{where}: second structure "{parts[0]}"')
        struct = Struct(parts[0], int(parts[1], 16), parts[2],
                        chapter, where, not_in_ifc=chapter.not_in_ifc)
        self.structs[struct.name] = struct
        chapter.items.append(struct)
        return struct

    @staticmethod
    def _value(enum, text, where):
        match = re.match(r'(0x[0-9a-f]+|\d+)\s+(\w+)\s*(.*)$', text)
        if not match:
            raise DescriptionError(f'{where}: want "VALUE NAME MEANING"')
        value, name = int(match.group(1), 0), match.group(2)
        if value >= 1 << 32:
            raise DescriptionError(f'{where}: value wider than 32 bits')
        if any(name == other for _, other, _ in enum.values):
            raise DescriptionError(f'{where}: second {name} in enum {enum.name}')
        enum.values.append((value, name, match.group(3)))

    def _command(self, enum, text, where):
        """Reads a row of `commands`: a value of the enum, and the layouts of input and output."""
        match = COMMAND.match(text)
        if not match:
            raise DescriptionError(f'{where}: want "OPCODE NAME [IN OUT [any-variant] '
                                   '[ACT OBJECT NUMBER] [umem FIELD...]]"')
        layouts = ' and '.join(match[part].partition('..')[0] for part in ('input', 'output')
                               if match[part])
        self._value(enum, f"{match['opcode']} {match['name']} {layouts}", where)
        command = Command(match['name'], int(match['opcode'], 16), where)
        if match['input']:
            command.input, _, command.input_until = match['input'].partition('..')
            command.output, _, command.output_until = match['output'].partition('..')
            command.any_variant = bool(match['any'])
            command.act, command.object = match['act'], match['object']
            command.number = match['number']
            command.umem = (match['umem'] or '').split()
            if len(command.umem) > UMEM_FIELDS:
                raise DescriptionError(f'{where}: more than {UMEM_FIELDS} fields of umems')
        self.commands[command.name] = command

    @staticmethod
    def _field(struct, text, where):
        match = re.match(r'not-in-ifc\s+(?:([\w ]+):\s+)?(.+)$', text)
        if match:
            if match.group(1):
                struct.extra.update((name, match.group(2)) for name in match.group(1).split())
            else:
                struct.not_in_ifc = match.group(2)
            return
        match = FIELD.match(text)
        if not match:
            raise DescriptionError(f'{where}: not a field: "{text}"')
        byte, rest = int(match['byte'], 16), match['rest']
        kind, count = None, None
        if match['bits']:
            msb = int(match['msb'])
            lsb = int(match['lsb']) if match['lsb'] else msb
            if byte % 4 or not 31 >= msb >= lsb:
                raise DescriptionError(f'{where}: bad bits')
            bit, width = byte * 8 + 31 - msb, msb - lsb + 1
        else:
            word, _, rest = rest.partition(' ')
            shape = TYPE.match(word)
            if not shape:
                raise DescriptionError(f'{where}: bad type "{word}"')
            if shape['array']:
                count = int(shape['count'] or 0)
            scalar = SCALAR.match(shape['base'])
            bit, width = byte * 8, int(scalar.group(1)) if scalar else 0
            kind = None if scalar else shape['base']
        parts = rest.split(None, 1)
        if not parts or not IDENT.match(parts[0]):
            raise DescriptionError(f'{where}: field without a name')
        meaning, enum = parts[1] if len(parts) > 1 else '', None
        if meaning.startswith('@'):
            enum, _, meaning = meaning[1:].partition(' ')
        if any(parts[0] == other.name for other in struct.fields):
            raise DescriptionError(f'{where}: second field "{parts[0]}"')
        struct.fields.append(Field(parts[0], bit, width, count, kind, enum, meaning.strip(),
                                   bool(match['alt']), where))

    def _resolve(self, struct):
        for entry in struct.fields:
            if entry.type:
                if entry.type not in self.structs:
                    raise DescriptionError(f'{entry.where}: no structure "{entry.type}"')
                entry.width = self.structs[entry.type].size * 8
            if entry.enum and entry.enum not in self.enums:
                raise DescriptionError(f'{entry.where}: no enum "{entry.enum}"')

    def _resolve_command(self, command):
        for name, until in ((command.input, command.input_until),
                            (command.output, command.output_until)):
            if name and name not in self.structs:
                raise DescriptionError(f'{command.where}: no structure "{name}"')
            if until and all(until != entry.name for entry in self.structs[name].fields):
                raise DescriptionError(f'{command.where}: no field "{until}" in {name}')

        if command.number and not self.number(command):
            raise DescriptionError(f'{command.where}: no number "{command.number}"')
        for path in command.umem:
            if not self._scalar(command.input, path):
                raise DescriptionError(f'{command.where}: no field "{path}" in {command.input}')

    def _objects(self):
        """Kind -> act -> command. Of several commands that modify, it has the last."""
        objects = {}
        for command in self.commands.values():
            if command.object:
                commands = objects.setdefault(command.object, {})
                if command.act in commands and command.act != 'modifies':
                    raise DescriptionError(f'{command.where}: second that {command.act} '
                                           f'{command.object}')
                commands[command.act] = command
        for name, commands in objects.items():
            if 'creates' not in commands or 'destroys' not in commands:
                raise DescriptionError(f'object {name} is not created or not destroyed')
            given, taken = (self.number(commands[act])[0] for act in ('creates', 'destroys'))
            if given.width > taken.width:
                raise DescriptionError(f'object {name}: a number of {given.width} bits is created, '
                                       f'of {taken.width} destroyed')
        return objects

    def _scalar(self, struct, path):
        """Returns the field at that path ("hdr.obj_id") with its position in the outer structure, or None."""
        name, _, rest = path.partition('.')
        entry = next((e for e in self.structs[struct].fields if e.name == name), None)
        if not rest or not entry or not entry.type:
            return None if not entry or entry.type or entry.count is not None else entry
        inner = self._scalar(entry.type, rest)
        return inner and replace(inner, bit=entry.bit + inner.bit)

    def number(self, command):
        """The field with the object's number, and whether it is in the output. The output has it if
        the command creates an object and does not let its caller choose the number."""
        chosen = self._scalar(command.input, command.number)
        given = self._scalar(command.output, command.number)
        if command.act == 'creates' and given:
            return given, True
        return (chosen, False) if chosen else None

    def umem_fields(self, command):
        """Returns the fields of the input that say whether rings, pages or doorbell records are in umems."""
        return [self._scalar(command.input, path) for path in command.umem]

    def variants(self, command):
        """Returns the enum of a command's op_mod. None: op_mod must be 0, or any_variant is set."""
        if command.any_variant:
            return None
        return next((entry.enum for entry in self.structs[command.input].fields
                     if entry.name == 'op_mod'), None)

    def least(self, name, until):
        """Returns the least length of a command's input or output, in bytes."""
        struct = self.structs[name]
        return next((entry.bit // 8 for entry in struct.fields if entry.name == until),
                    struct.size)

    def _check_cycles(self):
        done, path = set(), []

        def visit(name):
            if name in path:
                raise DescriptionError(f'structure "{name}" contains itself')
            if name in done:
                return
            path.append(name)
            for entry in self.structs[name].fields:
                if entry.type:
                    visit(entry.type)
            path.pop()
            done.add(name)

        for name in self.structs:
            visit(name)

    def _check(self, struct):
        """Checks that fields are inside the structure and share bits only if a line says so."""
        taken = []
        for entry in struct.fields:
            if not entry.meaning:
                raise DescriptionError(f'{entry.where}: {entry.name} has no meaning')
            end = entry.bit + entry.total
            if end > struct.size * 8:
                raise DescriptionError(f'{entry.where}: {entry.name} ends past the structure')
            if entry.count == 0 and entry.bit != struct.size * 8:
                raise DescriptionError(f'{entry.where}: open array {entry.name} is not at the end')
            if not entry.alternative:
                for first, last, name in taken:
                    if entry.bit < last and first < end:
                        raise DescriptionError(f'{entry.where}: {entry.name} overlaps {name}; '
                                               'write "|" before an alternative')
            if entry.total and not entry.alternative:
                taken.append((entry.bit, end, entry.name))
        for name in struct.extra:
            if all(name != entry.name for entry in struct.fields):
                raise DescriptionError(f'{struct.where}: not-in-ifc for no field "{name}"')

    def reserved_mask(self, struct):
        """Returns a mask of the structure's size, with a set bit for each bit that no field covers."""
        mask = bytearray(b'\xff' * struct.size)
        for entry in struct.fields:
            if entry.count == 0:
                continue
            if entry.type:
                inner = self.reserved_mask(self.structs[entry.type])
                first = entry.bit // 8
                for index in range(entry.count or 1):
                    for offset, value in enumerate(inner):
                        mask[first + index * len(inner) + offset] &= value
            else:
                for bit in range(entry.bit, entry.bit + entry.total):
                    mask[bit // 8] &= ~(0x80 >> bit % 8)
        return bytes(mask)
