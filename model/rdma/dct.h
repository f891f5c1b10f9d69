/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The target of dynamic connections (DCT), and the responders that the targets of a function give
 * to initiators (model/rdma/dc.h).
 *
 *   dct.c           the object, its life, its events
 *   dc_responder.c  sessions: each has a responder, from a pool that all targets share
 *   dc_note.c       remembers the last session of each initiator
 *
 * A responder is a peer of the target. The peer's requests are carried out as on any reliable
 * connection (model/rdma/responder.h). To the responder, the target is a QP without queues, which
 * is in no table. A fault ends only the responder: it repeats its NAK, and takes nothing more in
 * this session.
 *
 * The pool has hca_limits.dc_responders responders. If none is free, a CONNECT gets the least
 * recently used responder, provided that its initiator has been silent for DC_IDLE_NS. Otherwise
 * the CONNECT is answered with a CNAK.
 */
#ifndef HCASIM_MODEL_DCT_H
#define HCASIM_MODEL_DCT_H

#include "model/rdma/dc.h"
#include "model/rdma/qp.h"

struct dc_note;

/* Types of events that faults of initiators raise: see dct_fatal(). */
#define DCT_FAULT_EVENTS 3

struct dct {
    struct qp qp; /* as responders see it (struct peer_owner); its obj is the DCT object */
    struct prm_dctc dctc[1]; /* as created */
    uint64_t key;
    bool takes_early;    /* takes packets out of order, as dp_ordering allows */
    uint32_t violations; /* violations of the access key */
    bool armed;          /* the next violation raises an event */
    uint8_t state;       /* PRM_DCTC_STATE_ */
    GQueue responders;
    struct work drain;
    unsigned drain_looks, drain_left;      /* looks done; responders left to look at in this look */
    uint64_t next_event[DCT_FAULT_EVENTS]; /* for each type: when it may be raised again */
    /* the pager has been told and has not resumed the target yet: other responders that miss a page
     * wait */
    bool pager_told;
    /* the responder whose fault the pager was told; NULL: the responder is gone */
    struct peer *faulted;
};

struct dc_responder {
    struct peer peer;
    struct dct *dct;
    struct dc_note *note;  /* the note of its initiator */
    GList in_dct, in_pool; /* links */
};

/* Identifies a sender: initiators of different hosts may have the same number. */
struct dc_source {
    uint8_t gid[16];
    uint32_t dci;
};

struct dc_note {
    struct dc_source source;        /* first: it is the key of the hash table */
    uint32_t session;               /* number of the initiator's last session */
    uint64_t at;                    /* when a packet of that session last came */
    struct dc_responder *responder; /* NULL: the session has ended */
    GList ended;                    /* link in dc_pool.ended, if the session has ended */
};

/* State that all targets of a function share. */
struct dc_pool {
    GHashTable *notes;
    GQueue ended;      /* notes without a responder, oldest first */
    GQueue responders; /* least recently used first */
    uint32_t session; /* number of the last session of the function's own initiators; 0: none yet */
};

/* The most notes without a responder. */
#define DC_NOTES 4096

/* -- model/rdma/dct.c ------------------------------------------------------------------------- */

/* NULL: no such target. */
struct dct *dct_find(struct hca *hca, uint32_t dctn);
enum syn dct_create(struct hca *hca, uint16_t uid, const struct prm_dctc *dctc, uint32_t *dctn);
enum syn dct_query(struct hca *hca, uint32_t dctn, struct prm_dctc *dctc);
/* The target takes no more requests. DCT_DRAINED follows when all answers owed to initiators are
 * sent. */
enum syn dct_drain(struct hca *hca, uint16_t uid, uint32_t dctn);
enum syn dct_arm(struct hca *hca, uint16_t uid, uint32_t dctn);
/* SYN_AGAIN: some of its many responders are freed, and it takes nothing any more; call again. */
enum syn dct_destroy(struct hca *hca, uint16_t uid, uint32_t dctn);
bool dct_trim(struct hca *hca, struct obj *obj);
void dct_free(struct hca *hca, struct obj *obj); /* after dct_trim() */
void dct_cq_failed(struct hca *hca, struct obj *obj, const struct cq *cq);
/* The peer's parked request needs no page any more, so the pager's answer is ignored. */
void dct_unpark(struct dct *dct, const struct peer *peer);
/* A wrong access key has arrived. */
void dct_key_violated(struct dct *dct);

static inline struct dc_responder *dc_responder_of(const struct peer *peer)
{
    return (struct dc_responder *)((char *)peer - offsetof(struct dc_responder, peer));
}

/* -- model/rdma/dc_responder.c ---------------------------------------------------------------- */

void dc_pool_init(struct hca *hca);
/* Called when no target is left. */
void dc_pool_reset(struct hca *hca);
void dc_pool_clear(struct hca *hca);

/* Takes a DC packet to a number that no QP has. */
void dct_rx(struct hca *hca, const struct roce_packet *pkt);
/* The peer that a CNP to a number that no QP has is about, found by the session that the CNP names.
 * NULL: there is no such session. */
struct peer *dct_find_peer(struct hca *hca, const struct roce_packet *pkt);
/* Ends a session on this side. flush: the receive WQE of an arriving message completes with
 * WR_FLUSH_ERR, if the target has a CQ that takes the CQE. */
void dc_responder_free(struct dc_responder *responder, bool flush);
/* Whether no answer is waiting to be sent to the initiator. */
bool dc_responder_is_quiet(const struct dc_responder *responder);

/* -- model/rdma/dc_note.c --------------------------------------------------------------------- */

guint dc_source_hash(gconstpointer key);
gboolean dc_source_equal(gconstpointer a, gconstpointer b);
struct dc_note *dc_note_find(struct hca *hca, const struct dc_source *source);
/* Makes a note; the caller sets its responder next. NULL: no room for it. */
struct dc_note *dc_note_new(struct hca *hca, const struct dc_source *source);
/* The note's responder is gone. */
void dc_note_end(struct hca *hca, struct dc_note *note);
/* The note gets another responder. */
void dc_note_begin(struct hca *hca, struct dc_note *note);
/* Whether a session is newer than the last one of the initiator. */
bool dc_note_is_new(const struct dc_note *note, uint32_t session, uint64_t now);
void dc_notes_clear(struct hca *hca);

#endif
