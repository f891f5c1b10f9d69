/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hosts that are programs of the verbs library. Each has a device and an open context of its own.
 * All share one virtual clock and one hub; some are behind a bad cable.
 *
 * Nothing happens until the world is stepped, except for commands, which step it themselves. A
 * failure here stops the program.
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
    GChecksum *trace; /* a hash of every frame that arrived at a host, with its time */
    uint64_t frames;
};

/* loss: the faults of the frames that arrive at each host, or NULL; its seed makes one for each
 * host. With strangers the MAC addresses do not belong to their hosts' IPv4 addresses. */
struct verbs_hosts *verbs_hosts_new(unsigned num, const struct lossy_config *loss);
/* The same for another generation of devices than the default. */
struct verbs_hosts *verbs_hosts_new_as(unsigned num, const struct lossy_config *loss,
                                       const char *profile);
/* Everything made on the contexts must be destroyed. */
void verbs_hosts_free(struct verbs_hosts *v);
/* Returns the number of faults of all cables. */
unsigned verbs_faults(const struct verbs_hosts *v);

/* Makes an RC or UC QP in RESET. cap: the capacities, or NULL for the default. */
struct ibv_qp *verbs_qp(struct verbs_host *host, enum ibv_qp_type type, struct ibv_cq *cq,
                        struct ibv_srq *srq, const struct ibv_qp_cap *cap);
/* The values of a connection that are not the default. */
struct verbs_path {
    uint8_t timeout;   /* as in struct ibv_qp_attr; 0: the default */
    uint8_t retry_cnt; /* likewise */
    uint32_t psn;      /* the sender's first PSN */
};
/* Takes a QP from RESET to RTS, towards the QP with that number of another host. */
void verbs_connect(struct ibv_qp *qp, const struct verbs_host *to, uint32_t dest,
                   const struct verbs_path *path);

/* Returns the next completion, which must come within 100 virtual seconds. */
struct ibv_wc verbs_wc(struct verbs_hosts *v, struct ibv_cq *cq);

#endif
