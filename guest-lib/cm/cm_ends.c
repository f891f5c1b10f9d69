/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages on behalf of hosts that ended. A kernel outlives its processes: it closes their files
 * and so destroys their identifiers, and each identifier sends its peer the message that its state
 * requires (cm_destroy_id()). Here the kernel's part ends with the process. So a peer that notices
 * the end writes the message to itself; the state of its own side tells which message that is.
 */
#include "guest-lib/cm/cm_internal.h"

#define REJ PRM_CM_ATTR_REJ

/* By the state of this side: the message that the host would have sent. For a REJ: what it rejects,
 * and why. */
static const struct cm_goodbye {
    uint16_t attr; /* 0: the host sends nothing, or no peer waits for it */
    uint8_t message, reason;
} cm_goodbyes[CM_STATES] = {
    [CM_REQ_SENT] = {REJ, PRM_CM_MESSAGE_REQ, PRM_CM_REJ_REASON_CONSUMER_DEFINED},
    [CM_MRA_REQ_RCVD] = {REJ, PRM_CM_MESSAGE_REQ, PRM_CM_REJ_REASON_CONSUMER_DEFINED},
    [CM_REQ_RCVD] = {REJ, PRM_CM_MESSAGE_OTHER, PRM_CM_REJ_REASON_TIMEOUT},
    [CM_MRA_REQ_SENT] = {REJ, PRM_CM_MESSAGE_OTHER, PRM_CM_REJ_REASON_TIMEOUT},
    [CM_REP_SENT] = {REJ, PRM_CM_MESSAGE_REP, PRM_CM_REJ_REASON_CONSUMER_DEFINED},
    [CM_MRA_REP_RCVD] = {REJ, PRM_CM_MESSAGE_REP, PRM_CM_REJ_REASON_CONSUMER_DEFINED},
    [CM_REP_RCVD] = {REJ, PRM_CM_MESSAGE_OTHER, PRM_CM_REJ_REASON_CONSUMER_DEFINED},
    [CM_MRA_REP_SENT] = {REJ, PRM_CM_MESSAGE_OTHER, PRM_CM_REJ_REASON_CONSUMER_DEFINED},
    [CM_ESTABLISHED] = {.attr = PRM_CM_ATTR_DREQ},
    [CM_DREQ_SENT] = {.attr = PRM_CM_ATTR_DREP},
    [CM_SIDR_REQ_SENT] = {.attr = PRM_CM_ATTR_SIDR_REP},
};

/* Whether the end of the host needs no message. An XRC target may outlive its creator: its host
 * sends nothing. */
static bool cm_ends_quietly(const struct cm_id *id)
{
    return !cm_goodbyes[id->state].attr ||
           (id->state == CM_ESTABLISHED && id->transport == PRM_CM_TRANSPORT_EXTENDED &&
            !id->is_asked);
}

static void cm_ends_fill_rej(struct prm_cm_rej *rej, const struct cm_id *id,
                             const struct cm_goodbye *goodbye)
{
    PRM_SET(cm_rej, rej, message, goodbye->message);
    PRM_SET(cm_rej, rej, reason, goodbye->reason);
    if (goodbye->reason == PRM_CM_REJ_REASON_TIMEOUT) {
        PRM_SET(cm_rej, rej, ari_length, sizeof(id->remote_guid));
        prm_store64(PRM_PTR(cm_rej, rej, ari), id->remote_guid);
    }
}

static void cm_ends_say(struct cm_id *id)
{
    const struct cm_goodbye *goodbye = &cm_goodbyes[id->state];
    uint8_t mad[CM_MAD_LEN];
    void *msg = mad;

    cm_begin(mad, goodbye->attr, id->tid);
    if (goodbye->attr == PRM_CM_ATTR_SIDR_REP) {
        PRM_SET(cm_sidr_rep, msg, request_id, id->local_id);
        PRM_SET(cm_sidr_rep, msg, status, PRM_CM_SIDR_STATUS_REJECT);
    } else {
        PRM_SET(cm_rtu, msg, local_comm_id, id->remote_id);
        PRM_SET(cm_rtu, msg, remote_comm_id, id->local_id);
    }
    if (goodbye->attr == REJ) {
        cm_ends_fill_rej(msg, id, goodbye);
    } else if (goodbye->attr == PRM_CM_ATTR_DREQ) {
        PRM_SET(cm_dreq, msg, remote_qpn, id->local_qpn);
    }
    cm_recv(id->cm, &id->av, mad, sizeof(mad));
}

/* Finds the identifiers (by local_id) whose peers have ended. *others: there are identifiers whose
 * peers may still end. */
static GArray *cm_ends_find(struct cm *cm, bool *others)
{
    GArray *found = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    GHashTableIter iter;
    uint64_t asked = 0;
    bool ended = false;
    struct cm_id *id;

    g_hash_table_iter_init(&iter, cm->ids);
    while (g_hash_table_iter_next(&iter, NULL, (gpointer *)&id)) {
        if (!id->host || cm_ends_quietly(id)) {
            continue;
        }
        if (id->host != asked) { /* in most cases all have the same host */
            asked = id->host;
            ended = cm->ops->has_ended(cm->opaque, id->av.port, asked);
        }
        if (ended) {
            g_array_append_val(found, id->local_id);
        }
        *others |= !ended;
    }
    return found;
}

/* An event that is reported here may destroy other identifiers, so each is looked up again. */
bool cm_hosts_ended(struct cm *cm)
{
    bool others = false;
    GArray *found = cm_ends_find(cm, &others);

    for (guint i = 0; i < found->len; i++) {
        uint32_t name = g_array_index(found, uint32_t, i);
        struct cm_id *id = g_hash_table_lookup(cm->ids, GUINT_TO_POINTER(name));

        if (id && !cm_ends_quietly(id)) {
            cm_ends_say(id);
        }
    }
    g_array_free(found, TRUE);
    return others;
}
