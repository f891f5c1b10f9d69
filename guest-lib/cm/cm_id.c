/* SPDX-License-Identifier: BSD-2-Clause */
/* Identifiers of connections: their numbers, states and timers. */
#include "guest-lib/cm/cm_internal.h"

#define MS    1000000u /* ns */

#define REQ   PRM_CM_MESSAGE_REQ
#define REP   PRM_CM_MESSAGE_REP
#define OTHER PRM_CM_MESSAGE_OTHER

/* The states of IBTA 12.9.7, and in which of them Linux gives up. */
#define NAMED(text)                                                                                \
    {                                                                                              \
        .name = (text)                                                                             \
    }
/* A state in which either side may reject. */
#define UNDECIDED(text, what, then)                                                                \
    .name = (text), .message = (what), .rejects = true, .after_reject = (then), .rejected = true
#define GIVES_UP(event, then) .gave_up = (event), .after_giving_up = (then)

const struct cm_state_row cm_states[CM_STATES] = {
    [CM_IDLE] = NAMED("idle"),
    [CM_LISTEN] = NAMED("listen"),
    [CM_REQ_SENT] = {UNDECIDED("REQ sent", OTHER, CM_IDLE), GIVES_UP(CM_EVENT_REQ_ERROR, CM_IDLE)},
    [CM_MRA_REQ_RCVD] = {UNDECIDED("MRA(REQ) rcvd", OTHER, CM_IDLE),
                         GIVES_UP(CM_EVENT_REQ_ERROR, CM_IDLE)},
    [CM_REQ_RCVD] = {UNDECIDED("REQ rcvd", REQ, CM_IDLE), .answering = true},
    [CM_MRA_REQ_SENT] = {UNDECIDED("MRA(REQ) sent", REQ, CM_IDLE)},
    [CM_REP_RCVD] = {UNDECIDED("REP rcvd", REP, CM_IDLE)},
    [CM_MRA_REP_SENT] = {UNDECIDED("MRA(REP) sent", REP, CM_IDLE)},
    [CM_REP_SENT] = {UNDECIDED("REP sent", OTHER, CM_TIMEWAIT),
                     GIVES_UP(CM_EVENT_REP_ERROR, CM_IDLE)},
    [CM_MRA_REP_RCVD] = {UNDECIDED("MRA(REP) rcvd", OTHER, CM_TIMEWAIT),
                         GIVES_UP(CM_EVENT_REP_ERROR, CM_IDLE)},
    [CM_ESTABLISHED] = {.name = "established", .message = OTHER, .rejected = true},
    [CM_DREQ_SENT] = {.name = "DREQ sent",
                      .message = OTHER,
                      .rejected = true,
                      GIVES_UP(CM_EVENT_DREQ_ERROR, CM_TIMEWAIT)},
    [CM_DREQ_RCVD] = NAMED("DREQ rcvd"),
    [CM_TIMEWAIT] = {.name = "timewait", GIVES_UP(CM_EVENT_TIMEWAIT_EXIT, CM_IDLE)},
    [CM_SIDR_REQ_SENT] = {.name = "SIDR_REQ sent", GIVES_UP(CM_EVENT_SIDR_REQ_ERROR, CM_IDLE)},
    [CM_SIDR_REQ_RCVD] = NAMED("SIDR_REQ rcvd"),
};

uint8_t cm_ack_timeout_of(uint8_t ack_delay, uint8_t packet_life_time)
{
    unsigned timeout = packet_life_time + 1u; /* there and back */

    if (timeout >= ack_delay) {
        timeout += ack_delay + 1u >= timeout;
    } else {
        timeout = ack_delay + (timeout + 1u >= ack_delay);
    }
    return (uint8_t)MIN(timeout, 31u);
}

/* -- communication IDs ------------------------------------------------------------------------- */

struct cm_id *cm_find(struct cm *cm, uint32_t local_id, uint32_t remote_id)
{
    struct cm_id *id = g_hash_table_lookup(cm->ids, GUINT_TO_POINTER(local_id));

    return id && id->remote_id == remote_id ? id : NULL;
}

struct cm_id *cm_find_listener(struct cm *cm, uint64_t service_id)
{
    return g_hash_table_lookup(cm->listeners, &service_id);
}

/* Whether the identifier counts as a connection with its peer. It does until its TIMEWAIT is
 * over. */
static bool cm_id_is_connection(const struct cm_id *id)
{
    return id->state != CM_IDLE && id->state != CM_LISTEN && id->state != CM_SIDR_REQ_SENT &&
           id->state != CM_SIDR_REQ_RCVD && id->remote_id;
}

struct cm_id *cm_find_same_name(const struct cm_id *id, uint32_t remote_id, uint64_t remote_guid)
{
    GHashTableIter iter;
    gpointer other;

    g_hash_table_iter_init(&iter, id->cm->ids);
    while (g_hash_table_iter_next(&iter, NULL, &other)) {
        const struct cm_id *o = other;

        if (o != id && o->remote_id == remote_id && o->remote_guid == remote_guid &&
            cm_id_is_connection(o)) {
            return other;
        }
    }
    return NULL;
}

struct cm_id *cm_find_same_qp(const struct cm_id *id, uint32_t remote_qpn, uint64_t remote_guid)
{
    GHashTableIter iter;
    gpointer other;

    g_hash_table_iter_init(&iter, id->cm->ids);
    while (g_hash_table_iter_next(&iter, NULL, &other)) {
        const struct cm_id *o = other;

        if (o != id && o->remote_qpn == remote_qpn && o->remote_guid == remote_guid &&
            cm_id_is_connection(o)) {
            return other;
        }
    }
    return NULL;
}

struct cm_id *cm_find_sidr(struct cm *cm, const struct cm_id *but, const struct cm_av *from,
                           uint32_t request_id)
{
    GHashTableIter iter;
    gpointer other;

    g_hash_table_iter_init(&iter, cm->ids);
    while (g_hash_table_iter_next(&iter, NULL, &other)) {
        const struct cm_id *o = other;

        if (o != but && o->state == CM_SIDR_REQ_RCVD && o->remote_id == request_id &&
            o->av.port == from->port && !memcmp(o->av.dgid, from->dgid, sizeof(from->dgid))) {
            return other;
        }
    }
    return NULL;
}

struct cm_id *cm_create_id(struct cm *cm, cm_handler *handler, void *context)
{
    struct cm_id *id;

    if (g_hash_table_size(cm->ids) >= CM_MAX_IDS) {
        cm->stats.full++;
        return NULL;
    }
    id = g_new0(struct cm_id, 1);
    id->cm = cm;
    id->handler = handler;
    id->context = context;
    id->deadline_ns = CM_NEVER;
    do {
        id->local_id = cm->next_id++ ^ cm->id_operand;
    } while (!id->local_id || g_hash_table_contains(cm->ids, GUINT_TO_POINTER(id->local_id)));
    g_hash_table_insert(cm->ids, GUINT_TO_POINTER(id->local_id), id);
    return id;
}

void cm_forget(struct cm_id *id)
{
    cm_stop_timer(id);
    if (id->state == CM_LISTEN) {
        g_hash_table_remove(id->cm->listeners, &id->service_id);
    }
    g_hash_table_remove(id->cm->ids, GUINT_TO_POINTER(id->local_id));
    g_free(id);
}

int cm_listen(struct cm_id *id, uint64_t service_id)
{
    if (id->state != CM_IDLE) {
        return EINVAL;
    }
    if (cm_find_listener(id->cm, service_id)) {
        return EADDRINUSE;
    }
    id->service_id = service_id;
    id->state = CM_LISTEN;
    g_hash_table_insert(id->cm->listeners, &id->service_id, id);
    return 0;
}

/* Sends the message that the end of the identifier requires. */
void cm_destroy_id(struct cm_id *id)
{
    uint64_t guid = GUINT64_TO_BE(id->cm->ops->ca_guid(id->cm->opaque, id->av.port));

    id->handler = NULL;
    switch (id->state) {
    case CM_REQ_SENT:
    case CM_MRA_REQ_RCVD:
        cm_send_rej(id, PRM_CM_REJ_REASON_TIMEOUT, &guid, sizeof(guid), NULL, 0);
        break;
    case CM_ESTABLISHED:
        if (id->transport == PRM_CM_TRANSPORT_EXTENDED && id->is_asked) {
            break; /* an XRC target may outlive its creator: its initiator ends the connection */
        }
        cm_send_dreq(id); /* not repeated: no program waits for the answer */
        cm_enter_timewait(id);
        break;
    case CM_DREQ_SENT:
        cm_enter_timewait(id);
        break;
    case CM_DREQ_RCVD:
        cm_send_drep(id);
        break;
    case CM_SIDR_REQ_RCVD:
        cm_send_sidr_rep(id, PRM_CM_SIDR_STATUS_REJECT, 0, 0, NULL, 0);
        break;
    default:
        if (cm_states[id->state].rejects) {
            cm_send_rej(id, PRM_CM_REJ_REASON_CONSUMER_DEFINED, NULL, 0, NULL, 0);
        }
    }
    if (id->state != CM_TIMEWAIT) {
        cm_forget(id);
    }
}

/* -- timers -------------------------------------------------------------------------------------
 */

static gint cm_timer_compare(gconstpointer a, gconstpointer b)
{
    const struct cm_id *x = a, *y = b;

    if (x->deadline_ns != y->deadline_ns) {
        return x->deadline_ns < y->deadline_ns ? -1 : 1;
    }
    return x->timer_seq < y->timer_seq ? -1 : x->timer_seq > y->timer_seq;
}

void cm_stop_timer(struct cm_id *id)
{
    if (id->deadline_ns != CM_NEVER) {
        g_tree_remove(id->cm->timers, id);
        id->deadline_ns = CM_NEVER;
    }
}

void cm_set_timer(struct cm_id *id, unsigned ms)
{
    cm_stop_timer(id);
    id->deadline_ns = id->cm->ops->now_ns(id->cm->opaque) + (uint64_t)ms * MS;
    id->timer_seq = id->cm->timer_seq++;
    g_tree_insert(id->cm->timers, id, id);
}

void cm_enter(struct cm_id *id, enum cm_state state)
{
    cm_stop_timer(id);
    id->state = state;
}

/* Enters TIMEWAIT for as long as packets of the connection may be on the way (IBTA 12.9.8.4). */
void cm_enter_timewait(struct cm_id *id)
{
    cm_enter(id, CM_TIMEWAIT);
    cm_set_timer(id, cm_ms(id->ack_timeout));
}

static void cm_timer_expired(struct cm_id *id)
{
    const struct cm_state_row *row = &cm_states[id->state];
    struct cm_event event = {.type = row->gave_up, .id = id};

    if (id->state != CM_TIMEWAIT && id->retries < id->max_retries) {
        id->retries++;
        id->cm->stats.retried[PRM_GET(mad_hdr, (void *)id->mad, attr_id) - PRM_CM_ATTR_REQ]++;
        cm_send(id->cm, &id->av, id->mad);
        cm_set_timer(id, id->timeout_ms);
        return;
    }
    if (row->after_giving_up == CM_TIMEWAIT) {
        cm_enter_timewait(id);
    } else {
        cm_enter(id, row->after_giving_up);
    }
    if (id->handler) {
        id->handler(id, &event);
    } else if (id->state == CM_IDLE) {
        cm_forget(id);
    }
}

static struct cm_id *cm_timer_first(const struct cm *cm)
{
    GTreeNode *first = g_tree_node_first(cm->timers);

    return first ? g_tree_node_value(first) : NULL;
}

void cm_run(struct cm *cm)
{
    uint64_t now = cm->ops->now_ns(cm->opaque);

    for (struct cm_id *id = cm_timer_first(cm); id && id->deadline_ns <= now;
         id = cm_timer_first(cm)) {
        cm_stop_timer(id);
        cm_timer_expired(id);
    }
}

uint64_t cm_deadline_ns(const struct cm *cm)
{
    const struct cm_id *first = cm_timer_first(cm);

    return first ? first->deadline_ns : CM_NEVER;
}

/* -- creation and end -------------------------------------------------------------------------- */

struct cm *cm_new(const struct cm_ops *ops, void *opaque)
{
    struct cm *cm = g_new0(struct cm, 1);

    cm->ops = ops;
    cm->opaque = opaque;
    cm->id_operand = ops->random(opaque);
    cm->ids = g_hash_table_new(NULL, NULL);
    cm->listeners = g_hash_table_new(g_int64_hash, g_int64_equal);
    cm->timers = g_tree_new(cm_timer_compare);
    return cm;
}

void cm_free(struct cm *cm)
{
    GList *left = g_hash_table_get_values(cm->ids);

    for (GList *at = left; at; at = at->next) {
        cm_forget(at->data);
    }
    g_list_free(left);
    g_hash_table_destroy(cm->ids);
    g_hash_table_destroy(cm->listeners);
    g_tree_destroy(cm->timers);
    g_free(cm);
}

const struct cm_stats *cm_get_stats(const struct cm *cm)
{
    return &cm->stats;
}
