/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interface of the command set: lookup and dispatch.
 */
#ifndef HCASIM_FW_CMD_TABLE_H
#define HCASIM_FW_CMD_TABLE_H

#include "fw/cmd.h"

/* The row of an opcode, or NULL. Capabilities are derived from it. */
const struct fw_cmd_row *fw_cmd_find(uint16_t opcode);

/* The i-th of all rows, for a walk through the command set. NULL after the last. */
const struct fw_cmd_row *fw_cmd_at(size_t i);

/* Finds the target of a checked command, and stores it in *cmd for the handler. */
enum syn fw_cmd_resolve(struct fw *fw, struct fw_cmd *cmd);

/* Runs the handler of a checked command. If the command modifies an object, *changes becomes the
 * text of the fields that have changed, which the caller frees. */
enum syn fw_cmd_run_traced(struct fw *fw, struct fw_cmd *cmd, char **changes);

/* Writes a command that has ended to the trace. */
void fw_cmd_trace(struct fw *fw, const struct fw_cmd *cmd, enum syn syn, const char *changes);

/*
 * Executes a command, or continues it. *cmd is zeroed before the first call; the caller sets only
 * in, in_len, out and out_len. in has at least 8 bytes. out has at least 8 zeroed bytes; it
 * receives status and syndrome (PRM cmd_out) and the command's output. A command that fails has no
 * other output. False: the command is not done; call again in another turn.
 */
bool fw_execute(struct fw *fw, struct fw_cmd *cmd);

#endif
