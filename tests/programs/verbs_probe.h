/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of verbs_probe share: the objects that calls need, and how calls are written. */
#ifndef HCASIM_TESTS_PROGRAMS_VERBS_PROBE_H
#define HCASIM_TESTS_PROGRAMS_VERBS_PROBE_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdint.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define BUF      8192

extern struct ibv_device **list;
extern struct ibv_context *ctx;
extern struct ibv_pd *pd;
extern struct ibv_cq *cq;
extern struct ibv_srq *srq;
extern struct ibv_qp *rc, *raw;
extern struct ibv_wq *wq;
extern struct ibv_rwq_ind_table *table;
extern struct ibv_ah *ah;
extern uint8_t buf[BUF];

/* Convert the result of a call that returns a pointer, or an int that is 0, an errno, or -1. */
static inline int ptr(const void *made)
{
    return made ? 0 : errno;
}

static inline int num(long result)
{
    return result < 0 ? (result == -1 ? errno : (int)-result) : (int)result;
}

/* A function call_NAME() with this body, which returns 0, or the errno with which a call failed. */
#define CALL(name, ...)                                                                            \
    static int call_##name(void)                                                                   \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

struct probe_call {
    const char *names; /* the functions that the call calls, between spaces */
    int (*call)(void);
};

/* Calls of libmlx5 (verbs_probe_dv.c), ended by NULL. */
extern const struct probe_call probe_dv_calls[];

#endif
