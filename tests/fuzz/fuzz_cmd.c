/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libFuzzer: a stream of commands to a ready function. Each is the example of a command, or only
 * zeros, with overwritten words and a changed length. The device must answer each command.
 */
#include <stdlib.h>
#include <string.h>
#include "fw/cmd_table.h"
#include "tests/fuzz/guest_input.h"

#define MAX_COMMANDS 40

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct guest_input *in = guest_input_start(data, size);
    struct drv *drv = in->t->a.drv;
    size_t rows = (size_t)num_commands();

    for (unsigned n = 0; n < MAX_COMMANDS && in->size; n++) {
        const struct fw_cmd_row *row = fw_cmd_at(input_u8(in) % rows);
        uint8_t cmd[EXAMPLE_MAX], out[2048];
        size_t len = example(&in->guest, row->command->opcode, cmd),
               out_len = row->command->out_least;
        uint8_t lengths = input_u8(in);

        if (lengths & 1) {
            len = MIN(len + (lengths >> 1), sizeof(cmd));
        } else if (lengths & 2) {
            out_len = MIN(out_len + (lengths >> 2) * 16, sizeof(out));
        }
        input_patch(in, cmd + 2, len - 2);
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
