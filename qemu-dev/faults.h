/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The device's properties "fault" and "faults": rules of what goes wrong on its port and in the
 * device (wire/fault/fault.h), on the machine's virtual clock.
 *
 * A timer of QEMU wakes the port when a delayed frame is due. While the machine is stopped, it
 * stands still.
 */
#ifndef HCASIM_QEMU_DEV_FAULTS_H
#define HCASIM_QEMU_DEV_FAULTS_H

#include "qemu-dev/compat.h"
#include "qemu/timer.h"
#include "wire/fault/fault.h"

struct wire_port;

struct hcasim_faults {
    struct fault_set *set;  /* NULL: the device has no faults */
    struct wire_port *port; /* the filter; NULL: the device has no port */
    QEMUTimer *timer;
};

/* What the faults of a device begin with. */
struct hcasim_faults_begin {
    const char *rules;
    uint32_t seed;
    const uint8_t *mac;
    void (*log)(void *opaque, const char *line);
    void *log_opaque;
    struct wire_port *capture; /* NULL, or a filter in the port */
};

/* Makes the set, and wraps *port if it is not NULL. False with *errp; then nothing has changed. */
bool hcasim_faults_init(struct hcasim_faults *f, const struct hcasim_faults_begin *begin,
                        struct wire_port **port, Error **errp);
/* To be called after the firmware and the port have ended. */
void hcasim_faults_end(struct hcasim_faults *f);

/* The rules with their counts, which the caller frees. */
char *hcasim_faults_get(const struct hcasim_faults *f);
/* "remove N", "clear", or rules to add. */
void hcasim_faults_set(const struct hcasim_faults *f, const char *value, Error **errp);

#endif
