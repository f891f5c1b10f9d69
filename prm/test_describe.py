#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests which descriptions describe.py accepts and refuses, and what gen.py generates from them."""

import os
import tempfile
import unittest

import describe
import gen
import ifc


def read(text):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'chapter.prm')
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
        return describe.Descriptions([path])


def fields(*lines, size='0x10'):
    return f'struct s {size} Title\n' + ''.join(f'    {line}\n' for line in lines)


class Accepts(unittest.TestCase):
    def test_positions(self):
        """A field's position is a dword and bits, or a byte and a type."""
        struct = read(fields('0x04.31:24 state Meaning', '0x04.0 valid Meaning',
                             '0x08 u64 addr Meaning')).structs['s']
        self.assertEqual([(f.name, f.bit, f.width) for f in struct.fields],
                         [('state', 32, 8), ('valid', 63, 1), ('addr', 64, 64)])

    def test_nested_and_open_arrays(self):
        desc = read('struct e 0x8 Element\n    0x00.31:12 pa Meaning\n' +
                    fields('0x00 e[2] pair Meaning', '0x10 e[] rest Meaning'))
        pair, rest = desc.structs['s'].fields
        self.assertEqual((pair.width, pair.count, pair.total), (64, 2, 128))
        self.assertEqual((rest.width, rest.count, rest.total), (64, 0, 0))

    def test_alternatives_overlap(self):
        struct = read(fields('0x00 u32 imm Meaning', '| 0x00.31:8 tis Meaning')).structs['s']
        self.assertTrue(struct.fields[1].alternative)

    def test_enum_of_a_field(self):
        desc = read('enum color Title\n    0x1 RED\n' + fields('0x00.3:0 c @color Meaning'))
        self.assertEqual(desc.structs['s'].fields[0].enum, 'color')
        self.assertIn('PRM_COLOR_RED = 0x1', gen.header(desc))

    def test_reserved_mask_covers_what_no_field_does(self):
        desc = read('struct e 0x4 Element\n    0x00.31:8 x Meaning\n' +
                    fields('0x00 e e Meaning', '0x04.0 bit Meaning', '| 0x08 u8[4] raw Meaning'))
        self.assertEqual(desc.reserved_mask(desc.structs['s']),
                         bytes.fromhex('000000ff fffffffe 00000000 ffffffff'))


COMMANDS = ('enum mod Title\n    0x1 ON\n'
            'struct go_in 0x10 Title\n    0x00.31:16 opcode Meaning\n    0x04.15:0 op_mod @mod Meaning\n'
            '    0x08 u64 last Meaning\nstruct go_out 0x8 Title\n    0x00 u8 status Meaning\n'
            'commands op Title\n')


class Commands(unittest.TestCase):
    def test_a_row_is_an_opcode_and_its_layouts(self):
        desc = read(COMMANDS + '    0x10 GO go_in..last go_out\n    0x11 STAY\n')
        go = desc.commands['GO']
        self.assertEqual((desc.least(go.input, go.input_until), desc.least(go.output, None)),
                         (8, 8))
        self.assertEqual(desc.variants(go), 'mod')
        self.assertIn('PRM_OP_STAY = 0x11', gen.header(desc))

    def test_c_knows_only_commands_with_layouts(self):
        text = gen.header(read(COMMANDS + '    0x10 GO go_in go_out\n    0x11 STAY\n'))
        self.assertIn('prm_command_GO;', text)
        self.assertNotIn('prm_command_STAY', text)

    def test_a_command_may_explain_its_variants_itself(self):
        desc = read(COMMANDS + '    0x10 GO go_in go_out any-variant\n')
        self.assertIsNone(desc.variants(desc.commands['GO']))

    def test_a_command_may_be_about_an_object(self):
        desc = read(COMMANDS + '    0x10 GO go_in go_out creates TRIP last\n'
                               '    0x11 END go_in go_out destroys TRIP last\n')
        entry, in_output = desc.number(desc.commands['GO'])
        self.assertEqual((entry.bit, entry.width, in_output), (64, 64, False))
        self.assertIn('prm_object_TRIP;', gen.header(desc))
        self.assertIn('"TRIP", &prm_command_GO, NULL, &prm_command_END,', gen.source(desc))

    def test_a_creating_command_answers_with_the_number(self):
        desc = read(COMMANDS + '    0x10 GO go_in go_out creates TRIP status\n'
                               '    0x11 END go_in go_out destroys TRIP last\n')
        self.assertTrue(desc.number(desc.commands['GO'])[1])

    def test_objects_are_created_once_and_destroyed(self):
        go = '    0x10 GO go_in go_out creates TRIP last\n'
        for rows, why in ((go, 'TRIP is not created or not destroyed'),
                          (go + go.replace('0x10 GO', '0x12 RUN'), 'second that creates TRIP'),
                          (go + '    0x11 END go_in go_out destroys TRIP op_mod\n',
                           'a number of 64 bits is created, of 16 destroyed'),
                          (go.replace('last', 'gone'), 'no number "gone"')):
            with self.assertRaisesRegex(describe.DescriptionError, why):
                read(COMMANDS + rows)

    def test_a_command_may_say_that_memory_is_in_umems(self):
        desc = read(COMMANDS + 'struct run_in 0x18 Title\n    0x00 go_in go Meaning\n'
                               '    0x10.31 is_umem Meaning\n'
                               'commands op2 Title\n    0x10 RUN run_in go_out umem is_umem go.last\n')
        fields = desc.umem_fields(desc.commands['RUN'])
        self.assertEqual([(entry.bit, entry.width) for entry in fields], [(128, 1), (64, 64)])
        self.assertIn('    {0x8001, 0x4040},', gen.source(desc))

    def test_fields_of_umems_are_the_input_s_and_few(self):
        for row, why in (('umem gone', 'no field "gone" in go_in'),
                         ('umem', 'want "OPCODE NAME'),
                         ('umem last last last', 'more than 2 fields of umems')):
            with self.assertRaisesRegex(describe.DescriptionError, why):
                read(COMMANDS + f'    0x10 GO go_in go_out {row}\n')

    def test_layouts_must_be_described(self):
        for row, why in (('GO go_in', 'want "OPCODE NAME'),
                         ('GO go_in gone', 'no structure "gone"'),
                         ('GO go_in..gone go_out', 'no field "gone" in go_in')):
            with self.assertRaisesRegex(describe.DescriptionError, why):
                read(COMMANDS + f'    0x10 {row}\n')


class Refuses(unittest.TestCase):
    def refuse(self, text, why):
        with self.assertRaisesRegex(describe.DescriptionError, why):
            gen.header(read(text))

    def test_overlap(self):
        self.refuse(fields('0x00.31:8 a Meaning', '0x00.8:0 b Meaning'), 'b overlaps a')

    def test_past_the_end(self):
        self.refuse(fields('0x10 u8 a Meaning'), 'ends past the structure')

    def test_open_array_in_the_middle(self):
        self.refuse(fields('0x08 u64[] pas Meaning'), 'not at the end')

    def test_no_meaning(self):
        self.refuse(fields('0x00 u32 a'), 'has no meaning')
        self.refuse('struct s 0x4\n', 'want "struct')

    def test_second_name(self):
        self.refuse(fields('0x00 u32 a Meaning', '0x04 u32 a Meaning'), 'second field')
        self.refuse(fields() + fields(), 'second structure')

    def test_unknown_names(self):
        self.refuse(fields('0x00 nothing a Meaning'), 'no structure "nothing"')
        self.refuse(fields('0x00.3:0 a @nothing Meaning'), 'no enum "nothing"')
        self.refuse(fields('not-in-ifc b: reason', '0x00 u32 a Meaning'), 'no field "b"')

    def test_bad_bits(self):
        self.refuse(fields('0x00.32:0 a Meaning'), 'bad bits')
        self.refuse(fields('0x02.7:0 a Meaning'), 'bad bits')
        self.refuse(fields('0x00.0:7 a Meaning'), 'bad bits')

    def test_cycle(self):
        self.refuse('struct a 0x8 A\n    0x00 b b Meaning\nstruct b 0x8 B\n    0x00 a a Meaning\n',
                    'contains itself')

    def test_access_outside_the_structure(self):
        """A field of 24 bits is read with the fourth byte of its dword."""
        self.refuse('struct s 0x3 Title\n    0x00 u24 a Meaning\n', 'leave the structure')


class Header(unittest.TestCase):
    """Tests the reader of the driver's header, with a header written here."""

    TEXT = '''
        #define MLX5_N (2 + \\
                        MLX5_M)
        struct mlx5_ifc_in_bits { u8 a[0x4]; u8 reserved_at_4[0x1c]; };
        struct mlx5_ifc_out_bits {
            u8 first[0x20];            /* a comment; with u8 inside[0x8] */
            union {
                struct { u8 x[0x8]; u8 y[0x18]; };
                struct mlx5_ifc_in_bits whole;
            };
            union mlx5_ifc_u_bits named;
            struct mlx5_ifc_in_bits list[MLX5_N];
            u8 open[][0x40];
        };
        union mlx5_ifc_u_bits { struct mlx5_ifc_in_bits in; u8 raw[0x40]; };
    '''.replace('\n        ', '\n')

    def test_offsets(self):
        layouts = ifc.Layouts('#define MLX5_M 1\n' + self.TEXT)
        got = [(f.name, f.bit, f.width, f.count) for f in layouts.fields('out')]
        self.assertEqual(got, [('first', 0, 32, None), ('x', 32, 8, None), ('y', 40, 24, None),
                               ('whole', 32, 32, None), ('named', 64, 64, None),
                               ('list', 128, 32, 3), ('open', 224, 64, 0)])
        self.assertEqual(layouts.size('out'), 224)


if __name__ == '__main__':
    unittest.main()
