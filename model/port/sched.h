/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scheduling elements: trees that divide bandwidth among send queues.
 *
 * An inner element is a TSAR (transmit scheduling arbiter), a leaf is a group of queues. Each
 * element but the root has a share, relative to its siblings, and may have a limit. What an element
 * does not use goes to its siblings, in proportion to their shares. The queues of a group take
 * turns.
 *
 * A queue of a group is a member. Before each frame, the queue asks whether it may send. If not, it
 * stands in the queue of its group. The work of the root picks a leaf along the path of the
 * elements that are furthest behind their shares, and runs the work of the leaf's first member,
 * which may then send up to a grant. Elements that have reached their limits are left out until
 * their timers fire.
 *
 * A member's wait ends by a grant, or by sched_stop() or sched_join() when the queue is reset,
 * fails, changes its group or ends. The root's work is on the ready list while the tree has a
 * member that may be picked; timers of elements and members that ask put it there.
 */
#ifndef HCASIM_MODEL_SCHED_H
#define HCASIM_MODEL_SCHED_H

#include "model/core/bucket.h"
#include "model/core/hca.h"
#include "prm/prm.h"

#define SCHED_LOG_ELEMENTS 11 /* log2 of the elements of a function */
#define SCHED_LOG_GROUPS   10 /* log_max_qos_nic_queue_group */
#define SCHED_MAX_LEVELS   8  /* elements from a root to a leaf, as many as HTB has */
#define SCHED_MAX_SHARE    100

struct sched_elem {
    struct obj obj; /* refs: children, queues */
    struct prm_sched_elem_obj ctx[1];
    struct sched_elem *parent; /* NULL: a root */
    unsigned level;            /* 1: a root */
    unsigned children;
    bool is_leaf;
    bool by_turns;   /* a TSAR that divides equally, whatever the shares are */
    bool is_strict;  /* a TSAR that serves the child of the least rank first */
    bool is_own;     /* the device's own, not an object; nothing counts its references */
    unsigned rank;   /* below a strict TSAR */
    uint32_t weight; /* its share */
    uint32_t kbps;   /* its limit; 0: none */
    struct bucket bucket;
    /* Its place among its siblings: bytes sent, in proportion to its share. The sibling with the
     * least is picked. */
    uint64_t place;
    uint64_t now;                 /* the place of the child that was picked last */
    unsigned pos;                 /* position in the parent's heap + 1; 0: it is not there */
    bool held;                    /* the limit holds it until the timer fires */
    GPtrArray *ready;             /* TSAR: heap of the children that may be picked */
    struct sched_member *waiting; /* leaf: ring of the members that wait; the first one */
    struct hca_timer timer;
    struct work work; /* a root's */
};

/* A queue's membership in a group. */
struct sched_member {
    struct sched_elem *leaf;          /* NULL: no group */
    struct work *work;                /* sends the queue's frames */
    struct sched_member *prev, *next; /* in the ring of the leaf; NULL: it does not wait */
    bool granted;
    uint32_t sent; /* bytes sent of this grant */
    int64_t left;  /* bytes that it may send before other members of the group catch up */
};

/* CREATE_SCHEDULING_ELEMENT. */
enum syn sched_create(struct hca *hca, uint16_t uid, const struct prm_scheduling_context *ctx,
                      uint32_t *id);
/* CREATE_GENERAL_OBJECT, MODIFY_GENERAL_OBJECT. */
enum syn sched_create_general(struct hca *hca, uint16_t uid, const void *layout, uint32_t *id);
enum syn sched_modify_general(struct hca *hca, struct obj *obj, const void *layout);
/* fields: the bits of modify_bitmask. A changed limit holds at once. */
enum syn sched_modify(struct hca *hca, struct sched_elem *elem, uint64_t fields,
                      const struct prm_scheduling_context *ctx);
enum syn sched_find(struct hca *hca, uint16_t uid, uint32_t id, struct sched_elem **elem);
/* The group that a queue of the user context may join; number 0 is NULL, no group. */
enum syn sched_find_group(struct hca *hca, uint16_t uid, uint32_t id, struct sched_elem **leaf);
void sched_free(struct hca *hca, struct obj *obj);

/* The queue, which is the object owner, joins a group (NULL: none) and leaves its former one. */
void sched_join(struct hca *hca, struct obj *owner, struct sched_member *m, struct sched_elem *leaf,
                struct work *work);
/* The queue does not wait any more. */
void sched_stop(struct sched_member *m);

/* -- the device's own trees (model/port/ets.h), which no command names */

enum sched_own_kind {
    SCHED_OWN_SHARES, /* a TSAR that divides by shares */
    SCHED_OWN_STRICT,
    SCHED_OWN_LEAF
};

/* Makes an element with share 1 and no limit. parent NULL: a root. */
struct sched_elem *sched_own(struct hca *hca, struct sched_elem *parent, enum sched_own_kind kind);
/* share 0 counts as 1; kbps 0 is no limit. Changes hold at once. */
void sched_own_set(struct hca *hca, struct sched_elem *elem, uint32_t share, uint32_t kbps);
/* Frees an element that has no members; children before their parents. NULL is allowed. */
void sched_own_free(struct hca *hca, struct sched_elem *elem);

/* -- members */

bool sched_ask(struct hca *hca, struct sched_member *m);
void sched_charge(struct sched_member *m, size_t bytes);

/* Called before each frame. False: not yet; the queue's work runs when it may. */
static inline bool sched_may_send(struct hca *hca, struct sched_member *m)
{
    return G_LIKELY(!m->leaf) || m->granted || sched_ask(hca, m);
}

/* A frame of the queue was sent: its bytes from the Ethernet header, without FCS. */
static inline void sched_note_sent(struct sched_member *m, size_t bytes)
{
    if (G_UNLIKELY(m->leaf)) {
        sched_charge(m, bytes);
    }
}

#endif
