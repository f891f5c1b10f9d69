#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests that the accessors are typed: code that mixes layouts up or writes an input is refused.

test_types.py INCLUDE_DIR... -- COMPILER...
"""

import subprocess
import sys
import unittest

INCLUDES = []
COMPILER = []


def compiles(declaration, statement):
    source = f'#include "prm/prm.h"\nvoid use({declaration});\nvoid use({declaration})\n' \
             f'{{\n    {statement};\n}}\n'
    flags = ['-std=gnu11', '-Werror', '-fsyntax-only'] + [f'-I{path}' for path in INCLUDES]
    run = subprocess.run(COMPILER + flags + ['-x', 'c', '-'], input=source, text=True,
                         stderr=subprocess.PIPE, check=False)
    return run.returncode == 0


class Types(unittest.TestCase):
    def test_a_layout_is_read_and_written_as_itself(self):
        self.assertTrue(compiles('const struct prm_qpc *qpc', '(void)PRM_GET(qpc, qpc, state)'))
        self.assertTrue(compiles('struct prm_qpc *qpc', 'PRM_SET(qpc, qpc, state, 3)'))
        self.assertTrue(compiles('struct prm_create_qp_in *in',
                                 'struct prm_qpc *qpc = PRM_PTR(create_qp_in, in, qpc); '
                                 'PRM_SET(qpc, qpc, state, 3)'))

    def test_a_layout_is_not_read_from_another(self):
        self.assertFalse(compiles('const struct prm_sqc *sqc', '(void)PRM_GET(qpc, sqc, state)'))
        self.assertFalse(compiles('struct prm_create_sq_in *in',
                                  '(void)PRM_GET(qpc, PRM_PTR(create_sq_in, in, ctx), state)'))

    def test_bytes_are_no_layout_and_void_is_any(self):
        self.assertFalse(compiles('const uint8_t *qpc', '(void)PRM_GET(qpc, qpc, state)'))
        self.assertFalse(compiles('uint8_t *qpc', 'PRM_SET(qpc, qpc, state, 3)'))
        self.assertTrue(compiles('const void *qpc', '(void)PRM_GET(qpc, qpc, state)'))
        self.assertTrue(compiles('void *qpc', 'PRM_SET(qpc, qpc, state, 3)'))

    def test_a_union_of_bytes_is_read_as_what_applies(self):
        self.assertTrue(compiles('const struct prm_eqe *eqe',
                                 '(void)PRM_GET(qp_events, PRM_PTR(eqe, eqe, event_data), type)'))
        self.assertFalse(compiles('const struct prm_eqe *eqe',
                                  'PRM_SET(qp_events, PRM_PTR(eqe, eqe, event_data), type, 1)'))

    def test_const_is_not_written(self):
        self.assertFalse(compiles('const struct prm_qpc *qpc', 'PRM_SET(qpc, qpc, state, 3)'))
        self.assertFalse(compiles('const void *in', 'PRM_SET(create_qp_in, in, uid, 1)'))
        self.assertFalse(compiles('const struct prm_create_qp_in *in',
                                  'struct prm_qpc *qpc = PRM_PTR(create_qp_in, in, qpc); '
                                  '(void)qpc'))


if __name__ == '__main__':
    split = sys.argv.index('--')
    INCLUDES, COMPILER = sys.argv[1:split], sys.argv[split + 1:]
    unittest.main(argv=sys.argv[:1])
