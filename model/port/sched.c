/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Divides bandwidth in trees. Each element has a place, which grows by what it sends, divided by
 * its share. The child with the least place is picked next (start-time fair queueing). An element
 * that begins to send again is not far behind the child that was picked last: it has no claim to
 * what it did not use. Below a strict TSAR, the place of an element is its rank and never changes.
 */
#include <stddef.h>
#include <string.h>
#include "model/core/pd.h"
#include "model/port/sched.h"

/* A grant ends after so many bytes, or when a limit on the path is ahead by so much time. */
#define GRANT_BYTES 16384
#define GRANT_NS    100000ull
/* A limit makes up for so much time when its timer comes late, and after a pause. */
#define LATE_NS  10000000ull
#define PAUSE_NS 100000ull
/* Places have so many steps for a byte, so that divided bytes are still exact. */
#define STEPS 4096
/* Bytes that an element may catch up on. A queue that waits for credit of the wire is away for a
 * moment, and keeps its share by this. */
#define CATCH_UP 65536
/* Bytes that the members of a group are dealt in turn; at least a frame. */
#define DEAL 10240

/* -- heaps of children, by place --------------------------------------------------------------- */

static struct sched_elem *sched_at(const struct sched_elem *tsar, unsigned pos)
{
    return g_ptr_array_index(tsar->ready, pos);
}

static void sched_put(struct sched_elem *tsar, unsigned pos, struct sched_elem *child)
{
    tsar->ready->pdata[pos] = child;
    child->pos = pos + 1;
}

/* The child's place has changed. */
static void sched_sift(struct sched_elem *tsar, struct sched_elem *child)
{
    unsigned pos = child->pos - 1, n = tsar->ready->len;

    while (pos > 0 && sched_at(tsar, (pos - 1) / 2)->place > child->place) {
        sched_put(tsar, pos, sched_at(tsar, (pos - 1) / 2));
        pos = (pos - 1) / 2;
    }
    for (;;) {
        unsigned next = 2 * pos + 1;

        if (next + 1 < n && sched_at(tsar, next + 1)->place < sched_at(tsar, next)->place) {
            next++;
        }
        if (next >= n || sched_at(tsar, next)->place >= child->place) {
            break;
        }
        sched_put(tsar, pos, sched_at(tsar, next));
        pos = next;
    }
    sched_put(tsar, pos, child);
}

static void sched_insert(struct sched_elem *tsar, struct sched_elem *child)
{
    g_ptr_array_add(tsar->ready, child);
    child->pos = tsar->ready->len;
    sched_sift(tsar, child);
}

static void sched_remove(struct sched_elem *tsar, struct sched_elem *child)
{
    struct sched_elem *last = sched_at(tsar, tsar->ready->len - 1);

    g_ptr_array_set_size(tsar->ready, (int)tsar->ready->len - 1);
    if (last != child) {
        sched_put(tsar, child->pos - 1, last);
        sched_sift(tsar, last);
    }
    child->pos = 0;
}

/* -- which elements may be picked -------------------------------------------------------------- */

static bool sched_is_busy(const struct sched_elem *elem)
{
    return elem->is_leaf ? elem->waiting != NULL : elem->ready->len > 0;
}

/* The element's place grows by this for bytes that it sends. */
static uint64_t sched_steps(const struct sched_elem *elem, uint64_t bytes)
{
    if (elem->parent->is_strict) {
        return 0;
    }
    return bytes * STEPS / (elem->parent->by_turns ? 1u : elem->weight);
}

/* The element has something to send, or is held no more. */
static void sched_wake(struct hca *hca, struct sched_elem *elem)
{
    struct sched_elem *parent;

    for (; (parent = elem->parent); elem = parent) {
        uint64_t back = sched_steps(elem, CATCH_UP);

        if (elem->held || elem->pos) {
            return;
        }
        elem->place =
            parent->is_strict ? elem->rank : MAX(elem->place, parent->now - MIN(parent->now, back));
        sched_insert(parent, elem);
    }
    hca_schedule(hca, &elem->work);
}

/* The element has nothing to send any more, or is held. */
static void sched_rest(struct sched_elem *elem)
{
    while (elem->pos) {
        struct sched_elem *parent = elem->parent;

        sched_remove(parent, elem);
        if (sched_is_busy(parent)) {
            return;
        }
        elem = parent;
    }
}

static void sched_due(struct hca *hca, struct hca_timer *timer)
{
    struct sched_elem *elem =
        (struct sched_elem *)((char *)timer - offsetof(struct sched_elem, timer));

    elem->held = false;
    if (elem->kbps) {
        bucket_refill(&elem->bucket, hca_now(hca), elem->kbps, (int64_t)(elem->kbps * LATE_NS));
    }
    if (sched_is_busy(elem)) {
        sched_wake(hca, elem);
    }
}

/* Whether the element's limit lets it send now. Otherwise it is held. */
static bool sched_is_time(struct hca *hca, struct sched_elem *elem)
{
    uint64_t now;

    if (!elem->kbps) {
        return true;
    }
    now = hca_now(hca);
    bucket_refill(&elem->bucket, now, elem->kbps, (int64_t)(elem->kbps * PAUSE_NS));
    if (elem->bucket.debt <= 0) {
        return true;
    }
    elem->held = true;
    sched_rest(elem);
    hca_timer_set(hca, &elem->timer, now + bucket_wait(&elem->bucket, elem->kbps));
    return false;
}

/* -- members ----------------------------------------------------------------------------------- */

static void sched_append(struct sched_member *m)
{
    struct sched_member *first = m->leaf->waiting;

    if (first) {
        m->prev = first->prev;
        m->next = first;
        first->prev->next = m;
        first->prev = m;
    } else {
        m->prev = m->next = m;
    }
    if (!first || m->left > 0) {
        m->leaf->waiting = m; /* it has not used up what it was dealt */
    }
}

static void sched_take_out(struct sched_member *m)
{
    if (m->leaf->waiting == m) {
        m->leaf->waiting = m->next == m ? NULL : m->next;
    }
    m->prev->next = m->next;
    m->next->prev = m->prev;
    m->prev = m->next = NULL;
}

bool sched_ask(struct hca *hca, struct sched_member *m)
{
    if (!m->next) {
        sched_append(m);
        sched_wake(hca, m->leaf);
    }
    return false;
}

void sched_charge(struct sched_member *m, size_t bytes)
{
    bool over;

    m->sent += (uint32_t)bytes;
    m->left -= (int64_t)bytes;
    over = m->sent >= GRANT_BYTES;
    for (struct sched_elem *elem = m->leaf; elem->parent; elem = elem->parent) {
        elem->place += sched_steps(elem, bytes);
        if (elem->pos) {
            sched_sift(elem->parent, elem);
        }
        if (elem->kbps) {
            elem->bucket.debt += bucket_cost(bytes);
            over = over || elem->bucket.debt > (int64_t)(elem->kbps * GRANT_NS);
        }
    }
    m->granted = m->granted && !over;
}

void sched_stop(struct sched_member *m)
{
    m->granted = false;
    if (m->next) {
        sched_take_out(m);
        if (!sched_is_busy(m->leaf)) {
            sched_rest(m->leaf);
        }
    }
}

/* The object that a member of this leaf refers to. NULL: the leaf is the device's own, and no
 * object. */
static struct obj *sched_object(struct sched_elem *leaf)
{
    return leaf && !leaf->is_own ? &leaf->obj : NULL;
}

void sched_join(struct hca *hca, struct obj *owner, struct sched_member *m, struct sched_elem *leaf,
                struct work *work)
{
    bool waited = m->next;

    if (m->leaf) {
        sched_stop(m);
        obj_unref(owner, sched_object(m->leaf));
    }
    m->leaf = leaf;
    m->work = work;
    obj_ref(owner, sched_object(leaf));
    if (waited) {
        hca_schedule(hca, work);
    }
}

/* -- the root's work --------------------------------------------------------------------------- */

/* The leaf whose turn it is, or NULL. Elements that their limits hold are taken out on the way, so
 * this ends. */
static struct sched_elem *sched_pick(struct hca *hca, struct sched_elem *root)
{
    struct sched_elem *elem = root;

    while (!elem->is_leaf) {
        struct sched_elem *child;

        if (!elem->ready->len) {
            return NULL; /* only the root: others without children are not ready */
        }
        child = sched_at(elem, 0);
        if (sched_is_time(hca, child)) {
            elem->now = child->place;
            elem = child;
        } else {
            hca_spend(hca, 1);
            elem = root;
        }
    }
    return elem;
}

/* The member of the group whose turn it is, not waiting any more. Members that have used up what
 * they were dealt are dealt again, and wait for the others. */
static struct sched_member *sched_next(struct sched_elem *leaf)
{
    struct sched_member *m;

    while ((m = leaf->waiting)->left <= 0) {
        m->left += DEAL;
        leaf->waiting = m->next;
    }
    sched_take_out(m);
    return m;
}

static void sched_run(struct hca *hca, struct work *work)
{
    struct sched_elem *root =
        (struct sched_elem *)((char *)work - offsetof(struct sched_elem, work));
    struct sched_elem *leaf = sched_pick(hca, root);
    struct sched_member *m;

    if (!leaf) {
        return;
    }
    m = sched_next(leaf);
    m->granted = true;
    m->sent = 0;
    hca_run_now(hca, m->work);
    m->granted = false;
    if (!sched_is_busy(leaf)) {
        sched_rest(leaf);
    }
    /* What has just run stands before the root on the ready list, so it is back in its group when
     * the root picks again. */
    if (sched_is_busy(root)) {
        hca_schedule(hca, work);
    }
}

/* -- the tree ---------------------------------------------------------------------------------- */

enum syn sched_find(struct hca *hca, uint16_t uid, uint32_t id, struct sched_elem **elem)
{
    *elem = (struct sched_elem *)obj_find(&hca->sched_elements, id);
    return uid_check(*elem ? &(*elem)->obj : NULL, uid, SYN_NO_SCHEDULING_ELEMENT);
}

enum syn sched_find_group(struct hca *hca, uint16_t uid, uint32_t id, struct sched_elem **leaf)
{
    enum syn syn;

    *leaf = NULL;
    if (id == 0) {
        return SYN_OK;
    }
    syn = sched_find(hca, uid, id, leaf);
    return syn == SYN_OK && !(*leaf)->is_leaf ? SYN_SCHED_KIND : syn;
}

/* Share and limit, as a context has them. */
static enum syn sched_check_values(bool is_root, uint32_t share, uint32_t mbps)
{
    if (is_root && (share || mbps)) {
        return SYN_SCHED_ROOT;
    }
    return share > SCHED_MAX_SHARE ? SYN_LIMIT : SYN_OK;
}

static void sched_set_share(struct sched_elem *elem, uint32_t share)
{
    PRM_SET(scheduling_context, PRM_PTR(sched_elem_obj, elem->ctx, scheduling_context), bw_share,
            share);
    elem->weight = share ? share : 1; /* 0 is the device's default */
}

/* Sets a limit, which holds at once. */
static void sched_limit(struct hca *hca, struct sched_elem *elem, uint32_t kbps)
{
    elem->kbps = kbps;
    elem->bucket = (struct bucket){.debt_at = hca_now(hca)};
    if (elem->held) {
        hca_timer_stop(hca, &elem->timer);
        sched_due(hca, &elem->timer);
    }
}

static void sched_set_limit(struct hca *hca, struct sched_elem *elem, uint32_t mbps)
{
    PRM_SET(scheduling_context, PRM_PTR(sched_elem_obj, elem->ctx, scheduling_context),
            max_average_bw, mbps);
    sched_limit(hca, elem, MIN(mbps, UINT32_MAX / 1000) * 1000);
}

static enum syn sched_check_kind(const struct prm_scheduling_context *ctx)
{
    const struct prm_tsar_element *tsar = PRM_PTR(scheduling_context, ctx, element_attributes);
    uint32_t type = PRM_GET(tsar_element, tsar, tsar_type);

    switch (PRM_GET(scheduling_context, ctx, element_type)) {
    case PRM_SCHEDULING_ELEMENT_TYPE_TSAR:
        return type == PRM_TSAR_TYPE_DWRR || type == PRM_TSAR_TYPE_ROUND_ROBIN ? SYN_OK
                                                                               : SYN_SCHED_KIND;
    case PRM_SCHEDULING_ELEMENT_TYPE_QUEUE_GROUP:
        return type == 0 ? SYN_OK : SYN_SCHED_KIND;
    default:
        return SYN_SCHED_KIND;
    }
}

/* The parent that the context names; NULL for a root. */
static enum syn sched_find_parent(struct hca *hca, uint16_t uid,
                                  const struct prm_scheduling_context *ctx,
                                  struct sched_elem **parent)
{
    uint32_t id = PRM_GET(scheduling_context, ctx, parent_element_id);
    bool is_tsar =
        PRM_GET(scheduling_context, ctx, element_type) == PRM_SCHEDULING_ELEMENT_TYPE_TSAR;
    enum syn syn;

    *parent = NULL;
    if (id == 0) {
        return is_tsar ? SYN_OK : SYN_SCHED_KIND;
    }
    syn = sched_find(hca, uid, id, parent);
    if (syn != SYN_OK) {
        return syn;
    }
    if ((*parent)->is_leaf) {
        return SYN_SCHED_KIND;
    }
    /* the last level has only groups, because a TSAR there could have no children */
    return (*parent)->level + is_tsar < SCHED_MAX_LEVELS ? SYN_OK : SYN_SCHED_DEPTH;
}

static enum syn sched_make(struct hca *hca, enum obj_kind kind, uint16_t uid,
                           const struct prm_scheduling_context *ctx, uint32_t *id)
{
    const struct prm_tsar_element *tsar = PRM_PTR(scheduling_context, ctx, element_attributes);
    uint32_t share = PRM_GET(scheduling_context, ctx, bw_share);
    uint32_t mbps = PRM_GET(scheduling_context, ctx, max_average_bw);
    struct sched_elem *elem, *parent = NULL;
    enum syn syn = sched_check_kind(ctx);

    if (syn == SYN_OK) {
        syn = sched_find_parent(hca, uid, ctx, &parent);
    }
    if (syn == SYN_OK) {
        syn = sched_check_values(!parent, share, mbps);
    }
    if (syn != SYN_OK) {
        return syn;
    }
    elem = obj_make(hca, kind, uid, sizeof(*elem));
    if (!elem) {
        return SYN_NO_MEMORY;
    }
    PRM_SET(sched_elem_obj, elem->ctx, scheduling_hierarchy, PRM_SCHEDULING_HIERARCHY_NIC);
    memcpy(PRM_PTR(sched_elem_obj, elem->ctx, scheduling_context), ctx, sizeof(*ctx));
    elem->is_leaf =
        PRM_GET(scheduling_context, ctx, element_type) == PRM_SCHEDULING_ELEMENT_TYPE_QUEUE_GROUP;
    elem->by_turns = PRM_GET(tsar_element, tsar, tsar_type) == PRM_TSAR_TYPE_ROUND_ROBIN;
    elem->level = parent ? parent->level + 1 : 1;
    elem->parent = parent;
    elem->ready = elem->is_leaf ? NULL : g_ptr_array_new();
    elem->timer.fire = sched_due;
    elem->work.run = sched_run;
    sched_set_share(elem, share);
    sched_set_limit(hca, elem, mbps);
    if (parent) {
        parent->children++;
        parent->obj.refs++; /* sched_free() says why this is no obj_ref() */
    }
    *id = elem->obj.num;
    return SYN_OK;
}

enum syn sched_create(struct hca *hca, uint16_t uid, const struct prm_scheduling_context *ctx,
                      uint32_t *id)
{
    return sched_make(hca, OBJ_SCHEDULING_ELEMENT, uid, ctx, id);
}

enum syn sched_create_general(struct hca *hca, uint16_t uid, const void *layout, uint32_t *id)
{
    if (PRM_GET(sched_elem_obj, layout, scheduling_hierarchy) != PRM_SCHEDULING_HIERARCHY_NIC) {
        return SYN_SCHED_TREE;
    }
    return sched_make(hca, OBJ_SCHED_ELEM, uid, PRM_PTR(sched_elem_obj, layout, scheduling_context),
                      id);
}

enum syn sched_modify(struct hca *hca, struct sched_elem *elem, uint64_t fields,
                      const struct prm_scheduling_context *ctx)
{
    uint32_t share = PRM_GET(scheduling_context, ctx, bw_share);
    uint32_t mbps = PRM_GET(scheduling_context, ctx, max_average_bw);
    bool sets_share = fields & PRM_MODIFY_SCHED_BW_SHARE;
    bool sets_limit = fields & PRM_MODIFY_SCHED_MAX_AVERAGE_BW;
    enum syn syn = sched_check_values(!elem->parent, sets_share ? share : 0, sets_limit ? mbps : 0);

    if (fields & ~(uint64_t)(PRM_MODIFY_SCHED_BW_SHARE | PRM_MODIFY_SCHED_MAX_AVERAGE_BW)) {
        return SYN_SCHED_FIELDS;
    }
    if (syn != SYN_OK) {
        return syn;
    }
    if (sets_share) {
        sched_set_share(elem, share);
    }
    if (sets_limit) {
        sched_set_limit(hca, elem, mbps);
    }
    return SYN_OK;
}

enum syn sched_modify_general(struct hca *hca, struct obj *obj, const void *layout)
{
    return sched_modify(hca, (struct sched_elem *)obj,
                        PRM_GET(sched_elem_obj, layout, modify_field_select),
                        PRM_PTR(sched_elem_obj, layout, scheduling_context));
}

/* A reset ends the elements in the order of their numbers, so a parent may end before its children.
 * It has no queues then. Therefore children count in the refs of their parent without a name, and
 * look for their parent by its number. */
void sched_free(struct hca *hca, struct obj *obj)
{
    struct sched_elem *elem = (struct sched_elem *)obj;
    const void *ctx = PRM_PTR(sched_elem_obj, elem->ctx, scheduling_context);
    struct sched_elem *parent = (struct sched_elem *)obj_find(
        &hca->sched_elements, PRM_GET(scheduling_context, ctx, parent_element_id));

    if (elem->parent && elem->parent == parent) {
        parent->children--;
        parent->obj.refs--;
    }
    obj->refs -= elem->children;
    hca_timer_stop(hca, &elem->timer);
    hca_unschedule(&elem->work);
    if (elem->ready) {
        g_ptr_array_unref(elem->ready);
    }
    obj_end(hca, obj);
}

/* -- the device's own trees -------------------------------------------------------------------- */

struct sched_elem *sched_own(struct hca *hca, struct sched_elem *parent, enum sched_own_kind kind)
{
    struct sched_elem *elem = g_new0(struct sched_elem, 1);

    elem->is_own = true;
    elem->is_leaf = kind == SCHED_OWN_LEAF;
    elem->is_strict = kind == SCHED_OWN_STRICT;
    elem->parent = parent;
    elem->level = parent ? parent->level + 1 : 1;
    elem->ready = elem->is_leaf ? NULL : g_ptr_array_new();
    elem->timer.fire = sched_due;
    elem->work.run = sched_run;
    sched_own_set(hca, elem, 1, 0);
    return elem;
}

void sched_own_set(struct hca *hca, struct sched_elem *elem, uint32_t share, uint32_t kbps)
{
    elem->weight = MAX(share, 1);
    if (elem->kbps != kbps) {
        sched_limit(hca, elem, kbps);
    }
}

void sched_own_free(struct hca *hca, struct sched_elem *elem)
{
    if (elem) {
        hca_timer_stop(hca, &elem->timer);
        hca_unschedule(&elem->work);
        if (elem->ready) {
            g_ptr_array_unref(elem->ready);
        }
        g_free(elem);
    }
}
