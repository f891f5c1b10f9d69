/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements library.h. The library stays loaded. */
#include "wire/slirp/library.h"
#include "wire/open.h"

#include <dlfcn.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct slirp_library library;
static bool is_loaded;

static const struct {
    const char *name;
    void **function;
} functions[] = {
    {"slirp_new", (void **)&library.slirp_new},
    {"slirp_cleanup", (void **)&library.slirp_cleanup},
    {"slirp_pollfds_fill", (void **)&library.slirp_pollfds_fill},
    {"slirp_pollfds_poll", (void **)&library.slirp_pollfds_poll},
    {"slirp_input", (void **)&library.slirp_input},
    {"slirp_add_hostfwd", (void **)&library.slirp_add_hostfwd},
};

static bool slirp_library_load(GError **err)
{
    void *file = dlopen(SLIRP_LIBRARY, RTLD_NOW | RTLD_LOCAL);

    if (!file) {
        g_set_error(err, WIRE_ERROR, WIRE_ERROR_IO,
                    "slirp: needs " SLIRP_LIBRARY " on this machine, such as Debian's package "
                    "libslirp0: %s",
                    dlerror());
        return false;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(functions); i++) {
        *functions[i].function = dlsym(file, functions[i].name);
        if (!*functions[i].function) {
            g_set_error(err, WIRE_ERROR, WIRE_ERROR_IO,
                        SLIRP_LIBRARY " of this machine has no %s(): slirp: needs libslirp 4.1 or "
                                      "later",
                        functions[i].name);
            return false;
        }
    }
    return true;
}

const struct slirp_library *slirp_library_get(GError **err)
{
    bool good;

    pthread_mutex_lock(&lock);
    good = is_loaded = is_loaded || slirp_library_load(err);
    pthread_mutex_unlock(&lock);
    return good ? &library : NULL;
}
