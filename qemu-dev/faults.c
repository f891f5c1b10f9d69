/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The rules of a device in QEMU; see qemu-dev/faults.h. */
#include "qemu-dev/faults.h"
#include "qapi/error.h"
#include "fw/fw.h"
#include "wire/fault/port.h"

#define REMOVE "remove "

static uint64_t faults_clock_ns(void *opaque)
{
    return qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
}

static void faults_fire(void *opaque)
{
    struct hcasim_faults *f = opaque;

    wire_fd_event(f->port);
}

static void faults_wake_at(void *opaque, uint64_t time_ns)
{
    struct hcasim_faults *f = opaque;

    if (time_ns == UINT64_MAX) {
        timer_del(f->timer);
    } else {
        timer_mod(f->timer, MIN(time_ns, INT64_MAX));
    }
}

static bool faults_fail(struct hcasim_faults *f, GError *err, Error **errp)
{
    error_setg(errp, "hcasim: %s", err->message);
    g_error_free(err);
    hcasim_faults_end(f);
    return false;
}

bool hcasim_faults_init(struct hcasim_faults *f, const struct hcasim_faults_begin *begin,
                        struct wire_port **port, Error **errp)
{
    struct fault_options options = {.seed = begin->seed,
                                    .clock_ns = faults_clock_ns,
                                    .log = begin->log,
                                    .log_opaque = begin->log_opaque,
                                    .names = &fw_fault_names};
    const struct wire_fault_options filter = {
        .capture = begin->capture, .wake_at = faults_wake_at, .wake_opaque = f};
    GError *err = NULL;

    memcpy(&options.stream, begin->mac, 6);
    f->set = fault_set_new(&options);
    f->timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, faults_fire, f);
    if (!fault_set_add(f->set, begin->rules, &err)) {
        return faults_fail(f, err, errp);
    }
    if (*port) {
        f->port = wire_fault_new(*port, f->set, &filter, &err);
        if (!f->port) {
            return faults_fail(f, err, errp);
        }
        *port = f->port;
    }
    return true;
}

void hcasim_faults_end(struct hcasim_faults *f)
{
    f->port = NULL;
    fault_set_free(f->set);
    f->set = NULL;
    timer_free(f->timer);
    f->timer = NULL;
}

char *hcasim_faults_get(const struct hcasim_faults *f)
{
    return f->set ? fault_set_list(f->set) : g_strdup("");
}

static void faults_remove(const struct hcasim_faults *f, const char *text, Error **errp)
{
    char *end;
    uint64_t number = g_ascii_strtoull(text, &end, 10);

    if (end == text || *end || number > UINT_MAX || !fault_set_remove(f->set, (unsigned)number)) {
        error_setg(errp, "there is no fault rule '%s'; the property faults lists the numbers",
                   text);
    }
}

void hcasim_faults_set(const struct hcasim_faults *f, const char *value, Error **errp)
{
    GError *err = NULL;

    if (!f->set) {
        error_setg(errp, "the device was made without fault rules: give it the property fault, "
                         "which may be none");
    } else if (g_str_has_prefix(value, REMOVE)) {
        faults_remove(f, value + strlen(REMOVE), errp);
    } else if (!strcmp(value, "clear")) {
        fault_set_clear(f->set);
    } else if (!fault_set_add(f->set, value, &err)) {
        error_setg(errp, "%s", err->message);
        g_error_free(err);
    }
}
