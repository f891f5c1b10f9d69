/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection manager, as the kernel's ib_cm: establishes and ends connections by datagrams that
 * may be lost, repeated or late (IBTA volume 1, chapter 12; messages: prm/cm.prm).
 *
 * It knows neither the device nor a clock nor threads: struct cm_ops supplies them. The caller
 * serializes all calls. Events of an identifier are reported to its handler, from within cm_recv()
 * and cm_run(); the handler may call anything here.
 *
 *   cm_id.c    identifiers, states, timers
 *   cm_mad.c   sending messages
 *   cm_recv.c  receiving messages
 *   cm_ends.c  messages on behalf of hosts that ended
 */
#ifndef HCASIM_GUEST_LIB_CM_CM_H
#define HCASIM_GUEST_LIB_CM_CM_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include "prm/prm.h"

#define CM_MAD_LEN     256
#define CM_MAX_IDS     8192 /* identifiers in TIMEWAIT included */
#define CM_MAX_RETRIES 15
#define CM_NEVER       UINT64_MAX

/* How to reach a peer's connection manager, and its queue pairs. */
struct cm_av {
    unsigned port; /* one of the local ports (struct cm_ops) */
    uint8_t sgid_index;
    uint8_t dgid[16];
    uint8_t sl, traffic_class, hop_limit;
    uint32_t flow_label;
};

struct cm_ops {
    /* Sends a message to the peer's queue pair 1. If it cannot be sent, it is lost. */
    void (*send)(void *opaque, const struct cm_av *av, const uint8_t mad[CM_MAD_LEN]);
    uint64_t (*now_ns)(void *opaque);
    uint32_t (*random)(void *opaque);
    uint64_t (*ca_guid)(void *opaque, unsigned port);
    /* host_at: the host at the peer's address now, for has_ended(); 0: its end will not be
     * reported. Either both functions are set or neither. */
    uint64_t (*host_at)(void *opaque, const struct cm_av *av);
    bool (*has_ended)(void *opaque, unsigned port, uint64_t host);
};

enum cm_state {
    CM_IDLE,
    CM_LISTEN,
    CM_REQ_SENT,
    CM_REQ_RCVD,
    CM_MRA_REQ_SENT,
    CM_MRA_REQ_RCVD,
    CM_REP_SENT,
    CM_REP_RCVD,
    CM_MRA_REP_SENT,
    CM_MRA_REP_RCVD,
    CM_ESTABLISHED,
    CM_DREQ_SENT,
    CM_DREQ_RCVD,
    CM_TIMEWAIT,
    CM_SIDR_REQ_SENT,
    CM_SIDR_REQ_RCVD,
    CM_STATES
};

enum cm_event_type {
    CM_EVENT_NONE,
    CM_EVENT_REQ,       /* for a listener's handler; event->id is new and has that handler */
    CM_EVENT_REQ_ERROR, /* no answer came */
    CM_EVENT_REP,
    CM_EVENT_REP_ERROR,
    CM_EVENT_RTU,
    CM_EVENT_REJ,
    CM_EVENT_DREQ,
    CM_EVENT_DREQ_ERROR,
    CM_EVENT_DREP,
    CM_EVENT_TIMEWAIT_EXIT,
    CM_EVENT_SIDR_REQ, /* like CM_EVENT_REQ */
    CM_EVENT_SIDR_REQ_ERROR,
    CM_EVENT_SIDR_REP
};

/* The connection parameters in a REQ or REP, from the receiver's point of view. */
struct cm_params {
    uint32_t qpn, starting_psn; /* of the sender */
    uint8_t responder_resources, initiator_depth, flow_control, retry_count, rnr_retry_count, srq;
    uint32_t vendor_id, attr_mod; /* enhanced connection establishment: vendor, and its options */
};

struct cm_id;
struct cm_event {
    enum cm_event_type type;
    struct cm_id *id;
    const uint8_t *private_data;
    unsigned private_len;
    struct cm_params params;
    unsigned status; /* reason of a REJ, status of a SIDR_REP */
    uint32_t qkey;   /* of a SIDR_REP, with params.qpn */
};

/* Returns 0. For a new identifier, an errno has it destroyed again; with ENOMEM no REJ is sent, so
 * that the peer's next try may succeed. */
typedef int cm_handler(struct cm_id *id, const struct cm_event *event);

struct cm_id {
    struct cm *cm;
    enum cm_state state;
    cm_handler *handler; /* NULL: the identifier has no owner, and waits out its TIMEWAIT */
    void *context;
    uint32_t local_id, remote_id;
    uint64_t service_id, remote_guid, tid;
    struct cm_av av;
    uint64_t host; /* the peer (cm_ops.host_at()); 0: not known */
    /* What queue pairs need to know (IBTA 12.9.8). */
    uint8_t
        /* PRM_CM_TRANSPORT_; EXTENDED is XRC, whose target is on the side where is_asked is true */
        transport;
    bool is_asked; /* the peer sent the REQ */
    uint32_t local_qpn, remote_qpn, sq_psn, rq_psn;
    uint8_t responder_resources, initiator_depth, retry_count, rnr_retry_count, path_mtu, rate;
    uint8_t ack_timeout; /* 4.096 us << n */
    uint8_t service_timeout;
    /* The message that waits for an answer. */
    uint8_t mad[CM_MAD_LEN];
    unsigned timeout_ms, retries, max_retries;
    uint64_t deadline_ns;
    uint64_t timer_seq;
};

/* Counters since the start, by attribute (PRM_CM_ATTR_ - PRM_CM_ATTR_REQ). */
#define CM_MESSAGES 11
struct cm_stats {
    uint64_t sent[CM_MESSAGES], retried[CM_MESSAGES], received[CM_MESSAGES],
        duplicates[CM_MESSAGES];
    uint64_t malformed; /* of another class, version or length */
    uint64_t full;      /* requests without room, here (CM_MAX_IDS) or in the consumer */
};

struct cm *cm_new(const struct cm_ops *ops, void *opaque);
/* To be called when all identifiers are destroyed or have no owner. */
void cm_free(struct cm *cm);
const struct cm_stats *cm_get_stats(const struct cm *cm);

/* A datagram has arrived. from: how to reach its sender. */
void cm_recv(struct cm *cm, const struct cm_av *from, const uint8_t *mad, size_t len);
/* A host may have ended. If it has, the messages that its connection manager would have sent count
 * as received: a kernel's connection manager sends them for a process that has ended. False: at
 * present no end of a host would matter. */
bool cm_hosts_ended(struct cm *cm);
/* cm_run() does what is due. cm_deadline_ns() tells when something will be due next. */
void cm_run(struct cm *cm);
uint64_t cm_deadline_ns(const struct cm *cm);

/* -- identifiers --------------------------------------------------------------------------------
 * Errors are errnos, those of ib_cm: EINVAL: not allowed in this state, or private data too long;
 * ENOMEM. */

struct cm_id *cm_create_id(struct cm *cm, cm_handler *handler, void *context);
/* Ends the identifier: sends a REJ or DREQ if the state requires it. The handler is not called any
 * more. */
void cm_destroy_id(struct cm_id *id);

/* EADDRINUSE: another identifier listens on this service ID. */
int cm_listen(struct cm_id *id, uint64_t service_id);

struct cm_req_param {
    struct cm_av av;
    uint8_t sgid[16];
    uint64_t service_id;
    uint8_t transport, path_mtu, rate; /* transport: as in struct cm_id */
    uint8_t packet_life_time;          /* 4.096 us << n */
    uint8_t cm_timeout;                /* 4.096 us << n: how long either side may take to answer */
    uint8_t max_cm_retries;
    struct cm_params params; /* qpn and starting_psn: the sender's own */
    const void *private_data;
    unsigned private_len;
};
int cm_send_req(struct cm_id *id, const struct cm_req_param *param);
int cm_send_rep(struct cm_id *id, const struct cm_params *params, const void *private_data,
                unsigned len);
int cm_send_rtu(struct cm_id *id);
/* If the peer repeats its message, it gets an MRA from now on: the answer takes up to 4.096 us <<
 * service_timeout. Sends nothing itself. */
int cm_delay_answer(struct cm_id *id, uint8_t service_timeout);
int cm_send_rej(struct cm_id *id, unsigned reason, const void *ari, unsigned ari_len,
                const void *private_data, unsigned len);
int cm_send_dreq(struct cm_id *id);
int cm_send_drep(struct cm_id *id);
/* Data has arrived on the connection before its RTU: establishes it. EISCONN: the RTU has arrived
 * already. */
int cm_establish(struct cm_id *id);

struct cm_sidr_req_param {
    struct cm_av av;
    uint64_t service_id;
    unsigned timeout_ms, max_cm_retries;
    const void *private_data;
    unsigned private_len;
};
int cm_send_sidr_req(struct cm_id *id, const struct cm_sidr_req_param *param);
int cm_send_sidr_rep(struct cm_id *id, unsigned status, uint32_t qpn, uint32_t qkey,
                     const void *private_data, unsigned len);

#endif
