/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The commands that a function answers on its control socket (wire/control): its state, its
 * counters, its QPs, its cable. docs/reference/control.md describes them.
 *
 * The owner has the socket. A handler calls begin() before it looks at the function and end() after
 * that, so the function works on nothing meanwhile.
 */
#ifndef HCASIM_FW_CONTROL_H
#define HCASIM_FW_CONTROL_H

#include "fw/fw.h"
#include "wire/control/command.h"

struct fw_control {
    struct fw *fw;
    const char *device, *program; /* mlx5_0; ibv_rc_pingpong */
    const char *wire;             /* URI, or NULL */
    /* begin(): no other thread is in the function from now on. False: the function is gone. NULL:
     * there is only one thread. */
    bool (*begin)(void *opaque);
    void (*end)(void *opaque);
    void *opaque;
};

/* opaque: struct fw_control. */
extern const struct control_command fw_control_commands[];

/* -- inside ------------------------------------------------------------------------------------ */

/* Enters the function, and leaves it. False: *err. */
bool fw_control_begin(const struct fw_control *c, GError **err);
void fw_control_end(const struct fw_control *c);

/* Handlers (fw/control_faults.c). */
bool fw_control_fault_add(void *opaque, const json_t *arguments, json_t **result, GError **err);
bool fw_control_fault_list(void *opaque, const json_t *arguments, json_t **result, GError **err);
bool fw_control_fault_remove(void *opaque, const json_t *arguments, json_t **result, GError **err);

/* The counters and gauges of the function, and the numbers of QPs by type and state. */
json_t *fw_control_stats(struct fw *fw);
/* Up to count QPs with numbers from `from` on, in the order of their numbers. */
json_t *fw_control_qps(struct fw *fw, uint32_t from, unsigned count);

#endif
