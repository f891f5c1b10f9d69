/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The C library's functions behind those of this library. Found when the library begins, so that
 * nobody is in the midst of finding one when a process forks or a signal comes; a constructor that
 * runs before ours finds those that it needs.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_PRELOAD_REAL_H
#define HCASIM_GUEST_LIB_VERBS_PRELOAD_REAL_H

#include <dlfcn.h>

/* A file lists its functions in a table, X(name) each: REAL_TABLE(TABLE) makes REAL(name). */
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
