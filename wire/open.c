/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of URI schemes of segments, and the calls that look a URI up in it. Sockets
 * (socket/socket.h) have a table of their own: they have no file, no numbers and no known hosts.
 */
#include "wire/open.h"
#include "wire/look.h"
#include "wire/number.h"
#include "wire/shm/file.h"
#include "wire/shm/look.h"
#include "wire/shm/number.h"
#include "wire/shm/shm.h"
#include "wire/socket/socket.h"

#include <string.h>
#include <unistd.h>

#define SHM_HELP                                                                                   \
    "shm:NAME   a segment of this user in /dev/shm (letters, digits, '.', '_', '-')\n"             \
    "shm:/PATH  a segment whose file is PATH"

G_DEFINE_QUARK(hcasim - wire - error - quark, wire_error)

static bool wire_open_is_name(const char *s)
{
    size_t len = strlen(s);

    return len >= 1 && len <= WIRE_NAME_MAX && s[0] != '.' &&
           strspn(s, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "._-") == len;
}

/* The file of a shm URI. NULL: the URI has no known form. own_only: see wire_shm_open(). */
static char *wire_open_shm_path(const char *rest, bool *own_only)
{
    *own_only = false;
    if (rest[0] == '/' && rest[1] != '\0' && rest[strlen(rest) - 1] != '/') {
        return g_strdup(rest);
    }
    if (!wire_open_is_name(rest)) {
        return NULL;
    }
    *own_only = true;
    return g_strdup_printf(WIRE_SHM_DIR "/" WIRE_SHM_PREFIX "%s", (unsigned long)geteuid(), rest);
}

static void wire_open_shm_sweep(GPtrArray *removed)
{
    g_autofree char *prefix = g_strdup_printf(WIRE_SHM_PREFIX, (unsigned long)geteuid());

    wire_shm_sweep(WIRE_SHM_DIR, prefix, removed);
}

static void wire_open_shm_look_all(GPtrArray *views)
{
    g_autofree char *prefix = g_strdup_printf(WIRE_SHM_PREFIX, (unsigned long)geteuid());
    GDir *dir = g_dir_open(WIRE_SHM_DIR, 0, NULL);
    const char *name;

    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *path = g_build_filename(WIRE_SHM_DIR, name, NULL);
        struct wire_view *view =
            g_str_has_prefix(name, prefix) ? wire_shm_look(path, name + strlen(prefix)) : NULL;

        if (view) {
            g_ptr_array_add(views, view);
        }
    }
    if (dir) {
        g_dir_close(dir);
    }
}

static const struct {
    const char *scheme;
    /* The path for the rest of a URI after its scheme. NULL: the rest has no known form. */
    char *(*path)(const char *rest, bool *own_only);
    struct wire_port *(*open)(const char *path, bool own_only, GError **err);
    struct wire_number *(*take_number)(const char *path, bool own_only, unsigned wanted,
                                       GError **err);
    unsigned (*look_number)(const char *path, unsigned beyond);
    void (*sweep)(GPtrArray *removed); /* removes what killed processes left */
    void (*sweep_one)(const char *path, bool own_only, GPtrArray *removed);
    void (*look_all)(GPtrArray *views);
    struct wire_view *(*look)(const char *path, const char *name);
    void (*find_processes)(const GPtrArray *views);
} schemes[] = {
    {"shm:", wire_open_shm_path, wire_shm_open, wire_shm_number_take, wire_shm_number_look,
     wire_open_shm_sweep, shm_file_sweep_one, wire_open_shm_look_all, wire_shm_look,
     wire_shm_find_processes},
};

/* The index of a URI's scheme, and its path. -1: *err says why. */
static int wire_open_find_scheme(const char *uri, char **path, bool *own_only, GError **err)
{
    for (size_t i = 0; i < G_N_ELEMENTS(schemes); i++) {
        if (g_str_has_prefix(uri, schemes[i].scheme)) {
            *path = schemes[i].path(uri + strlen(schemes[i].scheme), own_only);
            if (*path) {
                return (int)i;
            }
        }
    }
    g_set_error(
        err, WIRE_ERROR, WIRE_ERROR_URI,
        "'%s' names no port: it is shm:NAME (letters, digits, '.', '_', '-'), shm:/PATH, or a "
        "socket (connect:, listen:, unix:, udp:, vxlan:, tap:, if:, slirp:)",
        uri);
    return -1;
}

bool wire_is_uri(const char *uri)
{
    g_autofree char *path = NULL;
    bool own_only;

    return wire_socket_is(uri) || wire_open_find_scheme(uri, &path, &own_only, NULL) >= 0;
}

struct wire_port *wire_open(const char *uri, GError **err)
{
    g_autofree char *path = NULL;
    bool own_only;
    int scheme;

    if (wire_socket_is(uri)) {
        return wire_socket_open(uri, err);
    }
    scheme = wire_open_find_scheme(uri, &path, &own_only, err);
    if (scheme < 0) {
        return NULL;
    }
    schemes[scheme].sweep(NULL);
    return schemes[scheme].open(path, own_only, err);
}

struct wire_number *wire_number_take(const char *uri, unsigned wanted, GError **err)
{
    g_autofree char *path = NULL;
    bool own_only;
    int scheme;

    if (wire_socket_is(uri)) {
        if (wanted) {
            return wire_number_unheld(wanted);
        }
        g_set_error(err, WIRE_ERROR, WIRE_ERROR_URI,
                    "%s: the other hosts of this wire are not known: choose a host number", uri);
        return NULL;
    }
    scheme = wire_open_find_scheme(uri, &path, &own_only, err);
    if (scheme < 0) {
        return NULL;
    }
    schemes[scheme].sweep(NULL);
    return schemes[scheme].take_number(path, own_only, wanted, err);
}

unsigned wire_number_look(const char *uri, unsigned beyond)
{
    g_autofree char *path = NULL;
    bool own_only;
    int scheme;

    if (wire_socket_is(uri)) {
        return beyond < WIRE_NUMBER_MAX ? beyond + 1 : 0;
    }
    scheme = wire_open_find_scheme(uri, &path, &own_only, NULL);
    return scheme < 0 ? 0 : schemes[scheme].look_number(path, beyond);
}

void wire_sweep(GPtrArray *removed)
{
    for (size_t i = 0; i < G_N_ELEMENTS(schemes); i++) {
        schemes[i].sweep(removed);
    }
}

bool wire_clean(const char *uri, GPtrArray *removed, GError **err)
{
    g_autofree char *path = NULL;
    bool own_only;
    int scheme;

    if (wire_socket_is(uri)) {
        return true; /* the port of a socket removes its file itself */
    }
    scheme = wire_open_find_scheme(uri, &path, &own_only, err);
    if (scheme >= 0) {
        schemes[scheme].sweep_one(path, own_only, removed);
    }
    return scheme >= 0;
}

static void wire_open_free_view(gpointer data)
{
    struct wire_view *view = data;

    g_free(view->name);
    g_free(view->path);
    g_free(view->tenants);
    g_free(view);
}

static gint wire_open_compare_views(gconstpointer a, gconstpointer b)
{
    const struct wire_view *const *one = a, *const *other = b;

    return strcmp((*one)->name, (*other)->name);
}

GPtrArray *wire_views_new(void)
{
    return g_ptr_array_new_with_free_func(wire_open_free_view);
}

GPtrArray *wire_look_all(void)
{
    GPtrArray *views = wire_views_new();

    for (size_t i = 0; i < G_N_ELEMENTS(schemes); i++) {
        g_autoptr(GPtrArray) some = wire_views_new();

        schemes[i].look_all(some);
        schemes[i].find_processes(some);
        g_ptr_array_extend_and_steal(views, g_steal_pointer(&some));
    }
    g_ptr_array_sort(views, wire_open_compare_views);
    return views;
}

bool wire_look(const char *uri, GPtrArray *views, GError **err)
{
    g_autoptr(GPtrArray) one = wire_views_new();
    g_autofree char *path = NULL;
    bool own_only;
    int scheme;
    struct wire_view *view;

    if (wire_socket_is(uri)) {
        g_set_error(err, WIRE_ERROR, WIRE_ERROR_URI, "%s: the hosts behind a socket are not known",
                    uri);
        return false;
    }
    scheme = wire_open_find_scheme(uri, &path, &own_only, err);
    if (scheme < 0) {
        return false;
    }
    view = schemes[scheme].look(path, own_only ? uri + strlen(schemes[scheme].scheme) : path);
    if (!view) {
        g_set_error(err, WIRE_ERROR, WIRE_ERROR_IO, "%s: there is no such wire", path);
        return false;
    }
    g_ptr_array_add(one, view);
    schemes[scheme].find_processes(one);
    g_ptr_array_extend_and_steal(views, g_steal_pointer(&one));
    return true;
}

const char *wire_uri_help(void)
{
    return SHM_HELP "\n" SOCKET_HELP;
}
