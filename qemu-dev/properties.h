/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Describes the properties of -device hcasim for people: the rows of properties.def as a table.
 * This file needs no header of QEMU, because the man page hcasim-device(7) is also made where there
 * is none.
 */
#ifndef HCASIM_QEMU_DEV_PROPERTIES_H
#define HCASIM_QEMU_DEV_PROPERTIES_H

#include <glib.h>
#include <stdint.h>

enum device_property_kind {
    DEVICE_PROPERTY_MAC,
    DEVICE_PROPERTY_NETDEV,
    DEVICE_PROPERTY_TEXT,
    DEVICE_PROPERTY_PROFILE, /* one of fw_profile_names() */
    DEVICE_PROPERTY_SIZE,    /* bytes, with a suffix K, M or G or without */
    DEVICE_PROPERTY_NUMBER,
    DEVICE_PROPERTY_SWITCH,      /* on or off */
    DEVICE_PROPERTY_AT_RUN_TIME, /* only qom-set sets it */
};

struct device_property {
    const char *name;
    enum device_property_kind kind;
    uint64_t usual, least, most; /* of sizes, numbers and switches; most may be 0: no limit */
    const char *value;           /* what help calls the value */
    const char *usual_text;      /* the default in words; NULL: it is usual */
    const char *help;            /* sentences */
};

/* The rows in order; NULL behind the last one. */
const struct device_property *device_property_at(unsigned i);

/* Range and default, such as "8M or more; default: 1G". The caller frees the text. */
char *device_property_range(const struct device_property *property);

#endif
