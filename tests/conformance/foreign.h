/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A foreign device: on a wire that the player joins, in real time, with a helper on its host
 * (helper.c) that does what the script's steps ask of a host. Its key file is in
 * docs/conformance.md.
 *
 * The helper is asked by TCP, a line for each step: the step's own text. It answers with a line:
 * "ok", and the names and numbers of what there is now that packets may name; "fail", "cannot" and
 * why.
 */
#ifndef HCASIM_TESTS_CONFORMANCE_FOREIGN_H
#define HCASIM_TESTS_CONFORMANCE_FOREIGN_H

#include "tests/conformance/play.h"
#include "tests/conformance/stand.h"

struct foreign_config {
    char *wire;                /* foreign_wire_open() */
    char *helper;              /* HOST:PORT */
    struct stand_party player; /* addresses of the player on the wire */
    uint64_t settle_ns, patience_ns;
};

struct foreign {
    struct real_clock real;
    struct stand stand;
    int fd;          /* to the helper */
    GString *answer; /* what it has said that is no whole line yet */
    const struct foreign_config *config;
};

/* NULL with *err: the file has not what it takes. */
struct foreign_config *foreign_config_read(const char *path, GError **err);
void foreign_config_free(struct foreign_config *config);

/* Whether the helper takes calls; NULL, or why not, for the caller to free. */
char *foreign_try(const struct foreign_config *config);

/* Joins the wire and calls the helper; NULL, or why it cannot be, for the caller to free. */
char *foreign_init(struct foreign *foreign, const struct foreign_config *config);
void foreign_clear(struct foreign *foreign);

/* What the case begins with is told; the device has said where it is. */
void foreign_begin(struct foreign *foreign, struct play *p);
/* A step of the host. */
void foreign_step(struct foreign *foreign, struct play *p, const char *line);
/* Nothing may be left there. */
void foreign_end(struct foreign *foreign, struct play *p);

#endif
