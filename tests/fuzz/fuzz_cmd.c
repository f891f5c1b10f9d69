/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libFuzzer: a stream of commands to a ready function. Each is the example of a command or one of
 * its variants, or only zeros, with overwritten words and a changed length. The device must answer
 * each command. An answer to a page fault has a page fault before it.
 */
#include <stdlib.h>
#include <string.h>
#include "fw/cmd_table.h"
#include "tests/fuzz/guest_input.h"
#include "tests/sim/variants.h"

#define MAX_COMMANDS 40

static uint32_t paged; /* an on-demand key */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Sends a message whose page is missing. Takes the events of earlier ones. */
static void make_fault(struct guest_input *in)
{
    struct drv *drv = in->t->a.drv;
    struct drv_event event;
    struct drv_sge sge = {.va = in->guest.mem->va, .len = 64, .lkey = paged};

    while (drv_wait_event(drv, PRM_EVENT_TYPE_PAGE_FAULT, DRV_ANY_NUM, &event, 0)) {
    }
    drv_post_send(in->guest.rc_loop,
                  &(struct drv_send){.opcode = PRM_WQE_OPCODE_SEND, .sge = &sge, .num_sge = 1});
    input_settle(in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct guest_input *in = guest_input_start(data, size);
    struct drv *drv = in->t->a.drv;
    size_t rows = (size_t)num_commands();

    if (in->fresh) {
        g_assert_cmpint(drv_create_fault_eq(drv), ==, 0);
        paged = guest_paged_key(&in->guest);
    }
    for (unsigned n = 0; n < MAX_COMMANDS && in->size; n++) {
        const struct fw_cmd_row *row = fw_cmd_at(input_u8(in) % rows);
        uint8_t cmd[EXAMPLE_MAX], out[2048];
        uint8_t lengths = input_u8(in);
        /* bits 1:0: the lengths differ; else the others choose a variant */
        size_t len = example_variant(&in->guest, row->command->opcode,
                                     lengths & 3 ? 0 : lengths >> 2, cmd),
               out_len = row->command->out_least;

        if (lengths & 1) {
            len = MIN(len + (lengths >> 1), sizeof(cmd));
        } else if (lengths & 2) {
            out_len = MIN(out_len + (lengths >> 2) * 16, sizeof(out));
        }
        input_patch(in, cmd + 2, len - 2);
        if (row->command->opcode == PRM_CMD_OP_PAGE_FAULT_RESUME && !(lengths & 3)) {
            make_fault(in);
        }
        if (drv_cmd(drv, cmd, len, out, out_len) == DRV_TIMEOUT) {
            /* the function is torn down and accepts no commands, or this command is lost */
            if (drv->dev.ops->mmio_read(drv->dev.pci, 0x14, 4) >> 8 & 7) {
                break;
            }
            abort();
        }
        drv->up = in->t->a.hca->fw->state == CMD_READY;
    }
    return 0;
}
