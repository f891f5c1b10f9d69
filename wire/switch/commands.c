/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements commands.h. Settings are texts, as on the command line. */
#include "wire/switch/commands.h"
#include "wire/fault/port.h"

#include <string.h>

static void commands_put(json_t *to, const char *key, uint64_t value)
{
    json_object_set_new(to, key, json_integer((json_int_t)value));
}

/* A text of a user or of the kernel may be no UTF-8. */
static void commands_put_text(json_t *to, const char *key, const char *text)
{
    g_autofree char *valid = g_utf8_make_valid(text, -1);

    json_object_set_new(to, key, json_string(valid));
}

static json_t *commands_stats(const struct switch_stats *stats)
{
    const struct switch_stats_row *row;
    json_t *object = json_object();

    for (unsigned i = 0; (row = switch_stats_row(i)); i++) {
        commands_put(object, row->name, switch_stats_value(stats, i));
    }
    return object;
}

/* -- the whole --------------------------------------------------------------------------------- */

static bool commands_query_switch(void *opaque, const json_t *arguments, json_t **result,
                                  GError **err)
{
    const struct wire_switch *sw = switch_loop_switch(opaque);
    struct wire_switch_view view = wire_switch_whole(sw);
    struct switch_stats total = wire_switch_total(sw);

    *result = json_object();
    commands_put(*result, "ports", view.ports);
    commands_put(*result, "ports-most", view.ports_most);
    commands_put(*result, "stations", view.addresses);
    commands_put(*result, "stations-most", view.addresses_most);
    commands_put(*result, "moves", view.moves);
    commands_put(*result, "not-learned", view.not_learned);
    commands_put(*result, "memberships", view.memberships);
    commands_put(*result, "memberships-most", view.memberships_most);
    commands_put(*result, "bad-reports", view.bad_reports);
    commands_put(*result, "frames", view.frames);
    commands_put(*result, "frames-most", view.frames_most);
    json_object_set_new(*result, "querier", json_boolean(view.querier));
    json_object_set_new(*result, "adds-up", json_boolean(wire_switch_adds_up(sw)));
    json_object_set_new(*result, "total", commands_stats(&total));
    return true;
}

static bool commands_set_switch(void *opaque, const json_t *arguments, json_t **result,
                                GError **err)
{
    wire_switch_set_querier(switch_loop_switch(opaque),
                            json_boolean_value(json_object_get(arguments, "querier")));
    return true;
}

/* -- ports ------------------------------------------------------------------------------------- */

static json_t *commands_port(const struct wire_switch *sw, unsigned number)
{
    const char *const *keys = wire_switch_keys();
    struct wire_switch_port_view view;
    json_t *object = json_object(), *settings = json_object();

    wire_switch_view(sw, number, &view);
    commands_put(object, "port", number);
    commands_put_text(object, "about", view.about);
    json_object_set_new(object, "link", json_boolean(view.link_up));
    json_object_set_new(object, "blocked", json_boolean(view.blocked));
    commands_put(object, "paused", view.paused);
    commands_put(object, "pauses", view.pauses);
    commands_put(object, "stations", view.addresses);
    for (unsigned i = 0; keys[i]; i++) {
        g_autofree char *value = wire_switch_get(sw, number, keys[i]);

        commands_put_text(settings, keys[i], value);
    }
    json_object_set_new(object, "settings", settings);
    json_object_set_new(object, "statistics", commands_stats(&view.stats));
    return object;
}

static bool commands_query_ports(void *opaque, const json_t *arguments, json_t **result,
                                 GError **err)
{
    struct wire_switch *sw = switch_loop_switch(opaque);
    const json_t *only = json_object_get(arguments, "port");
    unsigned wanted = only ? (unsigned)json_integer_value(only) : 0;

    if (wanted && !wire_switch_wire(sw, wanted)) {
        g_set_error(err, CONTROL_ERROR, CONTROL_ERROR_NOT_FOUND, "there is no port %u", wanted);
        return false;
    }
    *result = json_array();
    for (unsigned i = 0; (i = wire_switch_next(sw, i));) {
        if (!wanted || i == wanted) {
            json_array_append_new(*result, commands_port(sw, i));
        }
    }
    return true;
}

static bool commands_port_set(void *opaque, const json_t *arguments, json_t **result, GError **err)
{
    return wire_switch_set(switch_loop_switch(opaque),
                           (unsigned)json_integer_value(json_object_get(arguments, "port")),
                           json_string_value(json_object_get(arguments, "key")),
                           json_string_value(json_object_get(arguments, "value")), err);
}

static bool commands_port_add(void *opaque, const json_t *arguments, json_t **result, GError **err)
{
    const char *uri = json_string_value(json_object_get(arguments, "uri"));
    g_autofree char *what = NULL;
    g_auto(GStrv) settings = NULL;
    unsigned number;

    if (!switch_loop_split(uri, &what, &settings, err)) {
        return false;
    }
    number = switch_loop_add(opaque, what, (const char *const *)settings, err);
    if (!number) {
        return false;
    }
    *result = json_object();
    commands_put(*result, "port", number);
    return true;
}

static bool commands_port_remove(void *opaque, const json_t *arguments, json_t **result,
                                 GError **err)
{
    return switch_loop_remove(
        opaque, (unsigned)json_integer_value(json_object_get(arguments, "port")), err);
}

/* -- faults of a port -------------------------------------------------------------------------- */

/* The rules of the port that the arguments name, or NULL with *err. */
static struct fault_set *commands_faults(void *opaque, const json_t *arguments, GError **err)
{
    unsigned number = (unsigned)json_integer_value(json_object_get(arguments, "port"));
    struct wire_port *wire = wire_switch_wire(switch_loop_switch(opaque), number);
    struct fault_set *set = wire ? wire_fault_rules(wire) : NULL;

    if (!wire) {
        g_set_error(err, CONTROL_ERROR, CONTROL_ERROR_NOT_FOUND, "there is no port %u", number);
    } else if (!set) {
        g_set_error(err, CONTROL_ERROR, CONTROL_ERROR_GENERIC,
                    "port %u was made without faults: make it with the setting fault=none at least",
                    number);
    }
    return set;
}

static bool commands_fault_add(void *opaque, const json_t *arguments, json_t **result, GError **err)
{
    struct fault_set *set = commands_faults(opaque, arguments, err);
    g_autoptr(GError) why = NULL;

    if (!set) {
        return false;
    }
    if (!fault_set_add(set, json_string_value(json_object_get(arguments, "rules")), &why)) {
        g_set_error_literal(err, CONTROL_ERROR, CONTROL_ERROR_ARGUMENTS, why->message);
        return false;
    }
    return true;
}

static bool commands_fault_list(void *opaque, const json_t *arguments, json_t **result,
                                GError **err)
{
    const struct fault_set *set = commands_faults(opaque, arguments, err);

    if (!set) {
        return false;
    }
    *result = json_array();
    for (unsigned i = 0; i < fault_set_count(set); i++) {
        struct fault_info info;
        json_t *rule = json_object();

        fault_set_get(set, i, &info);
        commands_put(rule, "number", info.number);
        commands_put_text(rule, "rule", info.text);
        commands_put(rule, "matched", info.matched);
        commands_put(rule, "done", info.done);
        json_array_append_new(*result, rule);
    }
    return true;
}

static bool commands_fault_remove(void *opaque, const json_t *arguments, json_t **result,
                                  GError **err)
{
    struct fault_set *set = commands_faults(opaque, arguments, err);
    const json_t *number = json_object_get(arguments, "number");

    if (!set) {
        return false;
    }
    if (!number) {
        fault_set_clear(set);
    } else if (!fault_set_remove(set, (unsigned)json_integer_value(number))) {
        g_set_error(err, CONTROL_ERROR, CONTROL_ERROR_NOT_FOUND,
                    "there is no fault %u, see fault-list", (unsigned)json_integer_value(number));
        return false;
    }
    return true;
}

/* -- stations and groups ----------------------------------------------------------------------- */

static void commands_add_station(void *opaque, unsigned vid, const uint8_t mac[6], unsigned number,
                                 uint64_t age_ns)
{
    json_t *object = json_object();
    char text[18];

    g_snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3],
               mac[4], mac[5]);
    json_object_set_new(object, "mac", json_string(text));
    commands_put(object, "vlan", vid);
    commands_put(object, "port", number);
    json_object_set_new(object, "age", json_real((double)age_ns / 1e9));
    json_array_append_new(opaque, object);
}

static bool commands_query_stations(void *opaque, const json_t *arguments, json_t **result,
                                    GError **err)
{
    *result = json_array();
    wire_switch_stations(switch_loop_switch(opaque), commands_add_station, *result);
    return true;
}

static bool commands_query_groups(void *opaque, const json_t *arguments, json_t **result,
                                  GError **err)
{
    *result = json_array();
    wire_switch_members(switch_loop_switch(opaque), commands_add_station, *result);
    return true;
}

/* -- the table --------------------------------------------------------------------------------- */

static const struct control_arg commands_one_port[] = {
    {"port", CONTROL_INT, true, 1, WIRE_SWITCH_PORTS_MAX, "the number of the port"}, {0}};
static const struct control_arg commands_any_port[] = {
    {"port", CONTROL_INT, false, 1, WIRE_SWITCH_PORTS_MAX, "only this port"}, {0}};
static const struct control_arg commands_setting[] = {
    {"port", CONTROL_INT, true, 0, WIRE_SWITCH_PORTS_MAX,
     "the number of the port; 0: of ports to come"},
    {"key", CONTROL_TEXT, true, 0, 0,
     "rate, latency, queue, ecn, pfc, pause, link, island, vlan, priority, stations or groups"},
    {"value", CONTROL_TEXT, true, 0, 0, "the value, as on the command line"},
    {0}};
static const struct control_arg commands_rules[] = {
    {"port", CONTROL_INT, true, 1, WIRE_SWITCH_PORTS_MAX, "the number of the port"},
    {"rules", CONTROL_TEXT, true, 0, 0, "rules with ; between them, as those of the setting fault"},
    {0}};
static const struct control_arg commands_rule[] = {
    {"port", CONTROL_INT, true, 1, WIRE_SWITCH_PORTS_MAX, "the number of the port"},
    {"number", CONTROL_INT, false, 1, UINT32_MAX, "the number in fault-list (default: all)"},
    {0}};
static const struct control_arg commands_uri[] = {
    {"uri", CONTROL_TEXT, true, 0, 0, "the URI of a wire, then settings: URI,KEY=VALUE"}, {0}};
static const struct control_arg commands_querier[] = {
    {"querier", CONTROL_BOOL, true, 0, 0, "whether the switch asks for the members of groups"},
    {0}};

const struct control_command switch_commands[] = {
    {"query-switch", "says how full the tables are, and the sums of all statistics", NULL,
     commands_query_switch},
    {"query-ports", "lists the ports with their settings and statistics", commands_any_port,
     commands_query_ports},
    {"query-fdb", "lists the stations, and at which port each is", NULL, commands_query_stations},
    {"query-groups", "lists the ports with members of multicast groups", NULL,
     commands_query_groups},
    {"port-set", "changes a setting of a port", commands_setting, commands_port_set},
    {"port-add", "adds a port", commands_uri, commands_port_add},
    {"port-remove", "closes a port; an end that connected sees its link go down", commands_one_port,
     commands_port_remove},
    {"fault-add", "adds faults of a port's frames and of its link", commands_rules,
     commands_fault_add},
    {"fault-list", "lists the faults of a port, with how often each matched and was caused",
     commands_one_port, commands_fault_list},
    {"fault-remove", "removes a fault of a port, or all", commands_rule, commands_fault_remove},
    {"switch-set", "changes what is not of one port", commands_querier, commands_set_switch},
    {0}};
