/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of URI schemes.
 */
#include "wire/open.h"
#include "wire/shm.h"

#include <string.h>
#include <unistd.h>

#define SHM_DIR "/dev/shm"

#define SHM_HELP                                                                                   \
    "shm:NAME   a segment of this user in /dev/shm (letters, digits, '.', '_', '-')\n"             \
    "shm:/PATH  a segment whose file is PATH"

G_DEFINE_QUARK(hcasim - wire - error - quark, wire_error)

static bool is_name(const char *s)
{
    size_t len = strlen(s);

    return len >= 1 && len <= 200 && s[0] != '.' &&
           strspn(s, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "._-") == len;
}

/* A shm URI's file, or NULL: it is none. */
static struct wire_port *open_shm(const char *rest, bool *bad_uri, GError **err)
{
    struct wire_port *port;
    char *path, *prefix;

    if (rest[0] == '/' && rest[1] != '\0' && rest[strlen(rest) - 1] != '/') {
        return wire_shm_open(rest, false, err);
    }
    if (!is_name(rest)) {
        *bad_uri = true;
        return NULL;
    }
    prefix = g_strdup_printf("hcasim-%lu-", (unsigned long)geteuid());
    path = g_strconcat(SHM_DIR "/", prefix, rest, NULL);
    wire_shm_sweep(SHM_DIR, prefix);
    port = wire_shm_open(path, true, err);
    g_free(path);
    g_free(prefix);
    return port;
}

static const struct {
    const char *scheme;
    /* Sets *bad_uri, and leaves *err alone, if what follows the scheme has no known form. */
    struct wire_port *(*open)(const char *rest, bool *bad_uri, GError **err);
} schemes[] = {
    {"shm:", open_shm},
};

struct wire_port *wire_open(const char *uri, GError **err)
{
    for (size_t i = 0; i < G_N_ELEMENTS(schemes); i++) {
        if (g_str_has_prefix(uri, schemes[i].scheme)) {
            bool bad_uri = false;
            struct wire_port *port =
                schemes[i].open(uri + strlen(schemes[i].scheme), &bad_uri, err);

            if (!bad_uri) {
                return port;
            }
        }
    }
    g_set_error(err, WIRE_ERROR, WIRE_ERROR_URI,
                "'%s' names no port: it is shm:NAME (letters, digits, '.', '_', '-') or shm:/PATH",
                uri);
    return NULL;
}

const char *wire_uri_help(void)
{
    return SHM_HELP;
}
