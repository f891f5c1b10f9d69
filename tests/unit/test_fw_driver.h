/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * guest-lib's driver on a function in the fake host: the tests of fw/ issue its commands and step
 * it.
 *
 * A test can bend an entry or a mailbox between fwd_prepare() and fwd_ring().
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
    struct drv *drv;            /* has the command queue; bring-up is the test's */
    bool rung;                  /* a register was written and the function has not run since */
    unsigned entries;           /* calls into the function, ever */
    unsigned in_boxes;          /* input mailboxes of what was prepared */
    uint64_t far_pages;         /* next page that fwd_give_pages() gives */
    struct wire_port *cable[2]; /* its end and the far one; NULL: there is none */
};

void fwd_init(struct fwd *d);
/* The same for a device of that generation (fw/profile.h). */
void fwd_init_as(struct fwd *d, const char *profile);
/* The same with the driver's bring-up done: EQ, UAR, PD, port. */
void fwd_open(struct fwd *d);
void fwd_clear(struct fwd *d);

/* The entry and a mailbox as the CPU sees them. */
struct prm_cmd_queue_entry *fwd_entry(struct fwd *d);
struct prm_cmd_if_box *fwd_in_box(struct fwd *d, unsigned i);
struct prm_cmd_if_box *fwd_out_box(struct fwd *d, unsigned i);

/* Writes entry 0 and its chains, without signatures. */
void fwd_prepare(struct fwd *d, const void *in, size_t in_len, size_t out_len);
/* Rings the doorbell of entry 0 and runs the function; returns the delivery status, or -1 if
 * the entry is still the device's. */
int fwd_ring(struct fwd *d);
/* Copies the output out of entry and mailboxes. */
void fwd_output(struct fwd *d, void *out, size_t out_len);

/* A whole command; the delivery must succeed. Returns why it failed: the syndrome in its output,
 * whose status the output must have. */
enum syn fwd_cmd(struct fwd *d, const void *in, size_t in_len, void *out, size_t out_len);

/* Sets a field that is named as prm does, parts of nested structures by dots:
 * "nic_vport_context.mtu". */
void fwd_set(void *image, const struct prm_struct *s, const char *path, uint64_t value);

/* Commands by the handful. */
enum syn fwd_simple(struct fwd *d, uint16_t opcode, uint16_t op_mod);
/* Gives pages that the host does not have: the device never touches them. */
enum syn fwd_give_pages(struct fwd *d, uint32_t n);
uint32_t fwd_query_pages(struct fwd *d, uint16_t op_mod);
uint32_t fwd_take_pages(struct fwd *d, uint32_t n);

/* From power-on to INIT_HCA, as the driver does; fails the test if a step fails. */
void fwd_bring_up(struct fwd *d);

/* Plugs a cable in whose other end is held by nobody in particular; fwd_clear() pulls it. */
void fwd_plug(struct fwd *d);
/* Who is at the cable's far end goes away. */
void fwd_leave_alone(struct fwd *d);

/* ACCESS_REG: the register, and what it is after that. */
enum syn fwd_reg(struct fwd *d, uint16_t id, bool write, void *reg, size_t size);
/* The same, in a test whose driver is d; reg is a variable that is as long as the register. */
#define READ(id, reg)  fwd_reg(&d, PRM_REG_ID_##id, false, reg, sizeof(reg))
#define WRITE(id, reg) fwd_reg(&d, PRM_REG_ID_##id, true, reg, sizeof(reg))

/* QUERY_HCA_CAP of a section into cap (4096 bytes). */
enum syn fwd_query_cap(struct fwd *d, uint16_t section, bool max, void *cap);

#endif
