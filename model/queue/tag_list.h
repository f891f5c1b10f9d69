/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tag lists: the receives that an XRQ's software has posted with a tag. The device matches messages
 * with them (rdma-core: Documentation/tag_matching.md).
 *
 * The number of an entry is its handle. Each append says which entry the next append takes. An
 * entry is in one of three states:
 *
 *   free     it may be appended
 *   listed   messages are matched with it, in the order in which entries were appended
 *   taken    a message has matched, but its data is not complete yet
 *
 * A message that matches no entry is unexpected. Software gets such a message, and looks for its
 * receive among the receives that it has posted. It may just have posted the matching receive,
 * before it has seen the message. If the device gave that entry to a later message, messages would
 * overtake one another. Therefore both sides count the unexpected messages. An entry that arrives
 * while the counts differ is held: no message is matched with it until software has caught up.
 *
 * A list has at most 2^TAG_LIST_LOG_MAX entries, so searching the whole list for each message is
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
    uint64_t tag, mask; /* a message matches if its tag under the mask equals tag */
    struct sge buffer;  /* len 0: receives only a message without data */
    uint16_t prev, next;
    uint8_t state; /* enum tag_state */
    /* State taken: the QP or DC target that received the message, and the sender's QP. */
    uint32_t qpn, rqpn;
    /* While the data of a rendezvous is fetched: the headers of its request. */
    struct prm_tmh tmh[1];
    struct prm_rvh rvh[1];
};

struct tag_list {
    uint8_t log_size;
    uint16_t append_next; /* the entry that the next append takes */
    uint16_t head, tail;  /* the listed entries in order; TAG_NONE: none */
    uint16_t held;        /* the first held entry, all after it are held; TAG_NONE: none */
    /* number of unexpected messages: as software said, and the device's own count */
    uint16_t sw_phase, hw_phase;
    struct tag_entry entries[];
};

/* Makes the list that the context describes. The caller has checked log_matching_list_sz and
 * append_next_index. NULL: no memory. */
struct tag_list *tag_list_new(struct hca *hca, const struct prm_tag_matching_topology_context *ctx);
void tag_list_free(struct hca *hca, struct tag_list *list); /* NULL is allowed */
void tag_list_query(const struct tag_list *list, struct prm_tag_matching_topology_context *ctx);

/* Appends an entry with tag, mask and buffer. The append after this one takes entry next. Returns
 * the handle. TAG_NONE: there is no entry next, or the entry to be taken is not free. */
uint16_t tag_list_append(struct tag_list *list, uint16_t next, uint64_t tag, uint64_t mask,
                         const struct sge *buffer);
/* False: the entry was not listed. */
bool tag_list_remove(struct tag_list *list, uint16_t handle);
/* Software has seen this many unexpected messages. */
void tag_list_sync(struct tag_list *list, uint16_t sw_phase);

/* Takes the first entry that matches a message with that tag. TAG_NONE: no entry matches, the
 * message is unexpected. */
uint16_t tag_list_take(struct hca *hca, struct tag_list *list, uint64_t tag);
/* Frees a taken entry. */
void tag_list_release(struct tag_list *list, uint16_t handle);

/* Counts an unexpected message that is being delivered; takes the count back if the message was not
 * delivered. */
void tag_list_unexpected(struct tag_list *list);
void tag_list_not_delivered(struct tag_list *list);

#endif
