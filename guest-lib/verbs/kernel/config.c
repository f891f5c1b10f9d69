/* SPDX-License-Identifier: BSD-2-Clause */
/* The process's configuration; settings.c has the table of settings. */
#include "guest-lib/verbs/kernel/config.h"
#include <string.h>
#include <unistd.h>
#include "fw/fw.h"
#include "guest-lib/verbs/kernel/addresses.h"
#include "guest-lib/verbs/kernel/facts.h"
#include "guest-lib/verbs/kernel/settings.h"
#include "wire/open.h"

#define DEFAULT_WIRE "shm:verbs"
#define DEFAULT_MTU  4200 /* RoCE packets of 4096 bytes and their headers */

static __thread GKeyFile *key_file; /* set while the thread reads the configuration */
/* The host numbers. Each device has a number, which the process holds on each of its wires. */
static struct wire_number *hosts[HV_MAX_DEVICES * HV_MAX_DEVICES];
static unsigned num_hosts;

/* Tries to take a number that was free on all wires a moment ago. */
#define NUMBER_TRIES 100

/* The rules that hold for all ports. */
struct config_plan {
    unsigned devices;
    uint64_t host; /* the first device's number; 0: any */
    char **wires;  /* URIs: of the first device, of the second one, ... */
    unsigned num_wires;
};

static bool config_complain(GError **err, const char *fmt, const char *name, const char *value)
{
    g_set_error(err, WIRE_ERROR, WIRE_ERROR_URI, fmt, name, value);
    return false;
}

/* The variable HCASIM_NAME; else the key in the file; else NULL. An empty value counts as absent.
 * The caller frees the result. */
static char *config_get(const char *key)
{
    g_autofree char *upper = g_ascii_strup(key, -1);
    g_autofree char *name = g_strconcat("HCASIM_", upper, NULL);
    g_autofree char *in_file =
        key_file ? g_key_file_get_string(key_file, HV_SETTINGS_GROUP, key, NULL) : NULL;
    const char *value = g_getenv(name);

    if (!value || !*value) {
        value = in_file;
    }
    return value && *value ? g_strdup(value) : NULL;
}

/* Reads the value of a setting. False with *err. *given: the setting has a value. */
static bool config_get_value(const char *key, struct hv_value *value, bool *given, GError **err)
{
    g_autofree char *text = config_get(key);

    *value = (struct hv_value){0};
    *given = text != NULL;
    return !text || hv_setting_parse(hv_setting_find(key), text, value, err);
}

/* Reads a number, or a setting that is counted as one. If the setting has no value, *number is
 * unchanged. */
static bool config_get_number(const char *key, uint64_t *number, GError **err)
{
    struct hv_value value;
    bool given;

    if (!config_get_value(key, &value, &given, err)) {
        return false;
    }
    *number = given ? value.number : *number;
    return true;
}

static bool config_load_file(GError **err)
{
    const char *path = g_getenv("HCASIM_CONFIG");

    if (!path || !*path) {
        return true;
    }
    g_clear_pointer(&key_file, g_key_file_free);
    key_file = hv_settings_load(path, err);
    return key_file != NULL;
}

static void config_make_gids(struct hv_port_config *port)
{
    uint8_t *gid = port->gid[0].raw;

    memset(port->gid, 0, sizeof(port->gid));
    gid[0] = 0xfe;
    gid[1] = 0x80;
    memcpy(gid + 8, port->mac, 3);
    gid[8] ^= 2;
    gid[11] = 0xff;
    gid[12] = 0xfe;
    memcpy(gid + 13, port->mac + 3, 3);
    gid = port->gid[1].raw;
    gid[10] = gid[11] = 0xff;
    for (int i = 0; i < 4; i++) {
        gid[12 + i] = (uint8_t)(port->ipv4 >> (24 - 8 * i));
    }
}

/* The lowest number above `beyond` that is free on all wires at the moment. 0: none. */
static unsigned config_look_number(const struct config_plan *plan, unsigned beyond)
{
    unsigned number = beyond + 1, agreed = 0;

    for (unsigned i = 0; agreed < plan->num_wires; i = (i + 1) % plan->num_wires) {
        unsigned next = wire_number_look(plan->wires[i], number - 1);

        if (!next) {
            return 0;
        }
        agreed = next == number ? agreed + 1 : 1;
        number = next;
    }
    return number;
}

/* Takes a number on all wires, and keeps it. wanted is 0: any, if there is one wire. 0 with *err:
 * it is taken on one of them, or cannot be taken. */
static unsigned config_take_number(const struct config_plan *plan, unsigned wanted, GError **err)
{
    unsigned before = num_hosts;

    for (unsigned i = 0; i < plan->num_wires; i++) {
        struct wire_number *number = wire_number_take(plan->wires[i], wanted, err);

        if (!number) {
            while (num_hosts > before) {
                wire_number_release(hosts[--num_hosts]);
            }
            return 0;
        }
        hosts[num_hosts++] = number;
        wanted = wire_number_get(number);
    }
    return wanted;
}

/* Takes and keeps a device's host number: the one that is asked for, else the first one that is
 * free on all wires of the process. So no host on one of its wires has, by default, the address
 * that this process has on another wire. 0 with *err. */
static unsigned config_number_port(const struct config_plan *plan, unsigned index, GError **err)
{
    if (plan->host || plan->num_wires == 1) {
        return config_take_number(plan, plan->host ? (unsigned)plan->host + index : 0, err);
    }
    /* Another process may take the number first. Any other error would only come again. */
    for (unsigned i = 0; i < NUMBER_TRIES; i++) {
        g_autoptr(GError) why = NULL;
        unsigned number = config_look_number(plan, 0);

        if (!number) {
            break;
        }
        if (config_take_number(plan, number, &why)) {
            return number;
        }
        if (!g_error_matches(why, WIRE_ERROR, WIRE_ERROR_TAKEN)) {
            g_propagate_error(err, g_steal_pointer(&why));
            return 0;
        }
    }
    g_set_error(err, WIRE_ERROR, WIRE_ERROR_TAKEN, "no host number is free on all wires");
    return 0;
}

/* When a process ends, the kernel releases its numbers, too, but would leave the wire's file in
 * place if this is the last user. */
__attribute__((destructor)) static void config_release_hosts(void)
{
    while (num_hosts) {
        wire_number_release(hosts[--num_hosts]);
    }
}

static void config_free_port(struct hv_port_config *port)
{
    g_free(port->wire);
    g_free(port->profile);
    g_free(port->control);
    g_free(port->capture);
    g_free(port->capture_run);
    g_free(port->trace_file);
    g_free(port->remove_when);
    g_free(port->faults);
    memset(port, 0, sizeof(*port));
}

/* Reads the addresses that are set. Other addresses follow from the host's number. */
static bool config_read_addresses(struct hv_port_config *port, unsigned index, GError **err)
{
    struct hv_value ip, mac;
    bool has_ip, has_mac;

    if (!config_get_value("ip", &ip, &has_ip, err) ||
        !config_get_value("mac", &mac, &has_mac, err)) {
        return false;
    }
    memcpy(port->mac, mac.mac, sizeof(port->mac));
    port->ipv4 = (uint32_t)ip.number;
    /* config_count_devices() has seen that there are such addresses. */
    if (has_ip) {
        hv_ipv4_advance(&port->ipv4, index);
    }
    if (has_mac) {
        hv_mac_advance(port->mac, index);
    }
    return true;
}

/* The settings that are short forms of rules. Each row gives its number and a rule; the rules come
 * in this order, before those of the setting "fault". */
static const struct {
    const char *setting, *rule;
} config_short_rules[] = {
    {"loss", "loss"},
    {"duplication", "duplicate"},
    {"reorder", "reorder"},
    {"corruption", "corrupt"},
};

/* Reads the faults of a port, as rules. */
static bool config_read_faults(struct hv_port_config *port, GError **err)
{
    g_autoptr(GString) rules = g_string_new(NULL);
    g_autofree char *more = config_get("fault");
    uint64_t delay = 0, jitter = 0, per_million;
    struct hv_value checked;
    bool given;

    port->fault_seed = 1;
    for (unsigned i = 0; i < G_N_ELEMENTS(config_short_rules); i++) {
        per_million = 0;
        if (!config_get_number(config_short_rules[i].setting, &per_million, err)) {
            return false;
        }
        if (per_million) {
            char percent[G_ASCII_DTOSTR_BUF_SIZE];

            g_ascii_formatd(percent, sizeof(percent), "%.7g", (double)per_million / 1e4);
            g_string_append_printf(rules, "%s %s%%; ", config_short_rules[i].rule, percent);
        }
    }
    if (!config_get_number("delay", &delay, err) || !config_get_number("jitter", &jitter, err) ||
        !config_get_number("fault_seed", &port->fault_seed, err) ||
        !config_get_value("fault", &checked, &given, err)) {
        return false;
    }
    if (delay || jitter) {
        g_string_append_printf(
            rules, "delay %" G_GUINT64_FORMAT "ns jitter %" G_GUINT64_FORMAT "ns; ", delay, jitter);
    }
    g_string_append(rules, more ? more : "");
    port->faults = rules->len ? g_strdup(rules->str) : NULL;
    return true;
}

/* Reads the settings of the first device only: capture and removal. */
static bool config_read_first(struct hv_port_config *port, GError **err)
{
    struct hv_value after, comments;
    uint64_t files = CAPTURE_RING_FILES;
    bool has_comments;

    port->capture = config_get("capture");
    port->capture_run = g_strdup(g_getenv("HCASIM_RUN"));
    port->remove_when = config_get("remove_when");
    if (!config_get_number("capture_size", &port->capture_ring.size, err) ||
        !config_get_number("capture_files", &files, err) ||
        !config_get_value("capture_comments", &comments, &has_comments, err) ||
        !config_get_value("remove_after", &after, &port->removes, err)) {
        return false;
    }
    port->remove_after_ns = after.number;
    port->capture_ring.files = (unsigned)files;
    port->capture_comments = !has_comments || comments.number == 0; /* on, off */
    return true;
}

/* Reads the configuration of a port, except its host number and the addresses that follow from
 * that. */
static bool config_read_port(const struct config_plan *plan, struct hv_port_config *port,
                             unsigned index, GError **err)
{
    uint64_t responders = FW_RESPONDERS_DEFAULT, mtu = DEFAULT_MTU, memlock = 0, explain = 0;
    struct hv_value log, generation;
    bool logs, has_profile;

    port->memory = FW_MEMORY_DEFAULT;
    port->control = config_get("control");
    port->trace_file = config_get("trace_file");
    port->wire = g_strdup(plan->wires[MIN(index, plan->num_wires - 1)]);
    if (!config_get_number("mtu", &mtu, err) || !config_get_value("log", &log, &logs, err) ||
        !config_get_number("memory", &port->memory, err) ||
        !config_get_number("responders", &responders, err) ||
        !config_get_number("memlock", &memlock, err) ||
        !config_get_number("explain", &explain, err) ||
        !config_get_value("profile", &generation, &has_profile, err) ||
        !config_read_faults(port, err) || (index == 0 && !config_read_first(port, err)) ||
        !config_read_addresses(port, index, err)) {
        return false;
    }
    port->log_level = logs ? (int)log.number : -1;
    if (explain) {
        port->log_level = MAX(port->log_level, HCA_LOG_GUEST_ERROR);
    }
    port->explain = explain;
    port->responders = (unsigned)responders;
    port->memlock = memlock;
    port->mtu = (unsigned)mtu;
    port->profile = has_profile ? g_strdup(fw_profile_names()[generation.number]) : NULL;
    return true;
}

static bool config_has_mac(const struct hv_port_config *port)
{
    static const uint8_t none[sizeof(port->mac)];

    return memcmp(port->mac, none, sizeof(none)) != 0;
}

static void config_make_addresses(struct hv_port_config *port, unsigned number)
{
    port->ipv4 = port->ipv4 ? port->ipv4 : hv_ipv4_of_host(number);
    if (!config_has_mac(port)) {
        hv_mac_of_ipv4(port->ipv4, port->mac);
    }
    /* Each device has decisions of its own, the same ones in each run. */
    memcpy(&port->fault_stream, port->mac, sizeof(port->mac));
    config_make_gids(port);
}

/* The number is taken last, so that a refused configuration takes none. */
static bool config_load_port(const struct config_plan *plan, struct hv_port_config *port,
                             unsigned index, GError **err)
{
    unsigned number =
        config_read_port(plan, port, index, err) ? config_number_port(plan, index, err) : 0;

    if (number) {
        config_make_addresses(port, number);
    }
    return number > 0;
}

/* Reads a port with the number that it would get; *beyond is the number of the port before it. */
static bool config_look_port(const struct config_plan *plan, struct hv_port_config *port,
                             unsigned index, unsigned *beyond, GError **err)
{
    if (!config_read_port(plan, port, index, err)) {
        return false;
    }
    *beyond = plan->host ? (unsigned)plan->host + index : config_look_number(plan, *beyond);
    if (!*beyond) {
        return config_complain(err, "%s is %s, on which no number is free", "wire", port->wire);
    }
    config_make_addresses(port, *beyond);
    return true;
}

/* Frees the first *count ports and releases their host numbers. */
static void config_unload(struct hv_port_config *ports, unsigned *count)
{
    while (*count) {
        config_free_port(&ports[--*count]);
    }
    config_release_hosts();
}

static bool config_read_wires(struct config_plan *plan, GError **err)
{
    struct hv_value value;
    bool given;

    if (!config_get_value("wire", &value, &given, err)) {
        return false;
    }
    plan->wires = given ? value.wires : g_strsplit(DEFAULT_WIRE, ",", -1);
    plan->num_wires = g_strv_length(plan->wires);
    return true;
}

static bool config_count_devices(struct config_plan *plan, GError **err)
{
    g_autofree char *wire = config_get("wire"), *devices = config_get("devices");
    g_autofree char *ip = config_get("ip"), *mac = config_get("mac");

    plan->devices = hv_settings_count_devices(wire, devices, err);
    return plan->devices && hv_settings_check_addresses(ip, mac, plan->devices, err);
}

static bool config_begin(struct config_plan *plan, GError **err)
{
    uint64_t devices = 1;

    *plan = (struct config_plan){0};
    return config_load_file(err) && config_get_number("devices", &devices, err) &&
           config_get_number("host", &plan->host, err) && config_read_wires(plan, err) &&
           config_count_devices(plan, err);
}

static void config_end(struct config_plan *plan)
{
    g_clear_pointer(&plan->wires, g_strfreev);
    g_clear_pointer(&key_file, g_key_file_free);
}

static bool config_load_ports(struct hv_port_config *ports, unsigned *count, GError **err)
{
    struct config_plan plan;
    bool ok = config_begin(&plan, err);

    while (ok && *count < plan.devices) {
        struct hv_port_config *port = &ports[*count];

        ok = config_load_port(&plan, port, (*count)++, err);
    }
    config_end(&plan);
    if (!ok) {
        config_unload(ports, count);
    }
    return ok;
}

static struct hv_port_config loaded[HV_MAX_DEVICES];
static unsigned num_loaded;

unsigned hv_config_load(struct hv_port_config **ports, GError **err)
{
    static pid_t pid;

    if (num_loaded && pid != getpid()) {
        config_unload(loaded, &num_loaded); /* a child of fork() is a different host */
    }
    if (!num_loaded) {
        if (!config_load_ports(loaded, &num_loaded, err)) {
            return 0;
        }
        pid = getpid();
        hv_facts_publish(loaded, num_loaded, pid);
    }
    *ports = loaded;
    return num_loaded;
}

void hv_config_renew(void)
{
    bool all = true;

    for (unsigned i = 0; i < num_hosts; i++) {
        all &= wire_number_is_held(hosts[i]);
    }
    if (!all) {
        config_unload(loaded, &num_loaded);
    }
}

unsigned hv_config_look(struct hv_port_config *ports, GError **err)
{
    struct config_plan plan;
    unsigned count = 0, beyond = 0;
    bool ok = config_begin(&plan, err);

    memset(ports, 0, HV_MAX_DEVICES * sizeof(*ports));
    while (ok && count < plan.devices) {
        struct hv_port_config *port = &ports[count];

        ok = config_look_port(&plan, port, count++, &beyond, err);
    }
    config_end(&plan);
    if (!ok) {
        hv_config_look_end(ports, count);
        return 0;
    }
    return count;
}

void hv_config_look_end(struct hv_port_config *ports, unsigned count)
{
    while (count) {
        config_free_port(&ports[--count]);
    }
}

void hv_config_simulate(struct hv_port_config *config, unsigned host, const uint8_t *mac,
                        struct inproc_world *world, struct wire_port *port)
{
    *config = (struct hv_port_config){
        .ipv4 = hv_ipv4_of_host(host),
        .mtu = DEFAULT_MTU,
        .memory = FW_MEMORY_DEFAULT,
        .responders = FW_RESPONDERS_DEFAULT,
        .log_level = -1,
        .world = world,
        .port = port,
    };
    hv_mac_of_ipv4(config->ipv4, config->mac);
    if (mac) {
        memcpy(config->mac, mac, sizeof(config->mac));
    }
    config_make_gids(config);
}

__be64 hv_config_guid(const struct hv_port_config *config)
{
    const uint8_t *mac = config->mac;
    const uint8_t bytes[8] = {mac[0], mac[1], mac[2], 3, 0, mac[3], mac[4], mac[5]};
    __be64 guid;

    memcpy(&guid, bytes, sizeof(guid));
    return guid;
}
