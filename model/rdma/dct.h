/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The target of dynamic connections (DCT), and the responders that the targets of a function give
 * to initiators (model/rdma/dc.h).
 *
 *   dct.c           the object, its life, its events
 *   dc_responder.c  sessions: a responder for each, from a pool that all targets share
 *   dc_note.c       what is remembered of an initiator's last session
 *
 * A responder is a peer of the target, whose requests are carried out as those of any reliable
 * connection are (model/rdma/responder.h). To the responder the target is a QP without queues,
 * which is never in a table. A fault is the end of the responder alone: it repeats its NAK, and
 * takes nothing more in this session.
 *
 * The pool has hca_limits.dc_responders. A CONNECT that finds none, nor one that its initiator has
 * left alone for DC_IDLE_NS (the one that was least recently used), is answered with a CNAK.
 */
#ifndef HCASIM_MODEL_DCT_H
#define HCASIM_MODEL_DCT_H

#include "model/rdma/dc.h"
#include "model/rdma/qp.h"

struct dc_note;

/* Events that the faults of initiators raise: see dct_fatal(). */
#define DCT_FAULT_EVENTS 3

struct dct {
    struct qp qp;            /* as responders see it (struct peer_owner); its obj is the target's */
    struct prm_dctc dctc[1]; /* as created */
    uint64_t key;
    bool takes_early;    /* packets that come out of order, as dp_ordering allows */
    uint32_t violations; /* of the key */
    bool armed;          /* the next one raises an event */
    uint8_t state;       /* PRM_DCTC_STATE_ */
    GQueue responders;
    struct work drain;
    unsigned drain_looks, drain_left;      /* looks that are done; responders left in this one */
    uint64_t next_event[DCT_FAULT_EVENTS]; /* when one of a kind is raised again */
    bool pager_told; /* and has not resumed the target: others that miss a page wait for that */
    struct peer *faulted; /* of whose fault it was told; NULL: that responder is gone */
};

struct dc_responder {
    struct peer peer;
    struct dct *dct;
    struct dc_note *note;  /* of its initiator */
    GList in_dct, in_pool; /* links */
};

/* Who sends: initiators of different hosts may have the same number. */
struct dc_source {
    uint8_t gid[16];
    uint32_t dci;
};

struct dc_note {
    struct dc_source source;        /* first: it is its own key */
    uint32_t session;               /* the last one */
    uint64_t at;                    /* when something of it came last */
    struct dc_responder *responder; /* NULL: the session has ended */
    GList ended;                    /* link, then */
};

/* What the targets of a function share. */
struct dc_pool {
    GHashTable *notes;
    GQueue ended;      /* notes without a responder: the oldest first */
    GQueue responders; /* the least recently used first */
    uint32_t session;  /* of its initiators, the last one; 0: none yet */
};

/* Initiators that are remembered beside those that have a responder. */
#define DC_NOTES 4096

/* -- model/rdma/dct.c ------------------------------------------------------------------------- */

enum syn dct_create(struct hca *hca, uint16_t uid, const struct prm_dctc *dctc, uint32_t *dctn);
enum syn dct_query(struct hca *hca, uint32_t dctn, struct prm_dctc *dctc);
/* Takes no more requests. DCT_DRAINED follows when what is owed to initiators is sent. */
enum syn dct_drain(struct hca *hca, uint16_t uid, uint32_t dctn);
enum syn dct_arm(struct hca *hca, uint16_t uid, uint32_t dctn);
/* SYN_AGAIN: of its many responders a part is gone, it takes nothing any more. */
enum syn dct_destroy(struct hca *hca, uint16_t uid, uint32_t dctn);
bool dct_trim(struct hca *hca, struct obj *obj);
void dct_free(struct hca *hca, struct obj *obj); /* after that */
void dct_cq_failed(struct hca *hca, struct obj *obj, const struct cq *cq);
/* The page that the peer's request was parked for is needed by none any more. */
void dct_unpark(struct dct *dct, const struct peer *peer);
/* A wrong access key came. */
void dct_key_violated(struct dct *dct);

static inline struct dc_responder *dc_responder_of(const struct peer *peer)
{
    return (struct dc_responder *)((char *)peer - offsetof(struct dc_responder, peer));
}

/* -- model/rdma/dc_responder.c ---------------------------------------------------------------- */

void dc_pool_init(struct hca *hca);
/* No target is left. */
void dc_pool_reset(struct hca *hca);
void dc_pool_clear(struct hca *hca);

/* A DC packet to a number that no QP has. */
void dct_rx(struct hca *hca, const struct roce_packet *pkt);
/* Whom a CNP to a number that no QP has tells of: of the session that it names. NULL: there is none
 * such. */
struct peer *dct_find_peer(struct hca *hca, const struct roce_packet *pkt);
/* Ends a session on this side. What arrives is flushed, if the target has a CQ that takes it. */
void dc_responder_free(struct dc_responder *responder, bool flush);
/* Nothing is to be sent to the initiator. */
bool dc_responder_is_quiet(const struct dc_responder *responder);

/* -- model/rdma/dc_note.c --------------------------------------------------------------------- */

guint dc_source_hash(gconstpointer key);
gboolean dc_source_equal(gconstpointer a, gconstpointer b);
struct dc_note *dc_note_find(struct hca *hca, const struct dc_source *source);
/* A new one, whose responder is set next. NULL: no room for it. */
struct dc_note *dc_note_new(struct hca *hca, const struct dc_source *source);
/* Its responder is gone. */
void dc_note_end(struct hca *hca, struct dc_note *note);
/* It gets another one. */
void dc_note_begin(struct hca *hca, struct dc_note *note);
/* Whether a session is later than the last one. */
bool dc_note_is_new(const struct dc_note *note, uint32_t session, uint64_t now);
void dc_notes_clear(struct hca *hca);

#endif
