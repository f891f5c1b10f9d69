/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells `hcasim run --require` that a process has opened a device. */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_OPENED_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_OPENED_H

#include <glib.h>
#include <stdbool.h>

#define HV_OPENED_VARIABLE "HCASIM_OPENED"

/* The place where a process reports that it has opened a device. Its address is in
 * HCASIM_OPENED. */
struct hv_opened {
    int file;   /* a memory file, which all processes of the run inherit */
    int socket; /* a datagram socket with an abstract address; -1: there is none */
};

/* Makes the place. Returns its address, which the caller frees; NULL with errno. */
char *hv_opened_begin(struct hv_opened *opened);

/* Whether any process has reported. */
bool hv_opened_is_told(const struct hv_opened *opened);

/* Reports to the place with that address. Does not block. False with errno: the place cannot be
 * reached. */
bool hv_opened_tell(const char *address);

#endif
