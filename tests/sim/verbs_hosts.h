/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hosts that are programs of the verbs library: each with a device and an open context of its own,
 * all on one virtual clock and one hub, some of them behind a bad cable.
 *
 * Nothing happens until the world is stepped, but for commands, which step it themselves. What
 * fails here stops the program.
 */
#ifndef HCASIM_TESTS_VERBS_HOSTS_H
#define HCASIM_TESTS_VERBS_HOSTS_H

#include "guest-lib/verbs/kernel/config.h"
#include "tests/sim/hub.h"
#include "tests/sim/lossy.h"

#define VERBS_HOSTS   4
#define VERBS_LATENCY 2000 /* ns from host to host */
#define VERBS_SECOND  1000000000ull

/* Stops the program unless the call returns 0. */
#define verbs_must_be_0(call)                                                                      \
    do {                                                                                           \
        int result_ = (call);                                                                      \
                                                                                                   \
        if (result_) {                                                                             \
            g_error("%s:%d: %s is %d", __func__, __LINE__, #call, result_);                        \
        }                                                                                          \
    } while (0)

struct verbs_host {
    struct hv_port_config config;
    struct wire_port *port;
    struct ibv_device *device;
    struct ibv_context *ctx;
    struct ibv_pd *pd;
};

struct verbs_hosts {
    struct inproc_world *world;
    struct hub *hub;
    struct verbs_host host[VERBS_HOSTS];
    unsigned num;
    GChecksum *trace; /* of every frame that arrived at a host, with its time */
    uint64_t frames;
};

/* loss, or NULL: of what arrives at each host; its seed makes one for each. Of strangers the MAC
 * addresses are not those that belong to their IPv4 addresses. */
struct verbs_hosts *verbs_hosts_new(unsigned num, const struct lossy_config *loss);
/* What was made on the contexts is gone. */
void verbs_hosts_free(struct verbs_hosts *v);
/* Faults that the cables committed. */
unsigned verbs_faults(const struct verbs_hosts *v);

/* An RC or UC QP in RESET. cap: what is wanted of it, or NULL for the usual. */
struct ibv_qp *verbs_qp(struct verbs_host *host, enum ibv_qp_type type, struct ibv_cq *cq,
                        struct ibv_srq *srq, const struct ibv_qp_cap *cap);
/* What is not usual of a connection. */
struct verbs_path {
    uint8_t timeout;   /* as in struct ibv_qp_attr; 0: the usual */
    uint8_t retry_cnt; /* likewise */
    uint32_t psn;      /* where the sender begins */
};
/* From RESET to RTS, towards the QP with that number of another host. */
void verbs_connect(struct ibv_qp *qp, const struct verbs_host *to, uint32_t dest,
                   const struct verbs_path *path);

/* The next completion; there must be one within 100 virtual seconds. */
struct ibv_wc verbs_wc(struct verbs_hosts *v, struct ibv_cq *cq);

#endif
