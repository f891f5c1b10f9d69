/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A foreign device on a wire that the player joins, in real time. On the device's host a helper
 * (helper.c) performs the steps of the script that belong to the host. docs/howto/conformance.md
 * describes its key file.
 *
 * The player sends the helper a line by TCP for each step: the step's own text. The helper answers
 * with a line: "ok" and the names and numbers of the objects that packets may name, or "fail",
 * "cannot" or "mistake" and the reason.
 */
#ifndef HCASIM_TESTS_CONFORMANCE_FOREIGN_H
#define HCASIM_TESTS_CONFORMANCE_FOREIGN_H

#include "tests/conformance/play.h"
#include "tests/conformance/stand.h"

struct foreign_config {
    char *path;                /* of the key file */
    char *wire;                /* foreign_wire_open() */
    char *helper;              /* HOST:PORT */
    struct stand_party player; /* addresses of the player on the wire */
    uint64_t settle_ns, patience_ns;
};

struct foreign {
    struct real_clock real;
    struct stand stand;
    int fd;          /* the socket to the helper */
    GString *answer; /* the part of its answer that is not a whole line yet */
    const struct foreign_config *config;
};

/* Returns NULL with *err if the file lacks something, or has something wrong or unknown. */
struct foreign_config *foreign_config_read(const char *path, GError **err);
void foreign_config_free(struct foreign_config *config);

/* Joins the wire and calls the helper. Returns NULL, or the reason of a failure, which the caller
 * frees. */
char *foreign_init(struct foreign *foreign, const struct foreign_config *config);
void foreign_clear(struct foreign *foreign);

/* Sends the helper what the case begins with, and learns the device's address. */
void foreign_begin(struct foreign *foreign, struct play *p);
/* Performs a step of the host. */
void foreign_step(struct foreign *foreign, struct play *p, const char *line);
/* Ends the case there: no unexpected completion or event may be left. */
void foreign_end(struct foreign *foreign, struct play *p);

#endif
