/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The commands that change the faults of a function, and of the port before it, while it works
 * (wire/fault/fault.h).
 */
#include "fw/control.h"
#include "fw/fw_internal.h"
#include "model/core/inject.h"
#include "wire/fault/fault.h"

/* Enters the function. Returns the set of its rules, or NULL with *err, and then it has not entered
 * it. */
static struct fault_set *faults_begin(const struct fw_control *c, GError **err)
{
    if (!fw_control_begin(c, err)) {
        return NULL;
    }
    if (!c->fw->hca.inject) {
        fw_control_end(c);
        g_set_error(err, CONTROL_ERROR, CONTROL_ERROR_GENERIC,
                    "%s was started without faults: start it with the fault 'none' at least",
                    c->device);
        return NULL;
    }
    return c->fw->hca.inject->set;
}

bool fw_control_fault_add(void *opaque, const json_t *arguments, json_t **result, GError **err)
{
    const char *rules = json_string_value(json_object_get(arguments, "rules"));
    struct fault_set *set = faults_begin(opaque, err);
    g_autoptr(GError) why = NULL;
    bool ok;

    if (!set) {
        return false;
    }
    ok = fault_set_add(set, rules, &why);
    fw_control_end(opaque);
    if (!ok) {
        g_set_error_literal(err, CONTROL_ERROR, CONTROL_ERROR_ARGUMENTS, why->message);
    }
    return ok;
}

bool fw_control_fault_list(void *opaque, const json_t *arguments, json_t **result, GError **err)
{
    const struct fault_set *set = faults_begin(opaque, err);

    if (!set) {
        return false;
    }
    *result = json_array();
    for (unsigned i = 0; i < fault_set_count(set); i++) {
        struct fault_info info;

        fault_set_get(set, i, &info);
        json_array_append_new(
            *result, json_pack("{si ss sI sI}", "number", (int)info.number, "rule", info.text,
                               "matched", (json_int_t)info.matched, "done", (json_int_t)info.done));
    }
    fw_control_end(opaque);
    return true;
}

bool fw_control_fault_remove(void *opaque, const json_t *arguments, json_t **result, GError **err)
{
    const json_t *number = json_object_get(arguments, "number");
    struct fault_set *set = faults_begin(opaque, err);
    bool ok = true;

    if (!set) {
        return false;
    }
    if (number) {
        ok = fault_set_remove(set, (unsigned)json_integer_value(number));
    } else {
        fault_set_clear(set);
    }
    fw_control_end(opaque);
    if (!ok) {
        g_set_error(err, CONTROL_ERROR, CONTROL_ERROR_NOT_FOUND,
                    "there is no fault %" JSON_INTEGER_FORMAT ", see fault-list",
                    json_integer_value(number));
    }
    return ok;
}
