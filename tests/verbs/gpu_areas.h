/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of the stand-in GPU as regions of two hosts in virtual time (verbs_table.h): each kind of
 * memory that CUDA has, and a pair of connected queue pairs.
 */
#ifndef HCASIM_TESTS_GPU_AREAS_H
#define HCASIM_TESTS_GPU_AREAS_H

#include "guest-lib/cuda/standin/standin.h"
#include "tests/verbs/verbs_table.h"

enum area_kind {
    AREA_DEVICE,     /* cudaMalloc() */
    AREA_MAPPED,     /* virtual memory management, two mappings one behind the other */
    AREA_MANAGED,    /* cudaMallocManaged() */
    AREA_PINNED,     /* cudaMallocHost() */
    AREA_REGISTERED, /* cudaHostRegister() */
    AREA_PLAIN,      /* the host's, of which CUDA does not know */
    AREA_KINDS,
};

/* The first two kinds are those that no CPU reaches. */
#define AREA_BEHIND 2

extern const char *const area_names[AREA_KINDS];

struct area {
    enum area_kind kind;
    size_t len;       /* that were asked for */
    CUdeviceptr addr; /* what a program uses */
    /* where the test looks at it, without any order with the GPU's streams: mapped memory is in two
     * places */
    uint8_t *half[2];
    size_t split; /* bytes in the first */
    struct ibv_mr *mr;
};

static inline uint8_t *area_at(const struct area *area, size_t at)
{
    return at < area->split ? area->half[0] + at : area->half[1] + (at - area->split);
}

/* Two hosts, and an RC queue pair on each. */
struct areas {
    struct verbs_table *v;
    struct ibv_cq *cq[2];
    struct ibv_qp *a, *b; /* a may send masked atomics */
};

extern struct areas areas;

/* Makes the hosts, on a cable that may be bad. The stand-in's primary context becomes current. */
void areas_begin(const struct lossy_config *cable);
/* The same for a generation of devices. */
void areas_begin_as(const struct lossy_config *cable, const char *profile);
/* Neither the library nor the driver may have anything left. */
void areas_end(void);

static inline struct ibv_pd *area_pd(int side)
{
    return areas.v->hosts->host[side].pd;
}

CUdeviceptr area_alloc(enum area_kind kind, size_t len);
void area_free(enum area_kind kind, CUdeviceptr addr, size_t len);
/* Ends the memory, and leaves its region. */
void area_drop(struct area *area);
/* Registers it with all rights, and fills it with bytes that depend on the seed. */
struct area area_new(struct ibv_pd *pd, enum area_kind kind, size_t len, unsigned seed);
void area_end(struct area *area);
/* The byte with which area_new() fills a place. */
uint8_t area_byte(unsigned seed, size_t at);
void area_fill(const struct area *area, unsigned seed);

/* A part of the area, as an element of a work request. */
struct ibv_sge area_part(const struct area *area, size_t from, size_t len);

/* Posts a WR of one element on a; to may be NULL for a SEND. */
void area_post(enum ibv_wr_opcode opcode, struct ibv_sge sge, const struct area *to, size_t at,
               unsigned flags);
void area_receive(struct ibv_qp *qp, struct ibv_sge sge);
/* The next completion must have this status. */
void area_expect(struct ibv_cq *at, enum ibv_wc_status status);
/* len bytes at a place must be those of a seed from another place on. */
void area_expect_bytes(const struct area *area, size_t at, size_t len, unsigned seed, size_t from);
/* All bytes but these must be as area_new() made them. */
void area_expect_rest(const struct area *area, size_t at, size_t len, unsigned seed);

#define AREA_RIGHTS                                                                                \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |                   \
     IBV_ACCESS_REMOTE_ATOMIC)

#endif
