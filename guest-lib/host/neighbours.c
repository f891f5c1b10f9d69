/* SPDX-License-Identifier: BSD-2-Clause */
#include "guest-lib/host/neighbours.h"
#include <string.h>

#define NS_PER_S 1000000000ull

struct neighbour {
    uint8_t gid[GID_BYTES], mac[MAC_BYTES];
    bool is_known;
    uint64_t told_ns;  /* when the address was last told, if it is known */
    uint64_t asked_ns; /* when it was last asked for, if unanswered */
    unsigned unanswered;
    GList link; /* list in order of use, the most recent first */
};

struct neighbours {
    const struct neighbours_ops *ops;
    void *opaque;
    uint8_t mac[MAC_BYTES];
    uint8_t own[NEIGHBOURS_OWN_MAX][GID_BYTES];
    unsigned num_own;
    GHashTable *table; /* by gid */
    GQueue used;
};

static guint neighbours_hash(gconstpointer gid)
{
    uint32_t words[GID_BYTES / 4];

    memcpy(words, gid, sizeof(words));
    return (words[0] ^ words[1] * 31) + (words[2] * 0x9e3779b1u ^ words[3] * 0x85ebca6bu);
}

static gboolean neighbours_equal(gconstpointer a, gconstpointer b)
{
    return !memcmp(a, b, GID_BYTES);
}

struct neighbours *neighbours_new(const struct neighbours_ops *ops, void *opaque,
                                  const uint8_t mac[MAC_BYTES])
{
    struct neighbours *n = g_new0(struct neighbours, 1);

    n->ops = ops;
    n->opaque = opaque;
    memcpy(n->mac, mac, sizeof(n->mac));
    n->table = g_hash_table_new_full(neighbours_hash, neighbours_equal, NULL, g_free);
    return n;
}

void neighbours_free(struct neighbours *n)
{
    g_hash_table_destroy(n->table);
    g_free(n);
}

void neighbours_add_own(struct neighbours *n, const uint8_t gid[GID_BYTES])
{
    g_assert_cmpuint(n->num_own, <, NEIGHBOURS_OWN_MAX);
    memcpy(n->own[n->num_own++], gid, GID_BYTES);
}

static bool neighbours_is_ipv4(const uint8_t gid[GID_BYTES])
{
    uint8_t same[GID_BYTES];

    gid_of_ipv4(same, gid + GID_IPV4);
    return !memcmp(same, gid, GID_BYTES);
}

static bool neighbours_is_own(const struct neighbours *n, const uint8_t gid[GID_BYTES])
{
    for (unsigned i = 0; i < n->num_own; i++) {
        if (!memcmp(n->own[i], gid, GID_BYTES)) {
            return true;
        }
    }
    return false;
}

/* The host's own address of the same family, which is the sender of questions for gid. */
static const uint8_t *neighbours_own_like(const struct neighbours *n, const uint8_t gid[GID_BYTES])
{
    for (unsigned i = 0; i < n->num_own; i++) {
        if (neighbours_is_ipv4(n->own[i]) == neighbours_is_ipv4(gid)) {
            return n->own[i];
        }
    }
    return NULL;
}

void neighbours_announce(const struct neighbours *n)
{
    uint8_t frame[NEIGH_FRAME_MAX];

    for (unsigned i = 0; i < n->num_own; i++) {
        if (neighbours_is_ipv4(n->own[i])) {
            n->ops->send(n->opaque, frame,
                         neigh_build_question(frame, n->mac, n->own[i], n->own[i], NULL));
        }
    }
}

/* -- the table ----------------------------------------------------------------------------------
 */

static void neighbours_use(struct neighbours *n, struct neighbour *one)
{
    g_queue_unlink(&n->used, &one->link);
    g_queue_push_head_link(&n->used, &one->link);
}

/* A neighbour that this host has not asked for is the first to make room, so such neighbours
 * displace only each other. */
static struct neighbour *neighbours_add(struct neighbours *n, const uint8_t gid[GID_BYTES],
                                        bool is_used)
{
    struct neighbour *one;

    if (n->used.length >= NEIGHBOURS_MAX) {
        one = g_queue_pop_tail_link(&n->used)->data;
        g_hash_table_remove(n->table, one->gid);
    }
    one = g_new0(struct neighbour, 1);
    memcpy(one->gid, gid, sizeof(one->gid));
    one->link.data = one;
    if (is_used) {
        g_queue_push_head_link(&n->used, &one->link);
    } else {
        g_queue_push_tail_link(&n->used, &one->link);
    }
    g_hash_table_insert(n->table, one->gid, one);
    return one;
}

/* -- received frames --------------------------------------------------------------------------- */

static void neighbours_learn(struct neighbours *n, uint64_t now_ns, const struct neigh_msg *msg,
                             bool is_for_us)
{
    struct neighbour *one = g_hash_table_lookup(n->table, msg->sender);
    bool was_known = one && one->is_known;

    if (neighbours_is_own(n, msg->sender) || !(one || is_for_us)) {
        return;
    }
    if (!one) {
        one = neighbours_add(n, msg->sender, false);
    }
    memcpy(one->mac, msg->mac, sizeof(one->mac));
    one->is_known = true;
    one->told_ns = now_ns;
    one->unanswered = 0;
    if (!was_known) {
        n->ops->answered(n->opaque);
    }
}

void neighbours_rx(struct neighbours *n, uint64_t now_ns, const uint8_t *frame, size_t len)
{
    uint8_t answer[NEIGH_FRAME_MAX];
    struct neigh_msg msg;
    bool is_for_us;

    if (!neigh_parse(frame, len, &msg) || !memcmp(msg.mac, n->mac, MAC_BYTES)) {
        return;
    }
    is_for_us = msg.is_question && neighbours_is_own(n, msg.asked);
    if (msg.has_sender) {
        neighbours_learn(n, now_ns, &msg, is_for_us);
    }
    if (is_for_us) {
        n->ops->send(n->opaque, answer, neigh_build_answer(answer, n->mac, &msg));
    }
}

/* -- questions --------------------------------------------------------------------------------- */

static void neighbours_ask(struct neighbours *n, uint64_t now_ns, struct neighbour *one)
{
    const uint8_t *own = neighbours_own_like(n, one->gid);
    uint8_t frame[NEIGH_FRAME_MAX];

    if (own && (!one->unanswered || now_ns - one->asked_ns >= NEIGHBOURS_RETRY_NS)) {
        one->asked_ns = now_ns;
        one->unanswered++;
        n->ops->send(
            n->opaque, frame,
            neigh_build_question(frame, n->mac, own, one->gid, one->is_known ? one->mac : NULL));
    }
}

bool neighbours_knows(const struct neighbours *n, const uint8_t gid[GID_BYTES])
{
    const struct neighbour *one = g_hash_table_lookup(n->table, gid);

    return one && one->is_known;
}

bool neighbours_find(struct neighbours *n, uint64_t now_ns, const uint8_t gid[GID_BYTES],
                     uint8_t mac[MAC_BYTES])
{
    struct neighbour *one = g_hash_table_lookup(n->table, gid);

    if (one) {
        neighbours_use(n, one);
    } else {
        one = neighbours_add(n, gid, true);
    }
    if (one->is_known && one->unanswered >= NEIGHBOURS_ASKS &&
        now_ns - one->asked_ns >= NEIGHBOURS_RETRY_NS) {
        one->is_known = false;
        one->unanswered = 0;
    }
    if (!one->is_known || now_ns - one->told_ns >= NEIGHBOURS_FRESH_S * NS_PER_S) {
        neighbours_ask(n, now_ns, one);
    }
    if (one->is_known) {
        memcpy(mac, one->mac, sizeof(one->mac));
    }
    return one->is_known;
}
