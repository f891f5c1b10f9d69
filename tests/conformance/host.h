/* SPDX-License-Identifier: BSD-2-Clause */
/* The device under test as its host has it: what the steps of the host are done with. They are
 * ordinary verbs, of hcasim's library or of the host's own, and direct verbs where those are. */
#ifndef HCASIM_TESTS_CONFORMANCE_HOST_H
#define HCASIM_TESTS_CONFORMANCE_HOST_H

#include <infiniband/verbs.h>
#include <stdbool.h>

struct host {
    struct ibv_context *ctx;      /* its events do not block */
    struct ibv_pd *pd, *other_pd; /* all but a region that says so is in the first */
    uint8_t port, gid_index;
    union ibv_gid peer;
    uint8_t timeout;                  /* of a queue pair for which the script has none */
    const struct host_direct *direct; /* NULL: a host without these devices' direct verbs */
};

/* Where a DCI's message goes. */
struct host_target {
    struct ibv_ah *ah;
    uint32_t dctn;
    uint64_t key;
    int stream; /* -1: none */
};

/* What these devices can and verbs cannot ask for (direct.c). NULL is with errno; an int is 0 or
 * one. */
struct host_direct {
    /* Of init the CQ, and a target's SRQ. */
    struct ibv_qp *(*make_target)(const struct host *host, const struct ibv_qp_init_attr *init,
                                  uint64_t key);
    /* streams: log2 of how many there are; errored: of how many may fail. 0: it has none. */
    struct ibv_qp *(*make_initiator)(const struct host *host, const struct ibv_qp_init_attr *init,
                                     uint8_t streams, uint8_t errored);
    int (*post)(struct ibv_qp *initiator, const struct ibv_send_wr *wr,
                const struct host_target *to);
    /* A connection whose send queue takes UMRs. */
    struct ibv_qp *(*make_configurer)(const struct host *host, const struct ibv_qp_init_attr *init);
    /* A key that is free: a UMR makes it one of as many pieces of other keys, at most. fixed: none
     * does. It is the memory of *key; free_key() gives it back. */
    void *(*make_key)(struct ibv_pd *pd, uint16_t pieces, bool rinval, bool fixed, uint32_t *key);
    int (*free_key)(void *made);
    int (*configure)(struct ibv_qp *configurer, const struct ibv_send_wr *wr, void *made,
                     uint32_t rights);
    /* To SQD, in which it is when what was begun is done. */
    int (*drain)(struct ibv_qp *qp);
};
extern const struct host_direct host_direct;

#endif
