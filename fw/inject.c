/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Faults of the firmware that its owner wants (wire/fault/fault.h): commands that fail or are slow,
 * a health syndrome, page requests that come late. model/core/inject.c has those of the hardware.
 *
 * Each wait is a timer of the function. A reset forgets all of them: the command under way gets no
 * answer then, and the driver gives its pages anew.
 */
#include "fw/cmd_table.h"
#include "fw/fw_internal.h"
#include "model/core/inject.h"
#include "model/core/trace_event.h"

#include <string.h>

/* -- names ------------------------------------------------------------------------------------- */

static bool inject_name_command(const char *name, uint16_t *opcode)
{
    const struct fw_cmd_row *row;

    for (size_t i = 0; (row = fw_cmd_at(i)) != NULL; i++) {
        if (!strcmp(prm_cmd_op_name(row->command->opcode), name)) {
            *opcode = row->command->opcode;
            return true;
        }
    }
    return false;
}

static bool inject_name_status(const char *name, uint8_t *status)
{
    for (unsigned i = 1; i <= UINT8_MAX; i++) {
        const char *known = prm_enum_name("cmd_status", i);

        if (known && !strcmp(known, name)) {
            *status = (uint8_t)i;
            return true;
        }
    }
    return false;
}

const struct fault_names fw_fault_names = {inject_name_command, inject_name_status};

/* -- health ------------------------------------------------------------------------------------ */

static void inject_arm_health(struct fw *fw)
{
    uint64_t due = fault_set_health_due_ns(fw->hca.inject->set);

    if (due == UINT64_MAX) {
        hca_timer_stop(&fw->hca, &fw->inject.health);
    } else {
        hca_timer_set(&fw->hca, &fw->inject.health, due);
    }
}

static void inject_fire_health(struct hca *hca, struct hca_timer *timer)
{
    struct fw *fw = fw_of_hca(hca);
    struct fault_event event = {.subject = FAULT_ABOUT_HEALTH};
    struct fault_outcome outcome;

    if (!hca->inject) {
        return;
    }
    if (fault_set_ask(hca->inject->set, &event, &outcome)) {
        fw_set_health(fw, outcome.health, outcome.is_fatal);
    }
    inject_arm_health(fw);
}

/* The rules have changed. */
static void inject_follow_rules(void *opaque)
{
    struct fw *fw = opaque;

    inject_arm_health(fw);
    hca_wake(&fw->hca);
}

/* -- the trace --------------------------------------------------------------------------------- */

void fw_trace_fault(struct fw *fw, const struct fault_deed *deed)
{
    if (fw->hca.tracing & HCA_TRACES_EVENTS) {
        trace_event_fault(&fw->hca, deed);
    }
}

static void inject_trace(void *opaque, const struct fault_deed *deed)
{
    fw_trace_fault(opaque, deed);
}

/* -- commands ---------------------------------------------------------------------------------- */

static void inject_fire_command(struct hca *hca, struct hca_timer *timer)
{
    cmdq_doorbell(fw_of_hca(hca), 0);
}

bool inject_command_waits(const struct fw *fw)
{
    return fw->inject.command.pos != 0;
}

enum syn inject_command(struct fw *fw, const struct fw_cmd *cmd)
{
    struct fault_event event = {.subject = FAULT_ABOUT_COMMANDS, .opcode = cmd->opcode};
    struct fault_outcome o;

    if (!fault_set_ask(fw->hca.inject->set, &event, &o)) {
        return SYN_OK;
    }
    if (o.fails) {
        fw->inject.status = o.has_status ? o.status : (uint8_t)syn_status(SYN_INJECTED);
        fw->inject.syndrome = o.has_syndrome ? o.syndrome : syn_code(SYN_INJECTED);
        return SYN_INJECTED;
    }
    hca_timer_set(&fw->hca, &fw->inject.command, hca_now(&fw->hca) + o.late_ns);
    return SYN_AGAIN;
}

void inject_fill(const struct fw *fw, struct prm_cmd_out *out)
{
    PRM_SET(cmd_out, out, status, fw->inject.status);
    PRM_SET(cmd_out, out, syndrome, fw->inject.syndrome);
}

/* -- pages ------------------------------------------------------------------------------------- */

static void inject_fire_pages(struct hca *hca, struct hca_timer *timer)
{
    struct fw *fw = fw_of_hca(hca);

    if (fw->state == CMD_READY) {
        fw->inject.pages_go = true;
        pages_balance(fw);
        fw->inject.pages_go = false;
    }
}

bool inject_pages_wait(struct fw *fw)
{
    struct fault_event event = {.subject = FAULT_ABOUT_PAGES};
    struct fault_outcome o;

    if (fw->inject.pages_go) {
        return false;
    }
    if (!fw->inject.pages.pos) {
        if (!fault_set_ask(fw->hca.inject->set, &event, &o)) {
            return false;
        }
        hca_timer_set(&fw->hca, &fw->inject.pages, hca_now(&fw->hca) + o.late_ns);
    }
    return true;
}

/* -- begin and end ----------------------------------------------------------------------------- */

void inject_restart(struct fw *fw)
{
    if (fw->hca.inject) {
        inject_arm_health(fw);
    }
}

void fw_set_faults(struct fw *fw, struct fault_set *faults)
{
    if (fw->hca.inject) {
        fault_set_unlisten(fw->hca.inject->set, fw);
        fault_set_watch(fw->hca.inject->set, NULL, NULL);
        hca_timer_stop(&fw->hca, &fw->inject.health);
    }
    inject_set(&fw->hca, faults);
    if (faults) {
        fw->inject.health.fire = inject_fire_health;
        fw->inject.command.fire = inject_fire_command;
        fw->inject.pages.fire = inject_fire_pages;
        fault_set_listen(faults, inject_follow_rules, fw);
        if (fw->hca.tracing & HCA_TRACES_EVENTS) {
            fault_set_watch(faults, inject_trace, fw);
        }
        inject_follow_rules(fw);
    }
}
