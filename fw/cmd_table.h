/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command set as a whole: look-up and dispatch.
 */
#ifndef HCASIM_FW_CMD_TABLE_H
#define HCASIM_FW_CMD_TABLE_H

#include "fw/cmd.h"

/* The row of an opcode, or NULL: what capabilities are derived from. */
const struct fw_cmd_row *fw_cmd_find(uint16_t opcode);

/* The i-th row of all, NULL behind the last: to walk the command set. */
const struct fw_cmd_row *fw_cmd_at(size_t i);

/* Whom a checked command is about: what handlers find of that in *cmd. */
enum syn fw_cmd_resolve(struct fw *fw, struct fw_cmd *cmd);

/*
 * Executes a command, or goes on with it. Of *cmd, which is zeroed before, only in, in_len, out and
 * out_len are the caller's: in has at least 8 bytes; out has at least 8, is zeroed, and receives
 * status and syndrome (PRM cmd_out) and what the command answers. A command that fails answers
 * nothing else. False: it is not done and wants to be called again in another turn.
 */
bool fw_execute(struct fw *fw, struct fw_cmd *cmd);

#endif
