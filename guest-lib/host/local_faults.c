/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The faults of an HCA of this process: one set of rules for its port and its device
 * (wire/fault/fault.h), which end with the cable.
 *
 * In a world, a member of it wakes the port when a delayed frame is due. Otherwise the port's own
 * descriptor does.
 */
#include "guest-lib/host/local_internal.h"

#include "wire/fault/port.h"
#include "wire/open.h"

#include <string.h>

static uint64_t local_faults_clock_ns(void *opaque)
{
    return local_now_ns(opaque);
}

static void local_faults_log(void *opaque, const char *line)
{
    local_log(opaque, HCA_LOG_INFO, line);
}

/* -- in a world -------------------------------------------------------------------------------- */

static struct local_hca *local_faults_of_member(const struct inproc_member *member)
{
    return (struct local_hca *)((uint8_t *)member - offsetof(struct local_hca, faults.member));
}

static bool local_faults_run(struct inproc_member *member, uint64_t now_ns)
{
    struct local_hca *hca = local_faults_of_member(member);

    if (hca->faults.due_ns > now_ns) {
        return false;
    }
    hca->faults.due_ns = UINT64_MAX;
    pthread_mutex_lock(&hca->lock);
    if (hca->faults.port) {
        wire_fd_event(hca->faults.port);
    }
    pthread_mutex_unlock(&hca->lock);
    return true;
}

static uint64_t local_faults_deadline_ns(const struct inproc_member *member)
{
    return local_faults_of_member(member)->faults.due_ns;
}

static void local_faults_wake_at(void *opaque, uint64_t time_ns)
{
    ((struct local_hca *)opaque)->faults.due_ns = time_ns;
}

/* -- begin and end ----------------------------------------------------------------------------- */

bool local_plug_in_faults(struct local_hca *hca, const struct local_config *config,
                          struct wire_port *capture, GError **err)
{
    const struct fault_options options = {.seed = config->fault_seed,
                                          .stream = config->fault_stream,
                                          .clock_ns = local_faults_clock_ns,
                                          .clock_opaque = hca,
                                          .log = local_logs(hca, HCA_LOG_INFO) ? local_faults_log
                                                                               : NULL,
                                          .log_opaque = hca,
                                          .names = &fw_fault_names};
    const struct wire_fault_options port = {.capture = capture,
                                            .wake_at = hca->world ? local_faults_wake_at : NULL,
                                            .wake_opaque = hca};

    if (!config->faults) {
        return true;
    }
    hca->faults.set = fault_set_new(&options);
    hca->faults.due_ns = UINT64_MAX;
    if (fault_set_add(hca->faults.set, config->faults, err)) {
        hca->faults.port = wire_fault_new(hca->port, hca->faults.set, &port, err);
    }
    if (!hca->faults.port) {
        g_clear_pointer(&hca->faults.set, fault_set_free);
        return false;
    }
    hca->port = hca->faults.port;
    if (hca->world) {
        hca->faults.member = (struct inproc_member){local_faults_run, local_faults_deadline_ns};
        inproc_join(hca->world, &hca->faults.member);
    }
    fw_set_faults(hca->fw, hca->faults.set);
    return true;
}

/* "faults: of 1291 frames, 73 were lost, 4 duplicated"; counts of 0 are left out. */
static char *local_describe_faults(const struct wire_fault_stats *s)
{
    const struct {
        uint64_t count;
        const char *what;
    } counts[] = {
        {s->lost, "lost"},
        {s->duplicated, "duplicated"},
        {s->reordered, "reordered"},
        {s->corrupted, "corrupted"},
        {s->marked, "marked"},
        {s->delayed, "delayed"},
        {s->unsent, "too late to be sent"},
    };
    GString *line = g_string_new(NULL);
    const char *before = "were ";

    g_string_append_printf(line, "faults: of %" G_GUINT64_FORMAT " frames, ", s->frames);
    for (unsigned i = 0; i < G_N_ELEMENTS(counts); i++) {
        if (counts[i].count) {
            g_string_append_printf(line, "%" G_GUINT64_FORMAT " %s%s, ", counts[i].count, before,
                                   counts[i].what);
            before = "";
        }
    }
    if (*before) {
        g_string_append(line, "none had a fault, ");
    }
    g_string_truncate(line, line->len - strlen(", "));
    return g_string_free(line, FALSE);
}

void local_settle_faults(struct local_hca *hca)
{
    struct wire_fault_stats stats;
    g_autofree char *line = NULL, *list = NULL;
    g_auto(GStrv) rules = NULL;

    if (!hca->faults.port || hca->faults.is_settled) {
        return;
    }
    hca->faults.is_settled = true;
    wire_fault_settle(hca->faults.port);
    wire_fault_get_stats(hca->faults.port, &stats);
    line = local_describe_faults(&stats);
    local_log(hca, HCA_LOG_GUEST_ERROR, line);
    list = fault_set_list(hca->faults.set);
    rules = g_strsplit(list, "\n", -1);
    for (char **rule = rules; *rule && **rule; rule++) {
        g_autofree char *said = g_strdup_printf("fault %s", *rule);

        local_log(hca, HCA_LOG_GUEST_ERROR, said);
    }
}

void local_end_faults(struct local_hca *hca)
{
    if (!hca->faults.set) {
        return;
    }
    fw_set_faults(hca->fw, NULL);
    if (hca->world) {
        inproc_leave(hca->world, &hca->faults.member);
    }
    hca->faults.port = NULL;
    g_clear_pointer(&hca->faults.set, fault_set_free);
}

/* -- while programs run ------------------------------------------------------------------------ */

bool local_add_faults(struct local_hca *hca, const char *rules, GError **err)
{
    bool ok = false;

    pthread_mutex_lock(&hca->lock);
    if (hca->faults.set) {
        ok = fault_set_add(hca->faults.set, rules, err);
        local_leave_rest_to_helper(hca);
    } else {
        g_set_error_literal(err, WIRE_ERROR, WIRE_ERROR_IO,
                            "the host was started without faults: give it some, or the word none");
    }
    pthread_mutex_unlock(&hca->lock);
    return ok;
}

char *local_list_faults(struct local_hca *hca)
{
    char *list;

    pthread_mutex_lock(&hca->lock);
    list = hca->faults.set ? fault_set_list(hca->faults.set) : NULL;
    pthread_mutex_unlock(&hca->lock);
    return list;
}

bool local_remove_fault(struct local_hca *hca, unsigned number)
{
    bool ok;

    pthread_mutex_lock(&hca->lock);
    ok = hca->faults.set && fault_set_remove(hca->faults.set, number);
    pthread_mutex_unlock(&hca->lock);
    return ok;
}
