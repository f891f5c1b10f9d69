/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lists the settings of a process's devices, and checks their values.
 *
 * One table describes each setting. The verbs library reads its configuration with it, and the
 * program hcasim makes its options, its help, its man pages and its shell completion from it. So a
 * value that hcasim accepts is a value that the library accepts.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_SETTINGS_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_SETTINGS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define HV_MAX_DEVICES 16

/* The groups of key files: settings, the options of hcasim sim, and the foreign device of hcasim
 * conformance --peer. One file can have all of them. */
#define HV_SETTINGS_GROUP   "hcasim"
#define HV_SIMULATION_GROUP "simulation"
#define HV_PEER_GROUP       "peer"

enum hv_setting_kind {
    HV_SETTING_NUMBER,  /* decimal, least to most */
    HV_SETTING_SIZE,    /* bytes, with a suffix K, M or G or without; least to most */
    HV_SETTING_SECONDS, /* decimals are possible; least to most */
    HV_SETTING_PERCENT, /* decimals are possible, with % or without; stored per million */
    HV_SETTING_TIME,    /* with its unit: ns, us, ms or s; stored in nanoseconds */
    HV_SETTING_FLAG,    /* 0 or 1 */
    HV_SETTING_IPV4,
    HV_SETTING_MAC, /* unicast */
    HV_SETTING_CHOICE,
    HV_SETTING_WIRE,     /* the name or the URI of a wire */
    HV_SETTING_WIRES,    /* names or URIs of wires, with commas between them */
    HV_SETTING_NEW_FILE, /* a file that is written */
    HV_SETTING_FILE,     /* a file that is read */
    HV_SETTING_FOLDER,
    HV_SETTING_TEXT,     /* anything that is not empty */
    HV_SETTING_FAULTS,   /* rules of wire/fault/fault.h */
    HV_SETTING_KEY_FILE, /* a file with settings; only the environment can name it */
};

struct hv_setting {
    const char *name; /* the key of a key file; the variable is HCASIM_NAME, the option --NAME */
    enum hv_setting_kind kind;
    uint64_t least, most;
    const char *const *(*choices)(void); /* of HV_SETTING_CHOICE */
    const char *metavar;                 /* what help calls the value */
    const char *usual;                   /* what holds without a value, in words */
    const char *help;                    /* a sentence */
};

struct hv_value {
    uint64_t number; /* also bytes, nanoseconds, parts per million, the place among the choices, the
                        IPv4 address */
    uint8_t mac[6];
    char **wires; /* the URIs, NULL at the end; the caller frees them with g_strfreev() */
};

/* The table's rows in order; NULL behind the last one. */
const struct hv_setting *hv_setting_at(unsigned i);
const struct hv_setting *hv_setting_find(const char *name);
/* Whether each host of a cluster has its own value, so that no option or file can set it for all.
 */
bool hv_setting_is_of_one_host(const char *name);

/* How many devices there are with these values of wire and devices, which have been checked; NULL
 * or empty: not set. Each wire has a device. 0 with *err: there are more wires than devices. */
unsigned hv_settings_count_devices(const char *wire, const char *devices, GError **err);

/* Whether so many devices have addresses with these values of ip and mac, which have been checked;
 * NULL or empty: not set. False with *err. */
bool hv_settings_check_addresses(const char *ip, const char *mac, unsigned devices, GError **err);

/* The value that the text is. False with *err, whose message is one line: what the setting must be,
 * and what it is. */
bool hv_setting_parse(const struct hv_setting *setting, const char *text, struct hv_value *value,
                      GError **err);

/* The same without the value. */
bool hv_setting_check(const struct hv_setting *setting, const char *text, GError **err);

/* Which values the setting can have, in words; the caller frees them. */
char *hv_setting_values(const struct hv_setting *setting);

/* Whether a key file has no other group than these. False with *err, which names the group `own` of
 * the command that reads the file. */
bool hv_settings_check_groups(GKeyFile *file, const char *own, GError **err);

/* Reads a key file and checks all that is in it: each group, key and value. NULL with *err, whose
 * message begins with the path. */
GKeyFile *hv_settings_load(const char *path, GError **err);

#endif
