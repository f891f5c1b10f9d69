/* SPDX-License-Identifier: BSD-2-Clause */
/* Where this library is, and the libraries beside it that belong to it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "guest-lib/verbs/preload/preload.h"

/* Stored once, by whoever loads libibverbs.so.1. */
static const struct hv_beside_ops *self_ops;

PRELOAD_EXPORT hv_beside_fn hcasim_beside;
void hcasim_beside(const struct hv_beside_ops *ops)
{
    __atomic_store_n(&self_ops, ops, __ATOMIC_RELEASE);
}

static const struct hv_beside_ops *self_known_ops(void)
{
    return __atomic_load_n(&self_ops, __ATOMIC_ACQUIRE);
}

bool self_beside(const char *name, char path[PATH_MAX])
{
    Dl_info info;
    const char *end;
    int len;

    if (!dladdr((const void *)self_beside, &info)) {
        return false;
    }
    end = strrchr(info.dli_fname, '/');
    if (!end) {
        return false;
    }
    len = snprintf(path, PATH_MAX, "%.*s/%s", (int)(end - info.dli_fname), info.dli_fname, name);
    return len > 0 && len < PATH_MAX;
}

bool self_look(struct hv_facts *facts)
{
    const struct hv_beside_ops *ops = self_known_ops();
    char path[PATH_MAX];

    if (!ops && self_beside("libibverbs.so.1", path)) {
        dlopen(path, RTLD_NOW | RTLD_LOCAL); /* and stays: a program may want it later */
        ops = self_known_ops();
    }
    return ops && ops->look(facts);
}

bool self_is_known(void)
{
    return self_known_ops() != NULL;
}

bool self_is_peer(uint32_t ipv4)
{
    const struct hv_beside_ops *ops = self_known_ops();

    return ops && ops->is_peer(ipv4);
}
