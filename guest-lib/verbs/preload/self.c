/* SPDX-License-Identifier: BSD-2-Clause */
/* The folder of this library, and the libraries in it that belong to it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "guest-lib/verbs/preload/preload.h"

/* Stored once, when libibverbs.so.1 is loaded. */
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
        dlopen(path, RTLD_NOW | RTLD_LOCAL); /* it stays loaded: a program may need it later */
        ops = self_known_ops();
    }
    return ops && ops->look(facts);
}

/* -- whether the process uses verbs ------------------------------------------------------------ */

/* Whether the program, or a library in it, has asked for libibverbs.so.1. Its front is in every
 * process; the library itself is loaded at the first call. */
static bool self_asked;
/* The number of loads, plus 1, when no object needed libibverbs.so.1. */
static unsigned long long self_looked_at;

void self_ask(void)
{
    __atomic_store_n(&self_asked, true, __ATOMIC_RELAXED);
}

static bool self_is_needed_by(const struct dl_phdr_info *object)
{
    const ElfW(Dyn) *dynamic = NULL;
    const char *strings = NULL;

    for (unsigned i = 0; i < object->dlpi_phnum; i++) {
        if (object->dlpi_phdr[i].p_type == PT_DYNAMIC) {
            dynamic = (const void *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
        }
    }
    for (const ElfW(Dyn) *d = dynamic; d && d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_STRTAB) {
            strings = (const char *)d->d_un.d_ptr;
        }
    }
    for (const ElfW(Dyn) *d = dynamic; strings && d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_NEEDED && !strcmp(strings + d->d_un.d_val, "libibverbs.so.1")) {
            return true;
        }
    }
    return false;
}

/* A callback of dl_iterate_phdr(). Returns 0 to get the next object. */
static int self_see(struct dl_phdr_info *object, size_t len, void *loaded)
{
    if (__atomic_load_n(&self_looked_at, __ATOMIC_RELAXED) == object->dlpi_adds + 1) {
        return 1;
    }
    *(unsigned long long *)loaded = object->dlpi_adds + 1;
    if (self_is_needed_by(object)) {
        self_ask();
        return 1;
    }
    return 0;
}

bool self_is_known(void)
{
    unsigned long long loaded = 0;

    if (self_known_ops() || __atomic_load_n(&self_asked, __ATOMIC_RELAXED)) {
        return true;
    }
    if (!dl_iterate_phdr(self_see, &loaded)) {
        __atomic_store_n(&self_looked_at, loaded, __ATOMIC_RELAXED);
    }
    return __atomic_load_n(&self_asked, __ATOMIC_RELAXED);
}

bool self_is_peer(uint32_t ipv4)
{
    const struct hv_beside_ops *ops = self_known_ops();

    return ops && ops->is_peer(ipv4);
}

bool self_sigaction(int signal, const struct sigaction *action, struct sigaction *old)
{
    const struct hv_beside_ops *ops = self_known_ops();

    return ops && ops->sigaction(signal, action, old);
}

void self_memory_changed(const void *start, size_t len)
{
    const struct hv_beside_ops *ops = self_known_ops();

    if (ops) {
        ops->memory_changed((uintptr_t)start, len);
    }
}
