/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * guest-lib's driver on a function in the fake host: the tests of fw/ issue its commands and step
 * the function.
 *
 * A test can change an entry or a mailbox between fwd_prepare() and fwd_ring().
 */
#ifndef HCASIM_TESTS_TEST_FW_DRIVER_H
#define HCASIM_TESTS_TEST_FW_DRIVER_H

#include "fw/fw.h"
#include "guest-lib/drv/drv.h"
#include "model/core/syndrome.h"
#include "prm/prm.h"
#include "prm/reflect.h"
#include "tests/unit/fake_host.h"
#include "wire/port.h"

struct fwd {
    struct fake_host host;
    struct fw *fw;
    struct drv *drv;            /* has the command queue; the test does the bring-up */
    bool rung;                  /* a register was written, and the function has not run since */
    unsigned entries;           /* calls into the function since the start */
    unsigned in_boxes;          /* input mailboxes of the prepared command */
    uint64_t far_pages;         /* next page that fwd_give_pages() gives */
    struct wire_port *cable[2]; /* the function's end and the far end; NULL: there is no cable */
};

void fwd_init(struct fwd *d);
/* The same for a device of that generation (fw/profile.h). */
void fwd_init_as(struct fwd *d, const char *profile);
/* The same after the driver's bring-up: EQ, UAR, PD, port. */
void fwd_open(struct fwd *d);
void fwd_clear(struct fwd *d);

/* Return the entry and a mailbox as the CPU sees them. */
struct prm_cmd_queue_entry *fwd_entry(struct fwd *d);
struct prm_cmd_if_box *fwd_in_box(struct fwd *d, unsigned i);
struct prm_cmd_if_box *fwd_out_box(struct fwd *d, unsigned i);

/* Writes entry 0 and its chains, without signatures. */
void fwd_prepare(struct fwd *d, const void *in, size_t in_len, size_t out_len);
/* Rings the doorbell of entry 0 and runs the function. Returns the delivery status, or -1 if the
 * device still owns the entry. */
int fwd_ring(struct fwd *d);
/* Copies the output from the entry and the mailboxes. */
void fwd_output(struct fwd *d, void *out, size_t out_len);

/* Executes a whole command; its delivery must succeed. Returns the syndrome in its output; the
 * output's status must match the syndrome. */
enum syn fwd_cmd(struct fwd *d, const void *in, size_t in_len, void *out, size_t out_len);

/* Sets a field by its name in prm; dots separate the names of nested structures:
 * "nic_vport_context.mtu". */
void fwd_set(void *image, const struct prm_struct *s, const char *path, uint64_t value);

/* Frequent commands. */
enum syn fwd_simple(struct fwd *d, uint16_t opcode, uint16_t op_mod);
/* Gives pages that the host does not have; the device never accesses them. */
enum syn fwd_give_pages(struct fwd *d, uint32_t n);
uint32_t fwd_query_pages(struct fwd *d, uint16_t op_mod);
uint32_t fwd_take_pages(struct fwd *d, uint32_t n);

/* Executes the driver's steps from power-on to INIT_HCA; fails the test if a step fails. */
void fwd_bring_up(struct fwd *d);

/* Plugs in a cable whose other end is idle; fwd_clear() unplugs it. */
void fwd_plug(struct fwd *d);
/* Closes the far end of the cable. */
void fwd_leave_alone(struct fwd *d);

/* ACCESS_REG: reads or writes the register; reg holds its value afterwards, unless the command is
 * refused. */
enum syn fwd_reg(struct fwd *d, uint16_t id, bool write, void *reg, size_t size);
/* The same, in a test whose driver is d; reg is a variable that is as long as the register. */
#define READ(id, reg)  fwd_reg(&d, PRM_REG_ID_##id, false, reg, sizeof(reg))
#define WRITE(id, reg) fwd_reg(&d, PRM_REG_ID_##id, true, reg, sizeof(reg))

/* Executes QUERY_HCA_CAP of a section into cap (4096 bytes). */
enum syn fwd_query_cap(struct fwd *d, uint16_t section, bool max, void *cap);

#endif
