/* SPDX-License-Identifier: BSD-2-Clause */
/* The device under test as its host has it, for the steps of the host. They call ordinary verbs, of
 * hcasim's library or of the host's own, and direct verbs where the host has them. */
#ifndef HCASIM_TESTS_CONFORMANCE_HOST_H
#define HCASIM_TESTS_CONFORMANCE_HOST_H

#include <infiniband/verbs.h>
#include <stdbool.h>

struct host {
    struct ibv_context *ctx;      /* its event descriptor does not block */
    struct ibv_pd *pd, *other_pd; /* everything is in the first, except regions for which the script
                                     says otherwise */
    uint8_t port, gid_index;
    union ibv_gid peer;
    uint8_t timeout;                  /* of a queue pair for which the script sets none */
    const struct host_direct *direct; /* NULL: the host has no direct verbs for its devices */
};

/* The destination of a DCI's message. */
struct host_target {
    struct ibv_ah *ah;
    uint32_t dctn;
    uint64_t key;
    int stream; /* -1: none */
};

/* Work that a configurer's send queue accepts. */
enum host_work {
    HOST_UMR = 1, /* keys of several pieces */
    HOST_SIG = 2, /* keys of several pieces with block signatures */
    HOST_MMO = 4, /* copies from memory to memory */
};

/* The queues of a queue pair of cross channel that other queue pairs start. */
enum host_cross {
    HOST_MASTER = 1, /* none; it waits for others and starts them, as all of them can */
    HOST_MANAGED_SEND = 2,
    HOST_MANAGED_RECV = 4,
};

enum host_cross_op {
    HOST_WAIT,
    HOST_SEND_ENABLE,
    HOST_RECV_ENABLE,
};

/* The T10-DIF signatures of 512-byte blocks of a key: which domains have them, and their values.
 * The reference tag grows by one from block to block. */
struct host_sig {
    bool mem, wire,
        copies; /* copies: from one domain to the other, without a check of the values */
    uint16_t app_tag;
    uint32_t ref_tag;
};

/* The finding of a key with signatures. */
enum host_sig_error {
    HOST_SIG_NONE,
    HOST_SIG_GUARD,
    HOST_SIG_REF_TAG,
    HOST_SIG_APP_TAG,
};

/* Functions of these devices that ordinary verbs do not offer (direct.c). A function that returns
 * NULL sets errno; a function that returns an int returns 0 or an errno value. */
struct host_direct {
    /* Takes from init the CQ and, for a target, the SRQ. */
    struct ibv_qp *(*make_target)(const struct host *host, const struct ibv_qp_init_attr *init,
                                  uint64_t key);
    /* streams: log2 of their number; errored: log2 of how many may fail. 0: it has no streams. */
    struct ibv_qp *(*make_initiator)(const struct host *host, const struct ibv_qp_init_attr *init,
                                     uint8_t streams, uint8_t errored);
    int (*post)(struct ibv_qp *initiator, const struct ibv_send_wr *wr,
                const struct host_target *to);
    /* Makes a connection whose send queue accepts more work (enum host_work). */
    struct ibv_qp *(*make_configurer)(const struct host *host, const struct ibv_qp_init_attr *init,
                                      unsigned work);
    /* Makes a free key. A UMR may turn it into a key of up to that many pieces of other keys; with
     * fixed, no UMR may. Sets *key; returns a handle, which free_key() frees. */
    void *(*make_key)(struct ibv_pd *pd, uint16_t pieces, bool rinval, bool fixed, uint32_t *key);
    int (*free_key)(void *made);
    int (*configure)(struct ibv_qp *configurer, const struct ibv_send_wr *wr, void *made,
                     uint32_t rights);
    /* The same for a key with block signatures. */
    void *(*make_sig_key)(struct ibv_pd *pd, uint16_t pieces, uint32_t *key);
    int (*configure_sig)(struct ibv_qp *configurer, const struct ibv_send_wr *wr, void *made,
                         uint32_t rights, const struct host_sig *sig);
    /* Takes the error that the key has found since the last call, and the offset of its block. */
    int (*check_sig)(void *made, enum host_sig_error *error, uint64_t *offset);
    /* Posts a copy from the first of two ranges to the second one. */
    int (*copy)(struct ibv_qp *configurer, const struct ibv_send_wr *wr);
    /* Makes a connection of cross channel (enum host_cross). */
    struct ibv_qp *(*make_cross)(const struct host *host, const struct ibv_qp_init_attr *init,
                                 unsigned cross);
    /* Posts a wait for the next count completions of qp's CQ, or starts its next count requests. */
    int (*cross)(struct ibv_qp *master, const struct ibv_send_wr *wr, enum host_cross_op op,
                 struct ibv_qp *qp, uint32_t count);
    /* Moves the QP to SQD, where it arrives when all begun work is done. */
    int (*drain)(struct ibv_qp *qp);
};
extern const struct host_direct host_direct;

/* make_cross and cross of host_direct (direct_cross.c). */
struct ibv_qp *direct_make_cross(const struct host *host, const struct ibv_qp_init_attr *init,
                                 unsigned cross);
int direct_cross(struct ibv_qp *master, const struct ibv_send_wr *wr, enum host_cross_op op,
                 struct ibv_qp *qp, uint32_t count);

#endif
