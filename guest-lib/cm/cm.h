/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection manager: who wants a connection and who agrees, over datagrams that may be lost,
 * repeated and late (IBTA volume 1, chapter 12; messages: prm/cm.prm). What the kernel's ib_cm is.
 *
 * It knows neither device nor clock nor thread: struct cm_ops gives it those. Its caller serializes
 * all calls. A consumer is told of events by its identifier's handler, from within cm_recv() and
 * cm_run(), and may call anything here from it.
 *
 *   cm_id.c    identifiers, states, timers
 *   cm_mad.c   messages as they are sent
 *   cm_recv.c  messages as they come in
 *   cm_ends.c  those of hosts that ended
 */
#ifndef HCASIM_GUEST_LIB_CM_CM_H
#define HCASIM_GUEST_LIB_CM_CM_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include "prm/prm.h"

#define CM_MAD_LEN     256
#define CM_MAX_IDS     8192 /* those that wait out their TIMEWAIT included */
#define CM_MAX_RETRIES 15
#define CM_NEVER       UINT64_MAX

/* How to reach a peer's connection manager, and its queue pairs. */
struct cm_av {
    unsigned port; /* of the local ones (struct cm_ops) */
    uint8_t sgid_index;
    uint8_t dgid[16];
    uint8_t sl, traffic_class, hop_limit;
    uint32_t flow_label;
};

struct cm_ops {
    /* Sends to queue pair 1 there; what cannot be sent is lost. */
    void (*send)(void *opaque, const struct cm_av *av, const uint8_t mad[CM_MAD_LEN]);
    uint64_t (*now_ns)(void *opaque);
    uint32_t (*random)(void *opaque);
    uint64_t (*ca_guid)(void *opaque, unsigned port);
    /* Who is there now, for has_ended(); 0: his end will not be told. Both or neither. */
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
    CM_EVENT_REQ, /* to a listener's handler; event->id is new, and has the listener's handler */
    CM_EVENT_REQ_ERROR, /* nobody answers */
    CM_EVENT_REP,
    CM_EVENT_REP_ERROR,
    CM_EVENT_RTU,
    CM_EVENT_REJ,
    CM_EVENT_DREQ,
    CM_EVENT_DREQ_ERROR,
    CM_EVENT_DREP,
    CM_EVENT_TIMEWAIT_EXIT,
    CM_EVENT_SIDR_REQ, /* as CM_EVENT_REQ */
    CM_EVENT_SIDR_REQ_ERROR,
    CM_EVENT_SIDR_REP
};

/* What connection parameters a REQ or REP says, as who receives it sees them. */
struct cm_params {
    uint32_t qpn, starting_psn; /* the sender's */
    uint8_t responder_resources, initiator_depth, flow_control, retry_count, rnr_retry_count, srq;
    uint32_t vendor_id, attr_mod; /* enhanced connection establishment: whose options, and which */
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

/* Returns 0. Of a new identifier: errno to have it destroyed again; ENOMEM: silently, so that the
 * peer's next try may succeed. */
typedef int cm_handler(struct cm_id *id, const struct cm_event *event);

struct cm_id {
    struct cm *cm;
    enum cm_state state;
    cm_handler *handler; /* NULL: nobody's, while it waits out its TIMEWAIT */
    void *context;
    uint32_t local_id, remote_id;
    uint64_t service_id, remote_guid, tid;
    struct cm_av av;
    uint64_t host; /* the peer, as struct cm_ops has it; 0: not known */
    /* what queue pairs need to know (IBTA 12.9.8) */
    uint8_t
        transport; /* PRM_CM_TRANSPORT_; EXTENDED is XRC, whose target is the side that is_asked */
    bool is_asked; /* by the peer's REQ */
    uint32_t local_qpn, remote_qpn, sq_psn, rq_psn;
    uint8_t responder_resources, initiator_depth, retry_count, rnr_retry_count, path_mtu, rate;
    uint8_t ack_timeout; /* 4.096 us << n */
    uint8_t service_timeout;
    /* the message that waits for an answer */
    uint8_t mad[CM_MAD_LEN];
    unsigned timeout_ms, retries, max_retries;
    uint64_t deadline_ns;
    uint64_t timer_seq;
};

/* Counted since the start, by attribute (PRM_CM_ATTR_ - PRM_CM_ATTR_REQ). */
#define CM_MESSAGES 11
struct cm_stats {
    uint64_t sent[CM_MESSAGES], retried[CM_MESSAGES], received[CM_MESSAGES],
        duplicates[CM_MESSAGES];
    uint64_t malformed; /* of another class, version or length */
    uint64_t full;      /* requests that found no room */
};

struct cm *cm_new(const struct cm_ops *ops, void *opaque);
/* All identifiers are destroyed, or nobody's. */
void cm_free(struct cm *cm);
const struct cm_stats *cm_get_stats(const struct cm *cm);

/* A datagram has come in. from: who sent it, as it is answered. */
void cm_recv(struct cm *cm, const struct cm_av *from, const uint8_t *mad, size_t len);
/* A host may have ended. What its connection manager would have said, as a kernel's does for a
 * process that is no more, is taken as said. False: no end of a host would matter now. */
bool cm_hosts_ended(struct cm *cm);
/* Does what is due; the other tells when something will be. */
void cm_run(struct cm *cm);
uint64_t cm_deadline_ns(const struct cm *cm);

/* -- identifiers --------------------------------------------------------------------------------
 * Errors are errnos, as ib_cm's: EINVAL: not in this state, or private data too long; ENOMEM. */

struct cm_id *cm_create_id(struct cm *cm, cm_handler *handler, void *context);
/* Ends what there is: rejects, disconnects, as the state wants it; the handler is not called any
 * more. */
void cm_destroy_id(struct cm_id *id);

/* EADDRINUSE: another one listens there. */
int cm_listen(struct cm_id *id, uint64_t service_id);

struct cm_req_param {
    struct cm_av av;
    uint8_t sgid[16];
    uint64_t service_id;
    uint8_t transport, path_mtu, rate; /* transport: as in struct cm_id */
    uint8_t packet_life_time;          /* 4.096 us << n */
    uint8_t cm_timeout;                /* likewise: how long either side takes to answer */
    uint8_t max_cm_retries;
    struct cm_params params; /* qpn and starting_psn: the sender's own */
    const void *private_data;
    unsigned private_len;
};
int cm_send_req(struct cm_id *id, const struct cm_req_param *param);
int cm_send_rep(struct cm_id *id, const struct cm_params *params, const void *private_data,
                unsigned len);
int cm_send_rtu(struct cm_id *id);
/* Says that an answer will take so long (4.096 us << n): to who asks again. */
int cm_delay_answer(struct cm_id *id, uint8_t service_timeout);
int cm_send_rej(struct cm_id *id, unsigned reason, const void *ari, unsigned ari_len,
                const void *private_data, unsigned len);
int cm_send_dreq(struct cm_id *id);
int cm_send_drep(struct cm_id *id);
/* Data has come on the connection before its RTU has. EISCONN: that has come. */
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
