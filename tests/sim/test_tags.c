/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests tag matching against a reference matcher: senders on one HCA, on a bad cable, and software
 * on the other HCA that posts receives to an XRQ, cancels them, and handles what the device does
 * not, as an MPI does. The reference knows only MPI's rule: a message takes the first posted
 * receive that it matches, and the messages of a sender are matched in order.
 *
 * The senders are connected to QPs of the receiver; or they are initiators, and the receiver has a
 * target.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "guest-lib/drv/drv_internal.h"
#include "tests/sim/seeds.h"
#include "tests/sim/two_hcas.h"
#include "tests/unit/suite.h"

#define SENDERS    3
#define MESSAGES   80
#define LOG_TAGS   4
#define TAGS       (1u << LOG_TAGS)
#define LOG_XRQ    6
#define LOG_STRIDE 6
#define ROOM       4096 /* the most bytes of a message, including headers */
#define HEADERS    64   /* offset of a rendezvous's data in its sender's memory */
#define NONE       (-1)
#define DC_KEY     0x1122334455667788ull

enum kind {
    EAGER,
    REQUEST,
    NO_TAG
};

/* A message: number n of all messages, at n * ROOM of the senders' memory. */
struct message {
    enum kind kind;
    unsigned sender;
    uint64_t tag;
    uint32_t len; /* bytes of its data */
    bool arrived, done;
};

/* A receive. Its entry is its handle; its buffer is at handle * ROOM of the receiver's memory. */
struct receive {
    uint64_t tag, mask;
    bool posted;   /* it is in the reference's list */
    int message;   /* the message that it was matched with, or NONE */
    unsigned cqes; /* CQEs that must come before its entry is free */
    bool removing;
};

struct run {
    struct two_hcas *t;
    GRand *rand;
    struct drv_srq xrq;
    struct drv_qp cmd, at[SENDERS]; /* QPs of the receiver */
    struct drv_qp *from[SENDERS];
    bool dc;
    uint32_t target, back; /* DC: the receiver's target, and the senders' target for READ and FIN */
    struct drv_qp dcis[SENDERS];
    struct buf *here, *wqes, *there, *fins;
    unsigned wqe_buffer[1 << LOG_XRQ]; /* which ROOM of wqes each slot uses */
    unsigned last_slot;                /* the last free slot */
    struct message messages[MESSAGES];
    struct receive receives[TAGS];
    GQueue *posted;     /* handles, in order: the reference's list */
    GQueue *unexpected; /* numbers of messages that software has, in order of arrival */
    GQueue *entries;    /* free entries, in the order in which appends take them */
    unsigned sent, arrived[SENDERS];
    uint16_t count; /* number of unexpected messages */
    unsigned fins_to_come, fins_seen;
    unsigned written;
    unsigned by_device, by_software, fetched, removed, too_late; /* statistics of the run */
};

static uint32_t upto(struct run *r, uint32_t max)
{
    return (uint32_t)g_rand_int_range(r->rand, 0, (gint32)max + 1);
}

/* -- the reference ----------------------------------------------------------------------------- */

static bool matches(const struct receive *receive, const struct message *message)
{
    return message->kind != NO_TAG && (message->tag & receive->mask) == receive->tag;
}

/* Returns the first posted receive that the message matches, or NONE. */
static int reference_find(struct run *r, unsigned n)
{
    for (GList *l = r->posted->head; l; l = l->next) {
        int handle = GPOINTER_TO_INT(l->data);

        if (matches(&r->receives[handle], &r->messages[n])) {
            return handle;
        }
    }
    return NONE;
}

/* Returns the first waiting message that the receive matches, or NONE. */
static int reference_waiting(struct run *r, const struct receive *receive)
{
    for (GList *l = r->unexpected->head; l; l = l->next) {
        if (matches(receive, &r->messages[GPOINTER_TO_INT(l->data)])) {
            return GPOINTER_TO_INT(l->data);
        }
    }
    return NONE;
}

static void reference_match(struct run *r, int handle, int n)
{
    struct receive *receive = &r->receives[handle];

    ck_assert(receive->posted);
    receive->posted = false;
    receive->message = n;
    g_queue_remove(r->posted, GINT_TO_POINTER(handle));
}

/* Handles an arrival: a sender's messages are reported in order. */
static void reference_arrives(struct run *r, unsigned sender, unsigned n)
{
    struct message *message = &r->messages[n];

    ck_assert_uint_lt(n, r->sent);
    ck_assert_msg(message->sender == sender, "%u: of %u, came from %u; sent %u", n, message->sender,
                  sender, r->sent);
    for (; r->arrived[sender] < n; r->arrived[sender]++) {
        ck_assert(r->messages[r->arrived[sender]].sender != sender);
    }
    ck_assert(!message->arrived);
    message->arrived = true;
    r->arrived[sender] = n + 1;
}

/* -- senders ----------------------------------------------------------------------------------- */

static const uint8_t ops[] = {
    [EAGER] = PRM_TM_OP_EAGER, [REQUEST] = PRM_TM_OP_RNDV, [NO_TAG] = PRM_TM_OP_NO_TAG};

static uint8_t *data_of(struct run *r, unsigned n)
{
    size_t header = r->messages[n].kind == REQUEST ? HEADERS : sizeof(struct prm_tmh);

    return r->there->ptr + n * ROOM + header;
}

static void send_this(struct run *r, const struct message *message, unsigned more)
{
    unsigned n = r->sent++;
    struct message *m = &r->messages[n];
    struct prm_tmh *tmh = (void *)(r->there->ptr + n * ROOM);
    struct prm_rvh *rvh = (void *)(tmh + 1);
    struct prm_ravh *ravh = (void *)(rvh + 1);
    struct drv_path to = path_to(&r->t->a, &r->cmd);
    struct drv_sge sge;
    struct drv_send send = {.opcode = PRM_WQE_OPCODE_SEND,
                            .sge = &sge,
                            .num_sge = 1,
                            .ah = r->dc ? &to : NULL,
                            .dc_key = DC_KEY};

    *m = *message;
    PRM_SET(tmh, tmh, op, ops[m->kind]);
    PRM_SET(tmh, tmh, app_ctx, n);
    PRM_SET(tmh, tmh, tag, m->tag);
    fill(data_of(r, n), m->len, n + 1);
    sge = buf_sge(r->there, n * ROOM, sizeof(*tmh) + m->len);
    if (m->kind == REQUEST) {
        PRM_SET(rvh, rvh, va, r->there->va + n * ROOM + HEADERS);
        PRM_SET(rvh, rvh, rkey, r->there->mr.key);
        PRM_SET(rvh, rvh, len, m->len);
        sge.len = (uint32_t)(sizeof(*tmh) + sizeof(*rvh) + (r->dc ? sizeof(*ravh) : 0) + more);
        PRM_SET(ravh, ravh, dct, r->back);
        PRM_SET(ravh, ravh, dc_access_key, DC_KEY);
    }
    to.remote_qpn = r->target;
    drv_post_send(r->from[m->sender], &send);
}

static void send_message(struct run *r)
{
    struct message message = {
        .kind = (enum kind)(upto(r, 9) ? upto(r, 1) : NO_TAG),
        .sender = upto(r, SENDERS - 1),
        .tag = upto(r, 7) << 8 | upto(r, 3),
        .len = upto(r, 1) ? upto(r, 300) : upto(r, ROOM - HEADERS),
    };

    send_this(r, &message, upto(r, 8)); /* a request may contain data of the application */
}

/* Takes the FINs, which contain the beginning of the request. */
static void senders_poll(struct run *r)
{
    struct drv_wc wc;

    while (drv_poll_cq(r->t->b.drv, &r->t->b.cq, &wc)) {
        ck_assert_uint_eq(wc.opcode, PRM_CQE_OPCODE_RESP_SEND);
        ck_assert_uint_eq(wc.byte_cnt, 32);
        r->fins_seen++;
    }
}

/* -- software ---------------------------------------------------------------------------------- */

static void post_change(struct run *r, uint8_t op, unsigned index, const struct receive *receive,
                        const struct drv_sge *buffer)
{
    size_t at = r->cmd.sq_offset + 64u * (r->cmd.sq_pi & ((1u << LOG_SQ) - 1));
    void *wqe = (uint8_t *)r->cmd.ring.ptr + at;
    struct prm_wqe_tm_seg *seg = wqe + PRM_SIZE(wqe_ctrl_seg);
    struct prm_wqe_data_seg *data = (void *)(seg + 1);

    memset(wqe, 0, 64);
    PRM_SET(wqe_ctrl_seg, wqe, opcode, PRM_WQE_OPCODE_TAG_MATCHING);
    PRM_SET(wqe_ctrl_seg, wqe, wqe_index, r->cmd.sq_pi);
    PRM_SET(wqe_ctrl_seg, wqe, qpn, r->cmd.qpn);
    PRM_SET(wqe_ctrl_seg, wqe, ds, buffer ? 4 : 3);
    PRM_SET(wqe_tm_seg, seg, opcode, op);
    PRM_SET(wqe_tm_seg, seg, cqe_req, 1);
    PRM_SET(wqe_tm_seg, seg, has_sw_cnt, 1);
    PRM_SET(wqe_tm_seg, seg, sw_cnt, r->count);
    PRM_SET(wqe_tm_seg, seg, index, index);
    if (buffer) {
        PRM_SET(wqe_tm_seg, seg, append_tag, receive->tag);
        PRM_SET(wqe_tm_seg, seg, append_mask, receive->mask);
        PRM_SET(wqe_data_seg, data, byte_count, buffer->len);
        PRM_SET(wqe_data_seg, data, lkey, buffer->lkey);
        PRM_SET(wqe_data_seg, data, addr, buffer->va);
    }
    r->cmd.sq_pi++;
    r->cmd.dbr[1] = GUINT32_TO_BE(r->cmd.sq_pi);
    drv_ring_doorbell(&r->cmd, (uint32_t)prm_load32(wqe), (uint32_t)prm_load32(wqe + 4));
}

/* Software has received the message; the data of a rendezvous is at its sender. */
static void finish(struct run *r, unsigned n)
{
    ck_assert(!r->messages[n].done);
    r->messages[n].done = true;
}

static void post_receive(struct run *r)
{
    static const uint64_t masks[] = {UINT64_MAX, 0xff00, 0xff, 0};
    struct receive new = {.mask = masks[upto(r, 3)], .message = NONE, .cqes = 2, .posted = true};
    int handle, waiting;
    struct drv_sge buffer;

    if (g_queue_get_length(r->entries) < 2) {
        return;
    }
    new.tag = (upto(r, 7) << 8 | upto(r, 3)) & new.mask;
    waiting = reference_waiting(r, &new);
    if (waiting != NONE) { /* it does not enter the device's list */
        g_queue_remove(r->unexpected, GINT_TO_POINTER(waiting));
        r->by_software++;
        finish(r, (unsigned)waiting);
        return;
    }
    handle = GPOINTER_TO_INT(g_queue_pop_head(r->entries));
    r->receives[handle] = new;
    g_queue_push_tail(r->posted, GINT_TO_POINTER(handle));
    memset(r->here->ptr + handle * ROOM, 0, ROOM);
    buffer = buf_sge(r->here, (size_t)handle * ROOM, ROOM);
    post_change(r, PRM_TM_OPCODE_APPEND, GPOINTER_TO_UINT(g_queue_peek_head(r->entries)), &new,
                &buffer);
}

static void cancel_receive(struct run *r)
{
    unsigned handle = upto(r, TAGS - 1);
    struct receive *receive = &r->receives[handle];

    if (receive->cqes && !receive->removing) {
        receive->removing = true;
        receive->cqes++;
        post_change(r, PRM_TM_OPCODE_REMOVE, handle, NULL, NULL);
    }
}

/* Counts one CQE of an entry. */
static void count_down(struct run *r, unsigned handle)
{
    struct receive *receive = &r->receives[handle];

    ck_assert_uint_gt(receive->cqes, 0);
    if (--receive->cqes == 0) {
        receive->removing = false;
        g_queue_push_tail(r->entries, GUINT_TO_POINTER(handle));
    }
}

/* Returns the sender of message n, which came on that QP or target. */
static unsigned sender_of(struct run *r, unsigned n, uint32_t qpn)
{
    ck_assert_uint_lt(n, r->sent);
    if (r->dc) {
        ck_assert_uint_eq(qpn, r->target);
        return r->messages[n].sender;
    }
    for (unsigned i = 0; i < SENDERS; i++) {
        if (r->at[i].qpn == qpn) {
            return i;
        }
    }
    ck_abort_msg("a completion of QP 0x%x", qpn);
}

static void on_matched(struct run *r, const struct drv_wc *wc, unsigned handle)
{
    unsigned n = PRM_GET(tmh, PRM_PTR(cqe64, wc->raw, tmh), app_ctx);

    reference_arrives(r, sender_of(r, n, wc->qpn), n);
    ck_assert_uint_eq(PRM_GET(tmh, PRM_PTR(cqe64, wc->raw, tmh), tag), r->messages[n].tag);
    ck_assert_int_eq(reference_find(r, n), (int)handle);
    reference_match(r, (int)handle, (int)n);
    r->by_device++;
}

static void on_data(struct run *r, const struct drv_wc *wc, unsigned handle)
{
    int n = r->receives[handle].message;

    ck_assert_int_ne(n, NONE);
    ck_assert_uint_eq(wc->byte_cnt, r->messages[n].len);
    ck_assert_mem_eq(r->here->ptr + handle * ROOM, data_of(r, (unsigned)n), wc->byte_cnt);
    if (r->messages[n].kind == REQUEST) {
        r->fins_to_come++;
        r->fetched++;
    }
    finish(r, (unsigned)n);
    count_down(r, handle);
}

/* Messages end in another order than they begin: a slot is free when its own message has ended. */
static void free_slot(struct run *r, unsigned slot)
{
    void *last = (uint8_t *)r->xrq.ring.ptr + (r->last_slot << LOG_STRIDE);

    PRM_SET(wqe_srq_next_seg, last, next_wqe_index, slot);
    r->last_slot = slot;
}

static void post_wqe(struct run *r, unsigned buffer)
{
    struct drv_sge sge = buf_sge(r->wqes, buffer * (size_t)ROOM, ROOM);

    r->wqe_buffer[r->xrq.head] = buffer;
    drv_post_srq_recv(r->t->a.drv, &r->xrq, &sge, 1);
}

/* Handles a whole message in a receive WQE's buffer. */
static void on_wqe(struct run *r, const struct drv_wc *wc, bool has_tag)
{
    unsigned buffer = r->wqe_buffer[wc->wqe_counter];
    const uint8_t *at = r->wqes->ptr + buffer * (size_t)ROOM;
    unsigned n = PRM_GET(tmh, (const struct prm_tmh *)at, app_ctx);
    int handle;

    reference_arrives(r, sender_of(r, n, wc->qpn), n);
    ck_assert(has_tag == (r->messages[n].kind != NO_TAG));
    ck_assert_mem_eq(at, r->there->ptr + n * ROOM, wc->byte_cnt);
    free_slot(r, wc->wqe_counter);
    post_wqe(r, buffer);
    if (!has_tag) {
        finish(r, n);
        return;
    }
    handle = reference_find(r, n);
    r->count++;
    if (handle == NONE) {
        g_queue_push_tail(r->unexpected, GUINT_TO_POINTER(n));
        return;
    }
    /* Software must match it: the device must not have given the receive to a later message. */
    reference_match(r, handle, (int)n);
    r->by_software++;
    finish(r, n);
    if (!r->receives[handle].removing) {
        r->receives[handle].removing = true;
        r->receives[handle].cqes++;
        post_change(r, PRM_TM_OPCODE_REMOVE, (unsigned)handle, NULL, NULL);
    }
}

static void on_removed(struct run *r, unsigned handle, bool success)
{
    struct receive *receive = &r->receives[handle];
    bool by_device = receive->message != NONE && receive->cqes > 0 && !receive->posted;

    if (success) {
        if (receive->posted) {
            receive->posted = false;
            g_queue_remove(r->posted, GUINT_TO_POINTER(handle));
        } else {
            ck_assert_msg(by_device, "removed, but not there");
        }
        r->removed++;
        count_down(r, handle); /* no message will come */
    } else {
        ck_assert_msg(!receive->posted, "not removed, and not told that it was taken");
        r->too_late++;
    }
    count_down(r, handle);
}

static void software_poll(struct run *r)
{
    struct drv_wc wc;

    while (drv_poll_cq(r->t->a.drv, &r->t->a.cq, &wc)) {
        unsigned handle = PRM_GET(cqe64, wc.raw, app_info);

        ck_assert_uint_eq(PRM_GET(cqe64, wc.raw, app), PRM_CQE_APP_TAG_MATCHING);
        switch (PRM_GET(cqe64, wc.raw, app_op)) {
        case PRM_CQE_TM_OP_APPEND:
            count_down(r, handle);
            break;
        case PRM_CQE_TM_OP_REMOVE:
            on_removed(r, handle, PRM_GET(cqe64, wc.raw, tm_success));
            break;
        case PRM_CQE_TM_OP_NOOP:
            break;
        case PRM_CQE_TM_OP_CONSUMED:
            on_matched(r, &wc, handle);
            break;
        case PRM_CQE_TM_OP_CONSUMED_MSG:
            on_matched(r, &wc, handle);
            on_data(r, &wc, handle);
            break;
        case PRM_CQE_TM_OP_EXPECTED:
            on_data(r, &wc, handle);
            break;
        case PRM_CQE_TM_OP_UNEXPECTED:
            on_wqe(r, &wc, true);
            break;
        case PRM_CQE_TM_OP_NO_TAG:
            on_wqe(r, &wc, false);
            break;
        default:
            ck_abort_msg("app_op %u", (unsigned)PRM_GET(cqe64, wc.raw, app_op));
        }
    }
}

/* -- runs -------------------------------------------------------------------------------------- */

static void make_xrq(struct run *r)
{
    struct node *node = &r->t->a;
    size_t ring = 1ul << (LOG_XRQ + LOG_STRIDE);
    size_t len = PRM_SIZE(create_xrq_in) + 8 * drv_pages(ring);
    g_autofree struct prm_create_xrq_in *in = g_malloc0(len);
    struct prm_create_xrq_out out[1] = {0};
    struct prm_xrqc *xrqc = PRM_PTR(create_xrq_in, in, xrq_context);
    struct prm_wq *wq = PRM_PTR(xrqc, xrqc, wq);

    r->xrq.log_size = LOG_XRQ;
    r->xrq.log_stride = LOG_STRIDE;
    r->last_slot = (1u << LOG_XRQ) - 1;
    r->xrq.ring = drv_alloc(node->drv, ring);
    r->xrq.dbr = drv_new_db(node->drv, &r->xrq.dbr_bus);
    for (unsigned i = 0; i < 1u << LOG_XRQ; i++) {
        void *slot = (uint8_t *)r->xrq.ring.ptr + (i << LOG_STRIDE);

        PRM_SET(wqe_srq_next_seg, slot, next_wqe_index, (i + 1) % (1u << LOG_XRQ));
    }
    PRM_SET(create_xrq_in, in, opcode, PRM_CMD_OP_CREATE_XRQ);
    PRM_SET(xrqc, xrqc, topology, PRM_XRQC_TOPOLOGY_TAG_MATCHING);
    PRM_SET(xrqc, xrqc, offload, PRM_XRQC_OFFLOAD_RNDV);
    PRM_SET(xrqc, xrqc, cqn, node->cq.cqn);
    PRM_SET(xrqc, xrqc, dc, r->dc);
    PRM_SET(tag_matching_topology_context, PRM_PTR(xrqc, xrqc, tag_matching_topology_context),
            log_matching_list_sz, LOG_TAGS);
    PRM_SET(wq, wq, wq_type, PRM_WQ_TYPE_LINKED_LIST);
    PRM_SET(wq, wq, log_wq_sz, LOG_XRQ);
    PRM_SET(wq, wq, log_wq_stride, LOG_STRIDE);
    PRM_SET(wq, wq, pd, node->drv->pdn);
    PRM_SET(wq, wq, dbr_addr, r->xrq.dbr_bus);
    drv_set_pas((void *)PRM_PTR(wq, wq, pas), &r->xrq.ring);
    ck_assert_int_eq(drv_cmd(node->drv, in, len, out, sizeof(out)), 0);
    r->xrq.srqn = PRM_GET(create_xrq_out, out, xrqn);
}

static void destroy_xrq(struct run *r)
{
    struct prm_destroy_xrq_in in[1] = {0};
    struct drv *drv = r->t->a.drv;

    PRM_SET(destroy_xrq_in, in, opcode, PRM_CMD_OP_DESTROY_XRQ);
    PRM_SET(destroy_xrq_in, in, xrqn, r->xrq.srqn);
    ck_assert_int_eq(drv_cmd_simple(drv, in, sizeof(in)), 0);
    drv_free(drv, &r->xrq.ring);
    drv_free_db(drv, r->xrq.dbr, r->xrq.dbr_bus);
}

static void make_qp(struct run *r, bool is_command, bool has_sq, struct drv_qp *qp)
{
    struct node *node = &r->t->a;
    struct drv_qp_attr attr = {
        .st = PRM_QP_ST_RC,
        .pdn = node->drv->pdn,
        .send_cq = &node->cq,
        .recv_cq = &node->cq,
        .srq = &r->xrq,
        .log_sq = LOG_SQ,
        .no_sq = !has_sq,
        .fetches = !is_command,
    };

    ck_assert_int_eq(drv_create_qp(node->drv, &attr, qp), 0);
}

/* -- DC ---------------------------------------------------------------------------------------- */

static void set_dc_params(struct run *r)
{
    struct prm_set_xrq_dc_params_entry_in in[1] = {0};

    PRM_SET(set_xrq_dc_params_entry_in, in, opcode, PRM_CMD_OP_SET_XRQ_DC_PARAMS_ENTRY);
    PRM_SET(set_xrq_dc_params_entry_in, in, xrqn, r->xrq.srqn);
    PRM_SET(set_xrq_dc_params_entry_in, in, ack_timeout, 10);
    PRM_SET(set_xrq_dc_params_entry_in, in, mtu, PRM_QP_MTU_1024);
    PRM_SET(set_xrq_dc_params_entry_in, in, dc_access_key, DC_KEY);
    ck_assert_int_eq(drv_cmd_simple(r->t->a.drv, in, sizeof(in)), 0);
}

static uint32_t make_target(struct node *node, uint32_t srqn, bool fetches)
{
    struct prm_create_dct_in in[1] = {0};
    struct prm_create_dct_out out[1] = {0};
    struct prm_dctc *dctc = PRM_PTR(create_dct_in, in, dct_context_entry);

    PRM_SET(create_dct_in, in, opcode, PRM_CMD_OP_CREATE_DCT);
    PRM_SET(dctc, dctc, offload_type, fetches ? PRM_QP_OFFLOAD_RNDV : PRM_QP_OFFLOAD_NONE);
    PRM_SET(dctc, dctc, user_index, 0xffffff);
    PRM_SET(dctc, dctc, cqn, node->cq.cqn);
    PRM_SET(dctc, dctc, pd, node->drv->pdn);
    PRM_SET(dctc, dctc, srqn_xrqn, srqn);
    PRM_SET(dctc, dctc, rre, 1);
    PRM_SET(dctc, dctc, min_rnr_nak, 1);
    PRM_SET(dctc, dctc, dc_access_key, DC_KEY);
    PRM_SET(dctc, dctc, mtu, PRM_QP_MTU_1024);
    PRM_SET(dctc, dctc, hop_limit, 64);
    ck_assert_int_eq(drv_cmd(node->drv, in, sizeof(in), out, sizeof(out)), 0);
    return PRM_GET(create_dct_out, out, dctn);
}

static void destroy_target(struct node *node, uint32_t dctn)
{
    struct prm_destroy_dct_in in[1] = {0};

    PRM_SET(destroy_dct_in, in, opcode, PRM_CMD_OP_DESTROY_DCT);
    PRM_SET(destroy_dct_in, in, dctn, dctn);
    ck_assert_int_eq(drv_cmd_simple(node->drv, in, sizeof(in)), 0);
}

static void dc_connect(struct run *r)
{
    struct node *node = &r->t->b;
    struct drv_srq *srq = node_srq(node, LOG_RQ + 1);
    struct drv_sge fin = buf_sge(r->fins, 0, 32);
    struct drv_path path = path_to(&r->t->a, &r->cmd);

    set_dc_params(r);
    r->target = make_target(&r->t->a, r->xrq.srqn, true);
    r->back = make_target(node, srq->srqn, false);
    for (unsigned n = 0; n < MESSAGES; n++) {
        drv_post_srq_recv(node->drv, srq, &fin, 1);
    }
    path.ack_timeout = 10;
    for (unsigned i = 0; i < SENDERS; i++) {
        struct drv_qp_attr attr = {.st = PRM_QP_ST_DCI,
                                   .pdn = node->drv->pdn,
                                   .send_cq = &node->cq,
                                   .recv_cq = &node->cq,
                                   .log_sq = LOG_SQ + 1,
                                   .no_rq = true};

        r->from[i] = &r->dcis[i];
        ck_assert_int_eq(drv_create_qp(node->drv, &attr, r->from[i]), 0);
        ck_assert_int_eq(drv_qp_connect(r->from[i], &path), 0);
    }
}

static void dc_end(struct run *r)
{
    for (unsigned i = 0; i < SENDERS; i++) {
        ck_assert_int_eq(drv_destroy_qp(&r->dcis[i]), 0);
    }
    destroy_target(&r->t->b, r->back);
    destroy_target(&r->t->a, r->target);
}

static void run_init(struct run *r, const struct lossy_config *loss, bool dc, const char *capture)
{
    struct drv_path path;

    memset(r, 0, sizeof(*r));
    r->dc = dc;
    r->t = two_hcas_captured(loss, capture);
    r->rand = g_rand_new_with_seed(loss->seed + 77);
    r->posted = g_queue_new();
    r->unexpected = g_queue_new();
    r->entries = g_queue_new();
    r->here = node_buf(&r->t->a, TAGS * ROOM, DRV_LOCAL_WRITE, 0);
    r->wqes = node_buf(&r->t->a, (size_t)ROOM << LOG_XRQ, DRV_LOCAL_WRITE, 0);
    r->there = node_buf(&r->t->b, MESSAGES * ROOM, DRV_ALL, 0);
    r->fins = node_buf(&r->t->b, 64, DRV_ALL, 0);
    make_xrq(r);
    make_qp(r, true, true, &r->cmd);
    path = path_to(&r->t->a, &r->cmd);
    ck_assert_int_eq(drv_qp_connect(&r->cmd, &path), 0);
}

static void rc_connect(struct run *r)
{
    static const struct drv_path path = {.ack_timeout = 10};
    struct drv_sge fin = buf_sge(r->fins, 0, 32);

    for (unsigned i = 0; i < SENDERS; i++) {
        make_qp(r, false, i == 0, &r->at[i]);
        r->from[i] = node_qp(&r->t->b, PRM_QP_ST_RC, NULL);
        connect_qps(&r->t->a, &r->at[i], &r->t->b, r->from[i], &path);
        for (unsigned n = 0; n < 1u << LOG_RQ; n++) {
            drv_post_recv(r->from[i], &fin, 1);
        }
    }
}

static void run_connect(struct run *r)
{
    if (r->dc) {
        dc_connect(r);
    } else {
        rc_connect(r);
    }
    for (unsigned i = 0; i < (1u << LOG_XRQ) - 1; i++) {
        post_wqe(r, i);
    }
    for (unsigned i = 0; i < TAGS; i++) {
        g_queue_push_tail(r->entries, GUINT_TO_POINTER(i));
    }
}

/* The first data QP has its own send queue, in addition to what the device sends there. */
static void write_back(struct run *r)
{
    struct drv_sge sge = buf_sge(r->wqes, 0, 1 + upto(r, 31));
    struct drv_send send = {.opcode = PRM_WQE_OPCODE_RDMA_WRITE,
                            .sge = &sge,
                            .num_sge = 1,
                            .raddr = r->fins->va + 32,
                            .rkey = r->fins->mr.key};

    if (!r->dc && r->written < 1u << LOG_SQ) {
        r->written++;
        drv_post_send(&r->at[0], &send);
    }
}

static void run_for(struct run *r, uint64_t ns)
{
    const struct pci_dev *dev = &r->t->a.drv->dev;

    dev->ops->wait(dev->pci, ns);
    drv_poll_events(r->t->a.drv);
    senders_poll(r);
    software_poll(r);
}

static bool all_is_done(const struct run *r)
{
    for (unsigned n = 0; n < r->sent; n++) {
        if (!r->messages[n].arrived) {
            return false;
        }
    }
    for (unsigned i = 0; i < TAGS; i++) {
        const struct receive *receive = &r->receives[i];

        if (receive->cqes && !(receive->posted && !receive->removing && receive->cqes == 1)) {
            return false;
        }
    }
    return r->fins_seen == r->fins_to_come;
}

static void run_end(struct run *r)
{
    for (unsigned n = 0; n < r->sent; n++) {
        bool waits = g_queue_find(r->unexpected, GUINT_TO_POINTER(n));

        ck_assert(r->messages[n].done != waits);
        ck_assert_int_eq(waits ? reference_find(r, n) : NONE, NONE);
    }
    for (unsigned i = 0; i < SENDERS && !r->dc; i++) {
        ck_assert_int_eq(drv_destroy_qp(&r->at[i]), 0);
    }
    if (r->dc) {
        dc_end(r);
    }
    ck_assert_int_eq(drv_destroy_qp(&r->cmd), 0);
    destroy_xrq(r);
    g_queue_free(r->posted);
    g_queue_free(r->unexpected);
    g_queue_free(r->entries);
    g_rand_free(r->rand);
    two_hcas_free(r->t);
}

static void run_to_the_end(struct run *r)
{
    for (unsigned i = 0; i < 10000 && !all_is_done(r); i++) {
        run_for(r, 10 * MS);
    }
    ck_assert_msg(all_is_done(r), "something did not come");
}

static void run(struct run *r, const struct lossy_config *loss, bool dc)
{
    run_init(r, loss, dc, NULL);
    run_connect(r);
    while (r->sent < MESSAGES) {
        switch (upto(r, 9)) {
        case 0 ... 2:
            send_message(r);
            break;
        case 3 ... 6:
            post_receive(r);
            break;
        case 7:
            if (upto(r, 3) == 0) {
                cancel_receive(r);
            }
            break;
        case 8:
            post_change(r, PRM_TM_OPCODE_NOP, 0, NULL, NULL);
            write_back(r);
            break;
        default:
            run_for(r, upto(r, 50) * 1000);
            break;
        }
    }
    run_to_the_end(r);
    run_end(r);
}

static void run_seeds(bool dc)
{
    struct seeds seeds = seeds_of_run(40);
    unsigned by_device = 0, by_software = 0, fetched = 0, removed = 0, too_late = 0;
    struct run r;

    for (uint32_t i = 0; i < seeds.num; i++) {
        /* Over DC a fetch goes to the source address of its request. If that address were
         * corrupted, nobody would answer, and the message would not come. */
        struct lossy_config loss = {.seed = seeds.first + i, .fcs = dc};

        if (loss.seed % 2) {
            loss.lose = loss.twice = loss.late = 10;
            loss.corrupt = 5;
        }
        run(&r, &loss, dc);
        by_device += r.by_device;
        by_software += r.by_software;
        fetched += r.fetched;
        removed += r.removed;
        too_late += r.too_late;
    }
    g_print("# matched by the device %u (fetched %u), by software %u; removed %u, too late %u\n",
            by_device, fetched, by_software, removed, too_late);
    if (seeds.num >= 10) { /* every kind of event must occur in a run */
        ck_assert_uint_gt(fetched, 0);
        ck_assert_uint_gt(by_device - fetched, 0);
        ck_assert_uint_gt(by_software, 0);
        ck_assert_uint_gt(removed, 0);
        ck_assert_uint_gt(too_late, 0);
    }
}

START_TEST(messages_are_matched_as_mpi_says)
{
    run_seeds(false);
}
END_TEST

START_TEST(messages_over_dc_are_matched_as_mpi_says)
{
    run_seeds(true);
}
END_TEST

/* docs/explanation/tag-matching.md shows it. The capture helps readers: the first rendezvous is
 * over RC, the second over DC. */
START_TEST(one_rendezvous)
{
    static const struct lossy_config perfect;
    struct message message = {.kind = REQUEST, .tag = 0x77, .len = 3000};
    struct receive receive = {
        .tag = 0x77, .mask = UINT64_MAX, .message = NONE, .cqes = 2, .posted = true};
    struct drv_sge buffer;
    struct run r;

    run_init(&r, &perfect, _i == 1,
             g_getenv(_i ? "HCASIM_DC_TAGS_CAPTURE" : "HCASIM_TAGS_CAPTURE"));
    run_connect(&r);
    r.receives[0] = receive;
    g_queue_push_tail(r.posted, g_queue_pop_head(r.entries));
    buffer = buf_sge(r.here, 0, ROOM);
    post_change(&r, PRM_TM_OPCODE_APPEND, 1, &receive, &buffer);
    send_this(&r, &message, 0);
    run_to_the_end(&r);
    ck_assert_uint_eq(r.fetched, 1);
    run_end(&r);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("tag matching, a reference matcher");
    TCase *tc = tcase_create("tags");

    tcase_set_timeout(tc, 0);
    tcase_add_loop_test(tc, one_rendezvous, 0, 2);
    tcase_add_test(tc, messages_are_matched_as_mpi_says);
    tcase_add_test(tc, messages_over_dc_are_matched_as_mpi_says);
    suite_add_tcase(suite, tc);
    return suite;
}
