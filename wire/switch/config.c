/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements config.h: a row for each setting. */
#include "wire/switch/config.h"
#include "wire/open.h"

#include <string.h>

#define CONFIG_QUEUE     (1u << 20)
#define CONFIG_ALL       0xff
#define CONFIG_STATIONS  1024u
#define CONFIG_GROUPS    256u
#define CONFIG_MILLION   1000000u
#define CONFIG_LAST_VID  4094u
#define CONFIG_BYTES_MAX (1ull << 32)
#define CONFIG_RATE_MAX  10000000000000ull
#define CONFIG_TIME_MAX  10000000000ull

/* -- numbers ----------------------------------------------------------------------------------- */

struct config_unit {
    const char *unit;
    uint64_t times;
};

static const struct config_unit config_bytes[] = {
    {"", 1}, {"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}, {NULL, 0}};
static const struct config_unit config_rates[] = {
    {"", 1}, {"K", 1000}, {"M", 1000000}, {"G", 1000000000}, {NULL, 0}};
static const struct config_unit config_times[] = {
    {"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}, {NULL, 0}};

/* Reads a decimal number with a unit, at most `most`. */
static bool config_read(const char *text, const struct config_unit *units, uint64_t most,
                        uint64_t *value)
{
    size_t digits = strspn(text, G_CSET_DIGITS);
    uint64_t number;

    if (!digits || digits > 15) {
        return false;
    }
    number = g_ascii_strtoull(text, NULL, 10);
    for (const struct config_unit *u = units; u->unit; u++) {
        if (!g_ascii_strcasecmp(text + digits, u->unit) && number <= most / u->times) {
            *value = number * u->times;
            return true;
        }
    }
    return false;
}

/* Writes a number with the largest unit that divides it. */
static char *config_write(uint64_t value, const struct config_unit *units)
{
    const struct config_unit *best = units;

    for (const struct config_unit *u = units; value && u->unit; u++) {
        if (value % u->times == 0) {
            best = u;
        }
    }
    return g_strdup_printf("%" G_GUINT64_FORMAT "%s", value / best->times, best->unit);
}

static bool config_read_number(const char *text, uint64_t most, uint64_t *value)
{
    static const struct config_unit none[] = {{"", 1}, {NULL, 0}};

    return config_read(text, none, most, value);
}

/* -- settings ---------------------------------------------------------------------------------- */

static bool config_set_rate(struct switch_port_config *c, const char *text)
{
    return config_read(text, config_rates, CONFIG_RATE_MAX, &c->rate) &&
           (!c->rate || c->rate >= 1000);
}

static char *config_get_rate(const struct switch_port_config *c)
{
    return config_write(c->rate, config_rates);
}

static bool config_set_latency(struct switch_port_config *c, const char *text)
{
    return !strcmp(text, "0") ? (c->latency_ns = 0, true)
                              : config_read(text, config_times, CONFIG_TIME_MAX, &c->latency_ns);
}

static char *config_get_latency(const struct switch_port_config *c)
{
    return c->latency_ns ? config_write(c->latency_ns, config_times) : g_strdup("0");
}

static bool config_set_queue(struct switch_port_config *c, const char *text)
{
    return config_read(text, config_bytes, CONFIG_BYTES_MAX, &c->queue);
}

static char *config_get_queue(const struct switch_port_config *c)
{
    return config_write(c->queue, config_bytes);
}

static bool config_set_ecn(struct switch_port_config *c, const char *text)
{
    g_auto(GStrv) part = g_strsplit(text, ":", -1);
    uint64_t percent;

    if (!strcmp(text, "off")) {
        c->ecn_min = c->ecn_max = c->ecn_most = 0;
        return true;
    }
    if (g_strv_length(part) != 3 ||
        !config_read(part[0], config_bytes, CONFIG_BYTES_MAX, &c->ecn_min) ||
        !config_read(part[1], config_bytes, CONFIG_BYTES_MAX, &c->ecn_max) ||
        !config_read_number(part[2], 100, &percent)) {
        return false;
    }
    c->ecn_most = (unsigned)percent * (CONFIG_MILLION / 100);
    return c->ecn_max && c->ecn_min <= c->ecn_max;
}

static char *config_get_ecn(const struct switch_port_config *c)
{
    g_autofree char *min = config_write(c->ecn_min, config_bytes);
    g_autofree char *max = config_write(c->ecn_max, config_bytes);

    return c->ecn_max ? g_strdup_printf("%s:%s:%u", min, max, c->ecn_most / (CONFIG_MILLION / 100))
                      : g_strdup("off");
}

/* Reads "A-B" or "A", numbers from least to most. */
static bool config_read_range(const char *text, uint64_t least, uint64_t most, uint64_t *from,
                              uint64_t *to)
{
    g_auto(GStrv) part = g_strsplit(text, "-", -1);
    unsigned parts = g_strv_length(part);

    return (parts == 1 || parts == 2) && config_read_number(part[0], most, from) &&
           config_read_number(part[parts - 1], most, to) && *from >= least && *from <= *to;
}

static bool config_read_priorities(const char *text, uint8_t *priorities)
{
    g_auto(GStrv) list = g_strsplit(text, ",", -1);
    uint64_t from, to;

    *priorities = 0;
    for (char **one = list; *one; one++) {
        if (!config_read_range(*one, 0, SWITCH_PRIORITIES - 1, &from, &to)) {
            return false;
        }
        for (uint64_t p = from; p <= to; p++) {
            *priorities |= (uint8_t)(1u << p);
        }
    }
    return *priorities;
}

static bool config_set_flow(struct switch_port_config *c, const char *text, enum switch_flow flow)
{
    g_auto(GStrv) part = g_strsplit(text, ":", -1);
    unsigned parts = g_strv_length(part);

    if (!strcmp(text, "off")) {
        if (c->flow == flow) {
            c->flow = SWITCH_FLOW_DROPS;
        }
        return true;
    }
    c->flow = flow;
    c->flow_priorities = CONFIG_ALL;
    return (parts == 2 || (parts == 3 && flow == SWITCH_FLOW_PFC &&
                           config_read_priorities(part[2], &c->flow_priorities))) &&
           config_read(part[0], config_bytes, CONFIG_BYTES_MAX, &c->xoff) &&
           config_read(part[1], config_bytes, CONFIG_BYTES_MAX, &c->xon) && c->xoff &&
           c->xon <= c->xoff;
}

static bool config_set_pfc(struct switch_port_config *c, const char *text)
{
    return config_set_flow(c, text, SWITCH_FLOW_PFC);
}

static bool config_set_pause(struct switch_port_config *c, const char *text)
{
    return config_set_flow(c, text, SWITCH_FLOW_PAUSE);
}

static char *config_get_flow(const struct switch_port_config *c, enum switch_flow flow)
{
    g_autofree char *xoff = config_write(c->xoff, config_bytes);
    g_autofree char *xon = config_write(c->xon, config_bytes);
    GString *text;

    if (c->flow != flow) {
        return g_strdup("off");
    }
    text = g_string_new(NULL);
    g_string_printf(text, "%s:%s", xoff, xon);
    if (c->flow_priorities != CONFIG_ALL) {
        for (unsigned p = 0, n = 0; p < SWITCH_PRIORITIES; p++) {
            if (c->flow_priorities >> p & 1) {
                g_string_append_printf(text, "%c%u", n++ ? ',' : ':', p);
            }
        }
    }
    return g_string_free(text, FALSE);
}

static char *config_get_pfc(const struct switch_port_config *c)
{
    return config_get_flow(c, SWITCH_FLOW_PFC);
}

static char *config_get_pause(const struct switch_port_config *c)
{
    return config_get_flow(c, SWITCH_FLOW_PAUSE);
}

static bool config_set_link(struct switch_port_config *c, const char *text)
{
    c->down = !strcmp(text, "down");
    return c->down || !strcmp(text, "up");
}

static char *config_get_link(const struct switch_port_config *c)
{
    return g_strdup(c->down ? "down" : "up");
}

static bool config_set_island(struct switch_port_config *c, const char *text)
{
    uint64_t value;

    if (!config_read_number(text, 1000000, &value)) {
        return false;
    }
    c->island = (unsigned)value;
    return true;
}

static char *config_get_island(const struct switch_port_config *c)
{
    return g_strdup_printf("%u", c->island);
}

static bool config_set_priority(struct switch_port_config *c, const char *text)
{
    uint64_t value;

    if (!config_read_number(text, SWITCH_PRIORITIES - 1, &value)) {
        return false;
    }
    c->priority = (unsigned)value;
    return true;
}

static char *config_get_priority(const struct switch_port_config *c)
{
    return g_strdup_printf("%u", c->priority);
}

static bool config_set_stations(struct switch_port_config *c, const char *text)
{
    uint64_t value;

    if (!config_read_number(text, CONFIG_MILLION, &value)) {
        return false;
    }
    c->stations = (unsigned)value;
    return true;
}

static char *config_get_stations(const struct switch_port_config *c)
{
    return g_strdup_printf("%u", c->stations);
}

static bool config_set_groups(struct switch_port_config *c, const char *text)
{
    uint64_t value;

    if (!config_read_number(text, CONFIG_MILLION, &value)) {
        return false;
    }
    c->groups = (unsigned)value;
    return true;
}

static char *config_get_groups(const struct switch_port_config *c)
{
    return g_strdup_printf("%u", c->groups);
}

/* -- VLANs ------------------------------------------------------------------------------------- */

static void config_tag(struct switch_vlans *v, uint64_t from, uint64_t to)
{
    for (uint64_t vid = from; vid <= to; vid++) {
        v->tagged[vid / 64] |= 1ull << (vid % 64);
    }
}

static void config_all_vlans(struct switch_vlans *v)
{
    *v = (struct switch_vlans){0};
    config_tag(v, 1, CONFIG_LAST_VID);
}

static bool config_set_trunk(struct switch_vlans *v, const char *text)
{
    g_auto(GStrv) part = g_strsplit(text, ":", -1);
    unsigned parts = g_strv_length(part);
    g_auto(GStrv) list = NULL;
    uint64_t from, to;

    if (parts < 1 || parts > 2) {
        return false;
    }
    list = g_strsplit(part[0], ",", -1);
    for (char **one = list; *one; one++) {
        if (!config_read_range(*one, 1, CONFIG_LAST_VID, &from, &to)) {
            return false;
        }
        config_tag(v, from, to);
    }
    if (parts == 2) {
        if (!config_read_range(part[1], 1, CONFIG_LAST_VID, &from, &to) || from != to) {
            return false;
        }
        v->native = (uint16_t)from;
        v->tagged[from / 64] &= ~(1ull << (from % 64));
    }
    return *list != NULL;
}

static bool config_set_vlan(struct switch_port_config *c, const char *text)
{
    struct switch_vlans *v = &c->vlans;
    uint64_t vid;

    if (!strcmp(text, "all")) {
        config_all_vlans(v);
        return true;
    }
    *v = (struct switch_vlans){.native = SWITCH_NO_VID};
    if (g_str_has_prefix(text, "trunk:")) {
        return config_set_trunk(v, text + strlen("trunk:"));
    }
    if (!config_read_number(text, CONFIG_LAST_VID, &vid) || !vid) {
        return false;
    }
    v->native = (uint16_t)vid;
    return true;
}

static char *config_get_vlan(const struct switch_port_config *c)
{
    const struct switch_vlans *v = &c->vlans;
    g_autoptr(GString) list = g_string_new(NULL);

    if (!v->native) {
        return g_strdup("all");
    }
    for (unsigned vid = 1, last; vid <= CONFIG_LAST_VID; vid = last + 1) {
        last = vid;
        if (!switch_vlans_has_tagged(v, vid)) {
            continue;
        }
        while (last < CONFIG_LAST_VID && switch_vlans_has_tagged(v, last + 1)) {
            last++;
        }
        g_string_append_printf(list, "%s%u", list->len ? "," : "trunk:", vid);
        if (last > vid) {
            g_string_append_printf(list, "-%u", last);
        }
    }
    if (v->native != SWITCH_NO_VID) {
        g_string_append_printf(list, "%s%u", list->len ? ":" : "", v->native);
    }
    return g_strdup(list->str);
}

/* -- the table --------------------------------------------------------------------------------- */

static const struct {
    const char *key, *allowed;
    bool (*set)(struct switch_port_config *c, const char *text);
    char *(*get)(const struct switch_port_config *c);
} config_rows[] = {
    {"rate", "bits per second, 0 or from 1000 to 10000G, with K, M or G or without",
     config_set_rate, config_get_rate},
    {"latency", "0 or a time with its unit ns, us, ms or s, up to 10s", config_set_latency,
     config_get_latency},
    {"queue", "bytes, with K, M or G or without, up to 4G", config_set_queue, config_get_queue},
    {"ecn", "off or MIN:MAX:PERCENT, bytes with K, M or G or without, such as 100K:400K:10",
     config_set_ecn, config_get_ecn},
    {"pfc",
     "off, XOFF:XON or XOFF:XON:PRIORITIES, bytes with K, M or G or without, XON not above XOFF, "
     "such as 200K:100K:3",
     config_set_pfc, config_get_pfc},
    {"pause", "off or XOFF:XON, bytes with K, M or G or without, XON not above XOFF",
     config_set_pause, config_get_pause},
    {"link", "up or down", config_set_link, config_get_link},
    {"island", "a number up to 1000000", config_set_island, config_get_island},
    {"vlan",
     "all, a number from 1 to 4094, trunk:LIST or trunk:LIST:NUMBER, such as trunk:10,20-29:1",
     config_set_vlan, config_get_vlan},
    {"priority", "a number from 0 to 7", config_set_priority, config_get_priority},
    {"stations", "a number up to 1000000", config_set_stations, config_get_stations},
    {"groups", "a number up to 1000000", config_set_groups, config_get_groups},
};

void switch_config_init(struct switch_port_config *config)
{
    *config = (struct switch_port_config){
        .queue = CONFIG_QUEUE, .stations = CONFIG_STATIONS, .groups = CONFIG_GROUPS};
    config_all_vlans(&config->vlans);
}

const char *const *switch_config_keys(void)
{
    static const char *keys[G_N_ELEMENTS(config_rows) + 1];

    for (unsigned i = 0; i < G_N_ELEMENTS(config_rows); i++) {
        keys[i] = config_rows[i].key;
    }
    return keys;
}

bool switch_config_set(struct switch_port_config *config, const char *key, const char *value,
                       GError **err)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(config_rows); i++) {
        struct switch_port_config changed = *config;

        if (strcmp(key, config_rows[i].key) != 0) {
            continue;
        }
        if (!config_rows[i].set(&changed, value)) {
            g_set_error(err, WIRE_ERROR, WIRE_ERROR_URI, "%s is %s, but it is '%s'", key,
                        config_rows[i].allowed, value);
            return false;
        }
        *config = changed;
        return true;
    }
    g_set_error(err, WIRE_ERROR, WIRE_ERROR_URI,
                "there is no setting '%s'; settings: rate, latency, queue, ecn, pfc, pause, link, "
                "island, vlan, priority, stations, groups",
                key);
    return false;
}

char *switch_config_get(const struct switch_port_config *config, const char *key)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(config_rows); i++) {
        if (!strcmp(key, config_rows[i].key)) {
            return config_rows[i].get(config);
        }
    }
    return NULL;
}
