/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the connection manager share. */
#ifndef HCASIM_GUEST_LIB_CM_CM_INTERNAL_H
#define HCASIM_GUEST_LIB_CM_CM_INTERNAL_H

#include <errno.h>
#include <string.h>
#include "guest-lib/cm/cm.h"

struct cm {
    const struct cm_ops *ops;
    void *opaque;
    GHashTable *ids;       /* local_id -> struct cm_id */
    GHashTable *listeners; /* &service_id -> struct cm_id */
    GTree *timers;         /* struct cm_id by deadline_ns, timer_seq */
    uint64_t timer_seq;
    uint32_t next_id, id_operand;
    struct cm_stats stats;
};

/* How messages end a state, and what follows. */
struct cm_state_row {
    const char *name;
    uint8_t message; /* PRM_CM_MESSAGE_: the message that a REJ in this state rejects */
    /* a REJ has 0 for its local ID: this side has not sent its ID yet */
    bool answering;
    bool rejects;               /* this side may send a REJ */
    enum cm_state after_reject; /* the state after a REJ was sent or received */
    bool rejected;              /* the peer may send a REJ */
    enum cm_event_type gave_up; /* the event if no answer comes, */
    enum cm_state after_giving_up;
};
extern const struct cm_state_row cm_states[CM_STATES];

/* -- cm_id.c ----------------------------------------------------------------------------------- */

/* 4.096 us << n in milliseconds, as the kernel rounds it (cm_convert_to_ms()). */
static inline unsigned cm_ms(uint8_t iba_time)
{
    return 1u << (iba_time > 8 ? iba_time - 8 : 0);
}
/* The acknowledgment timeout of a path (cm_ack_timeout()). */
uint8_t cm_ack_timeout_of(uint8_t ack_delay, uint8_t packet_life_time);

/* Finds the identifier with this local_id whose peer has remote_id. remote_id 0: the peer has not
 * told its ID yet. */
struct cm_id *cm_find(struct cm *cm, uint32_t local_id, uint32_t remote_id);
/* These two find another identifier than id: of the same peer with the same remote ID; or with the
 * same remote QP. */
struct cm_id *cm_find_same_name(const struct cm_id *id, uint32_t remote_id, uint64_t remote_guid);
struct cm_id *cm_find_same_qp(const struct cm_id *id, uint32_t remote_qpn, uint64_t remote_guid);
struct cm_id *cm_find_listener(struct cm *cm, uint64_t service_id);
struct cm_id *cm_find_sidr(struct cm *cm, const struct cm_id *but, const struct cm_av *from,
                           uint32_t request_id);

void cm_set_timer(struct cm_id *id, unsigned ms);
void cm_stop_timer(struct cm_id *id);
/* Changes the state. Nothing waits for an answer any more. */
void cm_enter(struct cm_id *id, enum cm_state state);
void cm_enter_timewait(struct cm_id *id);
/* Frees the identifier without sending a message. */
void cm_forget(struct cm_id *id);

/* Stores the peer's host in id->host, if that is not known yet. */
static inline void cm_meet(struct cm_id *id)
{
    if (!id->host && id->cm->ops->host_at) {
        id->host = id->cm->ops->host_at(id->cm->opaque, &id->av);
    }
}

/* -- cm_mad.c ---------------------------------------------------------------------------------- */

/* Zeroes the message and writes its header. */
void cm_begin(uint8_t mad[CM_MAD_LEN], uint16_t attr, uint64_t tid);
void cm_send(struct cm *cm, const struct cm_av *av, const uint8_t mad[CM_MAD_LEN]);
/* Sends id->mad, and again every ms milliseconds until the state changes. */
void cm_send_and_wait(struct cm_id *id, enum cm_state state, unsigned ms);
/* Send an answer again, when the peer has repeated its message. */
void cm_repeat_rtu(struct cm_id *id);
void cm_repeat_drep(struct cm_id *id);
void cm_repeat_mra(struct cm_id *id, unsigned message);
/* Rejects a message that belongs to no identifier. */
void cm_issue_rej(struct cm *cm, const struct cm_av *to, const void *mad, unsigned message,
                  unsigned reason);
void cm_issue_drep(struct cm *cm, const struct cm_av *to, const void *mad);

#endif
