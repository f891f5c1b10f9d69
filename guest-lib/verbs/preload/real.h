/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The C library's functions that this library replaces. They are looked up when the library is
 * loaded, so that no thread is in the middle of a lookup when the process forks or a signal comes.
 * If another constructor runs earlier and calls such a function, the function is looked up then.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_PRELOAD_REAL_H
#define HCASIM_GUEST_LIB_VERBS_PRELOAD_REAL_H

#include <dlfcn.h>

/* A file lists its functions in a table, as X(name) for each. REAL_TABLE(TABLE) declares
 * REAL(name). */
#define REAL_POINTER(name) __typeof__(name) *name;
#define REAL_RESOLVE(name) real.name = (__typeof__(name) *)dlsym(RTLD_NEXT, #name);
#define REAL_TABLE(table)                                                                          \
    static struct {                                                                                \
        table(REAL_POINTER)                                                                        \
    } real;                                                                                        \
    __attribute__((constructor)) static void real_find(void)                                       \
    {                                                                                              \
        table(REAL_RESOLVE)                                                                        \
    }
#define REAL(name)                                                                                 \
    (__builtin_expect(!real.name, 0) ? (__typeof__(name) *)dlsym(RTLD_NEXT, #name) : real.name)

#endif
