/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tag lists: receives that an XRQ's software has posted with a tag, for the device to match
 * messages with (rdma-core: Documentation/tag_matching.md).
 *
 * An entry has a number, its handle. Software says which entry an append takes with the append
 * before it. An entry is
 *
 *   free     it may be appended
 *   listed   messages are matched with it, in the order in which entries were appended
 *   taken    a message has matched, and its data is not all there
 *
 * A message that matches no entry is unexpected: software gets it, and will look for its receive
 * among those that it has posted. It may have posted one just now which it does not yet know to be
 * the message's; if the device let a later message have that, messages would overtake one another.
 * So each side counts the unexpected messages, and an entry that comes with another count than the
 * device's is held: it is matched with nothing until software has caught up.
 *
 * A list has 2^TAG_LIST_LOG_MAX entries at most, so to look through all of it for each message is
 * bounded work.
 */
#ifndef HCASIM_MODEL_TAG_LIST_H
#define HCASIM_MODEL_TAG_LIST_H

#include "model/core/hca.h"
#include "model/memory/mkey.h"
#include "prm/prm.h"

#define TAG_LIST_LOG_MAX 7
#define TAG_NONE         0xffff /* no entry */

enum tag_state {
    TAG_FREE,
    TAG_LISTED,
    TAG_TAKEN,
};

struct tag_entry {
    uint64_t tag, mask; /* a message's tag under the mask is to be tag */
    struct sge buffer;  /* len 0: for a message without data */
    uint16_t prev, next;
    uint8_t state; /* enum tag_state */
    /* Taken: the QP or DC target by which the message came, and who sent it. */
    uint32_t qpn, rqpn;
    /* While the data of a rendezvous is fetched: what its request began with. */
    struct prm_tmh tmh[1];
    struct prm_rvh rvh[1];
};

struct tag_list {
    uint8_t log_size;
    uint16_t append_next;        /* the entry that the next append takes */
    uint16_t head, tail;         /* what is listed, in order; TAG_NONE */
    uint16_t held;               /* the first of those that are held; TAG_NONE */
    uint16_t sw_phase, hw_phase; /* unexpected messages, as software has said and as it is */
    struct tag_entry entries[];
};

/* As its context says. The caller has checked log_matching_list_sz and append_next_index. NULL: no
 * memory. */
struct tag_list *tag_list_new(struct hca *hca, const struct prm_tag_matching_topology_context *ctx);
void tag_list_free(struct hca *hca, struct tag_list *list); /* NULL is fine */
void tag_list_query(const struct tag_list *list, struct prm_tag_matching_topology_context *ctx);

/* The next entry gets tag, mask and buffer; the append after this one takes entry next. Returns the
 * handle. TAG_NONE: there is no entry next, or the one to be taken is not free. */
uint16_t tag_list_append(struct tag_list *list, uint16_t next, uint64_t tag, uint64_t mask,
                         const struct sge *buffer);
/* False: it was not listed. */
bool tag_list_remove(struct tag_list *list, uint16_t handle);
/* Software has seen so many unexpected messages. */
void tag_list_sync(struct tag_list *list, uint16_t sw_phase);

/* Takes the first entry that a message of that tag matches. TAG_NONE: none, it is unexpected. */
uint16_t tag_list_take(struct hca *hca, struct tag_list *list, uint64_t tag);
/* A taken entry is free again. */
void tag_list_release(struct tag_list *list, uint16_t handle);

/* An unexpected message is handed on, and after all was not. */
void tag_list_unexpected(struct tag_list *list);
void tag_list_not_delivered(struct tag_list *list);

#endif
