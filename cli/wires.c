/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists the wires of this user with their hosts, and removes those on which no host lives. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "cli/command.h"
#include "cli/json.h"
#include "cli/cuda_links.h"
#include "cli/leftovers.h"
#include "guest-lib/verbs/kernel/addresses.h"
#include "wire/look.h"

/* The exit status if a wire that was named is not there, or is in use. */
#define WIRES_OTHERWISE 1

/* -- hosts ------------------------------------------------------------------------------------- */

/* A host as it is listed: its number, its place on the wire, or both. */
struct wires_host {
    const struct wire_tenant *number, *member;
};

/* The tenant that tells the host's process. */
static const struct wire_tenant *wires_any(const struct wires_host *host)
{
    return host->member ? host->member : host->number;
}

static unsigned wires_host_of_member(const struct wire_tenant *member)
{
    uint32_t ipv4;

    return member->num_macs && hv_ipv4_of_mac(member->mac, &ipv4) ? hv_host_of_ipv4(ipv4) : 0;
}

/* Finds the host whose number belongs to this member. A number and a member belong together if the
 * member has the default address of the number, or if the process has one number only. NULL: none
 * can be told. */
static struct wires_host *wires_find_number(GArray *hosts, const struct wire_tenant *member)
{
    struct wires_host *only = NULL;
    unsigned candidates = 0;

    for (unsigned i = 0; i < hosts->len; i++) {
        struct wires_host *host = &g_array_index(hosts, struct wires_host, i);

        if (!host->number || host->number->pid != member->pid) {
            continue;
        }
        if (!host->member && host->number->number == wires_host_of_member(member)) {
            return host;
        }
        candidates++;
        only = host;
    }
    return candidates == 1 && member->pid && !only->member ? only : NULL;
}

static GArray *wires_hosts(const struct wire_view *view)
{
    GArray *hosts = g_array_new(FALSE, FALSE, sizeof(struct wires_host));

    for (unsigned i = 0; i < view->num_tenants; i++) {
        struct wires_host host = {.number = &view->tenants[i]};

        if (host.number->number) {
            g_array_append_val(hosts, host);
        }
    }
    for (unsigned i = 0; i < view->num_tenants; i++) {
        const struct wire_tenant *member = &view->tenants[i];
        struct wires_host *found, host = {.member = member};

        if (member->number) {
            continue;
        }
        found = member->alive ? wires_find_number(hosts, member) : NULL;
        if (found) {
            found->member = member;
        } else {
            g_array_append_val(hosts, host);
        }
    }
    return hosts;
}

/* -- words ------------------------------------------------------------------------------------- */

static const char *const conditions[] = {
    [WIRE_IN_USE] = "in-use",
    [WIRE_LEFT] = "left-behind",
    [WIRE_OTHER_VERSION] = "other-version",
    [WIRE_FOREIGN] = "not-a-wire",
    [WIRE_UNREADABLE] = "unreadable",
};

static char *wires_mac_text(const struct wire_tenant *member)
{
    const uint8_t *mac = member->mac;

    return g_strdup_printf("%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4],
                           mac[5]);
}

/* The IPv4 address that a MAC address stands for by convention. NULL: none. */
static char *wires_ipv4_text(const struct wire_tenant *member)
{
    char text[INET_ADDRSTRLEN];
    struct in_addr in;
    uint32_t ipv4;

    if (!hv_ipv4_of_mac(member->mac, &ipv4)) {
        return NULL;
    }
    in.s_addr = htonl(ipv4);
    return g_strdup(inet_ntop(AF_INET, &in, text, sizeof(text)));
}

static char *wires_address_text(const struct wire_tenant *member)
{
    g_autofree char *ipv4 = NULL, *mac = NULL;

    if (!member || !member->num_macs) {
        return g_strdup("-");
    }
    ipv4 = wires_ipv4_text(member);
    mac = wires_mac_text(member);
    return member->num_macs == 1
               ? g_strdup(ipv4 ? ipv4 : mac)
               : g_strdup_printf("%s+%u", ipv4 ? ipv4 : mac, member->num_macs - 1);
}

static int64_t wires_age(const struct wire_view *view)
{
    return MAX(0, g_get_real_time() / G_USEC_PER_SEC - view->made);
}

static char *wires_age_text(int64_t seconds)
{
    static const struct {
        int64_t seconds;
        const char *unit;
    } units[] = {{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}};
    unsigned i = 0;

    while (i < G_N_ELEMENTS(units) - 1 && seconds < 2 * units[i].seconds) {
        i++;
    }
    return g_strdup_printf("%" G_GINT64_FORMAT "%s", seconds / units[i].seconds, units[i].unit);
}

/* Names of files and programs may have any bytes, also those that command a terminal. */
static char *wires_plain(const char *text)
{
    char *plain = g_strdup(*text ? text : "-");

    for (char *c = plain; *c; c++) {
        *c = g_ascii_isgraph(*c) ? *c : '?';
    }
    return plain;
}

/* -- the table --------------------------------------------------------------------------------- */

static const char *const titles[] = {"WIRE",  "HOST", "PROCESS", "PROGRAM", "ADDRESS",
                                     "STATE", "AGE",  "MEMORY",  "FILE"};
#define COLUMNS G_N_ELEMENTS(titles)

static void wires_free_row(gpointer row)
{
    g_strfreev(row);
}

static void wires_add_row(GPtrArray *rows, const struct wire_view *view,
                          const struct wires_host *host)
{
    const struct wire_tenant *who = host ? wires_any(host) : NULL;
    bool tells_end = host && view->condition == WIRE_IN_USE;
    char **row = g_new0(char *, COLUMNS + 1);
    unsigned i = 0;

    row[i++] = wires_plain(view->name);
    row[i++] = host && host->number ? g_strdup_printf("%u", host->number->number) : g_strdup("-");
    row[i++] = who && who->pid ? g_strdup_printf("%d", (int)who->pid) : g_strdup("-");
    row[i++] = who ? wires_plain(who->program) : g_strdup("-");
    row[i++] = wires_address_text(host ? host->member : NULL);
    row[i++] = g_strdup(!tells_end ? conditions[view->condition] : who->alive ? "alive" : "dead");
    row[i++] = wires_age_text(wires_age(view));
    row[i++] = g_strdup_printf("%.1fM", (double)view->bytes / (1 << 20));
    row[i++] = wires_plain(view->path);
    g_ptr_array_add(rows, row);
}

static void wires_print_row(const char *const *row, const unsigned *width)
{
    for (unsigned i = 0; i < COLUMNS - 1; i++) {
        printf("%-*s  ", (int)width[i], row[i]);
    }
    puts(row[COLUMNS - 1]);
}

static void wires_print_table(const GPtrArray *views)
{
    g_autoptr(GPtrArray) rows = g_ptr_array_new_with_free_func(wires_free_row);
    unsigned width[COLUMNS];

    for (unsigned i = 0; i < views->len; i++) {
        const struct wire_view *view = g_ptr_array_index(views, i);
        g_autoptr(GArray) hosts = wires_hosts(view);

        for (unsigned h = 0; h < hosts->len; h++) {
            wires_add_row(rows, view, &g_array_index(hosts, struct wires_host, h));
        }
        if (!hosts->len) {
            wires_add_row(rows, view, NULL);
        }
    }
    for (unsigned c = 0; c < COLUMNS; c++) {
        width[c] = (unsigned)strlen(titles[c]);
        for (unsigned r = 0; r < rows->len; r++) {
            width[c] = MAX(width[c], (unsigned)strlen(((char **)rows->pdata[r])[c]));
        }
    }
    wires_print_row(titles, width);
    for (unsigned r = 0; r < rows->len; r++) {
        wires_print_row((const char *const *)rows->pdata[r], width);
    }
}

/* -- JSON -------------------------------------------------------------------------------------- */

/* Names of files and programs may have bytes that are no UTF-8. */
static void wires_json_text(GString *json, const char *name, const char *text)
{
    g_autofree char *valid = g_utf8_make_valid(text, -1);

    cli_json_text(json, name, valid);
}

static char *wires_json_host(const struct wires_host *host)
{
    const struct wire_tenant *who = wires_any(host), *member = host->member;
    GString *json = cli_json_new();

    if (host->number) {
        cli_json_number(json, "number", host->number->number);
    }
    if (who->pid) {
        cli_json_number(json, "process", (guint64)who->pid);
        wires_json_text(json, "program", who->program);
    }
    if (member && member->num_macs) {
        g_autofree char *mac = wires_mac_text(member), *ipv4 = wires_ipv4_text(member);

        cli_json_text(json, "mac", mac);
        if (ipv4) {
            cli_json_text(json, "ipv4", ipv4);
        }
        cli_json_number(json, "macs", member->num_macs);
    }
    cli_json_bool(json, "open", member != NULL);
    cli_json_bool(json, "alive", who->alive);
    return cli_json_end(json);
}

static char *wires_json_wire(const struct wire_view *view)
{
    g_autoptr(GPtrArray) objects = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GArray) hosts = wires_hosts(view);
    g_autofree char *list = NULL;
    GString *json = cli_json_new();

    wires_json_text(json, "wire", view->name);
    wires_json_text(json, "file", view->path);
    cli_json_text(json, "state", conditions[view->condition]);
    if (view->condition == WIRE_UNREADABLE) {
        cli_json_text(json, "why", g_strerror(view->why));
    }
    cli_json_number(json, "age", (guint64)wires_age(view));
    cli_json_number(json, "bytes", view->bytes);
    for (unsigned i = 0; i < hosts->len; i++) {
        g_ptr_array_add(objects, wires_json_host(&g_array_index(hosts, struct wires_host, i)));
    }
    list = cli_json_list(objects);
    cli_json_value(json, "hosts", list);
    return cli_json_end(json);
}

static void wires_print_json(const GPtrArray *views)
{
    g_autoptr(GPtrArray) objects = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *list = NULL;

    for (unsigned i = 0; i < views->len; i++) {
        g_ptr_array_add(objects, wires_json_wire(g_ptr_array_index(views, i)));
    }
    list = cli_json_list(objects);
    puts(list);
}

/* -- the command ------------------------------------------------------------------------------- */

/* Appends the URIs of the wires that a user names. False with *err. */
static bool wires_add_uris(GPtrArray *uris, const char *names, GError **err)
{
    struct hv_value value;

    if (!hv_setting_parse(hv_setting_find("wire"), names, &value, err)) {
        return false;
    }
    for (char **uri = value.wires; *uri; uri++) {
        g_ptr_array_add(uris, *uri);
    }
    g_free(value.wires);
    return true;
}

/* Says that there is no such wire, and which wires there are. */
static void wires_say_missing(const GError *err)
{
    g_autoptr(GPtrArray) all = wire_look_all();
    g_autoptr(GString) names = g_string_new(NULL);

    for (unsigned i = 0; i < all->len; i++) {
        const struct wire_view *view = g_ptr_array_index(all, i);
        g_autofree char *plain = wires_plain(view->name);

        g_string_append_printf(names, "%s%s", i ? ", " : "", plain);
    }
    cli_say("%s; wires: %s", err->message, all->len ? names->str : "none");
}

/* Appends the wires that are named. The exit status. */
static int wires_find(const GPtrArray *uris, GPtrArray *views)
{
    int status = 0;

    for (unsigned i = 0; i < uris->len; i++) {
        g_autoptr(GError) err = NULL;

        if (!wire_look(g_ptr_array_index(uris, i), views, &err)) {
            wires_say_missing(err);
            status = WIRES_OTHERWISE;
        }
    }
    return status;
}

/* Says why wires cannot be read. */
static void wires_say_unreadable(const GPtrArray *views)
{
    for (unsigned i = 0; i < views->len; i++) {
        const struct wire_view *view = g_ptr_array_index(views, i);

        if (view->condition == WIRE_UNREADABLE) {
            cli_say("%s: is unreadable: %s", view->path, g_strerror(view->why));
        }
    }
}

/* Removes a wire. The exit status. */
static int wires_clean_one(const char *uri, GPtrArray *removed)
{
    g_autoptr(GPtrArray) still = wire_views_new();
    const struct wire_view *view;

    wire_clean(uri, removed, NULL);
    if (!wire_look(uri, still, NULL)) {
        return 0;
    }
    wires_say_unreadable(still);
    view = g_ptr_array_index(still, 0);
    cli_say("%s: is %s, and stays", view->path, conditions[view->condition]);
    return WIRES_OTHERWISE;
}

/* Removes the wires that are named, or all that dead hosts left. The exit status. */
static int wires_clean(const GPtrArray *uris)
{
    g_autoptr(GPtrArray) removed = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) named = wire_views_new();
    int status = wires_find(uris, named);

    for (unsigned i = 0; i < uris->len; i++) {
        status |= wires_clean_one(g_ptr_array_index(uris, i), removed);
    }
    if (!uris->len) {
        leftovers_remove(removed);
        cuda_links_sweep(removed);
    }
    for (unsigned i = 0; i < removed->len; i++) {
        g_autofree char *plain = wires_plain(removed->pdata[i]);

        printf("removed %s\n", plain);
    }
    if (!removed->len && !status) {
        puts("nothing to remove");
    }
    return status;
}

int cli_wires(const struct cli_line *line)
{
    bool cleans = cli_line_get(line, "clean"), json = cli_line_get(line, "json");
    g_autoptr(GPtrArray) uris = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) views = NULL;
    int status;

    if (cleans && json) {
        return cli_refuse("--clean and --json exclude each other");
    }
    for (char **name = line->rest; *name; name++) {
        g_autoptr(GError) err = NULL;

        if (!wires_add_uris(uris, *name, &err)) {
            return cli_refuse("%s", err->message);
        }
    }
    if (cleans) {
        return cli_flush(wires_clean(uris));
    }
    views = uris->len ? wire_views_new() : wire_look_all();
    status = wires_find(uris, views);
    if (json) {
        wires_print_json(views);
    } else if (views->len) {
        wires_print_table(views);
    }
    wires_say_unreadable(views);
    return cli_flush(status);
}
